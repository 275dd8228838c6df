"""FastMap answers from solved thresholds: as good as solving, or nearly so."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cbabo import Constraint, Model, Objective, Problem, Real, Settings
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from cbabo.numerics import qp
from cbabo.numerics.arrays import FloatArray
from cbabo.solver import library as library_module
from cbabo.solver.batched import BatchedPosterior
from cbabo.solver.building import build_library, reviewed
from cbabo.solver.consistency import consistent
from cbabo.solver.continuous import SolverAnswer
from cbabo.solver.library import FastMap, Library
from learned import Simulate, asked, cornered, edged, model_of
from simulators import lattice, make_beam, simulate_beam, simulate_lattice, simulate_valley, simulate_wavy, valley, wavy

DEFAULT = Settings.default().replace(library=96)


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(valley(), simulate_valley, 30, DEFAULT)


@pytest.fixture(scope="module")
def beam_model() -> Model:
    return model_of(make_beam(), simulate_beam, 30, DEFAULT)


@pytest.fixture(scope="module")
def edged_model() -> Model:
    return make_model(edged(), Learner(0), DEFAULT.replace(library=64), 0)


def thetas(count: int, k: int = 2, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).random((count, k))


def quick_answers(model: Model, theta: FloatArray, probability: float) -> tuple[SolverAnswer, ...]:
    return model.fast_map.answers(asked(model.problem, theta), probability)


def worth(model: Model, found: tuple[SolverAnswer, ...]) -> FloatArray:
    """Expected losses, standardised."""
    return np.array([f.objective + model.solver.price * (1.0 - f.probability) for f in found])


def true_feasible(model: Model, simulate: Simulate, theta: FloatArray, found: tuple[SolverAnswer, ...]) -> FloatArray:
    problem = model.problem
    points = problem.space.points(problem.space.snap(np.array([f.x for f in found])))
    y = np.array([[simulate(p)[name] for name in problem.outputs] for p in points])
    return problem.box.feasible(y, problem.box.from_theta(theta))


@pytest.mark.parametrize("name", ["model", "beam_model"])
def test_quick_answers_are_nearly_as_good_as_solved_ones(name: str, request: pytest.FixtureRequest) -> None:
    model: Model = request.getfixturevalue(name)
    theta = thetas(40)
    full, fast_map = model.solver.answers(asked(model.problem, theta), 0.98), quick_answers(model, theta, 0.98)
    span = np.ptp([f.objective for f in full])
    lost = (worth(model, fast_map) - worth(model, full)) / span
    assert np.mean(np.clip(lost, 0.0, None)) < 0.01
    assert np.quantile(lost, 0.9) < 0.02
    reached = np.array([f.probability >= 0.98 - 1e-3 for f in full])
    assert np.mean([q.probability >= 0.98 - 2e-3 for q, r in zip(fast_map, reached, strict=True) if r]) > 0.95


def test_quick_answers_are_truly_feasible_where_solved_ones_are(model: Model) -> None:
    theta = thetas(60, seed=4)
    full, fast_map = model.solver.answers(asked(model.problem, theta), 0.98), quick_answers(model, theta, 0.98)
    truly = [true_feasible(model, simulate_valley, theta, found).mean() for found in (full, fast_map)]
    assert truly[1] >= truly[0] - 0.02


def test_each_is_answered_by_itself(model: Model) -> None:
    """What is asked together does not matter."""
    theta = thetas(9, seed=2)
    together = quick_answers(model, theta, 0.98)
    for i in (0, 4, 8):
        alone = quick_answers(model, theta[i : i + 1], 0.98)[0]
        assert alone.x == pytest.approx(together[i].x, abs=1e-7)
        assert alone.probability == pytest.approx(together[i].probability, abs=1e-6)


def test_no_thresholds_give_no_answers(model: Model) -> None:
    assert quick_answers(model, np.empty((0, 2)), 0.98) == ()


def test_designs_lie_in_the_cube_and_are_legal(beam_model: Model) -> None:
    found = quick_answers(beam_model, thetas(50), 0.98)
    x = np.array([f.x for f in found])
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert np.abs(make_beam().space.snap(x) - x).max() < 1e-9


def test_a_lattice_is_answered_from_its_own_designs() -> None:
    model = model_of(lattice(), simulate_lattice, 11, DEFAULT)
    theta = np.linspace(0.0, 1.0, 21)[:, None]
    fast_map, full = quick_answers(model, theta, 0.9), model.solver.answers(asked(model.problem, theta), 0.9)
    x = np.array([f.x for f in fast_map])
    assert np.abs(lattice().space.snap(x) - x).max() < 1e-12
    assert np.mean(worth(model, fast_map) - worth(model, full)) < 0.02


def test_what_is_only_believed_must_be_better_than_what_was_measured_by_its_deviation() -> None:
    """Of many predicted values the best is mostly an underestimate: far more waves here than evaluations."""
    model = model_of(wavy(), simulate_wavy, 80, DEFAULT)
    theta = thetas(60, seed=5)
    found, incumbents = quick_answers(model, theta, 0.98), model.solver.incumbents(asked(model.problem, theta), 0.98)
    assert 0 < sum(f.measured is not None for f in found) < len(found)
    for f, incumbent in zip(found, incumbents, strict=True):
        if incumbent is not None and f.measured is None:
            deviation = model.solver.pointwise.std(f.x)[0]
            assert f.objective + deviation <= incumbent.objective + 1e-6
            assert f.objective == pytest.approx(model.solver.pointwise.mean_and_jacobian(f.x)[0][0], abs=1e-6)


def test_measured_designs_are_the_floor(model: Model) -> None:
    """No answer is expected to be worse than the best measured design that obeys the limits, and one that is says so."""
    theta = thetas(80, seed=5)
    incumbents = model.solver.incumbents(asked(model.problem, theta), 0.98)
    found = quick_answers(model, theta, 0.98)
    assert any(incumbent is not None for incumbent in incumbents)
    for f, incumbent in zip(found, incumbents, strict=True):
        if incumbent is not None:
            assert f.objective + model.solver.price * (1.0 - f.probability) <= incumbent.objective + 1e-9
        if f.measured is not None:
            assert f.measured == incumbent.measured
            assert f.probability == 1.0
            assert f.x == pytest.approx(incumbent.x)


def test_requirements_that_never_come_near_their_bounds_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = valley()
    roomy = Problem(
        "roomy",
        problem.variables,
        problem.objective,
        [*problem.constraints, Constraint("mass", "<=", limit=1e4), Constraint("heat", "<=", limit=0.45)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        a, b = point["a"], point["b"]
        return {**simulate_valley(point), "mass": b * (2.0 + a), "heat": np.exp(a) / b * 5.0}

    model = model_of(roomy, simulate, 30, DEFAULT)
    theta = thetas(40, seed=8)
    library = build_library(model.solver, 0.98, 64, 0)
    few = FastMap(model.solver, library)
    assert few.near.tolist() == [0, 1, 4]  # c, g and heat; not g_top, not mass
    found = few.answers(asked(model.problem, theta), 0.98)
    monkeypatch.setattr(library_module, "TUNING", replace(library_module.TUNING, far=np.inf))
    for one, other in zip(
        found, FastMap(model.solver, library).answers(asked(model.problem, theta), 0.98), strict=True
    ):
        assert one.x == pytest.approx(other.x, abs=1e-5)
        assert one.probability == pytest.approx(other.probability, abs=1e-4)


def test_limits_that_never_bind() -> None:
    problem = valley()
    free = Problem("free", problem.variables, problem.objective, [Constraint("c", "<=", low=1e3, high=2e3)])
    model = model_of(free, simulate_valley, 30, DEFAULT)
    library = build_library(model.solver, 0.98, 70, 0)
    fast_map = FastMap(model.solver, library)
    assert fast_map.near.tolist() == [0]  # programs have one row at least
    theta = thetas(9, k=1)
    for found, full in zip(
        fast_map.answers(asked(model.problem, theta), 0.98),
        model.solver.answers(asked(model.problem, theta), 0.98),
        strict=True,
    ):
        assert found.objective == pytest.approx(full.objective, abs=1e-5)
        assert found.probability == pytest.approx(1.0)


def test_what_cannot_be_met_is_answered_by_a_design_that_nearly_does(model: Model) -> None:
    theta = np.array([[0.0, 0.0], [0.02, 0.01]])
    full, fast_map = model.solver.answers(asked(model.problem, theta), 0.98), quick_answers(model, theta, 0.98)
    for f, q in zip(full, fast_map, strict=True):
        assert f.probability < 0.98
        assert q.probability < 0.98
        assert q.measured is None
        assert np.isfinite(q.objective)
    many = model.predict_many(model.problem.box.from_theta(theta), fast=True)
    assert many.answer(0).status == "unreachable"
    assert many.answer(0).closest_thresholds is not None


def test_a_higher_probability_is_kept_too(model: Model) -> None:
    """The library was made for another one."""
    theta = thetas(40, seed=6)
    full = model.solver.answers(asked(model.problem, theta), 0.999)
    for f, q in zip(full, quick_answers(model, theta, 0.999), strict=True):
        if f.probability >= 0.999 and f.measured is None:
            assert q.probability >= 0.99


def test_a_region_that_fails_is_avoided() -> None:
    model = make_model(cornered(), Learner(0), DEFAULT, 0)
    assert model.posterior.failure_model is not None
    a = np.array([2.0 * f.x[0] - 1.0 for f in quick_answers(model, thetas(40), 0.98)])
    assert (a < 0.45).all()


@pytest.mark.parametrize("name", ["model", "beam_model", "edged_model"])
def test_deviations_far_from_limits_do_not_matter(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stated is as if all had been looked at, for a part of the work."""
    model: Model = request.getfixturevalue(name)
    theta = thetas(150, k=len(model.problem.box.names), seed=9)
    looked_at: list[float] = []
    before = BatchedPosterior.updated_std

    def updated_std(batched: BatchedPosterior, std: FloatArray, x: FloatArray, where: NDArray[np.bool_]) -> FloatArray:
        looked_at.append(float(where.mean()))
        return before(batched, std, x, where)

    monkeypatch.setattr(BatchedPosterior, "updated_std", updated_std)
    many = model.predict_many(model.problem.box.from_theta(theta), fast=True)
    found = quick_answers(model, theta, 0.98)
    some = np.mean(looked_at)
    agreed = consistent(model.fast_map, asked(model.problem, theta), found, 0.98)
    assert [f.probability for f in agreed] == pytest.approx(many.probability_feasible, abs=1e-7)
    monkeypatch.setattr(library_module, "TUNING", replace(library_module.TUNING, wide=np.inf))
    everything = FastMap(model.solver, model.fast_map.library).answers(asked(model.problem, theta), 0.98)
    assert [f.measured for f in found] == [f.measured for f in everything]
    away = [np.abs(one.x - other.x).max() for one, other in zip(found, everything, strict=True)]
    assert np.mean(np.array(away) < 1e-6) > 0.98  # margins may differ where nobody can be sure of anything
    assert some < 0.9
    assert looked_at[-1] == 1.0


def test_programs_of_linear_problems_are_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flat objectives make every guess a leap from one end of the cube to the other; a little curvature holds them back."""
    random = np.random.default_rng(5)
    weights, prices = random.random((4, 10)), 1.0 + 0.3 * random.random(10)
    reals = [Real(f"x{i}", 0.0, 1.0) for i in range(10)]
    constraints = [Constraint(f"c{j}", "<=", low=1.5, high=3.5) for j in range(4)]

    def simulate(point: dict[str, float]) -> dict[str, float]:
        x = np.array(list(point.values()))
        return {"f": float(-x @ prices)} | {f"c{j}": float(c) for j, c in enumerate(weights @ x)}

    model = model_of(Problem("flat", reals, Objective("f"), constraints), simulate, 50, DEFAULT)
    theta = thetas(100, k=4, seed=3)
    quick_answers(model, theta[:1], 0.98)  # makes the library
    begun: list[tuple[int, int]] = []
    before = qp.minimise
    monkeypatch.setattr(qp, "minimise", lambda p, count: (begun.append((count, len(p.g))), before(p, count))[1])
    quick_answers(model, theta, 0.98)
    assert sum(programs for count, programs in begun if count == qp.ITERATIONS) < 5  # of 300 corrections
    assert (
        sum(programs for count, programs in begun if count < qp.ITERATIONS) > 0
    )  # rough ones, from the library's entries


@pytest.mark.parametrize("count", [1, 3, 70])
def test_a_library_of_any_size(model: Model, count: int) -> None:
    library = build_library(model.solver, 0.98, count, 0)
    assert len(library.theta) == len(library.x) == count
    assert np.isfinite(library.x).all()
    assert np.isfinite(library.curvature).all()
    assert (np.linalg.eigvalsh(library.curvature) > 0).all()


def test_the_same_library_every_time(model: Model) -> None:
    one, two = (build_library(model.solver, 0.98, 20, 3) for _ in range(2))
    for name in ("theta", "x", "mean", "curvature", "multipliers", "margin"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


def test_an_entry_in_a_worse_optimum_is_replaced_by_its_answer_from_the_others(model: Model) -> None:
    library = model.fast_map.library
    bad = Library(**{f.name: getattr(library, f.name).copy() for f in fields(library)})
    for name in ("x", "mean", "std", "slope", "curvature", "multipliers", "margin"):
        getattr(bad, name)[1] = getattr(library, name)[0]  # The most relaxed limits answered by the strictest's design.
    fast_map = FastMap(model.solver, bad)
    values = [fast_map.values(each, 0.98)[1] for each in (library, bad, reviewed(fast_map, 0.98))]
    assert values[1] > values[0] + 0.1
    assert values[2] == pytest.approx(values[0], abs=1e-2)


def test_fast_answers_are_approximate_unless_they_are_measured(model: Model) -> None:
    query = model.problem.box.from_theta(model.fast_map.library.theta)
    assert not model.predict_many(query[:3]).approximate.any()
    fast = model.predict_many(query, fast=True)
    assert fast.approximate.any()
    assert [fast.answer(i).approximate for i in range(len(fast))] == [i not in fast.measured for i in range(len(fast))]
