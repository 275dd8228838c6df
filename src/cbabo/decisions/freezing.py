"""Which variables can be fixed before the limits are agreed: how far each moves, and what fixing it costs.

Symbols and shapes, in units of the standardised outputs, as in `solver.continuous`
    t       n x r    bounds of n thresholds
    margin  n x r    what the answer to each threshold keeps from its bounds
    v                a value of the variable that is fixed, unit cube

With a variable fixed, the constrained problem is solved again for every threshold, with the margins of its own answer. The cost
is the difference of the two objectives. Some values between the smallest and the largest of the answers are tried, and one more
at the minimum of the parabola through the best ones. Of a categorical variable the labels of the answers are tried, and each
answer keeps its other labels. A value for which fewer thresholds can be met is worse at any cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from cbabo.answering.predict import predict_many
from cbabo.decisions.aims import aimed_probability
from cbabo.domain.categorical import Categorical
from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.query import Query
from cbabo.domain.space import Discrete, Integer, Real
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.slsqp import Region
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import SAME_DESIGN
from cbabo.solver.continuous import Solver, SolverAnswer


@dataclass(frozen=True)
class FreezeTuning:
    """Numbers of the search for values to fix."""

    thresholds: int = 32
    """Thresholds of the box that are answered where none are given: the mean cost of the shipped problems is within a tenth of
    that of 256."""
    most_thresholds: int = 500
    """Given thresholds at most; each is solved several times for every variable."""
    values: int = 5
    """Values that are tried at first."""
    still: float = 1e-4
    """Of its range: a variable that moves less is fixed at its median at once."""
    equal: float = 1e-6
    """Of the standardised objective: a design that costs less is as good as the answer."""
    short: float = 0.01
    """By how much a solved answer may miss the probability asked for: margins that have not settled are no reason to call a
    threshold unreachable."""


TUNING = FreezeTuning()


def freeze(
    fitted: Fitted,
    thresholds: ThresholdsLike | None = None,
    fixed: Mapping[str, Any] | None = None,
    probability: float | None = None,
) -> pd.DataFrame:
    """Tell what fixing each variable costs; the arguments are those of `Model.freeze`."""
    problem, aim = fitted.problem, aimed_probability(fitted, probability, "freeze")
    query = _query(fitted, thresholds)
    with one_thread():
        held = _Held.of(fitted, query, aim, fixed or {})
        rows = [held.row(j) for j, name in enumerate(problem.space.names) if name not in (fixed or {})]
    return pd.DataFrame(rows).sort_values("cost", kind="stable", ignore_index=True)


@dataclass(frozen=True, eq=False)
class _Held:
    """Answers to many thresholds, and what they become if a variable is fixed."""

    fitted: Fitted
    solver: Solver
    bound: FloatArray
    """m x r, less the margins; of the thresholds that can be met."""
    x: FloatArray
    """m x d, the answers."""
    value: FloatArray
    """m, their objectives, standardised and to be minimised."""
    low: FloatArray
    """d, of the unit cube, or where a variable is fixed already."""
    high: FloatArray

    @classmethod
    def of(cls, fitted: Fitted, query: Query, aim: float, fixed: Mapping[str, Any]) -> _Held:
        """Answer a query with some variables fixed already."""
        solver, space = fitted.solver, fitted.problem.space
        low, high = np.zeros(space.dimension), np.ones(space.dimension)
        for name, value in fixed.items():
            if name not in space.names:
                raise InputError(f"freeze: unknown variable {shown(name)}; expected one of {', '.join(space.names)}")
            at = space.columns[space.names.index(name)]
            point = space.points(np.full((1, space.dimension), 0.5))[0]
            low[at] = high[at] = space.unit(space.array([space.check({**point, name: value})]))[0, at]
        bounds: list[FloatArray] = []
        designs: list[FloatArray] = []
        values: list[float] = []
        for i, bound in enumerate(solver.bound(query.theta)):
            answer = solver.predict(bound, aim)
            if answer.probability < aim - TUNING.short:
                answer = _otherwise(fitted, query.row(i), aim, answer)
            std = solver.pointwise.std(answer.x)[solver.output]
            lam = np.zeros(len(bound)) if answer.multipliers is None else answer.multipliers
            if answer.probability < aim - TUNING.short:
                continue
            inside = bound - std * solver.deviations(std, lam, aim)
            found = _solved(solver, inside, np.clip(answer.x, low, high), Region(low, high)) if fixed else None
            if fixed and found is None:
                continue
            bounds.append(inside)
            designs.append(answer.x if found is None else found[0])
            values.append(answer.objective if found is None else found[1])
        if not designs:
            raise InputError(
                "freeze: none of these thresholds can be met with the probability asked for; relax some limits"
            )
        return cls(fitted, solver, np.array(bounds), np.array(designs), np.array(values), low, high)

    def row(self, j: int) -> dict[str, object]:
        """Return what is to be said of one variable."""
        variable = self.fitted.problem.variables[j]
        best, costs, x = self._best(j)
        reached = np.isfinite(costs)
        worst = int(np.argmax(np.where(reached, costs, -np.inf)))
        gaps, stds = self._natural(x[reached], self.x[reached])
        return {
            "variable": variable.name,
            "unit": variable.unit,
            **self._movement(j, best),
            "cost": float(np.clip(gaps, 0.0, None).mean()) if reached.any() else np.nan,
            "worst": float(self._natural(x[[worst]], self.x[[worst]])[0].clip(0.0)[0]) if reached.any() else np.nan,
            "std": float(stds.mean()) if reached.any() else np.nan,
            "lost": float(1.0 - reached.mean()),
        }

    def _movement(self, j: int, best: float) -> dict[str, object]:
        """Return between which values a variable moves, as a share of its range, and its value that is best to fix.

        Of labels there is no range: their share is that of the thresholds whose label is not the most frequent one.
        """
        space = self.fitted.problem.space
        variable, at = space.variables[j], space.columns[j]
        if isinstance(variable, Categorical):
            _, counts = np.unique(self.x[:, at].argmax(1), return_counts=True)
            still = float(counts.max() / counts.sum())
            return {"low": np.nan, "high": np.nan, "moves": 1.0 - still, "value": variable.values[int(best)]}
        moved = self.x[:, at]
        low, high = variable.from_unit(np.array([moved.min(), moved.max()])).tolist()
        value = float(variable.from_unit(np.array([best]))[0])
        return {"low": low, "high": high, "moves": (high - low) / (variable.high - variable.low), "value": value}

    def _best(self, j: int) -> tuple[float, FloatArray, FloatArray]:
        """Return the best value of a variable, and for each threshold (m) its cost there (inf: unreachable) and the design.

        The value is a coordinate of the unit cube, or the number of a label.
        """
        tried = {float(v): self._at(j, float(v)) for v in self._first_values(j)}

        def rank(v: float) -> tuple[float, float]:
            costs = tried[v][0]
            reached = np.isfinite(costs)
            return float((~reached).mean()), float(costs[reached].mean()) if reached.any() else np.inf

        best = min(tried, key=rank)
        ordered = sorted(tried)
        i = ordered.index(best)
        if isinstance(self.fitted.problem.variables[j], Real) and 0 < i < len(ordered) - 1:
            near = ordered[i - 1 : i + 2]
            lost, means = zip(*map(rank, near), strict=True)
            lowest = _lowest_of_parabola(near, means) if len(set(lost)) == 1 else None
            if lowest is not None:
                tried[lowest] = self._at(j, lowest)
        best = min(tried, key=rank)
        return best, *tried[best]

    def _first_values(self, j: int) -> FloatArray:
        space = self.fitted.problem.space
        moved, variable = self.x[:, space.columns[j]], space.variables[j]
        if isinstance(variable, Categorical):
            return np.unique(moved.argmax(1)).astype(np.float64)
        if np.ptp(moved) < TUNING.still:
            return np.array([np.median(moved)])
        values = np.quantile(moved, np.linspace(0.0, 1.0, TUNING.values))
        if not isinstance(variable, Real):
            values = variable.to_unit(variable.from_unit(values))
        return np.unique(values)

    def _at(self, j: int, v: float) -> tuple[FloatArray, FloatArray]:
        """Return the costs (m, standardised) and the designs (m x d) with a variable fixed at v."""
        space, low, high = self.fitted.problem.space, self.low.copy(), self.high.copy()
        at, variable = space.columns[j], space.variables[j]
        place = np.eye(len(variable.values))[int(v)] if isinstance(variable, Categorical) else v
        low[at] = high[at] = place
        costs, designs = np.full(len(self.x), np.inf), self.x.copy()
        for i, (bound, x) in enumerate(zip(self.bound, self.x, strict=True)):
            if np.abs(x[at] - place).max() <= SAME_DESIGN:  # It is what the answer has.
                costs[i] = 0.0
                continue
            start = x.copy()
            start[at] = place
            found = self._with_the_others_held(bound, start, (low, high), self.value[i]) or _solved(
                self.solver, bound, start, Region(low, high)
            )
            if found is not None:
                designs[i], costs[i] = found[0], max(0.0, found[1] - self.value[i])
        return costs, designs

    def _with_the_others_held(
        self, bound: FloatArray, start: FloatArray, ends: tuple[FloatArray, FloatArray], value: float
    ) -> tuple[FloatArray, float] | None:
        """Return the design with all other discrete variables as they are, if it is as good as the answer."""
        variables = self.fitted.problem.variables
        if not any(isinstance(v, Integer | Discrete) for v in variables) or not any(
            isinstance(v, Real) for v in variables
        ):
            return None  # Labels are held by every search.
        free = self.fitted.problem.space.continuous
        region = Region(np.where(free, ends[0], start), np.where(free, ends[1], start))
        found = self.solver.solve(bound, start, region)
        return (found.x, found.objective) if found.feasible and found.objective <= value + TUNING.equal else None

    def _natural(self, x: FloatArray, base: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much the objective is worse at designs x than at others (m x d each), natural units, and deviations."""
        posterior, sign = self.fitted.posterior, self.fitted.problem.objective.sign
        with torch.no_grad():
            moments = [
                posterior.natural(*posterior.predictor.mean_and_std(torch.from_numpy(at).reshape(-1, self.x.shape[1])))
                for at in (x, base)
            ]
        (mean, std), (other, other_std) = (([part[:, 0].numpy() for part in both]) for both in moments)
        same = np.abs(x - base).max(axis=1, initial=0.0) == 0.0
        return sign * (mean - other), np.where(same, 0.0, np.hypot(std, other_std))


def _otherwise(fitted: Fitted, query: Query, aim: float, answer: SolverAnswer) -> SolverAnswer:
    """Return the full answer to a query with one row, which may be a measured design, where the solver by itself finds none."""
    found = predict_many(fitted, query, probability=aim)
    if not found.reachable[0]:
        return answer
    x = found.x.numpy()[0]
    at = fitted.solver.at(fitted.solver.bound(query.theta)[0], x)
    return SolverAnswer(x, at.objective, float(found.probability_feasible[0]))


def _solved(solver: Solver, bound: FloatArray, start: FloatArray, region: Region) -> tuple[FloatArray, float] | None:
    """Return the best design within a region and its objective; None if none obeys the bounds (r)."""
    low, high = region.ends(len(start))
    if solver.discrete:
        found = solver.within(bound, start, region)[0]
    else:
        found = solver.solve(bound, start, region)
        if not found.feasible:
            nearest = solver.within(bound, start, region)[0]
            found = solver.solve(bound, nearest.x, region) if nearest.feasible else nearest
    # Where no legal design of the region obeys the bounds, the least violating one may lie outside it.
    inside = bool(((found.x >= low - TUNING.still) & (found.x <= high + TUNING.still)).all())
    return (found.x, found.objective) if found.feasible and inside else None


def _lowest_of_parabola(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return where the parabola through three points, by increasing x, is lowest; None if that is not between their ends."""
    before, after = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    if not (np.isfinite(before) and np.isfinite(after) and before < after):
        return None
    # The slope is `before` in the middle of the first two points and `after` in that of the last two.
    lowest = 0.5 * (x[0] + x[1]) - 0.5 * before * (x[2] - x[0]) / (after - before)
    return float(lowest) if x[0] < lowest < x[2] else None


def _query(fitted: Fitted, thresholds: ThresholdsLike | None) -> Query:
    """Return the thresholds that count: those given, or some of the box."""
    box = fitted.problem.box
    if thresholds is None:
        count = TUNING.thresholds
        return Query.at(box, sobol(len(box.names), child_seed(fitted.seed, "freeze"), count).numpy())
    query = Query.of(box, thresholds)
    if not 1 <= len(query) <= TUNING.most_thresholds:
        raise InputError(f"freeze: expected 1 to {TUNING.most_thresholds} rows of limits, got {len(query)}")
    return query
