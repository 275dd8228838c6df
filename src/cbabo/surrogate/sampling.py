"""Joint samples of the posterior: functions that agree with the data, at some designs.

Symbols and shapes are those of `gp`; samples are of the latent functions, without noise. What the kernel cannot follow of a
deterministic output, its nugget, is part of the function, and independent at all designs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cbabo.errors import SurrogateError
from cbabo.surrogate import kernel
from cbabo.surrogate.composed import Composed
from cbabo.surrogate.gp import Surrogates


@dataclass(frozen=True)
class SamplingTuning:
    """Numbers that control the factorisation of posterior covariance matrices."""

    jitter: float = 1e-9
    """Variance that is added at first: designs that lie close together make the matrix singular."""
    nugget: float = 1e-6
    """Nugget below which an output is as smooth as its kernel."""
    most: float = 1e-2
    """Variance beyond which nothing is added any more."""


TUNING = SamplingTuning()


def joint_samples(predictor: Surrogates | Composed, x: Tensor, normal: Tensor) -> Tensor:
    """Return samples (s x b x q, in the units of the predictor's data) at designs x (b x d) from standard normals (s x b x q)."""
    if isinstance(predictor, Surrogates):
        return _joint_samples(predictor, x, normal)
    learned = _joint_samples(predictor.surrogates, x, normal[:, :, predictor.formulas.learned])
    return torch.stack([predictor.with_derived(x, sample) for sample in learned])


def _joint_samples(surrogates: Surrogates, x: Tensor, normal: Tensor) -> Tensor:
    with torch.no_grad():
        found, h = surrogates.predict(x), surrogates.hyperparameters
        shared = h.of_groups
        u = shared.stretched(x)[0]
        k = kernel.correlation(kernel.left(u, shared.lengthscales), kernel.right(u, shared.lengthscales), shared.family)
        covariance = k - found.whitened @ found.whitened.mT
        nugget = h.contained_noise if h.amplitude is not None else torch.zeros_like(h.noise)
        if bool((nugget > TUNING.nugget).any()):
            rough = torch.where(nugget > TUNING.nugget, nugget, 0.0)
            factor = _factor(h.sharing.each(covariance) + rough[:, None, None] * torch.eye(len(x), dtype=x.dtype))
        else:
            factor = h.sharing.each(_factor(covariance))
        scale = surrogates.scale if h.amplitude is None else surrogates.scale * h.amplitude.sqrt()
        samples: Tensor = found.mean + torch.einsum("qbc,scq->sbq", factor, normal) * scale
        return samples


def _factor(covariance: Tensor) -> Tensor:
    """Return lower triangular factors (g x b x b), of matrices with as little added to the diagonal as they need."""
    jitter = TUNING.jitter
    while jitter <= TUNING.most:
        matrix = covariance + jitter * torch.eye(covariance.shape[-1], dtype=covariance.dtype)
        factor: Tensor
        factor, info = torch.linalg.cholesky_ex(matrix)
        if not bool(info.any()):
            return factor
        jitter *= 10.0
    raise SurrogateError("Expected a posterior covariance matrix with a Cholesky factor, got none; leave out designs.")
