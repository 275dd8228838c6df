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
    also: tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]] | None = None,
) -> Minimum:
    """Minimise a value (gradient: d) subject to slack >= 0 (r, Jacobian r x d) within a region, from one start (d).

    also: slack and Jacobian of further constraints, whose multipliers follow those of the others.

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
