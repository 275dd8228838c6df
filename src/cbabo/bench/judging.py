"""How answers are judged: by the true functions, at the problem's 100 threshold rows and at 1,000 random thresholds.

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
PAIRS = 10_000
_SAME = 1e-9  # of max(1, |f|): a rise below is rounding

Measures = dict[str, float | list[float]]
"""What a unit of work found, by name; lists run over its thresholds."""


class Judged(NamedTuple):
    """What n answers truly are."""

    objective: list[float]
    feasible: list[float]
    """1 or 0 as they obey their thresholds."""
    violation: list[float]
    """By how much they exceed their limits in total; 0 where they obey them."""

    def named(self, stage: str, suffix: str = "") -> Measures:
        """Return them as measures of a stage."""
        return {f"{stage} {name}{suffix}": values for name, values in self._asdict().items()}


Answering = Callable[[FloatArray], FloatArray]
"""Maps thresholds (n x k) to designs (n x d)."""


def direct(shipped: ShippedProblem, seed: int, answer: Answering) -> Measures:
    """Judge a map's answers at all rows, and its feasible share at random thresholds."""
    thresholds = truth(shipped.name).thresholds
    measures: Measures = {"row": list(range(len(thresholds)))}
    measures |= judge(shipped, answer(thresholds), thresholds).named("direct")
    random = queries(shipped, seed, QUERIES)
    return measures | {"direct share": float(np.mean(judge(shipped, answer(random), random).feasible))}


def judge(shipped: ShippedProblem, points: FloatArray, thresholds: FloatArray) -> Judged:
    """Judge designs, each by its own thresholds."""
    return judged(shipped, np.column_stack(shipped.evaluate_many(points)), thresholds)


def judged(shipped: ShippedProblem, y: FloatArray, thresholds: FloatArray) -> Judged:
    """Judge measured outputs, each row by its own thresholds."""
    box = shipped.problem.box
    feasible = box.feasible(y, thresholds)
    violation = np.where(feasible, 0.0, np.clip(box.violations(y, thresholds), 0.0, None).sum(axis=1))
    return Judged(y[:, 0].tolist(), feasible.astype(np.float64).tolist(), violation.tolist())


def best_evaluated(shipped: ShippedProblem, y: FloatArray, thresholds: FloatArray) -> Judged:
    """Judge the best of evaluated designs for each threshold row.

    Feasible before infeasible, then by objective, or by total violation where none is feasible.
    """
    box = shipped.problem.box
    found = []
    for row in thresholds:
        rows = np.repeat(row[np.newaxis], len(y), axis=0)
        feasible = box.feasible(y, rows)
        violation = np.clip(box.violations(y, rows), 0.0, None).sum(axis=1)
        found.append(int(np.argmin(np.where(feasible, y[:, 0], np.inf) if feasible.any() else violation)))
    return judged(shipped, y[found], thresholds)


def ordered_pairs(shipped: ShippedProblem, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return random thresholds in pairs (PAIRS x k each), the first stricter in every limit."""
    box = shipped.problem.box
    ends = np.sort(child(seed, "pairs", shipped.name).random((2, PAIRS, len(box.names))), axis=0)
    return box.from_theta(ends[0]), box.from_theta(ends[1])


def not_rising(stricter: FloatArray, looser: FloatArray) -> float:
    """Return the share of pairs whose objective does not rise when limits are loosened."""
    return float(np.mean(looser <= stricter + _SAME * np.maximum(1.0, np.abs(stricter))))


def queries(shipped: ShippedProblem, seed: int, count: int) -> FloatArray:
    """Return thresholds drawn uniformly from the box, the same for every method."""
    box = shipped.problem.box
    return box.from_theta(child(seed, "queries", shipped.name).random((count, len(box.names))))
