"""The loss and its gradient, against the paper's formulas written down plainly; and what training does with them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from cbabo import Constraint, Objective, Problem, Real, Settings
from cbabo.methods import training
from cbabo.methods.learner import Learner
from cbabo.methods.paper import PaperMethod
from cbabo.methods.training import Loss, Trainee, learning_rate, loss_and_gradient, train
from cbabo.network.pcm import PCM, Adam
from cbabo.surrogate import Surrogates
from cbabo.surrogate.limits import Limits
from learned import QUICK, evaluated, plainly, posterior_of, surrogates_of, trained_looking, unit_points
from simulators import mirrored, simulate_mirrored, simulate_valley, valley

SIZES = (2, 12, 10, 2)


@pytest.fixture(scope="module")
def surrogates() -> Surrogates:
    return surrogates_of(evaluated(valley(), simulate_valley, 15))


def paper_z(surrogates: Surrogates, x: Tensor, theta: Tensor, beta: float) -> tuple[Tensor, Tensor, Tensor]:
    """z, LCB_f and feasibility of the valley (minimise f; c <= [0, 2], g >= [-1, 1], g <= 2.5), as the paper has them."""
    mean, std = surrogates.mean_and_std(x)
    lcb = mean[:, 0] - beta * std[:, 0]
    violations = torch.stack(
        [
            mean[:, 1] + beta * std[:, 1] - 2.0 * theta[:, 0],
            (1.0 - 2.0 * theta[:, 1]) - (mean[:, 2] - beta * std[:, 2]),
            mean[:, 2] + beta * std[:, 2] - 2.5,
        ],
        dim=1,
    ).clamp_min(0.0)
    feasible = (violations == 0).all(1)
    return torch.where(feasible, lcb, violations.sum(1)), lcb, feasible


def normalised(value: Tensor, x: Tensor) -> Tensor:
    (g,) = torch.autograd.grad(value.sum(), x, retain_graph=True)
    return g / g.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_loss_and_gradient_are_the_papers(surrogates: Surrogates, alpha: float, beta: float) -> None:
    pcm, theta = trained_looking(SIZES, seed=7), unit_points(40, 2, 3)
    found = loss_and_gradient(pcm, surrogates, Limits.of(valley()), theta, beta, alpha)

    weights, theta_ = pcm.weights.clone().requires_grad_(), theta.clone().requires_grad_()
    x = plainly(weights, SIZES, theta_)
    still = x.detach().requires_grad_()
    z, lcb, feasible = paper_z(surrogates, still, theta, beta)
    assert 0 < feasible.sum() < 40  # both branches are there
    loss = (normalised(z, still) * x).sum(1).mean()
    (by_theta,) = torch.autograd.grad((normalised(lcb, still) * x).sum(), theta_, create_graph=True)
    assert 0 < (by_theta > 0).sum() < by_theta.numel()
    loss = loss + alpha * by_theta.clamp_min(0.0).mean()
    (gradient,) = torch.autograd.grad(loss, weights)
    assert found.value == pytest.approx(float(loss.detach()), rel=1e-10)
    assert (found.gradient - gradient).norm() <= 1e-9 * gradient.norm()


def test_the_gradient_is_what_a_small_step_does(surrogates: Surrogates) -> None:
    """Finite differences of the loss with the directions held constant, which is what the loss means."""
    pcm, theta = trained_looking(SIZES, seed=7), unit_points(30, 2, 3)
    limits = Limits.of(valley())
    trace = pcm.trace(theta)
    prediction = surrogates.predict(trace.x)
    g = training._normalise(prediction.vjp(*training._loss_weights(prediction, limits, theta, 0.5)), 1e-12)
    _, g_f = training._rising_objective(trace, prediction, limits, 0.5, 1e-12)

    def loss(weights: Tensor) -> float:
        moved = PCM(SIZES, weights).trace(theta)
        return float((g * moved.x).sum(1).mean() + 0.1 * moved.pull(g_f).clamp_min(0.0).mean())

    found = loss_and_gradient(pcm, surrogates, limits, theta, 0.5, 0.1)
    assert found.value == pytest.approx(loss(pcm.weights), rel=1e-12)
    for seed in range(3):
        direction = torch.from_numpy(np.random.default_rng(seed).standard_normal(len(pcm.weights)))
        direction /= direction.norm()
        by_difference = (loss(pcm.weights + 1e-6 * direction) - loss(pcm.weights - 1e-6 * direction)) / 2e-6
        assert by_difference == pytest.approx(float(found.gradient @ direction), abs=1e-8)


@pytest.mark.parametrize(("level", "feasible"), [(-50.0, False), (50.0, True)])
def test_either_branch_alone(surrogates: Surrogates, level: float, feasible: bool) -> None:
    """Limits that nothing obeys leave only violations to the loss, limits that everything obeys only the objective."""
    limits = Limits.of(valley())
    if feasible:
        limits = Limits(limits.goal, limits.output, limits.sign, limits.base + 50.0, limits.span, limits.threshold)
    pcm, theta = trained_looking(SIZES), torch.full((10, 2), level, dtype=torch.float64)
    prediction = surrogates.predict(pcm.trace(theta).x)
    on_mean, on_std = training._loss_weights(prediction, limits, theta, 0.5)
    if feasible:
        assert on_mean.tolist() == [[1.0, 0.0, 0.0]] * 10
        assert on_std.tolist() == [[-0.5, 0.0, 0.0]] * 10
    else:
        assert not on_mean[:, 0].any()
        assert not on_std[:, 0].any()
        assert (on_mean[:, 1] == 1.0).all()
        assert (on_std[:, 1] == 0.5).all()


def test_two_violated_limits_on_one_output_cancel_in_the_mean_and_add_up_in_the_deviation(
    surrogates: Surrogates,
) -> None:
    """With a standard deviation as large as the interval both limits are violated."""
    limits = Limits.of(valley())
    narrow = Limits(limits.goal, limits.output, limits.sign, limits.base - 50.0, limits.span, limits.threshold)
    pcm, theta = trained_looking(SIZES), torch.zeros(4, 2, dtype=torch.float64)
    prediction = surrogates.predict(pcm.trace(theta).x)
    on_mean, on_std = training._loss_weights(prediction, narrow, theta, 0.5)
    assert on_mean[:, 2].tolist() == [0.0] * 4
    assert on_std[:, 2].tolist() == [1.0] * 4


def test_a_flat_surrogate_gives_a_zero_gradient_and_no_nan() -> None:
    flat = evaluated(valley(), lambda _: {"f": 1.0, "c": 1.0, "g": 0.0}, 6)
    pcm, theta = trained_looking(SIZES), unit_points(8, 2)
    loss = loss_and_gradient(pcm, surrogates_of(flat), Limits.of(valley()), theta, 0.0, 0.1)
    assert math.isfinite(loss.value)
    assert loss.gradient.isfinite().all()


def test_the_learning_rate_falls_along_a_cosine_to_its_least() -> None:
    settings = Settings.paper()
    assert settings.training_steps == 1700
    assert learning_rate(0, settings) == 1e-3
    assert learning_rate(850, settings) == pytest.approx((1e-3 + 1e-5) / 2)
    assert learning_rate(1700, settings) == pytest.approx(1e-5, rel=1e-12)
    assert learning_rate(10**6, settings) == pytest.approx(1e-5, rel=1e-12)
    rates = [learning_rate(step, settings) for step in range(1701)]
    assert all(later < earlier for earlier, later in itertools.pairwise(rates))
    assert rates[425] == pytest.approx(1e-5 + (1e-3 - 1e-5) * (1 + math.sqrt(0.5)) / 2)


def test_monotonic_guidance_acts_in_the_second_half_of_the_horizon_only(
    surrogates: Surrogates, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[float] = []

    def record(pcm: PCM, surrogates: Surrogates, limits: Limits, theta: Tensor, beta: float, alpha: float) -> Loss:
        used.append(alpha)
        return Loss(0.0, torch.zeros_like(pcm.weights))

    monkeypatch.setattr(training, "loss_and_gradient", record)
    pcm = PCM.initial(SIZES, 0)
    thetas = torch.zeros(QUICK.training_steps + 5, 4, 2, dtype=torch.float64)
    train(Trainee(pcm, Adam.initial(pcm.weights)), surrogates, Limits.of(valley()), thetas, QUICK)
    assert used == [0.0] * 15 + [0.1] * 20  # 30 steps in the horizon, 5 after it
    used.clear()
    train(Trainee(pcm, Adam.initial(pcm.weights)), surrogates, Limits.of(valley()), thetas, QUICK.replace(alpha=0))
    assert set(used) == {0.0}


def test_training_in_pieces_is_training_at_once(surrogates: Surrogates) -> None:
    pcm = PCM.initial(SIZES, 0)
    start = Trainee(pcm, Adam.initial(pcm.weights))
    thetas = torch.stack([unit_points(8, 2, seed) for seed in range(24)])
    whole = train(start, surrogates, Limits.of(valley()), thetas, QUICK)
    pieces = start
    for part in thetas.split(7):
        pieces = train(pieces, surrogates, Limits.of(valley()), part, QUICK)
    assert pieces.pcm.weights.equal(whole.pcm.weights)
    assert pieces.adam.second.equal(whole.adam.second)
    assert start.adam.steps == 0
    assert whole.adam.steps == 24


def test_training_leaves_grad_mode_and_the_first_network_alone(surrogates: Surrogates) -> None:
    pcm = PCM.initial(SIZES, 0)
    before = pcm.weights.clone()
    after = train(
        Trainee(pcm, Adam.initial(pcm.weights)), surrogates, Limits.of(valley()), unit_points(6, 2).unsqueeze(0), QUICK
    )
    assert torch.is_grad_enabled()
    assert pcm.weights.equal(before)
    assert not after.pcm.weights.requires_grad
    assert not after.pcm.weights.equal(before)


def test_restating_a_problem_gives_the_same_network() -> None:
    """Maximise and >= instead of minimise and <=: the same evaluations end in the same weights."""
    one = posterior_of(evaluated(valley(), simulate_valley, 15))
    two = posterior_of(evaluated(mirrored(), simulate_mirrored, 15))
    settings = QUICK.replace(horizon=2)  # so that the monotonic guidance takes part
    a, x = PaperMethod(settings).train_for_one_iteration(one, Learner(1), 7)
    b, y = PaperMethod(settings).train_for_one_iteration(two, Learner(1), 7)
    assert a.trainee is not None
    assert b.trainee is not None
    assert torch.allclose(a.trainee.pcm.weights, b.trainee.pcm.weights, rtol=0, atol=1e-12)
    assert torch.allclose(x, y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("factor", [2.0**-60, 2.0**40])
def test_the_unit_of_the_outputs_does_not_matter(factor: float) -> None:
    """Farads and pascals: all outputs and limits multiplied by one number give the same network."""
    scaled = Problem(
        "scaled",
        valley().variables,
        Objective("f"),
        [
            Constraint("c", "<=", low=0.0, high=2.0 * factor),
            Constraint("g", ">=", low=-factor, high=factor),
            Constraint("g_top", "<=", limit=2.5 * factor, outputs="g"),
        ],
    )
    one = posterior_of(evaluated(valley(), simulate_valley, 15))
    two = posterior_of(evaluated(scaled, lambda p: {name: factor * v for name, v in simulate_valley(p).items()}, 15))
    settings = QUICK.replace(horizon=2)
    a, _ = PaperMethod(settings).train_for_one_iteration(one, Learner(1), 7)
    b, _ = PaperMethod(settings).train_for_one_iteration(two, Learner(1), 7)
    assert a.trainee is not None
    assert b.trainee is not None
    assert torch.allclose(a.trainee.pcm.weights, b.trainee.pcm.weights, rtol=0, atol=1e-10)


def test_unit_lengths() -> None:
    g = torch.tensor([[3.0, 4.0], [0.0, 0.0], [3e-9, 4e-9], [1e-200, 0.0], [1e100, 0.0]], dtype=torch.float64)
    assert training._normalise(g, 1e-150)[:3].tolist() == [[0.6, 0.8], [0.0, 0.0], pytest.approx([0.6, 0.8])]
    assert training._normalise(g, 1e-150).norm(dim=1).max() <= 1.0 + 1e-15


def test_a_trained_network_finds_the_known_answers() -> None:
    """Minimise x with x >= t: the answer is t, for every t."""
    problem = Problem("line", [Real("x", 0, 1)], Objective("f"), [Constraint("c", ">=", low=0.2, high=0.8)])
    posterior = posterior_of(evaluated(problem, lambda p: {"f": p["x"], "c": p["x"]}, 8))
    settings = QUICK.replace(inner_steps=200, horizon=1)
    learner, _ = PaperMethod(settings).train_for_one_iteration(posterior, Learner(1), 0)
    assert learner.trainee is not None
    thresholds = np.linspace(0.2, 0.8, 13)[:, None]
    x = learner.trainee.pcm.designs(torch.from_numpy(problem.box.to_theta(thresholds))).numpy()
    assert np.abs(x - thresholds).max() < 0.03
