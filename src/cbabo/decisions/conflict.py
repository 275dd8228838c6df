"""Limits that cannot be met: a smallest set of them that conflicts, and the cheapest relaxations after which they can be met.

Symbols and shapes
    theta   k    thresholds asked for, normalised
    cost    k    what a unit of theta costs, by which a limit is relaxed

A limit is dropped by putting it at its most relaxed value. Limits are dropped one after the other as long as the rest still
cannot be met; those that are left conflict, and no smaller part of them does. The cheapest relaxation under a linear cost moves
few limits. Further proposals differ in kind: each is the cheapest that leaves a limit in place that an earlier one has moved.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from cbabo.answering.answers import Answer
from cbabo.answering.predict import Answers, predict_many
from cbabo.decisions.reach import reaching
from cbabo.domain.constraints import ThresholdBox
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.designs import legal_designs
from cbabo.methods.method import Designs, Fitted
from cbabo.numerics.arrays import FloatArray, is_number
from cbabo.numerics.threads import one_thread
from cbabo.solver.reaching import Met, Reaching


@dataclass(frozen=True)
class ConflictTuning:
    """Numbers that tune ways out."""

    still: float = 0.02
    """Of the range: a limit that moves by less is left in place, if the others can do without it."""
    costlier: float = 0.05
    """Share by which the cost may grow where such limits are left in place: fewer limits are easier to agree upon."""
    clearance: float = 1e-3
    """Of the range: how far designs of ways out stay away from all limits, besides the margin. They lie where little is measured,
    and errors there can exceed deviations that are a millionth of the range."""
    searches: int = 12
    """Searches for the ways out of one question at most: further ones seldom find another kind."""


TUNING = ConflictTuning()


@dataclass(frozen=True)
class Conflict:
    """Limits that cannot hold together, as the model predicts.

    Examples:
        >>> found = Conflict({"stress": 100.0, "mass": 2.0, "noise": 60.0}, ("stress", "mass"), 0.03)
        >>> found.limits
        ('stress', 'mass')
    """

    thresholds: Mapping[str, float]
    """The limits asked for."""
    limits: tuple[str, ...]
    """An irreducible set of them: dropping any one makes the others of the set reachable. It is empty where even the most relaxed
    limits cannot be met, beside those that the problem fixes."""
    probability: float
    """The highest probability with which a design was found to obey the limits of this set, below that asked for."""


@dataclass(frozen=True)
class WayOut:
    """Limits that can be met, relaxed from those asked for.

    Examples:
        >>> from cbabo.answering.answers import Estimate
        >>> mass = Estimate(2.5, 0.1)
        >>> answer = Answer({"stress": 110.0}, {"width": 1.2}, mass, {"mass": mass}, 0.98, "predicted")
        >>> WayOut({"stress": 110.0}, 20.0, answer, ("stress",)).moved
        ('stress',)
    """

    thresholds: Mapping[str, float]
    cost: float
    """The sum over the moved limits: cost per unit times units, or the share of the range where no cost is stated."""
    answer: Answer
    """The design for these limits."""
    moved: tuple[str, ...]
    """The limits that are relaxed; no two ways out move the same ones."""


def conflict(fitted: Fitted, query: Query) -> Conflict | None:
    """Return a smallest set of limits of a query with one row that cannot hold together; None where all can be met."""
    search = reaching(fitted, "conflict")
    if predict_many(fitted, query).reachable[0]:
        return None
    asked, names = query.theta[0], query.box.names
    relaxed = np.maximum(asked, 1.0)
    held = list(range(len(asked)))
    with one_thread():
        for j in _by_need(search, asked):
            without = [i for i in held if i != j]
            if search.design(_only(asked, relaxed, without))[1] < search.aim:
                held = without
        most = search.design(_only(asked, relaxed, held))[1]
    return Conflict(query.named(0), tuple(names[j] for j in held), most)


def ways_out(fitted: Fitted, query: Query, costs: Mapping[str, float] | None, count: int) -> tuple[WayOut, ...]:
    """Return the cheapest relaxations of a query with one row, the cheapest first; none where its limits can be met."""
    check_ways_out(query.box, costs, count)
    cost, search = _costs(query.box, costs), reaching(fitted, "ways_out")
    if predict_many(fitted, query).reachable[0]:
        return ()
    if (
        query.theta < 0.0
    ).any():  # Designs lie far from the data, where the cheapest movement is one in whose favour the model errs.
        fitted = replace(fitted, posterior=fitted.posterior.not_lowered(), library=fitted.fast_map.library)
        search = reaching(fitted, "ways_out")
    with one_thread():
        found = _cheapest(search, query.theta[0] - TUNING.clearance, cost, count)
    return tuple(_way_out(fitted, query, met, cost) for met in found)


def check_ways_out(box: ThresholdBox, costs: Mapping[str, float] | None, count: int) -> tuple[WayOut, ...]:
    """Refuse costs and counts that make no sense; return the ways out of limits that can be met, which are none."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"ways_out: count must be a whole number from 1 on, got {shown(count)}")
    _costs(box, costs)
    return ()


def _only(asked: FloatArray, relaxed: FloatArray, held: list[int]) -> FloatArray:
    """Return the thresholds (k) with all limits dropped but those held (indices)."""
    theta = relaxed.copy()
    theta[held] = asked[held]
    return theta


def _by_need(search: Reaching, asked: FloatArray) -> list[int]:
    """Return the limits in the order in which dropping them is tried: those first that need not move."""
    met = search.closest(asked)
    moved = np.zeros_like(asked) if met is None else met.theta - asked
    return [int(j) for j in np.argsort(moved, kind="stable")]


def _cheapest(search: Reaching, asked: FloatArray, cost: FloatArray, count: int) -> list[Met]:
    """Return the cheapest movements that move different sets of limits; all limits are stricter by the clearance."""
    order, tried, kept = itertools.count(), set[frozenset[int]](), dict[frozenset[int], Met]()
    waiting: list[tuple[float, int, frozenset[int], Met]] = []

    def look(locked: frozenset[int], near: FloatArray | None) -> None:
        if locked in tried or len(tried) >= TUNING.searches:
            return
        tried.add(locked)
        met = _least(search, asked, cost, locked, near)
        if met is not None:
            heapq.heappush(waiting, (met.cost, next(order), locked, met))

    look(frozenset(np.flatnonzero(~np.isfinite(cost)).tolist()), None)
    while waiting and len(kept) < count:
        _, _, locked, met = heapq.heappop(waiting)
        moved = frozenset(np.flatnonzero(met.theta > asked).tolist())
        kept.setdefault(moved, met)
        for j in sorted(moved):
            look(locked | {j}, met.x)
    return list(kept.values())


def _least(
    search: Reaching, asked: FloatArray, cost: FloatArray, locked: frozenset[int], near: FloatArray | None
) -> Met | None:
    """Return the cheapest movement with some limits locked; limits that hardly move are left in place."""
    price = np.where(np.isfinite(cost), cost, 0.0)
    best: Met | None = None
    while True:
        high = np.clip(1.0 - TUNING.clearance - asked, 0.0, None)
        high[list(locked)] = 0.0
        met = search.least(asked, price, np.zeros_like(asked), high, near=near if best is None else best.x)
        if met is None or (best is not None and met.cost > (1.0 + TUNING.costlier) * best.cost):
            return best
        best = met
        still = frozenset(np.flatnonzero((met.theta > asked) & (met.theta - asked < TUNING.still)).tolist())
        if not still:
            return best
        locked = locked | still


def _way_out(fitted: Fitted, query: Query, met: Met, cost: FloatArray) -> WayOut:
    """Put together a way out; its design is the answer to slightly stricter limits, or that of the search where there is none."""
    box, asked = query.box, query.theta[0]
    moved = met.theta > asked - TUNING.clearance
    relaxed = met.theta + TUNING.clearance
    theta = np.where(moved, relaxed, asked)
    stricter = predict_many(fitted, Query(box, box.from_theta(met.theta[None]), met.theta[None]))
    designs = stricter.designs
    if not stricter.reachable[0]:
        designs = Designs(legal_designs(fitted.problem, torch.from_numpy(met.x[None])), {}, designs.aim)
    found = Query(box, np.where(moved, box.from_theta(relaxed[None])[0], query.thresholds[0])[None], theta[None])
    names = tuple(name for name, yes in zip(box.names, moved, strict=True) if yes)
    spent = float((np.where(moved, cost, 0.0) * np.where(moved, relaxed - asked, 0.0)).sum())
    return WayOut(found.named(0), spent, Answers(fitted, found, designs).answer(0), names)


def _costs(box: ThresholdBox, costs: Mapping[str, float] | None) -> FloatArray:
    """Return what relaxing each limit (k) costs per unit of theta; infinite where it may not move."""
    if costs is not None and not isinstance(costs, Mapping):
        raise InputError(f"ways_out: expected costs as a mapping of limits to numbers, got {shown(costs)}")
    given = {} if costs is None else dict(costs)
    for name, cost in given.items():
        if name not in box.names:
            raise InputError(f"ways_out: unknown limit {shown(name)} in costs; expected one of {', '.join(box.names)}")
        if not (cost == np.inf or (is_number(cost) and cost > 0.0)):
            raise InputError(
                f"ways_out: the cost of {name} must be a number above 0, or inf for a limit that stays, got {shown(cost)}"
            )
    return np.array([given[c.name] * c.scale if c.name in given else 1.0 for c in box.movable], dtype=np.float64)
