"""CBA-BO measured: one run of 200 evaluations, then its answers at all threshold rows of the problem."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from cbabo.answering.model import Model
from cbabo.answering.refine import refine
from cbabo.bench.judging import Judged, Measures, best_evaluated, direct, judge, judged, not_rising, ordered_pairs
from cbabo.bench.truth import truth
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.space import Point
from cbabo.evaluators.function import perform
from cbabo.methods.settings import Settings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.problems import ShippedProblem
from cbabo.study.study import Study

BUDGET = 200
CHECKPOINTS = (60, 100, 150)
REFINEMENTS = 2
SOLVED_PAIRS = 100
"""Pairs of thresholds that are compared where an answer takes milliseconds."""
TARGETS = (0.5, 0.8, 0.9, 0.95, 0.98)
"""Probabilities that answers are asked to aim at, to compare what they state with what is true."""


@dataclass(frozen=True)
class Map:
    """CBA-BO with these settings."""

    settings: Settings
    whole: bool = True
    """Whether to measure refinement, random starts, evaluated designs, earlier and other answers too; ablations do without."""

    def __call__(self, shipped: ShippedProblem, seed: int, n: int) -> Measures:
        """Run, and judge the answers at all rows."""
        study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=self.settings)
        earlier: Measures = {}
        seconds = 0.0
        for budget in CHECKPOINTS:
            seconds += _run(study, shipped, budget)
            if self.whole:
                earlier |= _answers_at(shipped, study.model(), budget)
        seconds += _run(study, shipped, BUDGET)
        began = time.perf_counter()
        model = study.model()
        measures = {"run seconds": seconds + time.perf_counter() - began} | predicted(shipped, model, seed)
        return measures | monotonicity(shipped, model, seed) | (earlier | _whole(shipped, model) if self.whole else {})


def focused(shipped: ShippedProblem, seed: int, rows: Sequence[int]) -> Measures:
    """Run the default settings for these threshold rows alone, one design at a time; judge the answers after refinement."""
    box, thresholds = shipped.problem.box, truth(shipped.name).thresholds[list(rows)]
    settings = Settings.default().replace(batch_size=1)
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=settings)
    study.focus(pd.DataFrame(thresholds, columns=list(box.names)))
    seconds = _run(study, shipped, BUDGET)
    measures: Measures = {"run seconds": seconds, "row": [float(row) for row in rows]}
    return measures | refined(shipped, study.model(), thresholds, [None] * len(rows)).named("refined")


def case_study(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Recommend limits under the paper's mixed intents, and measure before and after (the car problem)."""
    study = learned(shipped, CASE_SETTINGS, seed)
    base = dict.fromkeys(shipped.problem.box.names, CASE_BASE)
    before = study.refine(base, shipped.evaluate)
    found = study.model().recommend(base, CASE_INTENTS)  # type: ignore[arg-type]
    after = study.refine(found.thresholds, shipped.evaluate)
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
CASE_BASE = 3.0
CASE_INTENTS = dict.fromkeys(("c1", "c3", "c9"), "tighten") | dict.fromkeys(("c5", "c7", "c8"), "loosen")
_LOCK = 0.025  # of the range: how far a locked limit may have moved


def learned(shipped: ShippedProblem, settings: Settings, seed: int) -> Study:
    """Return the study after a whole run."""
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=settings)
    study.run(shipped.evaluate, budget=BUDGET)
    return study


def predicted(shipped: ShippedProblem, model: Model, seed: int) -> Measures:
    """Judge a model's direct answers, with the probability that it states, and time them one by one."""
    thresholds = truth(shipped.name).thresholds
    box = shipped.problem.box
    measures = direct(shipped, seed, lambda limits: model.predict_many(limits).points)
    measures["direct probability"] = model.predict_many(thresholds).probability_feasible.tolist()
    began = time.perf_counter()
    for row in thresholds:
        model.predict(box.named(row))
    return measures | {"predict seconds": (time.perf_counter() - began) / len(thresholds)}


def monotonicity(shipped: ShippedProblem, model: Model, seed: int) -> Measures:
    """Return how often the objective does not rise when limits are loosened: the true one, and the surrogate's mean."""
    count = None if model.settings.answer == "network" else SOLVED_PAIRS
    answers = [model.predict_many(thresholds[:count]) for thresholds in ordered_pairs(shipped, seed)]
    true = [shipped.evaluate_many(a.points)[0] for a in answers]
    with torch.no_grad():
        mean = [model.surrogates.mean(a.x)[:, 0].numpy() for a in answers]
    return {"monotonic true": not_rising(*true), "monotonic mean": not_rising(*mean)}


def refined(shipped: ShippedProblem, model: Model, thresholds: FloatArray, starts: Sequence[Point | None]) -> Judged:
    """Judge the answers after refinement at each row, every time from the same model; one that fails violates endlessly.

    starts: where each begins, None for the model's prediction.
    """
    answers = [
        refine(model, shipped.problem.box.named(row), lambda point: _measured(shipped, point), REFINEMENTS, start)
        for row, start in zip(thresholds, starts, strict=True)
    ]
    names = shipped.problem.outputs
    y = np.array([[a.outputs[name].mean if a.verified else np.inf for name in names] for a in answers])
    return judged(shipped, y, thresholds)


def _whole(shipped: ShippedProblem, model: Model) -> Measures:
    """Refine every row from the prediction and from a random design, and look up the best evaluated designs."""
    thresholds = truth(shipped.name).thresholds
    space = shipped.problem.space
    random = space.spread(child(model.seed, "random starts", shipped.name).random((len(thresholds), space.dimension)))
    measures: Measures = {}
    for name, starts in (("refined", [None] * len(thresholds)), ("random start", random)):
        began = time.perf_counter()
        measures |= refined(shipped, model, thresholds, starts).named(name)
        measures[f"{name} seconds"] = (time.perf_counter() - began) / len(thresholds)
    measures["refine seconds"] = measures.pop("refined seconds")
    measures |= best_evaluated(shipped, model.evaluations.complete.y, thresholds).named("evaluated")
    return measures | ({} if model.settings.answer == "network" else others(shipped, model))


def others(shipped: ShippedProblem, model: Model) -> Measures:
    """Judge what else a model that solves can answer: by the network alone, fast, and with other probabilities in mind.

    Probabilities are compared over answers that are not measured designs.
    """
    thresholds = truth(shipped.name).thresholds
    network = judge(shipped, model.predict_many(thresholds, method="pcm").points, thresholds).named("network")
    fast = judge(shipped, model.predict_many(thresholds, fast=True).points, thresholds).named("fast")
    measures: Measures = network | fast
    for target in TARGETS:
        found = model.predict_many(thresholds, probability=target)
        new = [i for i in range(len(found)) if i not in found.measured]
        measures[f"stated at {target}"] = found.probability_feasible[new].tolist()
        measures[f"true at {target}"] = np.asarray(judge(shipped, found.points, thresholds).feasible)[new].tolist()
    return measures


def _answers_at(shipped: ShippedProblem, model: Model, budget: int) -> Measures:
    thresholds = truth(shipped.name).thresholds
    return judge(shipped, model.predict_many(thresholds).points, thresholds).named("direct", f"@{budget}")


def _run(study: Study, shipped: ShippedProblem, budget: int) -> float:
    began = time.perf_counter()
    study.run(shipped.evaluate, budget=budget)
    return time.perf_counter() - began


def _measured(shipped: ShippedProblem, point: Point) -> Evaluation:
    outcome = perform(shipped.evaluate, point, shipped.problem.outputs, 0)
    state = "complete" if outcome.complete else "failed"
    return Evaluation(0, state, "refine", point, outcome.outputs or {}, outcome.failure)  # type: ignore[arg-type]


def _follows(intent: str, change: float) -> bool:
    """Tell whether a normalised change of a limit is what was intended."""
    return {"tighten": change <= 0.0, "loosen": change >= 0.0, "lock": abs(change) <= _LOCK}[intent]
