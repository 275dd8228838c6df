"""How accurately variables must be met: the largest box of tolerances that keeps the stated probability.

The tolerances are in fixed proportions: the same share of each variable's range, or more for variables that are costly to hold.
The box is as large as it can be: around a given design until the probability of the designs in it falls to the one asked for, or
around a design that moves away from its limits until the objective is worse by what may be given away. Without that, an answer
lies on its limits, and no box around it keeps the probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cbabo.answering.answers import Answer
from cbabo.decisions.aims import aimed_probability
from cbabo.decisions.robustness import TUNING as ROBUST
from cbabo.decisions.robustness import RobustDesign, as_answer, design_at, robust_design
from cbabo.decisions.scatter import Scatter
from cbabo.domain.categorical import Categorical
from cbabo.domain.query import Query
from cbabo.domain.space import Integer
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import is_number
from cbabo.numerics.threads import one_thread


@dataclass(frozen=True)
class ToleranceTuning:
    """Numbers of the search for a box."""

    halvings: int = 9
    """How often the interval of the size is halved: the size is found within a thousandth of the variables' ranges."""
    widest: float = 0.5
    """Largest half width, as a share of a variable's range: then it may have any value."""


TUNING = ToleranceTuning()


@dataclass(frozen=True, eq=False)
class Tolerances:
    """The largest box of tolerances around a design.

    Examples:
        >>> from cbabo import Study, problems
        >>> truss = problems.get("three_truss")
        >>> study = Study.create(truss.problem, "sqlite://")
        >>> study.run(truss.evaluate, budget=40)
        >>> found = study.model().tolerances({"c1": 5.0}, give=0.1)
        >>> found.widths["x1"] > 0.0, found.cost <= 0.11
        (True, True)
    """

    answer: Answer
    """The design in the middle of the box; its probability is that of the designs in the box."""
    widths: Mapping[str, float]
    """Half widths by variable, in its unit."""
    shares: Mapping[str, float]
    """The same as shares of the variables' ranges."""
    alone: Mapping[str, float]
    """How far each variable could go if all others were met exactly, at the same design, in its unit."""
    cost: float
    """By how much the mean objective of the box is worse than that of the answer without tolerances, as a share of it."""
    bounds: Mapping[str, tuple[float, float]]
    """The bounds of the variables, at which the box ends."""

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each variable."""
        rows = [
            {
                "variable": name,
                "value": self.answer.point[name],
                "tolerance": width,
                "low": max(self.answer.point[name] - width, self.bounds[name][0]),
                "high": min(self.answer.point[name] + width, self.bounds[name][1]),
                "share": self.shares[name],
                "alone": self.alone[name],
            }
            for name, width in self.widths.items()
        ]
        return pd.DataFrame(rows)


def tolerances(
    fitted: Fitted,
    query: Query,
    weights: Mapping[str, float] | None,
    give: float,
    point: Mapping[str, Any] | None,
    probability: float | None,
) -> Tolerances:
    """Find the largest box of tolerances; the arguments are those of `Model.tolerances`."""
    if not (is_number(give) and give >= 0.0):
        raise InputError(f"tolerances: give must be a share of the objective from 0 on, got {shown(give)}")
    aim = aimed_probability(fitted, probability, "tolerances")
    with one_thread():
        return _Search.of(fitted, query, aim, _proportions(fitted, weights)).largest(give, point)


@dataclass(frozen=True, eq=False)
class _Search:
    fitted: Fitted
    query: Query
    aim: float
    widths: Mapping[str, float]
    """Half widths at size 1, natural units."""
    base: RobustDesign
    """The answer without tolerances."""

    @classmethod
    def of(cls, fitted: Fitted, query: Query, aim: float, widths: Mapping[str, float]) -> _Search:
        none = Scatter.of(fitted.problem, fitted.seed, None, None)
        return cls(fitted, query, aim, widths, robust_design(fitted, query, none, aim))

    def largest(self, give: float, point: Mapping[str, Any] | None) -> Tolerances:
        """Return the largest box: around a point, or around a design that gives so much of the objective away."""
        fitted, space = self.fitted, self.fitted.problem.space
        fixed = None if point is None else space.unit(space.array([space.check(point)]))[0]
        variables = {v.name: v for v in fitted.problem.variables if not isinstance(v, Categorical)}
        most = min(TUNING.widest * (variables[n].high - variables[n].low) / w for n, w in self.widths.items())
        bound = fitted.solver.bound(self.query.theta)[0]
        allowed = self._objective(self.base) + give * abs(self._objective(self.base))
        low, high = 0.0, most
        start = self.base.x if fixed is None else fixed
        best = design_at(fitted, self._scatter(0.0), bound, start)
        for _ in range(TUNING.halvings):
            size = 0.5 * (low + high)
            scatter = self._scatter(size)
            if fixed is None:
                found = robust_design(fitted, self.query, scatter, self.aim, best.x)
                worse = self._objective(found) > allowed
            else:
                found, worse = design_at(fitted, scatter, bound, fixed), False
            if worse or found.probability < self.aim - ROBUST.settled:
                high = size
            else:
                low, best = size, found
        return self._result(low, best)

    def _result(self, size: float, best: RobustDesign) -> Tolerances:
        scatter = self._scatter(size)
        ranges = {v.name: v.high - v.low for v in self.fitted.problem.variables if not isinstance(v, Categorical)}
        widths = {name: size * width for name, width in self.widths.items()}
        base = self._objective(self.base)
        return Tolerances(
            as_answer(self.fitted, self.query, scatter, best, self.aim),
            widths,
            {name: width / ranges[name] for name, width in widths.items()},
            {name: self._alone(name, TUNING.widest * ranges[name], best) for name in widths},
            (self._objective(best) - base) / max(abs(base), np.finfo(float).tiny),
            {
                v.name: (float(v.low), float(v.high))
                for v in self.fitted.problem.variables
                if v.name in widths and not isinstance(v, Categorical)
            },
        )

    def _alone(self, name: str, high: float, best: RobustDesign) -> float:
        """Return the largest half width of one variable, all others being met exactly."""
        fitted, low = self.fitted, 0.0
        bound = fitted.solver.bound(self.query.theta)[0]
        for _ in range(TUNING.halvings):
            width = 0.5 * (low + high)
            scatter = Scatter.of(fitted.problem, fitted.seed, None, {name: width})
            if design_at(fitted, scatter, bound, best.x).probability < self.aim - ROBUST.settled:
                high = width
            else:
                low = width
        return low

    def _scatter(self, size: float) -> Scatter:
        widths = {name: size * width for name, width in self.widths.items()}
        return Scatter.of(self.fitted.problem, self.fitted.seed, None, widths)

    def _objective(self, design: RobustDesign) -> float:
        """Return the mean objective, natural units, with the sign with which less is better."""
        objective = self.fitted.problem.objective
        return objective.sign * design.made.estimates()[objective.name].mean


def _proportions(fitted: Fitted, weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the half width of each variable at size 1: its range times its weight; whole numbers and categories have none."""
    variables = {v.name: v for v in fitted.problem.variables if not isinstance(v, Integer | Categorical)}
    if weights is not None and not isinstance(weights, Mapping):
        raise InputError(f"tolerances: expected weights as a mapping of variables to numbers, got {shown(weights)}")
    for name, weight in (weights or {}).items():
        if name not in variables:
            raise InputError(f"tolerances: unknown variable {shown(name)}; expected one of {', '.join(variables)}")
        if not (is_number(weight) and weight >= 0.0):
            raise InputError(f"tolerances: the weight of {name} must be a number from 0 on, got {shown(weight)}")
    shares = {name: float((weights or {}).get(name, 1.0)) for name in variables}
    if not any(shares.values()):
        raise InputError("tolerances: expected a variable with a weight above 0 that is no whole number, got none")
    return {name: share * (variables[name].high - variables[name].low) for name, share in shares.items() if share > 0}
