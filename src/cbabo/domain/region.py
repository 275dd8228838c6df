"""The designs that obey all known relations: whether there are any, samples of them, and the nearest one to any design.

Symbols and shapes as in `relations`. A design that is returned obeys every relation exactly, in natural values.

Samples are drawn by rejection where at least a few per cent of the cube obey the relations. Elsewhere they come from hit-and-run
walks: from a design that obeys, along a random direction, to a random place of the chord that obeys too. A chord is found by
shrinking it around the design, which works for regions of any shape and for discrete variables. The first designs come from a
linear program where relations are linear, otherwise from the best of many designs by minimising the largest violation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from cbabo.domain.expression import Expression, parse_relation
from cbabo.domain.relations import Relations
from cbabo.domain.search import no_design, seed_designs
from cbabo.domain.space import AnyVariable, Space
from cbabo.errors import InputError
from cbabo.numerics.arrays import FloatArray


@dataclass(frozen=True)
class RegionTuning:
    """Numbers that tune samples and repairs."""

    pool: int = 4096
    """Designs that are drawn anywhere to see how much of the cube obeys the relations."""
    share: float = 0.05
    """Share of the cube from which on samples are drawn by rejection."""
    anchors: int = 512
    """Designs that are kept to walk from, and to fall back on."""
    sweeps: int = 24
    """Steps of a walk between its start and a sample."""
    shrinks: int = 30
    """How often a chord is shrunk: each halves it on average, so that a region of any width is met."""
    projections: int = 40
    """Steps by which a design is moved onto the relations that it breaks."""
    inside: float = 1e-9
    """By how much a moved design stays inside, in units of a relation's range: rounding breaks 1e-16."""
    halvings: int = 50
    """Of the way to a design that obeys, where projections do not end."""
    candidates: int = 5
    """Samples for each design of an initial design, of which the others are left out."""
    rows: int = 256
    """Designs that are compared with all anchors at a time, which bounds the memory."""


TUNING = RegionTuning()


@lru_cache(maxsize=64)
def region_of(
    variables: tuple[AnyVariable, ...],
    texts: tuple[str, ...],
    expressions: tuple[Expression, ...],
    finite: tuple[Expression, ...],
) -> Region:
    """Return the region of some relations; InputError where no design is in it. texts: the relations as they were written."""
    region = Region(Relations(Space(variables), expressions, finite), texts)
    if not len(region.anchors):
        raise InputError(no_design(region.relations, texts))
    return region


@dataclass(frozen=True, eq=False)
class Region:
    """The legal designs that obey all relations."""

    relations: Relations
    texts: tuple[str, ...]

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """The text that each relation comes from."""
        return tuple(t for t in self.texts for _ in parse_relation("relations", t, self.space.names))

    @property
    def space(self) -> Space:
        """The variables."""
        return self.relations.space

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """Which columns (d) of the unit cube are of continuous variables."""
        return self.space.continuous

    def contains(self, x: FloatArray) -> NDArray[np.bool_]:
        """Tell which designs (b x d, unit cube), made legal, obey all relations."""
        return self.relations.obeyed(self.space.natural(x)) if len(x) else np.zeros(0, dtype=np.bool_)

    def holds(self, points: Sequence[Mapping[str, float]]) -> NDArray[np.bool_]:
        """Tell which points (b), as they are in natural units, obey all relations."""
        return self.relations.obeyed(self.space.array(points))

    def broken(self, point: Mapping[str, float]) -> str:
        """Say which relation a point breaks; empty if it breaks none."""
        if bool(self.holds([point])[0]):
            return ""
        which = self.relations.broken(self.space.array([point]))[0]
        return " and ".join(
            repr(text) for text in dict.fromkeys(t for t, b in zip(self.owners, which, strict=True) if b)
        ) or ("that formulas are finite")

    def legal(self, x: FloatArray) -> FloatArray:
        """Move discrete variables of designs (b x d) to their nearest values."""
        return x if self.continuous.all() or not len(x) else np.where(self.continuous, x, self.space.snap(x))

    @cached_property
    def anchors(self) -> FloatArray:
        """Designs (a x d) that obey all relations, spread over the region; none where there is none."""
        random = np.random.default_rng(1)
        drawn = self.legal(random.random((TUNING.pool, len(self.continuous))))
        found = drawn[self.contains(drawn)]
        if len(found) >= TUNING.share * len(drawn):
            return found[: TUNING.anchors]
        if len(found) < 2:
            seeds = self.legal(seed_designs(self.relations, drawn))
            found = np.vstack([found, seeds, self.projected(seeds, 0.0, 1.0, self.continuous)])
            found = found[self.contains(found)]
        if not len(found):
            return found
        spread = found[np.arange(TUNING.anchors) % len(found)]
        for _ in range(TUNING.sweeps):
            spread = self._walked(spread, random)
        return spread

    @cached_property
    def wide(self) -> bool:
        """Whether samples are drawn by rejection."""
        drawn = np.random.default_rng(2).random((TUNING.pool, len(self.continuous)))
        return float(self.contains(drawn).mean()) >= TUNING.share

    def sample(self, count: int, random: np.random.Generator) -> FloatArray:
        """Return legal designs (count x d) of the region."""
        found = np.empty((0, len(self.continuous)))
        while self.wide and len(found) < count:
            drawn = self.legal(random.random((max(64, 2 * count), len(self.continuous))))
            found = np.vstack([found, drawn[self.contains(drawn)]])
        if not self.wide:
            found = self.anchors[random.integers(len(self.anchors), size=count)]
            for _ in range(TUNING.sweeps):
                found = self._walked(found, random)
        return found[:count]

    def initial(self, count: int, random: np.random.Generator) -> FloatArray:
        """Return designs (count x d) that fill the region: samples of which one of the closest pair is left out, again and again.

        Choosing the most distant samples instead would leave the inside empty where there are many variables.
        """
        pool = np.unique(self.sample(TUNING.candidates * max(count, 8), random), axis=0)
        distance = np.sqrt(np.square(pool[:, None] - pool[None]).sum(-1))
        np.fill_diagonal(distance, np.inf)
        left = np.arange(len(pool))
        while len(left) > count:
            near = np.sort(distance[np.ix_(left, left)], axis=1)[:, :2]
            left = np.delete(left, np.lexsort((near[:, -1], near[:, 0]))[0])
        return np.asarray(pool[random.permutation(left)[np.arange(count) % len(left)]])

    def repaired(self, x: FloatArray, anchors: FloatArray | None = None) -> FloatArray:
        """Return legal designs of the region, those (b x d) that are in it unchanged and others moved by little.

        anchors: for each a design (b x d) of the region that it may be moved towards; by default the nearest one that is known.
        """
        x = self.legal(x)
        out = np.flatnonzero(~self.contains(x))
        if not len(out):
            return x
        x = x.copy()
        x[out] = self.legal(self.projected(x[out], 0.0, 1.0, self.continuous))
        out = out[~self.contains(x[out])]
        if len(out):
            x[out] = self._towards(x[out], self._nearest(x[out]) if anchors is None else anchors[out])
        return x

    def projected(
        self, x: FloatArray, low: FloatArray | float, high: FloatArray | float, free: NDArray[np.bool_]
    ) -> FloatArray:
        """Move designs (b x d) onto the relations that they break, most broken first, where that ends within some steps.

        Only the columns that are free (d) move, and stay between low and high. Discrete variables are interpolated.
        """
        x = x.copy()
        for _ in range(TUNING.projections):
            g, J = self.relations.values_and_slopes(x)
            rows = np.flatnonzero(g.max(1, initial=-1.0) > 0.0)
            if not len(rows):
                break
            worst = g[rows].argmax(1)
            slope = J[rows, worst] * free
            outwards = ((x[rows] <= low) & (slope > 0.0)) | ((x[rows] >= high) & (slope < 0.0))
            slope = np.where(outwards, 0.0, slope)
            length = np.square(slope).sum(1)
            over = g[rows, worst] + TUNING.inside
            step = np.where(length > 0.0, over / np.where(length > 0.0, length, 1.0), 0.0)
            x[rows] = np.clip(x[rows] - step[:, None] * slope, low, high)
        return x

    def _nearest(self, x: FloatArray) -> FloatArray:
        """Return the anchor nearest to each design; one with the same discrete values where there is one."""
        if len(x) > TUNING.rows:
            return np.vstack([self._nearest(x[i : i + TUNING.rows]) for i in range(0, len(x), TUNING.rows)])
        anchors = self.anchors
        distance = np.square(x[:, None] - anchors[None]).sum(-1)
        if not self.continuous.all():
            held = ~self.continuous
            other = np.abs(x[:, None, held] - anchors[None][:, :, held]).max(-1) > TUNING.inside
            distance = distance + np.where(other, 2.0 * len(self.continuous), 0.0)
        return np.asarray(anchors[distance.argmin(1)])

    def _towards(self, x: FloatArray, anchors: FloatArray) -> FloatArray:
        """Return designs on the way to others of the region, as near to their starts as halving finds them."""
        low, high = np.zeros(len(x)), np.ones(len(x))
        found = anchors.copy()
        for _ in range(TUNING.halvings):
            middle = 0.5 * (low + high)
            tried = self.legal(x + middle[:, None] * (anchors - x))
            ok = self.contains(tried)
            found[ok] = tried[ok]
            low, high = np.where(ok, low, middle), np.where(ok, middle, high)
        return found

    def _walked(self, x: FloatArray, random: np.random.Generator) -> FloatArray:
        """Return the designs after one step of their walks: along an axis, any direction, or that between two of them."""
        c, d = x.shape
        kind = random.integers(3, size=c)
        axis = np.eye(d)[random.integers(d, size=c)]
        between = x[random.integers(c, size=c)] - x[random.integers(c, size=c)]
        between = np.where(np.abs(between).max(1, keepdims=True) > 0.0, between, axis)
        direction = np.where(
            (kind == 0)[:, None], axis, np.where((kind == 1)[:, None], random.normal(size=(c, d)), between)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            to_low, to_high = -x / direction, (1.0 - x) / direction
        still = direction == 0.0
        first = np.where(still, -np.inf, np.minimum(to_low, to_high)).max(1)
        last = np.where(still, np.inf, np.maximum(to_low, to_high)).min(1)
        low, high, found = np.minimum(first, 0.0), np.maximum(last, 0.0), x.copy()
        left = np.arange(c)
        for _ in range(TUNING.shrinks):
            t = low[left] + random.random(len(left)) * (high - low)[left]
            tried = self.legal(np.clip(x[left] + t[:, None] * direction[left], 0.0, 1.0))
            ok = self.contains(tried)
            found[left[ok]] = tried[ok]
            below = t < 0.0
            low[left], high[left] = np.where(below, t, low[left]), np.where(below, high[left], t)
            left = left[~ok]
            if not len(left):
                break
        return found
