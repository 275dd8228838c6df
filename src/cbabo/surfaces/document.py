"""The explorer's document: everything that the page computes with, as JSON with arrays in base64.

It contains the map from limits to designs, the surrogates, and the numbers that tune the algorithms which the page repeats, so
that the page answers without a server. The page's map.js and surrogates.js read it; another map or surrogate is a change to all
three.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from cbabo.answering.quality import LEVELS, leave_one_out
from cbabo.answering.standings import ACTIVE_SHARE
from cbabo.decisions import stepwise, tradeoff, wish
from cbabo.display.units import units
from cbabo.domain import region, relations
from cbabo.domain.categorical import Categorical
from cbabo.domain.constraints import FEASIBILITY_TOLERANCE
from cbabo.domain.convergence import Convergence
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.problem import Problem
from cbabo.domain.query import FARTHEST
from cbabo.domain.region import Region
from cbabo.methods.settings import PaperSettings
from cbabo.model import Model
from cbabo.numerics import qp
from cbabo.numerics.codec import base64_array
from cbabo.numerics.tolerances import BOUND_SLACK, PROBABILITY_SLACK, SAME_DESIGN
from cbabo.numerics.versions import versions
from cbabo.solver import consistency, continuous, library
from cbabo.solver.known import RELATION_SLACK
from cbabo.surrogate import Surrogates, failures, formulas, gp, limits, warp
from cbabo.surrogate.failures import FailureModel, tried_designs

FORMAT = 3
_ANCHORS = 64
"""Designs that obey known relations, on which the page falls back where a design cannot be moved onto them."""


def document(model: Model, name: str, moves: Convergence | None = None, audit: str | None = None) -> dict[str, Any]:
    """Return the document of a study's model.

    moves: how far its answers still move, where it was estimated; audit: what the last audit found, in words.
    """
    return {
        "format": FORMAT,
        "study": {"name": name, "seed": model.seed, "versions": versions()},
        "problem": problem_record(model.problem),
        "map": _map(model),
        "surrogates": _surrogates(model),
        "formulas": _formulas(model),
        "tried": _tried(model),
        "recommend": _recommend(model),
        "tuning": _tuning(),
        "evaluations": [_evaluation(model.problem, row) for row in _shown(model.evaluations)],
        "quality": _quality(model),
        "notes": list(model.notes),
        "convergence": None if moves is None else str(moves),
        "audit": audit,
    }


def empty_document(problem: Problem, name: str, seed: int, evaluations: tuple[Evaluation, ...]) -> dict[str, Any]:
    """Return the document of a study that has no model yet."""
    return {
        "format": FORMAT,
        "study": {"name": name, "seed": seed, "versions": versions()},
        "problem": problem_record(problem),
        "tuning": _tuning(),
        "evaluations": [_evaluation(problem, row) for row in _shown(Evaluations(problem, evaluations))],
    }


def problem_record(problem: Problem) -> dict[str, Any]:
    """State a problem with nothing left out."""
    variables = [
        {
            "name": v.name,
            "unit": v.unit,
            "type": v.type,
            "low": None if isinstance(v, Categorical) else v.low,
            "high": None if isinstance(v, Categorical) else v.high,
            "log": bool(getattr(v, "log", False)),
            "values": list(v.values or ()) if v.type in ("discrete", "categorical") else None,
        }
        for v in problem.variables
    ]
    constraints = [
        {**asdict(c), "outputs": list(c.output_names), "nominal": problem.box.nominal.get(c.name)}
        for c in problem.constraints
    ]
    return {
        "name": problem.name,
        "variables": variables,
        "objective": asdict(problem.objective),
        "constraints": constraints,
        "outputs": list(problem.outputs),
        "units": units(problem),
        "relations": list(problem.relations),
        "derived": dict(problem.derived),
        "region": None if problem.region is None else _region(problem.region),
    }


def embedded(document: Mapping[str, Any]) -> str:
    """Write a document so that it may stand inside HTML: nothing in it can end a script or begin one."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _map(model: Model) -> dict[str, Any]:
    if isinstance(model.settings, PaperSettings):
        return {"kind": "network", "sizes": list(model.pcm.sizes), "weights": base64_array(model.pcm.weights)}
    entries, fails = model.fast_map.library, model.posterior.failure_model
    arrays = {f.name: base64_array(getattr(entries, f.name)) for f in fields(entries)}
    failure_model = None if fails is None else _failure_model(fails)
    aims = {"price": model.solver.price, "probability": model.settings.probability}
    return {"kind": "library", **aims, "failure_model": failure_model, "measured": _measured(model), **arrays}


def _measured(model: Model) -> dict[str, Any]:
    """State what is known of the measured designs: standardised outputs, which are posterior means where outputs are noisy."""
    posterior = model.posterior
    inside, exact = np.flatnonzero(posterior.measured.is_inside), posterior.exact
    return {
        "ids": [posterior.measured[i].id for i in inside],
        "z": base64_array(posterior.z[inside]),
        "z_std": base64_array(posterior.z_std[inside]),
        "exact": [True] * len(model.problem.outputs) if exact is None else exact.tolist(),
    }


def _shown(evaluations: Evaluations) -> list[Evaluation]:
    """Return the evaluations that the page shows: without excluded ones, and without designs outside amended bounds."""
    rows = zip(evaluations, evaluations.is_inside, strict=True)
    return [row for row, inside in rows if inside and row.excluded is None]


def _failure_model(model: FailureModel) -> dict[str, Any]:
    return {"limit": model.limit, "most": model.most, "surrogates": _processes(model.surrogates)}


def _tried(model: Model) -> dict[str, Any] | None:
    """State which designs failed, where there is no failure model; None if none did."""
    x, failed = tried_designs(model.evaluations)
    return {"x": base64_array(x), "failed": failed.tolist()} if bool(failed.any()) else None


def _recommend(model: Model) -> dict[str, float]:
    """State what decides between limits that might be recommended."""
    s = model.settings
    stated = {
        "objective": s.objective_weight,
        "barrier": s.barrier_weight,
        "reward": s.reward_weight,
        "guided": s.recommend_guided,
        "range": s.recommend_range,
        "candidates": s.recommend_candidates,
        "rounds": s.recommend_rounds,
    }
    return stated | ({"tolerance": s.recommend_tolerance} if isinstance(s, PaperSettings) else {})


def _tuning() -> dict[str, Any]:
    """State the numbers that the page shares with Python; they are written once, in Python."""
    return {
        "fast_map": _numbers(library.TUNING),
        "solver": _numbers(continuous.TUNING),
        "consistency": _numbers(consistency.TUNING),
        "programs": {**_numbers(qp.TUNING), "iterations": qp.ITERATIONS, "guesses": qp.GUESSES},
        "recommend": _numbers(wish.TUNING),
        "steps": _numbers(stepwise.TUNING),
        "nearby": failures.TUNING.nearby,
        "min_variance": gp.TUNING.min_variance,
        "max_argument": warp.TUNING.max_argument,
        "farthest": FARTHEST,
        "same_design": SAME_DESIGN,
        "probability_slack": PROBABILITY_SLACK,
        "bound_slack": BOUND_SLACK,
        "feasibility_tolerance": FEASIBILITY_TOLERANCE,
        "unlikely": tradeoff.UNLIKELY,
        "active_share": ACTIVE_SHARE,
        "relation_slack": RELATION_SLACK,
        "region": {**_numbers(region.TUNING), "largest": relations.LARGEST},
        "formulas": {
            "least_std": formulas.LEAST_STD,
            "largest": formulas.LARGEST,
            "exact_slack": limits.EXACT_SLACK,
        },
    }


def _numbers(tuning: Any) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(tuning).items()}


def _surrogates(model: Model) -> dict[str, Any]:
    given = model.posterior.warp
    warps = {} if given is None else {f"warp_{f.name}": base64_array(getattr(given, f.name)) for f in fields(given)}
    return {**_processes(model.surrogates), **warps}


def _formulas(model: Model) -> dict[str, Any] | None:
    """State the derived outputs; None where there are none."""
    known, problem = model.posterior.formulas, model.problem
    if known is None:
        return None
    derived = known.derived.tolist()
    return {
        "learned": known.learned.tolist(),
        "derived": derived,
        "steps": [[step.plain for step in problem.formulas[problem.outputs[j]].steps] for j in derived],
        "centre": base64_array(known.centre),
        "scale": base64_array(known.scale),
        "worse": known.worse.tolist(),
    }


def _region(known: Region) -> dict[str, Any]:
    """State the known relations, and designs that obey them."""
    stated = known.relations
    return {
        "relations": [[step.plain for step in e.steps] for e in stated.expressions],
        "finite": [[step.plain for step in e.steps] for e in stated.finite],
        "scale": stated.scale.tolist(),
        "anchors": base64_array(known.anchors[:_ANCHORS]),
    }


def _processes(surrogates: Surrogates) -> dict[str, Any]:
    s, h = surrogates, surrogates.hyperparameters
    arrays = {"x": s.x, "centre": s.centre, "scale": s.scale, "weights": s.weights}
    names = ("lengthscales", "noise", "constant", "amplitude", "family", "stretch", "nugget")
    if s.relative_noise is not None:
        arrays["relative_noise"] = s.relative_noise
    arrays |= {name: value for name in names if (value := getattr(h, name)) is not None}
    return {name: base64_array(array) for name, array in arrays.items()}


def _evaluation(problem: Problem, row: Evaluation) -> dict[str, Any]:
    return {
        "id": row.id,
        "state": row.state,
        "kind": row.kind,
        "point": [row.point[name] for name in problem.space.names],
        "outputs": [row.outputs.get(name) for name in problem.outputs],
        "failure": row.failure,
        "started": None if row.started is None else row.started.timestamp(),
        "seconds": row.seconds,
    }


def _quality(model: Model) -> dict[str, Any]:
    quality = leave_one_out(model)
    return {
        "outputs": list(quality.outputs),
        "ids": quality.ids.tolist(),
        "observed": base64_array(quality.observed),
        "predicted": base64_array(quality.predicted),
        "std": base64_array(quality.std),
        "explained": quality.explained.tolist(),
        "levels": list(LEVELS),
        "covered": quality.covered.tolist(),
    }
