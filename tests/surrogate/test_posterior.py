"""The posterior after some evaluations: warped surrogates, standard deviations as large as errors were, one orientation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from cbabo import Constraint, Objective, Problem, Real, Settings
from cbabo.domain.evaluations import Evaluations
from cbabo.surrogate import Surrogates, condition
from cbabo.surrogate.posterior import FitState, calibrated, fit_calibrated, measured_kappa
from cbabo.surrogate.prequential import recent_mean
from learned import evaluated, posterior_of, unit_points
from simulators import mirrored, simulate_mirrored, simulate_valley, valley

DEFAULT = Settings.default()


def bumpy() -> Problem:
    """An objective that is smooth except in a corner, where nobody looked at first."""
    return Problem(
        "bumpy",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("f"),
        [Constraint("c", "<=", low=0.0, high=2.0)],
    )


def simulate_bumpy(point: dict[str, float]) -> dict[str, float]:
    a, b = point["a"], point["b"]
    return {"f": a + b**2, "c": a * b + math.sin(40.0 * a) * max(0.0, a - 0.7)}


def kappa(before: Surrogates, after: Surrogates) -> torch.Tensor:
    """By what deviations were multiplied, q."""
    a, b = before.hyperparameters.amplitude, after.hyperparameters.amplitude
    assert a is not None
    assert b is not None
    return (b / a).sqrt()


def fitted(problem: Problem, simulate, count: int) -> Surrogates:  # type: ignore[no-untyped-def]
    posterior = posterior_of(evaluated(problem, simulate, count), DEFAULT)
    assert posterior.forms is not None
    y = torch.from_numpy(posterior.measured.y)
    return posterior.forms.fit(posterior.surrogates.x, y, None)


# ---- calibration


def test_deviations_are_as_large_as_leave_one_out_errors() -> None:
    plain = fitted(valley(), simulate_valley, 20)
    mean, std = plain.leave_one_out()
    rms = ((mean - plain.y) / std).square().mean(0).sqrt()
    after = calibrated(plain, measured_kappa(plain, 30))
    assert kappa(plain, after) == pytest.approx(rms.clamp(0.05, 20.0), rel=1e-6)
    mean, std = after.leave_one_out()
    inside = (rms > 0.05) & (rms < 6.0)
    assert ((mean - after.y) / std).square().mean(0).sqrt()[inside] == pytest.approx(1.0, rel=1e-6)
    assert after.mean(unit_points(5, 2)).equal(plain.mean(unit_points(5, 2)))


def test_errors_at_designs_that_were_chosen_count_once_there_are_five() -> None:
    """Designs in the order of a: each is an extrapolation from those before it, and errs more than an interpolation."""
    rows = sorted(evaluated(bumpy(), simulate_bumpy, 24), key=lambda e: e.point["a"])
    plain = posterior_of(Evaluations(bumpy(), tuple(rows)), DEFAULT).surrogates
    alone = calibrated(plain, measured_kappa(plain, 24))
    assert kappa(alone, calibrated(plain, measured_kappa(plain, 20))).tolist() == [1.0, 1.0]  # four
    assert float(kappa(alone, calibrated(plain, measured_kappa(plain, 19)))[1]) > 1.1


def test_predicting_each_from_those_before_is_what_it_says() -> None:
    """The errors that count are those of surrogates with the same hyperparameters and fewer data, one after the other."""
    plain = fitted(bumpy(), simulate_bumpy, 24)
    after = calibrated(plain, measured_kappa(plain, 14))
    h = plain.hyperparameters
    assert h.amplitude is not None
    errors = []
    for i in range(14, 24):
        before = condition(plain.x[:i], plain.y[:i], h, plain.centre, plain.scale)
        mean, std = before.mean_and_std(plain.x[i : i + 1])
        errors.append((mean - plain.y[i : i + 1]) / std)
    prequential = recent_mean(torch.cat(errors).T.square()).sqrt()
    mean, std = plain.leave_one_out()
    loo = ((mean - plain.y) / std).square().mean(0).sqrt()
    assert kappa(plain, after) == pytest.approx(torch.maximum(prequential, loo).clamp(0.05, 20.0), rel=1e-3)


def test_deviations_are_neither_swallowed_nor_blown_up() -> None:
    """However good or bad errors were, kappa stays between 0.05 and 20."""
    plain = fitted(valley(), simulate_valley, 20)
    h = plain.hyperparameters
    assert h.amplitude is not None
    for factor, expected in ((1e-12, 20.0), (1e12, 0.05)):
        odd = replace(plain, hyperparameters=replace(h, amplitude=h.amplitude * factor))
        assert kappa(odd, calibrated(odd, measured_kappa(odd, 30))).tolist() == pytest.approx([expected] * 3)


def test_a_constant_output_has_finite_deviations() -> None:
    posterior = posterior_of(evaluated(valley(), lambda p: {**simulate_valley(p), "c": 0.7}, 20), DEFAULT)
    mean, std = posterior.natural(*posterior.surrogates.mean_and_std(unit_points(10, 2)))
    assert mean[:, 1] == pytest.approx(0.7, abs=1e-9)
    assert bool(std.isfinite().all())
    assert bool((std > 0).all())


def test_reported_deviations_are_those_of_true_errors() -> None:
    """Calibrated on 40 designs of a rough output: at 400 others about two thirds lie within one deviation, on average of runs."""
    shares = []
    for seed in range(5):
        posterior = posterior_of(evaluated(bumpy(), simulate_bumpy, 40, seed), DEFAULT)
        x = unit_points(400, 2, seed=5)
        truth = np.array([simulate_bumpy(p)["c"] for p in bumpy().space.points(x.numpy())])
        mean, std = (t.numpy()[:, 1] for t in posterior.natural(*posterior.surrogates.mean_and_std(x)))
        shares.append(float((np.abs(mean - truth) <= std).mean()))
    assert 0.55 < np.mean(shares) < 0.85


# ---- designs under way


def test_where_designs_are_under_way_less_is_left_to_learn() -> None:
    posterior = posterior_of(evaluated(bumpy(), simulate_bumpy, 20), DEFAULT)
    away = torch.tensor([[0.95, 0.95]], dtype=torch.float64)
    expecting = posterior.fantasize(away)
    (before, sure), (after, surer) = (b.surrogates.mean_and_std(away) for b in (posterior, expecting))
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)
    assert bool((surer < 0.5 * sure).all())
    elsewhere = unit_points(20, 2)
    assert expecting.surrogates.mean(elsewhere) == pytest.approx(posterior.surrogates.mean(elsewhere), abs=1e-6)
    assert len(expecting.measured) == len(posterior.measured)
    assert expecting.limits.base.equal(posterior.limits.base)


# ---- orientation and forms


def test_a_restated_problem_is_the_same_to_the_last_bit() -> None:
    one = posterior_of(evaluated(valley(), simulate_valley, 31), DEFAULT)
    two = posterior_of(evaluated(mirrored(), simulate_mirrored, 31), DEFAULT)
    assert one.surrogates.y.equal(two.surrogates.y)
    assert one.surrogates.factor.equal(two.surrogates.factor)
    assert one.limits.sign.equal(two.limits.sign)
    assert one.limits.goal == two.limits.goal
    theta = torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert one.limits.bound(theta).equal(two.limits.bound(theta))
    x = unit_points(5, 2)
    (a, da), (b, db) = (m.natural(*m.surrogates.mean_and_std(x)) for m in (one, two))
    assert a.equal(-b)
    assert da.equal(db)


def test_the_objective_is_learned_so_that_less_is_better() -> None:
    for problem, simulate in ((valley(), simulate_valley), (mirrored(), simulate_mirrored)):
        posterior = posterior_of(evaluated(problem, simulate, 12), DEFAULT)
        assert posterior.limits.goal == 1.0
        assert posterior.warp is not None
        assert posterior.warp.orientation[0] == problem.objective.sign


def test_forms_are_chosen_at_the_end_of_the_initial_design_and_after_growth() -> None:
    def decades(point: dict[str, float]) -> dict[str, float]:
        return {**simulate_valley(point), "c": math.exp(6.0 * point["a"])}

    few = fit_calibrated(evaluated(valley(), decades, 29), FitState(), 30)
    assert few.formed == 0
    assert few.warp is not None
    assert not bool(few.warp.curved.any())
    enough = fit_calibrated(evaluated(valley(), decades, 30), FitState(), 30)
    assert enough.formed == 30
    assert enough.warp is not None
    assert bool(enough.warp.curved[1])
    later = fit_calibrated(evaluated(valley(), decades, 40), enough.fit_state, 30)
    assert later.formed == 30
    assert later.warp is not None
    assert later.warp.width.equal(enough.warp.width)
    assert fit_calibrated(evaluated(valley(), decades, 48), enough.fit_state, 30).formed == 48


def test_a_limit_is_warped_with_its_output() -> None:
    """Whatever the warp, a measured design obeys its limit as learned if and only if it does so as measured."""

    def decades(point: dict[str, float]) -> dict[str, float]:
        return {**simulate_valley(point), "c": math.exp(6.0 * point["a"]) / 100.0}

    evaluations = evaluated(valley(), decades, 40)
    posterior = posterior_of(evaluations, DEFAULT)
    assert posterior.warp is not None
    assert bool(posterior.warp.curved.any())
    box = valley().box
    theta = np.random.default_rng(0).random((30, 2))
    limits, y = posterior.limits, posterior.surrogates.y
    for row in theta:
        bound = limits.bound(torch.from_numpy(row[None]))
        learned = (limits.sign * y[:, limits.output] <= bound + 1e-12).all(1).numpy()
        told = box.feasible(evaluations.y, box.from_theta(np.repeat(row[None], len(y), axis=0)))
        assert (learned == told).all()


def test_plain_surrogates_are_left_as_they_are() -> None:
    posterior = posterior_of(evaluated(valley(), simulate_valley, 12), Settings.paper())
    assert posterior.warp is None
    assert posterior.failure_model is None
    assert posterior.surrogates.y.equal(torch.from_numpy(posterior.measured.y))
    assert posterior.surrogates.hyperparameters.amplitude is None


def test_exact_repetitions_teach_nothing() -> None:
    """They would predict each other, and standard deviations would be far too small."""
    once = evaluated(bumpy(), simulate_bumpy, 20)
    twice = posterior_of(Evaluations(bumpy(), (*once, *once[:7])), DEFAULT)
    assert len(twice.measured) == 20
    assert twice.surrogates.factor.equal(posterior_of(once, DEFAULT).surrogates.factor)
    noisy = [replace(e, id=90 + i, outputs={**e.outputs, "c": e.outputs["c"] + 1e-3}) for i, e in enumerate(once[:7])]
    found = posterior_of(Evaluations(bumpy(), (*once, *noisy)), DEFAULT)
    assert len(found.measured) == 20
    assert found.counts is not None
    assert found.counts.tolist() == [2.0] * 7 + [1.0] * 13
    assert found.exact is not None
    assert found.exact.tolist() == [name != "c" for name in bumpy().outputs]
    assert len(posterior_of(Evaluations(bumpy(), (*once, *once)), Settings.paper()).measured) == 40


def test_deviations_that_calibration_lowered_are_as_fitted_again() -> None:
    posterior = posterior_of(evaluated(valley(), simulate_valley, 30), DEFAULT)
    assert posterior.kappa is not None
    lowered = replace(posterior, kappa=torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64))
    x = unit_points(5, 2)
    ratio = lowered.not_lowered().surrogates.mean_and_std(x)[1] / lowered.surrogates.mean_and_std(x)[1]
    assert ratio.numpy() == pytest.approx(np.tile([2.0, 1.0, 1.0], (5, 1)), rel=1e-3)
    assert lowered.not_lowered().kappa.tolist() == [1.0, 2.0, 1.0]  # type: ignore[union-attr]
