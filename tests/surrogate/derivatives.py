"""Derivatives of means and deviations one by one, from the products that the package computes."""

from __future__ import annotations

import torch
from torch import Tensor

from cbabo.surrogate import Surrogates


def derivatives(surrogates: Surrogates, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return dmean/dx and dstd/dx (b x q x d each) at x (b x d)."""
    prediction = surrogates.predict(x)
    none, found = torch.zeros_like(prediction.mean), []
    for j in range(none.shape[1]):
        one = none.clone()
        one[:, j] = 1.0
        found.append((prediction.vjp(one, none), prediction.vjp(none, one)))
    dmean, dstd = (torch.stack(parts, 1) for parts in zip(*found, strict=True))
    return dmean, dstd
