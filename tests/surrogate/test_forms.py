"""Choosing warps, stretches and kernels by likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from shapes import tensors

from cbabo.surrogate import Forms, Priors, choose, fit, kernel
from cbabo.surrogate.likelihood import Objective


def inputs(n: int, d: int = 2) -> torch.Tensor:
    return torch.rand(n, d, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def chosen(x: torch.Tensor, y: torch.Tensor, ratio: float = 0.0) -> Forms:
    q, d = y.shape[1], x.shape[1]
    plain = Forms.plain(torch.ones(q, dtype=torch.float64), d)
    nowhere = torch.full((q, 2), torch.nan, dtype=torch.float64)
    return choose(x, y, nowhere, torch.full((d,), ratio, dtype=torch.float64), plain, plain.fit(x, y, None))


def test_what_spans_decades_is_warped_and_what_is_smooth_is_left_alone() -> None:
    x = inputs(40)
    smooth = x[:, :1] ** 2 - x[:, 1:]
    decades = torch.exp(8.0 * x[:, :1] * x[:, 1:] + 2.0 * x[:, 1:])
    forms = chosen(x, torch.cat([smooth, decades], 1))
    assert forms.warp.curved.tolist() == [False, True]
    assert forms.family[0] == kernel.SMOOTH


def test_a_pole_at_a_lower_bound_is_stretched_or_warped_and_better_predicted() -> None:
    x, at = inputs(50), torch.rand(400, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64)

    def pole(x: torch.Tensor) -> torch.Tensor:
        return 1.0 / (x[:, :1] + 0.02) + x[:, 1:]

    forms = chosen(x, pole(x))
    assert bool(forms.warp.curved.any()) or bool(forms.stretch.any())
    before = fit(x, pole(x), priors=Priors.sharp(2)).mean(at)
    after = forms.warp.inverse(forms.fit(x, pole(x), None).mean(at))
    error = [float((m - pole(at)).square().mean().sqrt()) for m in (before, after)]
    assert error[1] < 0.5 * error[0]


def test_where_values_crowd_at_an_end_near_the_limits_they_are_told_apart_in_the_limits_unit() -> None:
    """A product of many variables is next to nothing almost everywhere; its limits ask when it is not."""
    x = torch.rand(120, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    y = -(0.3 + x).prod(1, keepdim=True)
    plain, ratio = Forms.plain(torch.ones(1, dtype=torch.float64), 8), torch.zeros(8, dtype=torch.float64)
    present = plain.fit(x[:60], y[:60], None)
    near, far = (torch.tensor([[a, a + 0.5]], dtype=torch.float64) for a in (-0.6, 5.0))
    forms = choose(x[:60], y[:60], near, ratio, plain, present)
    high = float(y[:60].max())
    assert float(forms.warp.centre) == pytest.approx(high)
    assert float(forms.warp.width) == pytest.approx(0.5 * 0.5) or float(forms.warp.width) == pytest.approx(0.05 * 0.5)
    elsewhere = choose(x[:60], y[:60], far, ratio, plain, present)
    assert float(elsewhere.warp.width) not in (pytest.approx(0.25), pytest.approx(0.025))
    error = [
        float((f.warp.inverse(f.fit(x[:60], y[:60], None).mean(x[60:])) - y[60:]).square().mean().sqrt())
        for f in (forms, plain)
    ]
    assert error[0] < 0.8 * error[1]


def test_an_output_that_is_the_same_in_most_designs_is_not_warped_by_rounding() -> None:
    """Most designs lie where a limit binds: there the output is one value, but for the last bit."""
    x = inputs(60)
    x[:40] = torch.tensor([0.5, 1.0], dtype=torch.float64)
    x[:40, 1] -= 1e-3 * torch.rand(40, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    y = -0.7025 + (x[:, :1] - 0.5) * (1.0 + 0.3 * x[:, 1:])
    y[:20] = float(np.nextafter(-0.7025, 0.0))
    forms = chosen(x, y)
    assert not bool(forms.warp.curved) or float(forms.warp.width) > 1e-9
    at = inputs(20) * 0.9
    mean = forms.warp.inverse(forms.fit(x, y, None).mean(at))
    assert bool(((mean + 0.7025).abs() < 2.0).all())


def test_a_kinked_output_gets_the_rougher_kernel() -> None:
    x = inputs(60)
    kinks = torch.maximum((x[:, :1] - 0.4).abs(), 0.7 * (x[:, 1:] - 0.6).abs())
    assert chosen(x, kinks).family.tolist() == [kernel.ROUGH]


def test_forms_are_kept_unless_another_is_clearly_better() -> None:
    x, y = tensors("car", 40)
    plain = Forms.plain(torch.ones(y.shape[1], dtype=torch.float64), x.shape[1])
    nowhere = torch.full((y.shape[1], 2), torch.nan, dtype=torch.float64)
    first = choose(x, y, nowhere, torch.zeros(x.shape[1], dtype=torch.float64), plain, plain.fit(x, y, None))
    again = choose(x, y, nowhere, torch.zeros(x.shape[1], dtype=torch.float64), first, first.fit(x, y, None))
    assert first.warp.width.equal(again.warp.width)
    assert first.stretch.equal(again.stretch)


def test_the_gradient_is_right_for_free_amplitudes_all_kernels_and_stretched_variables() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(3, 15, 3, generator=generator, dtype=torch.float64)
    z = torch.randn(3, 15, generator=generator, dtype=torch.float64)
    objective = Objective(x, z, Priors.sharp(3), torch.tensor([kernel.SMOOTH, kernel.ROUGH, kernel.ADDITIVE]))
    u = torch.tensor([[-0.3, 0.2, 0.4, -4.0], [0.1, -0.5, 0.3, -6.0], [-1.1, -0.5, 0.3, -5.0]], dtype=torch.float64)
    outputs = torch.arange(3)
    _, gradient = objective.value_and_gradient(u, outputs)
    for i in range(4):
        step = torch.zeros_like(u)
        step[:, i] = 1e-6
        up, down = (objective.value_and_gradient(u + s, outputs)[0] for s in (step, -step))
        assert torch.allclose(gradient[:, i], (up - down) / 2e-6, atol=1e-6)


def test_a_sum_of_waves_in_many_variables_is_learned_as_a_sum() -> None:
    x = torch.rand(150, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    y = (torch.sin(12.0 * x + torch.arange(8)) + x).sum(1, keepdim=True)
    forms = chosen(x[:120], y[:120])
    assert forms.family.tolist() == [kernel.ADDITIVE]
    orientation = torch.ones(1, dtype=torch.float64)
    errors = [
        (f.warp.inverse(f.fit(x[:120], y[:120], None).mean(x[120:])) - y[120:]).square().mean().sqrt() / y.std()
        for f in (forms, Forms.plain(orientation, 8))
    ]
    assert errors[0] < 0.3
    assert errors[1] > 0.8


def test_a_sum_is_of_its_variables_as_they_are_even_if_it_was_stretched_before() -> None:
    """What few evaluations suggested does not bind: from a stretched start the sum is found again."""
    x = torch.rand(100, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    y = torch.sin(14.0 * x + torch.arange(5)).sum(1, keepdim=True)
    plain = Forms.plain(torch.ones(1, dtype=torch.float64), 5)
    start = replace(plain, stretch=torch.full((1, 5), 4.0, dtype=torch.float64))
    none = torch.full((1, 2), torch.nan, dtype=torch.float64)
    forms = choose(x, y, none, torch.zeros(5, dtype=torch.float64), start, start.fit(x, y, None))
    assert forms.family.tolist() == [kernel.ADDITIVE]
    assert not forms.stretch.any()


def test_few_evaluations_do_not_tell_the_waves_of_a_sum_apart() -> None:
    """Lengthscales of a sum stay together unless the data tell them apart; they do here once there are enough."""
    x = torch.rand(120, 6, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    family = torch.tensor([kernel.ADDITIVE])
    alike, mixed = torch.sin(14.0 * x).sum(1, keepdim=True), torch.sin(14.0 * x[:, :3]).sum(1) + x[:, 3:].sum(1)
    few = fit(x[:40], alike[:40], priors=Priors.sharp(6), family=family).hyperparameters.lengthscales
    assert few.max() / few.min() < 4.0
    many = fit(x, mixed.unsqueeze(-1), priors=Priors.sharp(6), family=family).hyperparameters.lengthscales[0]
    assert many[3:].min() > 3.0 * many[:3].max()


def test_sharp_fits_predict_smooth_outputs_far_better_than_botorchs() -> None:
    x, y = tensors("car", 100)
    at, truth = tensors("car", 200, seed=7)
    errors = [
        ((s.mean(at) - truth) / truth.std(0)).square().mean(0).sqrt()
        for s in (fit(x, y), fit(x, y, priors=Priors.sharp(x.shape[1])))
    ]
    assert (errors[1] < 0.2 * errors[0]).all()
