"""Batches of small convex quadratic programs, by an interior-point method with a fixed number of iterations.

Symbols and shapes, b programs with d variables and r rows each
    p       b x d        variables: minimise g'p + p'Hp / 2 + mu sum(s) subject to A p <= c + s, s >= 0, low <= p <= high
    H       b x d x d    positive definite; A  b x r x d; c  b x r
    mu      b            penalty per unit of violation: rows are elastic, so that every program has a solution
    lam     b x r        multipliers of the rows, between 0 and mu
    w, s    b x r        slack and violation of the rows, both positive: A p + w - s = c at every iteration
    u, v    b x d        multipliers of low and high: H p + g + A'lam - u + v = 0 at every iteration
    tau     b            mean of the products w lam, s (mu - lam), (p - low) u, (high - p) v, which all converge to zero

An iteration is Mehrotra's predictor and corrector with one Cholesky factor. Eliminating everything but p leaves
(H + A' D A + U / (p - low) + V / (high - p)) dp = rhs with D = 1 / (w / lam + s / (mu - lam)).

It is written in NumPy; the linear systems of `continued` are solved by torch. Inside, the programs are the last dimension,
so that every operation runs over long rows for any d. With 5 / 11 / 20 variables a program of a batch takes 25 / 62 / 180
microseconds; PIQP was measured at 70 / 119 / 231 and DAQP at 47 / 71 / 123, which is faster than this module at 20 variables.
`benchmarks/programs.py` compares `continued` with `minimise`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cbabo.numerics.arrays import FloatArray

ITERATIONS = 16
"""Interior-point iterations by default; further ones gain nothing, because rounding limits the accuracy."""
GUESSES = 6
"""Active sets that `continued` tries by default before it leaves a program to `minimise`."""


@dataclass(frozen=True)
class ProgramTuning:
    """Numbers that control both methods."""

    converged: float = 1e-11
    """Smallest target of tau, at which a program counts as solved; a smaller one loses digits to rounding."""
    step_fraction: float = 0.98
    """Fraction of the distance to the nearest bound that a step may cover, so that all iterates stay in the interior."""
    central: float = 0.1
    """Fraction of high - low that the start keeps from both bounds."""
    singular: float = 1e-15
    """Fraction of a diagonal element below which a Cholesky pivot is rounding error; its variable is then kept fixed."""
    regularisation: float = 1e-11
    """Fraction of a row's compliance by which the row is softened in `continued`, so that duplicate rows have a solution."""
    chunk: int = 256
    """Programs per chunk; their matrices fit into the processor's cache."""


TUNING = ProgramTuning()

# Codes of the active set: the state of a row and the state of a variable.
_ACTIVE_ROW, _VIOLATED_ROW = 1, 2
_FREE = 0


class Programs(NamedTuple):
    """A batch of programs; the symbols are those of the module.

    Examples:
        The point nearest to (2, 2) with p1 + p2 <= 1, for p1 up to 0.3:

        >>> programs = Programs(
        ...     g=np.array([[-2.0, -2.0]]),
        ...     H=np.eye(2)[None],
        ...     A=np.array([[[1.0, 1.0]]]),
        ...     c=np.array([[1.0]]),
        ...     low=np.array([[-1.0, -1.0]]),
        ...     high=np.array([[0.3, 5.0]]),
        ...     mu=np.array([10.0]),
        ... )
        >>> minima = minimise(programs)
        >>> minima.p.round(4).tolist(), minima.multipliers.round(4).tolist()
        ([[0.3, 0.7]], [[1.3]])
    """

    g: FloatArray
    H: FloatArray
    A: FloatArray
    c: FloatArray
    low: FloatArray
    """Strictly below high."""
    high: FloatArray
    mu: FloatArray

    def some(self, which: slice | NDArray[np.bool_]) -> Programs:
        """Return a subset of the programs."""
        return Programs(*(part[which] for part in self))

    def last(self) -> Programs:
        """Return the same programs with the batch as the last dimension of every array."""
        return Programs(*(np.ascontiguousarray(np.moveaxis(part, 0, -1)) for part in self))


@dataclass(frozen=True, eq=False)
class Minima:
    """Solutions of a batch of programs."""

    p: FloatArray
    """b x d."""
    multipliers: FloatArray
    """b x r."""


def minimise(programs: Programs, iterations: int = ITERATIONS) -> Minima:
    """Solve b programs by the interior-point method, from a cold start."""
    chunk = TUNING.chunk
    parts = [
        _interior_point(programs.some(slice(i, i + chunk)).last(), iterations) for i in range(0, len(programs.g), chunk)
    ]
    if not parts:
        return Minima(np.empty_like(programs.g), np.empty_like(programs.c))
    p, lam = (np.concatenate([part[i] for part in parts], axis=-1) for i in range(2))
    return Minima(np.ascontiguousarray(p.T), np.ascontiguousarray(lam.T))


def continued(
    programs: Programs, multipliers: FloatArray, guesses: int = GUESSES, iterations: int = ITERATIONS
) -> Minima:
    """Solve b programs from a warm start: p = 0 and these multipliers (b x r) solve programs that differ little.

    A primal-dual active-set method: the warm start implies which rows and bounds are active, an active set determines the
    solution by one linear system, and that solution implies the next active set. A program is solved when its active set repeats.
    Programs that need more than `guesses` systems are solved by `minimise` with so many iterations.
    """
    method = _ActiveSetMethod(programs)
    p, lam = np.zeros_like(programs.g), multipliers.copy()
    row, at = method.active_set(p, lam, method.gradient(p, lam))
    todo = np.arange(len(p))
    for _ in range(guesses):
        p[todo], lam[todo] = method.solve(row, at)
        gradient = np.where(at == _FREE, 0.0, method.gradient(p[todo], lam[todo]))
        found = method.active_set(p[todo], lam[todo], gradient)
        wrong = (found[0] != row).any(1) | (found[1] != at).any(1) | ~np.isfinite(p[todo].sum(1) + lam[todo].sum(1))
        todo, row, at = todo[wrong], found[0][wrong], found[1][wrong]
        method = _ActiveSetMethod(method.programs.some(wrong))
        if not len(todo):
            return Minima(p, lam)
    rest = minimise(method.programs, iterations)
    p[todo], lam[todo] = rest.p, rest.multipliers
    return Minima(p, lam)


def _interior_point(programs: Programs, iterations: int) -> tuple[FloatArray, FloatArray]:
    """Return p (d x b) and lam (r x b) of programs whose batch is the last dimension."""
    g, H, A, c, low, high, mu = programs
    d, r = len(g), len(c)
    margin = TUNING.central * (high - low)
    p = np.clip(0.0, low + margin, high - margin)
    slack = c - _times(A, p)
    w = 0.5 * (slack + np.sqrt(slack**2 + np.maximum(np.abs(slack).max(0), 1e-2) ** 2))
    s = w - slack
    lam = np.broadcast_to(np.minimum(0.1 * mu, 1.0), w.shape)
    gradient = g + _times(H, p) + _times_transposed(A, lam)
    larger = 0.5 * (np.abs(gradient) + np.sqrt(gradient**2 + 1.0))
    # The bounds' multipliers are positive and their difference u - v is the gradient of the Lagrangian.
    u, v = np.where(gradient > 0, larger, 0.25 / larger), np.where(gradient > 0, 0.25 / larger, larger)
    # Everything that must stay positive is in two arrays: the distances w, s, p - low, high - p, and their multipliers.
    distance = np.concatenate([w, s, p - low, high - p])
    dual = np.concatenate([lam, mu - lam, u, v])
    for _ in range(iterations):
        product = distance * dual
        tau = product.mean(0)
        newton = _NewtonSystem.factorise(g + _times(H, p), H, A, distance, dual)
        d_distance, d_dual = newton.direction(-product)
        step = newton.longest_step(d_distance, d_dual)
        predicted = ((distance + step * d_distance) * (dual + step * d_dual)).mean(0)
        target = np.maximum((predicted / tau) ** 2 * tau, TUNING.converged)
        d_distance, d_dual = newton.direction(target - product - step * step * d_distance * d_dual)
        step = newton.longest_step(d_distance, d_dual)
        next_distance, next_dual = distance + step * d_distance, dual + step * d_dual
        # A program that has reached the limit of its digits keeps its last valid iterate.
        valid = (np.minimum(next_distance, next_dual) > 0.0).all(0) & np.isfinite(next_distance + next_dual).all(0)
        p = np.where(valid, p + step * d_distance[2 * r : 2 * r + d], p)
        distance, dual = np.where(valid, next_distance, distance), np.where(valid, next_dual, dual)
    return p, dual[:r]


@dataclass(frozen=True, eq=False)
class _NewtonSystem:
    """Linear system of one iteration, factorised once for predictor and corrector; the batch is the last dimension."""

    A: FloatArray
    distance: FloatArray
    """(2 r + 2 d) x b: w, s, p - low, high - p."""
    dual: FloatArray
    """(2 r + 2 d) x b: lam, mu - lam, u, v."""
    ratio: FloatArray
    """dual / distance."""
    D: FloatArray
    """r x b."""
    factor: FloatArray
    """d x d x b, as `_cholesky` returns it."""
    residual: FloatArray
    """d x b: minus the gradient of the Lagrangian."""

    @classmethod
    def factorise(
        cls, gradient: FloatArray, H: FloatArray, A: FloatArray, distance: FloatArray, dual: FloatArray
    ) -> _NewtonSystem:
        """Return the factorised system; gradient: g + H p (d x b)."""
        r, d = A.shape[:2]
        ratio = dual / distance
        D = 1.0 / (1.0 / ratio[:r] + 1.0 / ratio[r : 2 * r])
        matrix = H + np.einsum("rib,rjb->ijb", A, D[:, None] * A)
        factor = _cholesky(matrix, ratio[2 * r : 2 * r + d] + ratio[2 * r + d :])
        residual = -(gradient + _times_transposed(A, dual[:r]) - dual[2 * r : 2 * r + d] + dual[2 * r + d :])
        return cls(A, distance, dual, ratio, D, factor, residual)

    def direction(self, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the changes of distance and dual with which each product changes by target, to first order."""
        r, d = self.A.shape[:2]
        by_dual = target / self.dual
        by_distance = target[2 * r :] / self.distance[2 * r :]
        gap = by_dual[:r] - by_dual[r : 2 * r]
        rhs = self.residual - _times_transposed(self.A, self.D * gap) + by_distance[:d] - by_distance[d:]
        dp = _solve(self.factor, rhs)
        d_lam = self.D * (_times(self.A, dp) + gap)
        rows = by_dual[:r] - d_lam / self.ratio[:r], by_dual[r : 2 * r] + d_lam / self.ratio[r : 2 * r]
        d_distance = np.concatenate([*rows, dp, -dp])
        d_dual = np.concatenate([d_lam, -d_lam, by_distance - self.ratio[2 * r :] * d_distance[2 * r :]])
        return d_distance, d_dual

    def longest_step(self, d_distance: FloatArray, d_dual: FloatArray) -> FloatArray:
        """Return the largest share of the step (b, at most 1) that keeps distance and dual positive."""
        worst = np.minimum((d_distance / self.distance).min(0), (d_dual / self.dual).min(0))
        return np.asarray(np.minimum(1.0, TUNING.step_fraction / np.maximum(-worst, TUNING.step_fraction)))


_ActiveSet = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class _ActiveSetMethod:
    """One iteration of the primal-dual active-set method for a batch of programs.

    An active set says of every row whether it is inactive (0), active at c (1) or violated (2), and of every variable whether it
    is at its lower bound (-1), free (0) or at its upper bound (1).
    """

    programs: Programs

    def active_set(self, p: FloatArray, lam: FloatArray, gradient: FloatArray) -> _ActiveSet:
        """Return the active set of rows (b x r) and variables (b x d) that an iterate implies."""
        q = self.programs
        slack = q.c - np.einsum("bri,bi->br", q.A, p)
        by = _side(lam - slack / self.compliance, 0.0, q.mu[:, None])
        return 1 + by, _side(p - gradient / np.einsum("bii->bi", q.H), q.low, q.high)

    @cached_property
    def compliance(self) -> FloatArray:
        """Approximate change of a row's value per unit of its multiplier (b x r), from the diagonal of H."""
        q = self.programs
        stiffness = np.einsum("bii->bi", q.H)
        return np.asarray(np.einsum("bri,bri->br", q.A / stiffness[:, None, :], q.A) + TUNING.singular)

    def gradient(self, p: FloatArray, lam: FloatArray) -> FloatArray:
        """Return the gradient of the Lagrangian without the bounds' multipliers (b x d)."""
        q = self.programs
        return np.asarray(q.g + np.einsum("bij,bj->bi", q.H, p) + np.einsum("bri,br->bi", q.A, lam))

    def solve(self, row: NDArray[np.int64], at: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Return p (b x d) and lam (b x r) of an active set, by one linear system of size d + r for each program."""
        q = self.programs
        b, r, d = q.A.shape
        active, free = row == _ACTIVE_ROW, at == _FREE
        rows = q.A * active[:, :, None]
        K = np.zeros((b, d + r, d + r))
        K[:, :d, :d] = q.H * free[:, :, None]
        K[:, :d, d:] = rows.transpose(0, 2, 1) * free[:, :, None]
        K[:, d:, :d] = rows
        every = np.arange(d + r)
        softened = np.where(active, -TUNING.regularisation * self.compliance, 1.0)
        K[:, every, every] += np.concatenate([~free, softened], axis=1)
        violated = (row == _VIOLATED_ROW) * q.mu[:, None]
        rhs = -self.gradient(np.zeros_like(q.g), violated)
        y = np.concatenate([np.where(free, rhs, np.where(at < 0, q.low, q.high)), active * q.c], axis=1)
        solution, info = torch.linalg.solve_ex(torch.from_numpy(K), torch.from_numpy(y))
        found = np.where(info.numpy()[:, None] > 0, np.nan, solution.numpy())
        return found[:, :d], np.where(active, found[:, d:], violated)


def _side(value: FloatArray, low: FloatArray | float, high: FloatArray) -> NDArray[np.int64]:
    """Return -1 where a value is not above low, 1 where it is not below high, 0 between."""
    return (value >= high).astype(np.int64) - (value <= low)


def _cholesky(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Return the lower factor (d x d x b) of matrix + diag(diagonal), with the reciprocals of its diagonal in their place."""
    L = matrix
    d = len(L)
    L[np.arange(d), np.arange(d)] += diagonal
    least = TUNING.singular * L[np.arange(d), np.arange(d)]
    for j in range(d):
        if j:
            L[j:, j] -= np.einsum("ijb,jb->ib", L[j:, :j], L[j, :j])
        pivot = np.where(L[j, j] > least[j], 1.0 / np.sqrt(np.maximum(L[j, j], least[j])), 0.0)
        L[j + 1 :, j] *= pivot
        L[j, j] = pivot
    return L


def _solve(L: FloatArray, y: FloatArray) -> FloatArray:
    """Return x (d x b) with L L' x = y; y is overwritten."""
    d = len(y)
    for j in range(d):
        y[j] *= L[j, j]
        y[j + 1 :] -= L[j + 1 :, j] * y[j]
    for j in range(d - 1, -1, -1):
        y[j] *= L[j, j]
        y[:j] -= L[j, :j] * y[j]
    return y


def _times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ijb,jb->ib", matrix, vector))


def _times_transposed(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ijb,ib->jb", matrix, vector))
