"""The true optimum of a shipped problem at given thresholds, by many descents from good starts.

X: n x d designs in natural units; u: one design, each variable scaled to [0, 1] over its range.
f: n objective values; c: n x m constraint values; limits: m; c <= limits is feasible.

Starts come from a pool of Sobol designs, or of designs that a recipe spells out; each threshold descends from
those that look best there (SLSQP, central differences, constraints scaled by their slopes). Every design found
for one threshold is a candidate and a start for every other, in several passes, until nothing improves. Integer
and discrete variables are branched on: a branch is given up when its optimum with relaxed variables is no better.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fmin_slsqp
from scipy.stats import qmc

from cbabo import seeding
from cbabo.problems import ShippedProblem, analytic, engineering
from cbabo.problems.shipped import Function
from cbabo.space import FloatArray

_slsqp: Callable[..., Any] = fmin_slsqp  # its stubs ask for shapes that arrays here do not state
_STEP = 3e-6  # of a variable's range: half a central difference
_POOL = 12  # 2 to this power Sobol designs
_GAIN = 1e-10  # of max(1, |f|): less is no gain
_PASSES = 6
_MARGIN = 1e-12  # of a constraint's slope: kept from a limit that a descent ended slightly beyond
_ROUNDS = 4  # descents in a row from one start, each with constraints scaled anew


@dataclass(frozen=True)
class Optimum:
    """The best design at one threshold vector."""

    f: float
    """Its objective value: minus infinity where the problem is unbounded, plus infinity where nothing is feasible."""

    x: FloatArray
    """The design in natural units, d; NaN where f is infinite."""

    def beaten_by(self, f: float) -> bool:
        """Tell whether an objective value is lower by more than rounding."""
        return f == -np.inf or (np.isfinite(f) and self.f - f > _GAIN * max(1.0, abs(f)))


@dataclass(frozen=True)
class Recipe:
    """How hard to look for the optimum of a function, and where."""

    best: int = 8
    """Descents from the pool's best designs at the threshold."""

    others: int = 8
    """Descents from any designs of the pool."""

    levels: tuple[float, ...] = ()
    """If given, the pool is every design whose values are of these levels, in descending order, and not Sobol designs."""

    hops: int = 0
    """Descents, in each pass, from the best design with a few values changed."""


RECIPES: Mapping[Function, Recipe] = MappingProxyType(
    {
        analytic.g01: Recipe(best=30, others=30),
        analytic.g07: Recipe(best=2, others=1),
        analytic.c13: Recipe(best=40, others=10, levels=(270.0, 180.0, 130.0, 110.0, 80.0, 45.0, -60.0), hops=6),
        analytic.ackley: Recipe(best=40, others=10, levels=(0.0, -0.25, -0.5, -0.75, -1.0), hops=6),
        analytic.keane: Recipe(best=20, others=10, levels=(6.1, 3.0, 1.5, 0.5, 0.4), hops=6),
        analytic.gkxwc1: Recipe(best=20, others=20),
        analytic.gkxwc2: Recipe(best=20, others=20),
        engineering.car: Recipe(best=10, others=10, hops=3),
    }
)
"""Recipes of the functions with many local optima, or with one only; the others get the defaults."""


def solve_all(shipped: ShippedProblem, thresholds: FloatArray) -> list[Optimum]:
    """Return the optimum at every row of thresholds, n x m; the rows help each other."""
    search = _Search(shipped, RECIPES.get(shipped.function, Recipe()))
    order = np.argsort(-shipped.problem.box.to_theta(thresholds).sum(axis=1), kind="stable").tolist()
    found: dict[int, Optimum] = {}
    with np.errstate(all="ignore"):
        for number in range(_PASSES):
            before = dict(found)
            for i in order:  # the most relaxed first: no optimum can lie below that of a more relaxed row
                relaxed = [j for j in found if j != i and (thresholds[j] >= thresholds[i]).all()]
                floor = max((found[j].f for j in relaxed), default=-np.inf)
                designs = np.array([o.x for o in found.values() if np.isfinite(o.f)]).reshape(-1, len(search.low))
                found[i] = search.look(thresholds[i], designs, floor, found.get(i), number)
            if before and not any(before[i].beaten_by(found[i].f) for i in order):
                break
    return [found[i] for i in range(len(thresholds))]


@dataclass(frozen=True)
class _Search:
    """The search for one problem's optima: what is the same for all thresholds."""

    shipped: ShippedProblem
    recipe: Recipe

    def look(self, limits: FloatArray, designs: FloatArray, floor: float, best: Optimum | None, number: int) -> Optimum:
        """Look from designs found at other thresholds and, if there is no best yet, the pool; or else from its changes."""
        others = designs[self.promising(designs, limits)[:4]]
        if best is None:
            best = self.pick(np.vstack([self.pool, designs]), limits)
            more = self.pool[self.chosen(limits, times=1 if np.isfinite(floor) else 3)]
        else:
            best = min(best, self.pick(np.vstack([best.x, designs]), limits), key=lambda o: o.f)
            more = self.hops(best.x, number) if np.isfinite(best.f) else designs[:0]
        return self.improve(best, limits, np.vstack([others, more]), floor)

    def chosen(self, limits: FloatArray, times: int) -> NDArray[np.int64]:
        """Choose designs of the pool: the most promising, and some at random."""
        order = self.promising(self.pool, limits)
        some = seeding.child(0, "truth", self.shipped.name).permutation(order)
        return np.concatenate([order[: times * self.recipe.best], some[: times * self.recipe.others]])

    def improve(self, best: Optimum, limits: FloatArray, starts: FloatArray, floor: float) -> Optimum:
        """Descend from every start, then search the lattice variables' values, until the floor is reached."""
        for start in self.legal(starts):
            if best.f == -np.inf or not best.beaten_by(floor):
                return best
            low, high = self.low.copy(), self.high.copy()
            low[self.lattice] = high[self.lattice] = start[self.lattice]
            best = min(best, self.descend(start, limits, low, high, best), key=lambda o: o.f)
        return self.branch(best, limits, starts) if self.lattice else best

    def branch(self, best: Optimum, limits: FloatArray, starts: FloatArray) -> Optimum:
        """Split the ranges of lattice variables, the most promising branch first, until none can be better."""
        numbers = itertools.count()
        heap = [(-np.inf, next(numbers), self.low, self.high, starts)]
        while heap and best.beaten_by((node := heapq.heappop(heap))[0]):
            _, _, low, high, starts = node
            tries = [self.descend(np.clip(s, low, high), limits, low, high, best) for s in starts]
            ends = sorted(tries, key=lambda o: o.f)
            if not best.beaten_by(ends[0].f):
                continue
            i, below, above = self.gap(ends[0].x)
            if below == above:
                best = ends[0]
                continue
            near = np.array([end.x for end in ends[:3] if np.isfinite(end.f)])
            below_high, above_low = high.copy(), low.copy()
            below_high[i], above_low[i] = below, above
            heapq.heappush(heap, (ends[0].f, next(numbers), low, below_high, near))
            heapq.heappush(heap, (ends[0].f, next(numbers), above_low, high, near))
        return best

    def gap(self, x: FloatArray) -> tuple[int, float, float]:
        """Return the lattice variable farthest off a legal value, and the legal values around it (equal: none is off)."""
        nearest = self.legal(x[None])[0]
        off = np.abs(nearest - x) / (self.high - self.low)
        i = int(off.argmax())
        if off[i] < 1e-9:
            return i, float(nearest[i]), float(nearest[i])
        legal = np.asarray(self.shipped.problem.variables[i].values, dtype=np.float64)
        place = int(np.searchsorted(legal, x[i]))
        return i, float(legal[place - 1]), float(legal[place])

    def descend(
        self, start: FloatArray, limits: FloatArray, low: FloatArray, high: FloatArray, rival: Optimum
    ) -> Optimum:
        """Descend between these bounds to a design that obeys the limits exactly; stop if it converges above a rival."""
        x, best, margin = start, self.pick(start[None], limits), np.zeros_like(limits)
        if not (high > low).any():
            return best
        for _ in range(_ROUNDS):
            descent = _Descent(self, x, limits - margin, low, high)
            x, converged = descent.run()
            if not np.isfinite(x).all():
                break
            end = self.pick(x[None], limits)
            settled = np.isfinite(best.f) and not best.beaten_by(end.f)
            best = min(best, end, key=lambda o: o.f)
            excess = np.maximum(self.shipped.function(x[None])[1][0] - limits, 0.0)
            if not excess.any() and (settled or (converged and not rival.beaten_by(end.f))):
                break
            slight = (excess > 0.0) & (excess < 1e-6 * descent.scales)
            margin = np.where(slight, margin + 2 * excess + _MARGIN * descent.scales, margin)
        return best

    def pick(self, X: FloatArray, limits: FloatArray) -> Optimum:
        """Return the best of these designs that obeys the limits exactly."""
        f, c = self.shipped.function(X)
        f = np.where((c <= limits).all(axis=1) & ~np.isnan(f), f, np.inf)
        best = int(f.argmin())
        return Optimum(float(f[best]), X[best] if np.isfinite(f[best]) else np.full(X.shape[1], np.nan))

    def promising(self, X: FloatArray, limits: FloatArray) -> NDArray[np.int64]:
        """Order designs by objective plus broken limits, each in the unit of its spread over the pool."""
        f, c = self.shipped.function(X)
        merit = f / self.spreads[0] + 3 * (np.maximum(c - limits, 0.0) / self.spreads[1:]).sum(axis=1)
        order = np.argsort(merit, kind="stable")
        return np.asarray(order[np.isfinite(merit[order])])

    def hops(self, x: FloatArray, number: int) -> FloatArray:
        """Change a design: new values for a few variables, or two variables' values exchanged."""
        generator = seeding.child(number, "truth hops", self.shipped.name)
        starts = np.tile(x, (self.recipe.hops, 1))
        for row in starts:
            i, j = generator.choice(len(x), 2, replace=False)
            if generator.random() < 0.3:
                row[i], row[j] = x[j], x[i]
            else:
                row[[i, j]] = self.pool[generator.integers(len(self.pool)), [i, j]]
        return np.clip(starts, self.low, self.high)

    def legal(self, X: FloatArray) -> FloatArray:
        """Move lattice variables to their nearest legal values; the others stay to the last bit."""
        moved = X.copy()
        for i in self.lattice:
            variable = self.shipped.problem.variables[i]
            moved[:, i] = variable.from_unit(variable.to_unit(X[:, i]))
        return moved

    @cached_property
    def low(self) -> FloatArray:
        """Lower bounds of the variables."""
        return np.array([v.low for v in self.shipped.problem.variables], dtype=np.float64)

    @cached_property
    def high(self) -> FloatArray:
        """Upper bounds of the variables."""
        return np.array([v.high for v in self.shipped.problem.variables], dtype=np.float64)

    @cached_property
    def lattice(self) -> list[int]:
        """The places of integer and discrete variables."""
        return [i for i, v in enumerate(self.shipped.problem.variables) if v.values is not None]

    @cached_property
    def pool(self) -> FloatArray:
        """Designs to start from: two corners, the known optimum at zero, and the recipe's levels or Sobol designs."""
        known = [self.shipped.optimum.design] if self.shipped.optimum else []
        d = len(self.low)
        levels = list(itertools.combinations_with_replacement(self.recipe.levels, d))
        spelled = np.array([self.low, self.high, *known, *(levels or self.sobol)])
        return np.clip(spelled, self.low, self.high)

    @cached_property
    def sobol(self) -> FloatArray:
        """Designs all over the space."""
        cube = qmc.Sobol(len(self.low), rng=0).random_base2(_POOL)
        return self.legal(np.asarray(self.low + cube * (self.high - self.low)))

    @cached_property
    def spreads(self) -> FloatArray:
        """The spread of f and of each c over the Sobol designs: half the distance of their quartiles."""
        f, c = self.shipped.function(self.sobol)
        lower, upper = np.quantile(np.column_stack([f, c]), [0.25, 0.75], axis=0)
        return np.asarray(np.maximum((upper - lower) / 2, 1e-12))


class _Descent:
    """One run of SLSQP over the free variables, in [0, 1]."""

    def __init__(
        self, search: _Search, start: FloatArray, limits: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        self._search, self._limits, self._low, self._high = search, limits, low, high
        self._width = search.high - search.low
        self._free = np.flatnonzero(high > low)
        self._start = (start - search.low) / self._width
        self._known: tuple[bytes, FloatArray, FloatArray] | None = None
        slopes = self._at(self._start[self._free])[1]
        self.scales = np.maximum(np.linalg.norm(slopes[1:], axis=1), 1e-9 * search.spreads[1:])
        """The length of each constraint's slope at the start."""

    def run(self) -> tuple[FloatArray, bool]:
        """Return where it ends, d in natural units, and whether it says that it converged."""
        free, f_scale = self._free, self._search.spreads[0]
        lowest, highest = ((bound - self._search.low) / self._width for bound in (self._low, self._high))
        part, _, _, code, _ = _slsqp(
            lambda u: float(self._at(u)[0][0] / f_scale),
            self._start[free],
            fprime=lambda u: self._at(u)[1][0] / f_scale,
            f_ieqcons=lambda u: (self._limits - self._at(u)[0][1:]) / self.scales,
            fprime_ieqcons=lambda u: -self._at(u)[1][1:] / self.scales[:, None],
            bounds=list(zip(lowest[free].tolist(), highest[free].tolist(), strict=True)),
            iter=200,
            acc=1e-12,
            iprint=0,
            full_output=True,
        )
        return np.clip(self._natural(self._whole(np.asarray(part))), self._low, self._high), code == 0

    def _at(self, part: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f and c (1 + m) and their slopes (1 + m x free) at the free variables' values."""
        key = part.tobytes()
        if self._known is None or self._known[0] != key:
            u = self._whole(part)
            steps = _STEP * np.eye(len(u))[self._free]
            f, c = self._search.shipped.function(self._natural(np.vstack([u, u + steps, u - steps])))
            y, n = np.column_stack([f, c]), len(steps)
            self._known = key, y[0], (y[1 : n + 1] - y[n + 1 :]).T / (2 * _STEP)
        return self._known[1], self._known[2]

    def _whole(self, part: FloatArray) -> FloatArray:
        u = self._start.copy()
        u[self._free] = part
        return u

    def _natural(self, u: FloatArray) -> FloatArray:
        return np.asarray(self._search.low + u * self._width)
