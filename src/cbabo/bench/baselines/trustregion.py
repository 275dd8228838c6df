"""SCBO (Eriksson and Poloczek 2021): constrained Thompson sampling in a trust region.

Symbols and shapes
    f, c    n, n x m   objective and violations c - limits; the surrogates see the objective's Gaussian copula (ranks as normal
                       quantiles) and the bilog of violations, sign(c) log(1 + |c|), which has the sign of c
    L       the base length of the region: its side along variable i is L l_i / geometric mean of l, l the objective's
            lengthscales, cut by the unit cube; its centre is the best design: feasible first, else the least total violation
    samples b x (1 + m)   one joint posterior sample at b candidates (see paths)

As in the original or BoTorch's version: L starts at 0.8, doubles after 3 successes in a row (at most 1.6) and halves after
max(4, d) failures in a row; below 0.5^7 the search starts again from fresh designs and forgets the earlier ones. A success
improves a feasible centre by 0.1 % of |f|, or an infeasible one in total violation. Candidates are Sobol points of the region,
each coordinate of which replaces the centre's with probability min(1, 20 / d). Ours: kernels are RBF instead of Matern, and one
design is evaluated at a time. BoTorch's version has no transforms; without the copula ours was better on g07 and ackley10 (170
evaluations, losses 0.2 against 7 % and 14 against 29 %) and worse on c13 (59 against 45 %).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import qmc, rankdata
from torch import Tensor

from cbabo.bench.baselines import paths
from cbabo.bench.baselines.sequential import Data, Task, fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child
from cbabo.surrogate import Surrogates


@dataclass(frozen=True)
class Tuning:
    """Numbers of SCBO, as in the original or in BoTorch's version."""

    initial_length: float = 0.8
    """Base length of a new trust region, unit cube."""

    least_length: float = 0.5**7
    """Below this length the search restarts."""

    largest_length: float = 1.6
    """Largest base length."""

    successes: int = 3
    """Successes in a row that double the length."""

    least_failures: int = 4
    """Failures in a row that halve the length: this number or the dimension, whichever is larger."""

    improvement: float = 1e-3
    """Least improvement that is a success, as a share of |f|."""

    changed: int = 20
    """Coordinates of a candidate that differ from the centre, on average at most."""

    candidates_per_dimension: int = 200
    """Candidates for each variable, within the bounds below."""

    least_candidates: int = 2000
    """Fewest candidates of a step."""

    most_candidates: int = 5000
    """Most candidates of a step."""


TUNING = Tuning()


@dataclass(frozen=True)
class Region:
    """The trust region's length and what has happened since it last changed."""

    length: float = TUNING.initial_length
    successes: int = 0
    """in a row."""
    failures: int = 0
    """in a row."""

    def after(self, success: bool, dimension: int) -> Region:
        """Return the region after one more evaluation."""
        if success and self.successes + 1 < TUNING.successes:
            return replace(self, successes=self.successes + 1, failures=0)
        if success:
            return Region(min(2.0 * self.length, TUNING.largest_length))
        if self.failures + 1 < max(TUNING.least_failures, dimension):
            return replace(self, successes=0, failures=self.failures + 1)
        return Region(0.5 * self.length)

    @property
    def spent(self) -> bool:
        """Whether it has become too small."""
        return self.length < TUNING.least_length


def scbo(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """Suggest by Thompson sampling in a trust region, and start again when it has become too small."""
    first = 0
    while True:
        region, warm = Region(), None
        while not region.spent:
            own = data.since(first)
            outputs = transformed(task, own.y)
            surrogates = fitted(own.tensors[0], torch.from_numpy(outputs), warm)
            warm = surrogates.hyperparameters
            random = child(task.seed, "thompson", data.made)
            centre = centre_of(task, own.y)
            designs = candidates(torch.from_numpy(own.x[centre]), surrogates, region.length, random)
            unseen = task.unseen(task.legal(designs), data)
            if len(unseen):
                design = unseen[choose(paths.sample(surrogates, unseen, random))].numpy()
            else:
                design = task.anywhere(data)
            known, data = len(data.x), (yield design)
            success = len(data.x) > known and succeeded(task, own.y[centre], data.y[-1])
            region = region.after(success, task.dimension)
        first = len(data.x)
        for design in _fresh(task, data.made):
            data = yield design


def transformed(task: Task, y: FloatArray) -> FloatArray:
    """Return what the surrogates see of outputs y (n x (1 + m)): the copula of f and the bilog of violations."""
    quantiles = (rankdata(y[:, 0]) - 0.5) / len(y)
    violations = task.violations(y)
    return np.column_stack([ndtri(quantiles), np.sign(violations) * np.log1p(np.abs(violations))])


def centre_of(task: Task, y: FloatArray) -> int:
    """Return the row of y around which the region lies."""
    if task.incumbent(y) is not None:
        return task.best(y)
    return int(np.clip(transformed(task, y)[:, 1:], 0.0, None).sum(axis=1).argmin())


def candidates(centre: Tensor, surrogates: Surrogates, length: float, random: np.random.Generator) -> Tensor:
    """Return candidates (b x d) in the region of this length around the centre (d)."""
    d = len(centre)
    count = min(TUNING.most_candidates, max(TUNING.least_candidates, TUNING.candidates_per_dimension * d))
    lengthscales = surrogates.hyperparameters.lengthscales[0].log()
    half = 0.5 * length * (lengthscales - lengthscales.mean()).exp()
    lower, upper = (centre - half).clamp_min(0.0), (centre + half).clamp_max(1.0)
    inside = lower + sobol(d, int(random.integers(2**62)), count) * (upper - lower)
    mask = random.random((count, d)) < min(1.0, TUNING.changed / d)
    unchanged = ~mask.any(axis=1)
    mask[unchanged, random.integers(0, d, int(unchanged.sum()))] = True
    return torch.where(torch.from_numpy(mask), inside, centre)


def choose(samples: Tensor) -> int:
    """Return the candidate that one sample (b x (1 + m); limits are met at or below 0) says is the best."""
    violation = samples[:, 1:].clamp_min(0.0).sum(1)
    feasible = violation == 0.0
    if bool(feasible.any()):
        return int(torch.where(feasible, samples[:, 0], torch.inf).argmin())
    return int(violation.argmin())


def succeeded(task: Task, centre: FloatArray, new: FloatArray) -> bool:
    """Tell whether a new design's outputs (1 + m) are enough of an improvement on the centre's."""
    was, now = (task.incumbent(row[None]) for row in (centre, new))
    if was is not None:
        return now is not None and now < was - TUNING.improvement * abs(was)
    before, after = np.clip(transformed(task, np.vstack([centre, new]))[:, 1:], 0.0, None).sum(axis=1)
    return now is not None or bool(after < before)


def _fresh(task: Task, number: int) -> FloatArray:
    """Return designs from which a search starts again."""
    space = task.shipped.problem.space
    sampler = qmc.LatinHypercube(task.dimension, rng=child(task.seed, "fresh", number))
    return space.unit(space.array(space.spread(sampler.random(2 * (task.dimension + 1)))))
