"""Distillation of the fast map into a PCM: the network is trained on thresholds that the fast map has solved.

Symbols and shapes, in units of the standardised outputs; m training samples, of which b form a batch
    theta   m x k        thresholds; x*  m x d  their designs, as the fast map answers them
    g       m x d        gradients of the objective at x*; H  m x d x d  Hessians of the Lagrangian
    A       m x r x d    Jacobians of the requirements; e  m x r  their excess over their bounds, mostly negative
    lam     m x r        Lagrange multipliers
    p       b x d        error of the network: h(theta) - x*

Loss. An error of the design may cost nothing or violate a limit, so that the distance to x* is not a good loss. Every sample has
its own quadratic model of the problem instead:

    loss = g'p + p'Hp / 2 + sum_j w_j max(0, e_j + A_j p)    with    w_j = lam_j / tau

One unit of distance from bound j costs lam_j, one unit of violation costs w_j. Over errors that the network cannot remove, the
expected loss is least where a share tau of them violates the bound: the network learns safety margins that are as wide as its own
errors. tau decreases during training, so that errors become small before margins are kept for them.

Averaging. Violations have large and rare gradients, so that the weights do not converge; the result is an exponential moving
average of the weights.

Branches. Where many designs are nearly equally good, neighbouring entries of the library may lie on different branches, between
which a network cannot switch sharply. The samples are therefore answered from as few entries as lose little to all entries.

Samples. Close to the threshold of a sample only e differs, so that every sample is repeated at several thresholds, shifted by a
part of the distance between samples. The quadratic model is wrong where the network is far from x*, which costs nothing along a
valley: at intervals the models are computed anew at the designs of the averaged network. Variables that are not continuous are
trained by the squared error. Where the last sigmoid is flat its derivative is replaced by a larger one, or the network could
not leave a bound of the cube again; gradients that point out of the cube are set to zero.

Measured designs. Where the objective's standard deviation is large at the network's designs, the models' gradients cannot be
relied on, but measured designs are known to be good. A second network is then trained on a few of these by the squared error,
each at the thresholds at which it is the best of them; limits are taken a little stricter, because the network interpolates
between designs. It is the result unless it loses more to the fast map than the objective's standard deviation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.query import Query
from cbabo.network.pcm import PCM, Adam
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child, child_seed
from cbabo.numerics.tolerances import PROBABILITY_SLACK
from cbabo.solver.continuous import Solver
from cbabo.solver.library import FastMap, Library


@dataclass(frozen=True)
class DistillationTuning:
    """Numbers that control the distillation."""

    samples: int = 2048
    """Thresholds that are answered for training."""
    entry_counts: tuple[int, ...] = (8, 32)
    """Numbers of library entries that are tried before all entries: few entries have fewer branches."""
    violation: float = 1e-3
    """Excess over a bound, in standardised units, from which on an answer counts as violating it."""
    accepted_loss: float = 0.01
    """Mean loss, as a share of the objective's range, up to which answers from few entries replace those from all."""
    uncertain_std: float = 0.005
    """Mean standard deviation of the standardised objective at the network's designs from which on measured designs are used."""
    measured_designs: int = 16
    """Largest number of measured designs to train on."""
    stricter: float = 0.5
    """Tightening of the thresholds for measured designs, in distances between samples; the network interpolates between them."""
    repetitions: int = 4
    """Thresholds at which every sample is used: its own and shifted ones."""
    shift: float = 0.25
    """Standard deviation of the shifts, in distances between samples."""
    steps: int = 1400
    """Optimiser steps."""
    squared_error_steps: int = 200
    """First steps, which minimise the squared error so that the quadratic models start near their designs."""
    first_relinearisation: int = 400
    """Step before which the models are computed anew for the first time."""
    relinearisation_interval: int = 100
    """Steps between two computations of the models."""
    batch: int = 128
    """Samples of one step."""
    learning_rate: float = 5e-3
    """Learning rate of the first step; it decreases to zero along a cosine."""
    first_tau: float = 0.1
    """Share of violations at the first step with the full loss."""
    last_tau: float = 0.005
    """Share of violations at the last step."""
    averaging: float = 0.01
    """Weight of the newest network in the moving average."""
    min_large_multiplier: float = 1e-9
    """Smallest value of what counts as a large multiplier, for problems in which no limit is active."""
    min_range: float = 1e-9
    """Smallest range of the objective that losses are divided by."""
    multiplier_quantile: float = 0.95
    """Quantile of the largest multipliers that counts as large: at unreachable thresholds multipliers are arbitrary."""
    min_multiplier: float = 0.1
    """Smallest weight of a limit, as a share of a large multiplier: limits that are not active at x* matter nearby."""
    edge: float = 1e-3
    """Distance from a bound of the cube up to which gradients that point outside are set to zero."""
    min_sigmoid_slope: float = 0.05
    """Smallest derivative of the last sigmoid in backpropagation."""
    first_layer_scale: float = 32.0
    """Factor of the first layer's initial weights, without which all thresholds are in the linear part of the activations."""
    hidden_gain: float = 1.7
    """Factor of the other hidden layers' initial weights, for the same reason."""

    @property
    def relinearisations(self) -> range:
        """Steps before which the models are computed anew."""
        return range(self.first_relinearisation, self.steps, self.relinearisation_interval)

    def tau(self, step: int) -> float | None:
        """Return tau of a step, which decreases geometrically; None while the squared error is minimised."""
        done = (step - self.squared_error_steps) / (self.steps - self.squared_error_steps)
        return None if done < 0 else self.first_tau * (self.last_tau / self.first_tau) ** done


TUNING = DistillationTuning()


@dataclass(frozen=True, eq=False)
class _Samples:
    """Training samples with their quadratic models, single precision."""

    theta: Tensor
    """(repetitions m) x k: thresholds of all samples, one repetition after the other."""
    bound: Tensor
    """(repetitions m) x r: bounds of the requirements there, less margins."""
    x: Tensor
    """m x d: designs x*."""
    value: Tensor
    """m x r: requirements at x."""
    gradient: Tensor
    """m x d: g."""
    jacobian: Tensor
    """m x r x d: A."""
    hessian: Tensor
    """m x d x d: H."""
    multipliers: Tensor
    """m x r: lam, clipped."""


def distil(fast_map: FastMap, sizes: Sequence[int], probability: float, seed: int) -> PCM:
    """Train a network with these layer sizes to answer as the fast map does, with this probability of feasibility.

    This takes one or two trainings, and one more where the surrogates are uncertain about the objective.
    """
    # The names of the seeds are those of the first version: another name would be another network.
    theta = sobol(sizes[0], child_seed(seed, "lessons"), TUNING.samples).numpy()
    with torch.no_grad():
        answer_sets = _solve_samples(fast_map, theta, probability)
        networks = [_train_on_answers(fast_map, answers, sizes, seed) for answers in answer_sets]
        losses = [_mean_loss(fast_map, fast_map.batched.mean(_designs(n, theta)), answer_sets[-1]) for n in networks]
        best = int(np.argmin(losses))
        std = float(fast_map.batched.std(_designs(networks[best], theta))[:, 0].mean())
        measured = _best_measured_designs(fast_map.solver, theta, probability) if std > TUNING.uncertain_std else None
        if measured is None:
            return networks[best]
        network = _train_network(_squared_error_samples(*measured), sizes, seed)
        loss = _mean_loss(fast_map, fast_map.batched.mean(_designs(network, theta)), answer_sets[-1])
        accepted = losses[best] + std / _objective_range(fast_map, answer_sets[-1])
        return network if loss <= accepted else networks[best]


def _solve_samples(fast_map: FastMap, theta: FloatArray, probability: float) -> list[Library]:
    """Return the answers at theta from the fewest entries that lose little; if none do, those from few and from all."""
    whole = fast_map.entries(theta, probability)
    some = []
    for count in TUNING.entry_counts:
        some.append(fast_map.few(count).entries(theta, probability))
        if _mean_loss(fast_map, some[-1].mean, whole) <= TUNING.accepted_loss:
            return some[-1:]
    return [some[0], whole]


def _feasible_answers(fast_map: FastMap, answers: Library) -> Library:
    """Return the answers that meet their bounds, or all of them if most do not.

    An answer that violates its bounds says less about its threshold than neighbouring answers do.
    """
    excess = fast_map.batched.sign * answers.mean[:, fast_map.batched.output] - fast_map.batched.bound(answers.theta)
    feasible = np.flatnonzero(excess.max(1) <= TUNING.violation)
    return answers.taken(feasible) if 2 * len(feasible) > len(excess) else answers


def _mean_loss(fast_map: FastMap, mean: FloatArray, answers: Library) -> float:
    """Return the mean loss of designs with these means (m x q) to these answers, as a share of the objective's range."""
    bound = fast_map.batched.bound(answers.theta)
    ours, theirs = (fast_map.merit(bound, z) for z in (mean, answers.mean))
    return float(np.clip((ours - theirs) / _objective_range(fast_map, answers), 0.0, 1.0).mean())


def _objective_range(fast_map: FastMap, answers: Library) -> float:
    """Return the range of the objective over these answers, from the 5 % to the 95 % quantile."""
    quantiles = np.quantile(fast_map.goal * answers.mean[:, 0], [0.95, 0.05])
    return max(float(np.subtract(*quantiles)), TUNING.min_range)


def _best_measured_designs(
    solver: Solver, theta: FloatArray, probability: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return thresholds (m x k) and the best measured design for each (m x d), out of a few; None if no design is feasible.

    The few designs are selected greedily, each so that the sum of the best objectives over all thresholds decreases most.
    """
    box, measured = solver.posterior.problem.box, solver.posterior.measured
    stricter = np.clip(theta - TUNING.stricter * len(theta) ** (-1.0 / theta.shape[1]), 0.0, 1.0)
    obeyed = solver.posterior.measured_probability(Query.at(box, stricter)) >= probability - PROBABILITY_SLACK
    f = solver.goal * solver.z[: len(measured), 0]
    value = np.where(obeyed, f, f.max() + np.ptp(f))
    few: list[int] = []
    least = np.full(len(theta), np.inf)
    for _ in range(min(TUNING.measured_designs, len(f))):
        few.append(int(np.minimum(least[:, None], value).sum(0).argmin()))
        least = np.minimum(least, value[:, few[-1]])
    met = obeyed[:, few].any(1)
    best = np.array(few)[value[:, few].argmin(1)]
    return (theta[met], measured.x[best[met]]) if met.any() else None


def _train_on_answers(fast_map: FastMap, answers: Library, sizes: Sequence[int], seed: int) -> PCM:
    """Train a network on the feasible ones of these answers."""
    samples = _quadratic_samples(fast_map, _feasible_answers(fast_map, answers), child(seed, "shifts"))
    return _train_network(samples, sizes, seed, fast_map)


def _train_network(samples: _Samples, sizes: Sequence[int], seed: int, fast_map: FastMap | None = None) -> PCM:
    """Train a network on these samples and return the moving average; with a fast map the models are computed anew."""
    random = child(seed, "distil")
    pcm = _initial_network(sizes, child_seed(seed, "network"), random)
    adam = Adam.initial(pcm.weights)
    average = PCM(pcm.sizes, pcm.weights.clone())
    for i in range(TUNING.steps):
        if fast_map is not None and i in TUNING.relinearisations:
            samples = _relinearise(fast_map, samples, average)
        at = torch.from_numpy(random.integers(len(samples.theta), size=TUNING.batch))
        trace = pcm.trace(samples.theta[at])
        gradient = _loss_gradient(samples, at, trace.x, TUNING.tau(i))
        steeper = replace(trace, slopes=(*trace.slopes[:-1], trace.slopes[-1].clamp_min(TUNING.min_sigmoid_slope)))
        rate = TUNING.learning_rate * (1.0 + math.cos(math.pi * i / TUNING.steps)) / 2.0
        adam = adam.step(pcm.weights, steeper.gradient(gradient / TUNING.batch), rate)
        average.weights.lerp_(pcm.weights, TUNING.averaging)
    return PCM(average.sizes, average.weights.double())


def _loss_gradient(samples: _Samples, at: Tensor, x: Tensor, tau: float | None) -> Tensor:
    """Return the gradient (b x d) of the loss by designs x for the samples `at` (b); of half the squared error without tau."""
    sample = at % len(samples.x)
    p = x - samples.x[sample]
    gradient = p
    if tau is not None:
        A = samples.jacobian[sample]
        violated = samples.value[sample] + torch.bmm(A, p.unsqueeze(-1)).squeeze(-1) > samples.bound[at]
        weights = samples.multipliers[sample] * violated / tau
        gradient = samples.gradient[sample] + torch.bmm(samples.hessian[sample], p.unsqueeze(-1)).squeeze(-1)
        gradient += torch.bmm(weights.unsqueeze(1), A).squeeze(1)
    outwards = ((x < TUNING.edge) & (gradient > 0)) | ((x > 1.0 - TUNING.edge) & (gradient < 0))
    return torch.where(outwards, 0.0, gradient)


def _quadratic_samples(fast_map: FastMap, answers: Library, random: np.random.Generator) -> _Samples:
    """Return the samples of solved thresholds, each with its repetitions at shifted thresholds."""
    m, k = answers.theta.shape
    r = answers.multipliers.shape[1]
    shift = random.normal(0.0, TUNING.shift * m ** (-1.0 / k), (TUNING.repetitions, m, k))
    shift[0] = 0.0
    theta = np.clip(answers.theta + shift, 0.0, 1.0).reshape(-1, k)
    bound = fast_map.batched.bound(theta)
    bound[:, :r] -= np.tile(answers.margin, (TUNING.repetitions, 1))
    largest = answers.multipliers.max(1)
    large = max(float(np.quantile(largest, TUNING.multiplier_quantile)), TUNING.min_large_multiplier)
    # The requirement after the limits is the failure probability, whose weight does not depend on the limits' multipliers.
    multipliers = np.full((m, len(fast_map.batched.output)), max(large, 1.0))
    multipliers[:, :r] = np.clip(answers.multipliers, TUNING.min_multiplier * large, large)
    usual = np.minimum(1.0, large / np.maximum(largest, large))
    free = fast_map.free
    hessian = usual[:, None, None] * answers.curvature * free * free[:, None] + np.diag(1.0 - free)
    return _Samples(
        _single(theta),
        _single(bound),
        _single(answers.x),
        *_linear_models(fast_map, answers.mean, answers.slope),
        _single(hessian),
        _single(multipliers),
    )


def _squared_error_samples(theta: FloatArray, x: FloatArray) -> _Samples:
    """Return samples of designs (m x d) at theta (m x k) whose loss is half the squared error."""
    m, d = x.shape
    nothing = torch.zeros(m, 1)
    eye = torch.eye(d).expand(m, d, d)
    return _Samples(_single(theta), nothing, _single(x), nothing, torch.zeros(m, d), torch.zeros(m, 1, d), eye, nothing)


def _relinearise(fast_map: FastMap, samples: _Samples, pcm: PCM) -> _Samples:
    """Return the samples with means and derivatives at the network's own designs; multipliers, Hessians and margins are kept.

    Variables that are not continuous keep their values.
    """
    x = torch.where(_single(fast_map.free) > 0, pcm.trace(samples.theta[: len(samples.x)]).x, samples.x)
    value, gradient, jacobian = _linear_models(fast_map, *fast_map.batched.mean_and_slope(x.double().numpy()))
    return replace(samples, x=x, value=value, gradient=gradient, jacobian=jacobian)


def _linear_models(fast_map: FastMap, mean: FloatArray, slope: FloatArray) -> tuple[Tensor, Tensor, Tensor]:
    """Return the requirements (m x r), the gradients of the objective (m x d) and the requirements' Jacobians (m x r x d)."""
    batched, free = fast_map.batched, fast_map.free
    return (
        _single(batched.sign * mean[:, batched.output]),
        _single(fast_map.goal * slope[:, 0] * free),
        _single(batched.sign[:, None] * slope[:, batched.output] * free),
    )


def _designs(pcm: PCM, theta: FloatArray) -> FloatArray:
    return pcm.trace(torch.from_numpy(theta)).x.numpy()


def _initial_network(sizes: Sequence[int], seed: int, random: np.random.Generator) -> PCM:
    """Return an untrained network in single precision, whose units have their transitions all over the unit cube."""
    pcm = PCM.initial(sizes, seed)
    pcm = PCM(pcm.sizes, pcm.weights.float())
    (weight, bias), *rest = pcm.layers
    weight.mul_(TUNING.first_layer_scale / math.sqrt(sizes[0]))
    bias.copy_(_single(random.uniform(-1.0, 1.0, len(bias))) - 0.5 * weight.sum(1))
    for (weight, _), _ in itertools.pairwise(rest):
        weight.mul_(TUNING.hidden_gain)
    return pcm


def _single(a: FloatArray) -> Tensor:
    """Return an array as a tensor in single precision."""
    return torch.from_numpy(np.ascontiguousarray(a, dtype=np.float32))
