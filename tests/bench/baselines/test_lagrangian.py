"""ALBO: the augmented Lagrangian, its coefficients, its expected improvement."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cbabo import problems
from cbabo.bench.baselines.lagrangian import Lagrangian, expected_improvement, lower_mean
from cbabo.bench.baselines.sequential import Task, initial_data

SOME = Lagrangian(np.array([1.0, 10.0]), np.array([2.0, 0.5, 4.0]), np.array([0.3, 0.0]), 0.25)
"""f over 2; c_1 <= 1 in units of 0.5, with a multiplier; c_2 <= 10 in units of 4."""


def normal(count: int, q: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((count, q)))


def test_its_value() -> None:
    y = np.array([[4.0, 0.5, 6.0], [4.0, 2.0, 14.0]])
    g = np.array([[-1.0, -1.0], [2.0, 1.0]])
    assert SOME.violations(y) == pytest.approx(g)
    assert SOME.of(y) == pytest.approx([2.0 - 0.3, 2.0 + 0.6 + (4.0 + 1.0) / 0.5])


def test_coefficients_after_an_infeasible_and_after_a_feasible_minimiser() -> None:
    after = SOME.updated(np.array([4.0, 2.0, 6.0]), feasible=False)
    assert after.multipliers == pytest.approx([0.3 + 2.0 / 0.25, 0.0])
    assert after.rho == 0.125
    after = SOME.updated(np.array([4.0, 0.99, 6.0]), feasible=True)
    assert after.multipliers == pytest.approx([0.3 - 0.02 / 0.25, 0.0])
    assert after.rho == 0.25


def test_rho_is_halved_no_further_than_to_a_floor() -> None:
    found = SOME
    for _ in range(100):
        found = found.updated(np.array([4.0, 2.0, 6.0]), feasible=False)
    assert 0.0 < found.rho < 1e-6
    assert np.isfinite(found.multipliers).all()


def test_the_first_coefficients() -> None:
    shipped = problems.get("gkxwc1")
    task = Task(shipped, np.array([0.5]), 0)
    y = np.array([[0.0, 0.0], [1.0, 0.4], [2.0, 1.0], [3.0, 2.0]])
    found = Lagrangian.first(task, y)
    assert found.multipliers.tolist() == [0.0]
    f, g = y[:, 0] / y[:, 0].std(), found.violations(y)[:, 0]
    assert found.rho == pytest.approx(g[2] ** 2 / (2.0 * (np.median(f) - f[0])))
    assert Lagrangian.first(task, y[2:]).rho == 1.0  # nothing feasible
    assert Lagrangian.first(task, y[:2]).rho == 1.0  # everything feasible
    assert Lagrangian.first(task, np.ones((3, 2))).scale.tolist() == [1.0, 1.0]  # constant outputs


def test_scales_do_not_follow_a_pole() -> None:
    data = initial_data(problems.get("three_truss"), 0)
    scale = Lagrangian.first(Task(problems.get("three_truss"), np.full(3, 5.0), 0), data.y).scale
    assert (scale[1:] < data.y[:, 1:].std(axis=0)).all()
    assert (scale > 0).all()


@pytest.mark.parametrize("best", [-1.0, 1.0, 5.0])
def test_improvement_and_its_derivatives_are_means_over_the_samples(best: float) -> None:
    eps = normal(256, 3)
    mean = normal(10, 3) + torch.tensor([2.0, 1.0, 10.0])
    std = normal(10, 3).abs() + 0.1
    mean.requires_grad_()
    std.requires_grad_()
    samples = mean.unsqueeze(1) + std.unsqueeze(1) * eps
    limits, scale, multipliers = (torch.from_numpy(a) for a in (SOME.limits, SOME.scale, SOME.multipliers))
    g = (samples[..., 1:] - limits) / scale[1:]
    L = samples[..., 0] / scale[0] + g @ multipliers + g.clamp_min(0.0).square().sum(-1) / (2.0 * SOME.rho)
    assert L.detach().numpy().ravel() == pytest.approx(SOME.of(samples.detach().numpy().reshape(-1, 3)))
    for criterion, expected in (
        (expected_improvement(SOME, best, eps), (best - L).clamp_min(0.0).mean(1)),
        (lower_mean(SOME, eps), -L.mean(1)),
    ):
        by_mean, by_std = torch.autograd.grad(expected.sum(), (mean, std), retain_graph=True)
        value, on_mean, on_std = criterion(mean.detach(), std.detach())
        assert torch.allclose(value, expected)
        assert torch.allclose(on_mean, by_mean)
        assert torch.allclose(on_std, by_std)
