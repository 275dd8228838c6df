"""Every measured design predicted from all others."""

from __future__ import annotations

import numpy as np
import pytest

from cbabo import Settings
from cbabo.answering.quality import LEVELS, Quality, explained_share, leave_one_out
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from learned import QUICK, evaluated, model_of, surrogates_of
from simulators import lattice, simulate_lattice, simulate_valley, valley


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
    model = model_of(lattice(), simulate_lattice, count=24, settings=Settings.default())
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

    model = make_model(evaluated(valley(), wild, 40), Learner(0), Settings.default(), 0)
    quality = leave_one_out(model)
    assert quality.explained[1] > 0.9
    assert np.array_equal(quality.observed, model.evaluations.y)
    assert (quality.std > 0).all()
