"""Reference implementation of the paper on BoTorch: feasible share and loss of its answers, and its run time.

Tests compare the engine's results with it, and a benchmark compares their speed. BoTorch fits the Gaussian processes from scratch
in every iteration, and autograd computes every derivative. Choices that the paper leaves open are made as in the engine, and
random numbers come from the same named children of the seed, so the two differ in arithmetic only. Problems have the form:
minimise f subject to c_j <= limit_j, with every limit movable.

Symbols and shapes
    x       n x d    evaluated designs, unit cube; y  n x (1 + m)  their f, c_1, ..., c_m, natural units
    theta   b x m    thresholds, 0 strictest, 1 most relaxed
    lcb     b        lower confidence bound of f at b designs; ucb  b x m  upper confidence bounds of c
    z       b        the surrogate objective: lcb where every ucb is within its limit, otherwise the sum of violations
    g       b x d    the gradient of z by the design, every row of unit length
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.mlls import SumMarginalLogLikelihood
from scipy.stats import qmc
from torch import Tensor, nn
from torch.optim import Adam
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.quasirandom import SobolEngine

from cbabo.bench.scoring import Measures, score_map
from cbabo.domain.problem import Problem
from cbabo.methods.settings import PaperSettings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child, child_seed
from cbabo.problems import ShippedProblem

BUDGET = 200
"""Evaluations of one run."""


def measure(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Run with the paper's settings, and score the network's answers at all threshold rows."""
    began = time.perf_counter()
    result = run(shipped, seed, PaperSettings.paper(), BUDGET)
    seconds = time.perf_counter() - began
    measures = score_map(shipped, seed, lambda thresholds: answers(shipped, result.network, thresholds))
    return {"run seconds": seconds} | measures


@dataclass(frozen=True)
class Box:
    """The box in which the limits may move."""

    low: Tensor
    """m, natural units: the strictest limits."""
    high: Tensor
    """m, natural units: the most relaxed ones."""

    @classmethod
    def of(cls, problem: Problem) -> Box:
        """Read the box of a shipped problem."""
        ends = torch.tensor([(c.low, c.high) for c in problem.constraints], dtype=torch.float64)
        return cls(ends[:, 0], ends[:, 1])

    def limits(self, theta: Tensor) -> Tensor:
        """Return the limits (b x m, natural units) at theta (b x m)."""
        return self.low + theta * (self.high - self.low)


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    points: FloatArray
    """n x d: the evaluated designs, natural units."""
    outputs: FloatArray
    """n x (1 + m): what they measured."""
    network: nn.Sequential
    """From theta (b x m) to designs (b x d, unit cube)."""
    fitting: float
    """Seconds spent on fitting the Gaussian processes."""
    training: float
    """Seconds spent on training the network."""
    seconds: float
    """Seconds of the whole run."""


def run(shipped: ShippedProblem, seed: int, settings: PaperSettings, evaluations: int = 200) -> Result:
    """Run the method on a shipped problem up to this number of evaluations."""
    began = time.perf_counter()
    problem, space = shipped.problem, shipped.problem.space
    k, d = len(problem.constraints), space.dimension
    box = Box.of(problem)
    network = make_network(k, d, settings, child_seed(seed, "network"))
    optimiser, scheduler = make_optimiser(network, settings)
    sobol = make_sobol(k, child_seed(seed, "sobol"))
    fitting = training = 0.0

    lhs = qmc.LatinHypercube(d, rng=child(seed, "latin hypercube", 0)).random(settings.initial_evaluations)
    points = space.array(space.spread(lhs))[:evaluations]
    outputs = evaluate(shipped, points)
    iteration = 0
    while len(points) < evaluations:
        iteration += 1
        start = time.perf_counter()
        model = fit(torch.from_numpy(space.unit(points)), torch.from_numpy(outputs))
        fitted = time.perf_counter()
        random = child(seed, "thresholds", iteration)
        for _ in range(settings.inner_steps):
            theta = sample_thresholds(sobol, settings.thresholds_per_step, random)
            train_step(network, optimiser, scheduler, model, box, theta, settings)
        fitting, training = fitting + fitted - start, training + time.perf_counter() - fitted
        theta = sample_thresholds(sobol, settings.candidates, random)
        if settings.candidate_source == "network":
            with torch.no_grad():
                candidates = network(theta)
        else:
            candidates = torch.from_numpy(random.random((settings.candidates, d)))
        candidates = torch.from_numpy(space.snap(candidates.numpy()))
        batch = select_batch(candidates, model, box, settings, child(seed, "batch", iteration))
        new = space.natural(batch.numpy())[: evaluations - len(points)]
        points, outputs = np.vstack([points, new]), np.vstack([outputs, evaluate(shipped, new)])
    return Result(points, outputs, network, fitting, training, time.perf_counter() - began)


def answers(shipped: ShippedProblem, network: nn.Sequential, thresholds: FloatArray) -> FloatArray:
    """Return the network's designs (n x d, natural units) for thresholds (n x m, natural units)."""
    theta = torch.from_numpy(shipped.problem.box.to_theta(thresholds))
    with torch.no_grad():
        return shipped.problem.space.natural(network(theta).numpy())


def evaluate(shipped: ShippedProblem, points: FloatArray) -> FloatArray:
    """Measure designs (n x d, natural units); return f, c_1, ..., c_m, n x (1 + m)."""
    f, c = shipped.evaluate_many(points)
    return np.column_stack([f, c])


def fit(x: Tensor, y: Tensor) -> Any:
    """Fit a ModelListGP of SingleTaskGPs with BoTorch's default priors to x (n x d) and y (n x (1 + m))."""
    gps = [SingleTaskGP(x, y[:, j : j + 1], outcome_transform=Standardize(m=1)) for j in range(y.shape[1])]
    model = ModelListGP(*gps)
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def make_network(k: int, d: int, settings: PaperSettings, seed: int) -> nn.Sequential:
    """Return an untrained network: orthogonal hidden layers, output weights with standard deviation 0.01, no biases."""
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    width = k
    for _ in range(settings.hidden_layers):
        hidden = nn.Linear(width, settings.hidden_width, dtype=torch.float64)
        nn.init.orthogonal_(hidden.weight, generator=generator)
        nn.init.zeros_(hidden.bias)
        layers += [hidden, nn.SiLU()]
        width = settings.hidden_width
    last = nn.Linear(width, d, dtype=torch.float64)
    nn.init.normal_(last.weight, 0.0, 0.01, generator=generator)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last, nn.Sigmoid())


def make_optimiser(network: nn.Sequential, settings: PaperSettings) -> tuple[Adam, CosineAnnealingLR]:
    """Return the optimiser of the network and its learning rates: a cosine over the whole horizon."""
    optimiser = Adam(network.parameters(), lr=settings.learning_rate)
    scheduler = CosineAnnealingLR(optimiser, T_max=settings.training_steps, eta_min=settings.least_learning_rate)
    return optimiser, scheduler


def make_sobol(k: int, seed: int) -> SobolEngine:
    """Return a scrambled Sobol sequence in k dimensions; its first point, too, is in double precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return SobolEngine(k, scramble=True, seed=seed)
    finally:
        torch.set_default_dtype(before)


def sample_thresholds(sobol: SobolEngine, size: int, random: np.random.Generator) -> Tensor:
    """Return thresholds (size x m): a quarter evenly along the diagonal, a quarter at random along it, half Sobol."""
    quarter = size // 4
    even = torch.linspace(0.0, 1.0, quarter, dtype=torch.float64)
    anywhere = torch.from_numpy(random.random(quarter))
    diagonal = torch.cat([even, anywhere]).unsqueeze(1).repeat(1, sobol.dimension)
    return torch.cat([diagonal, sobol.draw(size - 2 * quarter, dtype=torch.float64)])


def train_step(
    network: nn.Sequential,
    optimiser: Adam,
    scheduler: CosineAnnealingLR,
    model: Any,
    box: Box,
    theta: Tensor,
    settings: PaperSettings,
) -> None:
    """Make one training step at theta (b x m); monotonic guidance acts in the second half of the horizon."""
    step = scheduler.last_epoch
    alpha = settings.alpha if step >= settings.training_steps // 2 else 0.0
    optimiser.zero_grad()
    loss(network, model, box, theta, settings.beta, alpha).backward()
    optimiser.step()
    if step < settings.training_steps:  # Beyond the horizon PyTorch's cosine schedule would rise again.
        scheduler.step()


def loss_and_gradient(
    network: nn.Sequential, model: Any, box: Box, theta: Tensor, beta: float, alpha: float
) -> tuple[float, Tensor]:
    """Return the loss at theta (b x m) and its gradient by all weights, in one flat vector."""
    value = loss(network, model, box, theta, beta, alpha)
    gradient = torch.autograd.grad(value, list(network.parameters()))
    return value.item(), torch.cat([part.flatten() for part in gradient])


def loss(network: nn.Sequential, model: Any, box: Box, theta: Tensor, beta: float, alpha: float) -> Tensor:
    """Return mean <g, h(theta)> with g held constant, plus alpha times the monotonic term, at theta (b x m)."""
    theta = theta.clone().requires_grad_(alpha > 0.0)
    x = network(theta)
    design = x.detach().requires_grad_()
    lcb, ucb = confidence_bounds(model, design, beta)
    violation = (ucb - box.limits(theta.detach())).clamp_min(0.0).sum(1)
    z = torch.where(violation > 0.0, violation, lcb)
    value: Tensor = (unit_gradient(z, design) * x).sum(1).mean()
    if alpha > 0.0:
        (rise,) = torch.autograd.grad((unit_gradient(lcb, design) * x).sum(), theta, create_graph=True)
        value = value + alpha * rise.clamp_min(0.0).mean()
    return value


def confidence_bounds(model: Any, x: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """Return the lower confidence bound of f (b) and the upper ones of c (b x m) at designs x (b x d)."""
    posterior = model.posterior(x)
    mean, std = posterior.mean, posterior.variance.sqrt()
    return mean[:, 0] - beta * std[:, 0], mean[:, 1:] + beta * std[:, 1:]


def unit_gradient(value: Tensor, x: Tensor) -> Tensor:
    """Return the gradient (b x d) of value (b) by x (b x d), every row of unit length."""
    (g,) = torch.autograd.grad(value.sum(), x, retain_graph=True)
    length: Tensor = g.norm(dim=1, keepdim=True)
    return g / length.clamp_min(1e-12)


def select_batch(
    candidates: Tensor, model: Any, box: Box, settings: PaperSettings, random: np.random.Generator
) -> Tensor:
    """Choose a batch (batch_size x d) among the candidates (c x d).

    First the best candidate for the strictest limits, then the best for the most relaxed ones, then others at random. Each is
    the first in its ranking that is not similar to an earlier one; if all are similar, the farthest from them.
    """
    with torch.no_grad():
        lcb, ucb = confidence_bounds(model, candidates, settings.beta)
    rankings = []
    for limits in (box.low, box.high):
        violation = (ucb - limits).clamp_min(0.0).sum(1)
        merit = [(v > 0.0, v if v > 0.0 else f) for f, v in zip(lcb.tolist(), violation.tolist(), strict=True)]
        rankings.append(sorted(range(len(candidates)), key=merit.__getitem__))
    rankings += [random.permutation(len(candidates)).tolist()] * settings.batch_size
    chosen: list[int] = []
    for ranking in rankings[: settings.batch_size]:
        chosen.append(first_different(candidates, ranking, chosen, settings.similarity))
    return candidates[chosen]


def first_different(candidates: Tensor, ranking: list[int], chosen: list[int], similarity: float) -> int:
    """Return the first candidate in a ranking that is at least so far from the chosen ones, else the farthest."""
    if not chosen:
        return ranking[0]
    gaps = candidates.unsqueeze(1) - candidates[chosen]
    distance = gaps.norm(dim=2).amin(1).tolist()
    return next((i for i in ranking if distance[i] >= similarity), max(ranking, key=distance.__getitem__))
