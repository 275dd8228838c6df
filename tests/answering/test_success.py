"""The probability that the simulator returns at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from cbabo import Model, Settings
from cbabo.answering.predict import Answers
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.methods.method import measured_design
from cbabo.model import make_model
from cbabo.surfaces.records import answer_record
from cbabo.surrogate.failures import failure_probability, fit_failure_model
from learned import asked, cornered, evaluated, unit_points, with_failures
from simulators import simulate_valley, valley

SOLVER = Settings.default().replace(library=24)
THETA = np.random.default_rng(1).random((40, 2))


def answering(evaluations: Evaluations) -> Model:
    return make_model(evaluations, Learner(0), SOLVER, 0)


@pytest.mark.parametrize("fast", [False, True])
def test_answers_beside_a_failing_region_state_the_failure_models_probability(fast: bool) -> None:
    model = answering(cornered())
    failures = model.posterior.failure_model
    assert failures is not None
    found = model.predict_many(valley().box.from_theta(THETA), fast=fast)
    new = [i for i in range(40) if i not in found.measured]
    stated = found.probability_success
    assert len(new) > 10
    assert stated[new] == pytest.approx(1.0 - failures.probability(found.x[new]).numpy())
    assert stated[new].min() < 1.0
    assert (stated[list(found.measured)] == 1.0).all()
    answer = found.answer(new[0])
    assert answer.probability_success == answer_record(answer)["probability_success"] == stated[new[0]]


def test_accidents_count_by_their_share_nearby() -> None:
    everything = evaluated(valley(), simulate_valley, 40)
    failing = [everything[i].point for i in (3, 17, 22, 30)]
    evaluations = with_failures(everything, failing.__contains__)
    assert fit_failure_model(evaluations) is None
    anywhere = failure_probability(None, evaluations, unit_points(500, 2))
    assert float(anywhere.mean()) == pytest.approx(0.1, abs=0.04)
    chance = failure_probability(None, evaluations, torch.from_numpy(everything.x))
    assert float(chance[[3, 17, 22, 30]].min()) > 0.15 > float(chance.median())
    far = failure_probability(None, evaluations, torch.full((1, 2), 50.0, dtype=torch.float64))
    assert float(far) == pytest.approx(0.1)


def test_what_the_set_up_lost_does_not_count() -> None:
    rows = [replace(row, cause="set-up") if row.state == "failed" else row for row in cornered()]
    found = answering(Evaluations(valley(), tuple(rows))).predict_many(valley().box.from_theta(THETA))
    assert (found.probability_success == 1.0).all()


def test_a_measured_design_of_a_noisy_simulator_may_fail_again() -> None:
    random = np.random.default_rng(0)

    def scattered(point: dict[str, float]) -> dict[str, float]:
        return {name: y + 0.05 * random.standard_normal() for name, y in simulate_valley(point).items()}

    rows = evaluated(valley(), scattered, 40).rows
    again = Evaluation(41, "complete", "run", rows[0].point, scattered(rows[0].point))
    failed = [Evaluation(42 + i, "failed", "run", rows[i].point, {}, failure="mesh") for i in (1, 2)]
    model = answering(Evaluations(valley(), (*rows, again, *failed)))
    measured = Answers(model, asked(valley(), THETA[:1]), measured_design(model, rows[5], 0.98))
    assert measured.measured == {0: 5}
    assert measured.probability_success[0] < 1.0
