"""Kernels: correlations between points and their derivatives; the radial functions are defined in this module only.

Symbols and shapes
    x, x'    b x d and n x d   points, unit cube
    family   q        kernel family of each output: SMOOTH, ROUGH or ADDITIVE; None: all are smooth
    l        q x d    lengthscales, one row for each output
    h        q x b x n   minus half the squared scaled distance: -1/2 sum_i (x_i - x'_i)^2 / l_i^2
    k(h)     q x b x n   correlation, k(0) = 1
    k'(h)    q x b x n   its derivative; dh/dx_i = -(x_i - x'_i) / l_i^2 and dh/dlog l_i = (x_i - x'_i)^2 / l_i^2

h is one matrix product of `left(x)` and `right(x')`, without a b x n x d tensor; points may also be given as q x b x d, stretched
differently for each output. Rounding may make h +1e-15 where it should be 0.

SMOOTH is the RBF kernel: k(h) = exp(h) = k'(h).
ROUGH is Matern-5/2: with e = sqrt(-10 h), k = (1 + e + e^2 / 3) exp(-e) and k' = 5/3 (1 + e) exp(-e).
ADDITIVE is a mean of one-dimensional RBF kernels: with h_i = -1/2 (x_i - x'_i)^2 / l_i^2, k = mean_i exp(h_i). It models sums of
functions of one variable each, for which far fewer evaluations suffice, even with many variables and short lengthscales.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMOOTH, ROUGH, ADDITIVE = 0, 1, 2
"""Codes of the kernel families."""

# Smallest squared distance of which a root is taken; at zero the root has no derivative.
_MIN_SQUARE = 1e-30

# Elements of an additive output's correlations that are computed together, those of 500 designs: more leave the cache.
_BLOCK = 250_000

CENTRE = 0.5
"""Centre of the cube, which is subtracted from points before products; this halves their rounding error."""


def left(x: Tensor, lengthscales: Tensor) -> Tensor:
    """Return the left factor of h (q x b x (d + 2)) for points x (b x d)."""
    scaled = (x - CENTRE) / lengthscales.unsqueeze(-2)
    half = scaled.square().sum(-1, keepdim=True).mul(-0.5)
    return torch.cat([scaled, half, torch.ones_like(half)], dim=-1)


def right(x: Tensor, lengthscales: Tensor) -> Tensor:
    """Return the right factor of h (q x (d + 2) x n) for points x (n x d)."""
    scaled = (x - CENTRE) / lengthscales.unsqueeze(-2)
    half = scaled.square().sum(-1, keepdim=True).mul(-0.5)
    return torch.cat([scaled, torch.ones_like(half), half], dim=-1).mT


def correlation(left_factor: Tensor, right_factor: Tensor, family: Tensor | None = None) -> Tensor:
    """Return the correlations k (q x b x n) from both factors of h."""
    if family is not None:
        return correlation_and_slope(left_factor, right_factor, family)[0]
    h = torch.bmm(left_factor, right_factor)
    return h.exp() if h.requires_grad else h.exp_()


def correlation_and_slope(
    left_factor: Tensor, right_factor: Tensor, family: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return k and k' (q x b x n each), which may share memory; k' is 1 for additive outputs: see `additive_gradient`."""
    if family is None:
        k = correlation(left_factor, right_factor)
        return k, k
    h = torch.bmm(left_factor, right_factor)
    # Autograd needs its inputs unchanged.
    replace_rows = torch.Tensor.index_copy if h.requires_grad else torch.Tensor.index_copy_
    rough = (family == ROUGH).nonzero().squeeze(-1)
    e = (h[rough] * -10.0).clamp_min(_MIN_SQUARE).sqrt()
    decay = (-e).exp()
    k = h.exp() if h.requires_grad else h.exp_()
    slope = replace_rows(k.clone(), 0, rough, 5.0 / 3.0 * (1.0 + e) * decay)
    k = replace_rows(k, 0, rough, (1.0 + e + e.square() / 3.0) * decay)
    additive = (family == ADDITIVE).nonzero().squeeze(-1)
    if len(additive):
        k = replace_rows(k, 0, additive, _additive_correlation(left_factor[additive], right_factor[additive]))
        slope = slope.index_fill(0, additive, 1.0)
    return k, slope


def additive_gradient(coefficients: Tensor, left_factor: Tensor, right_factor: Tensor) -> Tensor:
    """Return sum_r coefficients_r dk_r / ds (q x b x d) of additive outputs, with scaled points s = x / l."""
    d = left_factor.shape[-1] - 2
    found = []
    for i in range(d):
        difference = right_factor[:, i : i + 1, :] - left_factor[:, :, i : i + 1]
        found.append((difference.square().mul_(-0.5).exp_().mul_(difference).mul_(coefficients)).sum(-1))
    return torch.stack(found, dim=-1) / d


def _additive_correlation(left_factor: Tensor, right_factor: Tensor) -> Tensor:
    """Return the mean over variables of exp(h_i)."""
    d, b, n = left_factor.shape[-1] - 2, left_factor.shape[1], right_factor.shape[2]
    if b * n > _BLOCK and not left_factor.requires_grad:
        blocks = left_factor.split(max(1, _BLOCK // n), dim=1)
        return torch.cat([_additive_correlation(block, right_factor) for block in blocks], dim=1)
    k = torch.zeros(len(left_factor), left_factor.shape[1], right_factor.shape[2], dtype=left_factor.dtype)
    for i in range(d):
        k = k + (right_factor[:, i : i + 1, :] - left_factor[:, :, i : i + 1]).square().mul(-0.5).exp()
    return k / d
