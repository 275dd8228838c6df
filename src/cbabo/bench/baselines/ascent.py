"""Maximisation of an acquisition function of the posterior mean and standard deviation over the unit cube.

Symbols and shapes
    mean, std   b x q    predictions of all outputs, natural units
    value       b        the criterion, to be maximised; its derivatives by mean and std are b x q each
    pool        p x d    designs among which the ascents start

The acquisition function (criterion) depends on posterior means and standard deviations at a point, so its gradient by x is one
product with their derivatives. The pool is global (Sobol) and local (the incumbent, perturbed at several scales, and copies of it
with a few coordinates resampled). L-BFGS-B runs from the best designs jointly as one problem, then from the best of them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from cbabo.bench.baselines.sequential import Data, Task
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child

Criterion = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""(mean, std) -> (value, d value / d mean, d value / d std)."""


class Prediction(Protocol):
    """Predictions at b points."""

    @property
    def mean(self) -> Tensor:
        """b x q."""

    @property
    def std(self) -> Tensor:
        """b x q."""

    def vjp(self, weight_mean: Tensor, weight_std: Tensor) -> Tensor:
        """Return d/dx (b x d) of the sum of means and standard deviations with weights (b x q each)."""


class Models(Protocol):
    """What an acquisition function is computed from: surrogates, or several of them as one."""

    def predict(self, x: Tensor) -> Prediction:
        """Return predictions at x (b x d), with what derivatives need."""

    def mean_and_std(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations (b x q each) at x (b x d)."""


@dataclass(frozen=True)
class Tuning:
    """Effort of the maximisation."""

    sobol_designs: int = 1024
    """Designs of the pool that cover the whole cube."""

    local_designs: int = 64
    """Designs of the pool around the incumbent, for each scale."""

    scales: tuple[float, ...] = (0.2, 0.05, 0.01, 0.002)
    """Standard deviations of the perturbations, unit cube: from a global step to the last digits of convergence."""

    resampled: float = 2.0
    """Coordinates of the incumbent that a resampled copy changes, on average."""

    starts: int = 6
    """Designs of the pool from which L-BFGS-B runs jointly."""

    joint_iterations: int = 30
    """Most iterations of the joint run."""

    final_iterations: int = 40
    """Most iterations of the run from the best result."""

    chunk: int = 128
    """Designs evaluated at a time, so that samples of the acquisition function stay in the processor's cache."""

    least_scale: float = 1e-300
    """Smallest value by which a linear acquisition function is divided: avoids division by zero."""


TUNING = Tuning()


def maximise(
    surrogates: Models, criterion: Criterion, task: Task, data: Data, linear: bool = False
) -> FloatArray | None:
    """Return a new legal design (d, unit cube) with the largest criterion; None where it is flat or there is no design.

    linear: the criterion is not a logarithm but a positive number of any magnitude: each ascent is relative to its start.
    """
    pool = task.unseen(task.legal(designs(task, data)), data)
    if not len(pool):
        return None
    values = _values(surrogates, criterion, pool)
    order = torch.argsort(values, descending=True, stable=True)
    if bool(values[order[0]] == values[order[-1]]):
        return None
    starts = pool[order[: TUNING.starts]]
    scale = (
        values[order[: TUNING.starts]].clamp_min(TUNING.least_scale)
        if linear
        else torch.ones(len(starts), dtype=values.dtype)
    )
    together = _ascend(surrogates, criterion, starts, scale, TUNING.joint_iterations)
    reached = _values(surrogates, criterion, together)
    best = int(reached.argmax())
    scale = reached.clamp_min(TUNING.least_scale) if linear else scale
    alone = _ascend(surrogates, criterion, together[best : best + 1], scale[best : best + 1], TUNING.final_iterations)
    ends = task.unseen(torch.cat([task.legal(torch.cat([alone, together])), starts]), data)
    return ends[_values(surrogates, criterion, ends).argmax()].numpy()


def designs(task: Task, data: Data) -> Tensor:
    """Return designs (p x d) of the whole cube and around the incumbent."""
    d, number = task.dimension, data.made
    random = child(task.seed, "pool", number)
    incumbent = data.x[task.best(data.y)]
    disturbed = [incumbent + s * random.standard_normal((TUNING.local_designs, d)) for s in TUNING.scales]
    redrawn = np.where(
        random.random((TUNING.local_designs, d)) < min(1.0, TUNING.resampled / d),
        random.random((TUNING.local_designs, d)),
        incumbent,
    )
    local = np.clip(np.vstack([*disturbed, redrawn]), 0.0, 1.0)
    return torch.cat([sobol(d, int(random.integers(2**62)), TUNING.sobol_designs), torch.from_numpy(local)])


def _values(surrogates: Models, criterion: Criterion, x: Tensor) -> Tensor:
    parts = [criterion(*surrogates.mean_and_std(part))[0] for part in x.split(TUNING.chunk)]
    return torch.cat(parts).nan_to_num(-torch.inf)


def _ascend(surrogates: Models, criterion: Criterion, starts: Tensor, scale: Tensor, iterations: int) -> Tensor:
    """Return where ascents from starts (s x d) end; values are divided by scale (s)."""
    size, d = starts.shape

    def descend(flat: FloatArray) -> tuple[float, FloatArray]:
        prediction = surrogates.predict(torch.from_numpy(flat).view(size, d))
        value, on_mean, on_std = criterion(prediction.mean, prediction.std)
        gradient = prediction.vjp(on_mean, on_std) / scale.unsqueeze(-1)
        return -float((value / scale).sum()), -gradient.nan_to_num(0.0).numpy().ravel()

    found = minimize(
        descend,
        starts.numpy().ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * (size * d),
        options={"maxiter": iterations, "maxfun": 2 * iterations},
    )
    return torch.from_numpy(np.clip(found.x, 0.0, 1.0)).view(size, d)
