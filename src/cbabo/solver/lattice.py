"""Local search over discrete and integer variables: legal values around a relaxed solution.

Symbols and shapes
    x        d       a design, unit cube; legal where its discrete variables have legal values
    places   m lists of positions of legal values, one for each discrete variable: p numbers in the unit interval, ascending; of
             a categorical variable p rows of the unit matrix, in its p columns of the unit cube
    c                candidates: combinations of legal values, with the continuous variables where they were

Rounding a solution breaks the limits on which it lies, or gives objective away. Instead, combinations around it are compared by a
cheap estimate, the continuous variables are solved again for the most promising ones, and moves of one step in every variable
go on from the best until nothing changes. Categories have no order: every other one is a step away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cbabo.domain.categorical import Categorical
from cbabo.domain.region import Region as DesignRegion
from cbabo.domain.space import AnyVariable, Discrete, Integer, Space
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
    """Their columns in the unit cube."""
    places: tuple[FloatArray, ...]
    """m."""
    complete: bool
    """Whether there are no continuous variables."""
    region: DesignRegion | None = None
    """The designs that obey known relations; None: all do."""

    @classmethod
    def of(cls, space: Space, region: DesignRegion | None = None) -> Lattice | None:
        """Return the lattice of a space; None if all variables are continuous."""
        return cls._of(space, (Integer, Discrete, Categorical), region)

    @classmethod
    def of_numbers(cls, space: Space, region: DesignRegion | None = None) -> Lattice | None:
        """Return the lattice of the variables that are numbers; None if there are none."""
        return cls._of(space, (Integer, Discrete), region)

    @classmethod
    def of_categories(cls, space: Space, region: DesignRegion | None = None) -> Lattice | None:
        """Return the lattice of the categorical variables; None if there are none."""
        return cls._of(space, (Categorical,), region)

    @classmethod
    def _of(cls, space: Space, kinds: tuple[type, ...], region: DesignRegion | None) -> Lattice | None:
        some = [(v, at) for v, at in zip(space.variables, space.columns, strict=True) if isinstance(v, kinds)]
        if not some:
            return None
        columns = np.concatenate([np.atleast_1d(np.arange(space.dimension)[at]) for _, at in some])
        places = tuple(v.to_unit(_legal_values(v)) for v, _ in some)
        return cls(columns, places, not space.continuous.any(), region)

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
                else round(0.5 * TUNING.many ** (1 / len(self.places)))
            )
            reach = max(reach, wide)
        cost, kept, column = np.zeros(1), np.zeros((1, 0), dtype=np.int64), 0
        for places in self.places:
            near, step = _near(places, x[self.at[column:]], reach)
            column += 1 if places.ndim == 1 else len(places)
            cost = (cost[:, None] + np.square(step)).ravel()
            kept = np.column_stack([np.repeat(kept, len(near), axis=0), np.tile(near, len(kept))])
            # Whatever follows, a combination that is dropped here has `most` others before it.
            order = np.argsort(cost, kind="stable")[:most]
            cost, kept = cost[order], kept[order]
        designs = np.tile(x, (len(kept), 1))
        designs[:, self.at] = np.column_stack([p[kept[:, j]] for j, p in enumerate(self.places)])
        return self._possible(designs)

    def _possible(self, designs: FloatArray) -> FloatArray:
        """Leave out combinations that break known relations whatever the continuous variables are; all are kept if all do."""
        if self.region is None:
            return designs
        held = np.zeros(designs.shape[1], dtype=np.bool_)
        held[self.at] = True
        possible = self.region.relations.possible(designs, held)
        return designs[possible] if possible.any() else designs

    def combinations(self) -> FloatArray:
        """Return all combinations of legal values (c x columns), the first variable slowest."""
        kept = np.zeros((1, 0))
        for places in self.places:
            rows = places.reshape(len(places), -1)
            kept = np.column_stack([np.repeat(kept, len(rows), axis=0), np.tile(rows, (len(kept), 1))])
        return kept

    @property
    def size(self) -> float:
        """How many combinations of legal values there are."""
        return float(np.prod([float(len(p)) for p in self.places]))


def _legal_values(variable: AnyVariable) -> FloatArray:
    if isinstance(variable, Categorical):
        return variable.legal
    return np.asarray(variable.values, dtype=np.float64)


def _near(places: FloatArray, x: FloatArray, reach: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Return which legal values are near x, whose first columns are this variable's, and how many steps away each is."""
    if places.ndim > 1:
        near = np.arange(len(places))
        return near, np.asarray(near != x[: len(places)].argmax(), dtype=np.float64)
    index = float(np.interp(x[0], places, np.arange(len(places))))
    near = np.arange(max(0, round(index) - reach), min(len(places), round(index) + reach + 1))
    return near, np.asarray(near - index, dtype=np.float64)


def search(
    lattice: Lattice,
    start: Found,
    estimate: Callable[[Found, FloatArray], FloatArray],
    solve: Callable[[FloatArray], Found],
    rank: Callable[[Found], tuple[float, ...]],
    region: Region = CUBE,
    solved_at_most: int = TUNING.solved,
    in_vain_at_most: int = TUNING.in_vain,
) -> list[Found]:
    """Return what was found at legal designs around a relaxed one, the best (of lowest rank) first.

    estimate: predicts what solving would give at candidates (c x d), from what was found close by; lower is better. solve: finds
    the best continuous variables at the discrete ones of a design. region: where the discrete ones stay, too. solved_at_most,
    in_vain_at_most: solves of one neighbourhood, and solves without a gain after which it is left.
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
            if in_vain == in_vain_at_most or solved == solved_at_most:
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
