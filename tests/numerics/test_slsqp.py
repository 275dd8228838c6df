"""One constrained minimum from one start."""

from __future__ import annotations

import numpy as np
import pytest

from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import CUBE, Minimum, Region, minimise

CENTRE = np.array([0.9, 0.2])


def nearest(start: FloatArray, region: Region = CUBE, total: float = 0.8) -> Minimum:
    """The point nearest to CENTRE whose coordinates add up to no more than `total`."""
    return minimise(
        lambda v: float(np.square(v - CENTRE).sum()),
        lambda v: 2.0 * (v - CENTRE),
        lambda v: np.array([total - v.sum()]),
        lambda v: np.array([[-1.0, -1.0]]),
        start,
        region,
    )


def test_the_minimum_lies_on_the_constraint_at_its_price() -> None:
    found = nearest(np.array([0.1, 0.1]))
    assert found.v == pytest.approx([0.75, 0.05], abs=1e-4)
    assert found.multipliers == pytest.approx([0.3], abs=1e-3)  # d value / d total


def test_a_constraint_that_does_not_bind_costs_nothing() -> None:
    found = nearest(np.array([0.1, 0.1]), total=2.0)
    assert found.v == pytest.approx(CENTRE, abs=1e-3)
    assert found.multipliers == pytest.approx([0.0], abs=1e-6)


def test_nothing_leaves_the_region_not_even_the_start() -> None:
    region = Region(np.array([0.3, 0.3]), np.array([0.5, 0.3]))
    found = nearest(np.array([-4.0, 9.0]), region)
    assert found.v.tolist() == pytest.approx([0.5, 0.3], abs=1e-6)
    assert (found.v >= region.lower).all()
    assert (found.v <= region.upper).all()


def test_one_number_bounds_all_variables() -> None:
    low, high = Region(0.25, np.array([0.5, 0.75])).ends(2)
    assert low.tolist() == [0.25, 0.25]
    assert high.tolist() == [0.5, 0.75]


def test_a_value_that_is_no_number_ends_where_it_began() -> None:
    start = np.array([0.4, 0.4])
    found = minimise(
        lambda v: float("nan"),
        lambda v: np.full(2, np.nan),
        lambda v: np.array([1.0]),
        lambda v: np.zeros((1, 2)),
        start,
        CUBE,
    )
    assert np.isfinite(found.v).all()
    assert ((found.v >= 0.0) & (found.v <= 1.0)).all()


def test_where_nothing_can_move_the_only_design_is_returned() -> None:
    only = np.array([0.2, 0.3])
    found = minimise(
        lambda v: float(v.sum()),
        np.ones_like,
        lambda v: np.array([v.sum() - 1.0]),
        lambda v: np.ones((1, 2)),
        np.array([0.9, 0.9]),
        Region(only, only),
    )
    assert found.v.tolist() == only.tolist()
    assert found.multipliers.tolist() == [0.0]


def test_variables_that_do_not_move_stay_where_they_are() -> None:
    start = np.array([0.1, 0.15])

    def some(moving: list[int]) -> Minimum:
        return minimise(
            lambda v: float(np.square(v - CENTRE).sum()),
            lambda v: 2.0 * (v - CENTRE),
            lambda v: np.array([0.8 - v.sum()]),
            lambda v: np.array([[-1.0, -1.0]]),
            start,
            CUBE,
            moving=np.array(moving, dtype=np.int64),
        )

    assert some([0]).v == pytest.approx([0.65, 0.15], abs=1e-6)
    assert some([0]).v[1] == 0.15
    assert some([0]).multipliers == pytest.approx([0.5], abs=1e-3)
    assert some([]).v.tolist() == start.tolist()
    assert some([]).multipliers.tolist() == [0.0]
