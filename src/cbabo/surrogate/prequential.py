"""How well outputs were foretold when their designs were chosen: errors that no later fit has explained away.

Symbols and shapes
    x           p x d    designs that were proposed, unit cube
    mean, std   p x q    what was believed of them then, warped as then; std before any calibration
    errors      s x q    (g(y) - mean) / std of the last designs that were measured, the newest last

A fit chooses its hyperparameters so that what it has seen looks likely: judged by these, the same errors seem small. Where a
solver walked to designs that turned out otherwise, time and again, only what was said beforehand shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cbabo.surrogate import Warp

_KEPT = 15  # errors: three batches of the usual size
_FEWEST = 5
_SAME = 1e-9  # distance in the unit cube below which a design is the one proposed
_LARGEST = 30.0  # of one error: more says nothing more


@dataclass(frozen=True, eq=False)
class PrequentialErrors:
    """What was foretold and not yet measured, and how wrong it was before."""

    x: Tensor
    mean: Tensor
    std: Tensor
    errors: Tensor

    @classmethod
    def none(cls, d: int, q: int) -> PrequentialErrors:
        """Return what there is before anything was foretold."""
        return cls(*(torch.empty(0, n, dtype=torch.float64) for n in (d, q, q, q)))

    def measured(self, x: Tensor, y: Tensor, warp: Warp) -> PrequentialErrors:
        """Return it after measured designs x (n x d) with outputs y (n x q) are known; warp: as when they were foretold."""
        if not len(self.x):
            return self
        apart = (self.x.unsqueeze(1) - x).abs().amax(-1)
        nearest, row = apart.min(1)
        known = nearest <= _SAME
        error = (warp.forward(y[row[known]]) - self.mean[known]) / self.std[known]
        errors = torch.cat([self.errors, error.nan_to_num(_LARGEST).clamp(-_LARGEST, _LARGEST)])[-_KEPT:]
        return replace(self, x=self.x[~known], mean=self.mean[~known], std=self.std[~known], errors=errors)

    def with_predictions(self, x: Tensor, mean: Tensor, std: Tensor) -> PrequentialErrors:
        """Return it with further proposed designs."""
        return replace(
            self, x=torch.cat([self.x, x]), mean=torch.cat([self.mean, mean]), std=torch.cat([self.std, std])
        )

    def without_pending(self) -> PrequentialErrors:
        """Return it without what is not yet measured: outputs are warped otherwise now."""
        return replace(self, x=self.x[:0], mean=self.mean[:0], std=self.std[:0])

    @property
    def kappa(self) -> Tensor:
        """By what deviations were too small (q): the root mean square of the errors; 0 where there are too few."""
        if len(self.errors) < _FEWEST:
            return torch.zeros(self.errors.shape[1], dtype=torch.float64)
        return self.errors.square().mean(0).sqrt()
