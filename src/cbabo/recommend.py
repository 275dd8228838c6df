"""Recommending limits: many thresholds around the present ones, judged by the model, the most useful kept.

Symbols and shapes
    base     k        the present thresholds, normalised: 0 strictest, 1 most relaxed
    a        k        intents: -1 tighten, 0 lock, +1 loosen
    delta    c x k    what a candidate changes, after clipping to the box
    r                 reach, a setting

Guided candidates move every limit as its intent says (half-normal steps of deviation 0.5 r, locked ones within 0.025 r); the
others explore with deviation 0.4 r. Kept are those whose designs obey their own thresholds by the surrogates' means. The
score of a candidate: w_f times the gain of the objective, plus lambda_r for every unit tightened as asked, less lambda_h for
every unit by which a limit is relaxed that should not be, less lambda_r times the square of loosening beyond the allowance.

The network's designs lose a little, and break a limit now and then. Where thresholds can be answered better, though not tens of
thousands of them, the network only screens: the best few hundred candidates are judged again, and ranked by that.

The objective counts in its own unit, so that with large numbers w_f would outweigh the barrier. The barrier is meant to be hard:
candidates that move a limit against its intent are passed over as long as one that follows all intents is feasible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

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
_AGAIN = 192  # candidates that are judged again: the most useful
_APART = 64  # and so many that differ from each other


Judge = Callable[[FloatArray], tuple[FloatArray, NDArray[np.bool_]]]
"""Returns objectives (c, natural unit) at thresholds (c x k), and which of them are believed feasible."""


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


def propose(
    problem: Problem,
    settings: Settings,
    seed: int,
    belief: Belief,
    pcm: PCM,
    base: Mapping[str, float],
    intents: Mapping[str, Intent],
    count: int,
    judge: Judge | None = None,
) -> Proposals:
    """Return up to `count` thresholds that follow the intents, clearly different from each other.

    Only if no candidate that follows them is believed feasible, the others are returned. judge: judges the best candidates again;
    None: the network's designs decide.
    """
    theta_base = _base(problem, base)
    directions = _directions(problem, intents)
    limits = Limits.of(problem)
    theta = _candidates(theta_base, directions, settings, seed)
    follows = _follows(theta - theta_base, directions, settings)
    names = {name: _NAMES[int(a)] for name, a in zip(problem.box.names, directions, strict=True)}
    means = []
    for some in (theta[follows], theta[~follows]):
        with one_thread():
            x = snapped(problem.space, pcm.designs(torch.from_numpy(np.vstack([theta_base, some]))))
            mean = belief.surrogates.mean(x)
            mean = belief.natural(mean, torch.zeros_like(mean))[0]
        means.append(mean)
        objective, worst = mean[:, 0].numpy(), _worst(limits, mean[1:], some)
        feasible = worst <= settings.recommend_tolerance
        if judge is not None and len(some):
            utility = _utility(some, theta_base, directions, limits.goal * (objective[0] - objective[1:]), settings)
            some = some[_shortlist(some, utility, np.where(feasible, 0.0, worst), settings)]
            objective, feasible = judge(np.vstack([theta_base, some]))
            feasible = feasible[1:]
        if feasible.any():
            utility = _utility(some, theta_base, directions, limits.goal * (objective[0] - objective[1:]), settings)
            kept = _different(some, np.where(feasible, utility, -np.inf), settings, count)
            return Proposals(theta_base, some[kept], utility[kept], names, len(means) == 1)
    raise InputError(_nothing_feasible(problem, limits, torch.cat(means), theta_base))


def _worst(limits: Limits, mean: Tensor, theta: FloatArray) -> FloatArray:
    """Return the largest violation (c) of thresholds (c x k) by designs with these means (c x q)."""
    return np.asarray(limits.excess(mean, torch.zeros_like(mean), torch.from_numpy(theta), 0.0).amax(1).numpy())


def _shortlist(theta: FloatArray, utility: FloatArray, violation: FloatArray, settings: Settings) -> list[int]:
    """Return which candidates to judge again; where none obeys its limits, the least violating ones come first."""
    best = np.lexsort((-utility, violation))[:_AGAIN].tolist()
    apart = _different(theta, np.where(violation == 0.0, utility, -np.inf), settings, _APART)
    return list(dict.fromkeys([*best, *apart]))


def _candidates(base: FloatArray, directions: FloatArray, settings: Settings, seed: int) -> FloatArray:
    random = child(seed, "recommend")
    total, r = settings.recommend_candidates, settings.recommend_range
    guided = round(settings.recommend_guided * total)
    steps = np.abs(random.normal(0.0, 0.5 * r, (guided, len(base))))
    locked = random.uniform(-_LOCKED * r, _LOCKED * r, (guided, len(base)))
    follow = np.where(directions == 0, locked, directions * steps)
    explore = random.normal(0.0, 0.4 * r, (total - guided, len(base)))
    return np.asarray(np.clip(base + np.vstack([follow, explore]), 0.0, 1.0))


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


def _follows(delta: FloatArray, directions: FloatArray, settings: Settings) -> NDArray[np.bool_]:
    """Tell for each candidate (c) whether it moves no limit against its intent, and no locked one further than guided ones do."""
    locked = np.where(directions == 0, np.abs(delta) <= _LOCKED * settings.recommend_range, True)
    return np.asarray((locked & (directions * delta >= 0.0)).all(axis=1))


def _different(theta: FloatArray, utility: FloatArray, settings: Settings, count: int) -> list[int]:
    """Return the most useful candidate, then the most useful of those that differ from it, and so on; -inf is out."""
    kept: list[int] = []
    while len(kept) < count and utility.max() > -np.inf:
        kept.append(int(np.argmax(utility)))
        apart = np.abs(theta - theta[kept[-1]]).max(axis=1) >= _DIFFERENT * settings.recommend_range
        utility = np.where(apart, utility, -np.inf)
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


def _nothing_feasible(problem: Problem, limits: Limits, mean: Tensor, base: FloatArray) -> str:
    """Say which limits, nearest to the base, the candidates' designs would obey."""
    broken = limits.sign * mean[:, limits.output] - limits.base
    fixed = limits.span == 0
    needed = torch.from_numpy(np.tile(base, (len(mean), 1)))
    for r in (~fixed).nonzero().flatten().tolist():
        j = int(limits.threshold[r])
        needed[:, j] = torch.maximum(needed[:, j], broken[:, r] / limits.span[r])
    possible = (broken[:, fixed] <= 0).all(1) & (needed <= 1.0).all(1)
    if not bool(possible.any()):
        return "recommend: no limits near the base can be met, as the model sees it; start from more relaxed limits"
    distance = torch.where(possible, (needed - torch.from_numpy(base)).norm(dim=1), torch.inf)
    nearest = problem.box.named(problem.box.from_theta(needed[distance.argmin()].numpy()[None])[0])
    stated = ", ".join(f"{name} = {value:.6g}" for name, value in nearest.items())
    return f"recommend: no candidate near the base obeys its limits; the nearest that can be met: {stated}"
