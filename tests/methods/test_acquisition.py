"""LogcEI: against integrals, against BoTorch, and its maximisation in a box."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from torch import Tensor

from cbabo import Constraint, Objective, Problem, Real, problems
from cbabo.methods.acquisition import log_constrained_improvement, log_improvement, maximise, value_and_gradient
from cbabo.numerics.quasirandom import sobol
from cbabo.surrogate import Surrogates
from cbabo.surrogate.limits import Limits
from learned import evaluated, surrogates_of, unit_points
from simulators import make_beam, mirrored, simulate_beam, simulate_mirrored, simulate_valley, valley


def reference(u: float) -> float:
    """log(phi(u) + u Phi(u)): directly, as an integral without cancellation, or as its series in the far tail."""
    log_density = -0.5 * u * u - 0.5 * math.log(2 * math.pi)
    if u > 0:
        return math.log(math.exp(log_density) + u * ndtr(u))
    if u > -50:
        area, _ = quad(lambda t: t * math.exp(-0.5 * t * t + u * t), 0, 40 / (1 - u), epsabs=0, epsrel=1e-13, limit=200)
        return log_density + math.log(area)
    s = 1 / (u * u)
    return log_density + math.log(s) + math.log1p(-3 * s + 15 * s**2 - 105 * s**3 + 945 * s**4)


GRID = [-1e6, -1e5, -12345.6, -1001.0, -1000.0, -999.0, -500.0, -100.0, -50.1, -49.9, -20.0, -7.3, -3.0, -1.5, -1.0001,
        -1.0, -0.9999, -0.5, -1e-9, 0.0, 1e-9, 0.3, 1.0, 5.0, 12.0, 40.0]  # fmt: skip


@pytest.mark.parametrize("u", GRID)
def test_the_logarithm_of_an_improvement_keeps_its_digits(u: float) -> None:
    found = float(log_improvement(torch.tensor([u], dtype=torch.float64))[0])
    assert found == pytest.approx(reference(u), rel=1e-11, abs=1e-11)


def test_it_rises_everywhere_and_its_slope_is_finite_and_falls() -> None:
    u = torch.from_numpy(np.concatenate([-np.logspace(6, -6, 800), np.logspace(-6, math.log10(40), 200)]))
    u.requires_grad_()
    value = log_improvement(u)
    (slope,) = torch.autograd.grad(value.sum(), u)
    assert value.isfinite().all()
    assert slope.isfinite().all()
    assert (slope > 0).all()
    assert (value.diff() > 0).all()
    assert (slope.diff() <= 1e-9 * slope[:-1]).all()  # the logarithm of an expected improvement is concave


@pytest.mark.parametrize("u", [-9e5, -2000.0, -300.0, -30.0, -2.0, -0.7, 0.0, 2.0, 30.0])
def test_its_slope_is_that_of_the_formula(u: float) -> None:
    """d/du log h(u) = Phi(u) / h(u)."""
    at = torch.tensor([u], dtype=torch.float64, requires_grad=True)
    value = log_improvement(at)
    (slope,) = torch.autograd.grad(value.sum(), at)
    expected = math.exp(float(log_ndtr(u)) - reference(u)) if u > -100 else -u - 2 / u
    assert float(slope) == pytest.approx(expected, rel=1e-6)


def test_far_out_nothing_breaks() -> None:
    u = torch.tensor([-1e150, -1e9, 1e9, 1e300], dtype=torch.float64, requires_grad=True)
    value = log_improvement(u)
    (slope,) = torch.autograd.grad(value.sum(), u)
    assert not value.isnan().any()
    assert not slope.isnan().any()
    assert float(value[3].detach()) == pytest.approx(math.log(1e300))


# ---- against BoTorch


@dataclass(frozen=True)
class Case:
    problem: Problem
    surrogates: Surrogates
    limits: Limits
    x: Tensor
    best: float
    theta: Tensor


def case(name: str) -> Case:
    if name == "valley":
        problem, evaluations = valley(), evaluated(valley(), simulate_valley, 15)
    elif name == "mirrored":
        problem, evaluations = mirrored(), evaluated(mirrored(), simulate_mirrored, 15)
    else:
        shipped = problems.get(name)
        problem = shipped.problem
        evaluations = evaluated(problem, shipped.evaluate, 30)
    theta = torch.full((1, len(problem.box.names)), 0.6, dtype=torch.float64)
    best = float(np.median(problem.objective.sign * evaluations.y[:, 0]))
    x = unit_points(100, problem.space.dimension, 5)
    return Case(problem, surrogates_of(evaluations), Limits.of(problem), x, best, theta)


CASES = ["valley", "mirrored", "three_truss", "gkxwc2", "pressure_vessel"]


@pytest.fixture(scope="module", params=CASES)
def a_case(request: pytest.FixtureRequest) -> Case:
    return case(request.param)


def intervals(case: Case) -> dict[int, list[float | None]]:
    """The limits at theta as BoTorch wants them: for every output a lower and an upper end."""
    found: dict[int, list[float | None]] = {}
    bound = case.limits.bound(case.theta)[0]
    for output, sign, value in zip(case.limits.output.tolist(), case.limits.sign.tolist(), bound.tolist(), strict=True):
        ends = found.setdefault(output, [None, None])
        ends[1 if sign > 0 else 0] = sign * value
    return found


@pytest.mark.filterwarnings("ignore")
def test_it_is_botorchs(a_case: Case) -> None:
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement

    torch.set_default_dtype(torch.float64)  # BoTorch keeps limits and incumbent in this precision
    try:
        theirs = LogConstrainedExpectedImprovement(
            a_case.surrogates.to_botorch(),
            best_f=a_case.limits.goal * a_case.best,
            objective_index=0,
            constraints=intervals(a_case),
            maximize=a_case.limits.goal < 0,
        )
        with torch.no_grad():
            expected = theirs(a_case.x.unsqueeze(1))
    finally:
        torch.set_default_dtype(torch.float32)
    mean, std = a_case.surrogates.mean_and_std(a_case.x)
    found = log_constrained_improvement(mean, std, a_case.limits, a_case.theta, a_case.best)
    assert found.shape == (100,)
    assert found.isfinite().all()
    assert float(found.max() - found.min()) > 1.0
    assert torch.allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_with_nothing_feasible_it_is_the_probability_of_feasibility(a_case: Case) -> None:
    mean, std = a_case.surrogates.mean_and_std(a_case.x)
    found = log_constrained_improvement(mean, std, a_case.limits, a_case.theta, None)
    assert found.equal(a_case.limits.log_normal_probability(mean, std, a_case.theta.expand(100, -1)))


@pytest.mark.parametrize("with_best", [True, False])
def test_value_and_gradient_against_differences(a_case: Case, with_best: bool) -> None:
    best = a_case.best if with_best else None
    x = 0.05 + 0.9 * a_case.x[:20]

    def function(x: Tensor) -> Tensor:
        return log_constrained_improvement(*a_case.surrogates.mean_and_std(x), a_case.limits, a_case.theta, best)

    value, gradient = value_and_gradient(a_case.surrogates, a_case.limits, a_case.theta, best, x)
    assert torch.allclose(value, function(x), rtol=1e-12)
    assert not value.requires_grad
    for i in range(x.shape[1]):
        step = torch.zeros(x.shape[1], dtype=torch.float64)
        step[i] = 1e-5
        by_difference = (function(x + step) - function(x - step)) / 2e-5
        scale = gradient.norm(dim=1) + 1e-3 * value.abs() + 1e-3
        assert ((by_difference - gradient[:, i]).abs() <= 2e-4 * scale).all()


def test_restating_a_problem_changes_nothing() -> None:
    a, b = case("valley"), case("mirrored")
    one = value_and_gradient(a.surrogates, a.limits, a.theta, a.best, a.x)
    two = value_and_gradient(b.surrogates, b.limits, b.theta, b.best, b.x)
    assert torch.allclose(one[0], two[0], rtol=1e-9)
    assert torch.allclose(one[1], two[1], rtol=1e-6, atol=1e-9)


# ---- its maximum


def box_around(x: Tensor, radius: float) -> tuple[Tensor, Tensor]:
    return (x - radius).clamp_min(0.0), (x + radius).clamp_max(1.0)


@pytest.mark.parametrize("with_best", [True, False])
def test_the_maximum_is_in_the_box_and_beats_every_sample(a_case: Case, with_best: bool) -> None:
    best = a_case.best if with_best else None
    d = a_case.x.shape[1]
    lower, upper = box_around(a_case.x[0], 0.25)
    extra = a_case.x[:1]
    found = maximise(a_case.surrogates, a_case.limits, a_case.theta, best, lower, upper, extra, seed=3)
    assert found.shape == (d,)
    assert ((found >= lower) & (found <= upper)).all()

    def value(x: Tensor) -> Tensor:
        return log_constrained_improvement(*a_case.surrogates.mean_and_std(x), a_case.limits, a_case.theta, best)

    sample = torch.cat([lower + sobol(d, 3, 512) * (upper - lower), lower + sobol(d, 8, 2048) * (upper - lower), extra])
    assert value(found.unsqueeze(0)) >= value(sample).max() - 1e-6
    again = maximise(a_case.surrogates, a_case.limits, a_case.theta, best, lower, upper, extra, seed=3)
    assert again.equal(found)


def test_the_known_maximum_of_a_known_problem() -> None:
    """Minimise x with x >= 0.5, the incumbent at 0.7: the best next design is close to the limit, on its safe side."""
    problem = Problem("line", [Real("x", 0, 1)], Objective("f"), [Constraint("c", ">=", low=0.0, high=1.0)])
    surrogates = surrogates_of(evaluated(problem, lambda p: {"f": p["x"], "c": p["x"]}, 10))
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    theta = torch.tensor([[0.5]], dtype=torch.float64)
    nothing = torch.empty(0, 1, dtype=torch.float64)
    found = maximise(surrogates, Limits.of(problem), theta, 0.7, zero, one, nothing, seed=0)
    assert 0.5 <= float(found) < 0.53


def test_a_box_without_extent_in_some_direction(a_case: Case) -> None:
    lower, upper = box_around(a_case.x[0], 0.25)
    upper[0] = lower[0]
    found = maximise(a_case.surrogates, a_case.limits, a_case.theta, a_case.best, lower, upper, a_case.x[:0], seed=0)
    assert found[0] == lower[0]


def test_limits_that_contradict_each_other_still_give_a_design() -> None:
    """Nothing can obey them, so every design is as good; the caller's evaluations must not end in an error."""
    problem = Problem(
        "band",
        [Real("x", 0, 1), Real("y", 0, 1)],
        Objective("f"),
        [
            Constraint("low", ">=", low=0.0, high=1.0, outputs="y1"),
            Constraint("top", "<=", low=0.0, high=1.0, outputs="y1"),
        ],
    )
    surrogates = surrogates_of(evaluated(problem, lambda p: {"f": p["x"], "y1": p["y"]}, 8))
    theta = torch.tensor([[0.2, 0.2]], dtype=torch.float64)  # at least 0.8 and at most 0.2
    zero, one = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    for best in (None, 0.3):
        found = maximise(surrogates, Limits.of(problem), theta, best, zero, one, zero.unsqueeze(0), seed=0)
        assert ((found >= 0) & (found <= 1)).all()


def test_an_integer_among_the_variables_is_relaxed_here(beam: Problem) -> None:
    surrogates = surrogates_of(evaluated(make_beam(), simulate_beam, 15))
    theta = torch.full((1, 2), 0.5, dtype=torch.float64)
    zero, one = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    found = maximise(surrogates, Limits.of(beam), theta, 5.0, zero, one, zero.unsqueeze(0), seed=0)
    assert found.isfinite().all()
