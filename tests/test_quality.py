"""Every measured design predicted from all others."""

from __future__ import annotations

import numpy as np
import pytest

from cbabo.evaluations import Evaluation, Evaluations
from cbabo.learner import Learner
from cbabo.model import make_model
from cbabo.quality import LEVELS, Quality, judge
from learned import QUICK, evaluated, model_of, simulate_valley, surrogates_of, valley


def test_predictions_are_the_surrogates_without_the_design() -> None:
    model = model_of(valley(), simulate_valley)
    quality = judge(model)
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
    assert 11 not in judge(model).ids


def test_calibration_counts_what_intervals_hold() -> None:
    z = np.random.default_rng(0).normal(size=(4000, 2)) * [1.0, 3.0]
    quality = Quality(("right", "sure"), np.arange(4000), z, np.zeros_like(z), np.ones_like(z), z)
    assert quality.covered.shape == (len(LEVELS), 2)
    assert quality.covered[:, 0] == pytest.approx(LEVELS, abs=0.03)
    assert (quality.covered[:, 1] < np.array(LEVELS)).all()  # deviations that are too small hold too little
    assert quality.explained == pytest.approx([0.0, 0.0], abs=0.01)


def test_a_constant_output_is_explained() -> None:
    ones = np.ones((5, 1))
    assert Quality(("f",), np.arange(5), ones, ones, ones, 0 * ones).explained.tolist() == [1.0]
