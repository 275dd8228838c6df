"""What is compared, and what is measured of it: one function from a unit of work to named numbers."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from cbabo import problems
from cbabo.bench import plain
from cbabo.problems import ShippedProblem
from cbabo.seeding import child
from cbabo.settings import Settings
from cbabo.space import FloatArray
from cbabo.study import Study
from cbabo.threads import one_thread

BUDGET = 200
DIRECT_QUERIES = 1000

Measures = dict[str, float]


def measure(problem: str, method: str, seed: int, n: int) -> Measures:
    """Compute one unit of work."""
    return METHODS[method](problems.get(problem), seed, n)


def direct(settings: Settings) -> Callable[[ShippedProblem, int, int], Measures]:
    """Measure the direct prediction after a run with these settings."""

    def compute(shipped: ShippedProblem, seed: int, n: int) -> Measures:
        began = time.perf_counter()
        model = learned(shipped, settings, seed).model()
        seconds = time.perf_counter() - began
        thresholds = queries(shipped, seed, DIRECT_QUERIES)
        points = model.predict_many(thresholds).points
        return {"direct feasible": feasible_share(shipped, points, thresholds), "run seconds": seconds}

    return compute


def plain_direct(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Measure the direct prediction of the paper written straight down on BoTorch."""
    began = time.perf_counter()
    with one_thread():
        result = plain.run(shipped, seed, Settings.paper(), BUDGET)
    seconds = time.perf_counter() - began
    thresholds = queries(shipped, seed, DIRECT_QUERIES)
    points = plain.answers(shipped, result.network, thresholds)
    return {"direct feasible": feasible_share(shipped, points, thresholds), "run seconds": seconds}


def case_study(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Recommend limits under the paper's mixed intents, and measure before and after (the car problem)."""
    study = learned(shipped, Settings.paper(), seed)
    base = dict.fromkeys(shipped.problem.box.names, CASE_BASE)
    before = study.refine(base, shipped.evaluate)
    found = study.model().recommend(base, CASE_INTENTS)  # type: ignore[arg-type]
    after = study.refine(found.thresholds, shipped.evaluate)
    followed = [_follows(c.intent, (c.after - c.before) / 10.0) for c in found.changes.values()]
    measures = {
        "intents followed": float(all(followed)),
        "feasible": float(after.feasible),
        "objective before": before.objective.mean,
        "objective after": after.objective.mean,
        "improvement percent": 100.0 * (1.0 - after.objective.mean / before.objective.mean),
    }
    return measures | {f"limit {name}": value for name, value in found.thresholds.items()}


CASE_BASE = 3.0
CASE_INTENTS = dict.fromkeys(("c1", "c3", "c9"), "tighten") | dict.fromkeys(("c5", "c7", "c8"), "loosen")
_LOCK = 0.025  # of the range: how far a locked limit may have moved

METHODS: dict[str, Callable[[ShippedProblem, int, int], Measures]] = {
    "paper": direct(Settings.paper()),
    "default": direct(Settings.default()),
    "all random": direct(Settings.paper().replace(candidate_source="random")),
    "no monotonic": direct(Settings.paper().replace(alpha=0.0)),
    "plain": plain_direct,
    "case study": case_study,
}
"""What a campaign can compute, by name."""


def _follows(intent: str, change: float) -> bool:
    """Tell whether a normalised change of a limit is what was intended."""
    return {"tighten": change <= 0.0, "loosen": change >= 0.0, "lock": abs(change) <= _LOCK}[intent]


def learned(shipped: ShippedProblem, settings: Settings, seed: int) -> Study:
    """Return the study after a whole run."""
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=settings)
    study.run(shipped.evaluate, budget=BUDGET)
    return study


def queries(shipped: ShippedProblem, seed: int, count: int) -> FloatArray:
    """Return thresholds drawn uniformly from the box, the same for every method."""
    box = shipped.problem.box
    return box.from_theta(child(seed, "queries", shipped.name).random((count, len(box.names))))


def feasible_share(shipped: ShippedProblem, points: FloatArray, thresholds: FloatArray) -> float:
    """Return the share of designs that truly obey their thresholds."""
    f, c = shipped.evaluate_many(points)
    return float(shipped.problem.box.feasible(np.column_stack([f, c]), thresholds).mean())
