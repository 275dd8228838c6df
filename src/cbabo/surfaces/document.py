"""The explorer's document: everything that the page computes with, as JSON with arrays in base64.

The map from limits to designs and the surrogates stand in it whole, so that the page answers without a server. What is written
here is read by the page's map.js and surrogates.js; another map or surrogate is a change to these three.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cbabo.answering.model import Model
from cbabo.answering.quality import LEVELS, judge
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.problem import Problem
from cbabo.numerics.versions import versions
from cbabo.surrogate import Surrogates

FORMAT = 1


def document(model: Model, name: str) -> dict[str, Any]:
    """Return the document of a study's model."""
    return {
        "format": FORMAT,
        "study": {"name": name, "seed": model.seed, "versions": versions()},
        "problem": problem_record(model.problem),
        "map": _map(model),
        "surrogates": _surrogates(model),
        "recommend": _recommend(model),
        "evaluations": [_evaluation(model.problem, row) for row in model.evaluations],
        "quality": _quality(model),
    }


def empty_document(problem: Problem, name: str, seed: int, evaluations: tuple[Evaluation, ...]) -> dict[str, Any]:
    """Return the document of a study that has no model yet."""
    return {
        "format": FORMAT,
        "study": {"name": name, "seed": seed, "versions": versions()},
        "problem": problem_record(problem),
        "evaluations": [_evaluation(problem, row) for row in evaluations],
    }


def problem_record(problem: Problem) -> dict[str, Any]:
    """State a problem with nothing left out."""
    variables = [
        {
            "name": v.name,
            "unit": v.unit,
            "type": v.type,
            "low": v.low,
            "high": v.high,
            "log": bool(getattr(v, "log", False)),
            "values": list(v.values) if v.type == "discrete" else None,
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
    }


def units(problem: Problem) -> dict[str, str]:
    """Return the unit of every output: the objective's own, or that of the first limit that states one."""
    found = dict.fromkeys(problem.outputs, "")
    for c in problem.constraints:
        for name in c.output_names:
            found[name] = found[name] or c.unit
    return {**found, problem.objective.name: problem.objective.unit or found[problem.objective.name]}


def embedded(document: Mapping[str, Any]) -> str:
    """Write a document so that it may stand inside HTML: nothing in it can end a script or begin one."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _map(model: Model) -> dict[str, Any]:
    if model.settings.answer == "network":
        return {"kind": "network", "sizes": list(model.pcm.sizes), "weights": _array(model.pcm.weights)}
    library, failure_model = model.fast_map.library, model.posterior.failure_model
    arrays = {f.name: _array(getattr(library, f.name)) for f in fields(library)}
    risk = (
        None
        if failure_model is None
        else {"limit": failure_model.limit, "surrogates": _processes(failure_model.surrogates)}
    )
    aims = {"price": model.solver.price, "probability": model.settings.probability}
    return {"kind": "library", **aims, "failure_model": risk, **arrays}


def _recommend(model: Model) -> dict[str, float]:
    """State what decides between limits that might be recommended."""
    s = model.settings
    weights = {"objective": s.objective_weight, "barrier": s.barrier_weight, "reward": s.reward_weight}
    return {**weights, "guided": s.recommend_guided, "range": s.recommend_range, "tolerance": s.recommend_tolerance}


def _surrogates(model: Model) -> dict[str, Any]:
    warp = model.posterior.warp
    warps = {} if warp is None else {f"warp_{f.name}": _array(getattr(warp, f.name)) for f in fields(warp)}
    return {**_processes(model.surrogates), **warps}


def _processes(surrogates: Surrogates) -> dict[str, Any]:
    s, h = surrogates, surrogates.hyperparameters
    arrays = {"x": s.x, "centre": s.centre, "scale": s.scale, "weights": s.weights}
    names = ("lengthscales", "noise", "constant", "amplitude", "family", "stretch")
    arrays |= {name: value for name in names if (value := getattr(h, name)) is not None}
    return {name: _array(array) for name, array in arrays.items()}


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
    quality = judge(model)
    return {
        "ids": quality.ids.tolist(),
        "observed": _array(quality.observed),
        "predicted": _array(quality.predicted),
        "std": _array(quality.std),
        "explained": quality.explained.tolist(),
        "levels": list(LEVELS),
        "covered": quality.covered.tolist(),
    }


def _array(values: ArrayLike) -> dict[str, Any]:
    array = np.ascontiguousarray(values, dtype="<f8")
    return {"shape": list(array.shape), "f64": base64.b64encode(array.tobytes()).decode("ascii")}
