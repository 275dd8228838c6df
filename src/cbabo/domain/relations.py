"""Known relations between variables, such as "inner <= outer - 2", in the unit cube.

Symbols and shapes
    x    b x d        designs, unit cube; v  b x V  natural values of the V variables, each of which has a column of the cube
    g    b x r        relations, each in units of its own range over the cube: obeyed where g <= 0
    J    b x r x d    their derivatives by x

Whether a design obeys a relation is decided by its natural values, as they are handed to the simulator, and without a tolerance.
For solvers a relation is a smooth function of x: between the values of a discrete variable it is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbabo.domain.categorical import Categorical
from cbabo.domain.derivatives import derivatives, linear_form, values
from cbabo.domain.expression import Expression
from cbabo.domain.space import Space
from cbabo.numerics.arrays import FloatArray

LARGEST = 1e6
"""Of g: a relation that is not finite at a design, as after a division by zero, is broken by this much."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """Natural values as smooth functions of the unit cube, variable by variable.

    Examples:
        >>> from cbabo import Integer, Real
        >>> scaling = Scaling.of(Space((Real("width", 1.0, 100.0, log=True), Integer("teeth", 10, 20))))
        >>> scaling.natural(np.array([[0.5, 0.25]])).round(6).tolist()
        [[10.0, 12.5]]
    """

    names: tuple[str, ...]
    """V."""
    column: NDArray[np.int64]
    """V, the column of the unit cube of each variable; no relation is about a categorical one, of which it is the first."""
    low: FloatArray
    span: FloatArray
    """V, high less low, or the logarithm of their ratio where the scale is logarithmic."""
    log: NDArray[np.bool_]

    @classmethod
    def of(cls, space: Space) -> Scaling:
        """Return the scaling of a space."""
        ends = [(0.0, 0.0) if isinstance(v, Categorical) else (float(v.low), float(v.high)) for v in space.variables]
        low, high = np.array(ends).T
        log = np.array([bool(getattr(v, "log", False)) for v in space.variables])
        with np.errstate(all="ignore"):
            span = np.where(log, np.log(high / low), high - low)
        column = [at.start if isinstance(at, slice) else at for at in space.columns]
        return cls(space.names, np.array(column, dtype=np.int64), low, span, log)

    def natural(self, x: FloatArray) -> FloatArray:
        """Return v."""
        u = x[:, self.column]
        return np.asarray(np.where(self.log, self.low * np.exp(u * self.span * self.log), self.low + u * self.span))

    def slopes(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives (b x V each) of natural values v by their columns of x."""
        first = np.where(self.log, v * self.span, np.broadcast_to(self.span, v.shape))
        return first, np.where(self.log, v * self.span**2, 0.0)


@dataclass(frozen=True, eq=False)
class Relations:
    """The relations of a problem as functions of the unit cube."""

    space: Space
    expressions: tuple[Expression, ...]
    finite: tuple[Expression, ...] = ()
    """Formulas of variables that must be finite at a legal design."""

    @cached_property
    def scaling(self) -> Scaling:
        """How natural values depend on the unit cube."""
        return Scaling.of(self.space)

    @cached_property
    def variables(self) -> tuple[NDArray[np.int64], ...]:
        """For each relation the variables (indices) that it depends on."""
        return tuple(np.array([self.scaling.names.index(n) for n in e.names], dtype=np.int64) for e in self.expressions)

    @cached_property
    def scale(self) -> FloatArray:
        """r, the range of each relation over the cube, between quantiles of 5 % and 95 %."""
        v = self.scaling.natural(np.random.default_rng(0).random((1000, self.space.dimension)))
        found = []
        for g in self._plain(v).T:
            finite = g[np.isfinite(g)]
            spread = float(np.subtract(*np.quantile(finite, [0.95, 0.05]))) if len(finite) else 0.0
            found.append(spread if spread > 0.0 else float(np.abs(finite).max(initial=0.0)) or 1.0)
        return np.array(found)

    def obeyed(self, v: FloatArray) -> NDArray[np.bool_]:
        """Tell which designs (b), given by their natural values, obey all relations."""
        ok = np.ones(len(v), dtype=np.bool_)
        g = self._plain(v)
        ok &= (g <= 0.0).all(1)  # NaN is broken.
        for expression in self.finite:
            ok &= np.isfinite(values(expression, v[:, [self.scaling.names.index(n) for n in expression.names]]))
        return ok

    def broken(self, v: FloatArray) -> NDArray[np.bool_]:
        """Tell which relations (b x r) are broken at natural values."""
        return np.asarray(~(self._plain(v) <= 0.0))

    def values(self, x: FloatArray) -> FloatArray:
        """Return g."""
        g = self._plain(self.scaling.natural(x)) / self.scale
        return np.clip(np.nan_to_num(g, nan=LARGEST), -LARGEST, LARGEST)

    def values_and_slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return g and J."""
        v = self.scaling.natural(x)
        first, _ = self.scaling.slopes(v)
        g, J = np.empty((len(x), len(self.expressions))), np.zeros((len(x), len(self.expressions), x.shape[1]))
        for r, (expression, at) in enumerate(zip(self.expressions, self.variables, strict=True)):
            value, gradient, _ = derivatives(expression, v[:, at], 1)
            g[:, r] = value / self.scale[r]
            J[:, r, self.scaling.column[at]] = np.nan_to_num(
                gradient * first[:, at] / self.scale[r], posinf=LARGEST, neginf=-LARGEST
            )
        return np.clip(np.nan_to_num(g, nan=LARGEST), -LARGEST, LARGEST), J

    @cached_property
    def linear(self) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """The relations that are linear in x: A (r x d) and c (r) of g = A x + c, and which (r) they are."""
        d, r = self.space.dimension, len(self.expressions)
        A, c, which = np.zeros((r, d)), np.zeros(r), np.zeros(r, dtype=np.bool_)
        for i, (expression, at) in enumerate(zip(self.expressions, self.variables, strict=True)):
            form = linear_form(expression)
            if form is None or bool((self.scaling.log[at] & (form[0] != 0.0)).any()):
                continue
            which[i] = True
            A[i, self.scaling.column[at]] = (
                form[0] * np.where(self.scaling.log[at], 0.0, self.scaling.span[at]) / self.scale[i]
            )
            c[i] = (form[1] + float(form[0] @ self.scaling.low[at])) / self.scale[i]
        return A, c, which

    def possible(self, x: FloatArray, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell which designs (b) may obey the relations if only the columns that are held (d) are as they are.

        False is certain; a relation that is not linear counts only where all of its columns are held.
        """
        A, c, which = self.linear
        moving = np.where(held, 0.0, np.minimum(A, 0.0)).sum(1)  # The least that the other columns can add.
        ok = np.asarray(((x * held) @ A.T + c + moving <= 1e-9)[:, which].all(1))
        fixed = np.array([bool(held[self.scaling.column[at]].all()) for at in self.variables], dtype=np.bool_)
        if fixed.any():
            ok &= ~self.broken(self.space.natural(x))[:, fixed].any(1)
        return ok

    def _plain(self, v: FloatArray) -> FloatArray:
        columns = [values(e, v[:, at]) for e, at in zip(self.expressions, self.variables, strict=True)]
        return np.column_stack(columns) if columns else np.zeros((len(v), 0))
