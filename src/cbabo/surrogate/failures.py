"""The failure model: the probability that the simulator fails at a design.

Symbols and shapes
    x      n x d    all designs that were tried, unit cube
    y      n        labels: 1 where the evaluation failed, 0 where it was measured
    p(x)            failure probability: the mean of a Gaussian process on y, with noise

Failures in a region of the design space make p large there; failures that occur anywhere are noise and leave p flat. The model
is used only if its leave-one-out predictions of the labels have a clearly higher log likelihood than the share of failures has.
The tolerable probability is a little above the leave-one-out predictions of nearly all measured designs: it is strict where the
region has a sharp boundary, and lenient where it has not.
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
from cbabo.surrogate.large import label_rows


@dataclass(frozen=True)
class FailureTuning:
    """Numbers that control the failure model."""

    min_gain: float = 4.0
    """Gain in the labels' log likelihood, plus 1 for each variable, below which failures count as accidents."""
    spreads: float = 4.0
    """Median absolute deviations of the tolerable probability above the median of the measured designs' predictions."""
    min_limit: float = 0.05
    """Smallest tolerable probability."""
    max_limit: float = 0.5
    """Largest tolerable probability."""
    min_probability: float = 0.02
    """Predictions are clipped to this distance from 0 and 1, so that one wrong label cannot dominate the log likelihood."""
    nearby: float = 0.1
    """Distance at which a design counts as nearby, in the unit cube, for each root of the number of variables."""
    min_count: int = 2
    """Smallest number of failures, and of measured designs, to fit a model to."""


TUNING = FailureTuning()


@dataclass(frozen=True, eq=False)
class FailureModel:
    """The failure probability at any design, and the largest tolerable one.

    Examples:
        Failures wherever the only variable exceeds 0.7:

        >>> x = torch.linspace(0.0, 1.0, 11, dtype=torch.float64).unsqueeze(1)
        >>> model = FailureModel(fit(x, (x > 0.7).double()), limit=0.2)
        >>> (model.probability(torch.tensor([[0.2], [0.9]], dtype=torch.float64)) > model.limit).tolist()
        [False, True]
    """

    surrogates: Surrogates
    """Surrogate of the labels: one output."""
    limit: float
    """Largest tolerable probability."""

    def probability(self, x: Tensor) -> Tensor:
        """Return the failure probability (b) at x (b x d)."""
        return self.surrogates.mean(x)[:, 0].clamp(0.0, self.most)

    @property
    def most(self) -> float:
        """The largest probability that is stated."""
        return 1.0 - TUNING.min_probability

    def excess(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the excess of the probability over the limit at one design x (d), and its gradient (d)."""
        z, jacobian = self._pointwise.mean_and_jacobian(x)
        return float(z[0] * self._scale + self._centre) - self.limit, jacobian[0] * self._scale

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
    """Fit a failure model to all evaluations; return None if there are too few failures or they are accidents."""
    measured, failed = evaluations.complete, evaluations.failed_designs
    if min(len(measured), len(failed)) < TUNING.min_count:
        return None
    x, labels = tried_designs(evaluations)
    y = labels.unsqueeze(1)
    surrogates = fit(x, y, rows=label_rows(labels))
    predicted = surrogates.leave_one_out()[0][:, 0]
    share = (y.sum() - y[:, 0]) / (len(y) - 1)
    if _log_likelihood(predicted, y[:, 0]) - _log_likelihood(share, y[:, 0]) < TUNING.min_gain + x.shape[1]:
        return None
    safe = predicted[: len(measured)].clamp(0.0, 1.0)
    median = safe.median()
    spread = (safe - median).abs().median()
    return FailureModel(surrogates, float((median + TUNING.spreads * spread).clamp(TUNING.min_limit, TUNING.max_limit)))


def failure_probability(model: FailureModel | None, evaluations: Evaluations, x: Tensor) -> Tensor:
    """Return the failure probability (b) at x (b x d): the model's, or where failures show no clear pattern their share nearby.

    The share nearby is that of designs weighted by their distance, and of one more design that fails as often as all do: among
    measured designs a failure is less likely than elsewhere, even if that is not enough for a model.
    """
    if model is not None:
        return model.probability(x)
    tried, failed = tried_designs(evaluations)
    weights = torch.exp(-0.5 * torch.cdist(x, tried).square() / (TUNING.nearby**2 * x.shape[1]))
    return (failed.mean() + weights @ failed) / (1.0 + weights.sum(1))


def tried_designs(evaluations: Evaluations) -> tuple[Tensor, Tensor]:
    """Return all designs that were tried (n x d, unit cube), and whether each failed (n); what the set-up lost does not count."""
    measured, failed = evaluations.complete, evaluations.failed_designs
    x = torch.from_numpy(np.vstack([measured.x, failed.x]))
    return x, torch.cat([torch.zeros(len(measured)), torch.ones(len(failed))]).double()


def _log_likelihood(p: Tensor, y: Tensor) -> float:
    """Return the log likelihood of labels y given probabilities p (n each)."""
    p = p.clamp(TUNING.min_probability, 1.0 - TUNING.min_probability)
    return float((y * p.log() + (1.0 - y) * (1.0 - p).log()).sum())
