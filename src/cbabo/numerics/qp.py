"""Many small quadratic programs at once, by an interior-point method with a fixed number of iterations.

Symbols and shapes, b programs with d variables and r rows each
    p       b x d        what is sought: the least g'p + p'Hp / 2 + mu sum(s), with A p <= c + s, s >= 0, low <= p <= high
    H       b x d x d    positive definite; A  b x r x d; c  b x r
    mu      b            what a unit of violation costs: rows are elastic, so that every program has a solution
    lam     b x r        multipliers of the rows, between 0 and mu
    w, s    b x r        room and violation of the rows, both above zero: A p + w - s = c at every iteration
    u, v    b x d        multipliers of low and high: H p + g + A'lam - u + v = 0 at every iteration
    tau     b            mean of the products w lam, s (mu - lam), (p - low) u, (high - p) v, which all go to zero together

One iteration is Mehrotra's predictor and corrector with one Cholesky factor: eliminating everything but p leaves
(H + A' D A + U / (p - low) + V / (high - p)) dp = rhs with D = 1 / (w / lam + s / (mu - lam)). Inside, the programs are the last
dimension: every operation is then one on long rows, whatever d is. No library is behind it, so that it can be written
again in any language.
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
"""After which programs are solved as exactly as they can be."""
GUESSES = 6
"""Of what holds a program, after which it is left to iterations."""

_LEAST = 1e-11  # tau at which a program counts as solved; smaller ones lose digits
_SHORT = 0.98  # of the way to the nearest bound that a step goes
_CENTRAL = 0.1  # of the width between low and high that the start keeps from both
_SINGULAR = 1e-15  # of a diagonal element: a pivot below is rounding, and its variable is held
_ALIKE = 1e-11  # of how far a row gives way: it does so by that much more, so that two rows may say the same
_CHUNK = 256  # programs at a time: their matrices stay in the processor's cache


class Programs(NamedTuple):
    """What is to be minimised: see above."""

    g: FloatArray
    H: FloatArray
    A: FloatArray
    c: FloatArray
    low: FloatArray
    """Below high."""
    high: FloatArray
    mu: FloatArray

    def some(self, which: slice | NDArray[np.bool_]) -> Programs:
        """Return some of the programs."""
        return Programs(*(part[which] for part in self))

    def last(self) -> Programs:
        """Move the programs to the last dimension."""
        return Programs(*(np.ascontiguousarray(np.moveaxis(part, 0, -1)) for part in self))


@dataclass(frozen=True, eq=False)
class Minima:
    """The solutions."""

    p: FloatArray
    """b x d."""
    multipliers: FloatArray
    """b x r."""


def minimise(programs: Programs, iterations: int = ITERATIONS) -> Minima:
    """Solve b programs."""
    parts = [
        _minimise(programs.some(slice(i, i + _CHUNK)).last(), iterations) for i in range(0, len(programs.g), _CHUNK)
    ]
    if not parts:
        return Minima(np.empty_like(programs.g), np.empty_like(programs.c))
    p, lam = (np.concatenate([part[i] for part in parts], axis=-1) for i in range(2))
    return Minima(np.ascontiguousarray(p.T), np.ascontiguousarray(lam.T))


def continued(
    programs: Programs, multipliers: FloatArray, guesses: int = GUESSES, iterations: int = ITERATIONS
) -> Minima:
    """Solve b programs that hardly differ from ones with these multipliers (b x r), around p = 0.

    It is guessed which rows and variables are held, and by what; that is one linear system, whose solution says which guesses
    were wrong. Where they are all right, and that is soon, it is the minimum; the other programs are solved from scratch, with so
    many iterations.
    """
    guessed = _Guessed(programs)
    p, lam = np.zeros_like(programs.g), multipliers.copy()
    row, at = guessed.held(p, lam, guessed.slope(p, lam))
    todo = np.arange(len(p))
    for _ in range(guesses):
        p[todo], lam[todo] = guessed.solved(row, at)
        slope = np.where(at == 0, 0.0, guessed.slope(p[todo], lam[todo]))
        found = guessed.held(p[todo], lam[todo], slope)
        wrong = (found[0] != row).any(1) | (found[1] != at).any(1) | ~np.isfinite(p[todo].sum(1) + lam[todo].sum(1))
        todo, guessed, row, at = todo[wrong], _Guessed(guessed.programs.some(wrong)), found[0][wrong], found[1][wrong]
        if not len(todo):
            return Minima(p, lam)
    rest = minimise(guessed.programs, iterations)
    p[todo], lam[todo] = rest.p, rest.multipliers
    return Minima(p, lam)


def _minimise(programs: Programs, iterations: int) -> tuple[FloatArray, FloatArray]:
    """Solve programs that are the last dimension."""
    g, H, A, c, low, high, mu = programs
    d, r = len(g), len(c)
    p = np.clip(0.0, low + _CENTRAL * (high - low), high - _CENTRAL * (high - low))
    room = c - _times(A, p)
    w = 0.5 * (room + np.sqrt(room**2 + np.maximum(np.abs(room).max(0), 1e-2) ** 2))
    s = w - room
    lam = np.broadcast_to(np.minimum(0.1 * mu, 1.0), w.shape)
    slope = g + _times(H, p) + _back(A, lam)
    larger = 0.5 * (np.abs(slope) + np.sqrt(slope**2 + 1.0))
    u, v = np.where(slope > 0, larger, 0.25 / larger), np.where(slope > 0, 0.25 / larger, larger)  # u - v is the slope
    # everything that stays above zero in one array: w, s, p - low, high - p, and below them their multipliers
    near = np.concatenate([w, s, p - low, high - p])
    far = np.concatenate([lam, mu - lam, u, v])
    for _ in range(iterations):
        product = near * far
        tau = product.mean(0)
        newton = _Newton.at(g + _times(H, p), H, A, near, far)
        dnear, dfar = newton.direction(-product)
        a = newton.longest(dnear, dfar)
        ahead = ((near + a * dnear) * (far + a * dfar)).mean(0)
        aim = np.maximum((ahead / tau) ** 2 * tau, _LEAST)
        dnear, dfar = newton.direction(aim - product - a * a * dnear * dfar)
        a = newton.longest(dnear, dfar)
        next_near, next_far = near + a * dnear, far + a * dfar
        sound = (np.minimum(next_near, next_far) > 0.0).all(0) & np.isfinite(next_near + next_far).all(0)
        p = np.where(
            sound, p + a * dnear[2 * r : 2 * r + d], p
        )  # a program that has run out of digits stays where it is
        near, far = np.where(sound, next_near, near), np.where(sound, next_far, far)
    return p, far[:r]


@dataclass(frozen=True, eq=False)
class _Newton:
    """One iteration's linear system, factored once for predictor and corrector; programs are the last dimension."""

    A: FloatArray
    near: FloatArray
    far: FloatArray
    ratio: FloatArray
    D: FloatArray
    factor: FloatArray
    rest: FloatArray

    @classmethod
    def at(cls, slope: FloatArray, H: FloatArray, A: FloatArray, near: FloatArray, far: FloatArray) -> _Newton:
        """Factor the system; slope: g + H p."""
        r, d = A.shape[:2]
        ratio = far / near
        D = 1.0 / (1.0 / ratio[:r] + 1.0 / ratio[r : 2 * r])
        matrix = H + np.einsum("rib,rjb->ijb", A, D[:, None] * A)
        factor = _cholesky(matrix, ratio[2 * r : 2 * r + d] + ratio[2 * r + d :])
        rest = -(slope + _back(A, far[:r]) - far[2 * r : 2 * r + d] + far[2 * r + d :])
        return cls(A, near, far, ratio, D, factor, rest)

    def direction(self, aim: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how near and far change so that each product changes by aim, to first order."""
        r, d = self.A.shape[:2]
        by_far = aim / self.far
        by_near = aim[2 * r :] / self.near[2 * r :]
        gap = by_far[:r] - by_far[r : 2 * r]
        dp = _solve(self.factor, self.rest - _back(self.A, self.D * gap) + by_near[:d] - by_near[d:])
        dlam = self.D * (_times(self.A, dp) + gap)
        rows = by_far[:r] - dlam / self.ratio[:r], by_far[r : 2 * r] + dlam / self.ratio[r : 2 * r]
        dnear = np.concatenate([*rows, dp, -dp])
        dfar = np.concatenate([dlam, -dlam, by_near - self.ratio[2 * r :] * dnear[2 * r :]])
        return dnear, dfar

    def longest(self, dnear: FloatArray, dfar: FloatArray) -> FloatArray:
        """Return the share of the step that keeps everything above zero."""
        worst = np.minimum((dnear / self.near).min(0), (dfar / self.far).min(0))
        return np.asarray(np.minimum(1.0, _SHORT / np.maximum(-worst, _SHORT)))


_Sides = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class _Guessed:
    """Programs of which it is guessed what holds them: a primal-dual active-set method."""

    programs: Programs

    def held(self, p: FloatArray, lam: FloatArray, slope: FloatArray) -> _Sides:
        """Return what seems to hold rows (0 nothing, 1 held at c, 2 violated) and variables (-1 low, 0 nothing, 1 high)."""
        q = self.programs
        room = q.c - np.einsum("bri,bi->br", q.A, p)
        by = _side(lam - room / self.soft, 0.0, q.mu[:, None])
        return 1 + by, _side(p - slope / np.einsum("bii->bi", q.H), q.low, q.high)

    @cached_property
    def soft(self) -> FloatArray:
        """How far a row gives way for one unit of its multiplier, roughly (b x r)."""
        q = self.programs
        stiff = np.einsum("bii->bi", q.H)
        return np.asarray(np.einsum("bri,bri->br", q.A / stiff[:, None, :], q.A) + _SINGULAR)

    def slope(self, p: FloatArray, lam: FloatArray) -> FloatArray:
        """Return the derivative of the Lagrangian without variables' ends (b x d)."""
        q = self.programs
        return np.asarray(q.g + np.einsum("bij,bj->bi", q.H, p) + np.einsum("bri,br->bi", q.A, lam))

    def solved(self, row: NDArray[np.int64], at: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Return p and lam if this is what holds them."""
        q = self.programs
        b, r, d = q.A.shape
        active, free = row == 1, at == 0
        rows = q.A * active[:, :, None]
        K = np.zeros((b, d + r, d + r))
        K[:, :d, :d] = q.H * free[:, :, None]
        K[:, :d, d:] = rows.transpose(0, 2, 1) * free[:, :, None]
        K[:, d:, :d] = rows
        every = np.arange(d + r)
        K[:, every, every] += np.concatenate([~free, np.where(active, -_ALIKE * self.soft, 1.0)], axis=1)
        violated = (row == 2) * q.mu[:, None]
        push = -self.slope(np.zeros_like(q.g), violated)
        y = np.concatenate([np.where(free, push, np.where(at < 0, q.low, q.high)), active * q.c], axis=1)
        solution, info = torch.linalg.solve_ex(torch.from_numpy(K), torch.from_numpy(y))
        found = np.where(info.numpy()[:, None] > 0, np.nan, solution.numpy())
        return found[:, :d], np.where(active, found[:, d:], violated)


def _side(value: FloatArray, low: FloatArray | float, high: FloatArray) -> NDArray[np.int64]:
    """Return -1 where a value is not above low, 1 where it is not below high, 0 between."""
    return (value >= high).astype(np.int64) - (value <= low)


def _cholesky(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Return the lower factor (d x d x b) of matrix + diag(diagonal); its own diagonal holds reciprocals."""
    L = matrix
    d = len(L)
    L[np.arange(d), np.arange(d)] += diagonal
    least = _SINGULAR * L[np.arange(d), np.arange(d)]
    for j in range(d):
        if j:
            L[j:, j] -= np.einsum("ijb,jb->ib", L[j:, :j], L[j, :j])
        pivot = np.where(L[j, j] > least[j], 1.0 / np.sqrt(np.maximum(L[j, j], least[j])), 0.0)
        L[j + 1 :, j] *= pivot
        L[j, j] = pivot
    return L


def _solve(L: FloatArray, y: FloatArray) -> FloatArray:
    """Return x (d x b) with L L' x = y."""
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


def _back(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ijb,ib->jb", matrix, vector))
