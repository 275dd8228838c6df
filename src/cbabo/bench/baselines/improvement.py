"""Expected improvement under limits: cEI (Gardner et al. 2014) and its logarithm, LogcEI (Ament et al. 2023).

Symbols and shapes
    mean, std   b x (1 + m)   predictions of f, c_1, ..., c_m
    best        the least measured objective among feasible designs; None if there is none
    u           b       (best - mean_f) / std_f
    v           b x m   (limit_j - mean_cj) / std_cj
    h(u)        phi(u) + u Phi(u), so that EI = std_f h(u)

LogcEI = log EI + sum_j log Phi(v_j), and cEI is its exponential: the same maximiser in exact arithmetic, but cEI is zero in
numbers, and flat, wherever an improvement is unlikely. With nothing feasible both are log P(feasible). Derivatives are in
closed form: d log Phi(v) / dv = phi / Phi, d log h(u) / du = Phi / h.

Once designs have failed, whether a design fails is one more constrained output: 1 or 0, to stay below a half. Without it the
same failing design would be suggested again and again, because a failure changes nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch
from torch import Tensor

from cbabo.bench.baselines.ascent import Criterion, Models, Prediction, maximise
from cbabo.bench.baselines.sequential import Data, Task, fitted, fitted_exactly
from cbabo.methods.acquisition import log_improvement
from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate import Surrogates

ASYMPTOTIC = -1e3
"""Below this u, Phi / h is computed by its asymptotic form -u - 2 / u."""


def log_cei(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """Suggest where LogcEI is largest."""
    return _suggestions(task, data, linear=False)


def cei(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """Suggest where cEI is largest."""
    return _suggestions(task, data, linear=True)


def exact_log_cei(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """Suggest where LogcEI is largest for surrogates that are told that outputs have no noise."""
    return _suggestions(task, data, linear=False, fitted=fitted_exactly)


def _suggestions(
    task: Task, data: Data, linear: bool, fitted: Callable[..., Surrogates] = fitted
) -> Generator[FloatArray, Data, None]:
    limits, warm = torch.from_numpy(task.limits), task.warm
    while True:
        outputs = fitted(*data.tensors, warm)
        warm, best = outputs.hyperparameters, task.incumbent(data.y)
        surrogates: Models = outputs
        if len(data.failed):
            surrogates, limits = WithFailures(outputs, fitted(*data.labels)), torch.from_numpy(task.limits_and_failure)
        if linear and best is not None:
            design = maximise(surrogates, constrained_improvement(limits, best), task, data, linear=True)
        else:
            design = maximise(surrogates, log_constrained_improvement(limits, best), task, data)
        data = yield task.anywhere(data) if design is None else design


@dataclass(frozen=True, eq=False)
class WithFailures:
    """Surrogates of outputs, and of the label that tells failed designs, as one: the label is the last output."""

    outputs: Surrogates
    label: Surrogates

    def predict(self, x: Tensor) -> Prediction:
        """Return means and standard deviations at x (b x d) with what derivatives need."""
        return _Joined(self.outputs.predict(x), self.label.predict(x))

    def mean_and_std(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations (b x (q + 1) each) at x (b x d)."""
        both = (self.outputs.mean_and_std(x), self.label.mean_and_std(x))
        mean, std = (torch.cat(parts, 1) for parts in zip(*both, strict=True))
        return mean, std


@dataclass(frozen=True, eq=False)
class _Joined:
    outputs: Prediction
    label: Prediction

    @property
    def mean(self) -> Tensor:
        return torch.cat([self.outputs.mean, self.label.mean], 1)

    @property
    def std(self) -> Tensor:
        return torch.cat([self.outputs.std, self.label.std], 1)

    def vjp(self, weight_mean: Tensor, weight_std: Tensor) -> Tensor:
        on_outputs = self.outputs.vjp(weight_mean[:, :-1], weight_std[:, :-1])
        return on_outputs + self.label.vjp(weight_mean[:, -1:], weight_std[:, -1:])


def log_constrained_improvement(limits: Tensor, best: float | None) -> Criterion:
    """Return LogcEI for these limits (m)."""

    def criterion(mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        v = (limits - mean[:, 1:]) / std[:, 1:]
        ratio = math.sqrt(2.0 / math.pi) / torch.special.erfcx(v * -math.sqrt(0.5))  # phi / Phi
        on_v = ratio / std[:, 1:]
        value = torch.special.log_ndtr(v).sum(1)
        if best is None:
            nothing = torch.zeros_like(value).unsqueeze(-1)
            return value, torch.cat([nothing, -on_v], 1), torch.cat([nothing, -v * on_v], 1)
        std_f = std[:, 0]
        u = (best - mean[:, 0]) / std_f
        log_h = log_improvement(u)
        far = u.clamp_max(ASYMPTOTIC)
        slope = torch.where(u > ASYMPTOTIC, torch.exp(torch.special.log_ndtr(u) - log_h), -far - 2.0 / far)
        value = value + log_h + std_f.log()
        on_mean_f, on_std_f = -slope / std_f, (1.0 - u * slope) / std_f
        return (
            value,
            torch.cat([on_mean_f.unsqueeze(-1), -on_v], 1),
            torch.cat([on_std_f.unsqueeze(-1), -v * on_v], 1),
        )

    return criterion


def constrained_improvement(limits: Tensor, best: float) -> Criterion:
    """Return cEI for these limits (m)."""
    logarithm = log_constrained_improvement(limits, best)

    def criterion(mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value, on_mean, on_std = logarithm(mean, std)
        value = value.exp()
        weight = value.unsqueeze(-1)
        return value, on_mean * weight, on_std * weight

    return criterion
