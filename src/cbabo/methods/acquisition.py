"""Expected improvement under limits, in logarithms, and its maximisation in a box.

Symbols and shapes
    mean, std   b x q   of the raw outputs
    f           b       the objective with its sign, to be minimised
    best        the least measured objective among designs that obey the limits; None if none does
    u           b       (best - mean_f) / std_f: how far below the incumbent, in deviations

LogcEI(x) = log EI(x) + log P(all limits obeyed); without an incumbent only the second term.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import SAME_DESIGN
from cbabo.surrogate import Surrogates
from cbabo.surrogate.composed import Composed
from cbabo.surrogate.limits import Limits


@dataclass(frozen=True)
class AcquisitionTuning:
    """Numbers that tune the maximisation of LogcEI."""

    samples: int = 512
    """Quasi-random designs among which the ascents start, as in BoTorch's defaults."""
    starts: int = 8
    """Ascents, which run as one problem."""
    iterations: int = 60
    """Iterations of L-BFGS-B at most."""
    asymptotic: float = -1e3
    """Improvement in standard deviations below which 1 - |u| Mills(|u|) has lost its digits and equals 1/u^2."""


TUNING = AcquisitionTuning()


def log_constrained_improvement(mean: Tensor, std: Tensor, limits: Limits, theta: Tensor, best: float | None) -> Tensor:
    """Return LogcEI (b) at theta (1 x k or b x k)."""
    feasible = limits.log_normal_probability(mean, std, theta.expand(len(mean), -1))
    if best is None:
        return feasible
    u = (best - limits.goal * mean[:, 0]) / std[:, 0]
    return log_improvement(u) + std[:, 0].log() + feasible


def log_improvement(u: Tensor) -> Tensor:
    """Return log(phi(u) + u Phi(u)) without losing digits in the tail; phi and Phi of the standard normal."""
    near = u.clamp_min(-1.0)
    density = torch.exp(-0.5 * near.square()) / math.sqrt(2 * math.pi)
    upper = torch.log(density + near * torch.special.ndtr(near))
    tail = u.clamp(TUNING.asymptotic, -1.0)
    mills = math.sqrt(math.pi / 2) * torch.special.erfcx(-tail / math.sqrt(2))
    lower = torch.log1p(tail * mills)
    far = -2.0 * torch.log(-u.clamp_max(TUNING.asymptotic))
    log_density = -0.5 * u.square() - 0.5 * math.log(2 * math.pi)
    return torch.where(u > -1.0, upper, log_density + torch.where(u > TUNING.asymptotic, lower, far))


def maximise(
    surrogates: Surrogates | Composed,
    limits: Limits,
    theta: Tensor,
    best: float | None,
    lower: Tensor,
    upper: Tensor,
    extra: Tensor,
    seed: int,
    legal: Callable[[Tensor], Tensor] = lambda x: x,
    known: Tensor | None = None,
) -> Tensor | None:
    """Return the design (d) in the box [lower, upper] (d each) with the largest LogcEI at theta (1 x k).

    The best of a Sobol sample and of `extra` (e x d) start ascents by L-BFGS-B with closed-form gradients, all as one problem.
    legal: moves designs to the nearest legal ones, by which they are judged; these may lie a little outside the box. known:
    designs (m x d) that must not be chosen again; None is returned if there is no other.
    """
    d = len(lower)
    pool = torch.cat([lower + sobol(d, seed, TUNING.samples) * (upper - lower), extra.clamp(lower, upper)])
    with torch.no_grad():
        values = log_constrained_improvement(*surrogates.mean_and_std(pool), limits, theta, best)
    starts = pool[torch.argsort(values, descending=True, stable=True)[: TUNING.starts]]

    def descend(flat: FloatArray) -> tuple[float, FloatArray]:
        x = torch.from_numpy(flat).view(-1, d)
        value, gradient = value_and_gradient(surrogates, limits, theta, best, x)
        return -float(value.sum()), -gradient.numpy().ravel()

    bounds = list(zip(lower.tolist(), upper.tolist(), strict=True)) * len(starts)
    flat = starts.numpy().ravel()
    with one_thread():  # SciPy's BLAS threads would cost several times the work
        found = minimize(
            descend, flat, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": TUNING.iterations}
        )
    ends = legal(torch.cat([torch.from_numpy(np.clip(found.x, *np.array(bounds).T)).view(-1, d), starts, pool]))
    if known is not None and len(known):
        ends = ends[torch.cdist(ends, known, p=math.inf).amin(1) > SAME_DESIGN]
    if not len(ends):
        return None
    with torch.no_grad():
        values = log_constrained_improvement(*surrogates.mean_and_std(ends), limits, theta, best)
    return ends[values.argmax()]


def value_and_gradient(
    surrogates: Surrogates | Composed, limits: Limits, theta: Tensor, best: float | None, x: Tensor
) -> tuple[Tensor, Tensor]:
    """Return LogcEI (b) at x (b x d) and its gradient (b x d)."""
    with torch.no_grad():
        prediction = surrogates.predict(x)
    mean, std = prediction.mean.clone().requires_grad_(), prediction.std.clone().requires_grad_()
    with torch.enable_grad():
        value = log_constrained_improvement(mean, std, limits, theta, best)
        on_mean, on_std = torch.autograd.grad(value.sum(), (mean, std), allow_unused=True)
    zero = torch.zeros_like(mean)
    gradient = prediction.vjp(zero if on_mean is None else on_mean, zero if on_std is None else on_std)
    return value.detach(), gradient.nan_to_num(0.0)
