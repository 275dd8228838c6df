"""Surrogates handed over to BoTorch: the same posterior, whatever form the outputs have."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from derivatives import derivatives
from shapes import tensors

from cbabo.surrogate import Forms, Surrogates, Warp
from cbabo.surrogate.kernel import ADDITIVE, ROUGH, SMOOTH
from cbabo.surrogate.posterior import calibrated, measured_kappa


def points(b: int, d: int, seed: int = 5) -> torch.Tensor:
    return torch.rand(b, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def formed(name: str, family: int, stretch: float = 0.0, n: int = 40) -> tuple[Surrogates, Warp]:
    """Surrogates in which every second output is warped, and the third has its sign turned."""
    x, y = tensors(name, n)
    q, d = y.shape[1], x.shape[1]
    orientation = torch.ones(q, dtype=torch.float64)
    orientation[2] = -1.0
    turned = orientation * y
    width = torch.full((q,), torch.inf, dtype=torch.float64)
    width[1::2] = 0.5 * y.std(0)[1::2]
    warp = Warp(orientation, torch.where(width.isfinite(), turned.median(0).values, 0.0), width)
    forms = Forms(warp, torch.full((q,), family), torch.full((q, d), stretch, dtype=torch.float64))
    fitted = forms.fit(x, y, None)
    return calibrated(fitted, measured_kappa(fitted, 30)), warp


CASES = [("three_truss", SMOOTH, 0.0), ("three_truss", ROUGH, 2.0), ("car", SMOOTH, 2.0), ("car", ADDITIVE, 0.0)]


@pytest.mark.parametrize(("name", "family", "stretch"), CASES)
def test_the_posterior_is_the_same_as_learned(name: str, family: int, stretch: float) -> None:
    s, _ = formed(name, family, stretch)
    x = points(30, s.x.shape[1])
    with torch.no_grad():
        posterior = s.to_botorch().posterior(x, observation_noise=True)
    mean, std = s.mean_and_std(x)
    assert ((mean - posterior.mean) / s.scale).abs().max() < 1e-6
    assert ((std - posterior.variance.sqrt()) / s.scale).abs().max() < 1e-6


@pytest.mark.parametrize(("name", "family", "stretch"), CASES)
def test_with_the_warp_it_is_in_natural_units(name: str, family: int, stretch: float) -> None:
    s, warp = formed(name, family, stretch)
    x = points(30, s.x.shape[1])
    with torch.no_grad():
        posterior = s.to_botorch(warp).posterior(x, observation_noise=True)
    mean, std = warp.natural(*s.mean_and_std(x))
    unit = warp.inverse(s.y).std(0)
    assert ((mean - posterior.mean) / unit).abs().max() < 1e-6
    assert ((std - posterior.variance.sqrt()) / unit).abs().max() < 1e-6


def test_at_the_data_it_is_what_was_measured() -> None:
    s, warp = formed("three_truss", SMOOTH)
    with torch.no_grad():
        mean = s.to_botorch(warp).posterior(s.x).mean
    y = warp.inverse(s.y)
    assert ((mean - y) / y.std(0))[:, 0].abs().max() < 1e-4  # the objective, which has no poles


def test_samples_are_natural_and_have_the_posteriors_median() -> None:
    s, warp = formed("three_truss", SMOOTH, n=12)
    x = points(3, 2)
    model = s.to_botorch(warp)
    torch.manual_seed(0)
    with torch.no_grad():
        for j, single in enumerate(model.models):
            posterior = single.posterior(x, observation_noise=True)
            samples = posterior.rsample(torch.Size([4000]))
            mean, std = warp.natural(*s.mean_and_std(x))
            distance = (samples.median(0).values.squeeze(-1) - mean[:, j]).abs()
            assert bool((distance <= 0.1 * std[:, j] + 1e-12).all())


def test_acquisition_functions_take_it() -> None:
    s, warp = formed("three_truss", SMOOTH)
    x = points(4, 2).unsqueeze(1).requires_grad_()
    model = s.to_botorch(warp)
    value = LogExpectedImprovement(model.models[0], best_f=float(s.y[:, 0].median()), maximize=False)(x)
    assert value.shape == (4,)
    (slope,) = torch.autograd.grad(value.sum(), x)
    assert bool(slope.isfinite().all())
    least = GenericMCObjective(lambda y, X=None: -y[..., 1])
    both = qLogExpectedImprovement(model, best_f=0.0, objective=least)(points(6, 2).reshape(3, 2, 2))
    assert both.shape == (3,)
    assert bool(both.isfinite().all())


@pytest.mark.parametrize(("name", "family", "stretch"), CASES)
def test_autograd_agrees_with_derivatives_written_out(name: str, family: int, stretch: float) -> None:
    s, _ = formed(name, family, stretch)
    x = torch.cat([points(6, s.x.shape[1]), s.x[:2]]).requires_grad_()  # at measured designs, too
    mean, std = s.mean_and_std(x)
    dmean, dstd = derivatives(s, x.detach())
    for j in range(mean.shape[1]):
        (expected,) = torch.autograd.grad(mean[:, j].sum(), x, retain_graph=True)
        assert ((expected - dmean[:, j]) / s.scale[j]).abs().max() < 1e-6
        (expected,) = torch.autograd.grad(std[:6, j].sum(), x, retain_graph=True)
        assert ((expected - dstd[:, j])[:6] / s.scale[j]).abs().max() < 1e-5
