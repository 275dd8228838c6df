"""Repeated measurements of the same design, and which outputs are noisy.

Symbols and shapes
    n, q     distinct measured designs, outputs
    y        n x q    mean of the measurements of each design, natural units
    count    n        number of measurements of each design
    weight            of one measurement: the typical squared standard error of its output over its own; 1 where none was stated
    spread   n x q    sum of squares of the measurements about their mean, natural units squared
    eta      q        noise variance of one measurement, in units of the surrogates (see `gp`)

A simulator is deterministic or not, output by output: two measurements of one design tell. Where they agree, a measured output is
exact, and what a smooth function cannot follow is a property of the output (a kink, or the scatter of a mesh). Where they differ,
the noise-free output is what limits are about: measured designs count by their posterior, and standard deviations leave the noise
out. Mesh scatter is repeatable, so that repeats cannot find it; the setting `noise` decides whether it counts as noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.domain.evaluations import Evaluations
from cbabo.numerics.arrays import FloatArray

NoisePolicy = Literal["detect", "none", "smooth"]
"""detect: outputs that differ between two measurements of a design are noisy. none: the same, but no evaluation is spent on a
repeat. smooth: all outputs count as noisy, also where repeats agree."""

MIN_DESIGNS = 2
"""Distinct designs from which on measurements of the same design are collected."""
EXACT, WARPED, NATURAL = 0, 1, 2
"""Kinds of noise: none; the same variance everywhere in the units of the surrogates; the same in natural units."""


@dataclass(frozen=True)
class NoiseTuning:
    """Numbers of the noise model."""

    same_output: float = 1e-10
    """Difference of two measurements of a design, as a share of the largest absolute value, up to which they agree."""
    min_slope: float = 1e-2
    """Smallest slope of a warp by which noise is scaled; smaller ones would make the covariance matrix singular."""
    warp_width: float = 5.0
    """Smallest width of a warp in standard deviations of the noise: a narrower one would distort the noise."""
    max_weight: float = 1e4
    """Largest weight of one measurement relative to a typical one: larger ones would make the covariance matrix singular."""
    suspicious: float = 1e-3
    """Noise variance, as a share of the output's variance, from which on an output without repeats is not taken as exact."""


TUNING = NoiseTuning()


@dataclass(frozen=True, eq=False)
class Measurements:
    """The distinct measured designs.

    Examples:
        >>> from cbabo import Constraint, Objective, Problem, Real
        >>> from cbabo.domain.evaluations import Evaluation
        >>> problem = Problem("bar", [Real("width", 1, 2)], Objective("mass"), [Constraint("stress", low=0.0, high=10.0)])
        >>> rows = [
        ...     Evaluation(i, "complete", "run", {"width": w}, {"mass": 2.0 * w, "stress": s})
        ...     for i, (w, s) in enumerate([(1.5, 4.0), (1.5, 5.0), (1.0, 9.0)])
        ... ]
        >>> measurements = Measurements.of(Evaluations(problem, tuple(rows)))
        >>> measurements.y.tolist(), measurements.count.tolist(), measurements.differs.tolist()
        ([[3.0, 4.5], [2.0, 9.0]], [2.0, 1.0], [False, True])
    """

    rows: Evaluations
    """n, the first evaluation of each design."""
    y: Tensor
    count: Tensor
    spread: Tensor
    precision: Tensor
    """n x q, number of measurements of each design, each weighed by its standard error where one was stated."""
    stated: Tensor
    """q, whether standard errors were stated for an output."""

    @classmethod
    def of(cls, complete: Evaluations) -> Measurements:
        """Collect the measurements of each design."""
        designs: dict[tuple[float, ...], list[int]] = {}
        for i, e in enumerate(complete):
            designs.setdefault(tuple(e.point.values()), []).append(i)
        if len(designs) < MIN_DESIGNS:  # No surrogate can be fitted to a single row.
            designs = {(float(i),): [i] for i in range(len(complete))}
        first = Evaluations(complete.problem, tuple(complete[rows[0]] for rows in designs.values()))
        weights = _weights(complete.sem)
        mean, spread, precision = first.y.copy(), np.zeros_like(first.y), np.ones_like(first.y)
        for i, rows in enumerate(designs.values()):
            precision[i] = weights[rows].sum(0)
            if len(rows) > 1:
                offset = (
                    complete.y[rows] - complete.y[rows[0]]
                )  # Equal measurements have exactly their value as the mean.
                centre = (offset * weights[rows]).sum(0) / precision[i]
                mean[i] += centre
                spread[i] = (weights[rows] * np.square(offset - centre)).sum(0)
        count = np.array([float(len(rows)) for rows in designs.values()])
        stated = (complete.sem > 0.0).any(0)
        return cls(first, *(torch.from_numpy(part) for part in (mean, count, spread, precision, stated)))

    def of_outputs(self, columns: Tensor) -> Measurements:
        """Return the measurements of some outputs (indices)."""
        y, spread, precision = (part[:, columns] for part in (self.y, self.spread, self.precision))
        return Measurements(self.rows, y, self.count, spread, precision, self.stated[columns])

    def of_designs(self, rows: NDArray[np.int64]) -> Measurements:
        """Return the measurements of some designs (indices)."""
        kept = Evaluations(self.rows.problem, tuple(self.rows[int(i)] for i in rows))
        at = torch.from_numpy(rows)
        return Measurements(kept, self.y[at], self.count[at], self.spread[at], self.precision[at], self.stated)

    @property
    def x(self) -> Tensor:
        """The designs, n x d, unit cube."""
        return torch.from_numpy(self.rows.x)

    @property
    def repeated(self) -> bool:
        """Whether a design was measured more than once."""
        return bool((self.count > 1).any())

    @property
    def differs(self) -> Tensor:
        """Which outputs (q) differ between measurements of the same design."""
        largest = self.y.abs().amax(0) if len(self.y) else self.y.new_zeros(self.y.shape[1])
        return self.spread.amax(0) > (TUNING.same_output * largest).square()

    @property
    def noise_std(self) -> Tensor:
        """Standard deviations (q) of a measurement by the repeats alone, natural units; 0 without repeats."""
        return (self.spread.sum(0) / (self.count - 1.0).sum().clamp_min(1.0)).sqrt()

    def noisy(self, policy: NoisePolicy) -> Tensor:
        """Tell which outputs (q) are noisy."""
        return torch.ones_like(self.differs) if policy == "smooth" else self.differs | self.stated


def _weights(sem: FloatArray) -> FloatArray:
    """Return the weights (m x q) of measurements with these standard errors (nan where none was stated)."""
    known = np.isfinite(sem) & (sem > 0.0)
    square = np.where(known, np.square(sem), np.nan)
    typical = np.array(
        [np.median(column[ok]) if ok.any() else 1.0 for column, ok in zip(square.T, known.T, strict=True)]
    )
    weights = np.where(known, typical / np.where(known, square, 1.0), 1.0)
    return np.clip(weights, 1.0 / TUNING.max_weight, TUNING.max_weight)


@dataclass(frozen=True, eq=False)
class RowNoise:
    """The noise of every row of the data, relative to the noise variance eta of its output."""

    kind: Tensor
    """q, EXACT, WARPED or NATURAL."""
    relative: Tensor
    """q x n, noise variance of each row in units of eta: 1 for a single measurement."""
    repeats: Tensor
    """q, number of measurements beyond the first of each design; 0 for outputs that are not noisy."""
    spread: Tensor
    """q, sum of squares of these about their means, in the unit of the data squared."""

    @classmethod
    def of(cls, measurements: Measurements, noisy: Tensor, slope: Tensor, scaled: Tensor) -> RowNoise:
        """Return the noise of warped data.

        noisy: q, which outputs are noisy; slope: n x q, slope of each output's warp at the data; scaled: q, outputs whose noise
        is the same everywhere in natural units, so that the warp scales it.
        """
        slope = slope.clamp_min(TUNING.min_slope)
        factor = torch.where(scaled, slope, 1.0).square()
        relative = torch.where(noisy, factor / measurements.precision, 1.0)
        repeats = noisy * (measurements.count - 1.0).sum()
        spread = torch.where(noisy, (measurements.spread * (slope.square() / factor)).sum(0), 0.0)
        kind = torch.where(noisy, torch.where(scaled, NATURAL, WARPED), EXACT)
        return cls(kind, relative.T.contiguous(), repeats, spread)

    def at(self, rows: Tensor, outputs: Tensor) -> RowNoise:
        """Return the noise of some rows and outputs (indices)."""
        relative = self.relative[outputs][:, rows].contiguous()
        return RowNoise(self.kind[outputs], relative, self.repeats[outputs], self.spread[outputs])

    def repeated(self, times: int) -> RowNoise:
        """Return the same for data whose outputs stand there several times, one block after the other."""
        parts = (self.kind, self.repeats, self.spread)
        kind, repeats, spread = (part.repeat(times) for part in parts)
        return RowNoise(kind, self.relative.repeat(times, 1), repeats, spread)

    def without_repeats(self) -> RowNoise:
        """Return the noise of the rows alone."""
        return RowNoise(self.kind, self.relative, torch.zeros_like(self.repeats), torch.zeros_like(self.spread))
