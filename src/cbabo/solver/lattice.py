"""Local search over discrete and integer variables: legal values around a relaxed solution.

Symbols and shapes
    x        d       a design, unit cube; legal where its discrete variables have legal values
    places   m lists of positions of legal values in the unit interval, ascending, one for each discrete variable
    c                candidates: combinations of legal values, with the continuous variables where they were

Rounding a solution breaks the limits on which it lies, or gives objective away. Instead, combinations around it are compared by a
cheap estimate, the continuous variables are solved again for the most promising ones, and moves of one step in every variable
go on from the best until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cbabo.domain.region import Region as DesignRegion
from cbabo.domain.space import Real, Space
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import CUBE, Region


@dataclass(frozen=True)
class LatticeTuning:
    """Numbers that tune the search."""

    most: int = 3000
    """Combinations that are estimated at once: a batch of this size costs about as much as one solve."""
    many: int = 1000
    """Combinations around a design where no variable is continuous, since estimates are then exact."""
    reach: int = 2
    """Steps from the relaxed solution in every variable at first."""
    solved: int = 20
    """Combinations of one neighbourhood that are solved at most."""
    in_vain: int = 6
    """Solves without a gain, one after the other, after which a neighbourhood is left."""
    moves: int = 20
    """Neighbourhoods at most; a search nearly always ends after a few."""
    rounding: float = 1e-9
    """Of the unit interval: how far outside a region a legal value counts as inside."""


TUNING = LatticeTuning()


class Placed(Protocol):
    """Something found at a design."""

    @property
    def x(self) -> FloatArray:
        """The design, d."""
        ...


Found = TypeVar("Found", bound=Placed)


@dataclass(frozen=True, eq=False)
class Lattice:
    """The discrete variables of a space."""

    at: NDArray[np.int64]
    """m, which variables they are."""
    places: tuple[FloatArray, ...]
    """m."""
    complete: bool
    """Whether there are no others."""
    region: DesignRegion | None = None
    """The designs that obey known relations; None: all do."""

    @classmethod
    def of(cls, space: Space, region: DesignRegion | None = None) -> Lattice | None:
        """Return the lattice of a space; None if all variables are continuous."""
        at = [i for i, v in enumerate(space.variables) if not isinstance(v, Real)]
        if not at:
            return None
        some = [space.variables[i] for i in at]
        places = tuple(v.to_unit(np.asarray(v.values, dtype=np.float64)) for v in some)
        return cls(np.array(at), places, len(at) == space.dimension, region)

    def held(self, x: FloatArray) -> Region:
        """Return the region in which the discrete variables cannot move."""
        lower, upper = np.zeros(len(x)), np.ones(len(x))
        lower[self.at] = upper[self.at] = x[self.at]
        return Region(lower, upper)

    def around(self, x: FloatArray, reach: int, most: int = TUNING.most) -> FloatArray:
        """Return legal designs (c x d) up to so many steps from x in each discrete variable, the nearest first.

        Where nothing is continuous and the whole lattice is no larger than `most`, it is returned.
        """
        if self.complete:
            wide = (
                max(len(p) for p in self.places)
                if self.size <= most
                else round(0.5 * TUNING.many ** (1 / len(self.at)))
            )
            reach = max(reach, wide)
        cost, kept = np.zeros(1), np.zeros((1, 0))
        for i, places in zip(self.at, self.places, strict=True):
            index = float(np.interp(x[i], places, np.arange(len(places))))
            near = np.arange(max(0, round(index) - reach), min(len(places), round(index) + reach + 1))
            cost = (cost[:, None] + np.square(near - index)).ravel()
            kept = np.column_stack([np.repeat(kept, len(near), axis=0), np.tile(places[near], len(kept))])
            # Whatever follows, a combination that is dropped here has `most` others before it.
            order = np.argsort(cost, kind="stable")[:most]
            cost, kept = cost[order], kept[order]
        designs = np.tile(x, (len(kept), 1))
        designs[:, self.at] = kept
        return self._possible(designs)

    def _possible(self, designs: FloatArray) -> FloatArray:
        """Leave out combinations that break known relations whatever the continuous variables are; all are kept if all do."""
        if self.region is None:
            return designs
        held = np.zeros(designs.shape[1], dtype=np.bool_)
        held[self.at] = True
        possible = self.region.relations.possible(designs, held)
        return designs[possible] if possible.any() else designs

    @property
    def size(self) -> float:
        """How many combinations of legal values there are."""
        return float(np.prod([float(len(p)) for p in self.places]))


def search(
    lattice: Lattice,
    start: Found,
    estimate: Callable[[Found, FloatArray], FloatArray],
    solve: Callable[[FloatArray], Found],
    rank: Callable[[Found], tuple[float, ...]],
    region: Region = CUBE,
) -> list[Found]:
    """Return what was found at legal designs around a relaxed one, the best (of lowest rank) first.

    estimate: predicts what solving would give at candidates (c x d), from what was found close by; lower is better. solve: finds
    the best continuous variables at the discrete ones of a design. region: where the discrete ones stay, too.
    """
    found: dict[bytes, Found] = {}
    best, centre, reach = None, start, TUNING.reach
    for _ in range(TUNING.moves):
        designs = _inside(lattice, lattice.around(centre.x, reach), region)
        in_vain, solved = 0, 0
        for x in designs[np.argsort(estimate(centre, designs), kind="stable")]:
            key = x[lattice.at].tobytes()
            if key in found:
                continue
            if in_vain == TUNING.in_vain or solved == TUNING.solved:
                break
            found[key] = one = solve(x)
            better = best is None or rank(one) < rank(best)
            best, in_vain, solved = (one if better else best), (0 if better else in_vain + 1), solved + 1
        if best is None or best is centre:
            break
        centre, reach = best, 1
    return sorted(found.values(), key=rank)


def _inside(lattice: Lattice, designs: FloatArray, region: Region) -> FloatArray:
    """Keep the designs within a region; the nearest one if none is."""
    at = lattice.at
    low, high = (end[at] for end in region.ends(designs.shape[1]))
    some = ((designs[:, at] >= low - TUNING.rounding) & (designs[:, at] <= high + TUNING.rounding)).all(axis=1)
    return designs[some] if some.any() else designs[:1]
