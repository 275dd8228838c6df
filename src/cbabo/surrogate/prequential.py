"""Prequential errors: how far outputs were from the predictions that were made when their designs were proposed.

Symbols and shapes
    x           p x d    proposed designs that are not yet measured, unit cube
    mean, std   p x q    their predictions at the time of the proposal, in the warped units of then; std before calibration
    errors      s x q    (g(y) - mean) / std of the designs that were measured last, the newest at the end

A fit chooses hyperparameters with which the data are likely, so that leave-one-out errors look small in hindsight. Proposed
designs are where the surrogates are optimistic; whether such predictions are repeatedly wrong is visible only in predictions
that were made before the measurement. The newest errors count most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cbabo.numerics.tolerances import SAME_DESIGN
from cbabo.surrogate import Warp


@dataclass(frozen=True)
class PrequentialTuning:
    """Numbers that control the calibration by prequential errors."""

    kept: int = 30
    """Number of errors that are kept: six batches of the usual size. Large errors are rare and tell most: with three batches they
    were forgotten before the answers that they concern had been measured."""
    half_life: float = 12.0
    """Number of further errors after which one counts half: errors of surrogates of few designs say less of the present ones. On
    problems with kinks and basins this cuts the loss after 60 evaluations by a fifth."""
    min_count: int = 5
    """Number of errors below which they are not used: one batch of the usual size."""
    max_error: float = 30.0
    """Absolute value at which one error is clipped; a larger one has no further meaning."""


TUNING = PrequentialTuning()


@dataclass(frozen=True, eq=False)
class PrequentialErrors:
    """Predictions of proposed designs that are not yet measured, and the errors of earlier ones.

    Examples:
        >>> x = torch.tensor([[0.5]], dtype=torch.float64)
        >>> mean, std = torch.tensor([[1.0]], dtype=torch.float64), torch.tensor([[0.5]], dtype=torch.float64)
        >>> pending = PrequentialErrors.none(d=1, q=1).with_predictions(x, mean, std)
        >>> warp = Warp.none(torch.ones(1, dtype=torch.float64))
        >>> pending.measured(x, torch.tensor([[2.0]], dtype=torch.float64), warp).errors.tolist()
        [[2.0]]
    """

    x: Tensor
    mean: Tensor
    std: Tensor
    errors: Tensor

    @classmethod
    def none(cls, d: int, q: int) -> PrequentialErrors:
        """Return a record without predictions and errors, for d variables and q outputs."""
        return cls(*(torch.empty(0, n, dtype=torch.float64) for n in (d, q, q, q)))

    def measured(self, x: Tensor, y: Tensor, warp: Warp) -> PrequentialErrors:
        """Return the record after designs x (n x d) were measured as y (n x q); warp: that of the predictions."""
        if not len(self.x):
            return self
        distance = (self.x.unsqueeze(1) - x).abs().amax(-1)
        nearest, row = distance.min(1)
        known = nearest <= SAME_DESIGN
        error = (warp.forward(y[row[known]]) - self.mean[known]) / self.std[known]
        error = error.nan_to_num(TUNING.max_error).clamp(-TUNING.max_error, TUNING.max_error)
        errors = torch.cat([self.errors, error])[-TUNING.kept :]
        return replace(self, x=self.x[~known], mean=self.mean[~known], std=self.std[~known], errors=errors)

    def with_predictions(self, x: Tensor, mean: Tensor, std: Tensor) -> PrequentialErrors:
        """Return the record with the predictions (p x q) of further proposed designs x (p x d)."""
        return replace(
            self, x=torch.cat([self.x, x]), mean=torch.cat([self.mean, mean]), std=torch.cat([self.std, std])
        )

    def without_pending(self) -> PrequentialErrors:
        """Return the errors alone; predictions cannot be compared with outputs any more once the warp has changed."""
        return replace(self, x=self.x[:0], mean=self.mean[:0], std=self.std[:0])

    @property
    def kappa(self) -> Tensor:
        """Root mean square of the errors (q), by which standard deviations were too small; 0 where there are too few."""
        if len(self.errors) < TUNING.min_count:
            return torch.zeros(self.errors.shape[1], dtype=torch.float64)
        return recent_mean(self.errors.T.square()).sqrt()


def recent_mean(values: Tensor) -> Tensor:
    """Return the mean (q) of values (q x s), the newest of which is the last and counts most."""
    age = torch.arange(values.shape[-1] - 1, -1, -1, dtype=values.dtype)
    weight = 0.5 ** (age / TUNING.half_life)
    return (values * weight).sum(-1) / weight.sum()
