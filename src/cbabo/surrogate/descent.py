"""Batched quasi-Newton minimisation of small independent problems with lower bounds.

Symbols and shapes
    u     q x p    current points, one row for each problem
    J     q        values; g  q x p  gradients
    B     q x p x p   approximations of the Hessian, positive definite (damped BFGS, dense: p is small)
    s     q x p    proposed steps

Every round evaluates one trial point for each unfinished problem. A trial with a sufficient decrease of J is accepted and B is
updated; otherwise the step is shortened. A coordinate at its bound whose gradient points outside is fixed, and steps are
projected onto the bounds. A problem is finished when B predicts a gain below `tolerance` and the gradient of the free
coordinates is below the root of it (B may be outdated), or when its step is too short.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class DescentTuning:
    """Numbers that control step lengths and updates of the Hessian approximation."""

    max_step: float = 2.0
    """Largest change of a coordinate in one step: a factor of e^2 in a lengthscale."""
    sufficient_decrease: float = 1e-4
    """Share of the decrease that the gradient predicts, which a trial must reach (Armijo's condition)."""
    min_step: float = 1e-6
    """Share of a step below which the line search gives up."""
    min_shortening: float = 0.1
    """Smallest factor by which a rejected step is shortened; also the factor where the trial has no value."""
    max_shortening: float = 0.5
    """Largest factor by which a rejected step is shortened."""
    damping: float = 0.2
    """Share of s'Bs below which Powell's damping keeps s'y, so that B stays positive definite."""
    min_curvature: float = 1e-10
    """Ratio s'y / s's below which the first update does not rescale B."""


TUNING = DescentTuning()

Function = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Signature of the functions to minimise: (u: o x p, problems: o indices) -> (J: o, g: o x p)."""


@dataclass(frozen=True)
class Descent:
    """Results of the minimisations."""

    u: Tensor
    """q x p, the best points found."""
    value: Tensor
    """q, J at these points; inf where the start has no finite value."""
    curvature: Tensor
    """q x p x p, B at these points, with which a later minimisation nearby can start."""
    rounds: int
    """Number of batched evaluations."""
    evaluations: int
    """Number of evaluations of single problems."""


def descend(
    function: Function,
    start: Tensor,
    lower: Tensor,
    curvature: Tensor | None = None,
    *,
    tolerance: float,
    max_rounds: int,
) -> Descent:
    """Return local minimisers of q problems from start (q x p) above lower (p); curvature (q x p x p) is the initial B."""
    u = torch.maximum(start, lower)
    q = len(u)
    problems = torch.arange(q)
    value, gradient = function(u, problems)
    B = _first_curvature(gradient) if curvature is None else curvature.clone()
    scaled = torch.full((q,), curvature is not None)  # Whether B has the scale of its problem.
    step = torch.zeros_like(u)
    length = torch.ones_like(value)
    renew = torch.ones(q, dtype=torch.bool)  # Whether a new direction is needed.
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
        predicted = (gradient[at] * moved).sum(-1)
        accepted = new_value <= value[at] + TUNING.sufficient_decrease * predicted
        accepted &= new_value.isfinite()
        yes, no = at[accepted], at[~accepted]
        if len(yes):
            y = new_gradient[accepted] - gradient[yes]
            B[yes] = _bfgs_update(B[yes], moved[accepted], y, scaled[yes])
            scaled[yes] = True
            u[yes], value[yes], gradient[yes] = trial[accepted], new_value[accepted], new_gradient[accepted]
        renew[yes], renew[no] = True, False
        if len(no):
            length[no] *= _shortening(predicted[~accepted], new_value[~accepted] - value[no])
            open_[no] = length[no] > TUNING.min_step
    return Descent(u, value, B, rounds, evaluations)


def _direction(u: Tensor, gradient: Tensor, B: Tensor, lower: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return steps (o x p), the gain (o) that B predicts, and the largest free gradient component (o); B may be reset."""
    fixed = (u <= lower) & (gradient > 0)
    free = (~fixed).to(u.dtype)
    B_free = B * free.unsqueeze(-1) * free.unsqueeze(-2) + torch.diag_embed(1.0 - free)
    g = gradient * free
    factor, info = torch.linalg.cholesky_ex(B_free)
    lost = info != 0
    # Where B is not positive definite because of rounding, it is reset and the step is steepest descent.
    if bool(lost.any()):
        B[lost] = _first_curvature(gradient[lost])
        factor[lost] = torch.linalg.cholesky(B[lost])
    s = -torch.cholesky_solve(g.unsqueeze(-1), factor).squeeze(-1)
    gain = -0.5 * (g * s).sum(-1)
    longest = s.abs().amax(-1, keepdim=True)
    return s * (TUNING.max_step / longest.clamp_min(TUNING.max_step)), gain, g.abs().amax(-1)


def _first_curvature(gradient: Tensor) -> Tensor:
    """Return the multiple of the unit matrix (o x p x p) with which the first step has unit length."""
    eye = torch.eye(gradient.shape[-1], dtype=gradient.dtype)
    return eye * gradient.square().sum(-1).sqrt().clamp_min(1e-12)[:, None, None]


def _bfgs_update(B: Tensor, s: Tensor, y: Tensor, scaled: Tensor) -> Tensor:
    """Return B updated with a step s (o x p) and the change y (o x p) of the gradient: BFGS with Powell's damping."""
    sy, ss = (s * y).sum(-1), s.square().sum(-1)
    ratio = y.square().sum(-1) / sy.clamp_min(1e-300)
    rescale = ~scaled & (sy > TUNING.min_curvature * ss)
    eye = torch.eye(B.shape[-1], dtype=B.dtype)
    B = torch.where(rescale[:, None, None], ratio[:, None, None] * eye, B)
    Bs = (B @ s.unsqueeze(-1)).squeeze(-1)
    sBs = (s * Bs).sum(-1)
    damp = torch.where(
        sy < TUNING.damping * sBs, (1.0 - TUNING.damping) * sBs / (sBs - sy), torch.ones_like(sy)
    ).unsqueeze(-1)
    r = damp * y + (1.0 - damp) * Bs
    sr = (s * r).sum(-1)
    return (
        B
        - Bs.unsqueeze(-1) * Bs.unsqueeze(-2) / sBs[:, None, None]
        + r.unsqueeze(-1) * r.unsqueeze(-2) / sr[:, None, None]
    )


def _shortening(predicted: Tensor, change: Tensor) -> Tensor:
    """Return the factors (o) of rejected steps: minimisers of the parabolas through values and slope, within bounds."""
    factor = -predicted / (2.0 * (change - predicted))
    factor = torch.where(factor.isfinite(), factor, torch.full_like(factor, TUNING.min_shortening))
    return factor.clamp(TUNING.min_shortening, TUNING.max_shortening)
