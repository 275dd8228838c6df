"""The rough suite's functions: their pieces agree with them, maxima with their members, and designs fail where stated."""

import numpy as np
import pytest

from cbabo import problems
from cbabo.evaluators.function import perform
from cbabo.problems.basins import BASINS
from cbabo.problems.kinked import KINKED
from cbabo.problems.rough import GROUPS, ROUGH
from cbabo.problems.shipped import ShippedProblem

PIECEWISE = [s for s in (*KINKED, *BASINS) if s.pieces]
MAXIMA = [s for s in KINKED if s.optima_of]


def designs(shipped: ShippedProblem, n: int = 300) -> np.ndarray:
    """Random designs in natural units."""
    return shipped.problem.space.natural(np.random.default_rng(0).random((n, shipped.problem.space.dimension)))


def test_the_groups_make_the_suite():
    assert problems.names("rough") == tuple(s.name for s in ROUGH)
    assert {len(GROUPS[group]) for group in ("noise1", "noise20", "student5", "partly5", "multiplicative2")} == {8}
    assert len(ROUGH) == sum(len(group) for group in GROUPS.values())


@pytest.mark.parametrize("shipped", [*KINKED, *BASINS], ids=lambda s: s.name)
def test_outputs_are_those_of_the_problem_and_designs_are_left_as_they_were(shipped):
    X = designs(shipped)
    before = X.copy()
    f, c = shipped.evaluate_many(X)
    assert f.shape == (300,)
    assert c.shape == (300, len(shipped.problem.outputs) - 1)
    assert np.array_equal(X, before)
    assert np.array_equal(np.isnan(f), np.isnan(c).any(axis=1))
    none = shipped.evaluate_many(X[:0])
    assert (none[0].shape, none[1].shape) == ((0,), (0, c.shape[1]))
    row = int(np.flatnonzero(np.isfinite(f))[0])
    point = dict(zip(shipped.problem.space.names, X[row].tolist(), strict=True))
    assert list(shipped.evaluate(point).values()) == pytest.approx([f[row], *c[row]], rel=1e-9)


@pytest.mark.parametrize("shipped", PIECEWISE, ids=lambda s: s.name)
def test_one_piece_holds_at_every_design_that_does_not_fail(shipped):
    X = designs(shipped)
    f, c = shipped.evaluate_many(X)
    holding = np.zeros(len(X), dtype=int)
    for piece in shipped.pieces:
        value, parts = piece.function(X)
        assert np.isfinite(value).all()
        assert np.isfinite(parts).all()
        assert parts.shape[1] == len(piece.limited_by)
        switches = np.array([owner is None for owner in piece.limited_by])
        holds = (parts[:, switches] <= 0.0).all(axis=1)
        holding += holds
        assert value[holds] == pytest.approx(f[holds], rel=1e-12)
        for j, owner in enumerate(shipped.whole.limited_by):
            mine = parts[holds][:, [p == owner for p in piece.limited_by]].max(axis=1)
            others = [k for k, p in enumerate(shipped.whole.limited_by) if p == owner]
            assert mine == pytest.approx(c[holds][:, others].max(axis=1), rel=1e-9, abs=1e-9), j
    assert np.array_equal(holding > 0, np.isfinite(f))


@pytest.mark.parametrize("shipped", MAXIMA, ids=lambda s: s.name)
def test_a_maximum_is_that_of_the_members(shipped):
    members = problems.get(shipped.optima_of)
    X = designs(shipped)
    f, c = shipped.evaluate_many(X)
    g, each = members.evaluate_many(X)
    assert f == pytest.approx(g)
    assert c[:, 0] == pytest.approx(each[:, :-1].max(axis=1))
    assert c[:, 1] == pytest.approx(each[:, -1])
    assert members.problem.constraints[0].output_names == members.problem.outputs[1:-1]


@pytest.mark.parametrize("shipped", BASINS, ids=lambda s: s.name)
def test_some_designs_fail(shipped):
    X = designs(shipped, 4000)
    fails = np.isnan(shipped.evaluate_many(X)[0])
    assert 0.01 < fails.mean() < 0.2
    point = dict(zip(shipped.problem.space.names, X[fails][0].tolist(), strict=True))
    outcome = perform(shipped.evaluate, point, shipped.problem.outputs, 1)
    assert not outcome.complete
    assert outcome.cause == "design"


def test_a_beam_that_misses_its_stop_ignores_it():
    stop = problems.get("stop")
    _, c = stop.evaluate_many(
        [[30.0, 25.0, 20.0, 30.0, 0.1], [30.0, 25.0, 20.0, 30.0, 20.0], [30.0, 25.0, 20.0, 1.0, 20.0]]
    )
    assert np.array_equal(c[0], c[1])
    assert c[2, 1] < c[1, 1]
