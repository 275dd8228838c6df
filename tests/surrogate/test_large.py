"""Many evaluations: hyperparameters fitted to a part of them, factors that fit into memory, and answers that stay as good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from shapes import tensors as data

from cbabo import problems
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.surrogate import Pointwise, Surrogates, fit, gp, hyperparameters, large
from cbabo.surrogate.failures import fit_failure_model
from cbabo.surrogate.large import fitted_rows, label_rows, most_conditioned, representative
from cbabo.surrogate.posterior import FitState, Posterior, fit_calibrated
from learned import evaluated, unit_points

CAR = problems.get("car_active")


def posterior_of(evaluations: Evaluations, most: int | None = None) -> Posterior:
    return fit_calibrated(evaluations, FitState(), 20, most=most)


@pytest.fixture(scope="module")
def rows() -> Evaluations:
    return evaluated(CAR.problem, CAR.evaluate, 240)


@pytest.fixture(scope="module")
def exact(rows: Evaluations) -> Posterior:
    return posterior_of(rows)


def test_hyperparameters_of_a_few_hundred_evaluations_are_fitted_to_all_of_them() -> None:
    assert all(fitted_rows(n, 20, additive=True) is None for n in (2, 400, 500))
    assert most_conditioned(15) >= 1900


@pytest.mark.parametrize("n", [501, 524, 525, 2000])
def test_the_evaluations_of_a_fit_are_old_and_new_ones(n: int) -> None:
    kept = fitted_rows(n, 11)
    assert kept is not None
    assert len(kept) == 500
    assert kept.unique().tolist() == kept.tolist()
    assert int(kept[0]) == 0
    assert 0.95 * n - 1 <= int(kept[-1]) < n


def test_the_evaluations_of_a_fit_change_only_after_the_data_have_grown_by_five_per_cent() -> None:
    chosen = {tuple(kept.tolist()) for n in range(1000, 1100) if (kept := fitted_rows(n, 11)) is not None}
    assert len(chosen) in (2, 3)


def test_additive_outputs_of_many_variables_are_fitted_to_fewer() -> None:
    kept = fitted_rows(600, 60, additive=True)
    assert kept is not None
    assert len(kept) == 288


def test_a_fit_to_a_part_ends_where_it_started_until_others_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "TUNING", replace(large.TUNING, fitted=60))
    x, y = data("car", 100)
    first = fit(x[:90], y[:90], rows=fitted_rows(90, 11))
    again = fit(x[:91], y[:91], rows=fitted_rows(90, 11), warm=first.hyperparameters)
    close = torch.testing.assert_close
    close(again.hyperparameters.lengthscales, first.hyperparameters.lengthscales, rtol=0.02, atol=0.0)
    assert len(again.x) == 91


def test_hyperparameters_of_a_part_predict_as_those_of_all_within_a_tenth_of_a_deviation(
    monkeypatch: pytest.MonkeyPatch, rows: Evaluations, exact: Posterior
) -> None:
    monkeypatch.setattr(large, "TUNING", replace(large.TUNING, fitted=160))
    part = posterior_of(rows)
    x = unit_points(200, 11)
    whole, found = exact.predictor.mean_and_std(x), part.predictor.mean_and_std(x)
    spread = exact.surrogates.y.std(0)
    truth = torch.tensor(
        [list(CAR.evaluate(point).values()) for point in CAR.problem.space.points(x.numpy())], dtype=torch.float64
    )
    error = [
        ((posterior.natural(*moments)[0] - truth) / truth.std(0)).square().mean(0).sqrt()
        for posterior, moments in ((exact, whole), (part, found))
    ]
    assert float((error[1] - error[0]).max()) < 0.02
    assert float(((whole[0] - found[0]) / spread).abs().median()) < 0.01


def test_kept_designs_are_the_best_the_newest_and_distant_ones(rows: Evaluations) -> None:
    kept = representative(rows, 80)
    assert len(kept) == len(set(kept.tolist())) == 80
    assert (np.diff(kept) > 0).all()
    assert set(range(220, 240)) <= set(kept.tolist())
    box = CAR.problem.box
    for theta in (0.0, 0.5, 1.0):
        limits = box.from_theta(np.full((1, len(box.names)), theta))
        obeyed = box.obeyed(rows.y, limits)[0]
        if obeyed.any():
            assert int(np.where(obeyed, rows.y[:, 0], np.inf).argmin()) in kept
    assert representative(rows, 240).tolist() == list(range(240))


def test_designs_that_were_measured_twice_are_kept(rows: Evaluations) -> None:
    counts = np.ones(240)
    counts[[17, 90]] = 2.0
    assert {17, 90} <= set(representative(rows, 30, counts).tolist())


def test_surrogates_of_fewer_designs_answer_nearly_as_well(rows: Evaluations, exact: Posterior) -> None:
    fewer = posterior_of(rows, most=160)
    assert len(fewer.surrogates.x) == 160
    assert len(fewer.measured) == 160
    x = unit_points(200, 11)
    spread = rows.y.std(0)
    difference = fewer.natural(*fewer.predictor.mean_and_std(x))[0] - exact.natural(*exact.predictor.mean_and_std(x))[0]
    assert float((difference.abs() / torch.from_numpy(spread)).median()) < 0.03


def test_factors_are_limited_by_memory(monkeypatch: pytest.MonkeyPatch, rows: Evaluations) -> None:
    monkeypatch.setattr(large, "TUNING", replace(large.TUNING, elements=11 * 100**2))
    found = posterior_of(rows)
    assert found.surrogates.factor.numel() == 11 * 100**2
    more = Evaluations(rows.problem, (*rows, Evaluation(241, "complete", "run", rows[0].point, dict(rows[0].outputs))))
    assert len(found.conditioned(more, "detect").surrogates.x) == 100


@pytest.mark.parametrize("group", [None, torch.tensor([0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9])])
def test_inverses_by_blocks_give_the_same_predictions(
    monkeypatch: pytest.MonkeyPatch, group: torch.Tensor | None
) -> None:
    x, y = data("car", 80)
    plain = fit(x, y, group=group)
    at = unit_points(1, 11)[0].numpy()
    expected = plain.leave_one_out(), plain.mean_and_std(x[:9] * 0.9), Pointwise(plain).std(at)
    monkeypatch.setattr(gp, "TUNING", replace(gp.TUNING, large=50))
    monkeypatch.setattr(hyperparameters, "TUNING", replace(hyperparameters.TUNING, block=16))
    blocks = Surrogates(x, plain.y, plain.hyperparameters, plain.centre, plain.scale, None, plain.factor, plain.weights)
    found = blocks.leave_one_out(), blocks.mean_and_std(x[:9] * 0.9), Pointwise(blocks).std(at)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-6)
    kept = blocks.with_deviations(replace(blocks.hyperparameters, amplitude=torch.ones(11).double()))
    assert kept.inverse_factor is blocks.inverse_factor


def test_rare_failures_are_all_fitted_to(monkeypatch: pytest.MonkeyPatch, rows: Evaluations) -> None:
    monkeypatch.setattr(large, "TUNING", replace(large.TUNING, fitted=60))
    labels = torch.zeros(240).double()
    labels[[3, 100, 239]] = 1.0
    kept = label_rows(labels)
    assert kept is not None
    assert len(kept) == 60
    assert {3, 100, 239} <= set(kept.tolist())
    halves = label_rows(torch.arange(240).double() % 2)
    assert halves is not None
    assert float((halves % 2).double().mean()) == 0.5
    tried = [
        replace(row, state="failed", cause="design", outputs={}, failure="no mesh") if row.point["x1"] > 1.2 else row
        for row in rows
    ]
    model = fit_failure_model(Evaluations(rows.problem, tuple(tried)))
    assert model is not None
    assert len(model.surrogates.x) == 240
