"""Limits that were asked for: read once, checked once, and carried through everything that answers them.

thresholds: n x k, natural units, in the order of the movable constraints.
theta: n x k, the same from strictest (0) to most relaxed (1); outside [0, 1] where a limit lies outside its range.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbabo.domain.constraints import FEASIBILITY_TOLERANCE, ThresholdBox, Thresholds, ThresholdsLike
from cbabo.numerics.arrays import FloatArray

FARTHEST = 1e3
"""Of theta: a limit that is a thousand ranges away is as good as one at infinity, and its square is still a number."""


@dataclass(frozen=True, eq=False)
class Query:
    """Thresholds to be answered.

    Examples:
        >>> from cbabo import Constraint, Objective, Problem, Real
        >>> problem = Problem("bar", [Real("width", 1, 2)], Objective("mass"), [Constraint("stress", low=0.0, high=10.0)])
        >>> query = Query.of(problem.box, [{"stress": 2.5}, {"stress": 12.0}])
        >>> query.theta.tolist()
        [[0.25], [1.2]]
        >>> query.warnings(1)
        ('stress = 12 lies outside 0 to 10 by 2 (20 % of the range); no evaluations were planned there',)
    """

    box: ThresholdBox
    thresholds: FloatArray
    """n x k."""
    theta: FloatArray
    """n x k."""

    @classmethod
    def of(cls, box: ThresholdBox, given: ThresholdsLike) -> Query:
        """Read thresholds given by name, as a table, or as rows."""
        rows = box.array(given)
        with np.errstate(over="ignore"):  # What is infinitely far away is clipped.
            return cls(box, rows, np.clip(box.to_theta(rows), -FARTHEST, FARTHEST))

    @classmethod
    def at(cls, box: ThresholdBox, theta: FloatArray) -> Query:
        """Return the query of normalised thresholds, n x k."""
        return cls(box, box.from_theta(theta), theta)

    def __len__(self) -> int:
        return len(self.thresholds)

    @cached_property
    def nearest_in_box(self) -> FloatArray:
        """theta moved into [0, 1], n x k: for what is only known inside the box."""
        return np.clip(self.theta, 0.0, 1.0)

    def row(self, i: int) -> Query:
        """Return one of the thresholds as a query of its own."""
        return Query(self.box, self.thresholds[i : i + 1], self.theta[i : i + 1])

    def named(self, i: int) -> Thresholds:
        """Return one of the thresholds by name."""
        return self.box.named(self.thresholds[i])

    def repeated(self, count: int) -> FloatArray:
        """Return the thresholds of a query with one row, count x k."""
        return np.repeat(self.thresholds, count, axis=0)

    def warnings(self, i: int) -> tuple[str, ...]:
        """Say which limits of one row lie outside the box, and by how much."""
        return outside_warnings(self.box, self.thresholds[i])


def outside_warnings(box: ThresholdBox, thresholds: FloatArray) -> tuple[str, ...]:
    """Say which thresholds (k) lie outside the box, and by how much."""
    found = []
    for constraint, value in zip(box.movable, thresholds.tolist(), strict=True):
        low, high = sorted((constraint.strictest, constraint.most_relaxed))
        beyond = max(low - value, value - high)
        if beyond > FEASIBILITY_TOLERANCE * constraint.scale:
            found.append(
                f"{constraint.name} = {value:g} lies outside {low:g} to {high:g} by {beyond:g} "
                f"({100 * beyond / constraint.scale:.3g} % of the range); no evaluations were planned there"
            )
    return tuple(found)
