"""Designs in the unit cube: Latin hypercubes, the nearest legal designs, and those of evaluations."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.evaluations import Evaluations
from cbabo.domain.problem import Problem
from cbabo.domain.space import Point, Space
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child


def latin_hypercube(space: Space, count: int, seed: int, iteration: int) -> list[Point]:
    """Return a Latin hypercube of this many legal points."""
    from scipy.stats import qmc  # Slow to import, and only the beginning of a study needs it.

    sampler = qmc.LatinHypercube(len(space.variables), rng=child(seed, "latin hypercube", iteration))
    return space.spread(sampler.random(count))


def with_repeat(space: Space, points: list[Point]) -> list[Point]:
    """Return points of which the last is replaced by one more of that nearest to the middle of the cube.

    Its two measurements show whether outputs are noisy, before the form of any surrogate is chosen.
    """
    distance = np.square(space.unit(space.array(points[:-1])) - 0.5).sum(1)
    return [*points[:-1], points[int(distance.argmin())]]


def has_repeats(evaluations: Evaluations) -> bool:
    """Return whether some design is there more than once."""
    return len({tuple(e.point.values()) for e in evaluations}) < len(evaluations)


def snapped(space: Space, x: Tensor) -> Tensor:
    """Move designs (b x d) to legal ones; continuous variables stay as they are to the last bit."""
    if space.continuous.all():
        return x
    legal = torch.from_numpy(space.snap(x.numpy()))
    return torch.where(torch.from_numpy(space.continuous), x, legal)


def with_categories_redrawn(space: Space, x: FloatArray, share: float, random: np.random.Generator) -> FloatArray:
    """Return designs (b x d) whose categories are drawn anew with this probability, each for itself; nothing else changes."""
    moved = x.copy()
    for at in space.categories:
        some = random.random(len(x)) < share
        labels = np.eye(at.stop - at.start)
        moved[some, at] = labels[random.integers(len(labels), size=len(x))][some]
    return moved


def legal_designs(problem: Problem, x: Tensor) -> Tensor:
    """Move designs (b x d) to legal ones that obey all known relations; what is legal stays as it is to the last bit."""
    legal = snapped(problem.space, x)
    return legal if problem.region is None else torch.from_numpy(problem.region.repaired(legal.numpy()))


def initial_designs(problem: Problem, count: int, seed: int, iteration: int) -> list[Point]:
    """Return this many legal points that fill the space: a Latin hypercube, or distant designs where relations are known."""
    if problem.region is None or not problem.region.relations.expressions:
        points = latin_hypercube(problem.space, count, seed, iteration)
        if problem.region is None:
            return points
        x = problem.space.unit(problem.space.array(points))
        return [
            point if inside else problem.space.points(problem.region.repaired(row[None]))[0]
            for point, row, inside in zip(points, x, problem.region.contains(x), strict=True)
        ]
    random = child(seed, "designs that obey relations", iteration)
    return problem.space.points(problem.region.initial(count, random))


def designs_of(problem: Problem, *tables: Evaluations) -> Tensor:
    """Return the designs (p x d) of some tables of evaluations."""
    return torch.from_numpy(np.vstack([np.empty((0, problem.space.dimension)), *(t.x for t in tables if len(t))]))
