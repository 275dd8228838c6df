"""Maximising a criterion of the surrogates' predictions over the unit cube.

Symbols and shapes
    mean, std   b x q    predictions of all outputs, natural units
    value       b        the criterion, to be maximised; its derivatives by mean and std are b x q each
    pool        p x d    designs among which the ascents start

A criterion is a function of means and deviations at a point, so its gradient by x is one product with the predictions'
derivatives. The pool is global (Sobol) and local (the incumbent, disturbed at several scales; its copies with a few coordinates
drawn anew). The best designs ascend together as one problem, then the best of them alone, by L-BFGS-B.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from cbabo.bench.baselines.sequential import Data, Task
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child
from cbabo.surrogate import Surrogates

Criterion = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""(mean, std) -> (value, d value / d mean, d value / d std)."""

_GLOBAL = 1024
_LOCAL = 64  # for each scale
_SCALES = (0.2, 0.05, 0.01, 0.002)
_STARTS = 6
_TOGETHER = 30  # iterations
_ALONE = 40
_CHUNK = 128  # designs that are judged at a time: samples of a criterion stay in the processor's cache
_TINY = 1e-300


def maximise(
    surrogates: Surrogates, criterion: Criterion, task: Task, data: Data, linear: bool = False
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
    starts = pool[order[:_STARTS]]
    scale = values[order[:_STARTS]].clamp_min(_TINY) if linear else torch.ones(len(starts), dtype=values.dtype)
    together = _ascend(surrogates, criterion, starts, scale, _TOGETHER)
    reached = _values(surrogates, criterion, together)
    best = int(reached.argmax())
    scale = reached.clamp_min(_TINY) if linear else scale
    alone = _ascend(surrogates, criterion, together[best : best + 1], scale[best : best + 1], _ALONE)
    ends = task.unseen(torch.cat([task.legal(torch.cat([alone, together])), starts]), data)
    return ends[_values(surrogates, criterion, ends).argmax()].numpy()


def designs(task: Task, data: Data) -> Tensor:
    """Return designs (p x d) all over the cube and around the best one so far."""
    d, number = task.dimension, data.made
    random = child(task.seed, "pool", number)
    incumbent = data.x[task.best(data.y)]
    disturbed = [incumbent + s * random.standard_normal((_LOCAL, d)) for s in _SCALES]
    redrawn = np.where(random.random((_LOCAL, d)) < min(1.0, 2.0 / d), random.random((_LOCAL, d)), incumbent)
    local = np.clip(np.vstack([*disturbed, redrawn]), 0.0, 1.0)
    return torch.cat([sobol(d, int(random.integers(2**62)), _GLOBAL), torch.from_numpy(local)])


def _values(surrogates: Surrogates, criterion: Criterion, x: Tensor) -> Tensor:
    parts = [criterion(*surrogates.mean_and_std(part))[0] for part in x.split(_CHUNK)]
    return torch.cat(parts).nan_to_num(-torch.inf)


def _ascend(surrogates: Surrogates, criterion: Criterion, starts: Tensor, scale: Tensor, iterations: int) -> Tensor:
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
