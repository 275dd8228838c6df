"""What a user of other libraries would run on one threshold vector: BoTorch's LogcEI with q = 1, and Optuna's GPSampler.

Symbols and shapes
    x           n x d    evaluated designs, unit cube; y  n x (1 + m)  their f, c_1, ..., c_m, natural units
    limits      m        the threshold vector, natural units: c_j <= limits_j

Both have the defaults of their libraries, but are told that the simulator is deterministic: BoTorch by a noise variance of 1e-6
of an output's own, because the noise that it infers hides the last percents of an objective and all ripples. It fits its models
from scratch for every design, learns failed designs as one more constrained output (1 or 0, to stay below a half), and maximises
the probability of feasibility while nothing is feasible. Optuna is told the initial designs as trials of its own, constraints as
c_j - limit_j, and failures as failed trials, from which its sampler learns nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cbabo.bench.baselines.sequential import LEAST_NOISE, Data, Task
from cbabo.domain.space import Variable
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child_seed


@dataclass(frozen=True)
class LibraryTuning:
    """Effort of BoTorch's maximisation, as in its tutorials."""

    restarts: int = 10
    """Ascents from the best of the samples."""
    samples: int = 512
    """Quasi-random designs among which ascents start."""


TUNING = LibraryTuning()
_LARGEST_SEED = 2**32 - 1


def botorch_log_cei(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """Suggest where BoTorch's LogcEI is largest for its own models."""
    while True:
        design = task.legal(_maximised(task, data))
        unseen = task.unseen(design, data)
        data = yield unseen[0].numpy() if len(unseen) else task.anywhere(data)


def _maximised(task: Task, data: Data) -> torch.Tensor:
    """Return the maximiser (1 x d) of LogcEI."""
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogProbabilityOfFeasibility
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import SumMarginalLogLikelihood

    x, y = data.tensors
    columns: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]] = [
        (x, c, torch.full_like(c, LEAST_NOISE * float(c.var()))) for c in y.split(1, dim=1)
    ]
    if len(data.failed):
        columns.append((*data.labels, None))  # Labels of designs close to the boundary are as good as noisy.
    limits = task.limits_and_failure if len(data.failed) else task.limits
    constraints = {j: (None, float(limit)) for j, limit in enumerate(limits, start=1)}
    best = task.incumbent(data.y)
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(child_seed(task.seed, "botorch", data.made) % _LARGEST_SEED)
        was = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # BoTorch keeps limits and incumbent in this precision.
        try:
            model = ModelListGP(*(SingleTaskGP(*c, outcome_transform=Standardize(1)) for c in columns))
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            criterion: Any = (
                LogProbabilityOfFeasibility(model, constraints)
                if best is None
                else LogConstrainedExpectedImprovement(model, best, 0, constraints, maximize=False)
            )
            bounds = torch.stack([torch.zeros(task.dimension), torch.ones(task.dimension)])
            found, _ = optimize_acqf(criterion, bounds, q=1, num_restarts=TUNING.restarts, raw_samples=TUNING.samples)
        finally:
            torch.set_default_dtype(was)
    return torch.as_tensor(found).detach()


def optuna_gp(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """Suggest what Optuna's GPSampler asks for."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Stating that the simulator is deterministic is experimental.
        sampler = optuna.samplers.GPSampler(
            seed=child_seed(task.seed, "optuna") % _LARGEST_SEED, deterministic_objective=True
        )
    study = optuna.create_study(sampler=sampler)
    axes = [_Axis.of(variable) for variable in task.shipped.problem.space.variables]
    distributions = {axis.name: axis.distribution for axis in axes}

    def tell(trial: Any, y: FloatArray | None) -> None:
        if y is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        for name, value in enumerate(task.violations(y[None])[0].tolist()):
            trial.set_constraint(str(name), value)
        study.tell(trial, float(y[0]))

    told = [*zip(data.x, data.y, strict=True), *((x, None) for x in data.failed)]
    for x, y in told:
        study.enqueue_trial({axis.name: axis.parameter(u) for axis, u in zip(axes, x.tolist(), strict=True)})
        tell(study.ask(distributions), y)
    while True:
        trial = study.ask(distributions)
        measured = len(data.x)
        data = yield np.array([axis.unit(trial.params[axis.name]) for axis in axes])
        tell(trial, data.y[-1] if len(data.x) > measured else None)


@dataclass(frozen=True)
class _Axis:
    """A variable as Optuna has it: its coordinate in the unit cube, or the number of its legal value."""

    name: str
    legal: tuple[float, ...] | None
    """Legal coordinates in the unit cube; None where it is continuous."""

    @classmethod
    def of(cls, variable: Variable) -> _Axis:
        values = variable.values
        legal = None if values is None else tuple(variable.to_unit(np.array(values, dtype=np.float64)).tolist())
        return cls(variable.name, legal)

    @property
    def distribution(self) -> Any:
        from optuna.distributions import FloatDistribution, IntDistribution

        return FloatDistribution(0.0, 1.0) if self.legal is None else IntDistribution(0, len(self.legal) - 1)

    def parameter(self, u: float) -> float | int:
        """Return Optuna's parameter at a coordinate."""
        if self.legal is None:
            return min(max(u, 0.0), 1.0)
        return int(np.abs(np.array(self.legal) - u).argmin())

    def unit(self, parameter: float) -> float:
        """Return the coordinate of Optuna's parameter."""
        return float(parameter) if self.legal is None else self.legal[int(parameter)]
