"""The surrogates' problem with discrete variables, against brute force over all of their values."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from cbabo import Constraint, Discrete, Integer, Objective, Problem, Real, Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import Region
from cbabo.solver.categorical import solver_for
from cbabo.solver.continuous import Solver, SolverAnswer
from cbabo.solver.lattice import Lattice
from cbabo.solver.mixed import MixedSolver
from cbabo.surrogate.posterior import Posterior
from learned import asked, evaluated, posterior_of
from simulators import lattice, simulate_lattice, simulate_valley, valley

DEFAULT = Settings.default()
GAUGES = [0.1, 0.15, 0.3, 0.8, 1.0]


def rod() -> Problem:
    """A length, a number of ribs and a gauge: stiff enough, and as light as possible."""
    return Problem(
        "rod",
        [Real("length", 1.0, 3.0), Integer("ribs", 0, 8), Discrete("gauge", GAUGES)],
        Objective("mass"),
        [Constraint("bend", "<=", low=0.5, high=3.0), Constraint("reach", ">=", low=1.0, high=3.2)],
    )


def simulate_rod(point: dict[str, float]) -> dict[str, float]:
    length, ribs, gauge = point["length"], point["ribs"], point["gauge"]
    return {
        "mass": length * (1.0 + 2.0 * gauge) + 0.35 * ribs,
        "bend": 3.0 * length**1.5 / (1.0 + 0.5 * ribs + 3.0 * gauge),
        "reach": length + 0.3 * gauge,
    }


@pytest.fixture(scope="module")
def solver() -> MixedSolver:
    return made(posterior_of(evaluated(rod(), simulate_rod, 60), DEFAULT))


@pytest.fixture(scope="module")
def whole() -> MixedSolver:
    rows = [e for n in range(2) for e in evaluated(lattice(), simulate_lattice, 7, seed=n)]
    points = {tuple(e.point.values()): e for e in rows}
    return made(posterior_of(Evaluations(lattice(), tuple(points.values())), DEFAULT))


def answer(solver: Solver, theta: FloatArray, probability: float) -> SolverAnswer:
    return solver.answers(asked(solver.posterior.problem, theta[None]), probability)[0]


def made(posterior: Posterior) -> MixedSolver:
    found = solver_for(posterior)
    assert isinstance(found, MixedSolver)
    return found


def every(problem: Problem, steps: int) -> FloatArray:
    """All combinations of legal values, with so many values of every continuous variable."""
    places = [
        np.linspace(0.0, 1.0, steps) if isinstance(v, Real) else v.to_unit(np.asarray(v.values, dtype=np.float64))
        for v in problem.space.variables
    ]
    return np.array(list(itertools.product(*places)))


def moments(solver: MixedSolver, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    s = solver.posterior.surrogates
    mean, std = s.mean_and_std(torch.from_numpy(x))
    return ((mean - s.centre) / s.scale).numpy(), (std / s.scale).numpy()


def legal(problem: Problem, x: FloatArray) -> bool:
    return bool(np.abs(problem.space.snap(x[None]) - x).max() < 1e-9)


THETAS = [(0.7, 0.6), (0.5, 0.2), (0.8, 0.8), (1.0, 1.0), (0.3, 0.9), (0.6, 0.05)]


def test_the_best_of_all_combinations_is_found(solver: MixedSolver) -> None:
    """By brute force over all of them: nearly always the best one, and never one much worse."""
    x = every(rod(), 401)
    z, _ = moments(solver, x)
    lost = []
    for bound in solver.bound(np.random.default_rng(1).random((24, 2))):
        obeys = (solver.sign * z[:, solver.output] <= bound).all(1)
        if not obeys.any():
            continue
        found = solver.best(bound)
        assert found.feasible
        assert legal(rod(), found.x)
        lost.append(found.objective - (solver.goal * z[:, 0])[obeys].min())
    assert len(lost) > 15
    assert sum(one > 2e-3 for one in lost) <= 2  # the grid is no finer
    assert max(lost) < 0.1


def test_rounding_would_be_worse_or_break_a_limit(solver: MixedSolver) -> None:
    """What the lattice is searched for: the nearest legal design to the relaxed solution is not the answer everywhere."""
    free = Solver(solver.posterior)
    worse = 0
    for theta in THETAS:
        bound = solver.bound(np.array([theta]))[0]
        rounded = solver.at(bound, rod().space.snap(free.best(bound).x[None])[0])
        found = solver.best(bound)
        assert found.rank <= rounded.rank
        worse += not rounded.feasible or rounded.objective > found.objective + 0.01
    assert worse >= 3


@pytest.mark.parametrize("theta", THETAS)
def test_answers_are_legal_probable_and_nearly_the_best(solver: MixedSolver, theta: tuple[float, float]) -> None:
    bound = solver.bound(np.array([theta]))[0]
    found = solver.predict(bound, 0.98)
    assert legal(rod(), found.x)
    assert found.probability >= 0.98 - 1e-3
    x = every(rod(), 401)
    z, s = moments(solver, x)
    safe = (solver.sign * z[:, solver.output] + 2.5 * s[:, solver.output] <= bound).all(1)
    assert found.objective <= (solver.goal * z[:, 0])[safe].min() + 0.06


@pytest.mark.parametrize("limit", [0.0, 0.5, 1.0, 2.1, 4.0])
def test_where_nothing_is_continuous_every_design_is_looked_at(whole: MixedSolver, limit: float) -> None:
    bound = whole.bound(np.array([[limit / 4.0]]))[0]
    x = every(lattice(), 1)
    z, _ = moments(whole, x)
    excess = (whole.sign * z[:, whole.output] - bound).max(1)
    found = whole.best(bound)
    expected = np.lexsort((whole.goal * z[:, 0], np.maximum(excess, 1e-6)))[0]
    assert found.x == pytest.approx(x[expected])


def test_answers_on_a_lattice_are_true(whole: MixedSolver) -> None:
    """Every design was measured or is hardly uncertain: the answer is the best of all that obey."""
    points = lattice().space.points(every(lattice(), 1))
    truth = [simulate_lattice(p) for p in points]
    for limit in (0.5, 1.0, 1.7, 2.9, 4.0):
        found = answer(whole, np.array([limit / 4.0]), 0.9)
        best = min(y["f"] for y in truth if y["c"] <= limit)
        y = simulate_lattice(lattice().space.points(found.x[None])[0])
        assert y["c"] <= limit
        assert y["f"] <= best + 0.3


def test_the_least_violating_legal_design_is_returned_where_nothing_obeys(solver: MixedSolver) -> None:
    bound = solver.bound(np.array([[0.5, 0.5]]))[0] - 20.0
    found = solver.best(bound)
    assert not found.feasible
    assert legal(rod(), found.x)
    x = every(rod(), 201)
    z, _ = moments(solver, x)
    assert found.excess <= (solver.sign * z[:, solver.output] - bound).max(1).min() + 1e-2


def test_solutions_stay_close_where_asked_to(solver: MixedSolver) -> None:
    start = rod().space.snap(np.array([[0.5, 0.5, 0.3]]))[0]
    lower, upper = np.clip(start - 0.15, 0.0, 1.0), np.clip(start + 0.15, 0.0, 1.0)
    found = solver.within(solver.bound(np.array([[1.0, 1.0]]))[0], start, Region(lower, upper))
    assert found
    for one in found:
        assert legal(rod(), one.x)
        assert (np.abs(one.x - start) <= 0.15 + 1e-9).all()


def test_closest_thresholds_are_met_by_a_legal_design(solver: MixedSolver) -> None:
    strict = np.array([0.0, 0.0])  # bends little and reaches far
    unreachable = answer(solver, strict, 0.98)
    closest = solver.closest(strict, 0.98)
    assert closest is not None
    met = solver.predict(solver.bound(closest[None])[0], 0.98)
    assert met.probability >= 0.98 - 5e-3
    assert legal(rod(), met.x)
    assert ((closest >= strict - 1e-9) & (closest <= 1.0)).all()
    x = every(rod(), 201)
    z, s = moments(solver, x)
    upper = solver.sign * z[:, solver.output] + 2.33 * s[:, solver.output]
    steps = np.array(list(itertools.product(np.linspace(0.0, 1.0, 41), repeat=2)))
    possible = [t for t in steps if (upper <= solver.bound(t[None])[0]).all(1).any()]
    nearest = min(float(np.linalg.norm(t - strict)) for t in possible)
    assert float(np.linalg.norm(closest - strict)) <= nearest + 0.03
    assert unreachable.probability < 0.98 or float(np.linalg.norm(closest)) < 1e-6


def test_the_right_solver_for_the_variables() -> None:
    assert not isinstance(solver_for(posterior_of(evaluated(valley(), simulate_valley, 8), DEFAULT)), MixedSolver)
    assert Lattice.of(rod().space) is not None


def test_a_measured_design_is_the_floor_here_too(solver: MixedSolver) -> None:
    for theta in THETAS:
        found: SolverAnswer = answer(solver, np.array(theta), 0.98)
        incumbent = solver.incumbent(asked(solver.posterior.problem, np.array([theta])), 0.98)
        if incumbent is not None:
            assert found.objective + solver.price * (1.0 - found.probability) <= incumbent.objective + 1e-9


def test_a_region_that_fails_is_avoided_on_a_lattice_too() -> None:
    rows = [
        Evaluation(e.id, "failed", "run", e.point, {}, failure="mesh") if e.point["ribs"] <= 3 else e
        for e in evaluated(rod(), simulate_rod, 90)
    ]
    posterior = posterior_of(Evaluations(rod(), tuple(rows)), DEFAULT)
    assert posterior.failure_model is not None
    free = made(replace(posterior, failure_model=None))
    careful = made(posterior)
    theta = np.array([1.0, 1.0])
    assert rod().space.points(free.predict(free.bound(theta[None])[0], 0.98).x[None])[0]["ribs"] <= 2
    assert rod().space.points(careful.predict(careful.bound(theta[None])[0], 0.98).x[None])[0]["ribs"] >= 3


def test_an_answer_that_was_measured_is_said_to_be() -> None:
    """On a lattice that is used up every answer that obeys is a measured one, however good others are predicted to be."""
    points = [{"i": i, "g": g} for i in range(4) for g in (0.1, 0.2, 0.8)]
    rows = tuple(Evaluation(n + 1, "complete", "run", p, simulate_lattice(p)) for n, p in enumerate(points))
    model = make_model(Evaluations(lattice(), rows), Learner(0), DEFAULT.replace(library=20), 0)
    limits = np.linspace(0.05, 4.0, 25)
    for fast in (False, True):
        many = model.predict_many(limits[:, None], fast=fast)
        assert {many.status(i) for i in range(25)} == {"verified"}
        for i, limit in enumerate(limits):
            best = min(e.outputs["f"] for e in rows if e.outputs["c"] <= limit)
            assert many.answer(i).objective.mean == best
