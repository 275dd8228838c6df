"""Metrics of answers: regret and loss, win rates, calibration, and bootstrap intervals of means.

f, feasible: n answers' true objective values, to be minimised, and whether they obey their limits.
optima: n, the true optimum at each answer's threshold; span: the unit of regret (see `truth`).
samples: one array of values for each seed, its entries running over thresholds; NaN entries are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cbabo.errors import InputError
from cbabo.numerics.arrays import FloatArray

TIE = 1e-6
"""Values that differ by at most this share of max(1, |value|) are a tie."""
RESAMPLES = 2000
"""Bootstrap resamples of an interval."""
COVERAGE = 95.0
"""Percent of resampled means inside an interval."""


def gaps(f: ArrayLike, optima: ArrayLike, span: float) -> FloatArray:
    """Return how far objectives are above the optimum, in spans; NaN where the optimum is not finite."""
    f, optima = _alike(f=f, optima=optima)
    if not (np.isfinite(span) and span > 0.0):
        raise InputError(f"span: expected a positive number, got {span!r}; take it from the problem's truth")
    return np.asarray((f - np.where(np.isfinite(optima), optima, np.nan)) / span)


def losses(f: ArrayLike, feasible: ArrayLike, optima: ArrayLike, span: float) -> FloatArray:
    """Return losses in percent: the gap clipped to [0, 1], and 100 for an infeasible answer; NaN as in `gaps`."""
    f, feasible, optima = _alike(f=f, feasible=feasible, optima=optima)
    values = 100.0 * np.where(feasible > 0, np.clip(gaps(f, optima, span), 0.0, 1.0), 1.0)
    return np.where(np.isfinite(optima), values, np.nan)


@dataclass(frozen=True)
class Tally:
    """Wins, ties and losses of one method against another."""

    wins: int
    ties: int
    losses: int

    @property
    def rate(self) -> float:
        """The win rate in percent, a tie counting one half; NaN of no comparisons."""
        count = self.wins + self.ties + self.losses
        return 100.0 * (self.wins + self.ties / 2) / count if count else float("nan")


def outcomes(mine: Sequence[ArrayLike], theirs: Sequence[ArrayLike]) -> FloatArray:
    """Compare answers one by one: 1 for a win, 0.5 for a tie, 0 for a loss.

    Each side: objective, feasible and violation, n each. A feasible answer beats an infeasible one; of two feasible ones the
    lower objective wins, of two infeasible ones the lower violation, unless they agree to 1e-6 of max(1, |value|). Where a
    violation is not known (NaN), two infeasible ones tie.
    """
    f, feasible, violation = _alike(objective=mine[0], feasible=mine[1], violation=mine[2])
    g, possible, excess = _alike(f=f, objective=theirs[0], feasible=theirs[1], violation=theirs[2])[1:]
    one, other = feasible > 0, possible > 0
    both_infeasible = np.where(np.isnan(violation) | np.isnan(excess), 0.5, _lower(violation, excess))
    return np.where(one & other, _lower(f, g), np.where(one, 1.0, np.where(other, 0.0, both_infeasible)))


def _lower(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return 1 where a is lower, 0 where b is, 0.5 where they agree."""
    with np.errstate(invalid="ignore"):  # Two infinite values are a tie.
        tie = (a == b) | (np.abs(a - b) <= TIE * np.maximum(1.0, np.minimum(np.abs(a), np.abs(b))))
    return np.where(tie, 0.5, np.where(a < b, 1.0, 0.0))


def tally(results: ArrayLike) -> Tally:
    """Count wins, ties and losses among outcomes."""
    results = np.asarray(results, dtype=np.float64)
    return Tally(*(int((results == value).sum()) for value in (1.0, 0.5, 0.0)))


@dataclass(frozen=True)
class Bin:
    """Answers whose stated probability of feasibility lies in one bin."""

    low: float
    high: float
    count: int
    """How many answers there are."""

    stated: float
    """The mean of their stated probabilities."""

    feasible: float
    """The share of them that is feasible."""


def calibration(probabilities: ArrayLike, feasible: ArrayLike, edges: Sequence[float] | None = None) -> list[Bin]:
    """Compare stated probabilities with feasible shares, bin by bin; empty bins are left out.

    The bins are tenths unless edges are given; each holds its lower edge, and the last its upper edge too.
    """
    stated, came = _alike(probabilities=probabilities, feasible=feasible)
    if ((stated < 0.0) | (stated > 1.0)).any():
        raise InputError("probabilities: expected numbers between 0 and 1, got others; give shares, not percent")
    bounds = np.asarray(np.linspace(0.0, 1.0, 11) if edges is None else edges, dtype=np.float64)
    place = np.clip(np.searchsorted(bounds, stated, side="right") - 1, 0, len(bounds) - 2)
    bins = []
    for i, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
        inside = (place == i) & ~np.isnan(stated)
        if inside.any():
            share = float((came[inside] > 0).mean())
            bins.append(Bin(low, high, int(inside.sum()), float(stated[inside].mean()), share))
    return bins


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def mean_interval(samples: Sequence[ArrayLike], seed: int = 0) -> Interval:
    """Return the mean over all values and its interval, resampling seeds and, within each, thresholds."""
    return average_interval([samples], seed)


def average_interval(problems: Sequence[Sequence[ArrayLike]], seed: int = 0) -> Interval:
    """Return the average over problems of each one's mean, and its interval; problems are not resampled."""
    kept = [clean for samples in problems if (clean := _clean(samples))]
    if not kept:
        return Interval(float("nan"), float("nan"), float("nan"))
    generator = np.random.default_rng(seed)
    draws = np.mean([_resample(samples, generator) for samples in kept], axis=0)
    tail = (100.0 - COVERAGE) / 2
    low, high = np.percentile(draws, [tail, 100.0 - tail])
    return Interval(float(np.mean([np.concatenate(s).mean() for s in kept])), float(low), float(high))


def _resample(samples: list[FloatArray], generator: np.random.Generator) -> FloatArray:
    """Return the means of bootstrap resamples: seeds drawn with replacement, and thresholds within each drawn seed."""
    drawn = generator.integers(len(samples), size=(RESAMPLES, len(samples)))
    sums, counts = np.zeros(drawn.shape), np.zeros(drawn.shape)
    for i, values in enumerate(samples):
        where = drawn == i
        picks = generator.integers(len(values), size=(int(where.sum()), len(values)))
        sums[where], counts[where] = values[picks].sum(axis=1), len(values)
    return np.asarray(sums.sum(axis=1) / counts.sum(axis=1))


def _clean(samples: Sequence[ArrayLike]) -> list[FloatArray]:
    arrays = [np.asarray(values, dtype=np.float64).ravel() for values in samples]
    return [kept for values in arrays if len(kept := values[~np.isnan(values)])]


def _alike(**columns: ArrayLike) -> list[FloatArray]:
    """Return columns as float arrays of one length."""
    arrays = {name: np.atleast_1d(np.asarray(values, dtype=np.float64)) for name, values in columns.items()}
    first, shape = next((name, array.shape) for name, array in arrays.items())
    for name, array in arrays.items():
        if array.shape != shape:
            raise InputError(f"{name}: expected one entry for each of {first} {shape}, got {array.shape}")
    return list(arrays.values())
