"""Designs in the unit cube: Latin hypercubes, the nearest legal designs, and those of evaluations."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.evaluations import Evaluations
from cbabo.domain.problem import Problem
from cbabo.domain.space import Point, Real, Space
from cbabo.numerics.seeding import child


def latin_hypercube(space: Space, count: int, seed: int, iteration: int) -> list[Point]:
    """Return a Latin hypercube of this many legal points."""
    from scipy.stats import qmc  # Slow to import, and only the beginning of a study needs it.

    sampler = qmc.LatinHypercube(space.dimension, rng=child(seed, "latin hypercube", iteration))
    return space.spread(sampler.random(count))


def snapped(space: Space, x: Tensor) -> Tensor:
    """Move designs (b x d) to legal ones; continuous variables stay as they are to the last bit."""
    if all(isinstance(v, Real) for v in space.variables):
        return x
    legal = torch.from_numpy(space.snap(x.numpy()))
    continuous = torch.tensor([isinstance(v, Real) for v in space.variables])
    return torch.where(continuous, x, legal)


def designs_of(problem: Problem, *tables: Evaluations) -> Tensor:
    """Return the designs (p x d) of some tables of evaluations."""
    return torch.from_numpy(np.vstack([np.empty((0, problem.space.dimension)), *(t.x for t in tables if len(t))]))
