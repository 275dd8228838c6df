"""Posteriors of other outputs of the same designs: outputs of several posteriors in another order, each as it was fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import torch
from torch import Tensor

from cbabo.domain.evaluations import Evaluations
from cbabo.domain.problem import Problem
from cbabo.errors import SurrogateError
from cbabo.surrogate import Forms, Hyperparameters, Warp, condition
from cbabo.surrogate.columns import exact_outputs
from cbabo.surrogate.posterior import Posterior

_DEFAULTS = {"nugget": 1.0, "noise_kind": 0, "amplitude": 1.0, "family": 0, "stretch": 0.0}
"""What a field of hyperparameters means where it is None."""
_DROPPED = ("curvature", "value")
"""Fields that only help the next fit."""


def joined(problem: Problem, evaluations: Evaluations, parts: Sequence[tuple[Posterior, int]]) -> Posterior:
    """Return the posterior of a problem whose simulated outputs are those of posteriors of the same designs, by their columns."""
    first = parts[0][0]
    if any(not torch.equal(p.surrogates.x, first.surrogates.x) for p, _ in parts):
        raise SurrogateError("Expected posteriors of the same designs, got others; fit them to the same evaluations.")
    s = first.surrogates
    y = torch.stack([p.surrogates.y[:, j] for p, j in parts], dim=1)
    centre, scale = (torch.stack([getattr(p.surrogates, name)[j] for p, j in parts]) for name in ("centre", "scale"))
    surrogates = condition(s.x, y, _hyperparameters(parts), centre, scale, _relative_noise(parts))
    h = surrogates.hyperparameters
    warp = _warp(parts)
    exact = None
    if any(p.exact is not None for p, _ in parts):
        each = [torch.tensor(True) if p.exact is None else p.exact[p.problem.learned[j]] for p, j in parts]
        exact = exact_outputs(problem, torch.stack(each))
    kappas = [None if p.kappa is None else p.kappa[j] for p, j in parts]
    kappa = torch.stack([k for k in kappas if k is not None]) if all(k is not None for k in kappas) else None
    measured = Evaluations(problem, first.measured.rows)
    forms = None
    if warp is not None and h.family is not None and h.stretch is not None:
        forms = Forms(warp, h.family, h.stretch)
    return Posterior(
        problem, measured, surrogates, forms, first.formed, first.failure_model, None, kappa, exact, first.counts
    )


def _hyperparameters(parts: Sequence[tuple[Posterior, int]]) -> Hyperparameters:
    """Return the hyperparameters of the outputs."""
    found: dict[str, Tensor | None] = {}
    for field in fields(Hyperparameters):
        values = [(getattr(p.surrogates.hyperparameters, field.name), j) for p, j in parts]
        given = [value[j] for value, j in values if isinstance(value, Tensor)]
        if field.name in _DROPPED or field.name == "explored" or not given:
            continue
        default = torch.full_like(given[0], _DEFAULTS.get(field.name, 0.0))
        found[field.name] = torch.stack([default if value is None else value[j] for value, j in values])
    return Hyperparameters(**found)  # type: ignore[arg-type]


def _relative_noise(parts: Sequence[tuple[Posterior, int]]) -> Tensor | None:
    if all(p.surrogates.relative_noise is None for p, _ in parts):
        return None
    rows = []
    for p, j in parts:
        noise = p.surrogates.relative_noise
        rows.append(torch.ones(len(p.surrogates.x), dtype=torch.float64) if noise is None else noise[j])
    return torch.stack(rows)


def _warp(parts: Sequence[tuple[Posterior, int]]) -> Warp | None:
    if any(p.warp is None for p, _ in parts):
        return None
    each = [p.warp.at(torch.tensor([j])) for p, j in parts if p.warp is not None]
    return Warp(*(torch.cat([getattr(w, field.name) for w in each]) for field in fields(Warp)))
