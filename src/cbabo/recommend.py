"""Recommending limits: many thresholds around the present ones, judged by the model, the most useful kept.

Symbols and shapes
    base     k        the present thresholds, normalised: 0 strictest, 1 most relaxed
    a        k        intents: -1 tighten, 0 lock, +1 loosen
    delta    c x k    what a candidate changes, after clipping to the box
    r                 reach, a setting

Guided candidates move every limit as its intent says (half-normal steps of deviation 0.5 r, locked ones within 0.025 r); the
others explore with deviation 0.4 r. Where there are rounds, these are half of the candidates, and each looks around the best so
far, with shorter steps; in the end limits go back that moved for nothing. Kept are those whose answers obey their own thresholds.
The score of a candidate: w_f times the gain of the objective, plus lambda_r for every unit tightened as asked, less lambda_h for
every unit by which a limit is relaxed that should not be, less lambda_r times the square of loosening beyond the allowance.

Where the network answers, "obey" is said of the surrogates' means, and the objective counts in its own unit. Where the solver
does, it is said of the probability asked for, and the objective counts in units in which it was learned: those of the problem do
not matter. With large gains w_f would outweigh the barrier. The barrier is meant to be hard: candidates that move a limit
against its intent are passed over as long as one that follows all intents is feasible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.belief import Belief
from cbabo.constraints import FEASIBILITY_TOLERANCE
from cbabo.designs import snapped
from cbabo.errors import InputError, shown
from cbabo.limits import Limits
from cbabo.pcm import PCM
from cbabo.polish import Polished, Solver
from cbabo.problem import Problem
from cbabo.seeding import child
from cbabo.settings import Settings
from cbabo.space import FloatArray
from cbabo.threads import one_thread

Intent = Literal["tighten", "lock", "loosen", "<", "=", ">"]
_DIRECTIONS = {"tighten": -1, "<": -1, "lock": 0, "=": 0, "loosen": 1, ">": 1}
_NAMES = {-1: "tighten", 0: "lock", 1: "loosen"}
_LOCKED = 0.025  # of r: how far a locked limit may move
_DIFFERENT = 0.25  # of r: how far two proposals must differ in some limit
_PARENTS = 8  # best candidates so far, around which a further round looks
_NARROWER = 0.8  # by which steps shrink from round to round
_MOVED = 0.5  # share of the limits that a step moves
_EQUAL = 1e-5  # of the range of scores: closer ones are equally good, and rounding does not decide between them
_FURTHEST = 2.0  # of r: how far rounds may lead from the base


@dataclass(frozen=True, eq=False)
class Proposals:
    """What a recommendation found, best first."""

    base: FloatArray
    """k."""
    theta: FloatArray
    """p x k."""
    utility: FloatArray
    """p."""
    intents: Mapping[str, str]
    """One for every movable limit."""
    followed: bool
    """Whether every proposal follows the intents; else no candidate that does so is believed feasible."""


class Judge(Protocol):
    """What is believed about thresholds."""

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return for theta (c x k) the answers' objective, to be minimised, and whether they are believed feasible."""
        ...

    def nearest(self, base: FloatArray, theta: FloatArray) -> FloatArray | None:
        """Return thresholds (k) near the base (k), or met by answers at theta (c x k), that can be met; None if none can."""
        ...


def propose(
    problem: Problem,
    settings: Settings,
    seed: int,
    judge: Judge,
    base: Mapping[str, float],
    intents: Mapping[str, Intent],
    count: int,
) -> Proposals:
    """Return up to `count` thresholds that follow the intents, clearly different from each other.

    Only if no candidate that follows them is believed feasible, the others are returned.
    """
    random = child(seed, "recommend")
    theta_base = _base(problem, base)
    directions = _directions(problem, intents)
    sizes = _sizes(settings)
    theta = _candidates(theta_base, directions, settings, sizes[0], random)
    both = np.vstack([theta_base, theta])
    objective, believed = judge(both)
    if not believed[1:].any():
        raise InputError(_nothing_feasible(problem, judge.nearest(theta_base, both)))
    now, worth, followed = objective[0], np.empty(0), False
    for i, size in enumerate([0, *sizes[1:]]):
        if i:
            new = _around(theta, worth, theta_base, directions if followed else None, settings, i, size, random)
            theta = np.vstack([theta, new])
            found = judge(new)
            objective, believed = np.append(objective, found[0]), np.append(believed, found[1])
        utility = _utility(theta, theta_base, directions, now - objective[1:], settings)
        follows = believed[1:] & _follows(theta - theta_base, theta_base, directions, settings)
        followed = bool(follows.any())
        worth = np.where(follows if followed else believed[1:], utility, -np.inf)
    kept = _different(theta, _ranked(theta, theta_base, worth), settings, count)
    chosen, utility = theta[kept], worth[kept]
    if len(sizes) > 1:
        equal = _EQUAL * max(float(np.ptp(worth[worth > -np.inf])), 1.0)

        def judged(theta: FloatArray) -> FloatArray:
            value, sure = judge(theta)
            allowed = _follows(theta - theta_base, theta_base, directions, settings) | (not followed)
            score = _utility(theta, theta_base, directions, now - value, settings)
            return np.where(sure & allowed, score, -np.inf)

        chosen, utility = _lean(chosen, utility, theta_base, judged, equal)
    names = {name: _NAMES[int(a)] for name, a in zip(problem.box.names, directions, strict=True)}
    return Proposals(theta_base, chosen, utility, names, followed)


@dataclass(frozen=True, eq=False)
class ByNetwork:
    """Judges thresholds by the network's designs and the surrogates' means."""

    belief: Belief
    pcm: PCM
    tolerance: float
    """How far a mean may exceed its limit."""

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the objective in its own unit, and whether the means obey the limits."""
        mean = self._mean(theta)
        excess = self._limits.excess(mean, torch.zeros_like(mean), torch.from_numpy(theta), 0.0)
        return self._limits.goal * mean[:, 0].numpy(), (excess <= self.tolerance).all(1).numpy()

    def nearest(self, base: FloatArray, theta: FloatArray) -> FloatArray | None:
        """Return the thresholds nearest to the base that one of the designs would obey."""
        limits, mean = self._limits, self._mean(theta)
        broken = limits.sign * mean[:, limits.output] - limits.base
        fixed = limits.span == 0
        needed = torch.from_numpy(np.tile(base, (len(mean), 1)))
        for r in (~fixed).nonzero().flatten().tolist():
            j = int(limits.threshold[r])
            needed[:, j] = torch.maximum(needed[:, j], broken[:, r] / limits.span[r])
        possible = (broken[:, fixed] <= 0).all(1) & (needed <= 1.0).all(1)
        if not bool(possible.any()):
            return None
        distance = torch.where(possible, (needed - torch.from_numpy(base)).norm(dim=1), torch.inf)
        return np.asarray(needed[distance.argmin()].numpy())

    def _mean(self, theta: FloatArray) -> Tensor:
        """Return the outputs' means (c x q), natural units."""
        with one_thread():
            x = snapped(self.belief.problem.space, self.pcm.designs(torch.from_numpy(theta)))
            mean = self.belief.surrogates.mean(x)
            return self.belief.natural(mean, torch.zeros_like(mean))[0]

    @cached_property
    def _limits(self) -> Limits:
        return Limits.of(self.belief.problem)


@dataclass(frozen=True, eq=False)
class BySolver:
    """Judges thresholds by the solver's quick answers."""

    solver: Solver
    quick: Callable[[FloatArray], Sequence[Polished]]
    """Answers theta (c x k)."""
    probability: float
    """Of feasibility, that counts as feasible."""

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the objective as it was learned, and whether answers are probable enough."""
        found = self.quick(theta)
        return np.array([f.objective for f in found]), np.array([f.probability >= self.probability for f in found])

    def nearest(self, base: FloatArray, theta: FloatArray) -> FloatArray | None:
        """Return the thresholds nearest to the base that can be met."""
        with one_thread():
            return self.solver.closest(base, self.probability)


def _sizes(settings: Settings) -> list[int]:
    """Return how many candidates are tried at first and in each further round."""
    total, rounds = settings.recommend_candidates, settings.recommend_rounds
    later = total // 2 // rounds if rounds else 0
    return [total - rounds * later] + [later] * rounds * (later > 0)


def _candidates(
    base: FloatArray, directions: FloatArray, settings: Settings, total: int, random: np.random.Generator
) -> FloatArray:
    r = settings.recommend_range
    guided = round(settings.recommend_guided * total)
    steps = np.abs(random.normal(0.0, 0.5 * r, (guided, len(base))))
    locked = random.uniform(-_LOCKED * r, _LOCKED * r, (guided, len(base)))
    follow = np.where(directions == 0, locked, directions * steps)
    explore = random.normal(0.0, 0.4 * r, (total - guided, len(base)))
    return np.asarray(np.clip(base + np.vstack([follow, explore]), 0.0, 1.0))


def _around(
    theta: FloatArray,
    worth: FloatArray,
    base: FloatArray,
    directions: FloatArray | None,
    settings: Settings,
    i: int,
    size: int,
    random: np.random.Generator,
) -> FloatArray:
    """Return candidates (size x k) around the best ones so far; where directions are given, they follow them."""
    best = _ranked(theta, base, worth)[:_PARENTS]
    r = settings.recommend_range
    steps = random.normal(0.0, 0.5 * r * _NARROWER**i, (size, len(base)))
    moved = random.random((size, len(base))) < max(_MOVED, 1.0 / len(base))
    new = theta[best[np.arange(size) % len(best)]] + np.where(moved, steps, 0.0)
    least = most = np.full(len(base), _FURTHEST * r)
    if directions is not None:
        locked = np.where(directions == 0, (1.0 - 1e-9) * _LOCKED * r, _FURTHEST * r)  # rounding must not lead beyond
        least, most = (
            np.where(directions > 0, 0.0, locked),
            np.where(directions < 0, -(1.0 + 1e-9) * _LOCKED * r, locked),
        )
    return np.asarray(np.clip(np.clip(new, base - least, base + most), 0.0, 1.0))


def _lean(
    theta: FloatArray, worth: FloatArray, base: FloatArray, judged: Callable[[FloatArray], FloatArray], equal: float
) -> tuple[FloatArray, FloatArray]:
    """Return proposals (p x k) without movements that are worth nothing, and what they are worth (p)."""
    for j in range(len(base)):
        back = theta.copy()
        back[:, j] = base[j]
        found = judged(back)
        kept = found < worth - equal
        theta, worth = np.where(kept[:, None], theta, back), np.where(kept, worth, found)
    return theta, worth


def _utility(
    theta: FloatArray, base: FloatArray, directions: FloatArray, gain: FloatArray, settings: Settings
) -> FloatArray:
    delta = theta - base
    allowance = np.maximum(0.05 * np.abs(base), 1.0)
    tightened = np.where(directions == -1, np.clip(-delta, 0.0, None), 0.0).sum(axis=1)
    relaxed = np.where(directions <= 0, np.clip(delta, 0.0, None), 0.0).sum(axis=1)
    excessive = np.where(directions == 1, np.clip(delta - allowance, 0.0, None) ** 2, 0.0).sum(axis=1)
    reward = settings.reward_weight * (tightened - excessive)
    return np.asarray(settings.objective_weight * gain + reward - settings.barrier_weight * relaxed)


def _follows(delta: FloatArray, base: FloatArray, directions: FloatArray, settings: Settings) -> NDArray[np.bool_]:
    """Tell for each candidate (c) whether it follows all intents.

    Locked limits stay where guided candidates leave them; those to be tightened become tighter by more than that, if they can;
    those that may be loosened do not become tighter.
    """
    still = _LOCKED * settings.recommend_range
    least = np.where(directions < 0, np.minimum(still, base), 0.0)
    moved = (directions != 0) & (directions * delta >= least)
    return np.asarray((moved | (directions == 0) & (np.abs(delta) <= still)).all(axis=1))


def _ranked(theta: FloatArray, base: FloatArray, worth: FloatArray) -> NDArray[np.int64]:
    """Return the candidates that are worth something, best first; of equally good ones that which changes less."""
    some = np.flatnonzero(worth > -np.inf)
    unit = max(float(np.ptp(worth[some])), 1.0) * _EQUAL
    changed = np.abs(theta[some] - base).sum(axis=1)
    return np.asarray(some[np.lexsort((changed, -np.round(worth[some] / unit)))])


def _different(theta: FloatArray, ranked: NDArray[np.int64], settings: Settings, count: int) -> list[int]:
    """Return the first, then the next that differs from it, and so on."""
    kept: list[int] = []
    while len(kept) < count and len(ranked):
        kept.append(int(ranked[0]))
        apart = np.abs(theta[ranked] - theta[kept[-1]]).max(axis=1) >= _DIFFERENT * settings.recommend_range
        ranked = ranked[apart]
    return kept


def _base(problem: Problem, base: Mapping[str, float]) -> FloatArray:
    row = problem.box.row(base)
    for constraint, value in zip(problem.box.movable, row[0], strict=True):
        low, high = sorted((constraint.strictest, constraint.most_relaxed))
        tolerance = FEASIBILITY_TOLERANCE * constraint.scale
        if not low - tolerance <= value <= high + tolerance:
            raise InputError(
                f"recommend: the base of {constraint.name} must lie between {low:g} and {high:g}, got {value:g}; "
                "start from limits inside the box"
            )
    return np.asarray(np.clip(problem.box.to_theta(row)[0], 0.0, 1.0))


def _directions(problem: Problem, intents: Mapping[str, Intent]) -> FloatArray:
    names = problem.box.names
    if not isinstance(intents, Mapping):
        raise InputError(
            f"recommend: expected intents as a mapping of limits to tighten, lock or loosen, got {shown(intents)}"
        )
    for name, intent in intents.items():
        if name not in names:
            fixed = any(c.name == name for c in problem.constraints)
            why = f"the limit of {name!r} is fixed by the problem" if fixed else f"unknown limit {shown(name)}"
            raise InputError(f"recommend: {why}; expected one of {', '.join(names)}")
        if not isinstance(intent, str) or intent not in _DIRECTIONS:
            raise InputError(f"recommend: the intent of {name} must be tighten, lock or loosen, got {shown(intent)}")
    return np.array([_DIRECTIONS[intents.get(name, "lock")] for name in names], dtype=np.float64)


def _nothing_feasible(problem: Problem, nearest: FloatArray | None) -> str:
    """Say which limits near the base can be met."""
    if nearest is None:
        return "recommend: no limits near the base can be met, as the model sees it; start from more relaxed limits"
    named = problem.box.named(problem.box.from_theta(nearest[None])[0])
    stated = ", ".join(f"{name} = {value:.6g}" for name, value in named.items())
    return f"recommend: no candidate near the base obeys its limits; the nearest that can be met: {stated}"
