"""Output warps: outputs over many decades are learned on a scale on which they are smooth.

Symbols and shapes
    y     n x q    outputs, natural units
    o     q        orientation, +1 or -1: outputs that must be large are learned with their sign turned, so that a problem
                   and its restatement with "maximize" and ">=" are the same to the last bit
    c, w  q        centre and width of each output's warp; w = inf leaves o y as it is
    g(y) = c + w asinh((o y - c) / w): as o y itself within w of c, logarithmic far from it, monotonic everywhere

A limit is warped with its output, so that y <= t is g(y) <= g(t) (>= where o = -1). Units do not matter: c and w have the
output's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_FARTHEST = 300.0  # of (z - c) / w in the inverse: beyond, sinh would overflow soon


@dataclass(frozen=True, eq=False)
class Warp:
    """g for every output."""

    orientation: Tensor
    """q, +1 or -1."""
    centre: Tensor
    """q, natural units."""
    width: Tensor
    """q, natural units; inf where the output is left as it is."""

    @classmethod
    def none(cls, orientation: Tensor) -> Warp:
        """Return the warp that does no more than orient the outputs."""
        return cls(orientation, torch.zeros_like(orientation), torch.full_like(orientation, torch.inf))

    @property
    def curved(self) -> Tensor:
        """q, which outputs are changed at all."""
        return self.width.isfinite()

    def at(self, outputs: Tensor) -> Warp:
        """Return the warps of some outputs (indices)."""
        return Warp(self.orientation[outputs], self.centre[outputs], self.width[outputs])

    def forward(self, y: Tensor) -> Tensor:
        """Return g(y), the last dimension running over the outputs."""
        y = self.orientation * y
        w = torch.where(self.curved, self.width, 1.0)
        return torch.where(self.curved, self.centre + w * torch.asinh((y - self.centre) / w), y)

    def inverse(self, g: Tensor) -> Tensor:
        """Return y for g(y)."""
        w = torch.where(self.curved, self.width, 1.0)
        t = ((g - self.centre) / w).clamp(-_FARTHEST, _FARTHEST)
        return self.orientation * torch.where(self.curved, self.centre + w * torch.sinh(t), g)

    def log_slope(self, y: Tensor) -> Tensor:
        """Return log |g'(y)|."""
        t = (self.orientation * y - self.centre) / self.width
        return -0.5 * torch.log1p(t.square())

    def natural(self, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        """Return the median of y, and half of the width of its central 68 %, for g(y) normal with this mean and deviation."""
        upper, lower = self.inverse(mean + std), self.inverse(mean - std)
        return self.inverse(mean), torch.where(self.curved, 0.5 * (upper - lower).abs(), std)
