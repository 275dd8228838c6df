"""Every measured design predicted from all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cbabo import Constraint, Objective, Problem, Real, Settings
from cbabo.answering.quality import LEVELS, Quality, explained_share, leave_one_out, maxima_advice
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.methods.method import Fitted
from cbabo.model import make_model
from learned import QUICK, evaluated, model_of, surrogates_of
from simulators import lattice, simulate_lattice, simulate_valley, valley

SOLVER = Settings.default().replace(library=16)


def test_predictions_are_the_surrogates_without_the_design() -> None:
    model = model_of(valley(), simulate_valley)
    quality = leave_one_out(model)
    assert quality.outputs == ("f", "c", "g")
    assert quality.observed.shape == quality.predicted.shape == quality.std.shape == (20, 3)
    assert quality.ids.tolist() == [row.id for row in model.evaluations]
    assert (quality.std > 0).all()
    assert (quality.explained > 0.9).all()  # a smooth simulator
    mean, std = surrogates_of(evaluated(valley(), simulate_valley, 20)).leave_one_out()
    assert quality.predicted == pytest.approx(mean.numpy(), rel=1e-9)
    assert quality.std == pytest.approx(std.numpy(), rel=1e-9)


def test_failed_evaluations_are_not_judged() -> None:
    rows = evaluated(valley(), simulate_valley, 10).rows
    failed = Evaluation(11, "failed", "run", dict(rows[0].point), {}, failure="no mesh")
    model = make_model(Evaluations(valley(), (*rows, failed)), Learner(0), QUICK, 0)
    assert 11 not in leave_one_out(model).ids


def test_exact_repetitions_are_judged_once() -> None:
    model = model_of(lattice(), simulate_lattice, count=24, settings=SOLVER)
    quality = leave_one_out(model)
    assert len(quality.ids) == len(quality.observed) == len(quality.predicted) <= 12
    assert np.isfinite(quality.z).all()


def test_calibration_counts_what_intervals_hold() -> None:
    z = np.random.default_rng(0).normal(size=(4000, 2)) * [1.0, 3.0]
    quality = Quality(("right", "sure"), np.arange(4000), z, np.zeros_like(z), np.ones_like(z), z, np.zeros(2))
    assert quality.covered.shape == (len(LEVELS), 2)
    assert quality.covered[:, 0] == pytest.approx(LEVELS, abs=0.03)
    assert (quality.covered[:, 1] < np.array(LEVELS)).all()  # deviations that are too small hold too little


def test_explained_is_one_for_the_truth_and_nothing_for_the_mean() -> None:
    observed = np.array([[1.0, 4.0, 2.0, 7.0], [2.0, 6.0, 4.0, 7.0]]).T @ np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    constant = np.ones((4, 1))
    assert explained_share(np.hstack([observed, constant]), np.hstack([observed, constant])).tolist() == [1.0] * 4
    assert explained_share(observed, np.tile(observed.mean(axis=0), (4, 1))) == pytest.approx([0.0] * 3)


def test_a_wild_value_is_judged_on_the_scale_on_which_it_is_learned() -> None:
    def wild(point: dict[str, float]) -> dict[str, float]:
        outputs = simulate_valley(point)
        return {**outputs, "c": float(np.exp(6.0 * outputs["c"]))}

    model = make_model(evaluated(valley(), wild, 40), Learner(0), SOLVER, 0)
    quality = leave_one_out(model)
    assert quality.explained[1] > 0.9
    assert np.array_equal(quality.observed, model.evaluations.y)
    assert (quality.std > 0).all()


def hangers(form: str, count: int) -> Any:
    """A model of six hangers with forces that depend on all cross sections; their stresses as `form` says."""
    random = np.random.default_rng(0)
    variables = [Real(f"a{i}", 1.0, 4.0) for i in range(6)]
    problem = Problem("hangers", variables, Objective("mass"), [Constraint("stress", "<=", low=1.0, high=3.0)])
    rows = []
    for i in range(count):
        a = random.uniform(1.0, 4.0, 6)
        share = a**0.5 / (a**0.5).sum()
        stress = 8.0 * share * np.linspace(1.0, 1.3, 6) / a
        outputs = {
            "maximum": {"stress": stress.max()},
            "sum": {"stress": stress.sum()},
            "parts": {f"stress[{j}]": v for j, v in enumerate(stress)},
        }
        point = {f"a{j}": float(v) for j, v in enumerate(a)}
        measured = {"mass": float(a.sum()), **{name: float(v) for name, v in outputs[form].items()}}
        rows.append(Evaluation(i + 1, "complete", "import", point, measured))
    return make_model(Evaluations(problem, tuple(rows)), Learner(0), SOLVER, 0)


def test_a_maximum_is_recognised() -> None:
    (advice,) = maxima_advice(hangers("maximum", 80))
    assert advice.startswith("stress behaves like the maximum of several quantities")
    assert "return the list of all of them" in advice


@pytest.mark.parametrize(("form", "count"), [("sum", 80), ("parts", 80), ("maximum", 40)])
def test_smooth_outputs_and_parts_are_no_maxima_and_few_designs_do_not_tell(form: str, count: int) -> None:
    assert maxima_advice(hangers(form, count)) == ()


def test_errors_that_noise_explains_are_no_sign_of_a_maximum() -> None:
    model = hangers("maximum", 80)
    h = model.posterior.surrogates.hyperparameters
    noisy = replace(model.posterior.surrogates, hyperparameters=replace(h, noise=torch.full_like(h.noise, 0.01)))
    posterior = replace(model.posterior, surrogates=noisy)
    assert maxima_advice(Fitted(model.problem, model.method, model.seed, model.evaluations, posterior, None)) == ()
