"""A value minimised under smooth constraints from one start, by SciPy's SLSQP.

Symbols and shapes
    v       d       what is sought
    room    r       not below zero where the constraints are obeyed
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize

from cbabo.numerics.arrays import FloatArray

ACCURACY = 1e-6
"""Of a standardised value: far below what surrogates know; rounding errors begin at 1e-8."""

_ITERATIONS = 50


class Region(NamedTuple):
    """Bounds of the variables, d each or one number for all; the whole unit cube unless given."""

    lower: FloatArray | float = 0.0
    upper: FloatArray | float = 1.0

    def ends(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return both bounds, d each."""
        return np.broadcast_to(self.lower, d), np.broadcast_to(self.upper, d)


CUBE = Region()


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where it ended."""

    v: FloatArray
    multipliers: FloatArray


def minimise(
    value: Callable[[FloatArray], float],
    slope: Callable[[FloatArray], FloatArray],
    room: Callable[[FloatArray], FloatArray],
    room_slope: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    region: Region,
    accuracy: float = ACCURACY,
) -> Minimum:
    """Minimise a value with this slope (d) where room (r, with slope r x d) is not below zero, within a region."""
    low, high = region.ends(len(start))
    found = minimize(  # type: ignore[call-overload]
        value,
        np.clip(start, low, high),
        jac=slope,
        bounds=Bounds(low, high),
        constraints=[{"type": "ineq", "fun": room, "jac": room_slope}],
        method="SLSQP",
        options={"maxiter": _ITERATIONS, "ftol": accuracy},
    )
    v = np.where(np.isfinite(found.x), found.x, np.clip(start, low, high))
    return Minimum(np.clip(v, low, high), np.asarray(found.multipliers))
