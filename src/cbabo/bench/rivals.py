"""The honest rivals that learn or know one map for all thresholds: a Latin hypercube of 200, and constants.

The hypercube with our own surrogates and answers is in `strong`: what is here does not depend on them.

Symbols and shapes
    x      n x d    evaluated designs, unit cube; y  n x q  their f, c_1, ..., c_m, natural units
    u      d        one design, unit cube
    z      q        posterior means there, in units of standardised outputs; J  q x d  their derivatives by u
    bound  m        limits in the same units
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.optimize import minimize
from scipy.stats import qmc

from cbabo.bench.judging import QUERIES, Measures, direct
from cbabo.bench.truth import truth
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.problems import ShippedProblem
from cbabo.surrogate import Hyperparameters, Surrogates, condition

DESIGNS = 200
"""As many as a run of ours has."""
_POOL = 512  # random designs among which, with the evaluated ones, the searches start
_STARTS = 8
_APART = 0.1  # largest difference of a variable in the unit cube: starts nearer than this would end together
_ITERATIONS = 60
_TOLERANCE = 1e-6  # of an output's deviation: how far a limit may be exceeded in the surrogate


def lhs_plain(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Fit BoTorch's GPs to a Latin hypercube of 200 and minimise their mean under the limits, for each threshold anew.

    What an engineer would write in forty lines: no margin, no further evaluation.
    """
    began = time.perf_counter()
    x, y = hypercube(shipped, seed)
    means = Means(fitted_by_botorch(shipped.problem.space.unit(x), y))
    fitted = time.perf_counter()
    solver = Solver(means, shipped.problem.space.snap(child(seed, "pool", shipped.name).random((_POOL, x.shape[1]))))
    measures = direct(shipped, seed, lambda rows: shipped.problem.space.natural(solver.solve_all(rows)))
    answered = time.perf_counter()
    queries = len(truth(shipped.name).thresholds) + QUERIES
    return measures | {"run seconds": fitted - began, "predict seconds": (answered - fitted) / queries}


def constant_strictest(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Answer every threshold with the true optimum of the strictest limits."""
    return _constant(shipped, seed, truth(shipped.name).strictest.x)


def constant_relaxed(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Answer every threshold with the true optimum of the most relaxed limits."""
    return _constant(shipped, seed, truth(shipped.name).relaxed.x)


def hypercube(shipped: ShippedProblem, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return a Latin hypercube of 200 (n x d, natural units) and what it measures (n x q); designs that fail are left out."""
    space = shipped.problem.space
    draws = qmc.LatinHypercube(space.dimension, rng=child(seed, "latin hypercube of all")).random(DESIGNS)
    points = space.array(space.spread(draws))
    f, c = shipped.evaluate_many(points)
    y = np.column_stack([f, c])
    sound = np.isfinite(y).all(axis=1)
    return points[sound], y[sound]


def fitted_by_botorch(x: FloatArray, y: FloatArray) -> Surrogates:
    """Fit a SingleTaskGP to every output (y n x q) of designs (x n x d, unit cube); return the same posterior as surrogates."""
    centre, scale = torch.from_numpy(y.mean(axis=0)), torch.from_numpy(y.std(axis=0, ddof=1)).clamp_min(1e-300)
    inputs, outputs = torch.from_numpy(x), torch.from_numpy(y)
    gps = []
    for j in range(y.shape[1]):
        z = ((outputs[:, j] - centre[j]) / scale[j]).unsqueeze(-1)
        gp = SingleTaskGP(inputs, z, outcome_transform=None)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
        gps.append(gp)
    with torch.no_grad():
        found = Hyperparameters(
            lengthscales=torch.cat([gp.covar_module.lengthscale for gp in gps]).detach(),
            noise=torch.cat([gp.likelihood.noise for gp in gps]).detach(),
            constant=torch.stack([gp.mean_module.constant for gp in gps]).detach(),
        )
    return condition(inputs, outputs, found, centre, scale)


@dataclass(frozen=True, eq=False)
class Means:
    """Posterior means of all outputs with their derivatives, at one design after another."""

    surrogates: Surrogates

    def __call__(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z (q) and J (q x d) at a design u (d)."""
        away = self._x - u
        weighted = np.exp(-0.5 * (away * away) @ self._precision) * self._weights
        return self._constant + weighted.sum(axis=0), (weighted.T @ away) * self._precision.T

    @cached_property
    def _x(self) -> FloatArray:
        return self.surrogates.x.numpy()

    @cached_property
    def _precision(self) -> FloatArray:
        return self.surrogates.hyperparameters.lengthscales.pow(-2).T.contiguous().numpy()

    @cached_property
    def _weights(self) -> FloatArray:
        return self.surrogates.weights.T.contiguous().numpy()

    @cached_property
    def _constant(self) -> FloatArray:
        return self.surrogates.hyperparameters.constant.numpy()


@dataclass(frozen=True, eq=False)
class Solver:
    """Minimises the mean of f where the means of c are within the limits: SLSQP from several starts."""

    means: Means
    pool: FloatArray
    """p x d, unit cube: designs among which, with the evaluated ones, the searches start."""

    def solve_all(self, thresholds: FloatArray) -> FloatArray:
        """Return the designs (n x d, unit cube) for thresholds (n x m, natural units)."""
        return np.vstack([self.solve(row) for row in thresholds])

    def solve(self, limits: FloatArray) -> FloatArray:
        """Return the best design (d) for one row of limits (m): within them first, then by f, else by violation."""
        s = self.means.surrogates
        bound = (limits - s.centre[1:].numpy()) / s.scale[1:].numpy()
        designs, z = self._known
        starts = _apart(designs[np.lexsort(_merit(z, bound).T[::-1])])
        ends = np.vstack([*(self._descend(start, bound) for start in starts), starts])
        merit = _merit(np.array([self.means(end)[0] for end in ends]), bound)
        best: FloatArray = ends[np.lexsort(merit.T[::-1])[0]]
        return best

    def _descend(self, start: FloatArray, bound: FloatArray) -> FloatArray:
        last: dict[bytes, tuple[FloatArray, FloatArray]] = {}

        def at(u: FloatArray) -> tuple[FloatArray, FloatArray]:
            key = u.tobytes()
            if key not in last:
                last.clear()
                last[key] = self.means(u)
            return last[key]

        def objective(u: FloatArray) -> tuple[float, FloatArray]:
            z, jacobian = at(u)
            return float(z[0]), jacobian[0]

        rules: dict[str, Any] = {
            "bounds": [(0.0, 1.0)] * len(start),
            "constraints": {"type": "ineq", "fun": lambda u: bound - at(u)[0][1:], "jac": lambda u: -at(u)[1][1:]},
            "options": {"maxiter": _ITERATIONS, "ftol": 1e-9},
        }
        found = minimize(objective, start, jac=True, method="SLSQP", **rules)
        end: FloatArray = np.clip(np.nan_to_num(found.x, nan=0.5), 0.0, 1.0)
        return end

    @cached_property
    def _known(self) -> tuple[FloatArray, FloatArray]:
        designs = np.vstack([self.means.surrogates.x.numpy(), self.pool])
        return designs, np.array([self.means(u)[0] for u in designs])


def _apart(ranked: FloatArray) -> FloatArray:
    """Return the first of ranked designs (n x d), each at a distance from those before it."""
    chosen = ranked[:1]
    for design in ranked[1:]:
        if len(chosen) == _STARTS:
            break
        if np.abs(chosen - design).max(axis=1).min() > _APART:
            chosen = np.vstack([chosen, design])
    return chosen


def _merit(z: FloatArray, bound: FloatArray) -> FloatArray:
    """Return (total violation, f) of designs (n x 2), violations within the tolerance counting as none."""
    violation = np.clip(z[:, 1:] - bound - _TOLERANCE, 0.0, None).sum(axis=1)
    return np.column_stack([violation, z[:, 0]])


def _constant(shipped: ShippedProblem, seed: int, design: FloatArray) -> Measures:
    return direct(shipped, seed, lambda rows: np.repeat(design[np.newaxis], len(rows), axis=0))
