"""Legal values around a design, and the search among them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from cbabo import Discrete, Integer, Real
from cbabo.domain.space import Space
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import Region
from cbabo.solver.lattice import Lattice, search
from simulators import lattice as small
from simulators import valley

GAUGES = [0.1, 0.2, 0.8, 1.0]


def mixed_space() -> Space:
    return Space((Real("r", 0.0, 1.0), Integer("i", 0, 10), Discrete("g", GAUGES)))


@pytest.fixture
def mixed() -> Lattice:
    found = Lattice.of(mixed_space())
    assert found is not None
    return found


@dataclass(frozen=True)
class Found:
    x: FloatArray
    value: float


def test_continuous_variables_have_no_lattice() -> None:
    assert Lattice.of(valley().space) is None


def test_a_lattice_knows_its_variables_and_values(mixed: Lattice) -> None:
    assert mixed.at.tolist() == [1, 2]
    assert mixed.places[0] == pytest.approx(np.arange(11) / 10.0)
    assert mixed.places[1] == pytest.approx((np.array(GAUGES) - 0.1) / 0.9)
    assert not mixed.complete
    assert mixed.size == 44
    whole = Lattice.of(small().space)
    assert whole is not None
    assert whole.complete
    assert whole.size == 12


def test_discrete_variables_are_held(mixed: Lattice) -> None:
    lower, upper = mixed.held(np.array([0.3, 0.2, 1.0]))
    assert lower.tolist() == [0.0, 0.2, 1.0]
    assert upper.tolist() == [1.0, 0.2, 1.0]


def test_designs_around_one_are_legal_within_reach_and_nearest_first(mixed: Lattice) -> None:
    x = np.array([0.3, 0.52, 0.05])  # 5.2 and between the first two gauges
    designs = mixed.around(x, 1)
    assert (designs[:, 0] == 0.3).all()
    places = {(round(10 * i), GAUGES[int(np.argmin(np.abs(mixed.places[1] - g)))]) for _, i, g in designs}
    assert places == set(itertools.product((4, 5, 6), (0.1, 0.2)))
    assert np.array_equal(mixed_space().snap(designs), designs)
    steps = np.column_stack([10 * designs[:, 1] - 5.2, np.interp(designs[:, 2], mixed.places[1], range(4)) - 0.45])
    assert (np.diff(np.square(steps).sum(1)) >= -1e-12).all()
    assert len(mixed.around(x, 2)) == 5 * 3


def test_at_the_edge_only_what_exists_is_returned(mixed: Lattice) -> None:
    assert len(mixed.around(np.array([0.3, 0.0, 1.0]), 1)) == 2 * 2


def test_only_the_nearest_are_returned_where_there_are_too_many() -> None:
    space = Space((Real("r", 0.0, 1.0), *(Integer(f"i{n}", 0, 4) for n in range(6))))
    lattice = Lattice.of(space)
    assert lattice is not None
    x = np.random.default_rng(0).random(7)
    everything, some = lattice.around(x, 2, most=10**6), lattice.around(x, 2, most=50)
    assert len(some) == 50

    def cost(designs: FloatArray) -> FloatArray:
        return np.asarray(np.square(4.0 * (designs - x)).sum(1))

    assert cost(some) == pytest.approx(np.sort(cost(everything))[:50])


def test_a_small_lattice_is_returned_as_a_whole() -> None:
    whole = Lattice.of(small().space)
    assert whole is not None
    designs = whole.around(np.array([0.5, 0.5]), 1)
    assert len(np.unique(designs, axis=0)) == 12


# ---- search


def by(values) -> tuple:  # type: ignore[no-untyped-def, type-arg]
    """Judge, solve and rank by a function of the design; solving finds the best r by itself."""
    solved: list[tuple[float, ...]] = []

    def estimate(centre: Found, x: FloatArray) -> FloatArray:
        return np.array([values(row) for row in x])

    def solve(x: FloatArray) -> Found:
        solved.append(tuple(x[1:]))
        best = np.append(0.25, x[1:])
        return Found(best, values(best))

    return estimate, solve, lambda f: (f.value,), solved


def test_the_search_walks_to_the_optimum(mixed: Lattice) -> None:
    """The optimum lies further from the relaxed solution than its neighbours."""

    def value(x: FloatArray) -> float:
        return float((x[0] - 0.25) ** 2 + (10 * x[1] - 9.0) ** 2 + (x[2] - 0.1) ** 2)

    estimate, solve, rank, solved = by(value)
    found = search(mixed, Found(np.array([0.5, 0.12, 0.7]), 0.0), estimate, solve, rank)
    assert found[0].x == pytest.approx([0.25, 0.9, 1 / 9])
    assert [f.value for f in found] == sorted(f.value for f in found)
    assert len(solved) == len(set(solved))  # nothing is solved twice


def test_estimates_that_mislead_are_made_up_for_by_solving(mixed: Lattice) -> None:
    """The judge is blind for the gauge; the best of those solved is still returned."""
    _, solve, rank, _ = by(lambda x: float((10 * x[1] - 5.0) ** 2 + 0.1 * (x[2] - 0.1) ** 2))
    found = search(
        mixed,
        Found(np.array([0.5, 0.5, 0.2]), 0.0),
        lambda centre, x: np.square(10 * x[:, 1] - 5.0),
        solve,
        rank,
    )
    assert found[0].x == pytest.approx([0.25, 0.5, 1 / 9])


def test_bounds_of_the_variables_are_kept(mixed: Lattice) -> None:
    estimate, solve, rank, _ = by(lambda x: float((10 * x[1] - 9.0) ** 2))
    lower, upper = np.array([0.0, 0.15, 0.0]), np.array([1.0, 0.45, 1.0])
    found = search(mixed, Found(np.array([0.5, 0.3, 0.2]), 0.0), estimate, solve, rank, Region(lower, upper))
    assert all(0.15 <= f.x[1] <= 0.45 for f in found)
    assert found[0].x[1] == pytest.approx(0.4)


def test_bounds_without_a_legal_value_give_the_nearest(mixed: Lattice) -> None:
    estimate, solve, rank, _ = by(lambda x: float(x[1]))
    lower, upper = np.array([0.0, 0.51, 0.0]), np.array([1.0, 0.59, 1.0])
    found = search(mixed, Found(np.array([0.5, 0.53, 0.0]), 0.0), estimate, solve, rank, Region(lower, upper))
    assert found[0].x[1:] == pytest.approx([0.5, 0.0])
