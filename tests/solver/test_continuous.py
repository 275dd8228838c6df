"""Solving the surrogates' problem: known optima, margins, measured designs as the incumbent, and what cannot be met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import t

from cbabo import Constraint, Objective, Problem, Real, Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import CUBE, Region
from cbabo.solver.continuous import Solution, Solver, SolverAnswer
from cbabo.surrogate.posterior import Posterior, calibrated
from learned import asked, evaluated, posterior_of
from simulators import mirrored, simulate_mirrored, simulate_valley, valley

DEFAULT = Settings.default()
STUDENT = t(4, scale=np.sqrt(0.5))
"""The distribution of which probabilities are stated."""


def disc() -> Problem:
    """Nearest to (0.8, 0.7) below a line: the optimum, the multiplier and what is reachable are known."""
    return Problem(
        "disc",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("f"),
        [Constraint("c", "<=", low=-1.0, high=2.0)],
    )


def simulate_disc(point: dict[str, float]) -> dict[str, float]:
    a, b = point["a"], point["b"]
    return {"f": (a - 0.8) ** 2 + (b - 0.7) ** 2, "c": a + b}


def at(limit: float) -> FloatArray:
    """Theta of a limit on the disc's c."""
    return np.array([(limit + 1.0) / 3.0])


def optimum(limit: float) -> FloatArray:
    """For limits between 0.1 and 2."""
    return np.array([0.8, 0.7]) - 0.5 * max(0.0, 1.5 - limit)


@pytest.fixture(scope="module")
def evaluations() -> Evaluations:
    return evaluated(disc(), simulate_disc, 20)


@pytest.fixture(scope="module")
def solver(evaluations: Evaluations) -> Solver:
    return Solver(posterior_of(evaluations, DEFAULT))


def answer(solver: Solver, theta: FloatArray, probability: float) -> SolverAnswer:
    return solver.answers(asked(solver.posterior.problem, theta[None]), probability)[0]


def unsure(posterior: Posterior, deviation: float) -> Posterior:
    """The same means, with deviations of at least about so much of the outputs' scale everywhere."""
    s = posterior.surrogates
    h = s.hyperparameters
    assert h.amplitude is not None
    noise = deviation**2 / h.amplitude
    told = replace(s, hyperparameters=replace(h, noise=noise))  # of predictions only: the factor stays
    return replace(posterior, surrogates=told)


# ---- known optima


@pytest.mark.parametrize("limit", [0.3, 0.9, 1.3, 1.5, 2.0])
def test_a_known_optimum_is_found(solver: Solver, limit: float) -> None:
    found = solver.best(solver.bound(at(limit)[None])[0])
    assert found.feasible
    assert found.x == pytest.approx(optimum(limit), abs=2e-3)
    s = solver.posterior.surrogates
    natural = found.objective * float(s.scale[0]) + float(s.centre[0])
    assert natural == pytest.approx(max(0.0, 1.5 - limit) ** 2 / 2.0, abs=1e-3)


@pytest.mark.parametrize("limit", [0.5, 1.0, 1.4, 1.8])
def test_multipliers_are_what_the_objective_gains(solver: Solver, limit: float) -> None:
    """f* = (1.5 - t)^2 / 2, so that the objective gains 1.5 - t per unit of t."""
    found = solver.best(solver.bound(at(limit)[None])[0])
    s = solver.posterior.surrogates
    natural = found.multipliers[0] * float(s.scale[0] / s.scale[1])
    assert natural == pytest.approx(max(0.0, 1.5 - limit), abs=5e-3)


def test_the_best_of_several_starts_is_returned() -> None:
    """Two valleys: the deeper one is found although starts lie in both."""
    problem = Problem("two", [Real("a", 0.0, 1.0)], Objective("f"), [Constraint("c", "<=", low=0.0, high=2.0)])

    def simulate(point: dict[str, float]) -> dict[str, float]:
        a = point["a"]
        return {"f": np.sin(12.0 * a) + 0.5 * a, "c": a}

    solver = Solver(posterior_of(evaluated(problem, simulate, 20), DEFAULT))
    grid = np.linspace(0.0, 1.0, 100_001)
    for limit in (0.2, 0.45, 0.8, 2.0):
        found = solver.best(solver.bound(np.array([[limit / 2.0]]))[0])
        allowed = grid[grid <= limit]
        assert found.x[0] == pytest.approx(allowed[np.argmin(np.sin(12.0 * allowed) + 0.5 * allowed)], abs=5e-3)


def test_the_solution_stays_within_bounds_of_the_variables(solver: Solver) -> None:
    bound = solver.bound(at(2.0)[None])[0]
    found = solver.solve(bound, np.array([0.2, 0.2]), Region(np.array([0.0, 0.1]), np.array([0.4, 0.3])))
    assert found.x == pytest.approx([0.4, 0.3], abs=1e-6)


# ---- margins and probabilities


@pytest.mark.parametrize("limit", [0.4, 1.0, 1.4])
def test_an_answer_has_the_probability_asked_for_and_no_more_than_it_needs(
    evaluations: Evaluations, limit: float
) -> None:
    """Known deviations: the margin is the quantile of the normal distribution, and the price is paid in the objective."""
    posterior = unsure(posterior_of(evaluations, DEFAULT), 0.05)
    solver = Solver(posterior)
    bound = solver.bound(at(limit)[None])[0]
    objectives = []
    for probability in (0.5, 0.8, 0.9, 0.98, 0.999):
        found = solver.predict(bound, probability)
        assert found.probability >= probability - 1e-4
        sum_ = found.x.sum()
        std = float(solver.pointwise.std(found.x)[1] * posterior.surrogates.scale[1])
        assert found.probability == pytest.approx(float(STUDENT.cdf((limit - sum_) / std)), abs=2e-3)
        objectives.append(found.objective)
    assert found.probability == pytest.approx(0.999, abs=2e-4)  # the last one is beyond what its price would pay for
    assert (np.diff(objectives) >= -1e-9).all()
    assert objectives[-1] > objectives[0]


def test_a_cheap_margin_is_taken_even_if_nobody_asked(evaluations: Evaluations) -> None:
    """Where the limit costs nothing, the answer keeps well away from it."""
    solver = Solver(unsure(posterior_of(evaluations, DEFAULT), 0.05))
    costly, cheap = (solver.predict(solver.bound(at(limit)[None])[0], 0.5) for limit in (0.5, 1.499))
    assert cheap.probability > 0.99
    assert 0.5 <= costly.probability < cheap.probability


def test_deviations_balance_price_and_probability(solver: Solver) -> None:
    std = np.array([[0.1], [1e-3]])
    lam = np.array([[2.0], [2.0]])
    beta = solver.deviations(std, lam, 1e-9)
    assert solver.price * STUDENT.pdf(beta) == pytest.approx(lam * std, rel=1e-9)  # L p(beta) = lam s
    for probability in (0.9, 0.98):
        more = solver.deviations(np.array([10.0, 10.0]), np.array([1.0, 5.0]), probability)
        assert np.prod(STUDENT.cdf(more)) == pytest.approx(probability, abs=1e-9)
        assert more[0] > more[1]  # the more expensive margin is the smaller one
    many = solver.deviations(np.array([[0.1, 0.2], [1.0, 2.0]]), np.array([[1.0, 1.0], [0.5, 0.0]]), 0.98)
    for i, (s, m) in enumerate([([0.1, 0.2], [1.0, 1.0]), ([1.0, 2.0], [0.5, 0.0])]):
        assert solver.deviations(np.array(s), np.array(m), 0.98) == pytest.approx(many[i], abs=1e-9)


def test_two_limits_on_one_output_are_an_interval() -> None:
    solver = Solver(unsure(posterior_of(evaluated(valley(), simulate_valley, 20), DEFAULT), 0.8))
    bound = solver.bound(np.array([[1.0, 0.5]]))[0]
    for x in (np.array([0.5, 0.5]), np.array([0.9, 0.95])):
        z, s = solver.pointwise.mean_and_jacobian(x)[0], solver.pointwise.std(x)
        inside = solver.probability(bound, x)
        room = (bound - solver.sign * z[solver.output]) / s[solver.output]
        assert inside == pytest.approx(
            STUDENT.cdf(room[0]) * max(0.0, STUDENT.cdf(room[2]) - STUDENT.cdf(-room[1])), abs=1e-12
        )


def test_margins_that_settle_short_of_the_probability_are_widened(evaluations: Evaluations) -> None:
    aims = []

    class Short(Solver):
        def solve_with_margins(
            self, bound: FloatArray, solution: Solution, probability: float, region: Region = CUBE
        ) -> Solution:
            aims.append(probability)
            return super().solve_with_margins(bound, solution, 1.0 - 2.0 * (1.0 - probability), region)

    posterior = posterior_of(evaluations, DEFAULT)
    wide = replace(
        posterior, surrogates=calibrated(posterior.surrogates, torch.tensor([1.0, 1e4], dtype=torch.float64))
    )
    solver = Short(wide)
    solver.price = 1e-9  # An infeasible answer costs nothing: margins are just as wide as the probability asks for.
    found = solver.predict(solver.bound(at(1.0)[None])[0], 0.9)
    assert aims[0] == 0.9
    assert len(aims) > 1
    assert found.probability >= 0.9 - 1e-6


# ---- the incumbent


def test_a_prediction_short_of_the_probability_does_not_replace_the_incumbent(evaluations: Evaluations) -> None:
    class Short(Solver):
        def predict(self, bound: FloatArray, probability: float) -> SolverAnswer:
            return SolverAnswer(np.array([0.5, 0.5]), -10.0, probability - 0.01)

    (found,) = Short(posterior_of(evaluations, DEFAULT)).answers(asked(disc(), at(1.0)[None]), 0.98)
    assert found.measured is not None
    assert found.probability == 1.0


def test_a_measured_design_is_returned_unless_the_solver_promises_more(evaluations: Evaluations) -> None:
    point = {"a": 0.55, "b": 0.45}  # the optimum for a limit of 1
    best = Evaluation(100, "complete", "run", point, simulate_disc(point))
    solver = Solver(unsure(posterior_of(Evaluations(disc(), (*evaluations, best)), DEFAULT), 0.01))
    found = answer(solver, at(1.0), 0.98)
    assert found.measured == 20
    assert found.probability == 1.0
    assert found.x == pytest.approx([0.55, 0.45], abs=1e-12)
    better = answer(solver, at(1.3), 0.98)
    assert better.measured is None
    assert better.x == pytest.approx(optimum(1.3), abs=0.05)
    assert answer(solver, at(1.0 - 1e-6), 0.98).measured is None  # which the measured design does not obey


def test_a_measured_design_is_worth_what_the_risk_of_the_solvers_costs(evaluations: Evaluations) -> None:
    """It may be worse than promised by as much as an infeasible answer costs, times its probability."""
    posterior = unsure(posterior_of(evaluations, DEFAULT), 0.1)
    solver = Solver(posterior)
    found = solver.predict(solver.bound(at(1.0)[None])[0], 0.5)
    risk = solver.price * (1.0 - found.probability)
    assert risk > 0.01
    s = posterior.surrogates
    for share, measured in ((0.7, 0), (1.3, None)):
        f = (found.objective + share * risk) * float(s.scale[0]) + float(s.centre[0])
        known = Evaluation(1, "complete", "run", {"a": 0.1, "b": 0.2}, {"f": f, "c": 0.3})
        table = Evaluations(disc(), (known, *(replace(e, outputs={"f": 9.0, "c": 9.0}) for e in list(evaluations)[1:])))
        solver = Solver(replace(posterior, measured=table))
        solver.z[0, 0] = found.objective + share * risk
        assert answer(solver, at(1.0), 0.5).measured == measured


def incumbent_row(solver: Solver, theta: np.ndarray) -> int | None:
    found = solver.incumbent(asked(disc(), theta[None]), 0.98)
    return None if found is None else found.measured


def test_the_floor_is_the_best_measured_design_that_obeys_the_limits(solver: Solver, evaluations: Evaluations) -> None:
    for limit in (0.3, 0.8, 1.2, 2.0):
        obeyed = {i: e.outputs["f"] for i, e in enumerate(evaluations) if e.outputs["c"] <= limit}
        expected = min(obeyed, key=lambda i: obeyed[i]) if obeyed else None
        assert incumbent_row(solver, at(limit)) == expected
    assert incumbent_row(solver, at(-1.0)) is None
    rows = np.array([at(limit) for limit in (-1.0, 0.8, 2.0)])
    found = [None if f is None else f.measured for f in solver.incumbents(asked(disc(), rows), 0.98)]
    assert found == [None, incumbent_row(solver, at(0.8)), incumbent_row(solver, at(2.0))]


def test_what_is_only_expected_is_no_floor(evaluations: Evaluations) -> None:
    """Designs under way count as predicted, but nothing has been measured there."""
    posterior = posterior_of(evaluations, DEFAULT)
    expecting = posterior.fantasize(torch.tensor([[0.55, 0.45]], dtype=torch.float64))
    assert incumbent_row(Solver(expecting), at(1.0)) == incumbent_row(Solver(posterior), at(1.0))


# ---- what cannot be met


def test_the_least_violating_design_is_found_where_nothing_obeys(solver: Solver) -> None:
    bound = solver.bound(at(-0.5)[None])[0]
    found = solver.best(bound)
    assert not found.feasible
    assert found.x == pytest.approx([0.0, 0.0], abs=1e-6)
    s = solver.posterior.surrogates
    assert found.excess * float(s.scale[1]) == pytest.approx(0.5, abs=1e-2)


def test_nearest_weighs_violations_by_their_units() -> None:
    """Two limits that contradict each other: in the units of the second, its violation is nine times that of the first."""
    problem = Problem(
        "torn",
        [Real("a", 0.0, 1.0)],
        Objective("f"),
        [Constraint("c", "<=", low=-0.5, high=1.0), Constraint("g", "<=", low=-1.5, high=1.0)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": point["a"] ** 2, "c": point["a"], "g": -point["a"]}

    solver = Solver(posterior_of(evaluated(problem, simulate, 12), DEFAULT))
    bound = solver.bound(np.array([[0.5 / 1.5, 0.5 / 2.5]]))[0]  # a <= 0 and a >= 1
    for scale, expected in (([1.0, 1.0], 0.5), ([9.0, 1.0], 0.9), ([1.0, 9.0], 0.1)):
        found = solver.nearest(bound, np.array([0.3]), np.array(scale))
        assert found.x[0] == pytest.approx(expected, abs=2e-3)
    held = solver.nearest(bound, np.array([0.3]), np.ones(2), Region(np.array([0.0]), np.array([0.4])))
    assert held.x[0] == pytest.approx(0.4, abs=1e-6)


def test_the_closest_thresholds_are_those_that_can_just_be_met(evaluations: Evaluations) -> None:
    """c = a + b cannot be below zero; with deviations of 0.05 a limit needs a margin above that."""
    posterior = posterior_of(evaluations, DEFAULT)
    exact = Solver(posterior).closest(at(-0.8), 0.98)
    assert exact is not None
    assert exact == pytest.approx(at(0.0), abs=2e-3)
    wary = Solver(unsure(posterior, 0.05))
    relaxed = wary.closest(at(-0.8), 0.98)
    assert relaxed is not None
    std = float(wary.pointwise.std(np.zeros(2))[1] * posterior.surrogates.scale[1])
    assert relaxed == pytest.approx(at(2.054 * std), abs=2e-3)
    assert wary.predict(wary.bound(relaxed[None])[0], 0.98).probability >= 0.98 - 1e-3  # and so it is


def test_thresholds_that_can_be_met_are_closest_to_themselves(solver: Solver) -> None:
    closest = solver.closest(at(1.0), 0.98)
    assert closest == pytest.approx(at(1.0), abs=1e-6)


def test_where_no_thresholds_of_the_box_can_be_met_there_are_none_closest() -> None:
    problem = Problem("never", [Real("a", 0.0, 1.0)], Objective("f"), [Constraint("c", "<=", low=-2.0, high=-1.0)])

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": point["a"] ** 2, "c": point["a"]}

    solver = Solver(posterior_of(evaluated(problem, simulate, 10), DEFAULT))
    assert solver.closest(np.array([0.5]), 0.98) is None
    found = answer(solver, np.array([0.5]), 0.98)
    assert found.probability < 1e-6
    assert found.x == pytest.approx([0.0], abs=1e-6)


def test_only_the_limits_that_must_give_way_do() -> None:
    """Two limits, one of which can be met at no cost to the other."""
    problem = Problem(
        "apart",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("f"),
        [Constraint("c", "<=", low=-1.0, high=1.0), Constraint("g", ">=", low=0.0, high=1.0)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": point["a"] - point["b"], "c": point["a"], "g": point["b"]}

    solver = Solver(posterior_of(evaluated(problem, simulate, 15), DEFAULT))
    closest = solver.closest(np.array([0.1, 0.5]), 0.98)  # a <= -0.8, b >= 0.5
    assert closest == pytest.approx([0.5, 0.5], abs=2e-3)
    wary = Solver(unsure(solver.posterior, 0.05))
    relaxed = wary.closest(np.array([0.1, 0.5]), 0.9)
    assert relaxed is not None
    bound = wary.bound(relaxed[None])[0]
    assert wary.predict(bound, 0.9).probability == pytest.approx(0.9, abs=0.06)
    std = float(wary.pointwise.std(np.array([0.0, 0.5]))[1] * wary.posterior.surrogates.scale[1])
    assert relaxed[0] == pytest.approx(0.5 + 0.5 * STUDENT.ppf(0.9**0.5) * std, abs=2e-3)


# ---- starts, and restated problems


def test_starts_are_measured_good_and_apart(solver: Solver) -> None:
    bound = solver.bound(at(1.0)[None])[0]
    starts = solver.starts(bound, 3)
    measured = solver.posterior.surrogates.x.numpy()
    assert len(starts) == 3
    for i, x in enumerate(starts):
        assert np.abs(measured - x).max(1).min() == 0.0
        assert all(np.linalg.norm(x - other) > 0.15 for other in starts[:i])
    ranked = sorted(measured.tolist(), key=lambda x: (x[0] - 0.8) ** 2 + (x[1] - 0.7) ** 2 + 1e3 * max(0, sum(x) - 1.0))
    assert np.linalg.norm(starts[0] - optimum(1.0)) <= np.linalg.norm(np.array(ranked[3]) - optimum(1.0)) + 0.3


def test_restating_a_problem_changes_nothing() -> None:
    one = Solver(posterior_of(evaluated(valley(), simulate_valley, 20), DEFAULT))
    two = Solver(posterior_of(evaluated(mirrored(), simulate_mirrored, 20), DEFAULT))
    for theta in (np.array([0.3, 0.4]), np.array([0.9, 0.1]), np.array([0.0, 0.0])):
        a, b = answer(one, theta, 0.98), answer(two, theta, 0.98)
        assert a.x == pytest.approx(b.x, abs=1e-12)
        assert a.probability == pytest.approx(b.probability, abs=1e-12)
        assert a.measured == b.measured
