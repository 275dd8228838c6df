"""Baselines that do not choose their evaluations adaptively: loss of a Latin hypercube of 200 designs, and of constants.

`lhs_plain` fits BoTorch's models to the hypercube and solves for each threshold; `lhs_strong` imports the hypercube into a study,
which fits and answers with the default method. The constants answer every threshold with one known optimum.

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
import pandas as pd
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.optimize import minimize
from scipy.stats import qmc

from cbabo.bench.cbabo_runs import score_predictions
from cbabo.bench.scoring import QUERIES, Measures, score_map
from cbabo.bench.truth import truth
from cbabo.methods.settings import Settings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.problems import ShippedProblem
from cbabo.study.study import Study
from cbabo.surrogate import Hyperparameters, Surrogates, condition

DESIGNS = 200
"""Designs of the Latin hypercube: the budget of a CBA-BO run."""


@dataclass(frozen=True)
class SolverTuning:
    """Numbers of the multi-start SLSQP search that answers a threshold."""

    pool: int = 512
    """Random designs that are ranked, with the evaluated ones, to choose the starts."""

    starts: int = 8
    """SLSQP runs per threshold."""

    separation: float = 0.1
    """Least distance of two starts (largest difference of a coordinate, unit cube): closer ones end in the same minimum."""

    iterations: int = 60
    """Most iterations of one SLSQP run."""

    objective_tolerance: float = 1e-9
    """SLSQP stops when the objective changes by less, in standard deviations of the output."""

    limit_tolerance: float = 1e-6
    """How far a posterior mean may exceed its limit, in standard deviations of the output: rounding is no violation."""


TUNING = SolverTuning()


def lhs_plain(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Fit BoTorch's GPs to a Latin hypercube of 200; minimise the posterior mean under the limits, for each threshold anew.

    There is no margin for the posterior's uncertainty and no further evaluation.
    """
    began = time.perf_counter()
    x, y = hypercube(shipped, seed)
    means = Means(fit_by_botorch(shipped.problem.space.unit(x), y))
    fitted = time.perf_counter()
    solver = Solver(
        means, shipped.problem.space.snap(child(seed, "pool", shipped.name).random((TUNING.pool, x.shape[1])))
    )
    measures = score_map(shipped, seed, lambda rows: shipped.problem.space.natural(solver.solve_all(rows)))
    answered = time.perf_counter()
    queries = len(truth(shipped.name).thresholds) + QUERIES
    return measures | {"run seconds": fitted - began, "predict seconds": (answered - fitted) / queries}


def lhs_strong(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Import a Latin hypercube of 200 into a study: fits and answers of the default method, only the evaluations differ."""
    began = time.perf_counter()
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=Settings.default())
    x, y = hypercube(shipped, seed)
    designs = pd.DataFrame(shipped.problem.space.named(x))
    study.add(pd.concat([designs, pd.DataFrame(y, columns=list(shipped.problem.outputs))], axis=1))
    model = study.model()
    return {"run seconds": time.perf_counter() - began} | score_predictions(shipped, model, seed)


def constant_strictest(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Answer every threshold with the true optimum of the strictest limits."""
    return _constant(shipped, seed, truth(shipped.name).strictest.x)


def constant_relaxed(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Answer every threshold with the true optimum of the most relaxed limits."""
    return _constant(shipped, seed, truth(shipped.name).relaxed.x)


def hypercube(shipped: ShippedProblem, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return a Latin hypercube of 200 (n x d, natural units) and its outputs (n x q), without failed designs."""
    space = shipped.problem.space
    draws = qmc.LatinHypercube(len(space.variables), rng=child(seed, "latin hypercube of all")).random(DESIGNS)
    points = space.array(space.spread(draws))
    f, c = shipped.evaluate_many(points)
    y = np.column_stack([f, c])
    sound = np.isfinite(y).all(axis=1)
    return points[sound], y[sound]


def fit_by_botorch(x: FloatArray, y: FloatArray) -> Surrogates:
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
        starts = _separated(designs[np.lexsort(_merit(z, bound).T[::-1])])
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
            "options": {"maxiter": TUNING.iterations, "ftol": TUNING.objective_tolerance},
        }
        found = minimize(objective, start, jac=True, method="SLSQP", **rules)
        end: FloatArray = np.clip(np.nan_to_num(found.x, nan=0.5), 0.0, 1.0)
        return end

    @cached_property
    def _known(self) -> tuple[FloatArray, FloatArray]:
        designs = np.vstack([self.means.surrogates.x.numpy(), self.pool])
        return designs, np.array([self.means(u)[0] for u in designs])


def _separated(ranked: FloatArray) -> FloatArray:
    """Return the best of ranked designs (n x d) that keep a distance from each other."""
    chosen = ranked[:1]
    for design in ranked[1:]:
        if len(chosen) == TUNING.starts:
            break
        if np.abs(chosen - design).max(axis=1).min() > TUNING.separation:
            chosen = np.vstack([chosen, design])
    return chosen


def _merit(z: FloatArray, bound: FloatArray) -> FloatArray:
    """Return (total violation, f) of designs (n x 2), violations within the tolerance counting as none."""
    violation = np.clip(z[:, 1:] - bound - TUNING.limit_tolerance, 0.0, None).sum(axis=1)
    return np.column_stack([violation, z[:, 0]])


def _constant(shipped: ShippedProblem, seed: int, design: FloatArray) -> Measures:
    return score_map(shipped, seed, lambda rows: np.repeat(design[np.newaxis], len(rows), axis=0))
