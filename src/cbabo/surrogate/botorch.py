"""Surrogates as BoTorch models, for BoTorch's acquisition functions.

Symbols and shapes as in `gp`. Plain surrogates become SingleTaskGPs with BoTorch's own kernel. Surrogates with a form (see
`forms`) keep the kernel of this package: amplitude times correlation of stretched points, with a noise variance of amplitude
times eta; their standard deviations, which include noise, are those of `posterior(x, observation_noise=True)`. Where outputs
are warped, the posterior of y is the transformed normal posterior of g(y): its samples are in natural units, and its mean and
variance are defined as in `Warp.natural`, by the median and half the width of the central 68 % interval.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.posteriors import Posterior, TransformedPosterior
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from cbabo.surrogate import kernel
from cbabo.surrogate.gp import Surrogates
from cbabo.surrogate.hyperparameters import Hyperparameters
from cbabo.surrogate.warp import Warp

# Lower bound of the noise in GPyTorch's likelihood; it must be positive and below any noise of a fit.
_MIN_NOISE = 1e-30


def as_botorch(surrogates: Surrogates, warp: Warp | None) -> ModelListGP:
    """Return BoTorch models of all outputs on unit-cube inputs; warp: the warp of the outputs, if any."""
    return ModelListGP(*(_single_output_model(surrogates, j, warp) for j in range(surrogates.y.shape[1])))


def _single_output_model(s: Surrogates, j: int, warp: Warp | None) -> SingleTaskGP:
    """Return the model of output j."""
    h = s.hyperparameters
    z = (s.y[:, j : j + 1] - s.centre[j]) / s.scale[j]
    if h.amplitude is None and h.family is None and h.stretch is None:
        model = SingleTaskGP(
            s.x,
            z,
            covar_module=get_covar_module_with_dim_scaled_prior(ard_num_dims=s.x.shape[1]),
            outcome_transform=None,
        ).to(s.x)
        model.covar_module.lengthscale = h.lengthscales[j]
        model.likelihood.noise = h.noise[j]
    else:
        likelihood = GaussianLikelihood(noise_constraint=GreaterThan(_MIN_NOISE, transform=None))
        covariance = _Covariance(h, j)
        model = SingleTaskGP(s.x, z, likelihood=likelihood, covar_module=covariance, outcome_transform=None).to(s.x)
        model.likelihood.noise = h.noise[j] * covariance.amplitude
    model.mean_module.constant = h.constant[j]
    own = Warp.none(torch.ones_like(s.scale[j : j + 1])) if warp is None else warp.at(torch.tensor([j]))
    if bool(own.curved[0]):
        model.outcome_transform = _Unwarping(own, s.centre[j], s.scale[j])
    else:
        model.outcome_transform = _standardisation(own.orientation[0] * s.centre[j], own.orientation[0] * s.scale[j])
    return model.eval()


def _standardisation(centre: Tensor, scale: Tensor) -> Standardize:
    """Return a Standardize transform with this centre and scale.

    They are set directly because after `with_data` they are not those of y, and because a negative scale inverts the sign.
    """
    transform = Standardize(m=1)
    transform.means = centre.reshape(1, 1)
    transform.stdvs = scale.reshape(1, 1)
    transform._stdvs_sq = transform.stdvs.square()
    transform._is_trained = torch.tensor(True)
    return transform


class _Covariance(Kernel):  # type: ignore[misc]
    """Kernel of one output."""

    def __init__(self, h: Hyperparameters, j: int) -> None:
        super().__init__()
        at = slice(j, j + 1)
        family, stretch = (None if part is None else part[at] for part in (h.family, h.stretch))
        self._hyperparameters = Hyperparameters(
            h.lengthscales[at], h.noise[at], h.constant[at], family=family, stretch=stretch
        )
        self.amplitude = torch.ones_like(h.noise[j]) if h.amplitude is None else h.amplitude[j]

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: Any) -> Tensor:
        """Return the covariances (... x n1 x n2) of points (... x n1 x d and ... x n2 x d), or the diagonal (... x n1)."""
        if diag:
            return self.amplitude.expand(x1.shape[:-1])
        shape = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        a, b = (self._kernel_inputs(x).expand(*shape, *x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (x1, x2))
        family = None if self._hyperparameters.family is None else self._hyperparameters.family.expand(len(a))
        lengthscales = self._hyperparameters.lengthscales.expand(len(a), -1)
        k = kernel.correlation(kernel.left(a, lengthscales), kernel.right(b, lengthscales), family)
        return self.amplitude * k.reshape(*shape, x1.shape[-2], x2.shape[-2])

    def _kernel_inputs(self, x: Tensor) -> Tensor:
        return self._hyperparameters.stretched(x)[0].reshape(x.shape)


class _Unwarping(OutcomeTransform):  # type: ignore[misc]
    """Transform from standardised warped outputs to natural units."""

    def __init__(self, warp: Warp, centre: Tensor, scale: Tensor) -> None:
        super().__init__()
        self._warp, self._centre, self._scale = warp, centre, scale

    def forward(self, Y: Tensor, Yvar: Tensor | None = None, X: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return standardised warped outputs for natural ones."""
        return (self._warp.forward(Y) - self._centre) / self._scale, Yvar

    def untransform(
        self, Y: Tensor, Yvar: Tensor | None = None, X: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return natural outputs for standardised warped ones."""
        return self._natural(Y), Yvar

    def untransform_posterior(self, posterior: Posterior, X: Tensor | None = None) -> TransformedPosterior:
        """Return the posterior in natural units."""
        return TransformedPosterior(
            posterior=posterior,
            sample_transform=self._natural,
            mean_transform=lambda mean, variance: self._natural(mean),
            variance_transform=lambda mean, variance: self._natural_std(mean, variance).square(),
        )

    def _natural(self, z: Tensor) -> Tensor:
        return self._warp.inverse(z * self._scale + self._centre)

    def _natural_std(self, mean: Tensor, variance: Tensor) -> Tensor:
        return self._warp.natural(mean * self._scale + self._centre, variance.sqrt() * self._scale.abs())[1]
