"""The engine compared with the reference implementation on BoTorch, step by step on three problems.

Both get the same data, hyperparameters, weights, thresholds and random numbers; only the arithmetic differs.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import qmc
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import cbabo
from cbabo import Settings, Study, problems
from cbabo.methods.paper import PaperMethod
from cbabo.methods.selection import ThresholdSampler, select
from cbabo.methods.training import Trainee, learning_rate, loss_and_gradient, train
from cbabo.network.pcm import PCM, Adam
from cbabo.numerics.seeding import child_seed
from cbabo.problems import ShippedProblem
from cbabo.surrogate import Hyperparameters, Surrogates, condition, fit
from cbabo.surrogate.limits import Limits

with warnings.catch_warnings():  # BoTorch's dependencies use what torch deprecates
    warnings.simplefilter("ignore")
    from cbabo.bench import botorch_reference, methods

NAMES = ["three_truss", "car", "g07"]
PAPER = Settings.paper()
SEED = 5


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass(frozen=True)
class Both:
    """One situation in the middle of a run, as the engine and as botorch_reference.py see it."""

    shipped: ShippedProblem
    surrogates: Surrogates
    model: Any
    pcm: PCM
    theta: Tensor

    @property
    def limits(self) -> Limits:
        return Limits.of(self.shipped.problem)

    @property
    def box(self) -> botorch_reference.Box:
        return botorch_reference.Box.of(self.shipped.problem)

    def network(self) -> nn.Sequential:
        network = botorch_reference.make_network(self.pcm.sizes[0], self.pcm.sizes[-1], PAPER, 0)
        vector_to_parameters(self.pcm.weights.clone(), network.parameters())
        return network


@cache
def situation(name: str) -> Both:
    """Data spread out and around one design, a network that answers near it, and thresholds of all kinds.

    The design is the best known for limits in the middle of the box: stricter ones make it infeasible.
    """
    shipped = problems.get(name)
    problem, d, k = shipped.problem, shipped.problem.space.dimension, len(shipped.problem.constraints)
    random = np.random.default_rng(SEED)
    x = qmc.LatinHypercube(d, rng=random).random(400)
    y = botorch_reference.evaluate(shipped, problem.space.natural(x))
    feasible = problem.box.feasible(y, problem.box.from_theta(np.full((len(x), k), 0.5)))
    centre = x[np.argmin(np.where(feasible, y[:, 0], np.inf))]
    x = np.clip(np.vstack([x[:80], centre, centre + random.normal(0.0, 0.05, (40, d))]), 0.0, 1.0)
    y = botorch_reference.evaluate(shipped, problem.space.natural(x))
    surrogates = fit(torch.from_numpy(x), torch.from_numpy(y))
    theta, _ = ThresholdSampler(k, SEED).draw(1, PAPER.thresholds_per_step, random)
    return Both(shipped, surrogates, surrogates.to_botorch(), answering_near(shipped, centre), theta[0])


def answering_near(shipped: ShippedProblem, centre: np.ndarray) -> PCM:
    """A network with large weights, whose designs vary around the centre."""
    pcm = PaperMethod(PAPER)._untrained(shipped.problem, SEED).pcm
    weights = pcm.weights.clone()
    network = botorch_reference.make_network(pcm.sizes[0], pcm.sizes[-1], PAPER, 0)
    vector_to_parameters(weights, network.parameters())
    generator = torch.Generator().manual_seed(SEED)
    linear = [layer for layer in network if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for layer in linear[:-1]:
            layer.weight.mul_(3.0)
            layer.bias.normal_(0.0, 0.3, generator=generator)
        linear[-1].weight.mul_(10.0)
        middle = network[:-1](torch.full((1, pcm.sizes[0]), 0.5, dtype=torch.float64))[0]
        linear[-1].bias.copy_(torch.from_numpy(centre).clamp(0.02, 0.98).logit() - middle)
    return PCM(pcm.sizes, parameters_to_vector(network.parameters()).detach())


@pytest.mark.parametrize("name", NAMES)
def test_the_situation_is_a_mixed_one(name: str) -> None:
    both = situation(name)
    lcb, ucb = botorch_reference.confidence_bounds(both.model, both.pcm.designs(both.theta), PAPER.beta)
    feasible = (ucb <= both.box.limits(both.theta)).all(1).double().mean().item()
    assert 0.1 < feasible < 0.9
    assert lcb.std() > 0.0
    loss = [loss_and_gradient(both.pcm, both.surrogates, both.limits, both.theta, 0.5, a).value for a in (0.0, 0.1)]
    assert loss[1] - loss[0] > 1e-4  # monotonic guidance acts


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_loss_and_gradient(name: str, alpha: float) -> None:
    both = situation(name)
    check_loss_and_gradient(both, both.surrogates, both.model, alpha)


@pytest.mark.filterwarnings("ignore")  # BoTorch's about its optimiser
def test_the_same_with_hyperparameters_that_botorch_fitted() -> None:
    both = situation("three_truss")
    model = botorch_reference.fit(both.surrogates.x[40:], both.surrogates.y[40:])
    with torch.no_grad():
        hyperparameters = Hyperparameters(
            torch.cat([gp.covar_module.lengthscale for gp in model.models]),
            torch.cat([gp.likelihood.noise for gp in model.models]),
            torch.stack([gp.mean_module.constant for gp in model.models]),
        )
    surrogates = condition(both.surrogates.x[40:], both.surrogates.y[40:], hyperparameters)
    check_loss_and_gradient(both, surrogates, model, 0.1)


def check_loss_and_gradient(both: Both, surrogates: Surrogates, model: Any, alpha: float) -> None:
    ours = loss_and_gradient(both.pcm, surrogates, both.limits, both.theta, PAPER.beta, alpha)
    value, gradient = botorch_reference.loss_and_gradient(
        both.network(), model, both.box, both.theta, PAPER.beta, alpha
    )
    assert ours.value == pytest.approx(value, abs=1e-8)
    torch.testing.assert_close(ours.gradient, gradient, rtol=0.0, atol=1e-8)
    assert (ours.gradient - gradient).norm() <= 1e-8 * gradient.norm()


@pytest.mark.parametrize("source", ["trained", "untrained", "anywhere", "few"])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_batch(name: str, source: str) -> None:
    both = situation(name)
    k, d = both.pcm.sizes[0], both.pcm.sizes[-1]
    theta, _ = ThresholdSampler(k, SEED).draw(1, PAPER.candidates, np.random.default_rng(SEED))
    candidates = {
        "trained": both.pcm.designs(theta[0]),
        "untrained": PaperMethod(PAPER)
        ._untrained(both.shipped.problem, SEED)
        .pcm.designs(theta[0]),  # all of them similar
        "anywhere": torch.from_numpy(np.random.default_rng(SEED).random((PAPER.candidates, d))),
        "few": both.pcm.designs(theta[0][::300]),
    }[source]
    for seed in range(3):
        random = np.random.default_rng(seed)
        nothing = torch.empty(0, d, dtype=torch.float64)
        ours = select(
            candidates, both.surrogates, both.limits, k, PAPER.beta, PAPER.similarity, PAPER.batch_size, nothing, random
        )
        theirs = botorch_reference.select_batch(candidates, both.model, both.box, PAPER, np.random.default_rng(seed))
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_weights_after_twenty_steps(name: str) -> None:
    both = situation(name)
    settings = PAPER.replace(horizon=1, inner_steps=20)  # guidance from the tenth step on, the whole cosine
    thetas, _ = ThresholdSampler(both.pcm.sizes[0], SEED).draw(20, 64, np.random.default_rng(SEED))
    trainee = Trainee(both.pcm, Adam.initial(both.pcm.weights))
    network = both.network()
    optimiser, scheduler = botorch_reference.make_optimiser(network, settings)
    for theta in thetas:
        trainee = train(trainee, both.surrogates, both.limits, theta.unsqueeze(0), settings)
        botorch_reference.train_step(network, optimiser, scheduler, both.model, both.box, theta, settings)
        theirs = parameters_to_vector(network.parameters()).detach()
        torch.testing.assert_close(trainee.pcm.weights, theirs, rtol=0.0, atol=1e-8)
    assert (trainee.pcm.weights - both.pcm.weights).abs().max() > 1e-3


def test_only_the_list_of_methods_imports_it() -> None:
    for path in set(Path(cbabo.__path__[0]).rglob("*.py")) - {Path(methods.__file__)}:
        assert not re.search(r"bench\.botorch_reference|import [^\n]*botorch_reference", path.read_text()), path


def test_the_same_learning_rates() -> None:
    network = nn.Sequential(nn.Linear(1, 1))
    optimiser, scheduler = botorch_reference.make_optimiser(network, PAPER)
    assert PAPER.training_steps == 34 * 50
    for step in range(PAPER.training_steps + 1):
        assert learning_rate(step, PAPER) == pytest.approx(scheduler.get_last_lr()[0], rel=1e-10)
        optimiser.step()
        scheduler.step()
    assert learning_rate(PAPER.training_steps, PAPER) == pytest.approx(1e-5, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_network_and_thresholds_at_the_start(name: str) -> None:
    problem = problems.get(name).problem
    pcm = PaperMethod(PAPER)._untrained(problem, SEED).pcm
    network = botorch_reference.make_network(pcm.sizes[0], pcm.sizes[-1], PAPER, child_seed(SEED, "network"))
    assert torch.equal(pcm.weights, parameters_to_vector(network.parameters()).detach())
    sampler = ThresholdSampler(pcm.sizes[0], SEED)
    sobol = botorch_reference.make_sobol(pcm.sizes[0], SEED)
    ours, theirs = np.random.default_rng(SEED), np.random.default_rng(SEED)
    for batches, size in ((50, 64), (1, 1000), (50, 64)):
        thetas, sampler = sampler.draw(batches, size, ours)
        for theta in thetas:
            assert torch.equal(theta, botorch_reference.sample_thresholds(sobol, size, theirs))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_designs_for_three_iterations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped, settings = problems.get(name), PAPER.replace(horizon=3, inner_steps=10)
    study = Study.create(shipped.problem, "sqlite://", seed=SEED, settings=settings)
    study.run(shipped.evaluate, budget=45, in_process=True)
    last: list[Hyperparameters] = []

    def fitted_by_the_engine(x: Tensor, y: Tensor) -> Any:
        surrogates = fit(x, y, warm=last[-1] if last else None)
        last.append(surrogates.hyperparameters)
        return surrogates.to_botorch()

    monkeypatch.setattr(botorch_reference, "fit", fitted_by_the_engine)
    result = botorch_reference.run(shipped, SEED, settings, evaluations=45)
    evaluations = study.evaluations.complete
    np.testing.assert_allclose(shipped.problem.space.unit(result.points), evaluations.x, rtol=0.0, atol=1e-8)
    assert len(last) == 3


@pytest.mark.filterwarnings("ignore")  # BoTorch's about its optimiser
def test_a_short_run_on_botorch_alone() -> None:
    shipped = problems.get("three_truss")
    result = botorch_reference.run(shipped, 0, PAPER.replace(inner_steps=5), evaluations=37)
    assert result.points.shape == (37, 2)
    assert result.outputs.shape == (37, 4)
    np.testing.assert_array_equal(result.outputs, botorch_reference.evaluate(shipped, result.points))
    assert shipped.problem.space.unit(result.points).min() >= 0.0
    theta = torch.zeros(3, 3, dtype=torch.float64)
    assert result.network(theta).shape == (3, 2)
    assert 0.0 < result.fitting + result.training <= result.seconds
