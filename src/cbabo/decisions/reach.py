"""How far each limit can go, the others held: the strictest value that can be met, and the value beyond which nothing is gained.

Both are said of the stated probability of feasibility, as answers are, so that limits stricter than the first are unreachable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cbabo.answering.predict import predict_many
from cbabo.domain.query import Query
from cbabo.errors import InputError
from cbabo.methods.method import Fitted
from cbabo.methods.settings import DefaultSettings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread
from cbabo.solver.continuous import Solution
from cbabo.solver.reaching import Met, Reaching


@dataclass(frozen=True)
class ReachTuning:
    """Numbers that tune the reach of limits."""

    gain: float = 1e-6
    """Gain of the standardised objective that counts as none: the last gains shrink with the square of the distance, so that more
    would end far before them."""
    margins: float = 1e-3
    """Of the standardised objective: what the margins of a prediction may cost against a measured design, which has none. Nearly
    as good designs have other values of their outputs, so that predictions are compared with each other where possible."""
    end: float = 1e-3
    """Of the range: a limit that gains up to here gains up to its end."""


TUNING = ReachTuning()


def reaching(fitted: Fitted, tool: str, probability: float | None = None) -> Reaching:
    """Return what looks for limits that can be met; the paper method states no probability and is refused."""
    settings = fitted.settings
    if not isinstance(settings, DefaultSettings):
        raise InputError(
            f"{tool}: the paper method aims at no probability, so that no limit is called unreachable; make the study with "
            "Settings.default()"
        )
    return Reaching(
        fitted.solver, fitted.fast_map.library, settings.probability if probability is None else probability
    )


def reach(fitted: Fitted, query: Query) -> pd.DataFrame:
    """Return how far each limit of a query with one row can go; the columns are those of `Model.reach`."""
    search, theta, box = reaching(fitted, "reach"), query.theta[0], query.box
    with one_thread():
        strictest = [search.strictest_alone(theta, j) for j in range(len(theta))]
        relaxed = _relaxed(fitted, search, query)
        enough = [None if best is None else _enough(search, theta, j, best) for j, best in enumerate(relaxed)]
    first, last = (
        np.array([np.nan if met is None else met.theta[j] for j, met in enumerate(found)])
        for found in (strictest, enough)
    )
    # A value from which on nothing is gained is one that can be met.
    last = np.where(np.isnan(first), np.nan, np.fmax(last, first))
    return pd.DataFrame(
        {
            "limit": query.thresholds[0],
            "strictest": box.from_theta(first[None])[0],
            "gains_until": box.from_theta(np.where(last >= 1.0 - TUNING.end, 1.0, last)[None])[0],
            "gains_at_end": last >= 1.0 - TUNING.end,
        },
        index=pd.Index(box.names, name="name"),
    )


def _only(theta: FloatArray, j: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the costs and the ends of a movement of one threshold over its range."""
    cost, low, high = np.zeros((3, len(theta)))
    cost[j], low[j], high[j] = 1.0, -theta[j], 1.0 - theta[j]
    return cost, low, high


def _enough(search: Reaching, theta: FloatArray, j: int, relaxed: Solution) -> Met | None:
    """Return the strictest value of one limit with which the objective is that of its most relaxed value."""
    some = search.least(theta, *_only(theta, j), objective=relaxed.objective + TUNING.gain, near=relaxed.x)
    found = [met for met in (some, search.alone(theta, j, relaxed.x)) if met is not None]
    return min(found, key=lambda met: float(met.theta[j]), default=None)


def _relaxed(fitted: Fitted, search: Reaching, query: Query) -> list[Solution | None]:
    """Return the best designs with each limit at its most relaxed, the others held; None where these cannot be met."""
    theta = np.repeat(query.theta, query.theta.shape[1], axis=0)
    np.fill_diagonal(theta, 1.0)
    solver = fitted.solver
    answers = predict_many(fitted, Query.at(query.box, theta), probability=search.probability)
    found: list[Solution | None] = []
    for j, (bound, x) in enumerate(zip(solver.bound(theta), answers.x.numpy(), strict=True)):
        some = [solver.at(bound, x)] if answers.reachable[j] else []
        if j in answers.measured:  # A prediction close by is no worse but for its margins.
            solved = solver.predict_from(bound, x, search.probability)
            near = solver.at(bound, solved.x)
            if solved.probability >= search.aim and near.objective <= some[0].objective + TUNING.margins:
                some = [near]
        found.append(min(some, key=lambda s: s.objective, default=None))
    return found
