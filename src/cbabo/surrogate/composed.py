"""All outputs of a problem with derived ones: the surrogates of the simulated outputs, and formulas of these and the variables.

It answers the same queries as `gp.Surrogates` and `pointwise.Pointwise` with a column for every output of the problem, so that
limits, solvers and acquisition functions need not know which outputs are learned and which are computed. Symbols are those of
`formulas`; q outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate.formulas import Formulas
from cbabo.surrogate.gp import Prediction, Surrogates
from cbabo.surrogate.pointwise import Pointwise


@dataclass(frozen=True, eq=False)
class Composed:
    """Simulated and derived outputs, queried as surrogates are."""

    surrogates: Surrogates
    """Of the simulated outputs."""
    formulas: Formulas

    @property
    def x(self) -> Tensor:
        """The designs of the data, n x d."""
        return self.surrogates.x

    @property
    def centre(self) -> Tensor:
        """What is subtracted from each output (q)."""
        return self._joined(self.surrogates.centre[None], self.formulas.centre[None])[0]

    @property
    def scale(self) -> Tensor:
        """What each output is divided by (q)."""
        return self._joined(self.surrogates.scale[None], self.formulas.scale[None])[0]

    def mean(self, x: Tensor) -> Tensor:
        """Return means (b x q) at x (b x d)."""
        with torch.no_grad():
            return self.with_derived(x, self.surrogates.mean(x))

    def with_derived(self, x: Tensor, learned: Tensor) -> Tensor:
        """Return all outputs (b x q) at x (b x d) for values of the learned ones (b x p)."""
        return self._joined(learned, self._natural(self.formulas.values(x.numpy(), self._z(learned))))

    def mean_and_std(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations (b x q each) at x (b x d)."""
        with torch.no_grad():
            return self.moments_with_derived(x, *self.surrogates.mean_and_std(x))

    def mean_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means (b x q) and their derivatives by x (b x q x d) at x (b x d)."""
        mean, gradient = self.surrogates.mean_and_gradient(x)
        J = (gradient / self.surrogates.scale.unsqueeze(-1)).numpy()
        f, A, B = self.formulas.values_and_slopes(x.numpy(), self._z(mean))
        slope = (A + B @ J) * self.formulas.scale[:, None]
        every = torch.empty(len(x), len(self.formulas.learned) + len(self.formulas.derived), x.shape[1], dtype=x.dtype)
        every[:, self.formulas.learned], every[:, self.formulas.derived] = gradient, torch.from_numpy(slope)
        return self._joined(mean, self._natural(f)), every

    def predict(self, x: Tensor) -> ComposedPrediction:
        """Return means and standard deviations at x (b x d) with what derivatives need."""
        with torch.no_grad():
            inner = self.surrogates.predict(x)
            mean, std = self.moments_with_derived(x, inner.mean, inner.std)
        return ComposedPrediction(mean, std, self, inner, x)

    def observation_std(self, std: Tensor) -> Tensor:
        """Return the standard deviations of one measurement (b x q), for those that predictions have (b x q)."""
        found = std.clone()
        found[:, self.formulas.learned] = self.surrogates.observation_std(std[:, self.formulas.learned])
        return found

    def moments_with_derived(self, x: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of all outputs (b x q each) at x for those of the learned ones (b x p each)."""
        z, s = self._z(mean), (std / self.surrogates.scale).numpy()
        f, deviation = self.formulas.values(x.numpy(), z), self.formulas.std(x.numpy(), z, s)
        return self._joined(mean, self._natural(f)), self._joined(std, deviation * self.formulas.scale)

    def _z(self, mean: Tensor) -> FloatArray:
        return np.asarray(((mean - self.surrogates.centre) / self.surrogates.scale).numpy())

    def _natural(self, f: FloatArray) -> FloatArray:
        return f * self.formulas.scale + self.formulas.centre

    def _joined(self, learned: Tensor, derived: FloatArray) -> Tensor:
        found = torch.empty(len(learned), learned.shape[1] + derived.shape[1], dtype=learned.dtype)
        found[:, self.formulas.learned], found[:, self.formulas.derived] = learned, torch.from_numpy(derived)
        return found


@dataclass(frozen=True)
class ComposedPrediction:
    """Means and standard deviations of all outputs at b points."""

    mean: Tensor
    std: Tensor
    _composed: Composed = field(repr=False)
    _inner: Prediction = field(repr=False)
    _x: Tensor = field(repr=False)

    def vjp(self, weight_mean: Tensor, weight_std: Tensor) -> Tensor:
        """Return d/dx (b x d) of sum_j weight_mean_j mean_j + weight_std_j std_j, weights b x q.

        How fast a formula varies with an output is taken as constant in the derivative of a deviation.
        """
        c, s = self._composed, self._composed.surrogates
        learned, derived = c.formulas.learned, c.formulas.derived
        _, A, B = c.formulas.values_and_slopes(self._x.numpy(), c._z(self._inner.mean))
        by_mean = torch.from_numpy(c.formulas.scale[:, None] * B) / s.scale  # b x m x p
        on_mean = weight_mean[:, learned] + (weight_mean[:, derived].unsqueeze(1) @ by_mean).squeeze(1)
        share = by_mean.square() * self._inner.std.unsqueeze(1) / self.std[:, derived].unsqueeze(-1)
        on_std = weight_std[:, learned] + (weight_std[:, derived].unsqueeze(1) @ share).squeeze(1)
        direct = torch.from_numpy(A * c.formulas.scale[:, None])
        return self._inner.vjp(on_mean, on_std) + (weight_mean[:, derived].unsqueeze(1) @ direct).squeeze(1)


class ComposedPointwise:
    """The posterior of all outputs for one design at a time, standardised, as `Pointwise`."""

    def __init__(self, surrogates: Surrogates, formulas: Formulas) -> None:
        self._inner, self._formulas = Pointwise(surrogates), formulas
        self._q = len(formulas.learned) + len(formulas.derived)

    def mean_and_jacobian(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means z (q) and their Jacobian (q x d) at a design x (d)."""
        z, J = self._inner.mean_and_jacobian(x)
        f, A, B = self._formulas.values_and_slopes(x[None], z[None])
        means, slopes = np.empty(self._q), np.empty((self._q, len(x)))
        means[self._formulas.learned], slopes[self._formulas.learned] = z, J
        means[self._formulas.derived], slopes[self._formulas.derived] = f[0], A[0] + B[0] @ J
        return means, slopes

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the Hessian H (d x d) of the weighted sum of the means at a design x (d); weights: q."""
        z, J = self._inner.mean_and_jacobian(x)
        H, on_outputs = self._formulas.hessian(x, z, J, weights[self._formulas.derived])
        return H + self._inner.hessian(x, weights[self._formulas.learned] + on_outputs)

    def covariance(self, x: FloatArray) -> FloatArray:
        """Return the posterior covariance (q x (1 + d) x (1 + d)) of each output and its derivatives at a design x (d).

        That of a derived output is to first order: how fast it varies with the learned ones is taken as constant.
        """
        z, inner = self._inner.mean_and_jacobian(x)[0], self._inner.covariance(x)
        B = self._formulas.values_and_slopes(x[None], z[None])[2][0]
        found = np.empty((self._q, *inner.shape[1:]))
        found[self._formulas.learned] = inner
        found[self._formulas.derived] = np.einsum("mp,pij->mij", np.square(B), inner)
        return found

    def std(self, x: FloatArray) -> FloatArray:
        """Return the standard deviations s (q) at a design x (d)."""
        s = self._inner.std(x)
        z = np.zeros_like(s) if self._formulas.exact.all() else self._inner.mean_and_jacobian(x)[0]
        found = np.empty(self._q)
        found[self._formulas.learned] = s
        found[self._formulas.derived] = self._formulas.std(x[None], z[None], s[None])[0]
        return found
