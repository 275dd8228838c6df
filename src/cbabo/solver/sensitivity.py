"""How the optimum of the constrained problem changes with its limits: multipliers, their uncertainty, and how far they hold.

Symbols and shapes, in units of the standardised outputs, as in `continuous`; b programs or samples
    x      d        the optimum at theta (k); discrete variables keep their values
    lam    r        its multipliers; with one row more where the failure probability is modelled
    rise   r        derivatives of the bounds by the threshold that moves them
    gain   k        what the objective gains per unit of each threshold: the sum of lam rise over its requirements

The posterior of an output and of its derivatives at x is a normal distribution of 1 + d numbers. Samples of it, for all outputs,
change the linear outputs and the quadratic Lagrangian of the program at x, and every changed program has multipliers of its own:
their spread is the uncertainty of lam. It includes limits that bind in some samples only.

The binding limits are followed along every threshold, in both directions at once: Newton steps of the optimality conditions, with
the same requirements active, for every step of the threshold, until a multiplier or the slack of another one changes sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbabo.numerics import qp
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.solver.batched import BatchedPosterior
from cbabo.solver.continuous import TUNING as SOLVER
from cbabo.solver.continuous import Solver
from cbabo.solver.library import TUNING as PROGRAM
from cbabo.solver.library import convex, linearised
from cbabo.solver.reaching import held_region


@dataclass(frozen=True)
class SensitivityTuning:
    """Numbers that tune prices."""

    corrections: int = 3
    """Quadratic programs after the solver: its own multipliers are those of its last step, and only as accurate as that."""
    samples: int = 128
    """Samples of the posterior, half of them mirrored: the spread of the multipliers is then known to 6 %."""
    binding: float = 1e-4
    """Gain of the standardised objective over the whole range of a limit below which the limit does not bind."""
    steps: int = 10
    """Steps along a threshold to the end of its range."""
    halvings: int = 6
    """How often the step is halved in which the binding limits change."""
    negative: float = 1e-6
    """How far multipliers and slacks may be below zero by rounding."""
    off: float = 1e-2
    """How far an active requirement may be from its bound, in standardised units, for a step to count."""
    soft: float = 1e-9
    """Compliance of active requirements, so that requirements with equal derivatives have a solution."""


TUNING = SensitivityTuning()


class Sensitivity:
    """The optimum at one threshold, and how it changes with theta."""

    def __init__(self, solver: Solver, theta: FloatArray, start: FloatArray) -> None:
        """theta: k; start: the design (d) of an answer, from which the optimum is found."""
        self.solver, self.theta = solver, theta
        self.batched = BatchedPosterior(solver)
        self.free = solver.posterior.problem.space.continuous.astype(np.float64)
        bound = self.batched.bound(theta[None])
        plain = solver.bound(theta[None])[0]
        found = solver.solve(plain, start, held_region(solver, start)) if self.free.any() else solver.at(plain, start)
        lam = np.zeros(bound.shape[1])
        lam[: len(found.multipliers)] = np.maximum(found.multipliers, 0.0)
        self._penalty = PROGRAM.penalty * (1.0 + float(np.minimum(lam, PROGRAM.largest_multiplier).max(initial=0.0)))
        x, lam = found.x[None], lam[None]
        for _ in range(TUNING.corrections if self.free.any() else 0):
            self.curvature = self._curvature(x[0], lam[0])
            x, lam = self.step(bound, x, lam)
        self.x, self.lam = x[0], lam[0]
        self.curvature = self._curvature(self.x, self.lam)

    @property
    def has_free_variables(self) -> bool:
        """Whether some variable is continuous; else the objective moves in jumps only."""
        return bool(self.free.any())

    @cached_property
    def rise(self) -> FloatArray:
        """Derivatives (r) of the bounds by the threshold that moves each of them."""
        step, at = SOLVER.theta_step, self.theta[None]
        return np.asarray((self.solver.bound(at + step) - self.solver.bound(at - step))[0] / (2.0 * step))

    @property
    def gain(self) -> FloatArray:
        """What the objective gains per unit of each threshold (k)."""
        return np.asarray(self.gains(self.lam[None])[0])

    @cached_property
    def gain_std(self) -> FloatArray:
        """The standard deviations of the gains (k) by the posterior."""
        return np.asarray(np.sqrt(np.square(self.gains(self._sampled()) - self.gain).mean(0)))

    def gains(self, lam: FloatArray) -> FloatArray:
        """Return what the objective gains per unit of each threshold (b x k) with these multipliers (b x r)."""
        limits = self.solver.posterior.limits
        found = np.zeros((len(lam), len(self.theta)))
        for r, (j, moves) in enumerate(zip(limits.threshold.tolist(), (limits.span != 0).tolist(), strict=True)):
            if moves:
                found[:, j] += lam[:, r] * self.rise[r]
        return found

    def binding(self, lam: FloatArray) -> NDArray[np.bool_]:
        """Tell which limits (b x k) bind with these multipliers (b x r)."""
        return self.gains(lam) > TUNING.binding

    def step(self, bound: FloatArray, x: FloatArray, lam: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve the program at each design (b x d) for bounds (b x r); return the next designs and their multipliers."""
        z, J = self.batched.mean_and_slope(x)
        H = np.broadcast_to(self.curvature, (len(x), *self.curvature.shape))
        found = qp.continued(linearised(self.batched, x, z, J, H, bound, self.free, self._penalty), lam)
        return np.clip(np.where(self.free > 0, x + found.p, x), 0.0, 1.0), found.multipliers

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Return for each threshold the values (k each) between which the same limits bind, the others held.

        They end where the range of the limit ends, or at theta where it lies outside of it.
        """
        k = len(self.theta)
        at = np.tile(np.arange(k), 2)
        ends = np.concatenate([np.minimum(self.theta, 0.0), np.maximum(self.theta, 1.0)])
        path = _Path(self, at, ends - self.theta[at])
        found = self.theta[at] + path.followed() * (ends - self.theta[at])
        return found[:k], found[k:]

    def _sampled(self) -> FloatArray:
        """Return the multipliers (b x r) of samples of the posterior at x."""
        b, d, q = TUNING.samples, len(self.x), len(self.batched.outputs)
        z, J = (np.repeat(part, b, axis=0) for part in self.batched.mean_and_slope(self.x[None]))
        half = child(0, "price samples").standard_normal((b // 2, q, 1 + d))
        values, vectors = np.linalg.eigh(self.solver.pointwise.covariance(self.x))
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        error = np.einsum("qij,bqj->bqi", root, np.concatenate([half, -half]))
        z[:, :q] += error[:, :, 0]
        J[:, :q] += error[:, :, 1:]
        x, lam, bound, H = (
            np.repeat(part[None], b, axis=0)
            for part in (self.x, self.lam, self.batched.bound(self.theta[None])[0], self.curvature)
        )
        return qp.continued(linearised(self.batched, x, z, J, H, bound, self.free, self._penalty), lam).multipliers

    def _curvature(self, x: FloatArray, lam: FloatArray) -> FloatArray:
        """Return the second derivatives (d x d) of the Lagrangian, made positive definite."""
        solver = self.solver
        weights = np.zeros(len(solver.posterior.predictor.scale))
        weights[0] = solver.goal
        np.add.at(
            weights, solver.output, solver.sign * np.minimum(lam[: len(solver.output)], PROGRAM.largest_multiplier)
        )
        return np.asarray(convex(solver.pointwise.hessian(x, weights)[None])[0])


class _Path:
    """Optima as thresholds move, one in each row, as long as the same requirements are active; b rows."""

    def __init__(self, optimum: Sensitivity, at: NDArray[np.intp], distance: FloatArray) -> None:
        """at: the threshold (b) that moves; distance: how far it moves at most (b)."""
        self.optimum, self.at, self.distance = optimum, at, distance
        lam = optimum.lam
        self.active = np.flatnonzero(lam > TUNING.negative * (1.0 + lam.max(initial=0.0)))
        self.idle = np.setdiff1d(np.arange(len(lam)), self.active)
        self.x = np.repeat(optimum.x[None], len(at), axis=0)

    def followed(self) -> FloatArray:
        """Return the share (b) of the distance over which the same limits bind."""
        low, high = np.zeros(len(self.at)), (self.distance != 0.0).astype(np.float64)
        moving = np.flatnonzero(high > 0.0)
        for i in range(TUNING.steps):
            share = np.full(len(moving), (i + 1) / TUNING.steps)
            same, x = self._valid(moving, share)
            high[moving[~same]] = share[~same]
            moving = moving[same]
            low[moving], self.x[moving] = share[same], x[same]
        for _ in range(TUNING.halvings):
            rows = np.flatnonzero(high > low)
            share = 0.5 * (low + high)[rows]
            same, x = self._valid(rows, share)
            high[rows[~same]] = share[~same]
            low[rows[same]], self.x[rows[same]] = share[same], x[same]
        return np.where(low >= 1.0, low, 0.5 * (low + high))

    def _valid(self, rows: NDArray[np.intp], share: FloatArray) -> tuple[NDArray[np.bool_], FloatArray]:
        """Tell for some rows whether the same requirements are active after this share of the distance, and the designs."""
        if not len(rows):
            return np.zeros(0, dtype=np.bool_), self.x[rows]
        batched = self.optimum.batched
        theta = np.repeat(self.optimum.theta[None], len(rows), axis=0)
        theta[np.arange(len(rows)), self.at[rows]] += share * self.distance[rows]
        bound, x = batched.bound(theta), self.x[rows]
        for _ in range(2):
            z, J = batched.mean_and_slope(x)
            x, lam = self._newton(bound, x, z, J)
        z = batched.mean(x)
        slack = bound - batched.sign * z[:, batched.output]
        same = (lam >= -TUNING.negative).all(1) & (slack[:, self.idle] >= -TUNING.negative).all(1)
        # A step that the linear outputs do not follow has left the optima.
        return np.asarray(same & (np.abs(slack[:, self.active]) <= TUNING.off).all(1)), x

    def _newton(self, bound: FloatArray, x: FloatArray, z: FloatArray, J: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the designs (b x d) after one Newton step, and the multipliers (b x a) of the active requirements."""
        b, d = x.shape
        m, batched = len(self.active), self.optimum.batched
        output, sign, edge = batched.output[self.active], batched.sign[self.active], PROGRAM.edge
        A, g = sign[:, None] * J[:, output], batched.solver.goal * J[:, 0]
        c = bound[:, self.active] - sign * z[:, output]
        slope = g + np.einsum("bmd,m->bd", A, self.optimum.lam[self.active])
        free = (self.optimum.free > 0) & ~((x <= edge) & (slope > 0.0)) & ~((x >= 1.0 - edge) & (slope < 0.0))
        for _ in range(2):  # Variables that would leave their range are held at its end.
            matrix = np.zeros((b, d + m, d + m))
            matrix[:, :d, :d] = self.optimum.curvature * free[:, :, None] * free[:, None, :]
            matrix[:, np.arange(d), np.arange(d)] += ~free
            matrix[:, :d, d:] = (A * free[:, None, :]).transpose(0, 2, 1)
            matrix[:, d:, :d] = A * free[:, None, :]
            matrix[:, np.arange(d, d + m), np.arange(d, d + m)] = -TUNING.soft
            right = np.concatenate([-g * free, c], axis=1)
            found = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
            outside = free & ((x + found[:, :d] < -edge) | (x + found[:, :d] > 1.0 + edge))
            if not outside.any():
                break
            free &= ~outside
        return np.clip(x + found[:, :d] * free, 0.0, 1.0), found[:, d:]
