from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.models.model_list_gp_regression import ModelListGP
from derivatives import derivatives
from shapes import tensors as data

from cbabo.errors import SurrogateError
from cbabo.numerics.codec import decode, encode
from cbabo.surrogate import Hyperparameters, Surrogates, condition, fit, gp


def points(b: int, d: int, seed: int = 5) -> torch.Tensor:
    return torch.rand(b, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def singles(s: Surrogates) -> ModelListGP:
    """BoTorch's own models, standardising by themselves, with our hyperparameters."""
    models = []
    for j in range(s.y.shape[1]):
        m = SingleTaskGP(s.x, s.y[:, j : j + 1])
        m.covar_module.lengthscale = s.hyperparameters.lengthscales[j]
        m.likelihood.noise = s.hyperparameters.noise[j]
        m.mean_module.constant = s.hyperparameters.constant[j]
        models.append(m)
    return ModelListGP(*models)


def assert_same_posterior(s: Surrogates, model: ModelListGP, x: torch.Tensor, tolerance: float = 1e-6) -> None:
    with torch.no_grad():
        posterior = model.posterior(x)
    mean, std = s.mean_and_std(x)
    assert ((mean - posterior.mean) / s.scale).abs().max() < tolerance
    assert ((std - posterior.variance.sqrt()) / s.scale).abs().max() < tolerance


@pytest.mark.parametrize("name", ["g01", "car", "pressure_vessel", "three_truss", "ackley6"])
@pytest.mark.parametrize("n", [30, 200])
def test_mean_and_deviation_equal_botorch(name: str, n: int) -> None:
    x, y = data(name, n)
    d, q = x.shape[1], y.shape[1]
    g = torch.Generator().manual_seed(1)
    lengthscales = (torch.rand(q, d, dtype=torch.float64, generator=g) * 5.0 - 2.5).exp().clamp_min(0.025)
    noise = (torch.rand(q, dtype=torch.float64, generator=g) * 7.0 - 9.0).exp().clamp_min(1e-4)
    s = condition(x, y, Hyperparameters(lengthscales, noise, torch.randn(q, dtype=torch.float64, generator=g)))
    model = singles(s)
    assert_same_posterior(s, model, points(50, d))
    assert_same_posterior(s, model, x[:10])


def test_to_botorch_has_the_same_posterior_and_takes_an_acquisition(truss: Surrogates) -> None:
    more = truss.with_data(points(6, 2), points(6, 4) * 300.0)
    for s in (truss, more):
        assert_same_posterior(s, s.to_botorch(), points(40, 2), 1e-9)
    objective = truss.to_botorch().models[0]
    value = LogExpectedImprovement(objective, best_f=truss.y[:, 0].min(), maximize=False)(points(3, 2).unsqueeze(1))
    assert value.shape == (3,)
    assert value.isfinite().all()


def test_derivatives_agree_with_autograd(car: Surrogates) -> None:
    x = points(9, 11).requires_grad_()
    mean, std = car.mean_and_std(x)
    dmean, dstd = derivatives(car, x.detach())
    for j in range(mean.shape[1]):
        for value, ours in ((mean, dmean), (std, dstd)):
            (expected,) = torch.autograd.grad(value[:, j].sum(), x, retain_graph=True)
            torch.testing.assert_close(ours[:, j], expected, rtol=1e-8, atol=1e-10 * float(car.scale[j]))


def test_derivatives_agree_with_finite_differences(truss: Surrogates) -> None:
    x, step = points(5, 2), 1e-5
    dmean, dstd = derivatives(truss, x)
    for i in range(2):
        shift = torch.zeros_like(x)
        shift[:, i] = step
        upper, lower = truss.mean_and_std(x + shift), truss.mean_and_std(x - shift)
        for k, ours in enumerate((dmean, dstd)):
            difference = (upper[k] - lower[k]) / (2 * step)
            assert ((ours[..., i] - difference) / truss.scale).abs().max() < 1e-5


@pytest.mark.parametrize("kept", [range(11), [0], [2, 7], []])
def test_vjp_sums_the_gradients(car: Surrogates, kept: list[int]) -> None:
    x = points(64, 11)
    weight_mean, weight_std = torch.zeros(64, 11, dtype=torch.float64), torch.zeros(64, 11, dtype=torch.float64)
    for j in kept:
        weight_mean[:, j], weight_std[:, j] = points(64, 2, seed=j).unbind(-1)
    prediction = car.predict(x)
    dmean, dstd = derivatives(car, x)
    expected = (weight_mean.unsqueeze(-1) * dmean + weight_std.unsqueeze(-1) * dstd).sum(1)
    torch.testing.assert_close(prediction.vjp(weight_mean, weight_std), expected, rtol=1e-9, atol=1e-11)


def test_chunks_change_nothing(car: Surrogates, monkeypatch: pytest.MonkeyPatch) -> None:
    x = points(300, 11)
    whole, _ = car.mean_and_std(x)
    monkeypatch.setattr(gp, "TUNING", replace(gp.TUNING, chunk_elements=11 * 60 * 7))
    assert car._chunk == 7
    torch.testing.assert_close(car.mean_and_std(x)[0], whole, rtol=0, atol=1e-11)
    torch.testing.assert_close(car.mean(x), whole, rtol=0, atol=1e-11)
    assert car.mean(x[:0]).shape == (0, 11)
    assert car.mean_and_std(x[:0])[1].shape == (0, 11)


def test_leave_one_out_is_what_leaving_one_out_gives(truss: Surrogates) -> None:
    mean, std = truss.leave_one_out()
    for i in (0, 7, 39):
        keep = torch.arange(40) != i
        rest = condition(truss.x[keep], truss.y[keep], truss.hyperparameters, truss.centre, truss.scale)
        m, s = rest.mean_and_std(truss.x[i : i + 1])
        s = (s.square() + truss.hyperparameters.noise * truss.scale.square()).sqrt()
        torch.testing.assert_close(mean[i : i + 1] / truss.scale, m / truss.scale, rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(std[i : i + 1], s, rtol=1e-7, atol=0)


def test_with_data_conditions_and_keeps_what_was_fitted(truss: Surrogates) -> None:
    x, y = data("three_truss", 45)
    more = truss.with_data(x[40:], y[40:])
    assert more.x.shape == (45, 2)
    assert more.centre is truss.centre
    assert torch.equal(more.hyperparameters.lengthscales, truss.hyperparameters.lengthscales)
    assert (more.mean_and_std(x[40:])[1] < truss.mean_and_std(x[40:])[1]).all()
    assert truss.x.shape == (40, 2)


def test_stored_surrogates_come_back_to_the_last_bit(car: Surrogates) -> None:
    plain, tensors = encode(car)
    assert not any(name.startswith(("factor", "weights")) for name in tensors)  # They are computed again.
    again = decode(Surrogates, json.loads(json.dumps(plain)), tensors)
    x = points(20, 11)
    assert torch.equal(again.mean_and_std(x)[0], car.mean_and_std(x)[0])
    assert torch.equal(again.mean_and_std(x)[1], car.mean_and_std(x)[1])
    assert torch.equal(
        fit(car.x, car.y, warm=again.hyperparameters).weights, fit(car.x, car.y, warm=car.hyperparameters).weights
    )


def test_damaged_surrogates_are_refused(car: Surrogates) -> None:
    plain, tensors = encode(car)
    with pytest.raises(SurrogateError, match="damaged"):
        decode(Surrogates, plain, {**tensors, "hyperparameters.noise": tensors["hyperparameters.noise"][:3]})
    with pytest.raises(ValueError, match="noise"):
        decode(Surrogates, plain, {k: v for k, v in tensors.items() if k != "hyperparameters.noise"})


def test_a_query_of_another_shape_is_refused(car: Surrogates) -> None:
    for x in (points(3, 10), points(3, 11)[0], points(3, 11).float()):
        for call in (car.predict, car.mean, car.mean_and_std, car.mean_and_gradient):
            with pytest.raises(SurrogateError, match="Expected query points b x 11"):
                call(x)
    with pytest.raises(SurrogateError, match="got 2 and 11"):
        car.with_data(points(3, 2), points(3, 11))


def test_a_covariance_without_a_factor_gets_more_noise_and_then_a_typed_error(
    car: Surrogates, monkeypatch: pytest.MonkeyPatch
) -> None:
    cholesky = torch.linalg.cholesky_ex

    def failing(K: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        factor, info = cholesky(K)
        return factor, torch.where(K[:, 0, 0] < least, torch.ones_like(info), info)

    monkeypatch.setattr(torch.linalg, "cholesky_ex", failing)
    h = replace(car.hyperparameters, noise=torch.full((11,), 1e-4, dtype=torch.float64))
    least = 1.005
    assert condition(car.x, car.y, h).hyperparameters.noise.tolist() == pytest.approx([1e-2] * 11)
    least = math.inf
    with pytest.raises(SurrogateError, match="output 0 with any noise"):
        condition(car.x, car.y, h)


def test_a_tiny_unit_is_not_mistaken_for_a_constant() -> None:
    x, y = data("three_truss", 30)
    small, plain = fit(x, y[:, :1] * 1e-12), fit(x, y[:, :1])
    assert float(small.scale) == pytest.approx(float(plain.scale) * 1e-12)
