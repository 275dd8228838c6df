"""The shipped formulas against designs whose values are known, and against each other."""

import json
from pathlib import Path

import numpy as np
import pytest

from cbabo import problems

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))
CLASSICAL = tuple(name for suite in ("paper", "variant", "active") for name in problems.names(suite))
"""Problems from the literature, whose formulas have no noise and fail nowhere."""


def _error(values, expected):
    expected = np.asarray(expected)
    assert values.shape == expected.shape
    return np.max(np.abs(values - expected) / np.maximum(1.0, np.abs(expected)))


def test_every_problem_has_vectors():
    assert set(VECTORS) == set(CLASSICAL)


@pytest.mark.parametrize("name", CLASSICAL)
def test_the_vectors_are_reproduced(name):
    f, c = problems.get(name).evaluate_many(VECTORS[name]["x"])
    assert _error(f, VECTORS[name]["f"]) <= 1e-10
    assert _error(c, VECTORS[name]["c"]) <= 1e-10


@pytest.mark.parametrize("name", CLASSICAL)
def test_one_point_and_many_designs_agree(name):
    shipped = problems.get(name)
    X = np.asarray(VECTORS[name]["x"])
    f, c = shipped.evaluate_many(X)
    for i, row in enumerate(X):
        outputs = shipped.evaluate(dict(zip(shipped.problem.space.names, row.tolist(), strict=True)))
        assert list(outputs) == ["f", *(f"c{j}" for j in range(1, c.shape[1] + 1))]
        assert all(type(value) is float for value in outputs.values())
        assert list(outputs.values()) == pytest.approx([f[i], *c[i]], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", CLASSICAL)
def test_no_designs_give_no_values(name):
    problem = problems.get(name).problem
    f, c = problems.get(name).evaluate_many(np.zeros((0, problem.space.dimension)))
    assert f.shape == (0,)
    assert c.shape == (0, len(problem.constraints))


@pytest.mark.parametrize("name", CLASSICAL)
def test_random_legal_designs_have_finite_values_and_are_left_as_they_were(name):
    shipped = problems.get(name)
    u = np.random.default_rng(0).random((200, shipped.problem.space.dimension))
    X = shipped.problem.space.natural(u)
    before = X.copy()
    f, c = shipped.evaluate_many(X)
    assert np.isfinite(f).all()
    assert np.isfinite(c).all()
    assert np.array_equal(X, before)


@pytest.mark.parametrize("name", [n for n in CLASSICAL if not n.startswith("keane")])
def test_the_corners_of_the_bounds_have_finite_values(name):
    shipped = problems.get(name)
    d = shipped.problem.space.dimension
    u = np.vstack([np.zeros(d), np.ones(d), np.eye(d), 1.0 - np.eye(d)])
    f, c = shipped.evaluate_many(shipped.problem.space.natural(u))
    assert np.isfinite(f).all()
    assert np.isfinite(c).all()


@pytest.mark.parametrize("name", ["keane18", "keane18_bounded"])
def test_keane_falls_to_minus_infinity_at_the_origin(name):
    shipped = problems.get(name)
    f, c = shipped.evaluate_many(np.outer([1e-2, 1e-4, 0.0], np.ones(18)))
    assert f[1] < 50 * f[0] < 0.0
    assert f[2] == -np.inf
    assert c[:, 0] == pytest.approx(0.75)
    point = {f"x{i}": 0.0 for i in range(1, 19)}
    assert shipped.evaluate(point)["f"] == -np.inf
    most_relaxed = np.array([[constraint.most_relaxed for constraint in shipped.problem.constraints]])
    outputs = np.column_stack([f, c])
    assert shipped.problem.box.feasible(outputs[2:], most_relaxed).item() is (name == "keane18")


def test_the_truss_is_floored_at_its_pole():
    shipped = problems.get("three_truss")
    f, c = shipped.evaluate_many([[0.0, 0.0], [1e-5, 1e-5], [1e-6, 0.5], [1e-5, 0.5]])
    assert f[0] == f[1]
    assert f[2] == f[3]
    assert np.array_equal(c[0], c[1])
    assert np.array_equal(c[2], c[3])
    assert c.max() > 1e4


def test_the_forms_of_a_family_differ_only_where_they_should():
    beam = np.array([[6.32, 34.0, 8.5]])
    (f, c), (g, e) = (problems.get(n).evaluate_many(beam) for n in ("rc_beam", "rc_beam_mixed"))
    assert f == g
    assert e[0] - c[0] == pytest.approx([0.0, 0.025 * 6.32**2 / 8.5])
    gears = np.array(VECTORS["speed_reducer11"]["x"])
    (f, c), (g, e) = (problems.get(n).evaluate_many(gears) for n in ("speed_reducer", "speed_reducer11"))
    assert np.array_equal(f, g)
    assert (e[:, 4] > c[:, 4]).all()
    assert np.array_equal(np.delete(e, [4, 9, 10], axis=1), np.delete(c, 4, axis=1))
