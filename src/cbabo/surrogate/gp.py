"""Fitted surrogates: one exact Gaussian process for each output, queried as one batch.

Symbols and shapes
    n, d, q, b   evaluations, variables, outputs, query points
    x        n x d    evaluated points, unit cube; y  n x q  their outputs, natural units
    m, s     q        centre and scale of each output; z = (y - m) / s, q x n
    l, eta, c   q x d, q, q   lengthscales, noise variance and constant mean, of z
    L        g x n x n   Cholesky factor of K = k(x, x) + eta I, for each group of outputs that share k and eta (`sharing`)
    a        q x n    K^-1 (z - c)

At a query point with correlations k to the data the posterior has mean = m + s (c + k'a) and variance = s^2 (1 - |v|^2) with v
= L^-1 k. This is the variance of the latent function, without noise, as in BoTorch. Where the process has an amplitude A of its
own, the variance is s^2 A (1 - |v|^2 + nugget eta): the nugget is 1 for deterministic outputs, of which eta is what a smooth
function cannot follow, and 0 for noisy ones. Derivatives by x are computed from dh/dx (see `kernel`): with w = K^-1
k, dmean = s a'dk and dstd = -(s^2 / std) w'dk. Triangular solves are as fast as products with K^-1, and 1 - |v|^2 loses fewer
digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cbabo.errors import MissingExtraError, SurrogateError
from cbabo.surrogate import kernel
from cbabo.surrogate.data import check_data, check_query, standardisation
from cbabo.surrogate.hyperparameters import Hyperparameters, check_same_problem, factorise, inverted

if TYPE_CHECKING:
    from botorch.models import ModelListGP

    from cbabo.surrogate.warp import Warp


@dataclass(frozen=True)
class PredictionTuning:
    """Numbers that control queries."""

    chunk_elements: int = 250_000
    """Elements q x b x n of the largest tensors of one chunk of a query, which fit into the processor's cache."""
    min_variance: float = 1e-12
    """Smallest latent variance of z; rounding must not make a variance negative."""
    large: int = 500
    """Evaluations beyond which inverses of factors are used again, and chunks have at least `fewest` points."""
    fewest: int = 64
    """Points of a chunk with many evaluations: with fewer, a triangular solve is limited by memory."""


TUNING = PredictionTuning()


@dataclass(frozen=True)
class Surrogates:
    """Gaussian processes of all outputs, conditioned on data; made by `fit` or `condition`.

    Examples:
        >>> from cbabo.surrogate import fit
        >>> x = torch.linspace(0.0, 1.0, 7, dtype=torch.float64).unsqueeze(1)
        >>> surrogates = fit(x, torch.cat([x, x.square()], dim=1))
        >>> mean, std = surrogates.mean_and_std(torch.tensor([[0.4]], dtype=torch.float64))
        >>> mean.round(decimals=1).tolist(), mean.shape == std.shape
        ([[0.4, 0.2]], True)
    """

    x: Tensor
    """n x d, unit cube."""
    y: Tensor
    """n x q, natural units."""
    hyperparameters: Hyperparameters
    centre: Tensor
    """q, natural units: what was subtracted from each output."""
    scale: Tensor
    """q, natural units: what each output was divided by."""
    relative_noise: Tensor | None = field(repr=False)
    """q x n, noise variance of each row relative to that of its output (see `noise`); None: 1."""
    factor: Tensor = field(repr=False, metadata={"stored": False})
    """g x n x n, lower triangular: L."""
    weights: Tensor = field(repr=False, metadata={"stored": False})
    """q x n: a."""

    def predict(self, x: Tensor) -> Prediction:
        """Return means and standard deviations at x (b x d) with what derivatives without autograd need; not chunked."""
        check_query(x, self.x.shape[1])
        h, shared = self.hyperparameters, self._shared
        u, stretch_slope = shared.stretched(x)
        k, slope = kernel.correlation_and_slope(kernel.left(u, shared.lengthscales), self._right, shared.family)
        v = torch.linalg.solve_triangular(self.factor.mT, k, upper=True, left=False)
        variance = h.sharing.each((1.0 - v.square().sum(-1)).clamp_min(TUNING.min_variance))
        if h.amplitude is not None:
            variance = (variance + h.contained_noise.unsqueeze(-1)) * h.amplitude.unsqueeze(-1)
        return Prediction(self._mean(k), variance.sqrt().T * self.scale, self, u, stretch_slope, slope, v)

    def mean_and_std(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations (b x q each, natural units) at x (b x d); differentiable in x by autograd."""
        check_query(x, self.x.shape[1])
        parts = [self.predict(part) for part in _chunks(x, self._chunk)]
        return torch.cat([p.mean for p in parts]), torch.cat([p.std for p in parts])

    def mean(self, x: Tensor) -> Tensor:
        """Return means (b x q, natural units) at x (b x d), several times cheaper than with standard deviations."""
        check_query(x, self.x.shape[1])
        h = self._shared
        return torch.cat(
            [
                self._mean(kernel.correlation(kernel.left(h.stretched(part)[0], h.lengthscales), self._right, h.family))
                for part in _chunks(x, self._chunk)
            ]
        )

    def mean_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means (b x q, natural units) and their derivatives by x (b x q x d) at x (b x d)."""
        check_query(x, self.x.shape[1])
        h, sharing = self._shared, self.hyperparameters.sharing
        parts = []
        with torch.no_grad():
            for part in _chunks(x, self._chunk):
                u, stretch_slope = h.stretched(part)
                k, slope = kernel.correlation_and_slope(kernel.left(u, h.lengthscales), self._right, h.family)
                if sharing.is_trivial:
                    gradient = self._input_gradient(slope * self.weights.unsqueeze(-2), u, stretch_slope)
                else:
                    gradient = self._shared_gradient(slope, u, stretch_slope)
                gradient = gradient * sharing.each(h.lengthscales.pow(-2)).unsqueeze(-2)
                parts.append((self._mean(k), gradient.transpose(0, 1)))
        mean, gradient = (torch.cat(p) for p in zip(*parts, strict=True))
        return mean, gradient * self.scale.unsqueeze(-1)

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Return leave-one-out means and standard deviations with noise of all evaluations (n x q each, natural units).

        Hyperparameters are not refitted, so that there is a closed form: z_i - a_i / P_ii and variance 1 / P_ii with P = K^-1.
        """
        sharing = self.hyperparameters.sharing
        if len(self.x) > TUNING.large:
            precision = sharing.each(torch.stack([inverse.square().sum(-2) for inverse in self.inverse_factor]))
        else:
            precision = sharing.each(torch.cholesky_inverse(self.factor).diagonal(dim1=-2, dim2=-1))
        z = (self.y.T - self.centre.unsqueeze(-1)) / self.scale.unsqueeze(-1)
        mean = (z - self.weights / precision).T * self.scale + self.centre
        amplitude = self.hyperparameters.amplitude
        scale = self.scale if amplitude is None else self.scale * amplitude.sqrt()
        return mean, precision.rsqrt().T * scale

    def whitened(self, t: Tensor) -> Tensor:
        """Return L^-1 t (q x n) for t (q x n)."""
        sharing = self.hyperparameters.sharing
        return sharing.outputs(torch.linalg.solve_triangular(self.factor, sharing.columns(t), upper=False))

    def observation_std(self, std: Tensor) -> Tensor:
        """Return the standard deviations of one measurement (b x q), for those that predictions have (b x q)."""
        h = self.hyperparameters
        if h.amplitude is None or h.nugget is None:
            return std
        return (std.square() + (1.0 - h.nugget) * h.noise * h.amplitude * self.scale.square()).sqrt()

    @property
    def noise_std(self) -> Tensor:
        """Standard deviations (q) of the noise, in the units of y."""
        h = self.hyperparameters
        return (h.noise if h.amplitude is None else h.noise * h.amplitude).sqrt() * self.scale

    def with_data(self, x: Tensor, y: Tensor) -> Surrogates:
        """Return surrogates conditioned on further points x (b x d) and outputs y (b x q), with the same hyperparameters."""
        check_data(x, y, least=1)
        if x.shape[1] != self.x.shape[1] or y.shape[1] != self.y.shape[1]:
            raise SurrogateError(
                f"Expected further data with {self.x.shape[1]} variables and {self.y.shape[1]} outputs, got {x.shape[1]} "
                f"and {y.shape[1]}; pass unit-cube points and raw outputs in the order of the fit."
            )
        both = torch.cat([self.x, x]), torch.cat([self.y, y])
        relative = self.relative_noise
        if relative is not None:
            relative = torch.cat([relative, relative.new_ones(len(relative), len(x))], dim=1)
        return condition(*both, self.hyperparameters, self.centre, self.scale, relative)

    def to_botorch(self, warp: Warp | None = None) -> ModelListGP:
        """Return a BoTorch ModelListGP of SingleTaskGPs with this posterior, on unit-cube inputs (see `botorch`).

        warp: the warp of the outputs; with it the posterior is in natural units.
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

    @classmethod
    def restore(
        cls,
        *,
        x: Tensor,
        y: Tensor,
        hyperparameters: Hyperparameters,
        centre: Tensor,
        scale: Tensor,
        relative_noise: Tensor | None,
    ) -> Surrogates:
        """Return surrogates from their stored fields, conditioned again; `numerics.codec.decode` calls this."""
        if any(t.shape != y.shape[1:] for t in (centre, scale, hyperparameters.noise, hyperparameters.constant)):
            raise SurrogateError(
                f"Expected one centre, scale, noise and constant for each column of y {tuple(y.shape)}, got "
                f"{[tuple(t.shape) for t in (centre, scale, hyperparameters.noise, hyperparameters.constant)]}; the saved data "
                "are damaged."
            )
        return condition(x, y, hyperparameters, centre, scale, relative_noise)

    @property
    def _shared(self) -> Hyperparameters:
        return self.hyperparameters.of_groups

    @cached_property
    def _weight_columns(self) -> Tensor:
        """The weights as columns of each group, g x n x P."""
        return self.hyperparameters.sharing.columns(self.weights).contiguous()

    @cached_property
    def _weighted_points(self) -> Tensor:
        """Weights times ones and points, g x n x P (1 + d): for the gradients of outputs that share a kernel."""
        points = self._ones_and_x if self._ones_and_x.ndim == 3 else self._ones_and_x.unsqueeze(0)
        return (self._weight_columns.unsqueeze(-1) * points.unsqueeze(2)).flatten(2)

    @cached_property
    def _right(self) -> Tensor:
        h = self._shared
        return kernel.right(h.stretched(self.x)[0], h.lengthscales).contiguous()

    @cached_property
    def _ones_and_x(self) -> Tensor:
        """Ones beside the centred points: n x (1 + d), or g x n x (1 + d) where variables are stretched."""
        u = self._shared.stretched(self.x)[0]
        return torch.cat([torch.ones_like(u[..., :1]), u - kernel.CENTRE], dim=-1)

    @cached_property
    def inverse_factor(self) -> Tensor:
        """L^-1, g x n x n."""
        return inverted(self.factor)

    def with_deviations(self, hyperparameters: Hyperparameters) -> Surrogates:
        """Return the same with hyperparameters that differ in the amplitude and the nugget alone, which no factor depends on."""
        found = replace(self, hyperparameters=hyperparameters)
        if "inverse_factor" in vars(self):
            vars(found)["inverse_factor"] = self.inverse_factor
        return found

    @property
    def _chunk(self) -> int:
        fewest = TUNING.fewest if len(self.x) > TUNING.large else 1
        return max(fewest, TUNING.chunk_elements // (len(self.factor) * len(self.x)))

    def _mean(self, k: Tensor) -> Tensor:
        h = self.hyperparameters
        z = h.sharing.outputs(torch.bmm(k, self._weight_columns)).T + h.constant
        return z * self.scale + self.centre

    def _shared_gradient(self, slope: Tensor, u: Tensor, stretch_slope: Tensor | None) -> Tensor:
        """Return the gradients (q x b x d) of outputs that share kernels, without lengthscales; slope: k', g x b x n."""
        h, sharing, d = self._shared, self.hyperparameters.sharing, self.x.shape[1]
        if h.family is not None and bool((h.family == kernel.ADDITIVE).any()):
            coefficients = sharing.each(slope) * self.weights.unsqueeze(-2)
            return self._input_gradient(coefficients, u, stretch_slope, sharing.group)
        sums = torch.bmm(slope, self._weighted_points).unflatten(2, (sharing.size, 1 + d))  # g x b x P x (1 + d)
        centred = (u - kernel.CENTRE).unsqueeze(-2)
        gradient = sums[..., 1:] - sums[..., :1] * centred
        gradient = gradient if stretch_slope is None else gradient * stretch_slope.unsqueeze(-2)
        return sharing.outputs(gradient)

    def _input_gradient(
        self, coefficients: Tensor, u: Tensor, stretch_slope: Tensor | None, at: Tensor | None = None
    ) -> Tensor:
        """Return sum_r coefficients_r (u'_r - u) du/dx (o x b x d) for coefficients (o x b x n, k' included) of the data.

        u: inputs of the kernel at the query points; stretch_slope: their derivative by x; at: the groups (o) of the outputs, all
        of them if None.
        """
        h, points = self._shared, self._ones_and_x
        if at is not None and stretch_slope is not None:
            points, u, stretch_slope = points[at], u[at], stretch_slope[at]
        sums = coefficients @ points
        gradient = sums[..., 1:] - sums[..., :1] * (u - kernel.CENTRE)
        if h.family is not None:
            family, lengthscales, right = (t if at is None else t[at] for t in (h.family, h.lengthscales, self._right))
            additive = (family == kernel.ADDITIVE).nonzero().squeeze(-1)
            if len(additive):
                left = kernel.left(u, lengthscales)[additive]
                gradient[additive] = kernel.additive_gradient(coefficients[additive], left, right[additive])
                gradient[additive] *= lengthscales[additive].unsqueeze(-2)
        return gradient if stretch_slope is None else gradient * stretch_slope


@dataclass(frozen=True)
class Prediction:
    """Means and standard deviations at b points, with the intermediate results that derivatives need."""

    mean: Tensor
    """b x q, natural units."""
    std: Tensor
    """b x q, natural units."""
    _surrogates: Surrogates = field(repr=False)
    _u: Tensor = field(repr=False)
    _stretch_slope: Tensor | None = field(repr=False)
    _slope: Tensor = field(repr=False)
    _v: Tensor = field(repr=False)

    def vjp(self, weight_mean: Tensor, weight_std: Tensor) -> Tensor:
        """Return d/dx (b x d) of sum_j weight_mean_j mean_j + weight_std_j std_j, weights b x q.

        Outputs whose weights are all zero cost nothing.
        """
        s = self._surrogates
        with torch.no_grad():
            on_mean, on_std = (weight_mean * s.scale).T, (weight_std * self._std_factor).T
            used = ((weight_mean != 0) | (weight_std != 0)).any(0)
            factor, weights, slope, v = s.factor, s.weights, self._slope, self._v
            sharing = s.hyperparameters.sharing
            inverse_square = s._shared.lengthscales.pow(-2)
            at = None
            if not (bool(used.all()) and sharing.is_trivial):
                on_mean, on_std, weights = on_mean[used], on_std[used], weights[used]
                at = sharing.group[used]
                factor, v, slope, inverse_square = factor[at], v[at], slope[at], inverse_square[at]
            w = torch.linalg.solve_triangular(factor, v, upper=False, left=False)
            w.mul_(on_std.neg().unsqueeze(-1)).addcmul_(on_mean.unsqueeze(-1), weights.unsqueeze(-2))
            return (
                s._input_gradient(w.mul_(slope), self._u, self._stretch_slope, at) * inverse_square.unsqueeze(-2)
            ).sum(0)

    @property
    def whitened(self) -> Tensor:
        """The correlations with the data divided by their factor (g x b x n): a posterior covariance is k minus its square."""
        return self._v

    @property
    def _std_factor(self) -> Tensor:
        """Factor of v'dv in dstd (b x q)."""
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
    relative_noise: Tensor | None = None,
) -> Surrogates:
    """Return surrogates with given hyperparameters on x (n x d) and y (n x q); centre and scale (q) are those of y by default.

    relative_noise: q x n, noise variance of each row relative to that of its output; 1 by default.

    Where K has no Cholesky factor, the noise variance of that output is raised tenfold until it has one, which the returned
    hyperparameters contain; if it exceeds 1, SurrogateError is raised.
    """
    check_data(x, y, least=1)
    check_same_problem(hyperparameters, x, y)
    # The alignment in memory affects the last bits of the results, so that all data are copied.
    x, y = (t.detach().clone(memory_format=torch.contiguous_format) for t in (x, y))
    if centre is None or scale is None:
        centre, scale = standardisation(y)
    factor, noise = factorise(x, hyperparameters, relative_noise)
    return assembled(x, y, replace(hyperparameters, noise=noise), centre, scale, factor, relative_noise)


def assembled(
    x: Tensor,
    y: Tensor,
    hyperparameters: Hyperparameters,
    centre: Tensor,
    scale: Tensor,
    factor: Tensor,
    relative_noise: Tensor | None = None,
) -> Surrogates:
    """Return surrogates of tensors that are not copied; factor: L (g x n x n) of these hyperparameters."""
    sharing = hyperparameters.sharing
    residual = sharing.columns(((y - centre) / scale - hyperparameters.constant).T)
    weights = sharing.outputs(torch.cholesky_solve(residual, factor))
    return Surrogates(x, y, hyperparameters, centre, scale, relative_noise, factor, weights)


def _chunks(x: Tensor, size: int) -> list[Tensor]:
    return [x[i : i + size] for i in range(0, max(1, len(x)), size)]
