"""Quasi-Newton descent of many small independent problems at once, with lower bounds.

Symbols and shapes
    u     q x p    current points, one row for each problem
    J     q        values; g  q x p  gradients
    B     q x p x p   approximations of the Hessian, positive definite (damped BFGS, dense: p is small)
    s     q x p    proposed steps

Every round evaluates one trial for each unfinished problem. A trial that lowers J enough is accepted and B learns from it;
otherwise the same step is shortened. At a bound with the gradient pointing out a coordinate is held, and the step is
projected onto the bounds. A problem is finished when B predicts a gain below `tolerance` and the free gradient is below its
root (B may be stale), or when its step cannot be shortened any further.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_LARGEST_STEP = 2.0  # of any coordinate in one step: a factor of e^2 in a lengthscale
_SUFFICIENT = 1e-4  # Armijo's share of the promised decrease
_SHORTEST = 1e-6  # share of a step below which the search gives up

Function = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(u: o x p, problems: o indices) -> (J: o, g: o x p)."""


@dataclass(frozen=True)
class Descent:
    """Where the descents ended."""

    u: Tensor
    """q x p, the best points met."""
    value: Tensor
    """q, J there; inf where not even the start had a value."""
    curvature: Tensor
    """q x p x p, B there: the start of the next descent nearby."""
    rounds: int
    """how many batched evaluations were made."""
    evaluations: int
    """how many evaluations of single problems were made."""


def descend(
    function: Function,
    start: Tensor,
    lower: Tensor,
    curvature: Tensor | None = None,
    *,
    tolerance: float,
    max_rounds: int,
) -> Descent:
    """Return the local minimisers of q problems from start (q x p) above lower (p); curvature (q x p x p) is a first B."""
    u = torch.maximum(start, lower)
    q = len(u)
    problems = torch.arange(q)
    value, gradient = function(u, problems)
    B = _first_curvature(gradient) if curvature is None else curvature.clone()
    scaled = torch.full((q,), curvature is not None)  # whether B knows the scale of its problem
    step = torch.zeros_like(u)
    length = torch.ones_like(value)
    renew = torch.ones(q, dtype=torch.bool)  # a new direction is due
    open_ = value.isfinite()
    rounds, evaluations = 1, q
    while rounds < max_rounds:
        due = (open_ & renew).nonzero().squeeze(-1)
        if len(due):
            B_due = B[due]
            step[due], gain, free_gradient = _direction(u[due], gradient[due], B_due, lower)
            B[due] = B_due
            length[due] = 1.0
            open_[due] = (gain > tolerance) | (free_gradient > math.sqrt(tolerance))
        at = open_.nonzero().squeeze(-1)
        if not len(at):
            break
        trial = torch.maximum(u[at] + length[at].unsqueeze(-1) * step[at], lower)
        new_value, new_gradient = function(trial, at)
        rounds, evaluations = rounds + 1, evaluations + len(at)
        moved = trial - u[at]
        promised = (gradient[at] * moved).sum(-1)
        good = new_value <= value[at] + _SUFFICIENT * promised
        good &= new_value.isfinite()
        yes, no = at[good], at[~good]
        if len(yes):
            y = new_gradient[good] - gradient[yes]
            B[yes] = _learned(B[yes], moved[good], y, scaled[yes])
            scaled[yes] = True
            u[yes], value[yes], gradient[yes] = trial[good], new_value[good], new_gradient[good]
        renew[yes], renew[no] = True, False
        if len(no):
            length[no] *= _shortening(promised[~good], new_value[~good] - value[no])
            open_[no] = length[no] > _SHORTEST
    return Descent(u, value, B, rounds, evaluations)


def _direction(u: Tensor, gradient: Tensor, B: Tensor, lower: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return steps (o x p), the gain (o) that B predicts, and the largest free component (o) of the gradient; may reset B."""
    held = (u <= lower) & (gradient > 0)
    free = (~held).to(u.dtype)
    B_free = B * free.unsqueeze(-1) * free.unsqueeze(-2) + torch.diag_embed(1.0 - free)
    g = gradient * free
    factor, info = torch.linalg.cholesky_ex(B_free)
    lost = info != 0
    if bool(lost.any()):  # rounding has spoilt B: steepest descent, and B starts again
        B[lost] = _first_curvature(gradient[lost])
        factor[lost] = torch.linalg.cholesky(B[lost])
    s = -torch.cholesky_solve(g.unsqueeze(-1), factor).squeeze(-1)
    gain = -0.5 * (g * s).sum(-1)
    longest = s.abs().amax(-1, keepdim=True)
    return s * (_LARGEST_STEP / longest.clamp_min(_LARGEST_STEP)), gain, g.abs().amax(-1)


def _first_curvature(gradient: Tensor) -> Tensor:
    """Return B (o x p x p) with which the first step has unit length."""
    eye = torch.eye(gradient.shape[-1], dtype=gradient.dtype)
    return eye * gradient.square().sum(-1).sqrt().clamp_min(1e-12)[:, None, None]


def _learned(B: Tensor, s: Tensor, y: Tensor, scaled: Tensor) -> Tensor:
    """Return B after a step s (o x p) over which the gradient changed by y (o x p): BFGS with Powell's damping."""
    sy, ss = (s * y).sum(-1), s.square().sum(-1)
    ratio = y.square().sum(-1) / sy.clamp_min(1e-300)
    rescale = ~scaled & (sy > 1e-10 * ss)
    eye = torch.eye(B.shape[-1], dtype=B.dtype)
    B = torch.where(rescale[:, None, None], ratio[:, None, None] * eye, B)
    Bs = (B @ s.unsqueeze(-1)).squeeze(-1)
    sBs = (s * Bs).sum(-1)
    damp = torch.where(sy < 0.2 * sBs, 0.8 * sBs / (sBs - sy), torch.ones_like(sy)).unsqueeze(-1)
    r = damp * y + (1.0 - damp) * Bs
    sr = (s * r).sum(-1)
    return (
        B
        - Bs.unsqueeze(-1) * Bs.unsqueeze(-2) / sBs[:, None, None]
        + r.unsqueeze(-1) * r.unsqueeze(-2) / sr[:, None, None]
    )


def _shortening(promised: Tensor, rise: Tensor) -> Tensor:
    """Return by what share to shorten: the minimiser of the parabola through what is known, within [0.1, 0.5]."""
    share = -promised / (2.0 * (rise - promised))
    return torch.where(share.isfinite(), share, torch.full_like(share, 0.1)).clamp(0.1, 0.5)
