"""Many evaluations: which of them hyperparameters are fitted to, and which the surrogates are conditioned on.

Symbols and shapes
    n    measured designs
    x    n x d    unit cube; y  n x q  outputs, natural units

A factor of a covariance matrix takes n^3 / 3 operations for each output, and a step of a fit several times that. Hyperparameters
are therefore fitted to a part of many evaluations, which stays the same until a few per cent more were made: a fit in between
starts at its result and ends there. Surrogates are conditioned on all evaluations as long as the factors fit into memory.
Beyond, or where a run has lowered its effort, they are conditioned on the designs that answers depend on. Nothing of this applies
to a few hundred evaluations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.domain.evaluations import Evaluations
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol


@dataclass(frozen=True)
class LargeTuning:
    """Sizes from which on less than everything is used."""

    fitted: int = 500
    """Evaluations that hyperparameters are fitted to at most: their number is fixed, and 500 determine it."""
    pair_elements: int = 2_500_000
    """Pairs of designs times variables that are held at a time where an output is additive: 500 designs of 20 variables."""
    fewest_fitted: int = 100
    """Evaluations that hyperparameters are fitted to at least: as many as forms are compared with."""
    renewed: float = 1.05
    """Growth of the data after which other evaluations are chosen for it; in between, a fit ends where the last one did."""
    elements: int = 60_000_000
    """Elements of the factors of all outputs: 0.5 GB, of which a fit holds up to six copies. 2,335 designs of 11 outputs, or
    1,000 of 60."""
    thresholds: int = 256
    """Thresholds whose best measured designs are kept where not all are."""
    newest: float = 0.25
    """Share of the kept designs that are the newest: calibration compares them with predictions."""
    repeated: float = 0.25
    """Share of the kept designs that may be those measured more than once, which tell of noise."""
    seed: int = 0
    """Of these thresholds, which are always the same."""


TUNING = LargeTuning()


def fitted_rows(n: int, d: int, additive: bool = False) -> Tensor | None:
    """Return the evaluations (indices, ascending) of n that hyperparameters are fitted to; None: all of them.

    One half are the newest, near answers, the others are evenly spaced over the rest. additive: whether an output is.
    """
    most = TUNING.fitted
    if additive:
        most = min(most, max(TUNING.fewest_fitted, math.isqrt(2 * TUNING.pair_elements // d)))
    if n <= most:
        return None
    last = most  # Those made later are not looked at until the data have grown once more.
    while (further := max(last + 1, math.floor(last * TUNING.renewed))) <= n:
        last = further
    newest = most // 2
    others, older = most - newest, last - newest
    return torch.cat([torch.arange(others) * older // others, torch.arange(older, last)])


def label_rows(labels: Tensor) -> Tensor | None:
    """Return the rows (indices, ascending) that a fit to labels (n, 0 or 1) uses: all of the rarer label, up to a half."""
    n, most = len(labels), TUNING.fitted
    if n <= most:
        return None
    sides = [(labels == value).nonzero().squeeze(-1) for value in (0.0, 1.0)]
    rarer, other = sorted(sides, key=len)
    count = min(len(rarer), most // 2)
    kept = [side[torch.arange(size) * len(side) // size] for side, size in ((rarer, count), (other, most - count))]
    return torch.cat(kept).sort().values


def most_conditioned(outputs: int) -> int:
    """Return how many designs surrogates of so many outputs are conditioned on at most."""
    return math.isqrt(TUNING.elements // outputs)


def representative(rows: Evaluations, count: int, measured: NDArray[np.float64] | None = None) -> NDArray[np.int64]:
    """Return so many of the measured designs (indices, ascending), or all: those that answers depend on.

    These are the newest ones, those measured more than once, the best for thresholds all over the box, and others that are far
    from all these. measured: n, how often each design was; None: once.
    """
    n = len(rows)
    if n <= count:
        return np.arange(n)
    newest = np.arange(n - math.floor(TUNING.newest * count), n)
    kept = np.zeros(n, dtype=np.bool_)
    kept[newest] = True
    if measured is not None:
        kept[np.flatnonzero(measured > 1)[: math.floor(TUNING.repeated * count)]] = True
    best = _best(rows)
    kept[best[: count - int(kept.sum())]] = True
    x = rows.x
    distance = np.full(n, np.inf)
    for i in np.flatnonzero(kept):
        distance = np.minimum(distance, np.square(x - x[i]).sum(1))
    for _ in range(count - int(kept.sum())):
        farthest = int(np.where(kept, -1.0, distance).argmax())
        kept[farthest] = True
        distance = np.minimum(distance, np.square(x - x[farthest]).sum(1))
    return np.flatnonzero(kept)


def _best(rows: Evaluations) -> NDArray[np.int64]:
    """Return the measured designs (indices) that are best for some threshold, those of most thresholds first."""
    box, y = rows.problem.box, rows.y
    theta = sobol(len(box.names), TUNING.seed, TUNING.thresholds).numpy()
    theta = np.vstack([theta, np.zeros_like(theta[:1]), np.ones_like(theta[:1])])
    value: FloatArray = rows.problem.objective.sign * y[:, 0]
    obeyed = box.obeyed(y, box.from_theta(theta))
    best = np.where(obeyed, value, np.inf).argmin(1)[obeyed.any(1)]
    found, counts = np.unique(best, return_counts=True)
    return np.asarray(found[np.argsort(-counts, kind="stable")], dtype=np.int64)
