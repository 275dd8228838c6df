"""What a recommendation is asked for: intents, candidates that follow them, and their scores.

Symbols and shapes
    base     k        the present thresholds, normalised: 0 strictest, 1 most relaxed
    a        k        intents: -1 tighten, 0 lock, +1 loosen
    delta    c x k    what a candidate changes, after clipping to the box; 0 for a locked limit
    r                 reach, a setting
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbabo.methods.settings import MethodSettings
from cbabo.numerics.arrays import FloatArray


@dataclass(frozen=True)
class RecommendTuning:
    """Numbers that tune a recommendation. The explorer's page follows the same steps and reads these from its document."""

    least_tightening: float = 0.025
    """Of r: how much tighter a limit must become that should be tightened; less would not be noticed in a negotiation."""
    different: float = 0.25
    """Of r: how far two proposals must differ in some limit."""
    parents: int = 8
    """Best candidates so far, around which a further round looks."""
    narrower: float = 0.8
    """Factor by which steps shrink from round to round: after 16 rounds they are 3 % of the first."""
    moved: float = 0.5
    """Share of the limits that a step of a round moves."""
    equal: float = 1e-5
    """Of the range of scores: closer ones are equally good, so that rounding does not decide between them."""
    furthest: float = 2.0
    """Of r: how far rounds may lead from the base."""
    allowance: float = 1.0
    """Loosening, in normalised thresholds, that costs nothing; at least this much, and the share below of the base."""
    allowance_share: float = 0.05


TUNING = RecommendTuning()


@dataclass(frozen=True, eq=False)
class Proposals:
    """What a recommendation found, best first."""

    base: FloatArray
    """k."""
    theta: FloatArray
    """p x k."""
    utility: FloatArray
    """p."""
    directions: FloatArray
    """k, a."""
    followed: bool
    """Whether every proposal follows the intents; else no candidate that does so is predicted to be feasible."""
    thresholds: FloatArray | None = None
    """p x k, the same as theta in natural units and round numbers; None where they are not round."""


@dataclass(frozen=True, eq=False)
class Wish:
    """What is asked for, and what candidates theta (c x k) are to it."""

    base: FloatArray
    """k."""
    directions: FloatArray
    """k, a."""
    settings: MethodSettings

    @property
    def furthest(self) -> float:
        """How far a limit may move, in normalised thresholds."""
        return TUNING.furthest * self.settings.recommend_range

    @property
    def apart(self) -> float:
        """How far two proposals must differ in some limit."""
        return TUNING.different * self.settings.recommend_range

    def candidates(self, total: int, random: np.random.Generator) -> FloatArray:
        """Return candidates around the base (total x k), guided and exploring ones; locked limits do not move."""
        r, k = self.settings.recommend_range, len(self.base)
        guided = round(self.settings.recommend_guided * total)
        follow = self.directions * np.abs(random.normal(0.0, 0.5 * r, (guided, k)))
        explore = np.where(self.directions == 0, 0.0, random.normal(0.0, 0.4 * r, (total - guided, k)))
        return np.asarray(np.clip(self.base + np.vstack([follow, explore]), 0.0, 1.0))

    def around(
        self, theta: FloatArray, scores: FloatArray, i: int, size: int, random: np.random.Generator
    ) -> FloatArray:
        """Return the candidates (size x k) of round i, around the best so far; where these follow the intents, so do they."""
        r, k = self.settings.recommend_range, len(self.base)
        best = theta[self.ranked(theta, scores)[: TUNING.parents]]
        steps = random.normal(0.0, 0.5 * r * TUNING.narrower**i, (size, k))
        moved = random.random((size, k)) < max(TUNING.moved, 1.0 / k)
        new = best[np.arange(size) % len(best)] + np.where(moved, steps, 0.0)
        less = more = np.where(self.directions == 0, 0.0, TUNING.furthest * r)
        if self.follows(best).all():
            least = (1.0 + 1e-9) * TUNING.least_tightening * r  # Rounding must not lead below the least tightening.
            less = np.where(self.directions > 0, 0.0, less)
            more = np.where(self.directions < 0, -least, more)
        return np.asarray(np.clip(np.clip(new, self.base - less, self.base + more), 0.0, 1.0))

    def utility(self, theta: FloatArray, gain: FloatArray) -> FloatArray:
        """Return the scores (c) of candidates whose answers gain this (c)."""
        s, delta = self.settings, theta - self.base
        allowance = np.maximum(TUNING.allowance_share * np.abs(self.base), TUNING.allowance)
        tightened = np.where(self.directions == -1, np.clip(-delta, 0.0, None), 0.0).sum(axis=1)
        relaxed = np.where(self.directions <= 0, np.clip(delta, 0.0, None), 0.0).sum(axis=1)
        excessive = np.where(self.directions == 1, np.clip(delta - allowance, 0.0, None) ** 2, 0.0).sum(axis=1)
        reward = s.reward_weight * (tightened - excessive)
        return np.asarray(s.objective_weight * gain + reward - s.barrier_weight * relaxed)

    def follows(self, theta: FloatArray) -> NDArray[np.bool_]:
        """Tell for each candidate (c) whether it follows all intents.

        Locked limits are equal; those to be tightened become tighter by more than a little, if they can; those that may be
        loosened do not become tighter.
        """
        delta, least = theta - self.base, TUNING.least_tightening * self.settings.recommend_range
        needed = np.where(self.directions < 0, np.minimum(least, self.base), 0.0)
        moved = (self.directions != 0) & (self.directions * delta >= needed)
        return np.asarray((moved | ((self.directions == 0) & (delta == 0.0))).all(axis=1))

    def preferred(self, theta: FloatArray, scores: FloatArray) -> FloatArray:
        """Return the scores (c), -inf for candidates that do not follow the intents if any does."""
        following = np.where(self.follows(theta), scores, -np.inf)
        return following if following.max() > -np.inf else scores

    def equal(self, scores: FloatArray) -> float:
        """Return by how much scores may differ and count as equal."""
        return TUNING.equal * max(float(np.ptp(scores[scores > -np.inf])), 1.0)

    def ranked(self, theta: FloatArray, scores: FloatArray) -> NDArray[np.int64]:
        """Return the candidates with a score, best first; of equally good ones that which changes less."""
        some = np.flatnonzero(scores > -np.inf)
        changed = np.abs(theta[some] - self.base).sum(axis=1)
        return np.asarray(some[np.lexsort((changed, -np.round(scores[some] / self.equal(scores))))])

    def different(self, theta: FloatArray, ranked: NDArray[np.int64], count: int) -> list[int]:
        """Return the first, then the next that differs from it, and so on."""
        kept: list[int] = []
        while len(kept) < count and len(ranked):
            kept.append(int(ranked[0]))
            ranked = ranked[np.abs(theta[ranked] - theta[kept[-1]]).max(axis=1) >= self.apart]
        return kept
