"""Joint posterior samples of all surrogates at thousands of designs, without a covariance matrix of them.

Symbols and shapes
    x, y     n x d, n x q   data; z  n x q  standardised; designs  b x d
    w        q x F x d   frequencies: quasi-random standard normal numbers over lengthscales
    g        q prior samples, each sum_F a cos(w'x) + b sin(w'x) over sqrt(F), with a and b standard normal

Pathwise conditioning (Wilson et al. 2020): if g is a sample of the prior, g(.) + k(., x) K^-1 (z - c - g(x) - noise) is one of
the posterior. The correction is exact; g has F Fourier features instead of infinitely many. Cost: 2 b F q sines and cosines,
against b^3 q / 3 for Cholesky factors. Features are in single precision: rounding is far below the noise that fits allow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cbabo.numerics.quasirandom import sobol
from cbabo.surrogate import Surrogates, kernel


@dataclass(frozen=True)
class Tuning:
    """Numbers of pathwise sampling."""

    frequencies: int = 512
    """Fourier frequencies F of a prior sample; cost grows linearly with them."""

    chunk: int = 512
    """Designs whose features are computed at a time, so that they stay in the processor's cache."""


TUNING = Tuning()


def sample(surrogates: Surrogates, designs: Tensor, random: np.random.Generator) -> Tensor:
    """Return one posterior sample (b x q, natural units) of every output at designs (b x d)."""
    x, h = surrogates.x, surrogates.hyperparameters
    n, (q, d) = len(x), h.lengthscales.shape
    uniform = sobol(d, int(random.integers(2**62)), TUNING.frequencies).clamp(1e-9, 1.0 - 1e-9)
    frequencies = torch.special.ndtri(uniform) / h.lengthscales.unsqueeze(1)  # q x F x d
    weights = torch.from_numpy(random.standard_normal((q, 2 * TUNING.frequencies, 1))) / math.sqrt(TUNING.frequencies)
    both = torch.cat([x, designs])
    prior = _features_times(both, frequencies, weights)
    noise = h.noise.sqrt() * torch.from_numpy(random.standard_normal((n, q)))
    z = (surrogates.y - surrogates.centre) / surrogates.scale
    residual = (z - h.constant - prior[:n] - noise).T.unsqueeze(-1)
    solved = torch.cholesky_solve(residual, h.sharing.each(surrogates.factor))
    right = kernel.right(x, h.lengthscales)
    correction = torch.cat(
        [
            torch.bmm(kernel.correlation(kernel.left(part, h.lengthscales), right), solved)
            for part in designs.split(TUNING.chunk)
        ],
        dim=1,
    )
    return (h.constant + prior[n:] + correction.squeeze(-1).T) * surrogates.scale + surrogates.centre


def _features_times(x: Tensor, frequencies: Tensor, weights: Tensor) -> Tensor:
    """Return prior samples (b x q) at x (b x d)."""
    w, a = frequencies.mT.to(torch.float32), weights.to(torch.float32)
    cosine, sine = a[:, : TUNING.frequencies], a[:, TUNING.frequencies :]
    columns = []
    for j in range(len(w)):
        parts = []
        for part in (x - kernel.CENTRE).to(torch.float32).split(TUNING.chunk):
            angle = part @ w[j]
            parts.append(angle.cos() @ cosine[j] + angle.sin_() @ sine[j])
        columns.append(torch.cat(parts))
    return torch.cat(columns, dim=1).to(torch.float64)
