"""The network and its hand-written derivatives, against autograd and torch's own Adam."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from cbabo.network import pcm as module
from cbabo.network.pcm import PCM, Adam
from learned import SIZES, plainly, trained_looking, unit_points


def close(a: Tensor, b: Tensor, tolerance: float = 1e-12) -> bool:
    return a.shape == b.shape and bool((a - b).abs().max() <= tolerance * max(1.0, float(b.abs().max())))


@pytest.fixture(params=[(1, 1, 1), (2, 5, 3), SIZES, (10, 40, 11)], ids=str)
def pcm(request: pytest.FixtureRequest) -> PCM:
    return trained_looking(request.param)


def test_designs_and_trace_are_the_plain_network(pcm: PCM) -> None:
    theta = unit_points(7, pcm.sizes[0])
    expected = plainly(pcm.weights, pcm.sizes, theta)
    assert close(pcm.designs(theta), expected)
    assert close(pcm.trace(theta).x, expected)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 17])
def test_designs_do_not_depend_on_chunks(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pcm = trained_looking()
    theta = unit_points(count, 3)
    monkeypatch.setattr(module, "TUNING", replace(module.TUNING, chunk=8))
    x = pcm.designs(theta)
    assert x.shape == (count, 4)
    assert x.dtype == torch.float64
    assert not x.requires_grad
    assert torch.allclose(x, pcm.trace(theta).x, rtol=0, atol=1e-15)


def test_the_real_chunks_meet_without_a_seam() -> None:
    pcm = trained_looking((2, 4, 2))
    theta = unit_points(2 * module.TUNING.chunk + 3, 2)
    assert torch.allclose(pcm.designs(theta), pcm.trace(theta).x, rtol=0, atol=1e-15)


def test_designs_stay_in_the_cube_and_leave_the_thresholds_alone() -> None:
    pcm = PCM((2, 6, 3), trained_looking((2, 6, 3)).weights * 200)
    theta = unit_points(50, 2)
    before = theta.clone()
    x = pcm.designs(theta)
    assert ((x >= 0) & (x <= 1)).all()
    assert theta.equal(before)


def test_thresholds_may_be_any_view() -> None:
    pcm = trained_looking()
    theta = unit_points(3, 9).T
    assert not theta.is_contiguous()
    assert close(pcm.designs(theta), pcm.designs(theta.contiguous()))


def test_gradient_is_autograds(pcm: PCM) -> None:
    theta, p = unit_points(6, pcm.sizes[0]), unit_points(6, pcm.sizes[-1], 1) - 0.5
    weights = pcm.weights.clone().requires_grad_()
    (expected,) = torch.autograd.grad((p * plainly(weights, pcm.sizes, theta)).sum(), weights)
    assert close(pcm.trace(theta).gradient(p), expected)


def test_pull_is_autograds(pcm: PCM) -> None:
    theta, g = unit_points(6, pcm.sizes[0]).requires_grad_(), unit_points(6, pcm.sizes[-1], 1) - 0.5
    (expected,) = torch.autograd.grad((g * plainly(pcm.weights, pcm.sizes, theta)).sum(), theta)
    assert close(pcm.trace(theta.detach()).pull(g), expected)


def test_the_gradient_of_a_derivative_is_autograds(pcm: PCM) -> None:
    """d/dweights of <p, x> + <r, J t>: second derivatives of every activation are in it."""
    theta = unit_points(6, pcm.sizes[0]).requires_grad_()
    p, r = unit_points(6, pcm.sizes[-1], 1) - 0.5, unit_points(6, pcm.sizes[-1], 2) - 0.5
    t = unit_points(6, pcm.sizes[0], 3) - 0.5
    weights = pcm.weights.clone().requires_grad_()
    x = plainly(weights, pcm.sizes, theta)
    (pulled,) = torch.autograd.grad((r * x).sum(), theta, create_graph=True)
    (expected,) = torch.autograd.grad((p * x).sum() + (pulled * t).sum(), weights)
    assert close(pcm.trace(theta.detach()).gradient_with_tangent(p, r, t), expected)


def test_without_a_tangent_both_gradients_agree(pcm: PCM) -> None:
    theta, p = unit_points(4, pcm.sizes[0]), unit_points(4, pcm.sizes[-1], 1)
    trace = pcm.trace(theta)
    nothing = torch.zeros_like(theta)
    assert close(trace.gradient_with_tangent(p, p, nothing), trace.gradient(p), 1e-14)


def test_derivatives_change_nothing_that_they_are_given() -> None:
    pcm = trained_looking()
    theta, p, r, t = (unit_points(4, n, s) for s, n in enumerate((3, 4, 4, 3)))
    given = [v.clone() for v in (pcm.weights, theta, p, r, t)]
    trace = pcm.trace(theta)
    trace.pull(p), trace.gradient(p), trace.gradient_with_tangent(p, r, t), pcm.designs(theta)
    assert all(a.equal(b) for a, b in zip(given, (pcm.weights, theta, p, r, t), strict=True))


def test_a_saturated_network_has_finite_derivatives() -> None:
    pcm = PCM((2, 8, 8, 3), trained_looking((2, 8, 8, 3)).weights * 1e4)
    theta, p = unit_points(5, 2), unit_points(5, 3)
    trace = pcm.trace(theta)
    for value in (trace.pull(p), trace.gradient(p), trace.gradient_with_tangent(p, p, theta)):
        assert value.isfinite().all()


def test_an_untrained_network_is_orthogonal_inside_and_small_at_the_end() -> None:
    pcm = PCM.initial((4, 64, 64, 48, 30), seed=3)
    *hidden, (last, last_bias) = pcm.layers
    for weight, bias in hidden:
        narrow = weight if weight.shape[0] <= weight.shape[1] else weight.mT
        assert close(narrow @ narrow.mT, torch.eye(len(narrow), dtype=torch.float64), 1e-12)
        assert not bias.any()
    assert 0.009 < last.std() < 0.011
    assert abs(last.mean()) < 1e-3
    assert not last_bias.any()
    assert (pcm.designs(unit_points(100, 4)) - 0.5).abs().max() < 0.05


def test_the_papers_network_has_three_hidden_layers_of_256() -> None:
    from cbabo import Settings
    from cbabo.methods.method import layer_sizes
    from simulators import valley

    assert layer_sizes(valley(), Settings.paper()) == (2, 256, 256, 256, 2)


def test_the_seed_decides_and_the_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    one, same, other = (PCM.initial(SIZES, seed).weights for seed in (5, 5, 6))
    assert one.equal(same)
    assert not one.equal(other)
    assert torch.random.get_rng_state().equal(before)
    assert PCM.initial(SIZES, 2**63 - 1).weights.isfinite().all()  # the largest seed that a child may have


def test_adam_is_torchs() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(40, generator=generator, dtype=torch.float64)
    target = torch.nn.Parameter(start.clone())
    optimiser = torch.optim.Adam([target], lr=1.0)
    weights, adam = start.clone(), Adam.initial(start)
    for i in range(50):
        gradient = torch.randn(40, generator=generator, dtype=torch.float64) * 10.0 ** (i % 7 - 5)
        gradient[:4] = 0.0  # a weight that never matters must stay
        rate = 1e-3 * (1 + i)
        optimiser.param_groups[0]["lr"] = rate
        target.grad = gradient.clone()
        optimiser.step()
        adam = adam.step(weights, gradient, rate)
        assert close(weights, target.detach(), 1e-14)
    assert adam.steps == 50
    assert weights[:4].equal(start[:4])


def test_a_copy_of_adam_stays_as_it_was() -> None:
    weights = torch.ones(3, dtype=torch.float64)
    adam = Adam.initial(weights)
    adam.copy().step(weights, torch.ones(3, dtype=torch.float64), 0.1)
    assert (adam.steps, float(adam.first.sum()), float(adam.second.sum())) == (0, 0.0, 0.0)
    assert close(weights, torch.full((3,), 0.9, dtype=torch.float64), 1e-8)
