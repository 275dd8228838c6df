"""Small problems, data and surrogates for the tests of the method: everything here is quick to make."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.stats import qmc
from torch import Tensor

from cbabo import Constraint, Objective, Problem, Real, Settings
from cbabo.answering.answers import Answer
from cbabo.answering.refine import refine as refine_query
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.query import Query
from cbabo.methods.learner import Learner
from cbabo.methods.method import Measure
from cbabo.methods.registry import method_for
from cbabo.methods.settings import MethodSettings
from cbabo.model import Model, make_model
from cbabo.network.pcm import PCM
from cbabo.numerics.threads import one_thread
from cbabo.surrogate import Surrogates
from cbabo.surrogate.posterior import FitState, Posterior
from simulators import simulate_valley, valley

torch.set_num_threads(1)  # matrices are small here, and the cores are shared

Simulate = Callable[[dict[str, float]], dict[str, float]]

QUICK = Settings.paper().replace(
    inner_steps=5,
    horizon=6,
    hidden_layers=2,
    hidden_width=32,
    thresholds_per_step=32,
    candidates=80,
    recommend_candidates=4000,
    learning_rate=1e-2,
)
"""The paper's method with everything small."""


def evaluated(problem: Problem, simulate: Simulate, count: int, seed: int = 1) -> Evaluations:
    """Evaluate a Latin hypercube."""
    points = problem.space.spread(qmc.LatinHypercube(len(problem.variables), rng=seed).random(count))
    rows = tuple(Evaluation(i + 1, "complete", "run", p, simulate(p)) for i, p in enumerate(points))
    return Evaluations(problem, rows)


def edged() -> Evaluations:
    """Optima on corners of the cube that were measured, beside outputs with waves, of which little is known elsewhere."""
    random = np.random.default_rng(0)
    weights, prices = random.uniform(0.2, 1.0, (3, 3)), random.uniform(0.5, 1.5, 3)
    waves, phases = random.uniform(4.0, 8.0, (2, 3)), random.uniform(0.0, 6.0, 2)

    def simulate(point: dict[str, float]) -> dict[str, float]:
        x = np.array(list(point.values()))
        wavy = {f"g{j}": float(np.sin(waves[j] @ x + phases[j])) for j in range(2)}
        return {"f": float(-prices @ x)} | {f"c{j}": float(weights[j] @ x**1.5) for j in range(3)} | wavy

    movable = [Constraint(f"c{j}", "<=", low=0.3 * w, high=1.2 * w) for j, w in enumerate(weights.sum(1))]
    fixed = [Constraint(f"g{j}", "<=", limit=1.1) for j in range(2)]
    problem = Problem("edged", [Real(f"x{i}", 0.0, 1.0) for i in range(3)], Objective("f"), [*movable, *fixed])
    corners = problem.space.points(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]))
    measured = (Evaluation(100 + i, "complete", "run", p, simulate(p)) for i, p in enumerate(corners))
    return Evaluations(problem, (*evaluated(problem, simulate, 14).rows, *measured))


def posterior_of(evaluations: Evaluations, settings: MethodSettings = QUICK) -> Posterior:
    with one_thread():
        return method_for(settings).fit(evaluations, FitState())


def surrogates_of(evaluations: Evaluations) -> Surrogates:
    return posterior_of(evaluations).surrogates


def model_of(
    problem: Problem, simulate: Simulate, count: int = 20, settings: MethodSettings = QUICK, seed: int = 0
) -> Model:
    """A model trained from scratch on a Latin hypercube."""
    return make_model(evaluated(problem, simulate, count), Learner(0), settings, seed)


def unit_points(count: int, dimension: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random((count, dimension)))


@dataclass
class Lab:
    """An evaluator that keeps what it was asked for; evaluations of the given numbers, from 1 on, fail."""

    simulate: Simulate
    broken: tuple[int, ...] = ()
    made: list[Evaluation] = field(default_factory=list)

    def __call__(self, point: dict[str, float]) -> Evaluation:
        number = len(self.made) + 1
        if number in self.broken:
            made = Evaluation(100 + number, "failed", "refine", point, {}, failure=f"no licence {number}")
        else:
            made = Evaluation(100 + number, "complete", "refine", point, self.simulate(point))
        self.made.append(made)
        return made


def with_failures(evaluations: Evaluations, fails: Callable[[dict[str, float]], bool]) -> Evaluations:
    rows = tuple(
        Evaluation(e.id, "failed", "run", e.point, {}, failure="mesh") if fails(e.point) else e for e in evaluations
    )
    return Evaluations(evaluations.problem, rows)


def cornered(count: int = 80) -> Evaluations:
    """Failures wherever a > 0.3: a third of the designs."""
    return with_failures(evaluated(valley(), simulate_valley, count), lambda p: p["a"] > 0.3)


def asked(problem: Problem, theta: np.ndarray) -> Query:
    """The query of normalised thresholds, n x k."""
    return Query.at(problem.box, np.asarray(theta, dtype=np.float64))


def refine(
    model: Model,
    thresholds: Mapping[str, float],
    measure: Measure,
    evaluations: int = 2,
    start: dict[str, float] | None = None,
) -> Answer:
    """Refine the answer to limits given by name."""
    return refine_query(model, Query.of(model.problem.box, thresholds), measure, evaluations, start)


SIZES = (3, 16, 12, 10, 4)
"""Layers of a small network."""


def trained_looking(sizes: tuple[int, ...] = SIZES, seed: int = 0) -> PCM:
    """A network whose layers all matter: weights far from their small initial values."""
    count = len(PCM.initial(sizes, seed).weights)
    generator = torch.Generator().manual_seed(seed)
    return PCM(sizes, 0.6 * torch.randn(count, generator=generator, dtype=torch.float64))


def plainly(weights: Tensor, sizes: tuple[int, ...], theta: Tensor) -> Tensor:
    """The network as anybody would write it."""
    h, start = theta, 0
    for i, (width, height) in enumerate(itertools.pairwise(sizes)):
        weight = weights[start : start + width * height].view(height, width)
        bias = weights[start + width * height : start + width * height + height]
        start += width * height + height
        a = torch.nn.functional.linear(h, weight, bias)
        h = torch.sigmoid(a) if i == len(sizes) - 2 else torch.nn.functional.silu(a)
    return h
