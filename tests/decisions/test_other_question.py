"""Other questions to the same data: swapped objectives, limits on recorded numbers, limits relative to a design."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cbabo import Answer, Constraint, Model, Objective, Problem, Real, Settings
from cbabo.answering.answers import Estimate
from cbabo.decisions.other_question import other_question
from cbabo.errors import InputError
from learned import model_of
from simulators import make_beam, simulate_beam

SMALL = Settings.default().replace(library=16, initial_evaluations=20)


def simulate(point: dict[str, float]) -> dict[str, float]:
    """Light designs are stressed; further numbers are returned too."""
    a, b = point["a"], point["b"]
    stress = 1.0 / (0.2 + a + b)
    return {"mass": a + 2.0 * b, "stress": stress, "stiffness": 1.0 + a, "price": 3.0 * a + b, "elements": 100.0 * a}


def beam() -> Problem:
    return Problem(
        "bar",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("mass", unit="kg"),
        [
            Constraint("stress", low=0.5, high=2.0, unit="MPa"),
            Constraint("stiffness", ">=", low=1.0, high=1.8, nominal=1.2),
        ],
    )


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(beam(), simulate, 40, SMALL)


def test_any_output_is_an_objective_and_the_old_one_a_limit(model: Model) -> None:
    answer = model.predict({"mass": 1.2, "stiffness": 1.1}, objective="stress")
    assert answer.thresholds == {"mass": 1.2, "stiffness": 1.1}
    assert answer.point == pytest.approx({"a": 1.0, "b": 0.1}, abs=0.02)
    assert answer.objective == answer.outputs["stress"]
    assert answer.objective.mean == pytest.approx(1.0 / 1.3, rel=0.02)
    assert answer.probability_feasible >= 0.979
    assert simulate(answer.point)["mass"] <= 1.2


def test_directions_are_those_of_the_limits_unless_stated(model: Model) -> None:
    most = model.predict({"mass": 0.5}, objective="stiffness")
    assert most.point["a"] == pytest.approx(0.5, abs=0.03)
    least = model.predict({"mass": 0.5, "stress": 2.0}, objective="minimize stiffness")
    assert least.point["a"] < 0.3
    own = model.predict({"mass": 0.5, "stress": 1.5, "stiffness": 1.3}, objective="stress")
    assert own.thresholds["stress"] == 1.5  # A stated limit on the new objective counts.


def test_without_a_limit_the_old_objective_may_have_any_measured_value(model: Model) -> None:
    answer = model.predict(objective="stress")
    assert "mass" in answer.thresholds
    assert answer.objective.mean == pytest.approx(1.0 / 2.2, rel=0.1)


def test_further_recorded_numbers_are_limited_and_optimised(model: Model) -> None:
    answer = model.predict({"stress": 1.0, "price": 1.5})
    assert answer.thresholds["price"] == 1.5
    assert answer.outputs["price"].mean <= 1.5
    assert simulate(answer.point)["stress"] <= 1.0
    least = model.predict({"stress": 1.0, "elements": (">=", 30.0)}, objective="price")
    assert least.outputs["elements"].mean >= 30.0
    assert least.point["a"] == pytest.approx(0.3, abs=0.02)
    assert set(model.further) == {"price", "elements"}
    posterior = model.further["price"]
    model.predict({"stress": 1.0, "price": 1.6})
    assert model.further["price"] is posterior  # It is fitted once.


def test_surrogates_of_the_problem_are_used_as_they_are(model: Model) -> None:
    other, query = other_question(model, {"mass": 1.2}, "stress")
    x = torch.rand(5, 2, dtype=torch.float64)
    names = other.problem.outputs
    mean, std = other.posterior.natural(*other.surrogates.mean_and_std(x))
    own = model.posterior.natural(*model.surrogates.mean_and_std(x))
    for j, name in enumerate(names):
        i = model.problem.outputs.index(name)
        assert mean[:, j].tolist() == pytest.approx(own[0][:, i].tolist(), rel=1e-9)
        assert std[:, j].tolist() == pytest.approx(own[1][:, i].tolist(), rel=1e-6)
    assert names[0] == "stress"
    assert query.thresholds.shape == (1, len(other.problem.box.names))


def test_the_same_answer_as_a_study_of_that_question(model: Model) -> None:
    """The truth: a swapped answer is close to the best of many designs."""
    grid = np.random.default_rng(0).random((20_000, 2))
    a, b = grid.T
    good = (a + 2.0 * b <= 0.9) & (1.0 + a >= 1.1)
    best = (1.0 / (0.2 + a + b))[good].min()
    answer = model.predict({"mass": 0.9, "stiffness": 1.1}, objective="stress")
    assert simulate(answer.point)["stress"] == pytest.approx(best, rel=0.02)


def test_scatter_and_another_objective_go_together(model: Model) -> None:
    answer = model.predict({"mass": 1.0}, objective="stress", scatter={"a": 0.02, "b": 0.02}, probability=0.9)
    random = np.random.default_rng(0).normal(size=(10_000, 2)) * 0.02
    x = np.clip(np.array([answer.point["a"], answer.point["b"]]) + random, 0.0, 1.0)
    found = ((x @ [1.0, 2.0] <= 1.0) & (1.0 + x[:, 0] >= 1.2)).mean()
    assert found == pytest.approx(answer.probability_feasible, abs=0.03)


def test_limits_relative_to_a_design(model: Model) -> None:
    today = {"a": 0.5, "b": 0.5}
    limits = model.relative(today, {"mass": -0.1})
    assert limits["mass"] == pytest.approx(0.9 * 1.5, rel=0.02)
    measured = model.evaluations[3]
    assert model.relative(measured.point, {"price": 0.05}) == {"price": pytest.approx(1.05 * measured.outputs["price"])}
    answer = model.predict({"stress": 1.0})
    assert model.relative(answer, {"stress": 0.0}) == {"stress": answer.outputs["stress"].mean}
    better = model.predict({**model.relative(answer, {"mass": 0.1}), "stiffness": 1.2}, objective="stress")
    assert better.objective.mean < answer.outputs["stress"].mean
    below = Answer({}, {}, Estimate(-2.0, 0.0), {"c": Estimate(-2.0, 0.0)}, 1.0, "predicted")
    assert model.relative(below, {"c": -0.1}) == {"c": pytest.approx(-2.2)}  # Less is less.


def test_the_own_limits_of_another_answer_have_that_answer(model: Model) -> None:
    answer = model.predict({"mass": 0.9, "stiffness": 1.1}, objective="stress")
    limits = model.own_limits(answer)
    assert limits == {"stress": answer.objective.mean, "stiffness": 1.1}
    own = model.predict(limits, probability=0.5)
    assert own.objective.mean == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize(
    ("limits", "objective", "said"),
    [
        ({}, "strain", "objective 'strain' is no number that all measured evaluations have"),
        ({"strain": 1.0}, None, "unknown constraint 'strain'"),
        ({"strain": 1.0}, "stress", "limit 'strain' is no number"),
        ({}, 3, "must be the name"),
        ({"mass": "light"}, "stress", "limit of mass must be a number"),
        ({"mass": ("=", 1.0)}, "stress", "limit of mass must be a number"),
        ({"stress": (">=", 1.0)}, None, "stress is limited by <="),
        ([1.0], "stress", "expected limits as a mapping"),
    ],
)
def test_wrong_questions_get_a_sentence(model: Model, limits: object, objective: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        model.predict(limits, objective=objective)  # type: ignore[arg-type]


def test_other_refusals(model: Model) -> None:
    with pytest.raises(InputError, match="leave method out"):
        model.predict({"mass": 1.0}, objective="stress", method="pcm")
    with pytest.raises(InputError, match="unknown output 'strain'"):
        model.relative({"a": 0.5, "b": 0.5}, {"strain": 0.1})
    with pytest.raises(InputError, match="must be a share"):
        model.relative({"a": 0.5, "b": 0.5}, {"mass": "5 %"})  # type: ignore[dict-item]
    fixed = model_of(make_beam(), simulate_beam, 20, SMALL)
    name = next(c.name for c in fixed.problem.constraints if not c.movable)
    with pytest.raises(InputError, match="is fixed by the problem"):
        fixed.predict({name: 1.0}, objective="stress")
    assert fixed.predict({"mass": 8.0}, objective="stress").outputs["mass"].mean <= 8.0


def test_parts_must_be_named_one_by_one() -> None:
    problem = Problem("parts", [Real("a", 0.1, 1.0)], Objective("mass"), [Constraint("stress", low=0.5, high=5.0)])
    listed = model_of(
        problem, lambda p: {"mass": p["a"], "stress[0]": 1.0 / p["a"], "stress[1]": 0.5 / p["a"]}, 12, SMALL
    )
    with pytest.raises(InputError, match="'stress' has parts; name one of them"):
        listed.predict({"mass": 0.5}, objective="stress")
    assert listed.predict({"mass": 0.5}, objective="stress[1]").point["a"] == pytest.approx(0.5, abs=0.02)
