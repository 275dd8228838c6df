"""cEI and LogcEI: against BoTorch, against differences, and where they send a search."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cbabo import problems
from cbabo.bench.baselines.ascent import Criterion, maximise
from cbabo.bench.baselines.improvement import constrained_improvement, log_constrained_improvement
from cbabo.bench.baselines.sequential import Data, Task, fitted, fitted_exactly, initial_data
from cbabo.methods.acquisition import log_constrained_improvement as engine
from cbabo.surrogate import Surrogates, fit
from cbabo.surrogate.limits import Limits
from learned import unit_points

NAMES = ["three_truss", "g04", "car"]


def case(name: str) -> tuple[Task, Data, Surrogates, float]:
    shipped = problems.get(name)
    data = initial_data(shipped, 0)
    limits = np.median(data.y[:, 1:], axis=0)
    return Task(shipped, limits, 0), data, fit(*data.tensors), float(np.median(data.y[:, 0]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_both_are_botorchs(name: str) -> None:
    from botorch.acquisition.analytic import ConstrainedExpectedImprovement, LogConstrainedExpectedImprovement

    task, _, surrogates, best = case(name)
    x = unit_points(100, task.dimension, 5)
    limits = torch.from_numpy(task.limits)
    intervals = {j + 1: (None, limit) for j, limit in enumerate(task.limits.tolist())}
    torch.set_default_dtype(torch.float64)  # BoTorch keeps limits and incumbent in this precision
    try:
        stated = {"best_f": best, "objective_index": 0, "constraints": intervals, "maximize": False}
        with torch.no_grad():
            theirs = ConstrainedExpectedImprovement(surrogates.to_botorch(), **stated)(x.unsqueeze(1))
            their_log = LogConstrainedExpectedImprovement(surrogates.to_botorch(), **stated)(x.unsqueeze(1))
    finally:
        torch.set_default_dtype(torch.float32)
    mean, std = surrogates.mean_and_std(x)
    ours = constrained_improvement(limits, best)(mean, std)[0]
    our_log = log_constrained_improvement(limits, best)(mean, std)[0]
    assert (
        (our_log - their_log).abs() / their_log.abs().clamp_min(1.0)
    ).max() < 1e-6  # down to -4e4: in relative terms
    assert (ours - theirs).abs().max() < 1e-6 * max(1.0, float(theirs.max()))
    assert float(theirs.max()) > 0.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("feasible", [True, False])
def test_the_logarithm_is_the_engine_s(name: str, feasible: bool) -> None:
    task, _, surrogates, median = case(name)
    best = median if feasible else None
    mean, std = surrogates.mean_and_std(unit_points(100, task.dimension, 5))
    theta = torch.from_numpy(task.shipped.problem.box.to_theta(task.limits[None]))
    expected = engine(mean, std, Limits.of(task.shipped.problem), theta, best)
    found = log_constrained_improvement(torch.from_numpy(task.limits), best)(mean, std)[0]
    assert torch.allclose(found, expected, rtol=1e-9, atol=1e-9)


def criteria(limits: torch.Tensor, best: float) -> dict[str, Criterion]:
    return {
        "log": log_constrained_improvement(limits, best),
        "probability": log_constrained_improvement(limits, None),
        "plain": constrained_improvement(limits, best),
    }


@pytest.mark.parametrize("kind", ["log", "probability", "plain"])
@pytest.mark.parametrize("shift", [0.0, 3.0, 30.0])
def test_derivatives_are_those_of_autograd(kind: str, shift: float) -> None:
    limits = torch.tensor([0.3, -1.0], dtype=torch.float64)
    mean = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 3))) + shift
    std = torch.from_numpy(np.random.default_rng(1).uniform(0.5, 2.0, (20, 3)))
    mean.requires_grad_()
    std.requires_grad_()
    value, on_mean, on_std = criteria(limits, 0.2)[kind](mean, std)
    expected = torch.autograd.grad(value.sum(), (mean, std), allow_unused=True)
    for found, one in zip((on_mean, on_std), expected, strict=True):
        assert torch.allclose(found, torch.zeros_like(found) if one is None else one, rtol=1e-6, atol=1e-12)


def test_far_from_feasible_the_logarithm_still_points_the_way_and_cei_does_not() -> None:
    limits = torch.tensor([0.0], dtype=torch.float64)
    mean = torch.tensor([[1e4, 1e5]], dtype=torch.float64)
    std = torch.full((1, 2), 1e-2, dtype=torch.float64)
    value, on_mean, on_std = log_constrained_improvement(limits, 0.0)(mean, std)
    assert value.isfinite().all()
    assert on_mean.isfinite().all()
    assert on_std.isfinite().all()
    assert (on_mean < 0).all()
    value, on_mean, _ = constrained_improvement(limits, 0.0)(mean, std)
    assert float(value) == 0.0
    assert (on_mean == 0.0).all()


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("name", ["three_truss", "g04"])
def test_the_maximum_beats_a_large_sample(name: str, linear: bool) -> None:
    task, data, surrogates, best = case(name)
    limits = torch.from_numpy(task.limits)
    criterion = criteria(limits, best)["plain" if linear else "log"]
    found = maximise(surrogates, criterion, task, data, linear=linear)
    assert found is not None
    sample = unit_points(20_000, task.dimension, 1)
    value = criterion(*surrogates.mean_and_std(torch.from_numpy(found).unsqueeze(0)))[0]
    assert float(value) >= float(criterion(*surrogates.mean_and_std(sample))[0].max()) - 1e-9


def test_a_flat_criterion_has_no_maximum() -> None:
    task, data, surrogates, _ = case("three_truss")
    criterion = constrained_improvement(torch.from_numpy(task.limits) - 1e9, -1e9)
    assert maximise(surrogates, criterion, task, data, linear=True) is None


def test_ripples_are_not_taken_for_noise_where_outputs_are_exact() -> None:
    """A fit that may choose the noise explains the best design by it, and nothing beside it looks as good."""
    x = unit_points(40, 2, 0)
    rippled = 4.0 * (x - 0.4).square().sum(1, keepdim=True) + 0.2 * torch.sin(60.0 * x).sum(1, keepdim=True)
    inferred, exact = (
        (models.mean(x) - rippled).abs().max() for models in (fitted(x, rippled), fitted_exactly(x, rippled))
    )
    assert float(inferred) > 0.1
    assert float(exact) < 1e-3
