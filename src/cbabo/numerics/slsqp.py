"""One constrained minimisation from one start, by SciPy's SLSQP.

Symbols and shapes
    v       d       variables
    slack   r       constraint functions; a constraint is met where its slack is not negative
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from cbabo.numerics.arrays import FloatArray

ACCURACY = 1e-6
"""Convergence tolerance for a standardised objective.

It is far below the error of any surrogate, and far above 1e-8, where rounding errors of the objective begin.
"""


@dataclass(frozen=True)
class SlsqpTuning:
    """Numbers that control the minimisation."""

    max_iterations: int = 50
    """Iterations after which SLSQP stops, converged or not."""


TUNING = SlsqpTuning()


class Region(NamedTuple):
    """Bounds of the variables: d numbers each, or one number for all; by default the unit cube.

    Examples:
        >>> low, high = Region(0.25, np.array([0.5, 0.75])).ends(2)
        >>> low.tolist(), high.tolist()
        ([0.25, 0.25], [0.5, 0.75])
    """

    lower: FloatArray | float = 0.0
    upper: FloatArray | float = 1.0

    def ends(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper bounds (d each)."""
        return np.broadcast_to(self.lower, d), np.broadcast_to(self.upper, d)


CUBE = Region()
"""The unit cube."""


Constraint = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]
"""Slack (r), which must not be negative, and its Jacobian (r x d)."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Result of one minimisation."""

    v: FloatArray
    """d, the final variables."""
    multipliers: FloatArray
    """r, Lagrange multipliers of the constraints."""


def minimise(
    value: Callable[[FloatArray], float],
    gradient: Callable[[FloatArray], FloatArray],
    slack: Callable[[FloatArray], FloatArray],
    slack_jacobian: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    region: Region,
    accuracy: float = ACCURACY,
    moving: NDArray[np.int64] | None = None,
    also: Constraint | None = None,
) -> Minimum:
    """Minimise a value (gradient: d) subject to slack >= 0 (r, Jacobian r x d) within a region, from one start (d).

    moving: which variables move; the others stay where the start has them. All move unless given. also: slack and Jacobian of
    further constraints, whose multipliers follow those of the others.

    Examples:
        >>> found = minimise(
        ...     lambda v: float(v @ v),
        ...     lambda v: 2.0 * v,
        ...     lambda v: np.array([v.sum() - 1.0]),
        ...     lambda v: np.ones((1, 2)),
        ...     np.array([0.9, 0.3]),
        ...     CUBE,
        ... )
        >>> found.v.round(4).tolist()
        [0.5, 0.5]
    """
    low, high = region.ends(len(start))
    if (low == high).all():  # SciPy returns no multipliers where nothing can move.
        return Minimum(low.copy(), np.zeros(_count(slack, also, low)))
    if moving is not None:
        return _minimise_some(
            value, gradient, (slack, slack_jacobian), start, Region(low, high), accuracy, moving, also
        )
    constraints = [{"type": "ineq", "fun": slack, "jac": slack_jacobian}]
    if also is not None:
        constraints.append({"type": "ineq", "fun": also[0], "jac": also[1]})
    found = minimize(  # type: ignore[call-overload]
        value,
        np.clip(start, low, high),
        jac=gradient,
        bounds=Bounds(low, high),
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": TUNING.max_iterations, "ftol": accuracy},
    )
    v = np.where(np.isfinite(found.x), found.x, np.clip(start, low, high))
    return Minimum(np.clip(v, low, high), np.asarray(found.multipliers))


def _minimise_some(
    value: Callable[[FloatArray], float],
    gradient: Callable[[FloatArray], FloatArray],
    main: Constraint,
    start: FloatArray,
    region: Region,
    accuracy: float,
    moving: NDArray[np.int64],
    also: Constraint | None,
) -> Minimum:
    """Minimise over the variables that move alone, which is cheaper than bounds that hold the others."""
    if not len(moving):
        return Minimum(start, np.zeros(_count(main[0], also, start)))

    def whole(part: FloatArray) -> FloatArray:
        v = start.copy()
        v[moving] = part
        return v

    def reduced(constraint: Constraint) -> Constraint:
        slack, jacobian = constraint
        return lambda part: slack(whole(part)), lambda part: jacobian(whole(part))[:, moving]

    low, high = region.ends(len(start))
    found = minimise(
        lambda part: value(whole(part)),
        lambda part: gradient(whole(part))[moving],
        *reduced(main),
        start[moving],
        Region(low[moving], high[moving]),
        accuracy,
        also=None if also is None else reduced(also),
    )
    return Minimum(whole(found.v), found.multipliers)


def _count(slack: Callable[[FloatArray], FloatArray], also: Constraint | None, v: FloatArray) -> int:
    """Return how many constraints there are."""
    return len(slack(v)) + (0 if also is None else len(also[0](v)))
