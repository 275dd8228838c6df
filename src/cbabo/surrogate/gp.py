"""Fitted surrogates: one exact Gaussian process for each raw output, queried as one batch.

Symbols and shapes
    n, d, q, b   evaluations, variables, outputs, query points
    x        n x d    evaluated points, unit cube; y  n x q  their outputs, natural units
    m, s     q        centre and scale of each output; z = (y - m) / s, q x n
    l, eta, c   q x d, q, q   lengthscales, noise variance and constant mean, of z
    L        q x n x n   Cholesky factor of K = k(x, x) + eta I
    a        q x n    K^-1 (z - c)

At a query point with correlations k to the data: mean = m + s (c + k'a), variance = s^2 (1 - |v|^2) with v = L^-1 k: the
latent function's, without noise, as BoTorch's posterior. Derivatives by x go through dh/dx (see kernel): with w = K^-1 k,
dmean = s a'dk and dstd = -(s^2 / std) w'dk. Triangular solves, not K^-1: as fast, and 1 - |v|^2 loses fewer digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.errors import MissingExtraError, SurrogateError
from cbabo.surrogate import kernel
from cbabo.surrogate.data import check_data, check_query, standardisation

if TYPE_CHECKING:
    from botorch.models import ModelListGP

    from cbabo.surrogate.warp import Warp

_CHUNK_ELEMENTS = 250_000  # of q x b x n: the largest tensors of one query stay in the processor's cache
_LEAST_VARIANCE = 1e-12  # of z: rounding must not make a variance negative
_LARGEST_NOISE = 1.0  # of z: noise raised beyond this would explain everything
_FORMAT = 1
_OPTIONAL = ("curvature", "value", "amplitude", "family", "stretch")


@dataclass(frozen=True)
class Hyperparameters:
    """What a fit finds, in units of standardised outputs; also where the next fit starts."""

    lengthscales: Tensor
    """q x d."""
    noise: Tensor
    """q, variances."""
    constant: Tensor
    """q, the mean far from all data."""
    curvature: Tensor | None = None
    """q x (d + 1) x (d + 1): approximate Hessians of the objective per point by log lengthscales and log noise."""
    value: Tensor | None = None
    """q, the objective per evaluation that they reached, to be minimised."""
    explored: int = 0
    """how many evaluations there were when the fit last started from scratch too."""
    amplitude: Tensor | None = None
    """q, variance of the process; None: 1, and deviations are the latent function's, without noise."""
    family: Tensor | None = None
    """q, each output's kernel (see `kernel`); None: all are smooth."""
    stretch: Tensor | None = None
    """q x d, how much each output's variables are stretched near their lower bounds; None: none is."""

    def stretched(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return points x (b x d) as the kernel sees them (b x d or q x b x d), and the derivative; None: 1."""
        if self.stretch is None:
            return x, None
        a = self.stretch.unsqueeze(-2)
        rise = torch.expm1(a)
        at = 1.0 + rise * x
        plain = a == 0
        safe = torch.where(plain, 1.0, a)
        return torch.where(plain, x, at.log() / safe), torch.where(plain, 1.0, rise / (safe * at))


@dataclass(frozen=True)
class Surrogates:
    """All outputs' Gaussian processes, conditioned on data; made by `fit` or `condition`."""

    x: Tensor
    """n x d, unit cube."""
    y: Tensor
    """n x q, natural units."""
    hyperparameters: Hyperparameters
    centre: Tensor
    """q, natural units: what was subtracted from each output."""
    scale: Tensor
    """q, natural units: what each output was divided by."""
    factor: Tensor = field(repr=False)
    """q x n x n, lower triangular: L."""
    weights: Tensor = field(repr=False)
    """q x n: a."""

    def predict(self, x: Tensor) -> Prediction:
        """Return means and standard deviations at x (b x d), ready to give derivatives without autograd; not chunked."""
        check_query(x, self.x.shape[1])
        h = self.hyperparameters
        u, rise = h.stretched(x)
        k, slope = kernel.correlation_and_slope(kernel.left(u, h.lengthscales), self._right, h.family)
        v = torch.linalg.solve_triangular(self.factor.mT, k, upper=True, left=False)
        variance = (1.0 - v.square().sum(-1)).clamp_min(_LEAST_VARIANCE)
        if h.amplitude is not None:
            variance = (variance + h.noise.unsqueeze(-1)) * h.amplitude.unsqueeze(-1)
        return Prediction(self._mean(k), variance.sqrt().T * self.scale, self, u, rise, slope, v)

    def mean_and_std(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations (b x q each, natural units) at x (b x d); differentiable in x by autograd."""
        check_query(x, self.x.shape[1])
        parts = [self.predict(part) for part in _chunks(x, self._chunk)]
        return torch.cat([p.mean for p in parts]), torch.cat([p.std for p in parts])

    def mean(self, x: Tensor) -> Tensor:
        """Return means (b x q, natural units) at x (b x d), several times cheaper than with deviations."""
        check_query(x, self.x.shape[1])
        h = self.hyperparameters
        return torch.cat(
            [
                self._mean(kernel.correlation(kernel.left(h.stretched(part)[0], h.lengthscales), self._right, h.family))
                for part in _chunks(x, self._chunk)
            ]
        )

    def mean_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means (b x q, natural units) and their derivatives by x (b x q x d) at x (b x d)."""
        check_query(x, self.x.shape[1])
        h = self.hyperparameters
        parts = []
        with torch.no_grad():
            for part in _chunks(x, self._chunk):
                u, rise = h.stretched(part)
                k, slope = kernel.correlation_and_slope(kernel.left(u, h.lengthscales), self._right, h.family)
                pulled = self._pull(slope * self.weights.unsqueeze(-2), u, rise) * h.lengthscales.pow(-2).unsqueeze(-2)
                parts.append((self._mean(k), pulled.transpose(0, 1)))
        mean, gradient = (torch.cat(p) for p in zip(*parts, strict=True))
        return mean, gradient * self.scale.unsqueeze(-1)

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Return what each evaluation (n x q, natural units) is predicted to be by all others: mean, and deviation with noise.

        Hyperparameters are kept, so this is the closed form: z_i - a_i / P_ii and 1 / P_ii with P = K^-1.
        """
        precision = torch.cholesky_inverse(self.factor).diagonal(dim1=-2, dim2=-1)
        z = (self.y.T - self.centre.unsqueeze(-1)) / self.scale.unsqueeze(-1)
        mean = (z - self.weights / precision).T * self.scale + self.centre
        amplitude = self.hyperparameters.amplitude
        scale = self.scale if amplitude is None else self.scale * amplitude.sqrt()
        return mean, precision.rsqrt().T * scale

    def with_data(self, x: Tensor, y: Tensor) -> Surrogates:
        """Return surrogates conditioned on further points x (b x d) and outputs y (b x q); all that was fitted is kept."""
        check_data(x, y, least=1)
        if x.shape[1] != self.x.shape[1] or y.shape[1] != self.y.shape[1]:
            raise SurrogateError(
                f"Expected further data with {self.x.shape[1]} variables and {self.y.shape[1]} outputs, got {x.shape[1]} "
                f"and {y.shape[1]}; pass unit-cube points and raw outputs in the order of the fit."
            )
        both = torch.cat([self.x, x]), torch.cat([self.y, y])
        return condition(*both, self.hyperparameters, self.centre, self.scale)

    def to_botorch(self, warp: Warp | None = None) -> ModelListGP:
        """Return a BoTorch ModelListGP of SingleTaskGPs with this posterior, on unit-cube inputs (see `botorch`).

        warp: how outputs were warped before they were learned; with it the posterior is in natural units.
        Needs the `bench` extra.
        """
        try:
            from cbabo.surrogate.botorch import as_botorch
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("cbabo"):
                raise
            raise MissingExtraError(
                f"to_botorch needs {error.name}, which is missing; install it by: pip install 'cbabo[bench]'"
            ) from error

        return as_botorch(self, warp)

    def to_arrays(self) -> tuple[dict[str, NDArray[np.float64]], dict[str, int | str]]:
        """Return named arrays and plain values, from which `from_arrays` makes the same surrogates; factors are left out."""
        h = self.hyperparameters
        tensors = {
            "x": self.x,
            "y": self.y,
            "centre": self.centre,
            "scale": self.scale,
            "lengthscales": h.lengthscales,
            "noise": h.noise,
            "constant": h.constant,
        }
        tensors |= {k: t for k in _OPTIONAL if (t := getattr(h, k)) is not None}
        return {k: v.numpy().copy() for k, v in tensors.items()}, {"format": _FORMAT, "explored": h.explored}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.float64]], meta: Mapping[str, int | str]) -> Surrogates:
        """Return the surrogates that `to_arrays` took apart."""
        needed = {"x", "y", "centre", "scale", "lengthscales", "noise", "constant"}
        if meta.get("format") != _FORMAT or not needed <= set(arrays):
            raise SurrogateError(
                f"Expected surrogates of format {_FORMAT} with arrays {sorted(needed)}, got format {meta.get('format')} with "
                f"{sorted(arrays)}; save them again with this version."
            )
        t = {name: torch.tensor(array, dtype=torch.float64) for name, array in arrays.items()}
        if any(t[name].shape != t["y"].shape[1:] for name in ("centre", "scale", "noise", "constant")):
            raise SurrogateError(
                f"Expected one centre, scale, noise and constant for each column of y {tuple(t['y'].shape)}, got "
                f"{[tuple(t[name].shape) for name in ('centre', 'scale', 'noise', 'constant')]}; the saved data are damaged."
            )
        if "family" in t:
            t["family"] = t["family"].long()
        hyperparameters = Hyperparameters(
            t["lengthscales"],
            t["noise"],
            t["constant"],
            explored=int(meta.get("explored", 0)),
            **{k: t.get(k) for k in _OPTIONAL},
        )
        return condition(t["x"], t["y"], hyperparameters, t["centre"], t["scale"])

    @cached_property
    def _right(self) -> Tensor:
        h = self.hyperparameters
        return kernel.right(h.stretched(self.x)[0], h.lengthscales).contiguous()

    @cached_property
    def _ones_and_x(self) -> Tensor:
        """n x (1 + d), or q x n x (1 + d) where variables are stretched."""
        u = self.hyperparameters.stretched(self.x)[0]
        return torch.cat([torch.ones_like(u[..., :1]), u - kernel.CENTRE], dim=-1)

    @property
    def _chunk(self) -> int:
        return max(1, _CHUNK_ELEMENTS // self.weights.numel())

    def _mean(self, k: Tensor) -> Tensor:
        z = torch.bmm(k, self.weights.unsqueeze(-1)).squeeze(-1).T + self.hyperparameters.constant
        return z * self.scale + self.centre

    def _pull(self, coefficients: Tensor, u: Tensor, rise: Tensor | None, at: Tensor | None = None) -> Tensor:
        """Return sum_r coefficients_r (u'_r - u) du/dx (o x b x d) for coefficients (o x b x n, with k') on the data.

        u: query points as the kernel sees them, rise: their derivative; at: the outputs o, all if None.
        """
        h, points = self.hyperparameters, self._ones_and_x
        if at is not None and rise is not None:
            points, u, rise = points[at], u[at], rise[at]
        sums = coefficients @ points
        pulled = sums[..., 1:] - sums[..., :1] * (u - kernel.CENTRE)
        if h.family is not None:
            family, lengthscales, right = (t if at is None else t[at] for t in (h.family, h.lengthscales, self._right))
            summed = (family == kernel.ADDITIVE).nonzero().squeeze(-1)
            if len(summed):
                left = kernel.left(u, lengthscales)[summed]
                pulled[summed] = kernel.additive_pull(coefficients[summed], left, right[summed])
                pulled[summed] *= lengthscales[summed].unsqueeze(-2)
        return pulled if rise is None else pulled * rise


@dataclass(frozen=True)
class Prediction:
    """What surrogates say at b points, with the intermediate results that derivatives need."""

    mean: Tensor
    """b x q, natural units."""
    std: Tensor
    """b x q, natural units, of the latent function."""
    _surrogates: Surrogates = field(repr=False)
    _u: Tensor = field(repr=False)
    _rise: Tensor | None = field(repr=False)
    _slope: Tensor = field(repr=False)
    _v: Tensor = field(repr=False)

    def vjp(self, weight_mean: Tensor, weight_std: Tensor) -> Tensor:
        """Return d/dx (b x d) of sum_j weight_mean_j mean_j + weight_std_j std_j, weights b x q.

        Outputs that have no weight at any point are left out of the work.
        """
        s = self._surrogates
        with torch.no_grad():
            on_mean, on_std = (weight_mean * s.scale).T, (weight_std * self._share).T
            used = ((weight_mean != 0) | (weight_std != 0)).any(0)
            factor, weights, slope, v = s.factor, s.weights, self._slope, self._v
            inverse_square = s.hyperparameters.lengthscales.pow(-2)
            at = None
            if not bool(used.all()):
                at = used.nonzero().squeeze(-1)
                on_mean, on_std, factor, weights = on_mean[at], on_std[at], factor[at], weights[at]
                slope, v, inverse_square = slope[at], v[at], inverse_square[at]
            w = torch.linalg.solve_triangular(factor, v, upper=False, left=False)
            w.mul_(on_std.neg().unsqueeze(-1)).addcmul_(on_mean.unsqueeze(-1), weights.unsqueeze(-2))
            return (s._pull(w.mul_(slope), self._u, self._rise, at) * inverse_square.unsqueeze(-2)).sum(0)

    @property
    def _share(self) -> Tensor:
        """b x q: what v'dv is multiplied by in dstd."""
        s = self._surrogates
        amplitude = s.hyperparameters.amplitude
        square = s.scale.square() if amplitude is None else s.scale.square() * amplitude
        return square / self.std


def condition(
    x: Tensor,
    y: Tensor,
    hyperparameters: Hyperparameters,
    centre: Tensor | None = None,
    scale: Tensor | None = None,
) -> Surrogates:
    """Return surrogates with given hyperparameters on x (n x d) and y (n x q); centre and scale (q) are y's own unless given.

    Where K has no Cholesky factor, that output's noise is raised tenfold until it has (the result's hyperparameters say so);
    beyond a noise variance of 1 this ends in a SurrogateError.
    """
    check_data(x, y, least=1)
    check_same_problem(hyperparameters, x, y)
    x, y = (t.detach().clone(memory_format=torch.contiguous_format) for t in (x, y))  # alignment decides last bits
    if centre is None or scale is None:
        centre, scale = standardisation(y)
    factor, noise = factorise(x, hyperparameters)
    return assembled(x, y, replace(hyperparameters, noise=noise), centre, scale, factor)


def assembled(
    x: Tensor, y: Tensor, hyperparameters: Hyperparameters, centre: Tensor, scale: Tensor, factor: Tensor
) -> Surrogates:
    """Return surrogates from parts that belong together and are no one else's; L (q x n x n) is of these hyperparameters."""
    residual = ((y - centre) / scale - hyperparameters.constant).T.unsqueeze(-1)
    weights = torch.cholesky_solve(residual, factor).squeeze(-1)
    return Surrogates(x, y, hyperparameters, centre, scale, factor, weights)


def factorise(x: Tensor, h: Hyperparameters) -> tuple[Tensor, Tensor]:
    """Return L (q x n x n) for x (n x d) and the noise (q) with which it exists: as given, or raised (see `condition`)."""
    u, noise = h.stretched(x)[0], h.noise
    k = kernel.correlation(kernel.left(u, h.lengthscales), kernel.right(u, h.lengthscales), h.family)
    k.diagonal(dim1=-2, dim2=-1).copy_((1.0 + noise).unsqueeze(-1).expand(-1, len(x)))
    factor, info = torch.linalg.cholesky_ex(k)
    noise = noise.clone()
    while bool(info.any()):
        bad = info.nonzero().squeeze(-1)
        noise[bad] *= 10.0
        if bool((noise[bad] > _LARGEST_NOISE).any()):
            raise SurrogateError(
                f"Expected a covariance matrix with a Cholesky factor, got none for output {int(bad[0])} with any noise variance "
                f"up to {_LARGEST_NOISE:g}; look for extreme lengthscales in that output."
            )
        k.diagonal(dim1=-2, dim2=-1).copy_((1.0 + noise).unsqueeze(-1).expand(-1, len(x)))
        factor[bad], info[bad] = torch.linalg.cholesky_ex(k[bad])
    return factor, noise


def check_same_problem(hyperparameters: Hyperparameters, x: Tensor, y: Tensor) -> None:
    """Refuse hyperparameters that are not of y's outputs and x's variables."""
    if hyperparameters.lengthscales.shape != (y.shape[1], x.shape[1]):
        raise SurrogateError(
            f"Expected hyperparameters of {y.shape[1]} outputs and {x.shape[1]} variables, got "
            f"{tuple(hyperparameters.lengthscales.shape)}; pass those of a fit to the same problem."
        )


def _chunks(x: Tensor, size: int) -> list[Tensor]:
    return [x[i : i + size] for i in range(0, max(1, len(x)), size)]
