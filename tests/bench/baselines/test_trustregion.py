"""SCBO: the trust region by table, the choice against BoTorch, the transforms and the posterior samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cbabo import problems
from cbabo.bench.baselines import paths, trustregion
from cbabo.bench.baselines.sequential import Task, initial_data, search
from cbabo.bench.baselines.trustregion import (
    Region,
    candidates,
    centre_of,
    choose,
    scbo,
    succeeded,
    transformed,
)
from cbabo.surrogate import fit
from learned import unit_points

YES, NO = True, False


@pytest.mark.parametrize(
    ("before", "outcomes", "dimension", "after"),
    [
        (Region(0.8), [YES], 2, Region(0.8, 1, 0)),
        (Region(0.8), [YES, YES], 2, Region(0.8, 2, 0)),
        (Region(0.8), [YES, YES, YES], 2, Region(1.6, 0, 0)),
        (Region(1.6), [YES, YES, YES], 2, Region(1.6, 0, 0)),
        (Region(0.8), [YES, YES, NO], 2, Region(0.8, 0, 1)),
        (Region(0.8), [NO, NO, NO], 2, Region(0.8, 0, 3)),
        (Region(0.8), [NO, NO, NO, NO], 2, Region(0.4, 0, 0)),
        (Region(0.8), [NO, NO, NO, YES], 2, Region(0.8, 1, 0)),
        (Region(0.8), [NO] * 9, 10, Region(0.8, 0, 9)),
        (Region(0.8), [NO] * 10, 10, Region(0.4, 0, 0)),
        (Region(0.8), [NO] * 8, 2, Region(0.2, 0, 0)),
    ],
)
def test_the_region_after_successes_and_failures(
    before: Region, outcomes: list[bool], dimension: int, after: Region
) -> None:
    for outcome in outcomes:
        before = before.after(outcome, dimension)
    assert before == after


def test_the_region_is_spent_below_a_128th() -> None:
    assert not Region(0.5**7).spent
    assert Region(0.5**7 * 0.99).spent


def task_with_limit(limit: float = 0.0) -> Task:
    return Task(problems.get("gkxwc1"), np.array([limit]), 0)


@pytest.mark.parametrize(
    ("centre", "new", "expected"),
    [
        ([-1.0, -0.5], [-1.1, -0.1], YES),
        ([-1.0, -0.5], [-1.0005, -0.1], NO),  # less than a thousandth better
        ([-1.0, -0.5], [-9.0, 0.1], NO),  # infeasible
        ([-1.0, 0.5], [7.0, -0.1], YES),  # the first feasible one, whatever its objective
        ([-1.0, 0.5], [7.0, 0.4], YES),
        ([-1.0, 0.5], [-7.0, 0.6], NO),
    ],
)
def test_what_counts_as_a_success(centre: list[float], new: list[float], expected: bool) -> None:
    assert succeeded(task_with_limit(), np.array(centre), np.array(new)) is expected


def test_the_centre_is_the_best_feasible_design_or_the_least_violation() -> None:
    y = np.array([[1.0, -0.5], [0.5, -0.2], [-5.0, 1.5], [-9.0, 1.2]])
    assert centre_of(task_with_limit(), y) == 1
    assert centre_of(task_with_limit(), y[2:]) == 1


def test_the_transforms() -> None:
    y = np.array([[5.0, -9.0], [1e6, 1.0], [-3.0, 0.0], [5.5, 100.0]])
    found = transformed(task_with_limit(), y)
    assert np.array_equal(np.argsort(found[:, 0]), np.argsort(y[:, 0]))
    assert found[:, 0] == pytest.approx([-0.31864, 1.15035, -1.15035, 0.31864], abs=1e-5)
    assert found[:, 1] == pytest.approx([-np.log(10.0), np.log(2.0), 0.0, np.log(101.0)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("limit", [-3.0, 0.0, 3.0])  # nothing, some, nearly everything feasible
def test_the_choice_is_botorchs(limit: float) -> None:
    from botorch.generation.sampling import ConstrainedMaxPosteriorSampling
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.posteriors import Posterior

    class Fixed(Posterior):
        """Posterior samples that are given."""

        def __init__(self, values: torch.Tensor) -> None:
            self.values = values

        def rsample(self, sample_shape: torch.Size | None = None) -> torch.Tensor:
            return self.values.expand(1, *self.values.shape)

        device = torch.device("cpu")
        dtype = torch.float64

    class Given(SingleTaskGP):
        """A model whose posterior is such samples."""

        def __init__(self, values: torch.Tensor) -> None:
            super().__init__(torch.rand(3, 2, dtype=torch.float64), torch.rand(3, 1, dtype=torch.float64))
            self.given = values

        def posterior(self, *_: object, **__: object) -> Posterior:  # type: ignore[override]
            return Fixed(self.given)

    for seed in range(20):
        random = np.random.default_rng(seed)
        samples = torch.from_numpy(random.normal(size=(200, 4)))
        samples[:, 1:] -= limit
        x = torch.from_numpy(random.random((200, 2)))
        constraints = ModelListGP(*(Given(samples[:, j : j + 1]) for j in (1, 2, 3)))
        theirs = ConstrainedMaxPosteriorSampling(Given(-samples[:, :1]), constraints)(x, num_samples=1)
        assert torch.equal(x[choose(samples)], theirs[0])


def test_candidates_lie_in_the_region_and_change_at_least_one_coordinate() -> None:
    data = initial_data(problems.get("keane18"), 0)
    surrogates = fit(data.tensors[0], data.tensors[1][:, :1])
    centre = torch.from_numpy(data.x[0])
    found = candidates(centre, surrogates, 0.1, np.random.default_rng(0))
    assert found.shape == (3600, 18)
    lengthscales = surrogates.hyperparameters.lengthscales[0]
    half = 0.05 * lengthscales / lengthscales.log().mean().exp()
    assert ((found - centre).abs() <= half + 1e-12).all()
    assert ((found >= 0) & (found <= 1)).all()
    assert (found != centre).any(1).all()


@pytest.mark.parametrize("name", ["three_truss", "car"])
def test_posterior_samples_have_the_right_moments(name: str) -> None:
    task = Task(problems.get(name), initial_data(problems.get(name), 0).y[:, 1:].mean(axis=0), 0)
    data = initial_data(task.shipped, 0)
    surrogates = fit(data.tensors[0], torch.from_numpy(transformed(task, data.y)))
    near = (torch.from_numpy(data.x[3]) + 0.1 * (unit_points(30, task.dimension) - 0.5)).clamp(0, 1)
    designs = torch.cat([near, unit_points(30, task.dimension, 1)])
    samples = torch.stack([paths.sample(surrogates, designs, np.random.default_rng(i)) for i in range(300)])
    mean, std = surrogates.mean_and_std(designs)
    assert ((samples.mean(0) - mean).abs() / std).max() < 5.0 / np.sqrt(300)
    ratio = samples.std(0) / std
    assert ratio.min() > 0.75
    assert ratio.max() < 1.25
    assert abs(float(ratio.mean()) - 1.0) < 0.03
    with torch.no_grad():
        joint = surrogates.to_botorch().models[0].posterior(designs[:5]).distribution.covariance_matrix.numpy()
    assert np.cov(samples[:, :5, 0].T.numpy()) == pytest.approx(joint, abs=0.3 * joint.max())


def test_a_spent_region_starts_again_from_fresh_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trustregion, "Region", lambda length=0.0101: Region(length))
    task = task_with_limit(0.5)
    outcome = search(task, initial_data(task.shipped, 0), 30, scbo)
    assert (np.ptp(outcome.data.x[30:], axis=0) > 0.5).all()  # around the first centre alone it would be much smaller
