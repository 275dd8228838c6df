from __future__ import annotations

import warnings

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from shapes import tensors as data

from cbabo.errors import SurrogateError
from cbabo.surrogate import Surrogates, fit
from cbabo.surrogate.likelihood import Objective, Priors


def objective(s: Surrogates) -> torch.Tensor:
    z = ((s.y - s.centre) / s.scale).T.contiguous()
    h = s.hyperparameters
    u = torch.cat([h.lengthscales, h.noise.unsqueeze(-1)], -1).log()
    return -Objective(s.x, z, Priors.botorch(s.x.shape[1])).value_and_gradient(u, torch.arange(len(u)))[0]


def botorch_objective(model: SingleTaskGP) -> float:
    mll = ExactMarginalLogLikelihood(model.likelihood, model).train()
    with torch.no_grad():
        return float(mll(model(*model.train_inputs), model.train_targets))


def test_the_objective_is_botorchs(car: Surrogates) -> None:
    ours = objective(car)
    torch.testing.assert_close(ours, -car.hyperparameters.value)
    for j in (0, 4, 10):
        model = SingleTaskGP(car.x, car.y[:, j : j + 1])
        model.covar_module.lengthscale = car.hyperparameters.lengthscales[j]
        model.likelihood.noise = car.hyperparameters.noise[j]
        model.mean_module.constant = car.hyperparameters.constant[j]
        assert float(ours[j]) == pytest.approx(botorch_objective(model), abs=1e-7)  # its priors are in single precision


def test_the_gradient_is_that_of_the_objective() -> None:
    x, y = data("pressure_vessel", 40)
    z = ((y - y.mean(0)) / y.std(0)).T.contiguous()
    o, outputs = Objective(x, z, Priors.botorch(4)), torch.arange(5)
    u = o.priors.start(4) + 0.3 * torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    _, gradient = o.value_and_gradient(u, outputs)
    for i in range(5):
        step = torch.zeros_like(u)
        step[:, i] = 1e-5
        difference = (o.value_and_gradient(u + step, outputs)[0] - o.value_and_gradient(u - step, outputs)[0]) / 2e-5
        torch.testing.assert_close(gradient[:, i], difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["g01", "car", "pressure_vessel", "three_truss", "ackley6"])
def test_the_fit_is_as_good_as_botorchs(name: str) -> None:
    """All sizes and outputs: benchmarks/surrogates.py; here 30 evaluations and few outputs, for time."""
    x, y = data(name, 30)
    y = y[:, [0, 2]]
    ours = objective(fit(x, y))
    for j in range(y.shape[1]):
        model = SingleTaskGP(x, y[:, j : j + 1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        assert float(ours[j]) >= botorch_objective(model) - 1e-3


def test_a_warm_fit_ends_where_a_cold_one_does_with_less_work(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data("car", 65)
    last = fit(x[:60], y[:60])
    evaluations = []
    counted = Objective._chunk

    def counting(self: Objective, u: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        evaluations.append(len(u))
        return counted(self, u, z)

    monkeypatch.setattr(Objective, "_chunk", counting)
    warm = fit(x, y, warm=last.hyperparameters)
    warm_work = sum(evaluations)
    evaluations.clear()
    cold = fit(x, y)
    assert warm_work < sum(evaluations) / 4
    assert (objective(warm) - objective(cold)).min() > -1e-3
    assert warm.hyperparameters.explored == 60
    assert cold.hyperparameters.explored == 65
    assert fit(x, y, warm=last.hyperparameters, growth=1.0).hyperparameters.explored == 65


def test_a_warm_fit_leaves_a_bad_start() -> None:
    x, y = data("pressure_vessel", 50)
    good = fit(x, y)
    h = good.hyperparameters
    bad = type(h)(torch.full_like(h.lengthscales, 0.03), torch.full_like(h.noise, 5.0), h.constant, None, None, 50)
    assert (objective(fit(x, y, warm=bad)) - objective(good)).min() > -0.05
    explored = fit(x, y, warm=bad, growth=1.0)
    assert (objective(explored) - objective(good)).min() > -1e-3


def test_an_output_that_fits_worse_than_before_explores() -> None:
    x, y = data("three_truss", 80)
    warm = fit(x[:70], y[:70]).hyperparameters
    followed = fit(x, y, warm=warm, growth=float("inf"))
    cold = fit(x, y)
    worse = followed.hyperparameters.value > warm.value + 0.02
    assert worse.any()
    assert ((objective(followed) - objective(cold))[worse] > -1e-3).all()


def test_fits_are_the_same_to_the_last_bit_and_leave_threads_as_found() -> None:
    x, y = data("car", 40)
    torch.set_num_threads(2)
    first = fit(x, y)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    odd = torch.empty(x.numel() + 1, dtype=torch.float64)[1:].view_as(x).copy_(x)  # other alignment in memory
    second = fit(odd, y.clone())
    assert torch.equal(first.weights, second.weights)
    assert torch.equal(first.hyperparameters.lengthscales, second.hyperparameters.lengthscales)
    again = fit(x, y, warm=first.hyperparameters)
    assert torch.equal(again.weights, fit(x, y, warm=second.hyperparameters).weights)


def test_many_evaluations_explore_on_a_part() -> None:
    x, y = data("ackley6", 300)
    s = fit(x, y)
    assert s.x.shape == (300, 6)
    assert (objective(fit(x, y, warm=s.hyperparameters)) - objective(s)).abs().max() < 1e-5


def test_constant_and_duplicated_data_are_fitted() -> None:
    x, y = data("three_truss", 12)
    x, y = torch.cat([x, x[:4]]), torch.cat([y, y[:4]])
    y[:, 1] = 0.1
    s = fit(x, y)
    mean, std = s.mean_and_std(x)
    assert float(s.scale[1]) == 1.0
    assert mean[:, 1] == pytest.approx(0.1, abs=1e-9)
    assert std.isfinite().all()
    assert (mean[:4, 0] - y[:4, 0]).abs().max() < 0.05 * s.scale[0]
    again = fit(x, y, warm=s.hyperparameters)
    assert again.mean(x)[:, 1] == pytest.approx(0.1, abs=1e-9)


def test_bad_data_get_one_sentence() -> None:
    x, y = data("three_truss", 12)
    bad = y.clone()
    bad[3, 2] = float("nan")
    with pytest.raises(SurrogateError, match="got nan in y, row 3, column 2; leave failed evaluations out"):
        fit(x, bad)
    with pytest.raises(SurrogateError, match="at least 2 evaluations.*got 1"):
        fit(x[:1], y[:1])
    with pytest.raises(SurrogateError, match=r"got \(12, 2\).*and \(11, 4\)"):
        fit(x, y[:11])
    with pytest.raises(SurrogateError, match="double precision"):
        fit(x.float(), y)
    with pytest.raises(SurrogateError, match="unit cube, got coordinates from"):
        fit(x * 3.0, y)
    with pytest.raises(SurrogateError, match="finite spread, got values too large for it in output 0"):
        fit(x, y[:, :1] * 1e305)
    with pytest.raises(SurrogateError, match="Expected hyperparameters of 3 outputs"):
        fit(x, y[:, :3], warm=fit(x, y).hyperparameters)


def test_a_fit_that_cannot_factorise_ends_in_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data("three_truss", 12)
    cholesky = torch.linalg.cholesky_ex

    def failing(K: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        factor, info = cholesky(K)
        covariance = K.shape[-1] == 12
        return factor, torch.where(K[:, 0, 0] < least, 1, info) if covariance else info

    warm = fit(x, y).hyperparameters
    monkeypatch.setattr(torch.linalg, "cholesky_ex", failing)
    least = 1.5
    for start in (None, warm):
        assert (fit(x, y, warm=start).hyperparameters.noise >= 0.5).all()
    least = float("inf")
    for start in (None, warm):
        with pytest.raises(SurrogateError, match="got none for output 0"):
            fit(x, y, warm=start)
