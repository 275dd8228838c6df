"""Training of the PCM on the surrogates: loss and gradient of one step, and the training steps of one iteration.

For thresholds theta the network proposes x = h(theta). Where x is feasible with confidence (the upper confidence bounds are
within the limits) the loss is the lower confidence bound of the objective, elsewhere the sum of violations. Its gradient g by
x, normalised to unit length for every threshold, is propagated through the network: loss = mean <g, h(theta)> with constant g.

Monotonic guidance: relaxing a limit must not worsen the objective. With g_f, the normalised gradient of the objective's lower
confidence bound, the derivative of the objective by every threshold is J'g_f; its positive part, averaged over samples and
thresholds, is added with weight alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from cbabo.methods.settings import PaperSettings
from cbabo.network.pcm import PCM, Adam, Trace
from cbabo.surrogate import Prediction, Surrogates
from cbabo.surrogate.composed import Composed, ComposedPrediction
from cbabo.surrogate.limits import Limits


@dataclass(frozen=True)
class TrainingTuning:
    """Numbers that keep the normalisation of gradients free of rounding errors."""

    min_gradient: float = 1e-12
    """Length of a gradient, in units of the smallest output scale, below which it is rounding error."""
    min_length: float = 1e-150
    """Smallest length that gradients are divided by; its square is still a normal number."""


TUNING = TrainingTuning()


@dataclass(frozen=True, eq=False)
class Trainee:
    """A network in training with the state of its optimiser.

    Examples:
        >>> pcm = PCM.initial((1, 8, 2), seed=0)
        >>> trainee = Trainee(pcm, Adam.initial(pcm.weights))
        >>> trainee.adam.steps
        0
    """

    pcm: PCM
    adam: Adam


@dataclass(frozen=True, eq=False)
class Loss:
    """Loss of one step and its gradient by the weights of the network."""

    value: float
    gradient: Tensor


def train(
    trainee: Trainee, surrogates: Surrogates | Composed, limits: Limits, thetas: Tensor, settings: PaperSettings
) -> Trainee:
    """Return the network after one training step for each of the given batches of thresholds (steps x b x k)."""
    pcm, adam = PCM(trainee.pcm.sizes, trainee.pcm.weights.clone()), trainee.adam.copy()
    with torch.no_grad():
        for theta in thetas:
            guided = settings.alpha > 0 and adam.steps >= settings.training_steps // 2
            loss = loss_and_gradient(pcm, surrogates, limits, theta, settings.beta, settings.alpha if guided else 0.0)
            adam = adam.step(pcm.weights, loss.gradient, learning_rate(adam.steps, settings))
    return Trainee(pcm, adam)


def loss_and_gradient(
    pcm: PCM, surrogates: Surrogates | Composed, limits: Limits, theta: Tensor, beta: float, alpha: float
) -> Loss:
    """Return the loss at theta (b x k) and its gradient; alpha = 0 omits the monotonic guidance."""
    trace = pcm.trace(theta)
    prediction = surrogates.predict(trace.x)
    least = max(TUNING.min_gradient * float(surrogates.scale.min()), TUNING.min_length)
    g = _normalise(prediction.vjp(*_loss_weights(prediction, limits, theta, beta)), least)
    p = g / len(theta)
    value = (p * trace.x).sum()
    if alpha == 0.0:
        return Loss(float(value), trace.gradient(p))
    rising, g_f = _rising_objective(trace, prediction, limits, beta, least)
    share = alpha / rising.numel()
    value = value + share * rising.sum()
    return Loss(float(value), trace.gradient_with_tangent(p, g_f, (rising > 0).to(theta.dtype) * share))


def learning_rate(step: int, settings: PaperSettings) -> float:
    """Return the learning rate of a step: cosine annealing over the horizon, constant afterwards."""
    done = min(1.0, step / settings.training_steps)
    least, most = settings.least_learning_rate, settings.learning_rate
    return least + (most - least) * (1.0 + math.cos(math.pi * done)) / 2.0


def _loss_weights(
    prediction: Prediction | ComposedPrediction, limits: Limits, theta: Tensor, beta: float
) -> tuple[Tensor, Tensor]:
    """Return the weights (b x q each) of means and standard deviations in the loss."""
    violated = limits.excess(prediction.mean, prediction.std, theta, beta).gt_(0.0)
    on_mean = torch.zeros_like(prediction.mean).index_add_(1, limits.output, violated * limits.sign)
    on_std = torch.zeros_like(prediction.std).index_add_(1, limits.output, violated * beta)
    feasible = (violated.sum(1) == 0).to(theta.dtype)
    on_mean[:, 0] += feasible * limits.goal
    on_std[:, 0] -= feasible * beta
    return on_mean, on_std


def _rising_objective(
    trace: Trace, prediction: Prediction | ComposedPrediction, limits: Limits, beta: float, least: float
) -> tuple[Tensor, Tensor]:
    """Return the positive parts of the derivatives of the objective by the thresholds (b x k), and g_f (b x d)."""
    on_mean, on_std = torch.zeros_like(prediction.mean), torch.zeros_like(prediction.std)
    on_mean[:, 0], on_std[:, 0] = limits.goal, -beta
    g_f = _normalise(prediction.vjp(on_mean, on_std), least)
    return trace.pull(g_f).clamp_min_(0.0), g_f


def _normalise(g: Tensor, least: float) -> Tensor:
    """Return every row divided by its length, or by `least` if it is shorter; a zero row stays zero."""
    length: Tensor = g.norm(dim=1, keepdim=True)
    return g / length.clamp_min(least)
