"""Surrogates for one design at a time, in NumPy: for a solver that walks, where torch's overhead would be most of the work.

Symbols and shapes as in `gp`, with everything in units of the standardised outputs
    x      d         a design, unit cube
    z      q         means; J  q x d  their derivatives by x
    s      q         deviations
    H      d x d     second derivatives of a weighted sum of the means
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate import kernel
from cbabo.surrogate.gp import Surrogates

_LEAST_VARIANCE = 1e-12


class Pointwise:
    """The same posterior as the surrogates'."""

    def __init__(self, surrogates: Surrogates) -> None:
        h = surrogates.hyperparameters
        u = h.stretched(surrogates.x)[0].expand(len(h.noise), -1, -1)
        scaled = ((u - kernel.CENTRE) / h.lengthscales.unsqueeze(-2)).numpy()
        self._surrogates = surrogates
        self._inverse = 1.0 / h.lengthscales.numpy()
        self._rows = np.ascontiguousarray(scaled)  # q x n x d
        self._columns = np.ascontiguousarray(scaled.transpose(0, 2, 1))
        self._half = -0.5 * np.square(scaled).sum(-1)
        self._rough = _which(h.family, kernel.ROUGH)
        self._summed = _which(h.family, kernel.ADDITIVE)
        self._stretch = None if h.stretch is None or not bool(h.stretch.any()) else h.stretch.numpy()
        self._weights = surrogates.weights.numpy()
        self._constant = h.constant.numpy()

    def mean_and_jacobian(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z and J."""
        k, slope, u, rise = self._correlation(x)
        pull = slope * self._weights
        jacobian = np.matmul(pull[:, None, :], self._rows)[:, 0, :]
        jacobian -= pull.sum(1)[:, None] * u
        if self._summed is not None:
            away, part = self._parts(u)
            jacobian[self._summed] = np.matmul(self._weights[self._summed][:, None, :], away * part)[:, 0, :]
        jacobian *= self._inverse
        if rise is not None:
            jacobian *= rise
        return (k * self._weights).sum(1) + self._constant, jacobian

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Return H for these weights of the outputs (q)."""
        _, slope, u, rise = self._correlation(x)
        bend = slope.copy()
        if self._rough is not None:  # k'' = 25/3 exp(-e)
            bend[self._rough] = 25.0 / 3.0 * np.exp(-self._distance(u)[self._rough])
        away = (self._rows - u[:, None, :]) * self._inverse[:, None, :]
        weighted = self._weights * weights[:, None]
        pull = slope * weighted
        if self._summed is not None:
            bend[self._summed] = pull[self._summed] = 0.0
        gradient = np.matmul(pull[:, None, :], away)[
            :, 0, :
        ]  # by stretched variables; second derivatives on the diagonal
        second = -pull.sum(1)[:, None] * np.square(self._inverse)
        if self._summed is not None:
            apart, part = self._parts(u)
            summed, inverse = weighted[self._summed][:, None, :], self._inverse[self._summed]
            gradient[self._summed] = np.matmul(summed, apart * part)[:, 0, :] * inverse
            second[self._summed] = np.matmul(summed, (np.square(apart) - 1.0) * part)[:, 0, :] * np.square(inverse)
        if rise is None or self._stretch is None:
            rise = np.ones_like(u)
            diagonal = second.sum(0)
        else:
            diagonal = ((second - gradient * self._stretch) * np.square(rise)).sum(0)  # for u'' = -a u'^2
        scaled = (away * rise[:, None, :]).reshape(-1, len(x))
        curvature = scaled.T @ (scaled * (bend * weighted).reshape(-1, 1))
        return np.asarray(curvature + np.diag(diagonal))

    def std(self, x: FloatArray) -> FloatArray:
        """Return s."""
        k = self._correlation(x)[0]
        v = np.matmul(self._inverse_factor, k[:, :, None])[:, :, 0]
        variance = np.maximum(1.0 - np.square(v).sum(1), _LEAST_VARIANCE)
        h = self._surrogates.hyperparameters
        if h.amplitude is not None:
            variance = (variance + h.noise.numpy()) * h.amplitude.numpy()
        return np.asarray(np.sqrt(variance))

    def _parts(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return for additive outputs how far the data are from a scaled design (q x d), and each variable's share of k."""
        away = self._rows[self._summed] - u[self._summed][:, None, :]
        return away, np.exp(-0.5 * np.square(away)) / away.shape[-1]

    def _distance(self, u: FloatArray) -> FloatArray:
        """Return e = sqrt(5) times the scaled distance (q x n) to the data from a scaled design (q x d)."""
        return np.asarray(np.sqrt(5.0 * np.square(self._rows - u[:, None, :]).sum(-1)))

    @cached_property
    def _inverse_factor(self) -> FloatArray:
        """L^-1, q x n x n."""
        factor = self._surrogates.factor
        eye = torch.eye(factor.shape[-1], dtype=factor.dtype)
        inverse: FloatArray = (
            torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False).contiguous().numpy()
        )
        return inverse

    def _correlation(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
        """Return k and k' (q x n each), the scaled design (q x d) and the derivative of the stretch (q x d)."""
        rise = None
        if self._stretch is None:
            u = (x - kernel.CENTRE) * self._inverse
        else:
            a, plain = self._stretch, self._stretch == 0
            safe, growth = np.where(plain, 1.0, a), np.expm1(a)
            at = 1.0 + growth * x
            rise = np.where(plain, 1.0, growth / (safe * at))
            u = (np.where(plain, x, np.log(at) / safe) - kernel.CENTRE) * self._inverse
        h = np.matmul(u[:, None, :], self._columns)[:, 0, :]
        h += self._half
        h -= 0.5 * np.square(u).sum(1)[:, None]
        k = np.exp(h)
        if self._summed is not None:
            k[self._summed] = self._parts(u)[1].sum(-1)
        if self._rough is None:
            return k, k, u, rise
        e = np.sqrt(np.maximum(-10.0 * h[self._rough], 0.0))
        decay = np.exp(-e)
        slope = k.copy()
        slope[self._rough] = 5.0 / 3.0 * (1.0 + e) * decay
        k[self._rough] = (1.0 + e + e * e / 3.0) * decay
        return k, slope, u, rise


def _which(family: torch.Tensor | None, kind: int) -> NDArray[np.int64] | None:
    """Return the outputs whose kernel is of this kind; None if there are none."""
    at = None if family is None else (family == kind).nonzero().squeeze(-1).numpy()
    return at if at is not None and len(at) else None
