"""The expected gain over thresholds: against LogcEI, against differences, and its maximisation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cbabo import Settings
from cbabo.methods.acquisition import log_constrained_improvement
from cbabo.methods.improvement import ExpectedGain
from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate.posterior import Posterior
from learned import evaluated, posterior_of, unit_points, with_failures
from simulators import lattice, simulate_lattice, simulate_valley, simulate_wavy, valley, wavy

DEFAULT = Settings.default().replace(initial_evaluations=30)
"""Forms of outputs are chosen after 30 evaluations only, so that surrogates of fewer have errors worth correcting."""
X = unit_points(40, 2, 4).numpy()


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return posterior_of(evaluated(valley(), simulate_valley, 20), DEFAULT)


@pytest.fixture(scope="module")
def unsure() -> Posterior:
    """Waves that no surrogate can learn from so few designs."""
    return posterior_of(evaluated(wavy(), simulate_wavy, 25), DEFAULT)


@pytest.fixture(scope="module")
def failing() -> Posterior:
    found = posterior_of(with_failures(evaluated(wavy(), simulate_wavy, 60), lambda p: p["x0"] > 0.6), DEFAULT)
    assert found.failure_model is not None
    return found


def gain_of(posterior: Posterior, best: list[float], weights: list[float]) -> ExpectedGain:
    k = len(posterior.problem.box.names)
    theta = torch.linspace(0.4, 0.8, len(best), dtype=torch.float64).unsqueeze(-1).expand(-1, k)
    return ExpectedGain(
        posterior, theta, torch.tensor(best, dtype=torch.float64), torch.tensor(weights, dtype=torch.float64)
    )


def median(posterior: Posterior) -> float:
    return float((posterior.limits.goal * posterior.surrogates.y[:, 0]).median())


def test_for_one_threshold_it_is_log_cei(posterior: Posterior) -> None:
    best = median(posterior)
    gain = gain_of(posterior, [best], [1.0])
    mean, std = posterior.surrogates.mean_and_std(torch.from_numpy(X))
    expected = log_constrained_improvement(mean, std, posterior.limits, gain.theta, best)
    assert gain.values(X) == pytest.approx((expected - posterior.surrogates.scale[0].log()).numpy(), rel=1e-9)
    nothing = gain_of(posterior, [np.inf], [1.0])
    expected = log_constrained_improvement(mean, std, posterior.limits, gain.theta, None)
    assert nothing.values(X) == pytest.approx(expected.numpy(), rel=1e-9)


def test_several_thresholds_count_by_their_weights(posterior: Posterior) -> None:
    best = median(posterior)
    both = gain_of(posterior, [best, np.inf], [0.9, 0.1])
    one, two = (
        ExpectedGain(posterior, both.theta[i : i + 1], both.best[i : i + 1], torch.ones(1, dtype=torch.float64))
        for i in range(2)
    )
    expected = np.logaddexp(np.log(0.9) + one.values(X), np.log(0.1) + two.values(X))
    assert both.values(X) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["unsure", "failing"])
@pytest.mark.parametrize(
    ("best", "weights"), [([0.0], [1.0]), ([np.inf], [1.0]), ([0.0, np.inf, 0.3], [0.2, 0.5, 0.3])]
)
def test_its_gradient_against_differences(
    request: pytest.FixtureRequest, name: str, best: list[float], weights: list[float]
) -> None:
    posterior: Posterior = request.getfixturevalue(name)
    gain = gain_of(posterior, [median(posterior) + b for b in best], weights)
    x = 0.05 + 0.9 * unit_points(400, 5, 4).numpy()
    x = x[gain.value_and_gradient(x)[0] > -100.0]  # Far beyond a limit differences lose their digits.
    if posterior.failure_model is not None:
        p = posterior.failure_model.probability(torch.from_numpy(x)).numpy()
        x = x[(p > 0.01) & (p < 0.97)]  # The probability is clipped beyond.
    assert len(x) > 10
    value, gradient = gain.value_and_gradient(x)
    for i in range(x.shape[1]):
        step = np.zeros(x.shape[1])
        step[i] = 1e-6
        by_difference = (gain.value_and_gradient(x + step)[0] - gain.value_and_gradient(x - step)[0]) / 2e-6
        scale = np.linalg.norm(gradient, axis=1) + 1e-3 * np.abs(value) + 1e-3
        assert (np.abs(by_difference - gradient[:, i]) <= 1e-3 * scale).all()


def test_a_probable_failure_is_ruled_out_among_candidates(failing: Posterior) -> None:
    x = unit_points(200, failing.problem.space.dimension, 1).numpy()
    model = failing.failure_model
    assert model is not None
    risky = (model.probability(torch.from_numpy(x)) > model.limit).numpy()
    assert 0 < risky.sum() < 200
    assert np.array_equal(np.isneginf(gain_of(failing, [median(failing)], [1.0]).values(x)), risky)


def test_ascents_end_higher_than_the_best_of_many_candidates(posterior: Posterior) -> None:
    gain = gain_of(posterior, [median(posterior)], [1.0])
    sample = unit_points(4000, 2, 9).numpy()
    starts = sample[np.argsort(-gain.values(sample[:200]))[:4]]
    ends = gain.ascend(starts)
    assert ((ends >= 0.0) & (ends <= 1.0)).all()
    assert np.arcsinh(gain.values(ends)).sum() >= np.arcsinh(gain.values(starts)).sum()  # They climb together.
    assert gain.values(ends).max() >= gain.values(sample).max() - 1e-6


def test_discrete_variables_stay_where_they_are() -> None:
    posterior = posterior_of(evaluated(lattice(), simulate_lattice, 8), DEFAULT)
    starts: FloatArray = posterior.surrogates.x.numpy()[:3]
    assert np.array_equal(gain_of(posterior, [np.inf], [1.0]).ascend(starts), starts)
