"""Repeated measurements, and surrogates of noisy outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.surrogate import Forms, Hyperparameters, Pointwise, Warp, condition, fit
from cbabo.surrogate.likelihood import Objective, Priors
from cbabo.surrogate.noise import NATURAL, Measurements, RowNoise
from cbabo.surrogate.posterior import FitState, fit_calibrated
from learned import simulate_valley, valley


def evaluated(points: list[dict[str, float]], noise: float, seed: int = 0) -> Evaluations:
    """Return evaluations of the valley whose output c is noisy."""
    random = np.random.default_rng(seed)
    rows = []
    for i, point in enumerate(points, start=1):
        outputs = simulate_valley(point)
        rows.append(
            Evaluation(i, "complete", "run", point, {**outputs, "c": outputs["c"] + noise * float(random.normal())})
        )
    return Evaluations(valley(), tuple(rows))


def spread_points(count: int, seed: int = 1) -> list[dict[str, float]]:
    """Return random points of the valley."""
    space = valley().space
    return space.points(np.random.default_rng(seed).random((count, 2)))


def test_measurements_of_one_design_are_collected() -> None:
    points = spread_points(4)
    found = Measurements.of(evaluated([*points, points[1], points[1]], 0.3))
    assert len(found.rows) == 4
    assert found.count.tolist() == [1.0, 3.0, 1.0, 1.0]
    column = valley().outputs.index("c")
    values = [e.outputs["c"] for e in evaluated([*points, points[1], points[1]], 0.3) if e.point == points[1]]
    assert float(found.y[1, column]) == pytest.approx(np.mean(values))
    assert float(found.spread[1, column]) == pytest.approx(np.var(values) * 3)
    assert float(found.noise_std[column]) == pytest.approx(np.std(values, ddof=1))


def test_only_outputs_that_differ_are_noisy() -> None:
    points = spread_points(4)
    found = Measurements.of(evaluated([*points, points[0]], 1e-3))
    expected = [name == "c" for name in valley().outputs]
    assert found.noisy("detect").tolist() == found.noisy("none").tolist() == expected
    assert found.noisy("smooth").all()
    assert not Measurements.of(evaluated([*points, points[0]], 0.0)).noisy("detect").any()


def test_means_of_repeats_have_the_posterior_of_single_measurements() -> None:
    """The mean of c measurements has a variance of eta / c."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(8, 2, generator=generator, dtype=torch.float64)
    y = torch.rand(8, 2, generator=generator, dtype=torch.float64)
    more = torch.rand(3, 2, generator=generator, dtype=torch.float64)
    h = Hyperparameters(
        torch.full((2, 2), 0.4, dtype=torch.float64),
        torch.tensor([0.1, 0.02], dtype=torch.float64),
        torch.zeros(2, dtype=torch.float64),
        amplitude=torch.ones(2, dtype=torch.float64),
        nugget=torch.zeros(2, dtype=torch.float64),
    )
    centre, scale = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    each = condition(torch.cat([x, x[:1], x[:1], x[1:2]]), torch.cat([y, more]), h, centre, scale)
    mean = y.clone()
    mean[0], mean[1] = torch.stack([y[0], more[0], more[1]]).mean(0), torch.stack([y[1], more[2]]).mean(0)
    relative = torch.ones(2, 8, dtype=torch.float64)
    relative[:, 0], relative[:, 1] = 1 / 3, 1 / 2
    merged = condition(x, mean, h, centre, scale, relative)
    at = torch.rand(5, 2, generator=generator, dtype=torch.float64)
    for ours, theirs in zip(merged.mean_and_std(at), each.mean_and_std(at), strict=True):
        torch.testing.assert_close(ours, theirs)
    point = Pointwise(merged)
    assert point.std(at[0].numpy()) == pytest.approx(merged.mean_and_std(at[:1])[1][0].numpy())


def test_the_likelihood_of_repeats_is_that_of_single_measurements() -> None:
    """It differs by a constant, so that differences between hyperparameters are the same; and it has the right gradient."""
    points = spread_points(12)
    measurements = Measurements.of(evaluated([*points, *points[:5], points[0]], 0.3))
    y = measurements.y[:, :1] * 0 + measurements.y[:, valley().outputs.index("c")].unsqueeze(1)
    rows = evaluated([*points, *points[:5], points[0]], 0.3)
    single = torch.from_numpy(rows.y[:, [valley().outputs.index("c")]])
    centre, scale = single.mean(0), single.std(0)
    noisy = torch.tensor([True])
    column = [valley().outputs.index("c")]
    part = Measurements(
        measurements.rows,
        y,
        measurements.count,
        measurements.spread[:, column] / scale.square(),
        measurements.precision[:, column],
        measurements.stated[column],
    )
    row_noise = RowNoise.of(part, noisy, torch.ones_like(y), torch.zeros_like(noisy))
    priors = Priors.sharp(2)
    merged = Objective(measurements.x, ((y - centre) / scale).T.contiguous(), priors, None, None, row_noise)
    apart = Objective(torch.from_numpy(rows.x), ((single - centre) / scale).T.contiguous(), priors)
    first, second = (
        torch.tensor([[a, b, c]], dtype=torch.float64) for a, b, c in ((-0.5, 0.2, -3.0), (0.3, -0.4, -5.0))
    )
    which = torch.tensor([0])
    ours, theirs = (
        n * (o.value_and_gradient(second, which)[0] - o.value_and_gradient(first, which)[0])
        for o, n in ((merged, 12), (apart, 18))
    )
    torch.testing.assert_close(ours, theirs)
    _, gradient = merged.value_and_gradient(first, which)
    for i in range(3):
        step = torch.zeros_like(first)
        step[:, i] = 1e-5
        above, below = (merged.value_and_gradient(first + sign * step, which)[0] for sign in (1.0, -1.0))
        torch.testing.assert_close(gradient[:, i], (above - below) / 2e-5, rtol=1e-6, atol=1e-8)


def test_noise_is_found_and_left_out_of_standard_deviations() -> None:
    points = spread_points(60)
    posterior = fit_calibrated(evaluated([*points, points[0]], 0.3), FitState(), 30)
    column = valley().outputs.index("c")
    assert posterior.exact is not None
    assert posterior.exact.tolist() == [j != column for j in range(len(valley().outputs))]
    assert 0.2 < float(posterior.noise[column]) < 0.45
    assert posterior.noise[[j for j in range(len(posterior.noise)) if j != column]].eq(0).all()
    x = torch.from_numpy(valley().space.unit(valley().space.array(spread_points(200, seed=9))))
    mean, std = posterior.natural(*posterior.surrogates.mean_and_std(x))
    true = np.array([simulate_valley(p)["c"] for p in spread_points(200, seed=9)])
    assert float(std[:, column].mean()) < 0.2  # The noise-free output is known better than one measurement.
    z = (true - mean[:, column].numpy()) / std[:, column].numpy()
    assert float(np.sqrt(np.square(z).mean())) < 2.0
    realisation = fit_calibrated(evaluated([*points, points[0]], 0.3), FitState(), 30, realisation=True)
    assert float(realisation.surrogates.mean_and_std(x)[1][:, column].mean()) > 0.25


def test_a_measured_design_counts_by_its_posterior() -> None:
    points = spread_points(40)
    posterior = fit_calibrated(evaluated([*points, points[0]], 0.3), FitState(), 30)
    column = valley().outputs.index("c")
    others = [j for j in range(len(valley().outputs)) if j != column]
    assert (posterior.z_std[:, column] > 0).all()
    assert posterior.z_std[:, others].eq(0).all()
    s = posterior.surrogates
    torch.testing.assert_close(posterior.z[:, others], ((s.y - s.centre) / s.scale)[:, others])
    assert not torch.allclose(posterior.z[:, column], ((s.y - s.centre) / s.scale)[:, column], atol=1e-3)


def test_without_repeats_scatter_is_not_taken_as_exact() -> None:
    found = fit_calibrated(evaluated(spread_points(80), 0.3), FitState(), 30)
    assert found.exact is not None
    assert not bool(found.exact[valley().outputs.index("c")])
    smooth = fit_calibrated(evaluated(spread_points(40), 0.0), FitState(), 30)
    assert smooth.all_exact


def test_forms_are_chosen_anew_once_noise_is_known() -> None:
    """A warp narrower than the noise, chosen before the first repeat, would distort it."""
    points = spread_points(40)
    before = fit_calibrated(evaluated(points, 0.3), FitState(), 30)
    after = fit_calibrated(evaluated([*points, points[0]], 0.3), before.fit_state, 30)
    column = valley().outputs.index("c")
    assert after.forms is not None
    assert after.formed == 41
    assert float(after.forms.warp.width[column]) >= 4.0 * float(after.noise[column])


@pytest.mark.parametrize("noise_in_natural_units", [True, False])
def test_noise_of_a_warped_output_is_the_same_in_natural_or_in_warped_units(noise_in_natural_units: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(80, 1, generator=generator, dtype=torch.float64)
    x[1] = x[0]
    noise = torch.randn(80, generator=generator, dtype=torch.float64)
    smooth = 4.0 * x[:, 0]
    y = smooth.exp() + noise if noise_in_natural_units else (smooth + 0.1 * noise).exp()
    points = [{"a": -1.0 + 2.0 * float(v), "b": 20.0} for v in x[:, 0]]
    rows = tuple(
        Evaluation(i, "complete", "run", p, {"f": 0.0, "c": float(v), "g": 0.0})
        for i, (p, v) in enumerate(zip(points, y, strict=True), start=1)
    )
    measurements = Measurements.of(Evaluations(valley(), rows))
    column = valley().outputs.index("c")
    part = Measurements(
        measurements.rows,
        measurements.y[:, [column]],
        measurements.count,
        measurements.spread[:, [column]],
        measurements.precision[:, [column]],
        measurements.stated[[column]],
    )
    forms = Forms(
        Warp(*torch.tensor([[1.0], [0.0], [5.0]], dtype=torch.float64)),
        torch.zeros(1, dtype=torch.int64),
        torch.zeros(1, 1, dtype=torch.float64),
    )
    kernel_x = (measurements.x[:, :1]).contiguous()
    found = forms.fit(kernel_x, part.y, None, None, (part, torch.tensor([True])))
    kind = found.hyperparameters.noise_kind
    assert kind is not None
    assert (int(kind[0]) == NATURAL) is noise_in_natural_units


def test_plain_fits_have_no_row_noise() -> None:
    x = torch.linspace(0.0, 1.0, 6, dtype=torch.float64).unsqueeze(1)
    assert fit(x, x.square()).relative_noise is None


def test_measurements_weigh_by_their_standard_errors() -> None:
    """A stated standard error makes an output noisy, and the more precise of two measurements counts more."""
    points = spread_points(3)
    outputs = [simulate_valley(p) for p in (*points, points[0])]
    outputs[3] = {**outputs[3], "c": outputs[3]["c"] + 1.0}
    sems = (0.1, 0.1, 0.1, 0.2)
    rows = tuple(
        Evaluation(i, "complete", "run", p, y, sem={"c": s})
        for i, (p, y, s) in enumerate(zip((*points, points[0]), outputs, sems, strict=True), start=1)
    )
    found = Measurements.of(Evaluations(valley(), rows))
    column = valley().outputs.index("c")
    assert found.noisy("detect").tolist() == [j == column for j in range(len(valley().outputs))]
    assert found.precision[:, column].tolist() == [1.25, 1.0, 1.0]
    assert float(found.y[0, column]) == pytest.approx(outputs[0]["c"] + 0.2)
