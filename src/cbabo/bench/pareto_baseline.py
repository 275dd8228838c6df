"""Multi-objective baseline: loss of the best evaluated design after qLogNEHVI has searched the Pareto front of (f, c).

The front of minimal (f, c_1, ..., c_m) contains the optimum of every threshold, but its hypervolume is only tractable for m <= 2.

Symbols and shapes
    x      n x d    evaluated designs, unit cube; y  n x (1 + m)  their f, c_1, ..., c_m, natural units
    gain   n x (1 + m)   what is maximised: -(y - centre) / scale; c below its strictest limit counts as that limit,
                    because no threshold asks for less
    reference   1 + m    the gain below which nothing counts: the most relaxed limits, the worst f evaluated within them

A run is limited to a few minutes (see `Tuning`): BoTorch's acquisition function gets our fits, which are the same models fitted
faster; batches are chosen greedily; evaluated designs that are surely dominated are pruned from its baseline.
"""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from filelock import FileLock
from torch import Tensor

from cbabo.bench.scoring import Measures, score_best_evaluated
from cbabo.bench.truth import truth
from cbabo.domain.problem import Problem
from cbabo.errors import InputError
from cbabo.methods.designs import latin_hypercube
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.threads import one_thread
from cbabo.problems import ShippedProblem
from cbabo.surrogate import Hyperparameters, fit

INITIAL, BUDGET, BATCH = 30, 200, 5
"""Evaluations of the initial Latin hypercube, of the whole run, and of one batch: those of a CBA-BO run."""
MAX_CONSTRAINTS = 2
"""The hypervolume of more outputs takes too long."""


@dataclass(frozen=True)
class Tuning:
    """Effort of the acquisition function and its maximisation, low enough for a run to take a few minutes."""

    samples: int = 4
    """Quasi-Monte Carlo samples of the posterior."""

    restarts: int = 2
    """L-BFGS-B runs for each design of a batch."""

    raw_samples: int = 64
    """Random designs from the best of which these runs start."""

    iterations: int = 6
    """Most iterations of one run."""


TUNING = Tuning()


def pareto_front(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Spend 200 evaluations on the front, then score the best evaluated design for each threshold row."""
    problem, space = shipped.problem, shipped.problem.space
    if len(problem.constraints) > MAX_CONSTRAINTS:
        raise InputError(
            f"qLogNEHVI: expected a problem with at most {MAX_CONSTRAINTS} constraints, got {shipped.name!r} with "
            f"{len(problem.constraints)}; leave it out"
        )
    x = space.unit(space.array(latin_hypercube(space, INITIAL, seed, 0)))
    y = _evaluated(shipped, x)
    warm: Hyperparameters | None = None
    began = time.perf_counter()
    while len(x) < BUDGET:
        new, warm = propose(problem, x, y, warm, child_seed(seed, "qLogNEHVI", len(x)))
        x, y = np.vstack([x, new]), np.vstack([y, _evaluated(shipped, new)])
    seconds = time.perf_counter() - began
    thresholds = truth(shipped.name).thresholds
    measures: Measures = {"row": list(range(len(thresholds))), "suggest seconds": seconds / (BUDGET - INITIAL)}
    return measures | score_best_evaluated(shipped, y, thresholds).named("best")


def propose(
    problem: Problem, x: FloatArray, y: FloatArray, warm: Hyperparameters | None, seed: int
) -> tuple[FloatArray, Hyperparameters]:
    """Return the next batch (legal, unit cube) and the fitted hyperparameters."""
    sound = np.isfinite(y).all(axis=1)
    x, y = x[sound], y[sound]
    surrogates = fit(torch.from_numpy(x), torch.from_numpy(y), warm=warm)
    centre, scale = surrogates.centre, surrogates.scale
    floor = torch.tensor([-torch.inf, *(c.strictest for c in problem.constraints)], dtype=torch.float64)

    def gain(outputs: Tensor, X: Tensor | None = None) -> Tensor:
        return -(torch.maximum(outputs, floor) - centre) / scale

    with warnings.catch_warnings(), torch.random.fork_rng(), one_thread():
        warnings.simplefilter("ignore")  # BoTorch warns of its optimiser and of the scale of data
        torch.manual_seed(seed)
        with _compiling():
            acquisition = qLogNoisyExpectedHypervolumeImprovement(
                model=surrogates.to_botorch(),
                ref_point=gain(_worst(problem, y)).tolist(),
                X_baseline=torch.from_numpy(x),
                sampler=SobolQMCNormalSampler(torch.Size([TUNING.samples]), seed=seed),
                objective=GenericMCMultiOutputObjective(gain),
                prune_baseline=True,
                cache_root=True,
            )
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, x.shape[1])
        options: dict[str, bool | float | int | str] = {"maxiter": TUNING.iterations}
        found, _ = optimize_acqf(
            acquisition,
            bounds,
            BATCH,
            TUNING.restarts,
            raw_samples=TUNING.raw_samples,
            options=options,
            sequential=True,
            retry_on_optimization_warning=False,
        )
    return problem.space.snap(found.numpy()), surrogates.hyperparameters


@contextmanager
def _compiling() -> Iterator[None]:
    """Let BoTorch compile its extension in a folder of this package, one process at a time.

    Torch marks a folder in use by a file. A killed process leaves that file behind, and all others would wait for it forever. The
    lock taken here ends with its process, so a file found while holding it is stale and is removed.
    """
    folder = _compiled_in()
    folder.mkdir(exist_ok=True)
    os.environ["TORCH_EXTENSIONS_DIR"] = str(folder)
    with FileLock(folder / "ours.lock"):
        for left in folder.glob("*/lock"):
            left.unlink()
        yield


def _compiled_in() -> Path:
    """Return the folder for this user, Python and torch."""
    who = [getpass.getuser(), sys.implementation.cache_tag, torch.__version__]
    return Path(tempfile.gettempdir()) / "-".join(["cbabo-botorch", *who])


def _worst(problem: Problem, y: FloatArray) -> Tensor:
    """Return the reference point of the hypervolume as outputs (1 + m)."""
    limits = np.array([c.most_relaxed for c in problem.constraints])
    within = (y[:, 1:] <= limits).all(axis=1)
    return torch.tensor([y[within if within.any() else slice(None), 0].max(), *limits], dtype=torch.float64)


def _evaluated(shipped: ShippedProblem, x: FloatArray) -> FloatArray:
    f, c = shipped.evaluate_many(shipped.problem.space.natural(x))
    return np.column_stack([f, c])
