"""The crossing from a stated problem to tensors: signs, bounds, excesses and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t
from torch import Tensor

from cbabo import Constraint, Objective, Problem, Real
from cbabo.surrogate.limits import Limits, student_margin, student_probability, student_quantile
from learned import evaluated
from simulators import mirrored, simulate_mirrored, simulate_valley, valley

STUDENT = t(4, scale=np.sqrt(0.5))


def problem(*constraints: Constraint, direction: str = "minimize") -> Problem:
    return Problem("p", [Real("x", 0, 1)], Objective("f", direction=direction), constraints)  # type: ignore[arg-type]


def tensor(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


MIXED = problem(
    Constraint("up", "<=", low=2.0, high=10.0),
    Constraint("down", ">=", low=20.0, high=60.0),
    Constraint("fixed", "<=", limit=12.0),
    Constraint("floor", ">=", limit=-3.0),
    Constraint("members", "<=", low=1.0, high=3.0, outputs=["s1", "s2", "s3"]),
    Constraint("down_top", "<=", low=80.0, high=99.0, outputs="down"),
    direction="maximize",
)
"""Outputs f, up, down, fixed, floor, s1, s2, s3; thresholds up, down, members, down_top."""


def test_every_output_that_must_obey_a_limit_is_one_requirement() -> None:
    limits = Limits.of(MIXED)
    assert limits.goal == -1.0
    assert limits.output.tolist() == [1, 2, 3, 4, 5, 6, 7, 2]
    assert limits.sign.tolist() == [1, -1, 1, -1, 1, 1, 1, 1]
    assert limits.span.tolist() == [8, 40, 0, 0, 2, 2, 2, 19]
    assert limits.threshold[limits.span > 0].tolist() == [0, 1, 2, 2, 2, 3]


def test_bounds_run_from_the_strictest_to_the_most_relaxed() -> None:
    limits = Limits.of(MIXED)
    bound = limits.bound(tensor([0, 0, 0, 0], [1, 1, 1, 1], [0.25, 0.5, 0, 1]))
    assert bound[0].tolist() == [2, -60, 12, 3, 1, 1, 1, 80]
    assert bound[1].tolist() == [10, -20, 12, 3, 3, 3, 3, 99]
    assert bound[2].tolist() == [4, -40, 12, 3, 1, 1, 1, 99]
    assert (bound[1] >= bound[0]).all()  # relaxing never takes anything away


def test_excess_adds_deviations_on_the_side_that_hurts() -> None:
    limits = Limits.of(MIXED)
    mean = tensor([100.0, 5.0, 35.0, 12.0, -4.0, 1.0, 2.5, 3.0])
    std = tensor([1.0, 2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    theta = tensor([0.5, 0.5, 0.5, 0.5])  # up <= 6, down >= 40, members <= 2, down_top <= 89.5
    assert limits.excess(mean, std, theta, 0.5)[0].tolist() == [0.0, 7.0, 0.0, 1.0, -1.0, 0.5, 1.0, -52.5]
    assert limits.lower_objective(mean, std, 0.5).tolist() == [-100.5]  # maximised: more is less


def test_what_is_feasible_here_is_feasible_in_the_threshold_box() -> None:
    evaluations = evaluated(valley(), simulate_valley, 200)
    box = valley().box
    theta = np.random.default_rng(0).random((200, 2))
    y = torch.from_numpy(evaluations.y)
    excess = Limits.of(valley()).excess(y, torch.zeros_like(y), torch.from_numpy(theta), 0.5)
    violations = box.violations(evaluations.y, box.from_theta(theta))
    assert np.allclose(excess.numpy(), violations, rtol=0, atol=1e-12)
    feasible = box.feasible(evaluations.y, box.from_theta(theta))
    assert 10 < feasible.sum() < 190
    assert ((excess <= 1e-9).all(1).numpy() == feasible).all()


def test_restating_a_problem_changes_nothing() -> None:
    one, two = evaluated(valley(), simulate_valley, 30), evaluated(mirrored(), simulate_mirrored, 30)
    a, b = Limits.of(valley()), Limits.of(mirrored())
    std = torch.full((30, 3), 0.3, dtype=torch.float64)
    theta = torch.from_numpy(np.random.default_rng(0).random((30, 2)))
    for read in (
        lambda limits, y: limits.excess(y, std, theta, 0.5),
        lambda limits, y: limits.lower_objective(y, std, 0.5),
        lambda limits, y: limits.log_probability(y, std, theta),
    ):
        assert torch.allclose(
            read(a, torch.from_numpy(one.y)), read(b, torch.from_numpy(two.y)), rtol=1e-12, atol=1e-12
        )


def test_probability_of_independent_limits_is_the_product() -> None:
    limits = Limits.of(problem(Constraint("u", "<=", low=0.0, high=2.0), Constraint("v", ">=", low=0.0, high=2.0)))
    mean, std = tensor([9.0, 0.7, 1.5], [9.0, -3.0, 0.0]), tensor([1.0, 0.5, 2.0], [1.0, 0.1, 0.3])
    theta = tensor([0.5, 0.25], [0.0, 1.0])  # u <= 1 and v >= 1.5; u <= 0 and v >= 0
    expected = STUDENT.logcdf((1 - 0.7) / 0.5) + STUDENT.logcdf(0.0), STUDENT.logcdf(30.0) + STUDENT.logcdf(0.0)
    assert torch.allclose(limits.log_probability(mean, std, theta), tensor(list(expected))[0], rtol=1e-12)


INTERVAL = problem(
    Constraint("low", ">=", low=0.0, high=4.0, outputs="y"), Constraint("top", "<=", low=0.0, high=4.0, outputs="y")
)


def interval_probability(mean: float, std: float, low: float, high: float) -> float:
    """log P(low <= y <= high) as the package computes it, without rounding in the thresholds."""
    limits = Limits.of(INTERVAL)
    theta = tensor([(4.0 - low) / 4.0, high / 4.0])
    return float(limits.log_probability(tensor([0.0, mean]), tensor([1.0, std]), theta)[0])


@pytest.mark.parametrize(
    ("mean", "std", "low", "high"),
    [(1.0, 0.5, 0.5, 2.0), (0.0, 1.0, 1.0, 2.0), (5.0, 1.0, 1.0, 2.0), (2.0, 3.0, 1.999, 2.001), (2.0, 1e-3, 0, 4)],
)
def test_two_limits_on_one_output_are_an_interval(mean: float, std: float, low: float, high: float) -> None:
    a, b = (low - mean) / std, (high - mean) / std
    expected = STUDENT.cdf(b) - STUDENT.cdf(a) if a < 0 else STUDENT.sf(a) - STUDENT.sf(b)
    assert interval_probability(mean, std, low, high) == pytest.approx(np.log(expected), rel=1e-9, abs=1e-12)


def test_probability_agrees_with_a_simulation() -> None:
    limits = Limits.of(MIXED)
    mean = tensor([0.0, 5.0, 50.0, 11.0, -2.0, 1.5, 1.0, 2.0])
    std = tensor([1.0, 2.0, 30.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    theta = tensor([0.7, 0.4, 0.9, 0.3])
    draws = mean + std * torch.from_numpy(np.random.default_rng(1).standard_t(4, (400_000, 8)) * np.sqrt(0.5))
    obeyed = (limits.excess(draws, torch.zeros_like(draws), theta.expand(len(draws), -1), 0.0) <= 0).all(1)
    probability = float(limits.log_probability(mean, std, theta).exp()[0])
    assert 0.05 < probability < 0.95
    assert probability == pytest.approx(float(obeyed.double().mean()), abs=0.004)


def test_the_tighter_of_two_limits_counts() -> None:
    twice = problem(
        Constraint("loose", "<=", low=3.0, high=5.0, outputs="y"),
        Constraint("tight", "<=", low=0.0, high=1.0, outputs="y"),
    )
    once = problem(Constraint("tight", "<=", low=0.0, high=1.0, outputs="y"))
    mean, std = tensor([0.0, 0.3]), tensor([1.0, 0.7])
    both = Limits.of(twice).log_probability(mean, std, tensor([0.5, 0.5]))
    assert torch.allclose(both, Limits.of(once).log_probability(mean, std, tensor([0.5])), rtol=1e-15)


@pytest.mark.parametrize("z", [-1e12, -1e6, -1e3, -40.0, 0.0, 9.0, 40.0, 1e6, 1e12])
@pytest.mark.parametrize("distribution", [STUDENT, norm])
def test_tails_are_finite_and_so_are_their_derivatives(z: float, distribution: Any) -> None:
    limits = Limits.of(problem(Constraint("y", "<=", low=0.0, high=1.0)))
    mean, std = tensor([0.0, -z]).requires_grad_(), tensor([1.0, 1.0]).requires_grad_()
    log_probability = limits.log_normal_probability if distribution is norm else limits.log_probability
    value = log_probability(mean, std, tensor([0.0]))
    assert value.isfinite().all()
    assert float(value.detach()) == pytest.approx(float(distribution.logcdf(z)), rel=1e-9)
    by_mean, by_std = (float(part[0, 1]) for part in torch.autograd.grad(value.sum(), (mean, std)))
    if abs(z) < 1e3:
        slope = float(np.exp(distribution.logpdf(z) - distribution.logcdf(z)))
    else:  # SciPy's own lose their digits there.
        slope = (0.0 if z > 0 else -z - 1.0 / z) if distribution is norm else (0.0 if z > 0 else -4.0 / z)
    assert by_mean == pytest.approx(-slope, rel=1e-5, abs=1e-12)
    assert by_std == pytest.approx(-z * slope, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("probability", [1e-6, 0.2, 0.5, 0.8, 0.98, 0.999999])
def test_quantiles_and_margins_are_those_of_the_stated_distribution(probability: float) -> None:
    z = student_quantile(probability)
    assert z == pytest.approx(float(STUDENT.ppf(probability)), rel=1e-9, abs=1e-12)
    assert float(student_probability(np.array(z))) == pytest.approx(probability, rel=1e-9)
    assert float(student_margin(STUDENT.pdf(z))) == pytest.approx(abs(z), rel=1e-6, abs=1e-6)
    assert float(student_margin(np.array(1.0))) == 0.0  # A density that is never reached.


@settings(max_examples=200, deadline=None)
@given(
    centre=st.floats(-1e6, 1e6),
    width=st.floats(1e-9, 1e6),
    std=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_the_probability_of_an_interval_is_finite_and_so_are_its_derivatives(
    centre: float, width: float, std: float
) -> None:
    limits = Limits.of(
        problem(
            Constraint("low", ">=", limit=centre, outputs="y"), Constraint("top", "<=", low=0.0, high=1.0, outputs="y")
        )
    )
    theta = tensor([centre + width])
    if theta.item() <= centre:
        return
    mean, stds = tensor([0.0, 0.0]).requires_grad_(), tensor([1.0, std]).requires_grad_()
    value = limits.log_probability(mean, stds, theta)
    assert value.isfinite().all()
    assert float(value.detach()) <= 0.0
    for derivative in torch.autograd.grad(value.sum(), (mean, stds)):
        assert derivative.isfinite().all()


def test_limits_that_contradict_each_other_have_probability_zero() -> None:
    assert interval_probability(2.0, 1.0, 3.0, 1.0) == -np.inf
    assert interval_probability(2.0, 1.0, 2.0, 2.0) == -np.inf
    limits = Limits.of(INTERVAL)
    mean = tensor([0.0, 2.0]).requires_grad_()
    value = limits.log_probability(mean, tensor([1.0, 1.0]), tensor([0.25, 0.25]))
    (derivative,) = torch.autograd.grad(value.sum(), mean)
    assert not derivative.isnan().any()
