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

from cbabo.domain.constraints import FEASIBILITY_TOLERANCE
from cbabo.domain.problem import Problem
from cbabo.errors import InputError, shown
from cbabo.methods.designs import snapped
from cbabo.methods.settings import Settings
from cbabo.network.pcm import PCM
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.numerics.threads import one_thread
from cbabo.solver.continuous import Solver, SolverAnswer
from cbabo.surrogate.limits import Limits
from cbabo.surrogate.posterior import Posterior

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
    wish = Wish(_base(problem, base), _directions(problem, intents), settings)
    first, *later = _sizes(settings)
    theta = wish.candidates(first, random)
    both = np.vstack([wish.base, theta])
    objective, believed = judge(both)
    if not believed[1:].any():
        raise InputError(_nothing_feasible(problem, judge.nearest(wish.base, both)))
    now = objective[0]

    def worth_of(theta: FloatArray, value: FloatArray, sure: NDArray[np.bool_]) -> FloatArray:
        return np.where(sure, wish.utility(theta, now - value), -np.inf)

    worth = worth_of(theta, objective[1:], believed[1:])
    for i, size in enumerate(later, start=1):
        new = wish.around(theta, wish.preferred(theta, worth), i, size, random)
        theta, worth = np.vstack([theta, new]), np.append(worth, worth_of(new, *judge(new)))
    worth = wish.preferred(theta, worth)
    kept = wish.different(theta, wish.ranked(theta, worth), count)
    chosen, utility = theta[kept], worth[kept]
    if later:
        chosen, utility = _lean(wish, chosen, utility, lambda t: worth_of(t, *judge(t)), wish.equal(worth))
    names = {name: _NAMES[int(a)] for name, a in zip(problem.box.names, wish.directions, strict=True)}
    return Proposals(wish.base, chosen, utility, names, bool(wish.follows(chosen).all()))


@dataclass(frozen=True, eq=False)
class Wish:
    """What is asked for, and what candidates theta (c x k) are to it."""

    base: FloatArray
    """k."""
    directions: FloatArray
    """k, a."""
    settings: Settings

    def candidates(self, total: int, random: np.random.Generator) -> FloatArray:
        """Return candidates around the base (total x k), guided and exploring ones."""
        r, k = self.settings.recommend_range, len(self.base)
        guided = round(self.settings.recommend_guided * total)
        steps = np.abs(random.normal(0.0, 0.5 * r, (guided, k)))
        locked = random.uniform(-_LOCKED * r, _LOCKED * r, (guided, k))
        follow = np.where(self.directions == 0, locked, self.directions * steps)
        explore = random.normal(0.0, 0.4 * r, (total - guided, k))
        return np.asarray(np.clip(self.base + np.vstack([follow, explore]), 0.0, 1.0))

    def around(
        self, theta: FloatArray, worth: FloatArray, i: int, size: int, random: np.random.Generator
    ) -> FloatArray:
        """Return the candidates (size x k) of round i, around the best so far; where these follow the intents, so do they."""
        r, k = self.settings.recommend_range, len(self.base)
        best = theta[self.ranked(theta, worth)[:_PARENTS]]
        steps = random.normal(0.0, 0.5 * r * _NARROWER**i, (size, k))
        moved = random.random((size, k)) < max(_MOVED, 1.0 / k)
        new = best[np.arange(size) % len(best)] + np.where(moved, steps, 0.0)
        less = more = np.full(k, _FURTHEST * r)
        if self.follows(best).all():
            still = np.where(self.directions == 0, (1.0 - 1e-9) * _LOCKED * r, less)  # rounding must not lead beyond
            less = np.where(self.directions > 0, 0.0, still)
            more = np.where(self.directions < 0, -(1.0 + 1e-9) * _LOCKED * r, still)
        return np.asarray(np.clip(np.clip(new, self.base - less, self.base + more), 0.0, 1.0))

    def utility(self, theta: FloatArray, gain: FloatArray) -> FloatArray:
        """Return the scores (c) of candidates whose answers gain this (c)."""
        s, delta = self.settings, theta - self.base
        allowance = np.maximum(0.05 * np.abs(self.base), 1.0)
        tightened = np.where(self.directions == -1, np.clip(-delta, 0.0, None), 0.0).sum(axis=1)
        relaxed = np.where(self.directions <= 0, np.clip(delta, 0.0, None), 0.0).sum(axis=1)
        excessive = np.where(self.directions == 1, np.clip(delta - allowance, 0.0, None) ** 2, 0.0).sum(axis=1)
        reward = s.reward_weight * (tightened - excessive)
        return np.asarray(s.objective_weight * gain + reward - s.barrier_weight * relaxed)

    def follows(self, theta: FloatArray) -> NDArray[np.bool_]:
        """Tell for each candidate (c) whether it follows all intents.

        Locked limits stay where guided candidates leave them; those to be tightened become tighter by more than that, if they
        can; those that may be loosened do not become tighter.
        """
        delta, still = theta - self.base, _LOCKED * self.settings.recommend_range
        least = np.where(self.directions < 0, np.minimum(still, self.base), 0.0)
        moved = (self.directions != 0) & (self.directions * delta >= least)
        return np.asarray((moved | (self.directions == 0) & (np.abs(delta) <= still)).all(axis=1))

    def preferred(self, theta: FloatArray, worth: FloatArray) -> FloatArray:
        """Return what candidates are worth (c), -inf for those that do not follow the intents if any does."""
        following = np.where(self.follows(theta), worth, -np.inf)
        return following if following.max() > -np.inf else worth

    def equal(self, worth: FloatArray) -> float:
        """Return by how much scores may differ and count as equal."""
        return _EQUAL * max(float(np.ptp(worth[worth > -np.inf])), 1.0)

    def ranked(self, theta: FloatArray, worth: FloatArray) -> NDArray[np.int64]:
        """Return the candidates that are worth something, best first; of equally good ones that which changes less."""
        some = np.flatnonzero(worth > -np.inf)
        changed = np.abs(theta[some] - self.base).sum(axis=1)
        return np.asarray(some[np.lexsort((changed, -np.round(worth[some] / self.equal(worth))))])

    def different(self, theta: FloatArray, ranked: NDArray[np.int64], count: int) -> list[int]:
        """Return the first, then the next that differs from it, and so on."""
        kept: list[int] = []
        while len(kept) < count and len(ranked):
            kept.append(int(ranked[0]))
            apart = np.abs(theta[ranked] - theta[kept[-1]]).max(axis=1) >= _DIFFERENT * self.settings.recommend_range
            ranked = ranked[apart]
        return kept


@dataclass(frozen=True, eq=False)
class ByNetwork:
    """Judges thresholds by the network's designs and the surrogates' means."""

    posterior: Posterior
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
            x = snapped(self.posterior.problem.space, self.pcm.designs(torch.from_numpy(theta)))
            mean = self.posterior.surrogates.mean(x)
            return self.posterior.natural(mean, torch.zeros_like(mean))[0]

    @cached_property
    def _limits(self) -> Limits:
        return Limits.of(self.posterior.problem)


@dataclass(frozen=True, eq=False)
class BySolver:
    """Judges thresholds by the solver's quick answers."""

    solver: Solver
    fast_map: Callable[[FloatArray], Sequence[SolverAnswer]]
    """Answers theta (c x k)."""
    probability: float
    """Of feasibility, that counts as feasible."""

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the objective as it was learned, and whether answers are probable enough."""
        found = self.fast_map(theta)
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


def _lean(
    wish: Wish, theta: FloatArray, worth: FloatArray, worth_of: Callable[[FloatArray], FloatArray], equal: float
) -> tuple[FloatArray, FloatArray]:
    """Return proposals (p x k) without movements that are worth nothing, and what they are worth (p)."""
    for j, value in enumerate(wish.base):
        back = theta.copy()
        back[:, j] = value
        found = np.where(wish.follows(back) | ~wish.follows(theta), worth_of(back), -np.inf)
        kept = found < worth - equal
        theta, worth = np.where(kept[:, None], theta, back), np.where(kept, worth, found)
    return theta, worth


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
