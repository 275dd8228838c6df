"""The solver with categorical variables: legal answers, the best combination, few and many combinations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbabo import Categorical, Constraint, Integer, Objective, Problem, Real, Settings
from cbabo.domain.query import Query
from cbabo.domain.space import Space
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import Region
from cbabo.solver import categorical
from cbabo.solver.building import build_library
from cbabo.solver.categorical import CategoricalSolver, solver_for
from cbabo.solver.combinations import Combinations
from cbabo.solver.lattice import Lattice
from cbabo.solver.library import FastMap
from cbabo.surrogate.posterior import Posterior
from learned import evaluated, posterior_of
from simulators import MATERIALS, bar, simulate_bar

DEFAULT = Settings.default()
FINISHES = {"raw": 0.0, "paint": -0.1}


def combined() -> Problem:
    """An integer beside two categorical variables, nothing continuous but one width."""
    return Problem(
        "combined",
        [
            Real("a", 0.0, 1.0),
            Categorical("material", tuple(MATERIALS)),
            Integer("n", 1, 4),
            Categorical("finish", tuple(FINISHES)),
        ],
        Objective("cost"),
        [Constraint("stress", low=0.2, high=1.5)],
    )


def simulate_combined(point: dict[str, float]) -> dict[str, float]:
    price, soft = MATERIALS[str(point["material"])]
    size = point["a"] + 0.3 * point["n"]
    return {
        "cost": price * (0.3 + size) + 0.05 * point["n"],
        "stress": soft * (2.0 - 0.9 * size) + FINISHES[str(point["finish"])],
    }


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return posterior_of(evaluated(bar(), simulate_bar, 36), DEFAULT)


def legal(problem: Problem, x: FloatArray) -> bool:
    return bool(np.abs(problem.space.snap(x[None])[0] - x).max() <= 1e-9)


def test_the_right_solver_for_the_variables(posterior: Posterior) -> None:
    assert isinstance(solver_for(posterior), CategoricalSolver)


def test_answers_are_the_best_of_all_combinations_and_legal(posterior: Posterior) -> None:
    solver, problem = solver_for(posterior), posterior.problem
    eye = np.eye(3)
    materials = set()
    for bound in solver.bound(np.array([[0.0], [0.3], [0.6], [1.0]])):
        found = solver.best(bound)
        assert legal(problem, found.x)
        assert found.feasible
        starts = [np.array([a, *row, b]) for row in eye for a, b in itertools.product((0.1, 0.5, 0.9), repeat=2)]
        each = [solver._inner.solve(bound, start) for start in starts]  # type: ignore[attr-defined]
        assert found.objective <= min(s.objective for s in each if s.feasible) + 1e-4
        materials.add(problem.space.points(found.x[None])[0]["material"])
    assert len(materials) > 1


def test_answers_have_the_probability_asked_for(posterior: Posterior) -> None:
    solver = solver_for(posterior)
    for answer in solver.answers(Query.at(posterior.problem.box, np.array([[0.2], [0.8]])), 0.98):
        assert answer.probability >= 0.98 - 1e-6
        assert legal(posterior.problem, answer.x)


def test_a_start_keeps_its_categories(posterior: Posterior) -> None:
    solver = solver_for(posterior)
    bound = solver.bound(np.array([[0.5]]))[0]
    start = np.array([0.4, 0.0, 0.0, 1.0, 0.4])
    found = [
        solver.within(bound, start, Region(np.clip(start - 0.1, 0.0, 1.0), np.clip(start + 0.1, 0.0, 1.0)))[0].x,
        solver.nearest(bound, start, np.ones_like(bound)).x,
        solver.predict_from(bound, start, 0.98).x,
    ]
    assert [x[1:4].tolist() for x in found] == [[0.0, 0.0, 1.0]] * 3


def test_thresholds_that_no_design_meets_are_relaxed(posterior: Posterior) -> None:
    solver = solver_for(posterior)
    closest = solver.closest(np.array([-0.5]), 0.9)
    assert closest is not None
    assert -0.5 <= closest[0] <= 1.0
    best = solver.best(solver.bound(np.array([[-3.0]]))[0])
    assert not best.feasible
    assert posterior.problem.space.points(best.x[None])[0]["material"] == "titanium"  # It violates least.


def test_numbers_on_a_lattice_stay_legal_with_categories() -> None:
    evaluations = evaluated(combined(), simulate_combined, 40)
    fitted = posterior_of(evaluations, DEFAULT)
    solver = solver_for(fitted)
    for answer in solver.answers(Query.at(fitted.problem.box, np.array([[0.1], [0.9]])), 0.9):
        assert legal(fitted.problem, answer.x)
        assert answer.probability >= 0.9 - 1e-6
    assert all(legal(fitted.problem, s.x) for s in solver.alternatives(solver.bound(np.array([[0.5]]))[0]))
    assert solver.closest(np.array([0.5]), 0.9) is not None


def test_many_combinations_are_searched(posterior: Posterior, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = solver_for(posterior)
    bounds = solver.bound(np.array([[0.1], [0.5], [1.0]]))
    enumerated = [solver.best(bound).objective for bound in bounds]
    monkeypatch.setattr(categorical, "TUNING", categorical.CategoricalTuning(enumerated=2))
    searched = [solver_for(posterior).best(bound).objective for bound in bounds]
    assert searched == pytest.approx(enumerated, abs=1e-3)


def test_only_categories_need_no_minimisation() -> None:
    labels = {"a": 0.0, "b": 1.0, "c": 2.0}
    problem = Problem(
        "choice",
        [Categorical("first", tuple(labels)), Categorical("second", tuple(labels))],
        Objective("f"),
        [Constraint("c", low=0.5, high=3.0)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        first, second = (labels[str(point[name])] for name in ("first", "second"))
        return {"f": first + 0.5 * second, "c": 3.0 - first - 0.8 * second}

    fitted = posterior_of(evaluated(problem, simulate, 9), DEFAULT)
    lattice = Lattice.of(problem.space)
    assert lattice is not None
    assert lattice.complete
    assert lattice.size == 9
    solver = solver_for(fitted)
    for answer in solver.answers(Query.at(problem.box, np.array([[0.0], [0.5], [1.0]])), 0.9):
        assert legal(problem, answer.x)
    assert problem.space.points(solver.best(solver.bound(np.array([[1.0]]))[0]).x[None])[0] == {
        "first": "a",
        "second": "a",
    }


def test_neighbours_of_a_category_are_all_others() -> None:
    lattice = Lattice.of_categories(combined().space)
    assert lattice is not None
    x = np.array([0.3, 0.0, 1.0, 0.0, 0.5, 1.0, 0.0])
    near = lattice.around(x, 1)
    assert len(near) == 6
    assert np.array_equal(near[0], x)
    changed = [(np.abs(row - x) > 0).sum() // 2 for row in near]
    assert changed == sorted(changed)
    assert (near[:, [0, 4]] == x[[0, 4]]).all()
    assert lattice.combinations().shape == (6, 5)


def test_fast_answers_are_legal_and_close_to_full_ones(posterior: Posterior) -> None:
    solver = solver_for(posterior)
    fast_map = FastMap(solver, build_library(solver, 0.98, 24, 0))
    assert len(fast_map.combinations.groups) > 1
    query = Query.at(posterior.problem.box, np.linspace(0.05, 0.95, 7)[:, None])
    full, fast = solver.answers(query, 0.98), fast_map.answers(query, 0.98)
    assert all(legal(posterior.problem, a.x) for a in fast)
    assert np.mean([f.objective - a.objective for f, a in zip(fast, full, strict=True)]) <= 0.05


def test_the_best_starts_of_several_combinations_go_on() -> None:
    space = bar().space
    x = np.array(
        [[0.1, 1.0, 0.0, 0.0, 0.1], [0.2, 0.0, 1.0, 0.0, 0.2], [0.3, 1.0, 0.0, 0.0, 0.3], [0.4, 0.0, 0.0, 1.0, 0.4]]
    )
    combinations = Combinations.of(space, x, 8)
    assert combinations.number.tolist() == [0, 1, 0, 2]
    assert [group.tolist() for group in combinations.groups] == [[0, 2], [1], [3]]
    assert [group.tolist() for group in Combinations.of(space, x, 1).groups] == [[0, 2]]
    near = np.array([[0, 1, 2, 3], [0, 0, 2, 2]])
    merit = np.array([[2.0, 3.0, 1.0, 2.5], [1.0, 1.0, 2.0, 3.0]])
    assert combinations.kept(near, merit, 2, 1e-9).tolist() == [[2, 3], [0, 0]]
    assert combinations.kept(near, merit, 3, 1e-9).tolist() == [[2, 3, 1], [0, 0, 0]]
    without = Combinations.of(Space((Real("a", 0.0, 1.0),)), x[:, :1], 8)
    assert (without.number.tolist(), list(without.groups)) == ([0] * 4, [])
    assert without.kept(near, merit, 3, 1e-9).tolist() == [[2], [0]]
