"""Surrogates for one design at a time, in NumPy: for sequential solvers, in which the overhead of torch would dominate.

Symbols and shapes as in `gp`, with everything in units of the standardised outputs
    x      d         a design, unit cube
    z      q         means; J  q x d  their derivatives by x
    s      q         standard deviations
    H      d x d     second derivatives of a weighted sum of the means
Kernels are evaluated once for each of the g groups of outputs that share one (see `sharing`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate import kernel
from cbabo.surrogate.gp import TUNING, Surrogates

_ROUGH_SLOPE = 5.0 / 3.0
"""k' of the rough kernel at distance zero."""


class Pointwise:
    """The posterior of surrogates, for one design at a time.

    Examples:
        >>> from cbabo.surrogate import fit
        >>> x = torch.linspace(0.0, 1.0, 7, dtype=torch.float64).unsqueeze(1)
        >>> surrogates = fit(x, 2.0 * x)
        >>> z, jacobian = Pointwise(surrogates).mean_and_jacobian(np.array([0.5]))
        >>> z.shape, jacobian.shape
        ((1,), (1, 1))
    """

    def __init__(self, surrogates: Surrogates) -> None:
        h = surrogates.hyperparameters.of_groups
        u = h.stretched(surrogates.x)[0].expand(len(h.noise), -1, -1)
        scaled = ((u - kernel.CENTRE) / h.lengthscales.unsqueeze(-2)).numpy()
        self._surrogates = surrogates
        self._inverse = 1.0 / h.lengthscales.numpy()
        self._rows = np.ascontiguousarray(scaled)  # Shape g x n x d.
        self._columns = np.ascontiguousarray(scaled.transpose(0, 2, 1))
        self._half = -0.5 * np.square(scaled).sum(-1)
        self._rough = _groups_of_family(h.family, kernel.ROUGH)
        self._additive = _groups_of_family(h.family, kernel.ADDITIVE)
        self._stretch = None if h.stretch is None or not bool(h.stretch.any()) else h.stretch.numpy()
        sharing = surrogates.hyperparameters.sharing
        self._weights = np.ascontiguousarray(sharing.columns(surrogates.weights).mT.numpy())  # Shape g x P x n.
        self._constant = surrogates.hyperparameters.constant.numpy()
        self._at = sharing.group.numpy(), sharing.slot.numpy()

    def mean_and_jacobian(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means z (q) and their Jacobian (q x d) at a design x (d)."""
        k, slope, u, stretch_slope = self._correlation(x)
        coefficients = slope[:, None, :] * self._weights
        jacobian = np.matmul(coefficients, self._rows)
        jacobian -= coefficients.sum(2)[:, :, None] * u[:, None, :]
        if self._additive is not None:
            difference, part = self._parts(u)
            jacobian[self._additive] = np.matmul(self._weights[self._additive], difference * part)
        jacobian *= self._inverse[:, None, :]
        if stretch_slope is not None:
            jacobian *= stretch_slope[:, None, :]
        return (k[:, None, :] * self._weights).sum(2)[self._at] + self._constant, jacobian[self._at]

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the Hessian H (d x d) of the weighted sum of the means at a design x (d); weights: q."""
        _, slope, u, stretch_slope = self._correlation(x)
        second_slope = slope.copy()
        if self._rough is not None:  # The second derivative is k'' = 25/3 exp(-e).
            second_slope[self._rough] = 25.0 / 3.0 * np.exp(-self._distance(u)[self._rough])
        difference = (self._rows - u[:, None, :]) * self._inverse[:, None, :]
        by_group = np.zeros(self._weights.shape[:2])
        by_group[self._at] = weights
        weighted = np.matmul(by_group[:, None, :], self._weights)[:, 0, :]
        coefficients = slope * weighted
        if self._additive is not None:
            second_slope[self._additive] = coefficients[self._additive] = 0.0
        # The gradient is by stretched variables; `second` are second derivatives on the diagonal.
        gradient = np.matmul(coefficients[:, None, :], difference)[:, 0, :]
        second = -coefficients.sum(1)[:, None] * np.square(self._inverse)
        if self._additive is not None:
            away, part = self._parts(u)
            additive, inverse = weighted[self._additive][:, None, :], self._inverse[self._additive]
            gradient[self._additive] = np.matmul(additive, away * part)[:, 0, :] * inverse
            second[self._additive] = np.matmul(additive, (np.square(away) - 1.0) * part)[:, 0, :] * np.square(inverse)
        if stretch_slope is None or self._stretch is None:
            stretch_slope = np.ones_like(u)
            diagonal = second.sum(0)
        else:
            diagonal = ((second - gradient * self._stretch) * np.square(stretch_slope)).sum(0)  # Since u'' = -a u'^2.
        scaled = (difference * stretch_slope[:, None, :]).reshape(-1, len(x))
        curvature = scaled.T @ (scaled * (second_slope * weighted).reshape(-1, 1))
        return np.asarray(curvature + np.diag(diagonal))

    def std(self, x: FloatArray) -> FloatArray:
        """Return the standard deviations s (q) at a design x (d)."""
        k = self._correlation(x)[0]
        v = np.matmul(self._inverse_factor, k[:, :, None])[:, :, 0]
        variance = np.maximum(1.0 - np.square(v).sum(1), TUNING.min_variance)
        h = self._surrogates.hyperparameters
        variance = variance[self._at[0]]
        if h.amplitude is not None:
            variance = (variance + h.contained_noise.numpy()) * h.amplitude.numpy()
        return np.asarray(np.sqrt(variance))

    def covariance(self, x: FloatArray) -> FloatArray:
        """Return the posterior covariance (q x (1 + d) x (1 + d)) of each output and its derivatives at a design x (d)."""
        k, slope, u, stretch_slope = self._correlation(x)
        by_u = slope[:, :, None] * (self._rows - u[:, None, :])
        prior = np.ones_like(u)
        if self._rough is not None:
            prior[self._rough] = _ROUGH_SLOPE
        if self._additive is not None:
            difference, part = self._parts(u)
            by_u[self._additive] = difference * part
            prior[self._additive] = 1.0 / len(x)
        rise = self._inverse if stretch_slope is None else self._inverse * stretch_slope
        both = np.concatenate([k[:, :, None], by_u * rise[:, None, :]], axis=2)
        v = np.matmul(self._inverse_factor, both)
        found = -np.matmul(v.transpose(0, 2, 1), v)
        at = np.arange(1 + len(x))
        found[:, at, at] += np.column_stack([np.ones(len(prior)), prior * np.square(rise)])
        found[:, at, at] = np.maximum(found[:, at, at], TUNING.min_variance)
        found = found[self._at[0]]
        h = self._surrogates.hyperparameters
        if h.amplitude is None:
            return np.asarray(found)
        found[:, 0, 0] += h.contained_noise.numpy()
        return np.asarray(found * h.amplitude.numpy()[:, None, None])

    def _parts(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the additive groups' differences of the data from a scaled design u (g x d), and each variable's part of k."""
        difference = self._rows[self._additive] - u[self._additive][:, None, :]
        return difference, np.exp(-0.5 * np.square(difference)) / difference.shape[-1]

    def _distance(self, u: FloatArray) -> FloatArray:
        """Return e = sqrt(5) times the scaled distances (g x n) of the data from a scaled design u (g x d)."""
        return np.asarray(np.sqrt(5.0 * np.square(self._rows - u[:, None, :]).sum(-1)))

    @cached_property
    def _inverse_factor(self) -> FloatArray:
        """Inverse of the Cholesky factor, g x n x n."""
        factor = self._surrogates.factor
        if factor.shape[-1] > TUNING.large:
            return np.asarray(self._surrogates.inverse_factor.numpy())
        eye = torch.eye(factor.shape[-1], dtype=factor.dtype)
        inverse: FloatArray = (
            torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False).contiguous().numpy()
        )
        return inverse

    def _correlation(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
        """Return k and k' (g x n each), the scaled design (g x d) and the derivative of the stretch (g x d)."""
        stretch_slope = None
        if self._stretch is None:
            u = (x - kernel.CENTRE) * self._inverse
        else:
            a, plain = self._stretch, self._stretch == 0
            safe, growth = np.where(plain, 1.0, a), np.expm1(a)
            at = 1.0 + growth * x
            stretch_slope = np.where(plain, 1.0, growth / (safe * at))
            u = (np.where(plain, x, np.log(at) / safe) - kernel.CENTRE) * self._inverse
        h = np.matmul(u[:, None, :], self._columns)[:, 0, :]
        h += self._half
        h -= 0.5 * np.square(u).sum(1)[:, None]
        k = np.exp(h)
        if self._additive is not None:
            k[self._additive] = self._parts(u)[1].sum(-1)
        if self._rough is None:
            return k, k, u, stretch_slope
        e = np.sqrt(np.maximum(-10.0 * h[self._rough], 0.0))
        decay = np.exp(-e)
        slope = k.copy()
        slope[self._rough] = 5.0 / 3.0 * (1.0 + e) * decay
        k[self._rough] = (1.0 + e + e * e / 3.0) * decay
        return k, slope, u, stretch_slope


def _groups_of_family(family: torch.Tensor | None, kind: int) -> NDArray[np.int64] | None:
    """Return the indices of the groups with this kernel family; None if there are none."""
    at = None if family is None else (family == kind).nonzero().squeeze(-1).numpy()
    return at if at is not None and len(at) else None
