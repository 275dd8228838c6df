"""Which limits bind where: shares of the threshold box, limits that can be given away, and a map of two limits.

Symbols and shapes
    theta   n x k    thresholds, normalised
    gain    n x k    what the standardised objective gains per unit of each of them, at fast answers

A limit binds where relaxing it gains something. One that does not bind at a place can be tightened until it does: it can be given
away in a negotiation at no cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbabo.answering.answers import Price
from cbabo.answering.predict import Answers, predict_many
from cbabo.decisions.reach import reaching
from cbabo.decisions.tradeoff import limit_values
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.threads import one_thread
from cbabo.solver.continuous import TUNING as SOLVER
from cbabo.solver.library import TUNING as FAST
from cbabo.solver.reaching import Reaching, held_region

Set = tuple[str, ...]
"""Names of limits that bind together, in the order of the problem; empty where none binds."""


@dataclass(frozen=True)
class AtlasTuning:
    """Numbers that tune the atlas."""

    thresholds: int = 256
    """Thresholds of the box whose binding limits are counted: shares are then known to about 3 points."""
    binding: float = 1e-3
    """Gain of the standardised objective over the whole range of a limit below which it does not bind."""
    violated: float = 1e-3
    """Violation, in standardised units, beyond which a fast program has not found an optimum."""
    worse: float = 1e-2
    """Standardised objective by which it may be worse than the answer: measured designs have no margins."""
    halvings: int = 12
    """How often the interval is halved in which limits are tightened together."""


TUNING = AtlasTuning()


@dataclass(frozen=True, eq=False)
class BindingMap:
    """What binds as two limits move, the others held."""

    names: tuple[str, str]
    limits: tuple[FloatArray, FloatArray] = field(repr=False)
    """Their values, natural units, from strictest to most relaxed: n along the rows, m along the columns."""
    sets: tuple[Set, ...]
    """The sets that occur."""
    binding: NDArray[np.int64] = field(repr=False)
    """n x m: which of the sets binds; -1 where the limits cannot be met."""
    mean: FloatArray = field(repr=False)
    """n x m: the objective."""


@dataclass(frozen=True, eq=False)
class Atlas:
    """Which limits bind where.

    Examples:
        >>> from cbabo import Study, problems
        >>> truss = problems.get("three_truss")
        >>> study = Study.create(truss.problem, "sqlite://")
        >>> study.run(truss.evaluate, budget=40)
        >>> atlas = study.model().atlas()
        >>> atlas.most_important[0], "c2" in atlas.free
        ('c1', True)
    """

    thresholds: Mapping[str, float]
    """The place that is looked at."""
    shares: Mapping[Set, float] = field(repr=False)
    """Share of the box where each set of limits binds, the largest first."""
    unreachable: float
    """Share of the box where limits cannot be met."""
    binds: Mapping[str, float]
    """Share of the box where each limit binds; 0 for limits that can be given away everywhere."""
    free: Mapping[str, float]
    """Limits that do not bind at this place, and the values to which all of them can be tightened together at no cost."""
    most_important: tuple[str, ...]
    """The two limits that matter most at this place, by price times range; one if the problem has no other."""
    map: BindingMap | None
    """None where the problem has a single movable limit."""


def atlas(fitted: Fitted, query: Query, limits: Sequence[str] | None, count: int) -> Atlas:
    """Return the atlas at a query with one row; limits: the two of the map, the most important ones unless given."""
    names = query.box.names
    if limits is not None:
        _check_pair(names, limits)
    search = reaching(fitted, "atlas")
    answers = predict_many(fitted, query)
    prices = answers.answer(0).prices
    theta = sobol(len(names), child_seed(fitted.seed, "atlas"), TUNING.thresholds).numpy()
    some = predict_many(fitted, Query.at(query.box, theta), fast=True)
    sets, reached = _binding_sets(fitted, some), some.reachable
    met = [found for found, yes in zip(sets, reached, strict=True) if yes]
    counts, binds = Counter(met), {name: sum(name in found for found in met) / len(sets) for name in names}
    important = _most_important(query, prices, binds)
    pair = important if limits is None else tuple(limits)
    return Atlas(
        query.named(0),
        {found: number / len(sets) for found, number in counts.most_common()},
        1.0 - len(met) / len(sets),
        binds,
        _free(search, answers, prices),
        important,
        _map(fitted, query, (pair[0], pair[1]), count) if len(pair) > 1 else None,
    )


def _binding_sets(fitted: Fitted, answers: Answers) -> list[Set]:
    """Return which limits bind at each of some fast answers."""
    query, solver, limits, step = answers.query, fitted.solver, fitted.posterior.limits, SOLVER.theta_step
    with one_thread():
        lam = _multipliers(fitted, answers)
        rise = (solver.bound(query.theta + step) - solver.bound(query.theta - step)) / (2.0 * step)
    gain = np.zeros_like(query.theta)
    for r, j in enumerate(limits.threshold.tolist()):
        gain[:, j] += lam[:, r] * rise[:, r] * float(limits.span[r] != 0)
    names = np.array(query.box.names)
    return [tuple(names[row].tolist()) for row in gain > TUNING.binding]


def _multipliers(fitted: Fitted, answers: Answers) -> FloatArray:
    """Return the multipliers (n x r) of the optimum near each answer.

    They come from the fast map's programs. Where an answer is not theirs, as at the ends of the box, it is solved again.
    """
    fast_map, theta, aim = fitted.fast_map, answers.query.theta, answers.designs.aim
    assert aim is not None
    solver, x = fitted.solver, answers.x.numpy()
    found, lam, _ = fast_map.solve(theta, aim, FAST.corrections)
    bound, z = solver.bound(theta), fast_map.batched.mean(found)
    over = (solver.sign * z[:, solver.output] - bound).max(1)
    worse = solver.goal * (z[:, 0] - fast_map.batched.mean(x)[:, 0])
    for i in np.flatnonzero((over > TUNING.violated) | (worse > TUNING.worse)).tolist():
        lam[i] = solver.solve(bound[i], x[i], held_region(solver, x[i])).multipliers
    return lam


def _most_important(query: Query, prices: Mapping[str, Price], binds: Mapping[str, float]) -> tuple[str, ...]:
    """Return the two limits with the largest price times range; of those that do not bind, the ones that bind most often."""
    scale = {c.name: c.scale for c in query.box.movable}
    worth = {name: prices[name].value * scale[name] if name in prices else 0.0 for name in query.box.names}
    return tuple(sorted(query.box.names, key=lambda name: (-worth[name], -binds[name]))[:2])


def _free(search: Reaching, answers: Answers, prices: Mapping[str, Price]) -> dict[str, float]:
    """Return how far the limits that do not bind can be tightened together, with the design of the answer."""
    query, solver = answers.query, search.solver
    idle = np.array([name in prices and not prices[name].binds for name in query.box.names])
    if not idle.any():
        return {}
    row = answers.measured.get(0)
    if row is not None and solver.posterior.all_exact:
        z, s = solver.z[row], np.full(solver.z.shape[1], 1e-9)
    else:
        x = answers.x[0].numpy()
        z, s = solver.pointwise.mean_and_jacobian(x)[0], solver.pointwise.std(x)
    needed = (solver.sign * z[solver.output] + SOLVER.widest * s[solver.output])[None]
    theta = query.theta[0]
    strictest = np.clip(search.strictest(needed)[0], np.minimum(theta, 0.0), theta)
    low, high = 0.0, 1.0
    for i in range(TUNING.halvings):
        share = 1.0 if i == 0 else 0.5 * (low + high)
        tightened = np.where(idle, theta + share * (strictest - theta), theta)
        enough = float(solver.joint(solver.bound(tightened[None]), z[None], s[None])[0]) >= search.aim
        low, high = (share, high) if enough else (low, share)
        if low == 1.0:
            break
    values = query.box.from_theta(np.where(idle, theta + low * (strictest - theta), theta)[None])[0]
    return {name: float(v) for name, v, yes in zip(query.box.names, values, idle, strict=True) if yes}


def _map(fitted: Fitted, query: Query, names: tuple[str, str], count: int) -> BindingMap:
    (first, down), (second, across) = (limit_values(fitted, name, count) for name in names)
    rows = np.repeat(query.thresholds, count * count, axis=0)
    rows[:, first], rows[:, second] = np.repeat(down, count), np.tile(across, count)
    answers = predict_many(fitted, Query.of(query.box, rows), fast=True)
    sets, reached = _binding_sets(fitted, answers), answers.reachable
    kinds = tuple(dict.fromkeys(found for found, yes in zip(sets, reached, strict=True) if yes))
    index = [kinds.index(found) if yes else -1 for found, yes in zip(sets, reached, strict=True)]
    mean = answers.moments[0][:, 0]
    shape = (count, count)
    return BindingMap(names, (down, across), kinds, np.array(index).reshape(shape), mean.reshape(shape))


def _check_pair(names: tuple[str, ...], limits: Sequence[str]) -> None:
    given = (limits,) if isinstance(limits, str) else tuple(limits)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"atlas: unknown limit {shown(unknown[0])}; expected one of {', '.join(names)}")
    if len(given) != 2 or given[0] == given[1]:
        raise InputError(f"atlas: expected two different limits for the map, got {shown(given)}")
