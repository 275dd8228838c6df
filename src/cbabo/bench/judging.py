"""How answers are judged: by the true functions, at the problem's 100 threshold rows and at 1,000 random thresholds.

Symbols and shapes
    thresholds   n x k   limits, natural units
    points       n x d   designs, natural units
    y            n x q   objective and constraints of designs, natural units
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cbabo.bench.truth import truth
from cbabo.problems import ShippedProblem
from cbabo.seeding import child
from cbabo.space import FloatArray

QUERIES = 1000
PAIRS = 10_000
_SAME = 1e-9  # of max(1, |f|): a rise below is rounding

Measures = dict[str, float | list[float]]
"""What a unit of work found, by name; lists run over its thresholds."""
Answering = Callable[[FloatArray], FloatArray]
"""Maps thresholds (n x k) to designs (n x d)."""


def direct(shipped: ShippedProblem, seed: int, answer: Answering) -> Measures:
    """Judge a map's answers at all rows, and its feasible share at random thresholds."""
    thresholds = truth(shipped.name).thresholds
    objective, feasible = judge(shipped, answer(thresholds), thresholds)
    random = queries(shipped, seed, QUERIES)
    return {
        "row": list(range(len(thresholds))),
        "direct objective": objective,
        "direct feasible": feasible,
        "direct share": float(np.mean(judge(shipped, answer(random), random)[1])),
    }


def judge(shipped: ShippedProblem, points: FloatArray, thresholds: FloatArray) -> tuple[list[float], list[float]]:
    """Return the true objective of designs, and 1 or 0 as they truly obey their thresholds."""
    f, c = shipped.evaluate_many(points)
    feasible = shipped.problem.box.feasible(np.column_stack([f, c]), thresholds)
    return f.tolist(), feasible.astype(np.float64).tolist()


def best_evaluated(shipped: ShippedProblem, y: FloatArray, thresholds: FloatArray) -> tuple[list[float], list[float]]:
    """Return objective and feasibility of the best of evaluated designs for each threshold row.

    Feasible before infeasible, then by objective, or by total violation where none is feasible.
    """
    box = shipped.problem.box
    found = []
    for row in thresholds:
        rows = np.repeat(row[np.newaxis], len(y), axis=0)
        feasible = box.feasible(y, rows)
        violation = np.clip(box.violations(y, rows), 0.0, None).sum(axis=1)
        best = np.argmin(np.where(feasible, y[:, 0], np.inf) if feasible.any() else violation)
        found.append((float(y[best, 0]), float(feasible[best])))
    return [f for f, _ in found], [feasible for _, feasible in found]


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
