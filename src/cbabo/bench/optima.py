"""Search for the true optimum of a shipped problem at given thresholds, by SLSQP from many starts.

X: n x d designs in natural units; u: one design, each variable scaled to [0, 1] over its range.
f: n objective values; c: n x p constrained values; limits: p; c <= limits is feasible.

Starts come from a pool of Sobol designs, or of designs that a recipe lists; each threshold starts from the best ranked
ones (SLSQP, central differences, constraints scaled by their slopes). Every design found for one threshold is a candidate
and a start for every other one, in several passes, until nothing improves. Integer and discrete variables are branched on;
a branch is pruned when its optimum with relaxed variables is no better.

Categories are enumerated: every combination of them is a problem in the other variables, and the best of their optima counts.

A problem that is made of smooth pieces is solved on each of them, where maxima are many values with one limit, and switches and
failing designs are constraints. The best of the pieces' optima, by the problem's own function, is the optimum.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cbabo.bench.landscape import Descent, Landscape
from cbabo.domain.categorical import Categorical
from cbabo.domain.problem import Problem
from cbabo.numerics import seeding
from cbabo.numerics.arrays import FloatArray
from cbabo.problems import ShippedProblem, analytic, basin_functions, engineering, kinked_functions
from cbabo.problems.shipped import Function, Piece


@dataclass(frozen=True)
class Tuning:
    """Numbers of the search that hold for all problems; `Recipe` has those that differ."""

    gain: float = 1e-10
    """An objective that is lower by less than this share of max(1, |f|) is no improvement."""

    rounds: int = 4
    """SLSQP runs in a row from one start, each with the constraints scaled anew."""

    unknown_floor: int = 3
    """Factor on the starts of a threshold for which no more relaxed optimum is known."""

    rounding: float = 1e-10
    """Distance kept from the limits of pieces, in their ranges or spreads: a piece and the whole function round differently, and
    so does the solution of linear systems with the number of designs."""

    violation_weight: float = 3.0
    """Weight of violations, in units of their spread, against the objective when starts are ranked."""


TUNING = Tuning()


@dataclass(frozen=True)
class Optimum:
    """The best design at one threshold vector."""

    f: float
    """Its objective value: minus infinity where the problem is unbounded, plus infinity where nothing is feasible."""

    x: FloatArray
    """The design in natural units, d; NaN where f is infinite."""

    def beaten_by(self, f: float) -> bool:
        """Tell whether an objective value is lower by more than rounding."""
        return f == -np.inf or (np.isfinite(f) and self.f - f > TUNING.gain * max(1.0, abs(f)))


@dataclass(frozen=True)
class Recipe:
    """Effort and starts of the search for the optimum of a function."""

    best: int = 8
    """Descents from the pool's best designs at the threshold."""

    others: int = 8
    """Descents from any designs of the pool."""

    shared: int = 4
    """Descents, in each pass, from the best designs that were found at other thresholds."""

    levels: tuple[float, ...] = ()
    """If given, the pool is every design whose values are of these levels, in descending order, and not Sobol designs."""

    origin: tuple[float, ...] = (0.0,)
    """What the levels are counted from, for each variable or for all."""

    passes: int = 6
    """Most passes over all thresholds; the search ends earlier when a pass improves nothing."""

    hops: int = 0
    """Descents, in each pass, from the best design with a few values changed."""


RECIPES: Mapping[Function, Recipe] = MappingProxyType(
    {
        analytic.g01: Recipe(best=30, others=30),
        analytic.g07: Recipe(best=2, others=1),
        analytic.c13: Recipe(
            best=30, others=30, levels=(200.0, 63.0, 5.0, -26.0, -120.0), origin=tuple(analytic.C13_SHIFT), hops=6
        ),
        analytic.ackley: Recipe(best=40, others=10, levels=(0.0, -0.25, -0.5, -0.75, -1.0), hops=6),
        analytic.keane: Recipe(best=6, others=2, levels=(6.1, 3.0, 1.5, 0.5, 0.4), hops=4),
        analytic.gkxwc1: Recipe(best=20, others=20),
        analytic.gkxwc2: Recipe(best=20, others=20),
        engineering.car: Recipe(best=10, others=10, hops=3),
        basin_functions.wells4: Recipe(best=4, others=6),
        basin_functions.wells8: Recipe(best=4, others=6),
        basin_functions.ripples5: Recipe(best=10, others=6, hops=4),
        basin_functions.absorbers6: Recipe(best=10, others=6, hops=4),
        kinked_functions.stop: Recipe(best=2, others=0, shared=2),
        kinked_functions.cantilever_members: Recipe(best=1, others=1, shared=2),
        kinked_functions.truss10_members: Recipe(best=1, others=1, shared=2),
        kinked_functions.bridge21_members: Recipe(best=1, others=0, shared=1, passes=3),
        kinked_functions.tower40_members: Recipe(best=1, others=0, shared=1, passes=2),
        kinked_functions.frame21_members: Recipe(best=2, others=1, shared=2, passes=3),
    }
)
"""Recipes of the functions with many local optima, or with one only; the others get the defaults."""


def solve_all(shipped: ShippedProblem, thresholds: FloatArray) -> list[Optimum]:
    """Return the optimum at every row of thresholds, n x m; the rows help each other."""
    if shipped.problem.space.categories:
        found = [solutions for _, solutions in solve_categories(shipped, thresholds)]
        return [min(row, key=lambda o: o.f) for row in zip(*found, strict=True)]
    if not shipped.pieces:
        return _solve_piece(shipped, shipped.whole, thresholds)
    pieces = [_solve_piece(shipped, piece, thresholds) for piece in shipped.pieces]
    whole = _Search(Landscape(shipped, shipped.whole), Recipe())
    limits = whole.land.limits(thresholds)
    with np.errstate(all="ignore"):
        return [whole.pick(np.array([o.x for o in found]), row) for *found, row in zip(*pieces, limits, strict=True)]


def solve_categories(
    shipped: ShippedProblem, thresholds: FloatArray
) -> Iterator[tuple[tuple[str, ...], list[Optimum]]]:
    """Yield every combination of categories with its optimum at every row of thresholds, n x m."""
    problem = shipped.problem
    at = [i for i, v in enumerate(problem.variables) if isinstance(v, Categorical)]
    categorical = [v for v in problem.variables if isinstance(v, Categorical)]
    others = [v for v in problem.variables if not isinstance(v, Categorical)]
    for labels in itertools.product(*(v.values for v in categorical)):
        codes = [v.index(label) for v, label in zip(categorical, labels, strict=True)]
        name = " ".join([problem.name, *labels])
        part = replace(
            shipped,
            problem=Problem(name, others, problem.objective, problem.constraints),
            function=_with_codes(shipped.function, at, codes),
            optimum=None,
        )
        yield labels, [Optimum(o.f, _inserted(o.x[None], at, codes)[0]) for o in solve_all(part, thresholds)]


def _with_codes(function: Function, at: Sequence[int], codes: Sequence[float]) -> Function:
    """Return a function of the other variables alone, at these categories."""
    return lambda X: function(_inserted(X, at, codes))


def _inserted(X: FloatArray, at: Sequence[int], codes: Sequence[float]) -> FloatArray:
    """Insert columns of constants so that they are at these indices."""
    for i, code in zip(at, codes, strict=True):
        X = np.insert(X, i, code, axis=1)
    return X


def _solve_piece(shipped: ShippedProblem, piece: Piece, stated_thresholds: FloatArray) -> list[Optimum]:
    """Return the optimum of a piece at every row of thresholds, n x m; the rows help each other."""
    search = _Search(Landscape(shipped, piece), RECIPES.get(shipped.function, Recipe()))
    units = np.minimum(search.land.widths, search.land.spreads[1:])
    thresholds = search.land.limits(stated_thresholds) - (TUNING.rounding * units if shipped.pieces else 0.0)
    order = np.argsort(-shipped.problem.box.to_theta(stated_thresholds).sum(axis=1), kind="stable").tolist()
    found: dict[int, Optimum] = {}
    with np.errstate(all="ignore"):
        for number in range(search.recipe.passes):
            before = dict(found)
            for i in order:  # A more relaxed optimum, found first, is a lower bound.
                relaxed = [j for j in found if j != i and (thresholds[j] >= thresholds[i]).all()]
                floor = max((found[j].f for j in relaxed), default=-np.inf)
                designs = np.array([o.x for o in found.values() if np.isfinite(o.f)]).reshape(-1, len(search.land.low))
                found[i] = search.look(thresholds[i], designs, floor, found.get(i), number)
            if before and not any(before[i].beaten_by(found[i].f) for i in order):
                break
    return [found[i] for i in range(len(thresholds))]


@dataclass(frozen=True)
class _Search:
    """The search for the optima of one problem at all thresholds."""

    land: Landscape
    recipe: Recipe

    def look(self, limits: FloatArray, designs: FloatArray, floor: float, best: Optimum | None, number: int) -> Optimum:
        """Search from designs of other thresholds, and from the pool or, once an optimum is known, from changes of it."""
        others = designs[self.promising(designs, limits)[: self.recipe.shared]]
        if best is None:
            best = self.pick(np.vstack([self.pool, designs]), limits)
            more = self.pool[self.chosen(limits, times=1 if np.isfinite(floor) else TUNING.unknown_floor)]
        else:
            best = min(best, self.pick(np.vstack([best.x, designs]), limits), key=lambda o: o.f)
            more = self.hops(best.x, number) if np.isfinite(best.f) else designs[:0]
        own = best.x[None] if np.isfinite(best.f) else designs[:0]
        return self.improve(best, limits, np.vstack([own, others, more]), floor)

    def chosen(self, limits: FloatArray, times: int) -> NDArray[np.int64]:
        """Choose starts from the pool: the best ranked feasible designs, the best ranked of all, and some at random."""
        order = self.promising(self.pool, limits)
        feasible = order[(self.land.function(self.pool[order])[1] <= limits).all(axis=1)]
        some = seeding.child(0, "truth", self.land.shipped.name).permutation(order)
        best, others = times * self.recipe.best, times * self.recipe.others
        return np.concatenate([feasible[: best // 2], order[:best], some[:others]])

    def improve(self, best: Optimum, limits: FloatArray, starts: FloatArray, floor: float) -> Optimum:
        """Descend from every start, then branch on lattice variables; stop when the lower bound (floor) is reached."""
        for start in self.land.legal(starts):
            if best.f == -np.inf or not best.beaten_by(floor):
                return best
            best = self.settle(best, limits, start)
        return self.branch(best, limits, starts) if self.land.lattice else best

    def branch(self, best: Optimum, limits: FloatArray, starts: FloatArray) -> Optimum:
        """Split the ranges of lattice variables, the most promising branch first, until none can be better."""
        numbers = itertools.count()
        heap = [(-np.inf, next(numbers), self.land.low, self.land.high, starts)]
        while heap and best.beaten_by((node := heapq.heappop(heap))[0]):
            _, _, low, high, starts = node
            tries = [self.descend(np.clip(s, low, high), limits, low, high, best) for s in starts]
            ends = sorted(tries, key=lambda o: o.f)
            if not best.beaten_by(ends[0].f):
                continue
            i, below, above = self.gap(ends[0].x)
            if below == above:
                best = self.settle(best, limits, self.land.legal(ends[0].x[None])[0])
                continue
            near = np.array([end.x for end in ends[:3] if np.isfinite(end.f)])
            below_high, above_low = high.copy(), low.copy()
            below_high[i], above_low[i] = below, above
            heapq.heappush(heap, (ends[0].f, next(numbers), low, below_high, near))
            heapq.heappush(heap, (ends[0].f, next(numbers), above_low, high, near))
        return best

    def settle(self, best: Optimum, limits: FloatArray, start: FloatArray) -> Optimum:
        """Descend from a start whose lattice variables stay as they are."""
        low, high = self.land.low.copy(), self.land.high.copy()
        low[self.land.lattice] = high[self.land.lattice] = start[self.land.lattice]
        return min(best, self.descend(start, limits, low, high, best), key=lambda o: o.f)

    def gap(self, x: FloatArray) -> tuple[int, float, float]:
        """Return the lattice variable farthest off a legal value, and the legal values around it (equal: none is off)."""
        nearest = self.land.legal(x[None])[0]
        off = np.abs(nearest - x) / (self.land.high - self.land.low)
        i = int(off.argmax())
        if off[i] < 1e-9:
            return i, float(nearest[i]), float(nearest[i])
        legal = self.land.legal_values(i)
        place = int(np.searchsorted(legal, x[i]))
        return i, float(legal[place - 1]), float(legal[place])

    def descend(
        self, start: FloatArray, limits: FloatArray, low: FloatArray, high: FloatArray, incumbent: Optimum
    ) -> Optimum:
        """Descend between these bounds to a design that obeys the limits exactly; stop if it converges above the incumbent."""
        x, best = start, self.pick(start[None], limits)
        if not (high > low).any():
            return best
        for number in range(TUNING.rounds):
            x, converged = Descent(self.land, x, limits, low, high).run()
            end = self.pick(x[None], limits)
            if not np.isfinite(end.f) and (number or not np.isfinite(x).all()):
                break
            settled = np.isfinite(best.f) and not best.beaten_by(end.f)
            best = min(best, end, key=lambda o: o.f)
            if np.isfinite(end.f) and (settled or (converged and not incumbent.beaten_by(end.f))):
                break
        return best

    def pick(self, X: FloatArray, limits: FloatArray) -> Optimum:
        """Return the best of these designs that obeys the limits exactly."""
        f, c = self.land.function(X)
        f = np.where((c <= limits).all(axis=1) & ~np.isnan(f), f, np.inf)
        best = int(f.argmin())
        return Optimum(float(f[best]), X[best] if np.isfinite(f[best]) else np.full(X.shape[1], np.nan))

    def promising(self, X: FloatArray, limits: FloatArray) -> NDArray[np.int64]:
        """Order designs by objective plus broken limits, each in the unit of its spread or, if that is less, of its box."""
        f, c = self.land.function(X)
        broken = np.maximum(c - limits, 0.0) / np.minimum(self.land.widths, self.land.spreads[1:])
        merit = f / self.land.spreads[0] + TUNING.violation_weight * broken.sum(axis=1)
        order = np.argsort(merit, kind="stable")
        return np.asarray(order[np.isfinite(merit[order])])

    def hops(self, x: FloatArray, number: int) -> FloatArray:
        """Change a design: new values for a few variables, or two variables' values exchanged."""
        generator = seeding.child(number, "truth hops", self.land.shipped.name)
        starts = np.tile(x, (self.recipe.hops, 1))
        for row in starts:
            i, j = generator.choice(len(x), 2, replace=False)
            if generator.random() < 0.3:
                row[i], row[j] = x[j], x[i]
            else:
                row[[i, j]] = self.pool[generator.integers(len(self.pool)), [i, j]]
        return np.clip(starts, self.land.low, self.land.high)

    @cached_property
    def pool(self) -> FloatArray:
        """Designs to start from: two corners, the known optimum at zero, and the recipe's levels or Sobol designs."""
        known = [self.land.shipped.optimum.design] if self.land.shipped.optimum else []
        levels = list(itertools.combinations_with_replacement(self.recipe.levels, len(self.land.low)))
        many = np.add(levels, self.recipe.origin) if levels else self.land.sobol
        designs = np.array([self.land.low, self.land.high, *known, *many])
        return np.asarray(np.clip(designs, self.land.low, self.land.high))
