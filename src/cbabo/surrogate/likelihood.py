"""Negative log marginal likelihood with priors (MAP objective) of all outputs at once, with its gradient in closed form.

Symbols and shapes
    x        n x d    evaluated points, unit cube
    z        q x n    outputs, standardised
    u        q x p    variables of the fit, p = d + 1: logarithms of d lengthscales l and of the noise variance eta
    K        q x n x n   k(x, x; l) + eta I
    c        q        constant mean; it has no prior and is eliminated: the best c given l and eta is 1'K^-1 z / 1'K^-1 1
    a        q x n    K^-1 (z - c)
    s2       q        amplitude: 1, or its maximum-likelihood estimate (z - c)'a / n; the covariance is s2 K
    J        q        -(log N(z | c, K) + log p(l) + log p(eta)) / n, as BoTorch's ExactMarginalLogLikelihood, negated

Outputs of one group share l and eta (see `sharing`): there is one row of u, one K and one J for each of the g groups, with the
sum of their members' log likelihoods, and J is divided by the number of members too. Each member has its own c, a and s2; where
a group has fewer than P members, the others are zeros that do not count.

Gradient: with A = K^-1 - a a' / s2 and G = A * k'(h), dJ/dlog l_i = sum_rs G_rs (x_ri - x_si)^2 / (2 n l_i^2) and dJ/dlog eta =
eta tr(A) / 2n, both minus the gradient of the log priors. The double sum is a matrix product, because G is symmetric: 2
(rowsum(G) . x_i^2 - x_i . (G x_i)). Where rows are means of repeated measurements, the diagonal of K is 1 + eta relative (see
`noise`), and the repeats enter as further normal variables with variance s2 eta. Priors are densities of l and eta themselves
(not of their logarithms).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from cbabo.surrogate import kernel
from cbabo.surrogate.noise import RowNoise
from cbabo.surrogate.sharing import Sharing


@dataclass(frozen=True)
class LikelihoodTuning:
    """Numbers of the objective."""

    chunk_elements: int = 160_000
    """Elements of the n x n matrices that are handled together; a few of them fit into the processor's cache."""
    min_amplitude: float = 1e-12
    """Smallest variance of the process, in units of the standardised outputs."""
    additive_lengthscale_spread: float = 0.5
    """Prior standard deviation of an additive output's log lengthscales around their mean; the data tell little about each."""


TUNING = LikelihoodTuning()

_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Priors:
    """Log-normal priors of lengthscales and noise variance, and their lower bounds.

    Examples:
        >>> priors = Priors.botorch(d=3)
        >>> priors.min_noise, Priors.sharp(d=3).free_amplitude
        (0.0001, True)
    """

    lengthscale_location: float
    lengthscale_scale: float
    noise_location: float
    noise_scale: float
    min_lengthscale: float
    min_noise: float
    free_amplitude: bool = False
    """Whether the amplitude is its maximum-likelihood estimate instead of 1."""

    @classmethod
    def sharp(cls, d: int) -> Priors:
        """Return priors for deterministic simulators: hardly any noise, and a free amplitude."""
        return cls(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0), math.log(1e-7), 4.0, 1e-2, 1e-10, True)

    @classmethod
    def botorch(cls, d: int) -> Priors:
        """Return the priors of BoTorch's SingleTaskGP for d variables."""
        return cls(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0), -4.0, 1.0, 2.5e-2, 1e-4)

    def start(self, d: int) -> Tensor:
        """Return u (p) at the modes of the priors, where BoTorch starts."""
        u = torch.full((d + 1,), self.lengthscale_location - self.lengthscale_scale**2, dtype=torch.float64)
        u[d] = self.noise_location - self.noise_scale**2
        return torch.maximum(u, self.lower(d))

    def lower(self, d: int) -> Tensor:
        """Return the lower bounds of u (p)."""
        u = torch.full((d + 1,), math.log(self.min_lengthscale), dtype=torch.float64)
        u[d] = math.log(self.min_noise)
        return u


@dataclass(frozen=True)
class Objective:
    """The objective J of the outputs z, for each group of outputs that share a kernel."""

    x: Tensor
    """n x d, unit cube; or g x n x d, stretched for each group."""
    z: Tensor
    """q x n, standardised."""
    priors: Priors
    family: Tensor | None = None
    """g, kernel family of each group."""
    sharing: Sharing | None = None
    """Which outputs share a kernel; None: every output is a group of its own."""
    row_noise: RowNoise | None = None
    """Noise of every row, the same in a group, its spread in units of z squared; None: eta for all."""
    ones_and_x: Tensor = field(init=False, repr=False)
    """n x (1 + d) or g x n x (1 + d), a column of ones beside the centred points."""

    def __post_init__(self) -> None:
        if self.sharing is None:
            object.__setattr__(self, "sharing", Sharing.of(torch.arange(len(self.z))))
        object.__setattr__(
            self, "ones_and_x", torch.cat([torch.ones_like(self.x[..., :1]), self.x - kernel.CENTRE], dim=-1)
        )

    def value_and_gradient(self, u: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
        """Return J (o) and dJ/du (o x p) at u (o x p) of the given groups (o indices); J is inf where K has no factor."""
        n = self.x.shape[-2]
        size = max(1, TUNING.chunk_elements // (n * n))
        parts = [self._chunk(u[i : i + size], groups[i : i + size]) for i in range(0, len(u), size)]
        value, gradient = (torch.cat(p) for p in zip(*parts, strict=True))
        return value, gradient

    def moments(self, factor: Tensor, sharing: Sharing, noise: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return c and s2 (q each; s2 is None where it is fixed at 1) for L (g x n x n) of these groups and eta (q)."""
        z = sharing.columns(self.z)
        half = torch.linalg.solve_triangular(factor, torch.cat([z, torch.ones_like(z[..., :1])], dim=-1), upper=False)
        half_z, half_1 = sharing.outputs(half[..., :-1]), sharing.each(half[..., -1])
        constant = torch.div((half_1 * half_z).sum(-1), half_1.square().sum(-1))
        if not self.priors.free_amplitude:
            return constant, None
        misfit = (half_z - constant.unsqueeze(-1) * half_1).square().sum(-1)
        count: Tensor | int = self.z.shape[-1]
        if self.row_noise is not None:
            misfit, count = misfit + self.row_noise.spread / noise, count + self.row_noise.repeats
        return constant, (misfit / count).clamp_min(TUNING.min_amplitude)

    def thinned(self, most: int) -> Objective:
        """Return the objective of at most so many evaluations, taken at even intervals; itself if it has no more."""
        n = self.x.shape[-2]
        if n <= most:
            return self
        return self.at(torch.arange(most) * n // most)

    def at(self, rows: Tensor) -> Objective:
        """Return the objective of these evaluations (indices)."""
        z = self.z[:, rows].contiguous()
        noise = None if self.row_noise is None else self.row_noise.at(rows, torch.arange(len(z)))
        return Objective(self.x[..., rows, :], z, self.priors, self.family, self.sharing, noise)

    @property
    def _shared(self) -> Sharing:
        assert self.sharing is not None
        return self.sharing

    @cached_property
    def _columns(self) -> Tensor:
        """The outputs as columns of each group, g x n x P."""
        return self._shared.columns(self.z)

    @cached_property
    def _repeats(self) -> tuple[Tensor, Tensor, Tensor]:
        """Relative noise of the rows (g x n), number of repeats and their spread (g x P each)."""
        assert self.row_noise is not None
        sharing, noise = self._shared, self.row_noise
        repeats, spread = (sharing.columns(t.unsqueeze(-1)).squeeze(1) for t in (noise.repeats, noise.spread))
        return sharing.once(noise.relative), repeats, spread

    @cached_property
    def _pairs(self) -> _Pairs:
        n = self.x.shape[-2]
        rows, columns = torch.tril_indices(n, n, -1).unbind(0)
        x = self.x if self.x.ndim == 3 else self.x.unsqueeze(0)
        return _Pairs(rows, columns, (x[:, rows] - x[:, columns]).square_())

    def _chunk(self, u: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
        n, d = self.x.shape[-2:]
        z = self._columns[groups].mT  # o x P x n
        shared = self.x.ndim == 2
        points, ones_and_x = (self.x, self.ones_and_x) if shared else (self.x[groups], self.ones_and_x[groups])
        family = None if self.family is None else self.family[groups]
        lengthscales, noise = u[:, :d].exp(), u[:, d].exp()
        additive_at = None if family is None else (family == kernel.ADDITIVE).nonzero().squeeze(-1)
        additive = None
        if family is not None and additive_at is not None and len(additive_at):
            additive = self._pairs.at(lengthscales[additive_at], groups[additive_at])
            family = torch.where(family == kernel.ADDITIVE, kernel.SMOOTH, family)
        k, slope = kernel.correlation_and_slope(
            kernel.left(points, lengthscales), kernel.right(points, lengthscales), family
        )
        if additive is not None:
            k[additive_at] = additive.correlation(n)
        # From here on k is K; the diagonal of the slope is not used.
        if self.row_noise is None:
            k.diagonal(dim1=-2, dim2=-1).copy_((1.0 + noise).unsqueeze(-1).expand(-1, n))
        else:
            relative, repeats, of_repeats = (t[groups] for t in self._repeats)
            k.diagonal(dim1=-2, dim2=-1).copy_(1.0 + noise.unsqueeze(-1) * relative)
        factor, info = torch.linalg.cholesky_ex(k)
        failed = info > 0
        if bool(failed.any()):
            factor[failed] = torch.eye(n, dtype=factor.dtype)
        half = torch.linalg.solve_triangular(factor, torch.cat([z, torch.ones_like(z[:, :1])], dim=-2).mT, upper=False)
        half_z, half_1 = half.mT[:, :-1], half.mT[:, -1:]
        constant = (half_1 * half_z).sum(-1, keepdim=True) / half_1.square().sum(-1, keepdim=True)
        residual = half_z - constant * half_1
        a = torch.linalg.solve_triangular(factor.mT, residual.mT, upper=True)
        log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        misfit = residual.square().sum(-1)
        log_dets, total = log_det[:, None], torch.tensor(n)
        if self.row_noise is not None:  # Repeats are independent of the means of the rows.
            misfit = misfit + of_repeats / noise[:, None]
            log_dets = log_dets + 0.5 * repeats * noise.log()[:, None]
            total = n + repeats
        amplitude = torch.ones_like(misfit)
        if self.priors.free_amplitude:
            amplitude = (misfit / total).clamp_min(TUNING.min_amplitude)
            values = 0.5 * total * amplitude.log() + 0.5 * misfit / amplitude + log_dets + 0.5 * n * _LOG_2PI
            a = a * amplitude.rsqrt()[:, None, :]
        else:
            values = 0.5 * misfit + log_dets + 0.5 * n * _LOG_2PI

        A = torch.cholesky_inverse(factor).mT  # It is symmetric; mT is contiguous.
        members, filled = self._shared.members, self._shared.filled
        if members is None or filled is None:
            value, count = values[:, 0], torch.tensor(n)
            A.addcmul_(a, a.mT, value=-1.0)
        else:
            value, count = (values * filled[groups]).sum(-1), n * members[groups]
            A = torch.baddbmm(A * members[groups][:, None, None], a, a.mT, alpha=-1.0)
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        if self.row_noise is None:
            trace = diagonal.sum(-1, keepdim=True)
        else:
            by_repeats = (repeats - of_repeats / noise[:, None] / amplitude) / noise[:, None]
            trace = (diagonal * relative).sum(-1, keepdim=True) + by_repeats.sum(-1, keepdim=True)
        additive_spread = None if additive is None else additive.lengthscale_gradient(A[additive_at])
        products = A.mul_(slope) @ ones_and_x
        x = ones_and_x[..., 1:]
        spread = (products[..., :1] * x.square() - x * products[..., 1:]).sum(-2) / lengthscales.square()
        if additive_spread is not None:
            spread[additive_at] = additive_spread
        gradient = torch.cat([spread, 0.5 * noise.unsqueeze(-1) * trace], dim=-1)

        prior, prior_gradient = _log_priors(u, self.priors, additive_at)
        return torch.where(failed, torch.inf, (value - prior) / count), (gradient - prior_gradient) / count.unsqueeze(
            -1
        )


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All P = n (n - 1) / 2 pairs of points, for additive kernels."""

    rows: Tensor
    columns: Tensor
    square: Tensor
    """1 x P x d or q x P x d, squared distances in each variable."""

    def at(self, lengthscales: Tensor, outputs: Tensor) -> _Additive:
        """Return the additive kernel of some outputs with these lengthscales (o x d)."""
        square = self.square[outputs] if len(self.square) > 1 else self.square
        weight = lengthscales.pow(-2).unsqueeze(-2)
        return _Additive(self, square, weight, (square * (-0.5 * weight)).exp_())


@dataclass(frozen=True, eq=False)
class _Additive:
    """Additive kernel of o outputs at all pairs of points."""

    pairs: _Pairs
    square: Tensor
    weight: Tensor
    """o x 1 x d, 1 / l^2."""
    terms: Tensor
    """o x P x d, correlation in each variable."""

    def correlation(self, n: int) -> Tensor:
        """Return k (o x n x n); the diagonal is not set."""
        k = torch.zeros(len(self.terms), n, n, dtype=self.terms.dtype)
        k[:, self.pairs.rows, self.pairs.columns] = k[:, self.pairs.columns, self.pairs.rows] = self.terms.mean(-1)
        return k

    def lengthscale_gradient(self, A: Tensor) -> Tensor:
        """Return 1/2 sum_rs A_rs dk_rs / dlog l (o x d) for A o x n x n."""
        coefficients = A[:, self.pairs.rows, self.pairs.columns].unsqueeze(-2)
        return torch.bmm(coefficients, self.terms * self.square).squeeze(-2) * (
            self.weight.squeeze(-2) / self.terms.shape[-1]
        )


def _log_priors(u: Tensor, priors: Priors, additive: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the log prior density (o) and its gradient (o x p); additive: which outputs are additive."""
    d = u.shape[-1] - 1
    location = u.new_tensor([priors.lengthscale_location] * d + [priors.noise_location]).expand_as(u)
    scale = u.new_tensor([priors.lengthscale_scale] * d + [priors.noise_scale])
    if additive is not None and len(additive):
        location = location.clone()
        location[additive, :d] -= 0.5 * math.log(d)  # Each of their functions has one variable.
    standard = (u - location) / scale
    density = (-0.5 * standard.square() - u - scale.log() - 0.5 * _LOG_2PI).sum(-1)
    gradient = -standard / scale - 1.0
    if additive is not None and len(additive):
        spread = TUNING.additive_lengthscale_spread
        difference = (u[additive, :d] - u[additive, :d].mean(-1, keepdim=True)) / spread
        density[additive] -= 0.5 * difference.square().sum(-1)
        gradient[additive, :d] -= difference / spread
    return density, gradient
