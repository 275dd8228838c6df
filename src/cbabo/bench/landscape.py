"""Local search on a smooth piece of the true functions of a shipped problem: its ranges and scales, and SLSQP runs.

X: n x d designs in natural units; u: one design, each variable scaled to [0, 1] over its range.
f: n objective values; c: n x p constrained values; limits: p; c <= limits is feasible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import fmin_slsqp
from scipy.stats import qmc

from cbabo.domain.categorical import Categorical
from cbabo.domain.space import Numeric
from cbabo.numerics.arrays import FloatArray
from cbabo.problems import ShippedProblem
from cbabo.problems.shipped import Function, Piece

_slsqp: Callable[..., Any] = fmin_slsqp  # The stubs of SciPy ask for shapes that arrays here do not state.


@dataclass(frozen=True)
class Tuning:
    """Numbers of the local search."""

    difference: float = 3e-6
    """Half-width of central differences, as a share of a variable's range: balances truncation and rounding."""

    margin: float = 1e-11
    """Distance kept from a limit when a design is moved back behind it, in units of the constraint's slope."""

    restorable: float = 1e-4
    """Largest excess over a limit that is corrected, in units of the constraint's slope; designs beyond are left infeasible."""

    restorations: int = 5
    """Most corrections of one design."""

    sobol_exponent: int = 12
    """The space is explored by 2 to this power Sobol designs."""

    iterations: int = 100
    """Most iterations of one SLSQP run."""

    accuracy: float = 1e-12
    """SLSQP's stopping tolerance: near rounding, because the results are reference values."""


TUNING = Tuning()


@dataclass(frozen=True)
class Landscape:
    """Ranges and scales of a problem that are the same for all thresholds."""

    shipped: ShippedProblem
    piece: Piece

    @property
    def function(self) -> Function:
        """The piece's function."""
        return self.piece.function

    def limits(self, thresholds: FloatArray) -> FloatArray:
        """Return the limits of all values, n x p, at thresholds, n x m."""
        columns = [np.zeros(len(thresholds)) if j is None else thresholds[:, j] for j in self.piece.limited_by]
        return np.column_stack(columns)

    @cached_property
    def widths(self) -> FloatArray:
        """The range of the limit of each value, p; infinite where its limit is always zero."""
        constraints = self.shipped.problem.constraints
        return np.array([np.inf if j is None else constraints[j].scale for j in self.piece.limited_by])

    @cached_property
    def _numbers(self) -> list[Numeric]:
        """The variables; categories are enumerated before a landscape is made (see `optima`)."""
        return [v for v in self.shipped.problem.variables if not isinstance(v, Categorical)]

    @cached_property
    def low(self) -> FloatArray:
        """Lower bounds of the variables."""
        return np.array([v.low for v in self._numbers], dtype=np.float64)

    @cached_property
    def high(self) -> FloatArray:
        """Upper bounds of the variables."""
        return np.array([v.high for v in self._numbers], dtype=np.float64)

    @cached_property
    def lattice(self) -> list[int]:
        """The indices of integer and discrete variables."""
        return [i for i, v in enumerate(self._numbers) if v.values is not None]

    def legal_values(self, i: int) -> FloatArray:
        """Return the legal values of an integer or discrete variable."""
        return np.asarray(self._numbers[i].values, dtype=np.float64)

    @cached_property
    def sobol(self) -> FloatArray:
        """Sobol designs of the whole space."""
        cube = qmc.Sobol(len(self.low), rng=0).random_base2(TUNING.sobol_exponent)
        return self.legal(np.asarray(self.low + cube * (self.high - self.low)))

    @cached_property
    def spreads(self) -> FloatArray:
        """The spread of f and of each c over the Sobol designs: half the interquartile range."""
        f, c = self.function(self.sobol)
        lower, upper = np.quantile(np.column_stack([f, c]), [0.25, 0.75], axis=0)
        return np.asarray(np.maximum((upper - lower) / 2, 1e-12))

    def legal(self, X: FloatArray) -> FloatArray:
        """Round integer and discrete variables to legal values; the others are unchanged."""
        moved = X.copy()
        for i in self.lattice:
            variable = self._numbers[i]
            moved[:, i] = variable.from_unit(variable.to_unit(X[:, i]))
        return moved


class Descent:
    """One run of SLSQP over the free variables, in [0, 1]."""

    def __init__(
        self, land: Landscape, start: FloatArray, limits: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        self._land, self._limits, self._low, self._high = land, limits, low, high
        self._width = land.high - land.low
        self._free = np.flatnonzero(high > low)
        self._start = (start - land.low) / self._width
        self._known: tuple[bytes, FloatArray, FloatArray] | None = None
        slopes = self._at(self._start[self._free])[1]
        self.scales = np.maximum(np.linalg.norm(slopes[1:], axis=1), 1e-12 * land.spreads[1:])
        """The length of each constraint's slope at the start."""

    def run(self) -> tuple[FloatArray, bool]:
        """Return the final design, d in natural units, and whether SLSQP reports convergence."""
        free, f_scale = self._free, max(self._land.spreads[0], abs(self._at(self._start[self._free])[0][0]))
        lowest, highest = ((bound - self._land.low) / self._width for bound in (self._low, self._high))
        part, _, _, code, _ = _slsqp(
            lambda u: float(self._at(u)[0][0] / f_scale),
            self._start[free],
            fprime=lambda u: self._at(u)[1][0] / f_scale,
            f_ieqcons=lambda u: (self._limits - self._at(u)[0][1:]) / self.scales,
            fprime_ieqcons=lambda u: -self._at(u)[1][1:] / self.scales[:, None],
            bounds=list(zip(lowest[free].tolist(), highest[free].tolist(), strict=True)),
            iter=TUNING.iterations,
            acc=TUNING.accuracy,
            iprint=0,
            full_output=True,
        )
        return self._restored(np.clip(part, lowest[free], highest[free])), code == 0

    def _restored(self, part: FloatArray) -> FloatArray:
        """Move a design that slightly exceeds limits back within them, by the shortest step; d in natural units."""
        x = self._clipped(part)
        for _ in range(TUNING.restorations):
            y, slopes = self._at(part)
            excess = (y[1:] - self._limits) / self.scales
            broken = excess > -TUNING.margin
            c = self._land.function(x[None])[1][0]
            if (c <= self._limits).all() or not (excess < TUNING.restorable).all():
                break
            inside = (part > 0.0) & (part < 1.0)
            lengths = self.scales[broken]
            step = np.linalg.lstsq(slopes[1:][broken] * inside / lengths[:, None], excess[broken] + TUNING.margin)[0]
            part = np.clip(part - step, 0.0, 1.0)
            x = self._clipped(part)
        return x

    def _clipped(self, part: FloatArray) -> FloatArray:
        return np.clip(self._natural(self._whole(part)), self._low, self._high)

    def _at(self, part: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f and c (1 + m) and their slopes (1 + m x free) at the free variables' values."""
        key = part.tobytes()
        if self._known is None or self._known[0] != key:
            u = self._whole(part)
            steps = TUNING.difference * np.eye(len(u))[self._free]
            f, c = self._land.function(self._natural(np.vstack([u, u + steps, u - steps])))
            y, n = np.column_stack([f, c]), len(steps)
            self._known = key, y[0], (y[1 : n + 1] - y[n + 1 :]).T / (2 * TUNING.difference)
        return self._known[1], self._known[2]

    def _whole(self, part: FloatArray) -> FloatArray:
        u = self._start.copy()
        u[self._free] = part
        return u

    def _natural(self, u: FloatArray) -> FloatArray:
        return np.asarray(self._land.low + u * self._width)
