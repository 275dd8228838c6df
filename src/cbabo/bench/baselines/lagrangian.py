"""ALBO (after Gramacy et al. 2016): expected improvement of an augmented Lagrangian with modelled objective and constraints.

Symbols and shapes
    f, g     b, b x m   objective and violations c - limits, each divided by its scale (see below)
    L        b        f + lambda'g + sum_j max(0, g_j)^2 / (2 rho)
    eps      256 x (1 + m)   fixed quasi-random standard normal numbers
    best     the least L of all measured designs

f and c have a Gaussian process each; L, which is neither Gaussian nor smooth, is not modelled but sampled: mean + std eps at one
design. EI is the mean of max(0, best - L) over the samples; its derivatives by mean and std are means over the same samples.
Where no sample improves anywhere, the mean of L is minimised instead.

After every evaluation, at the measured design with the least L: lambda_j <- max(0, lambda_j + g_j / rho), and rho is halved while
that design is infeasible. lambda starts at 0. rho starts at v / 2a, where v is the least sum of squared violations among
infeasible initial designs and a by how much the best feasible one is below the median objective; at 1 where there is no v or a.

Scales are taken from the initial data and kept, so that multipliers keep their meaning: for f its standard deviation; for c_j the
interquartile range over 1.349 (robust against poles), or the standard deviation where that is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cbabo.bench.baselines.ascent import Criterion, maximise
from cbabo.bench.baselines.sequential import Data, Task, fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child_seed


@dataclass(frozen=True)
class Tuning:
    """Numbers of ALBO."""

    samples: int = 256
    """Quasi-Monte Carlo samples of the augmented Lagrangian at one design."""

    least_rho: float = 1e-9
    """Lower bound of rho: keeps the penalty finite."""

    least_first_rho: float = 1e-3
    """Lower bound of rho at the start: an almost feasible initial design must not make the penalty dominate."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """The augmented Lagrangian and its coefficients."""

    limits: FloatArray
    """m, natural units."""
    scale: FloatArray
    """1 + m, natural units: what f and the violations are divided by."""
    multipliers: FloatArray
    """m: lambda."""
    rho: float

    @classmethod
    def first(cls, task: Task, y: FloatArray) -> Lagrangian:
        """Return the initial Lagrangian for measured outputs y (n x (1 + m))."""
        scale = _scales(y)
        f, g = y[:, 0] / scale[0], (y[:, 1:] - task.limits) / scale[1:]
        feasible = task.feasible(y)
        rho = 1.0
        if feasible.any() and not feasible.all():
            violation = np.square(np.clip(g[~feasible], 0.0, None)).sum(axis=1).min()
            advantage = np.median(f) - f[feasible].min()
            rho = float(violation / (2.0 * advantage)) if advantage > 0.0 else rho
        return cls(task.limits, scale, np.zeros_like(task.limits), max(rho, TUNING.least_first_rho))

    def of(self, y: FloatArray) -> FloatArray:
        """Return L (n) of measured outputs y (n x (1 + m))."""
        g = self.violations(y)
        penalty = np.square(np.clip(g, 0.0, None)).sum(axis=1) / (2.0 * self.rho)
        return np.asarray(y[:, 0] / self.scale[0] + g @ self.multipliers + penalty)

    def violations(self, y: FloatArray) -> FloatArray:
        """Return g (n x m)."""
        return np.asarray((y[:, 1:] - self.limits) / self.scale[1:])

    def updated(self, minimiser: FloatArray, feasible: bool) -> Lagrangian:
        """Return the updated Lagrangian, given the outputs (1 + m) of the measured design with the least L."""
        multipliers = np.maximum(0.0, self.multipliers + self.violations(minimiser[None])[0] / self.rho)
        rho = self.rho if feasible else max(0.5 * self.rho, TUNING.least_rho)
        return Lagrangian(self.limits, self.scale, multipliers, rho)


def albo(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """Suggest where the expected improvement of the augmented Lagrangian is largest."""
    lagrangian, warm = Lagrangian.first(task, data.y), task.warm
    uniform = sobol(data.y.shape[1], child_seed(task.seed, "normal"), TUNING.samples)
    eps = torch.special.ndtri(uniform.clamp(1e-9, 1.0 - 1e-9))
    while True:
        surrogates = fitted(*data.tensors, warm)
        warm = surrogates.hyperparameters
        best = float(lagrangian.of(data.y).min())
        improvement = expected_improvement(lagrangian, best, eps)
        design = maximise(surrogates, improvement, task, data, linear=True)
        if design is None:
            design = maximise(surrogates, lower_mean(lagrangian, eps), task, data)
        data = yield task.anywhere(data) if design is None else design
        at = int(lagrangian.of(data.y).argmin())
        lagrangian = lagrangian.updated(data.y[at], bool(task.feasible(data.y[at : at + 1])[0]))


def expected_improvement(lagrangian: Lagrangian, best: float, eps: Tensor) -> Criterion:
    """Return the mean over samples eps (s x (1 + m)) of max(0, best - L)."""
    return _mean_over_samples(lagrangian, eps, lambda value: (best - value).clamp_min(0.0), lambda value: value < best)


def lower_mean(lagrangian: Lagrangian, eps: Tensor) -> Criterion:
    """Return minus the mean over samples eps (s x (1 + m)) of L."""
    return _mean_over_samples(lagrangian, eps, torch.neg, torch.isfinite)


def _mean_over_samples(
    lagrangian: Lagrangian, eps: Tensor, gain: Callable[[Tensor], Tensor], counts: Callable[[Tensor], Tensor]
) -> Criterion:
    """Return the mean of gain(L), of which the derivative by L is -1 where it counts and 0 elsewhere."""
    limits, scale, multipliers = (
        torch.from_numpy(a) for a in (lagrangian.limits, lagrangian.scale, lagrangian.multipliers)
    )
    rho, count = lagrangian.rho, len(eps)
    on_f, on_g = eps[:, 0], eps[:, 1:].T.unsqueeze(-2).contiguous()  # s; m x 1 x s

    def criterion(mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        centre, spread = mean / scale, std / scale
        centre_g, spread_g = (centre[:, 1:] - limits / scale[1:]).T, spread[:, 1:].T
        excess = torch.addcmul(centre_g.unsqueeze(-1), spread_g.unsqueeze(-1), on_g).clamp_min_(0.0)  # m x b x s
        value = (centre[:, 0] + multipliers @ centre_g).unsqueeze(-1) + spread[:, :1] * on_f
        value.addmm_(spread_g.T * multipliers, eps[:, 1:].T).add_(excess.square().sum(0), alpha=0.5 / rho)  # L, b x s
        weight = counts(value).to(mean.dtype)
        excess.mul_(weight)
        share = weight.sum(1)
        on_mean_g = excess.sum(-1).T / rho + share.unsqueeze(-1) * multipliers
        on_std_g = (excess @ on_g.mT).squeeze(-1).T / rho + (weight @ eps[:, 1:]) * multipliers
        on_mean = torch.cat([share.unsqueeze(-1), on_mean_g], 1) / (-count * scale)
        on_std = torch.cat([(weight @ on_f).unsqueeze(-1), on_std_g], 1) / (-count * scale)
        return gain(value).mean(1), on_mean, on_std

    return criterion


def _scales(y: FloatArray) -> FloatArray:
    deviation = y.std(axis=0)
    quartiles = np.subtract(*np.percentile(y, [75, 25], axis=0)) / 1.349
    quartiles[0] = deviation[0]
    found = np.where(quartiles > 0.0, quartiles, deviation)
    return np.where(found > 0.0, found, 1.0)
