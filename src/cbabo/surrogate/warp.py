"""Output warps: outputs that span many decades are modelled on a scale on which they are smooth.

Symbols and shapes
    y     n x q    outputs, natural units
    o     q        orientation, +1 or -1: outputs that must be large are modelled with the opposite sign, so that a problem
                   and its restatement with "maximize" and ">=" give the same results to the last bit
    c, w  q        centre and width of each output's warp; w = inf leaves o y unchanged
    g(y) = c + w asinh((o y - c) / w): nearly o y itself within w of c, logarithmic far from it, strictly monotonic

A limit is warped with its output: y <= t is g(y) <= g(t) (>= where o = -1). c and w have the unit of the output, so that a
change of units changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class WarpTuning:
    """Numbers of the warp."""

    max_argument: float = 300.0
    """Absolute value at which (z - c) / w is clipped in the inverse; sinh overflows at 710."""


TUNING = WarpTuning()


@dataclass(frozen=True, eq=False)
class Warp:
    """The warp g of every output.

    Examples:
        The first output is modelled as it is, the second one on a scale that is logarithmic beyond 10:

        >>> warp = Warp(*torch.tensor([[1.0, 1.0], [0.0, 0.0], [torch.inf, 10.0]], dtype=torch.float64))
        >>> y = torch.tensor([[5.0, 1e6]], dtype=torch.float64)
        >>> g = warp.forward(y)
        >>> g.round(decimals=2).tolist()
        [[5.0, 122.06]]
        >>> bool(torch.allclose(warp.inverse(g), y))
        True
    """

    orientation: Tensor
    """q, +1 or -1."""
    centre: Tensor
    """q, natural units."""
    width: Tensor
    """q, natural units; inf where the output is not warped."""

    @classmethod
    def none(cls, orientation: Tensor) -> Warp:
        """Return the warp that only orients the outputs."""
        return cls(orientation, torch.zeros_like(orientation), torch.full_like(orientation, torch.inf))

    @property
    def curved(self) -> Tensor:
        """Which outputs are warped (q)."""
        return self.width.isfinite()

    def at(self, outputs: Tensor) -> Warp:
        """Return the warps of some outputs (indices)."""
        return Warp(self.orientation[outputs], self.centre[outputs], self.width[outputs])

    def forward(self, y: Tensor) -> Tensor:
        """Return g(y); the last dimension of y runs over the outputs."""
        y = self.orientation * y
        w = torch.where(self.curved, self.width, 1.0)
        return torch.where(self.curved, self.centre + w * torch.asinh((y - self.centre) / w), y)

    def inverse(self, g: Tensor) -> Tensor:
        """Return y for g(y)."""
        w = torch.where(self.curved, self.width, 1.0)
        t = ((g - self.centre) / w).clamp(-TUNING.max_argument, TUNING.max_argument)
        return self.orientation * torch.where(self.curved, self.centre + w * torch.sinh(t), g)

    def log_slope(self, y: Tensor) -> Tensor:
        """Return log |g'(y)|, the log Jacobian of the warp."""
        t = (self.orientation * y - self.centre) / self.width
        return -0.5 * torch.log1p(t.square())

    def natural(self, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        """Return the median of y and half the width of its central 68 % interval, for normal g(y) with this mean and std."""
        upper, lower = self.inverse(mean + std), self.inverse(mean - std)
        return self.inverse(mean), torch.where(self.curved, 0.5 * (upper - lower).abs(), std)
