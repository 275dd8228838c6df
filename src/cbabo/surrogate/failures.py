"""Learning from failures: where the simulator cannot be asked.

Symbols and shapes
    x      n x d    all designs that were tried, unit cube
    y      n        1 where the evaluation failed, 0 where it was measured
    p(x)            the probability of a failure: a Gaussian process on y, with noise

A region that crashes the simulator is a bump of p. Failures that happen anywhere are noise: they leave p flat, and then nothing
is avoided. Which of the two it is, the labels decide: p is used only if it foretells each of them, from all others, clearly
better than the share of failures does. A design is too risky if p is larger there than at nearly all measured designs, each
foretold from all others: strict where the region's edge is sharp, lenient where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.evaluations import Evaluations
from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate import Pointwise, Surrogates, fit

_CLEARLY = 4.0  # gain in the labels' log likelihood, besides 1 for each variable, without which failures are accidents
_SPREADS = 4.0  # median deviations that a tolerable risk may lie above the median of measured designs
_LIMITS = (0.05, 0.5)
_SURE = 0.02  # no failure is foretold with less, and none with more than 1 less this
_FEWEST = 2  # failures, and measured designs, without which nothing can be told apart


@dataclass(frozen=True, eq=False)
class FailureModel:
    """The probability of a failure at any design."""

    surrogates: Surrogates
    """Of the labels: one output."""
    limit: float
    """The largest tolerable probability."""

    def probability(self, x: Tensor) -> Tensor:
        """Return p (b) at x (b x d)."""
        return self.surrogates.mean(x)[:, 0].clamp(0.0, 1.0 - _SURE)

    def excess(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return by how much p at one design exceeds the limit, and its derivative (d)."""
        z, slope = self._pointwise.mean_and_jacobian(x)
        return float(z[0] * self._scale + self._centre) - self.limit, slope[0] * self._scale

    @cached_property
    def _pointwise(self) -> Pointwise:
        return Pointwise(self.surrogates)

    @cached_property
    def _scale(self) -> float:
        return float(self.surrogates.scale[0])

    @cached_property
    def _centre(self) -> float:
        return float(self.surrogates.centre[0])


def fit_failure_model(evaluations: Evaluations) -> FailureModel | None:
    """Return what failures teach; None if nothing."""
    measured, failed = evaluations.complete, evaluations.failed_designs
    if min(len(measured), len(failed)) < _FEWEST:
        return None
    x = torch.from_numpy(np.vstack([measured.x, failed.x]))
    y = torch.cat([torch.zeros(len(measured)), torch.ones(len(failed))]).double().unsqueeze(1)
    surrogates = fit(x, y)
    foretold = surrogates.leave_one_out()[0][:, 0]
    share = (y.sum() - y[:, 0]) / (len(y) - 1)
    if _score(foretold, y[:, 0]) - _score(share, y[:, 0]) < _CLEARLY + x.shape[1]:
        return None
    safe = foretold[: len(measured)].clamp(0.0, 1.0)
    usual = safe.median()
    spread = (safe - usual).abs().median()
    return FailureModel(surrogates, float((usual + _SPREADS * spread).clamp(*_LIMITS)))


def _score(p: Tensor, y: Tensor) -> float:
    """Return the log likelihood of labels y given probabilities p (n each)."""
    p = p.clamp(_SURE, 1.0 - _SURE)
    return float((y * p.log() + (1.0 - y) * (1.0 - p).log()).sum())
