"""Training the PCM on the surrogates: one step's loss and gradient, and an iteration's fifty of them.

For thresholds theta the network proposes x = h(theta). Where the surrogates believe x feasible (upper confidence bounds
within the limits) it should lower the optimistic objective, otherwise the sum of violations. The gradient of that by x, with
unit length for every threshold, is pulled back through the network: loss = mean <g, h(theta)> with g held constant.

Monotonic guidance: relaxing a limit must not worsen the objective. With g_f the normalised gradient of the optimistic
objective, the derivative of the objective by every threshold is J'g_f; its positive part, averaged over samples and thresholds,
is added with weight alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from cbabo.methods.settings import PaperSettings
from cbabo.network.pcm import PCM, Adam, Trace
from cbabo.surrogate import Prediction, Surrogates
from cbabo.surrogate.limits import Limits


@dataclass(frozen=True, eq=False)
class Trainee:
    """A network in training."""

    pcm: PCM
    adam: Adam


@dataclass(frozen=True, eq=False)
class Loss:
    """One step's loss and its gradient by the network's weights."""

    value: float
    gradient: Tensor


def train(trainee: Trainee, surrogates: Surrogates, limits: Limits, thetas: Tensor, settings: PaperSettings) -> Trainee:
    """Make one training step for each of the given batches of thresholds (steps x b x k)."""
    pcm, adam = PCM(trainee.pcm.sizes, trainee.pcm.weights.clone()), trainee.adam.copy()
    with torch.no_grad():
        for theta in thetas:
            guided = settings.alpha > 0 and adam.steps >= settings.training_steps // 2
            loss = loss_and_gradient(pcm, surrogates, limits, theta, settings.beta, settings.alpha if guided else 0.0)
            adam = adam.step(pcm.weights, loss.gradient, learning_rate(adam.steps, settings))
    return Trainee(pcm, adam)


def loss_and_gradient(
    pcm: PCM, surrogates: Surrogates, limits: Limits, theta: Tensor, beta: float, alpha: float
) -> Loss:
    """Return the loss at theta (b x k) and its gradient; alpha = 0 leaves the monotonic term out."""
    trace = pcm.trace(theta)
    prediction = surrogates.predict(trace.x)
    least = max(_LEAST_LENGTH * float(surrogates.scale.min()), _SMALLEST)
    g = _unit(prediction.vjp(*_weights(prediction, limits, theta, beta)), least)
    p = g / len(theta)
    value = (p * trace.x).sum()
    if alpha == 0.0:
        return Loss(float(value), trace.gradient(p))
    rising, g_f = _rising(trace, prediction, limits, beta, least)
    share = alpha / rising.numel()
    value = value + share * rising.sum()
    return Loss(float(value), trace.gradient_with_tangent(p, g_f, (rising > 0).to(theta.dtype) * share))


def learning_rate(step: int, settings: PaperSettings) -> float:
    """Return the learning rate of a step: cosine annealing over the horizon, then its least."""
    done = min(1.0, step / settings.training_steps)
    least, most = settings.least_learning_rate, settings.learning_rate
    return least + (most - least) * (1.0 + math.cos(math.pi * done)) / 2.0


def _weights(prediction: Prediction, limits: Limits, theta: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """Return what to differentiate: weights (b x q each) of means and deviations in the surrogate objective."""
    broken = limits.excess(prediction.mean, prediction.std, theta, beta).gt_(0.0)
    on_mean = torch.zeros_like(prediction.mean).index_add_(1, limits.output, broken * limits.sign)
    on_std = torch.zeros_like(prediction.std).index_add_(1, limits.output, broken * beta)
    feasible = (broken.sum(1) == 0).to(theta.dtype)
    on_mean[:, 0] += feasible * limits.goal
    on_std[:, 0] -= feasible * beta
    return on_mean, on_std


def _rising(trace: Trace, prediction: Prediction, limits: Limits, beta: float, least: float) -> tuple[Tensor, Tensor]:
    """Return the positive derivatives (b x k) of the objective by the thresholds, and the direction g_f (b x d)."""
    on_mean, on_std = torch.zeros_like(prediction.mean), torch.zeros_like(prediction.std)
    on_mean[:, 0], on_std[:, 0] = limits.goal, -beta
    g_f = _unit(prediction.vjp(on_mean, on_std), least)
    return trace.pull(g_f).clamp_min_(0.0), g_f


def _unit(g: Tensor, least: float) -> Tensor:
    """Scale every row to unit length; a zero row stays zero, one shorter than `least` shorter than 1."""
    length: Tensor = g.norm(dim=1, keepdim=True)
    return g / length.clamp_min(least)


_LEAST_LENGTH = 1e-12  # of a gradient, in units of the outputs' scale: below is rounding
_SMALLEST = 1e-150  # whose square is still a number
