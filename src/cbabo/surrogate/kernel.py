"""The kernel: its radial function stands here alone, so that another one is a change to this module only.

Symbols and shapes
    x, x'    b x d and n x d   points, unit cube
    family   q        the kernel of each output: SMOOTH, ROUGH or ADDITIVE; None: all are smooth
    l        q x d    lengthscales, one row for each output
    h        q x b x n   minus half the squared scaled distance: -1/2 sum_i (x_i - x'_i)^2 / l_i^2
    k(h)     q x b x n   correlation, k(0) = 1
    k'(h)    q x b x n   its derivative; dh/dx_i = -(x_i - x'_i) / l_i^2 and dh/dlog l_i = (x_i - x'_i)^2 / l_i^2

h is one matrix product of `left(x)` and `right(x')`, without a b x n x d tensor; points may also come as q x b x d, moved
differently for each output. Rounding may leave h at +1e-15 where it should be 0. Smooth outputs have RBF: k(h) = exp(h) = k'(h).
Rough ones have Matern-5/2: with e = sqrt(-10 h), k = (1 + e + e^2 / 3) exp(-e) and k' = 5/3 (1 + e) exp(-e). Additive ones are
sums of functions of one variable each: with h_i = -1/2 (x_i - x'_i)^2 / l_i^2, k = mean_i exp(h_i); what is learned at one
value of a variable then holds wherever the others are, so that many variables and many waves are no obstacle.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMOOTH, ROUGH, ADDITIVE = 0, 1, 2

CENTRE = 0.5
"""Points are taken relative to the cube's centre in products, which halves their rounding error."""


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
    """Return k (q x b x n)."""
    if family is not None:
        return correlation_and_slope(left_factor, right_factor, family)[0]
    h = torch.bmm(left_factor, right_factor)
    return h.exp() if h.requires_grad else h.exp_()


def correlation_and_slope(
    left_factor: Tensor, right_factor: Tensor, family: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return k and k' (q x b x n each); they may share memory. k' is 1 where outputs are additive: see `additive_pull`."""
    if family is None:
        k = correlation(left_factor, right_factor)
        return k, k
    h = torch.bmm(left_factor, right_factor)
    at = (family == ROUGH).nonzero().squeeze(-1)
    e = h[at].mul_(-10.0).clamp_min_(0.0).sqrt_()
    decay = e.neg().exp_()
    k = h.exp_()
    slope = k.clone()
    slope[at] = (1.0 + e).mul_(decay).mul_(5.0 / 3.0)
    k[at] = (1.0 + e + e.square() / 3.0).mul_(decay)
    summed = (family == ADDITIVE).nonzero().squeeze(-1)
    if len(summed):
        k[summed] = _sum(left_factor[summed], right_factor[summed])
        slope[summed] = 1.0
    return k, slope


def additive_pull(coefficients: Tensor, left_factor: Tensor, right_factor: Tensor) -> Tensor:
    """Return sum_r coefficients_r dk_r / ds (q x b x d) of additive outputs, s = x / l being scaled points."""
    d = left_factor.shape[-1] - 2
    found = []
    for i in range(d):
        away = right_factor[:, i : i + 1, :] - left_factor[:, :, i : i + 1]
        found.append((away.square().mul_(-0.5).exp_().mul_(away).mul_(coefficients)).sum(-1))
    return torch.stack(found, dim=-1) / d


def _sum(left_factor: Tensor, right_factor: Tensor) -> Tensor:
    """Return the mean over variables of exp(h_i)."""
    d = left_factor.shape[-1] - 2
    k = torch.zeros(len(left_factor), left_factor.shape[1], right_factor.shape[2], dtype=left_factor.dtype)
    for i in range(d):
        k = k + (right_factor[:, i : i + 1, :] - left_factor[:, :, i : i + 1]).square().mul(-0.5).exp()
    return k / d
