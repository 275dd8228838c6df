"""One design for many thresholds, and what it costs against one design for each.

A design that obeys several thresholds obeys, limit by limit, the strictest of them. The common design is therefore the answer to
the strictest limits of all rows, whatever their weights: these only say how much each row's cost counts in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cbabo.answering.answers import Answer
from cbabo.answering.predict import predict_many
from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray, is_number

MOST_ROWS = 500
"""Thresholds at most; each is solved twice."""


@dataclass(frozen=True, eq=False)
class CommonDesign:
    """One design that obeys many thresholds.

    Examples:
        >>> from cbabo import Study, problems
        >>> truss = problems.get("three_truss")
        >>> study = Study.create(truss.problem, "sqlite://")
        >>> study.run(truss.evaluate, budget=30)
        >>> shared = study.model().common([{"c1": 2.0, "c2": 5.0, "c3": 5.0}, {"c1": 4.0, "c2": 5.0, "c3": 2.0}])
        >>> shared.answer.thresholds
        {'c1': 2.0, 'c2': 5.0, 'c3': 2.0}
        >>> len(shared.to_frame()), shared.cost >= 0.0
        (2, True)
    """

    answer: Answer
    """The common design, for the strictest of all limits."""
    thresholds: FloatArray = field(repr=False)
    """n x k, what was asked for."""
    weights: FloatArray = field(repr=False)
    """n, with the sum 1."""
    objective: FloatArray = field(repr=False)
    """n, of one design for each."""
    costs: FloatArray = field(repr=False)
    """n, by how much the common design is worse, in the unit of the objective."""
    saved: FloatArray = field(repr=False)
    """n, by how much the common design of all other rows is better: which rows make it expensive."""
    std: float
    """Standard deviation of the mean cost, with errors taken as independent."""

    @property
    def cost(self) -> float:
        """The weighted mean of the costs."""
        return float(self.weights @ self.costs)

    @property
    def worst(self) -> float:
        """The largest cost."""
        return float(self.costs.max())

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each of the thresholds."""
        limits = {f"limit {name}": self.thresholds[:, i] for i, name in enumerate(self.answer.thresholds)}
        columns = {"weight": self.weights, "own objective": self.objective, "cost": self.costs, "saved": self.saved}
        return pd.DataFrame({**limits, **columns})


def common_design(
    fitted: Fitted, thresholds: ThresholdsLike, weights: Sequence[float] | None, probability: float | None
) -> CommonDesign:
    """Find one design for many thresholds; the arguments are those of `Model.common`."""
    box, sign = fitted.problem.box, fitted.problem.objective.sign
    rows = Query.of(box, thresholds)
    n = len(rows)
    if not 1 <= n <= MOST_ROWS:
        raise InputError(f"common: expected 1 to {MOST_ROWS} rows of limits, got {n}")
    shares = _shares(weights, n)
    strictest = rows.theta.argmin(axis=0)
    joint = [rows.thresholds[strictest, np.arange(len(box.names))]]
    for i in range(n):
        others = np.delete(rows.theta, i, axis=0) if n > 1 else rows.theta
        at = np.delete(rows.thresholds, i, axis=0) if n > 1 else rows.thresholds
        joint.append(at[others.argmin(axis=0), np.arange(len(box.names))])
    answers = predict_many(fitted, Query.of(box, np.vstack([*joint, rows.thresholds])), probability=probability)
    mean, std = (part[:, 0] for part in answers.moments)
    own = mean[n + 1 :]
    costs, saved = np.clip(sign * (mean[0] - own), 0.0, None), np.clip(sign * (mean[0] - mean[1 : n + 1]), 0.0, None)
    error = float(np.hypot(std[0], np.sqrt(np.square(shares * std[n + 1 :]).sum())))
    return CommonDesign(answers.answer(0), rows.thresholds, shares, own, costs, saved, error)


def _shares(weights: Sequence[float] | None, n: int) -> FloatArray:
    """Return weights with the sum 1."""
    if weights is None:
        return np.full(n, 1.0 / n)
    given: list[object] = list(weights)
    numbers = np.array([w for w in given if is_number(w)], dtype=np.float64)
    if len(given) != n or len(numbers) != n or numbers.min() < 0.0 or not 0.0 < numbers.sum() < np.inf:
        raise InputError(f"common: weights must be {n} numbers from 0 on, not all 0, got {shown(weights)}")
    return np.asarray(numbers / numbers.sum())
