"""The loop shared by the baselines: one threshold vector at a time, one design at a time; best design and seconds per suggestion.

Symbols and shapes
    x           n x d    evaluated designs, unit cube; y  n x (1 + m)  their f, c_1, ..., c_m, natural units
    limits      m        the threshold vector, natural units: c_j <= limits_j
    thresholds  t x m    all rows of a problem, natural units

A baseline spends its budget anew on every threshold vector; nothing is carried from one to the next but the initial design.
Shipped problems only: minimise f subject to c_j <= limit_j, every limit movable.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.errors import InputError
from cbabo.methods.designs import latin_hypercube, snapped
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.threads import one_thread
from cbabo.problems import ShippedProblem
from cbabo.surrogate import Hyperparameters, Priors, Surrogates, fit, kernel

INITIAL = 30
"""Evaluations that all methods share: the Latin hypercube with which a study of the same seed begins."""
TOTAL = 170
"""Evaluations beyond them, to be split over the thresholds."""
EXTRA = 2
"""Further evaluations for every threshold, as many as a refinement of ours has."""
LEAST_NOISE = 1e-6
"""Lower bound of the noise variance of standardised outputs (see `fitted`)."""
NOISE_SCALE = 0.1
"""Scale of the log-normal prior that holds the noise variance there where outputs are known to have no noise."""
LIKELY_FAILURE = 0.5
"""Limit of the label that tells failed designs (1) from measured ones (0): a failure is more likely beyond it."""
DUPLICATE = 1e-9
"""Distance in the unit cube below which two designs are the same."""


@dataclass(frozen=True, eq=False)
class Data:
    """The evaluations so far."""

    x: FloatArray
    """n x d, unit cube."""
    y: FloatArray
    """n x (1 + m), natural units, finite."""
    failed: FloatArray
    """designs (unit cube) whose outputs were not finite numbers: spent, but not measured."""

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> Data:
        """Sort evaluations x (n x d) with outputs y (n x (1 + m)) into measured and failed ones."""
        finite = np.isfinite(y).all(axis=1)
        return cls(x[finite], y[finite], x[~finite])

    @property
    def made(self) -> int:
        """How many evaluations were made, failed ones included."""
        return len(self.x) + len(self.failed)

    @cached_property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """x and y for surrogates."""
        return torch.from_numpy(self.x), torch.from_numpy(self.y)

    @property
    def labels(self) -> tuple[Tensor, Tensor]:
        """All designs, and whether each failed: 1 or 0."""
        failed = np.repeat([0.0, 1.0], [len(self.x), len(self.failed)])
        return torch.from_numpy(np.vstack([self.x, self.failed])), torch.from_numpy(failed[:, None])

    def with_rows(self, x: FloatArray, y: FloatArray) -> Data:
        """Return the data with further rows."""
        new = Data.of(x, y)
        return Data(np.vstack([self.x, new.x]), np.vstack([self.y, new.y]), np.vstack([self.failed, new.failed]))

    def since(self, row: int) -> Data:
        """Return the measured rows from this one on."""
        return Data(self.x[row:], self.y[row:], self.failed)


@dataclass(frozen=True, eq=False)
class Task:
    """One threshold vector of one problem."""

    shipped: ShippedProblem
    limits: FloatArray
    """m, natural units."""
    seed: int
    """of this task alone: every random decision is a named child of it."""
    warm: Hyperparameters | None = None
    """of surrogates fitted to the initial data, from which the first fit may start."""

    @property
    def limits_and_failure(self) -> FloatArray:
        """The limits, and that of the label of failed designs (m + 1)."""
        return np.append(self.limits, LIKELY_FAILURE)

    @property
    def dimension(self) -> int:
        """How many variables there are."""
        return self.shipped.problem.space.dimension

    def violations(self, y: FloatArray) -> FloatArray:
        """Return c - limits (n x m) of outputs y."""
        return self.shipped.problem.box.violations(y, self._rows(y))

    def feasible(self, y: FloatArray) -> NDArray[np.bool_]:
        """Tell (n) which rows of y obey the limits."""
        return self.shipped.problem.box.feasible(y, self._rows(y))

    def best(self, y: FloatArray) -> int:
        """Return the best row of y: feasible first, then by objective, else by total violation."""
        feasible = self.feasible(y)
        if feasible.any():
            return int(np.where(feasible, y[:, 0], np.inf).argmin())
        return int(np.clip(self.violations(y), 0.0, None).sum(axis=1).argmin())

    def incumbent(self, y: FloatArray) -> float | None:
        """Return the least objective among feasible rows of y, if any."""
        best = self.best(y)
        return float(y[best, 0]) if self.feasible(y[best : best + 1])[0] else None

    def legal(self, x: Tensor) -> Tensor:
        """Move designs (b x d) to the nearest legal ones."""
        return snapped(self.shipped.problem.space, x)

    def evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Measure designs (b x d, unit cube); return them as measured (legal) and their outputs (b x (1 + m))."""
        natural = self.shipped.problem.space.natural(x)
        return self.legal(torch.from_numpy(x)).numpy(), _measured(self.shipped, natural)

    def unseen(self, x: Tensor, data: Data) -> Tensor:
        """Return those of designs (b x d) that have not been evaluated."""
        known = torch.from_numpy(np.vstack([data.x, data.failed]))
        return x[torch.cdist(x, known, p=torch.inf).amin(1) > DUPLICATE]

    def anywhere(self, data: Data) -> FloatArray:
        """Return some new legal design (d); any legal one where all have been evaluated."""
        designs = self.legal(sobol(self.dimension, child_seed(self.seed, "anywhere", data.made), 64))
        unseen = self.unseen(designs, data)
        return (unseen if len(unseen) else designs)[0].numpy()

    def _rows(self, y: FloatArray) -> FloatArray:
        return np.broadcast_to(self.limits, (len(y), len(self.limits)))


Strategy = Callable[[Task, Data], Generator[FloatArray, Data, None]]
"""Yields the next design (d, unit cube), and is sent all data including its evaluation (measured or failed)."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a baseline for one threshold vector."""

    data: Data
    """All evaluations, the initial ones first."""
    best: int
    """The row of the best design."""
    feasible: bool
    """Whether it obeys the limits."""
    violation: float
    """By how much it exceeds them in total; 0 where it obeys them."""
    seconds: float
    """Mean per suggestion, evaluations not counted; 0 without any."""


def measure(
    shipped: ShippedProblem, seed: int, thresholds: FloatArray, rows: Sequence[int], strategy: Strategy
) -> dict[str, float | list[float]]:
    """Spend 170 evaluations and 2 more each on these rows of the thresholds (t x m); return the measures of a campaign row."""
    if shipped.problem.space.categories:
        raise InputError(
            f"baselines: expected a problem whose variables are numbers, got {shipped.name!r} with categorical ones; leave it out"
        )
    data = initial_data(shipped, seed)
    with one_thread():
        warm = fitted(*data.tensors).hyperparameters
    outcomes = [
        search(Task(shipped, thresholds[row], child_seed(seed, "baseline", row), warm), data, count + EXTRA, strategy)
        for row, count in zip(rows, budget_split(TOTAL, len(rows)), strict=True)
    ]
    counts = [o.data.made - data.made for o in outcomes]
    spent = sum(o.seconds * count for o, count in zip(outcomes, counts, strict=True))
    return {
        "row": [float(row) for row in rows],
        "best objective": [float(o.data.y[o.best, 0]) for o in outcomes],
        "best feasible": [float(o.feasible) for o in outcomes],
        "best violation": [o.violation for o in outcomes],
        "suggest seconds": spent / max(1, sum(counts)),
    }


def budget_split(total: int, n: int) -> list[int]:
    """Split evaluations evenly over n thresholds, the remainder to the first ones."""
    if n < 1 or total < 0:
        raise InputError(f"budget: expected at least one threshold and no negative total, got {n} and {total}")
    return [total // n + (i < total % n) for i in range(n)]


def initial_data(shipped: ShippedProblem, seed: int) -> Data:
    """Measure the Latin hypercube with which a study of this seed begins."""
    space = shipped.problem.space
    natural = space.array(latin_hypercube(space, INITIAL, seed, 0))
    return Data.of(space.unit(natural), _measured(shipped, natural))


def search(task: Task, data: Data, count: int, strategy: Strategy) -> Outcome:
    """Make so many evaluations beyond the data, each where the strategy suggests."""
    seconds = 0.0
    with one_thread():
        suggestions = strategy(task, data)
        for number in range(count):
            began = time.perf_counter()
            x = next(suggestions) if number == 0 else suggestions.send(data)
            seconds += time.perf_counter() - began
            data = data.with_rows(*task.evaluate(x[None]))
        suggestions.close()
    best = task.best(data.y)
    y = data.y[best : best + 1]
    feasible = bool(task.feasible(y)[0])
    violation = 0.0 if feasible else float(np.clip(task.violations(y), 0.0, None).sum())
    return Outcome(data, best, feasible, violation, seconds / max(1, count))


def fitted(x: Tensor, y: Tensor, warm: Hyperparameters | None = None) -> Surrogates:
    """Return surrogates of designs x (n x d) and outputs y (n x q), with BoTorch's priors but a lower bound of the noise.

    BoTorch's bound, a hundredth of an output's standard deviation, hides the last few percent of a deterministic objective: on
    g07 LogcEI stopped at a loss of 19 % with it and at 0.03 % with this one.
    """
    return fit(x, y, warm=warm, priors=replace(Priors.botorch(x.shape[1]), min_noise=LEAST_NOISE))


def fitted_exactly(x: Tensor, y: Tensor, warm: Hyperparameters | None = None) -> Surrogates:
    """Return surrogates of outputs without noise: BoTorch's priors of lengthscales, the least noise and Matern-5/2 kernels.

    A fit that may choose the noise takes ripples and kinks for it. On ackley6_active it then explains the incumbent as noise, a
    fifth of a standard deviation, and LogcEI does not improve on it any more.
    """
    priors = replace(
        Priors.botorch(x.shape[1]), min_noise=LEAST_NOISE, noise_location=math.log(LEAST_NOISE), noise_scale=NOISE_SCALE
    )
    return fit(x, y, warm=warm, priors=priors, family=torch.full((y.shape[1],), kernel.ROUGH))


def _measured(shipped: ShippedProblem, natural: FloatArray) -> FloatArray:
    f, c = shipped.evaluate_many(natural)
    return np.column_stack([f, c])
