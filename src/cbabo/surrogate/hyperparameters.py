"""Hyperparameters of the surrogates, and the Cholesky factors of the covariance matrices that they define.

Symbols and shapes are those of `gp`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from cbabo.errors import SurrogateError
from cbabo.surrogate import kernel
from cbabo.surrogate.sharing import Sharing


@dataclass(frozen=True)
class FactorisationTuning:
    """Numbers that control factorisations."""

    max_noise: float = 1.0
    """Largest noise variance of z to which noise is raised for a factorisation; such noise explains all of the data."""
    noise_factor: float = 10.0
    """Factor by which noise is raised where a covariance matrix has no Cholesky factor."""
    block: int = 128
    """Rows of a factor that are inverted directly."""


TUNING = FactorisationTuning()


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of all outputs, in units of the standardised outputs; also the start of the next fit.

    Examples:
        >>> from cbabo.surrogate import condition
        >>> h = Hyperparameters(
        ...     lengthscales=torch.full((1, 2), 0.5, dtype=torch.float64),
        ...     noise=torch.tensor([1e-4], dtype=torch.float64),
        ...     constant=torch.zeros(1, dtype=torch.float64),
        ... )
        >>> x = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
        >>> surrogates = condition(x, torch.tensor([[1.0], [3.0]], dtype=torch.float64), h)
        >>> surrogates.mean(torch.tensor([[0.5, 0.5]], dtype=torch.float64)).round(decimals=6).tolist()
        [[2.0]]
    """

    lengthscales: Tensor
    """q x d."""
    noise: Tensor
    """q, noise variances."""
    constant: Tensor
    """q, prior mean."""
    curvature: Tensor | None = None
    """q x (d + 1) x (d + 1), approximate Hessians of the objective per evaluation by log lengthscales and log noise."""
    value: Tensor | None = None
    """q, minimised objective of the fit per evaluation."""
    explored: int = 0
    """Number of evaluations at the last fit that explored all starts."""
    amplitude: Tensor | None = None
    """q, variance of the process; None: it is 1, and standard deviations are those of the latent function, without noise."""
    family: Tensor | None = field(default=None, metadata={"dtype": torch.int64})
    """q, kernel family of each output (see `kernel`); None: all are smooth."""
    stretch: Tensor | None = None
    """q x d, stretch of each output's variables near their lower bounds; None: no variable is stretched."""
    nugget: Tensor | None = None
    """q, share of the noise variance that standard deviations contain where there is an amplitude; None: all of it."""
    noise_kind: Tensor | None = field(default=None, metadata={"dtype": torch.int64})
    """q, kind of noise of each output (see `noise`); None: every row of the data is one measurement."""

    @property
    def contained_noise(self) -> Tensor:
        """The noise variances (q) that standard deviations contain where there is an amplitude."""
        return self.noise if self.nugget is None else self.noise * self.nugget

    @cached_property
    def sharing(self) -> Sharing:
        """Which outputs have the same kernel and noise, and so the same covariance matrix."""
        return Sharing.of_rows(self.lengthscales, self.noise, self.family, self.stretch, self.noise_kind)

    @cached_property
    def of_groups(self) -> Hyperparameters:
        """The kernel and the noise of each group of outputs that share them; constants and amplitudes are the outputs' own."""
        if self.sharing.is_trivial:
            return self
        take = self.sharing.once
        family, stretch = (None if t is None else take(t) for t in (self.family, self.stretch))
        return Hyperparameters(
            take(self.lengthscales), take(self.noise), take(self.constant), family=family, stretch=stretch
        )

    def stretched(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the inputs of the kernel for points x (b x d): b x d or q x b x d, and their derivative by x (None: 1)."""
        if self.stretch is None:
            return x, None
        a = self.stretch.unsqueeze(-2)
        growth = torch.expm1(a)
        argument = 1.0 + growth * x
        plain = a == 0
        safe = torch.where(plain, 1.0, a)
        return torch.where(plain, x, argument.log() / safe), torch.where(plain, 1.0, growth / (safe * argument))


def factorise(x: Tensor, h: Hyperparameters, relative_noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return L (g x n x n) for x (n x d) and the noise variances (q) with which it exists: as given, or raised."""
    sharing, h = h.sharing, h.of_groups
    of_rows = None if relative_noise is None else sharing.once(relative_noise)

    def diagonal(noise: Tensor) -> Tensor:
        row = noise.unsqueeze(-1)
        return 1.0 + (row.expand(-1, len(x)) if of_rows is None else row * of_rows)

    u, noise = h.stretched(x)[0], h.noise
    k = kernel.correlation(kernel.left(u, h.lengthscales), kernel.right(u, h.lengthscales), h.family)
    k.diagonal(dim1=-2, dim2=-1).copy_(diagonal(noise))
    factor, info = torch.linalg.cholesky_ex(k)
    noise = noise.clone()
    while bool(info.any()):
        bad = info.nonzero().squeeze(-1)
        noise[bad] *= TUNING.noise_factor
        if bool((noise[bad] > TUNING.max_noise).any()):
            raise SurrogateError(
                f"Expected a covariance matrix with a Cholesky factor, got none for output {int(sharing.first[bad[0]])} with any "
                f"noise variance up to {TUNING.max_noise:g}; look for extreme lengthscales in that output."
            )
        k.diagonal(dim1=-2, dim2=-1).copy_(diagonal(noise))
        factor[bad], info[bad] = torch.linalg.cholesky_ex(k[bad])
    return factor, sharing.each(noise)


def inverted(factor: Tensor) -> Tensor:
    """Return the inverses of lower triangular matrices (g x n x n)."""
    inverse = torch.zeros_like(factor)
    for one, found in zip(factor, inverse, strict=True):
        _invert(one, found)
    return inverse


def _invert(factor: Tensor, inverse: Tensor) -> None:
    """Write the inverse of a factor (n x n) into zeros, by halves: a third of the operations of n triangular solves."""
    n = len(factor)
    if n <= TUNING.block:
        inverse.copy_(torch.linalg.solve_triangular(factor, torch.eye(n, dtype=factor.dtype), upper=False))
        return
    half = n // 2
    _invert(factor[:half, :half], inverse[:half, :half])
    _invert(factor[half:, half:], inverse[half:, half:])
    inverse[half:, :half] = -(inverse[half:, half:] @ factor[half:, :half]) @ inverse[:half, :half]


def check_same_problem(hyperparameters: Hyperparameters, x: Tensor, y: Tensor) -> None:
    """Raise SurrogateError unless the hyperparameters have the outputs of y and the variables of x."""
    if hyperparameters.lengthscales.shape != (y.shape[1], x.shape[1]):
        raise SurrogateError(
            f"Expected hyperparameters of {y.shape[1]} outputs and {x.shape[1]} variables, got "
            f"{tuple(hyperparameters.lengthscales.shape)}; pass those of a fit to the same problem."
        )
