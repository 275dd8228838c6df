"""Runs of CBA-BO: feasible share, loss and seconds of its answers at all threshold rows after 200 evaluations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from cbabo.answering.refine import refine
from cbabo.bench.scoring import (
    Measures,
    Scores,
    monotone_share,
    ordered_pairs,
    score_best_evaluated,
    score_designs,
    score_map,
    score_outputs,
)
from cbabo.bench.truth import truth
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.evaluators.function import perform
from cbabo.methods.settings import MethodSettings, Settings
from cbabo.model import Model
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.problems import ShippedProblem
from cbabo.study.study import Study

BUDGET = 200
"""Evaluations of one run."""
CHECKPOINTS = (60, 100, 150)
"""Evaluations after which answers are scored during the run."""
REFINEMENTS = 2
"""Evaluations of one refinement."""
SOLVED_PAIRS = 100
"""Pairs of thresholds compared for monotonicity where the constrained solver answers, which takes milliseconds each."""
TARGETS = (0.5, 0.8, 0.9, 0.95, 0.98)
"""Target probabilities of feasibility at which calibration is measured."""


@dataclass(frozen=True)
class CbaboRun:
    """One run of CBA-BO with these settings, and what is measured of it."""

    settings: MethodSettings
    full: bool = True
    """Also measure refinement, random starts, evaluated designs, and earlier and other answers; ablations leave these out."""

    def __call__(self, shipped: ShippedProblem, seed: int, n: int) -> Measures:
        """Run, and score the answers at all threshold rows."""
        study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=self.settings)
        earlier: Measures = {}
        seconds = 0.0
        for budget in CHECKPOINTS:
            seconds += _run(study, shipped, budget)
            if self.full:
                earlier |= _answers_at(shipped, study.model(), budget)
        seconds += _run(study, shipped, BUDGET)
        began = time.perf_counter()
        model = study.model()
        measures = {"run seconds": seconds + time.perf_counter() - began} | score_predictions(shipped, model, seed)
        return (
            measures
            | score_monotonicity(shipped, model, seed)
            | (earlier | _score_full(shipped, model) if self.full else {})
        )


def focused_run(shipped: ShippedProblem, seed: int, rows: Sequence[int]) -> Measures:
    """Run the default settings focused on these threshold rows, with batches of one; score the refined answers."""
    box, thresholds = shipped.problem.box, truth(shipped.name).thresholds[list(rows)]
    settings = Settings.default().replace(batch_size=1)
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=settings)
    study.focus(pd.DataFrame(thresholds, columns=list(box.names)))
    seconds = _run(study, shipped, BUDGET)
    measures: Measures = {"run seconds": seconds, "row": [float(row) for row in rows]}
    return measures | score_refined(shipped, study.model(), thresholds, [None] * len(rows)).named("refined")


def case_study(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Recommend limits under the paper's mixed intents, and measure before and after (the car problem)."""
    study = finished_study(shipped, CASE_SETTINGS, seed)
    base = dict.fromkeys(shipped.problem.box.names, CASE_BASE)
    before = study.refine(base, shipped.evaluate, in_process=True)
    found = study.model().recommend(base, CASE_INTENTS)  # type: ignore[arg-type]
    after = study.refine(found.thresholds, shipped.evaluate, in_process=True)
    followed = [_follows(c.intent, (c.after - c.before) / 10.0) for c in found.changes.values()]
    measures: Measures = {
        "intents followed": float(all(followed)),
        "feasible": float(after.feasible),
        "objective before": before.objective.mean,
        "objective after": after.objective.mean,
        "improvement percent": 100.0 * (1.0 - after.objective.mean / before.objective.mean),
    }
    return measures | {f"limit {name}": value for name, value in found.thresholds.items()}


CASE_SETTINGS = Settings.paper()
"""Settings of the case study."""
CASE_BASE = 3.0
"""Every limit before the recommendation."""
CASE_INTENTS = dict.fromkeys(("c1", "c3", "c9"), "tighten") | dict.fromkeys(("c5", "c7", "c8"), "loosen")
"""What is intended for each limit; the others are locked."""
LOCK_TOLERANCE = 0.025
"""How far a locked limit may have moved and count as locked, as a share of its range."""


def finished_study(shipped: ShippedProblem, settings: MethodSettings, seed: int) -> Study:
    """Return the study after a run of the whole budget."""
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=settings)
    study.run(shipped.evaluate, budget=BUDGET, in_process=True)
    return study


def score_predictions(shipped: ShippedProblem, model: Model, seed: int) -> Measures:
    """Score a model's predictions, with their stated probability of feasibility, and time them one by one."""
    thresholds = truth(shipped.name).thresholds
    box = shipped.problem.box
    measures = score_map(shipped, seed, lambda limits: model.predict_many(limits).points)
    measures["direct probability"] = model.predict_many(thresholds).probability_feasible.tolist()
    began = time.perf_counter()
    for row in thresholds:
        model.predict(box.named(row))
    return measures | {"predict seconds": (time.perf_counter() - began) / len(thresholds)}


def score_monotonicity(shipped: ShippedProblem, model: Model, seed: int) -> Measures:
    """Return how often the objective does not rise when limits are loosened: the true one, and the surrogate's mean."""
    count = None if model.settings.method == "paper" else SOLVED_PAIRS
    answers = [model.predict_many(thresholds[:count]) for thresholds in ordered_pairs(shipped, seed)]
    true = [shipped.evaluate_many(a.points)[0] for a in answers]
    with torch.no_grad():
        mean = [model.surrogates.mean(a.x)[:, 0].numpy() for a in answers]
    return {"monotonic true": monotone_share(*true), "monotonic mean": monotone_share(*mean)}


def score_refined(
    shipped: ShippedProblem, model: Model, thresholds: FloatArray, starts: Sequence[Point | None]
) -> Scores:
    """Score refined answers at each row, each refined from the same model; a failed evaluation has infinite violation.

    starts: the design from which each refinement starts; None for the model's prediction.
    """
    answers = [
        refine(
            model, Query.of(shipped.problem.box, row[None]), lambda point: _measured(shipped, point), REFINEMENTS, start
        )
        for row, start in zip(thresholds, starts, strict=True)
    ]
    names = shipped.problem.outputs
    y = np.array(
        [[a.outputs[name].mean if a.status in ("verified", "measured") else np.inf for name in names] for a in answers]
    )
    return score_outputs(shipped, y, thresholds)


def _score_full(shipped: ShippedProblem, model: Model) -> Measures:
    """Score refinement from the prediction and from a random design, and the best evaluated design, at every row."""
    thresholds = truth(shipped.name).thresholds
    space = shipped.problem.space
    random = space.spread(
        child(model.seed, "random starts", shipped.name).random((len(thresholds), len(space.variables)))
    )
    measures: Measures = {}
    for name, starts in (("refined", [None] * len(thresholds)), ("random start", random)):
        began = time.perf_counter()
        measures |= score_refined(shipped, model, thresholds, starts).named(name)
        measures[f"{name} seconds"] = (time.perf_counter() - began) / len(thresholds)
    measures["refine seconds"] = measures.pop("refined seconds")
    measures |= score_best_evaluated(shipped, model.evaluations.complete.y, thresholds).named("evaluated")
    return measures | ({} if model.settings.method == "paper" else score_other_answers(shipped, model))


def score_other_answers(shipped: ShippedProblem, model: Model) -> Measures:
    """Score the other answers of a model with a constrained solver: network only, fast, and at other target probabilities.

    Calibration is measured over answers that are not evaluated designs.
    """
    thresholds = truth(shipped.name).thresholds
    network = score_designs(shipped, model.predict_many(thresholds, method="pcm").points, thresholds).named("network")
    fast = score_designs(shipped, model.predict_many(thresholds, fast=True).points, thresholds).named("fast")
    measures: Measures = network | fast
    for target in TARGETS:
        found = model.predict_many(thresholds, probability=target)
        new = [i for i in range(len(found)) if i not in found.measured]
        measures[f"stated at {target}"] = found.probability_feasible[new].tolist()
        measures[f"true at {target}"] = np.asarray(score_designs(shipped, found.points, thresholds).feasible)[
            new
        ].tolist()
    return measures


def _answers_at(shipped: ShippedProblem, model: Model, budget: int) -> Measures:
    thresholds = truth(shipped.name).thresholds
    return score_designs(shipped, model.predict_many(thresholds).points, thresholds).named("direct", f"@{budget}")


def _run(study: Study, shipped: ShippedProblem, budget: int) -> float:
    began = time.perf_counter()
    study.run(shipped.evaluate, budget=budget, in_process=True)
    return time.perf_counter() - began


def _measured(shipped: ShippedProblem, point: Point) -> Evaluation:
    outcome = perform(shipped.evaluate, point, shipped.problem.outputs, 0)
    state = "complete" if outcome.complete else "failed"
    return Evaluation(0, state, "refine", point, outcome.outputs or {}, outcome.failure)  # type: ignore[arg-type]


def _follows(intent: str, change: float) -> bool:
    """Tell whether a normalised change of a limit follows the intent."""
    return {"tighten": change <= 0.0, "loosen": change >= 0.0, "lock": abs(change) <= LOCK_TOLERANCE}[intent]
