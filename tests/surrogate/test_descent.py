from __future__ import annotations

from itertools import pairwise

import torch

from cbabo.surrogate.descent import descend


def rosenbrock(u: torch.Tensor, problems: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Problem i is Rosenbrock's valley with its minimum at (1, 1), plus i."""
    with torch.enable_grad():
        v = u.detach().requires_grad_()
        value = (1 - v[:, 0]).square() + 10.0 * (v[:, 1] - v[:, 0].square()).square() + problems
        (gradient,) = torch.autograd.grad(value.sum(), v)
    return value.detach(), gradient


def starts() -> torch.Tensor:
    return torch.tensor([[-1.0, 1.0], [0.0, 0.0], [2.0, -1.0]], dtype=torch.float64)


def test_problems_end_at_their_own_minima_and_warm_ones_at_once() -> None:
    free = torch.full((2,), -9.0, dtype=torch.float64)
    cold = descend(rosenbrock, starts(), free, tolerance=1e-12, max_rounds=200)
    torch.testing.assert_close(cold.u, torch.ones_like(cold.u), rtol=0, atol=1e-4)
    torch.testing.assert_close(cold.value, torch.arange(3.0, dtype=torch.float64), rtol=0, atol=1e-9)
    warm = descend(rosenbrock, cold.u, free, cold.curvature, tolerance=1e-12, max_rounds=200)
    assert warm.rounds <= 3


def test_bounds_hold() -> None:
    lower = torch.tensor([1.5, -9.0], dtype=torch.float64)
    found = descend(rosenbrock, starts(), lower, tolerance=1e-12, max_rounds=200)
    torch.testing.assert_close(
        found.u, torch.tensor([[1.5, 2.25]], dtype=torch.float64).expand(3, 2), rtol=0, atol=1e-4
    )


def test_rounds_are_counted_and_limited_and_values_never_rise() -> None:
    free = torch.full((2,), -9.0, dtype=torch.float64)
    values = [descend(rosenbrock, starts(), free, tolerance=1e-12, max_rounds=r).value for r in range(1, 12)]
    assert all((b <= a).all() for a, b in pairwise(values))
    assert descend(rosenbrock, starts(), free, tolerance=1e-12, max_rounds=4).rounds == 4


def test_where_there_is_no_value_a_step_is_shortened_and_a_start_is_reported() -> None:
    def walled(u: torch.Tensor, problems: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        value, gradient = rosenbrock(u, problems)
        return torch.where(u[:, 0] > 0.8, torch.inf, value), gradient

    free = torch.full((2,), -9.0, dtype=torch.float64)
    found = descend(walled, starts(), free, tolerance=1e-10, max_rounds=200)
    assert found.value[:2].isfinite().all()
    assert (found.u[:2, 0] <= 0.8).all()
    assert found.value[2] == torch.inf


def test_a_spoilt_curvature_starts_again() -> None:
    free = torch.full((2,), -9.0, dtype=torch.float64)
    spoilt = -torch.eye(2, dtype=torch.float64).repeat(3, 1, 1)
    found = descend(rosenbrock, starts(), free, spoilt, tolerance=1e-12, max_rounds=300)
    torch.testing.assert_close(found.u, torch.ones_like(found.u), rtol=0, atol=1e-3)
