"""Choosing thresholds to learn at, and the batch to evaluate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cbabo.numerics.quasirandom import sobol
from cbabo.surrogate import Surrogates
from cbabo.surrogate.composed import Composed
from cbabo.surrogate.limits import Limits


@dataclass(frozen=True)
class ThresholdSampler:
    """The mixture of thresholds: a quarter evenly along the diagonal, a quarter at random along it, half Sobol."""

    dimension: int
    seed: int
    """Of the Sobol sequence's scrambling."""
    position: int = 0
    """How many Sobol points were drawn so far."""

    def draw(self, batches: int, size: int, random: np.random.Generator) -> tuple[Tensor, ThresholdSampler]:
        """Return thresholds (batches x size x k) and the sampler after them."""
        even, spread = size // 4, size // 4
        rest = size - even - spread
        levels = (
            torch.linspace(0.0, 1.0, even, dtype=torch.float64) if even > 1 else torch.zeros(even, dtype=torch.float64)
        )
        diagonal = levels.expand(batches, even)
        anywhere = torch.from_numpy(random.random((batches, spread)))
        line = torch.cat([diagonal, anywhere], dim=1).unsqueeze(-1).expand(-1, -1, self.dimension)
        everywhere = sobol(self.dimension, self.seed, batches * rest, self.position).view(batches, rest, self.dimension)
        after = ThresholdSampler(self.dimension, self.seed, self.position + batches * rest)
        return torch.cat([line, everywhere], dim=1), after


def select(
    candidates: Tensor,
    surrogates: Surrogates | Composed,
    limits: Limits,
    thresholds: int,
    beta: float,
    similarity: float,
    size: int,
    taken: Tensor,
    random: np.random.Generator,
) -> Tensor:
    """Choose `size` candidates (of c x d): the best for the strictest limits, the best for the most relaxed, others at random.

    thresholds: k. taken: designs (p x d) that are being evaluated already. A choice is at least `similarity` away from them and
    from earlier choices; if no candidate is, the farthest one is taken.
    """
    mean, std = surrogates.mean_and_std(candidates)
    objective = limits.lower_objective(mean, std, beta)
    chosen = taken
    for level in (0.0, 1.0):
        theta = torch.full((1, thresholds), level, dtype=torch.float64)
        violation = limits.excess(mean, std, theta, beta).clamp_min(0.0).sum(1)
        if len(chosen) - len(taken) < size:
            chosen = torch.cat([chosen, _first(candidates, _ranking(objective, violation), chosen, similarity)])
    order = torch.from_numpy(random.permutation(len(candidates)))
    while len(chosen) - len(taken) < size:
        chosen = torch.cat([chosen, _first(candidates, order, chosen, similarity)])
    return chosen[len(taken) :]


def _ranking(objective: Tensor, violation: Tensor) -> Tensor:
    """Return the order of candidates: feasible ones by objective, then the others by violation (c each)."""
    by_objective = torch.argsort(objective, stable=True)
    by_violation = torch.argsort(violation, stable=True)
    feasible = violation == 0.0
    return torch.cat([by_objective[feasible[by_objective]], by_violation[~feasible[by_violation]]])


def _first(candidates: Tensor, order: Tensor, chosen: Tensor, similarity: float) -> Tensor:
    """Return the first candidate in this order that is not similar to a chosen one, else the one farthest from them."""
    if not len(chosen):
        return candidates[order[:1]]
    distance = torch.cdist(candidates[order], chosen).amin(1)
    far = (distance >= similarity).nonzero()
    at = far[0] if len(far) else distance.argmax().unsqueeze(0)
    return candidates[order[at]]
