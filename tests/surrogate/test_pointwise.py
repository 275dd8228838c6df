"""One design at a time gives what the batch gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from derivatives import derivatives
from shapes import tensors

from cbabo.surrogate import Forms, Pointwise, Surrogates, Warp, fit


def plain() -> Surrogates:
    return fit(*tensors("three_truss", 30))


def formed() -> Surrogates:
    x, y = tensors("three_truss", 30)
    q, d = y.shape[1], x.shape[1]
    forms = Forms(
        Warp.none(torch.ones(q, dtype=torch.float64)),
        torch.arange(q) % 3,  # smooth, rough, additive
        torch.linspace(0.0, 4.0, q * d, dtype=torch.float64).view(q, d),
    )
    return forms.fit(x, y, None)


@pytest.mark.parametrize("make", [plain, formed])
def test_means_derivatives_and_deviations_are_the_batchs(make: type[Surrogates]) -> None:
    surrogates = make()
    one = Pointwise(surrogates)
    x = torch.rand(5, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (mean, std), (slope, _) = surrogates.mean_and_std(x), derivatives(surrogates, x)
    scale, centre = surrogates.scale.numpy(), surrogates.centre.numpy()
    for i in range(5):
        z, jacobian = one.mean_and_jacobian(x[i].numpy())
        np.testing.assert_allclose(z * scale + centre, mean[i].numpy(), rtol=1e-7, atol=1e-9 * scale.max())
        np.testing.assert_allclose(jacobian * scale[:, None], slope[i].numpy(), rtol=1e-6, atol=1e-7 * scale.max())
        np.testing.assert_allclose(one.std(x[i].numpy()) * scale, std[i].numpy(), rtol=1e-4, atol=1e-8 * scale.max())


def test_derivatives_of_formed_surrogates_agree_with_finite_differences() -> None:
    surrogates = formed()
    x = torch.tensor([[0.3, 0.6], [0.8, 0.1]], dtype=torch.float64)
    slope, deviation_slope = derivatives(surrogates, x)
    for i in range(2):
        step = torch.zeros_like(x)
        step[:, i] = 1e-6
        up, down = (surrogates.mean_and_std(x + s) for s in (step, -step))
        assert torch.allclose(
            slope[..., i], (up[0] - down[0]) / 2e-6, rtol=1e-4, atol=1e-4 * float(surrogates.scale.max())
        )
        assert torch.allclose(
            deviation_slope[..., i], (up[1] - down[1]) / 2e-6, rtol=1e-2, atol=1e-3 * float(surrogates.scale.max())
        )


@pytest.mark.parametrize("make", [plain, formed])
def test_the_covariance_is_that_of_values_and_difference_quotients(make: type[Surrogates]) -> None:
    """Variances by the change that a measurement of the value makes to the derivatives of the mean."""
    surrogates = make()
    one = Pointwise(surrogates)
    x = np.array([0.31, 0.62])
    found = one.covariance(x)
    np.testing.assert_allclose(found[:, 0, 0], np.square(one.std(x)), rtol=1e-3, atol=1e-9)
    h = 1e-3
    for i in range(2):
        ends = [one.std(x + sign * h * np.eye(2)[i]) for sign in (1, -1)]
        slope = (np.square(ends[0]) - np.square(ends[1])) / (2 * h)
        np.testing.assert_allclose(2.0 * found[:, 0, 1 + i], slope, rtol=0.02, atol=1e-4 * np.abs(found).max())
    assert (np.linalg.eigvalsh(found) >= -1e-9 * np.abs(found).max()).all()
    at = torch.from_numpy(x[None])
    more = surrogates.with_data(at, surrogates.mean(at) + surrogates.scale)
    before, after = (Pointwise(s).mean_and_jacobian(x)[1] for s in (surrogates, more))
    gained = found[:, 0, 1:] / found[:, :1, 0]
    noise = surrogates.hyperparameters.noise.numpy()
    small = noise < 1e-3 * found[:, 0, 0]
    np.testing.assert_allclose((after - before)[small], gained[small], rtol=0.02, atol=1e-3 * np.abs(gained).max())
