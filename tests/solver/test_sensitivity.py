"""How the optimum changes with its limits: against difference quotients of optima that are solved anew."""

from __future__ import annotations

import numpy as np
import pytest

from cbabo import Settings
from cbabo.numerics.arrays import FloatArray
from cbabo.solver.categorical import solver_for
from cbabo.solver.continuous import Solver
from cbabo.solver.sensitivity import Sensitivity
from learned import edged, evaluated, posterior_of
from simulators import make_beam, simulate_beam, simulate_valley, valley

DEFAULT = Settings.default()


@pytest.fixture(scope="module")
def solver() -> Solver:
    return solver_for(posterior_of(evaluated(valley(), simulate_valley, 30), DEFAULT))


def optimum(solver: Solver, theta: FloatArray) -> Sensitivity:
    best = solver.best(solver.bound(theta[None])[0])
    return Sensitivity(solver, theta, best.x)


def objective(solver: Solver, theta: FloatArray, start: FloatArray) -> float:
    x = Sensitivity(solver, theta, start).x
    return solver.goal * float(solver.pointwise.mean_and_jacobian(x)[0][0])


@pytest.mark.parametrize("theta", [[0.5, 0.5], [0.7, 0.3], [0.4, 0.9], [1.0, 1.0]])
def test_gains_are_derivatives_of_the_optimum(solver: Solver, theta: list[float]) -> None:
    found, h = optimum(solver, np.array(theta)), 1e-4
    for j in range(2):
        step = h * np.eye(2)[j]
        change = objective(solver, theta - step, found.x) - objective(solver, theta + step, found.x)
        assert found.gain[j] == pytest.approx(change / (2 * h), rel=2e-3, abs=1e-4)
    assert (found.gain >= 0.0).all()


def test_the_same_limits_bind_inside_the_range_and_others_beyond_it(solver: Solver) -> None:
    theta = np.array([0.7, 0.3])
    found = optimum(solver, theta)
    low, high = found.ranges()
    now = found.binding(found.lam[None])[0]
    assert ((low <= theta) & (theta <= high)).all()
    changed = 0
    for j in range(2):
        for end, sign in ((low[j], -1.0), (high[j], 1.0)):
            inside, beyond = theta.copy(), theta.copy()
            inside[j], beyond[j] = end - 0.02 * sign, end + 0.02 * sign
            if sign * (inside[j] - theta[j]) > 0:
                other = Sensitivity(solver, inside, found.x)
                assert (other.binding(other.lam[None])[0] == now).all()
            if 0.0 < end < 1.0:
                other = Sensitivity(solver, beyond, found.x)
                over = solver.sign * solver.pointwise.mean_and_jacobian(other.x)[0][solver.output]
                unmet = bool((over > solver.bound(beyond[None])[0] + 1e-3).any())
                assert unmet or (other.binding(other.lam[None])[0] != now).any()
                changed += 1
    assert changed


def test_deviations_grow_with_the_uncertainty() -> None:
    theta = np.array([0.5, 0.5])
    few, many = (
        optimum(solver_for(posterior_of(evaluated(valley(), simulate_valley, n), DEFAULT)), theta).gain_std
        for n in (8, 40)
    )
    assert (many <= few).all()
    assert many.max() < 0.2 * few.max()


def test_optima_on_the_edges_of_the_cube_have_gains_too() -> None:
    solver = solver_for(posterior_of(edged(), DEFAULT))
    theta = np.array([0.5, 0.5, 0.5])
    found, h = optimum(solver, theta), 1e-4
    for j in range(3):
        step = h * np.eye(3)[j]
        change = objective(solver, theta - step, found.x) - objective(solver, theta + step, found.x)
        assert found.gain[j] == pytest.approx(change / (2 * h), rel=0.02, abs=1e-3)


def test_discrete_variables_keep_their_values() -> None:
    solver = solver_for(posterior_of(evaluated(make_beam(), simulate_beam, 30), DEFAULT))
    theta = np.array([0.5, 0.5])
    start = solver.best(solver.bound(theta[None])[0]).x
    found = Sensitivity(solver, theta, start)
    assert found.x[1] == start[1]
    assert found.has_free_variables
