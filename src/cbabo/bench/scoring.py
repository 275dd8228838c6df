"""Scores of answers by the true functions: objective, feasibility and violation at 100 threshold rows and 1,000 random ones.

Symbols and shapes
    thresholds   n x k   limits, natural units
    points       n x d   designs, natural units
    y            n x q   objective and constraints of designs, natural units
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cbabo.bench.truth import truth
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.problems import ShippedProblem

QUERIES = 1000
"""Random thresholds at which the feasible share is measured."""
PAIRS = 10_000
"""Pairs of thresholds for which monotonicity is measured."""
ROUNDING = 1e-9
"""A rise of the objective below this share of max(1, |f|) is rounding."""

Measures = dict[str, float | list[float]]
"""What a unit of work found, by name; lists run over its thresholds."""


class Scores(NamedTuple):
    """True values of n answers."""

    objective: list[float]
    feasible: list[float]
    """1 where the limits are obeyed, else 0."""
    violation: list[float]
    """Total excess over the limits; 0 where they are obeyed."""

    def named(self, stage: str, suffix: str = "") -> Measures:
        """Return them as measures of a stage."""
        return {f"{stage} {name}{suffix}": values for name, values in self._asdict().items()}


Answering = Callable[[FloatArray], FloatArray]
"""Maps thresholds (n x k) to designs (n x d)."""


def score_map(shipped: ShippedProblem, seed: int, answer: Answering) -> Measures:
    """Score a map's answers at all rows, and its feasible share at random thresholds."""
    thresholds = truth(shipped.name).thresholds
    measures: Measures = {"row": list(range(len(thresholds)))}
    measures |= score_designs(shipped, answer(thresholds), thresholds).named("direct")
    random = random_thresholds(shipped, seed, QUERIES)
    return measures | {"direct share": float(np.mean(score_designs(shipped, answer(random), random).feasible))}


def score_designs(shipped: ShippedProblem, points: FloatArray, thresholds: FloatArray) -> Scores:
    """Score designs, each at its own thresholds."""
    return score_outputs(shipped, np.column_stack(shipped.evaluate_many(points)), thresholds)


def score_outputs(shipped: ShippedProblem, y: FloatArray, thresholds: FloatArray) -> Scores:
    """Score outputs, each row at its own thresholds."""
    box = shipped.problem.box
    feasible = box.feasible(y, thresholds)
    violation = np.where(feasible, 0.0, np.clip(box.violations(y, thresholds), 0.0, None).sum(axis=1))
    return Scores(y[:, 0].tolist(), feasible.astype(np.float64).tolist(), violation.tolist())


def score_best_evaluated(shipped: ShippedProblem, y: FloatArray, thresholds: FloatArray) -> Scores:
    """Score the best evaluated design for each threshold row.

    The best is the feasible design with the least objective, or the one with the least total violation if none is feasible.
    """
    box = shipped.problem.box
    found = []
    for row in thresholds:
        rows = np.repeat(row[np.newaxis], len(y), axis=0)
        feasible = box.feasible(y, rows)
        violation = np.clip(box.violations(y, rows), 0.0, None).sum(axis=1)
        found.append(int(np.argmin(np.where(feasible, y[:, 0], np.inf) if feasible.any() else violation)))
    return score_outputs(shipped, y[found], thresholds)


def ordered_pairs(shipped: ShippedProblem, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return random thresholds in pairs (PAIRS x k each), the first stricter in every limit."""
    box = shipped.problem.box
    ends = np.sort(child(seed, "pairs", shipped.name).random((2, PAIRS, len(box.names))), axis=0)
    return box.from_theta(ends[0]), box.from_theta(ends[1])


def monotone_share(stricter: FloatArray, looser: FloatArray) -> float:
    """Return the share of pairs whose objective does not rise when limits are loosened."""
    return float(np.mean(looser <= stricter + ROUNDING * np.maximum(1.0, np.abs(stricter))))


def random_thresholds(shipped: ShippedProblem, seed: int, count: int) -> FloatArray:
    """Return thresholds drawn uniformly from the box, the same for every method."""
    box = shipped.problem.box
    return box.from_theta(child(seed, "queries", shipped.name).random((count, len(box.names))))
