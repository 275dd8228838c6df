"""Output warps: monotonic, invertible, free of units."""

from __future__ import annotations

import torch

from cbabo.surrogate import Warp


def warp() -> Warp:
    real = {"dtype": torch.float64}
    return Warp(
        torch.tensor([1.0, -1.0, 1.0], **real),  # type: ignore[arg-type]
        torch.tensor([2.0, 0.0, 0.0], **real),  # type: ignore[arg-type]
        torch.tensor([0.5, 3.0, torch.inf], **real),  # type: ignore[arg-type]
    )


def some(n: int = 200) -> torch.Tensor:
    steps = torch.linspace(-6.0, 6.0, n, dtype=torch.float64)
    return (steps.sign() * (steps.abs().exp() - 1.0)).unsqueeze(-1).expand(n, 3)


def test_it_keeps_the_order_or_turns_it_and_can_be_undone() -> None:
    rise = warp().forward(some()).diff(dim=0)
    assert (rise[:, [0, 2]] > 0).all()
    assert (rise[:, 1] < 0).all()
    assert torch.allclose(warp().inverse(warp().forward(some())), some(), rtol=1e-12, atol=1e-12)


def test_near_its_centre_it_changes_nothing_and_far_away_it_is_logarithmic() -> None:
    at = warp().at(torch.tensor([0]))
    near = torch.tensor([[2.0], [2.001]], dtype=torch.float64)
    assert torch.allclose(at.forward(near), near, atol=1e-8)
    far = at.forward(torch.tensor([[2.0 + 1e3], [2.0 + 1e4], [2.0 + 1e5]], dtype=torch.float64)).diff(dim=0)
    assert torch.allclose(far[0], far[1], rtol=1e-5)


def test_the_slope_is_the_derivative() -> None:
    y = some().clone().requires_grad_()
    (slope,) = torch.autograd.grad(warp().forward(y).sum(), y)
    assert torch.allclose(warp().log_slope(y.detach()), slope.abs().log(), atol=1e-12)


def test_a_unit_of_a_power_of_two_changes_no_bit() -> None:
    big = Warp(warp().orientation, warp().centre * 1024, warp().width * 1024)
    assert big.forward(some() * 1024).equal(warp().forward(some()) * 1024)


def test_natural_moments_are_median_and_half_the_central_interval() -> None:
    mean, std = torch.full((1, 3), 4.0, dtype=torch.float64), torch.full((1, 3), 0.1, dtype=torch.float64)
    middle, half = warp().natural(mean, std)
    generator = torch.Generator().manual_seed(0)
    draws = warp().inverse(mean + std * torch.randn(200_000, 3, generator=generator, dtype=torch.float64))
    low, median, high = torch.quantile(draws, torch.tensor([0.1587, 0.5, 0.8413], dtype=torch.float64), dim=0)
    assert torch.allclose(middle[0], median, rtol=2e-3)
    assert torch.allclose(half[0], (high - low) / 2, rtol=2e-2)
