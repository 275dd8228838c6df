"""Recommended limits in round steps: what people would say aloud, with targets, and alternatives that differ in kind."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cbabo import Constraint, Model, Objective, Problem, Real, Settings
from cbabo.decisions.stepwise import round_step
from cbabo.errors import InputError
from learned import QUICK, model_of
from simulators import simulate_valley, valley

SOLVER = Settings.default().replace(library=64)
BASE = {"stress": 40.0, "mass": 8.0, "noise": 50.0}
STEPS = {"stress": 2.0, "mass": 0.5, "noise": 2.0}


def machine() -> Problem:
    """Stress and mass cost something, noise nothing."""
    return Problem(
        "machine",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("price"),
        [
            Constraint("stress", "<=", low=0.0, high=100.0, unit="MPa"),
            Constraint("mass", ">=", low=0.0, high=20.0),
            Constraint("noise", "<=", low=0.0, high=80.0),
        ],
    )


def simulate(point: dict[str, float]) -> dict[str, float]:
    a, b = point["a"], point["b"]
    price = 3.0 * a**2 + 2.0 * b**2 + a + b
    return {"price": price, "stress": 90.0 - 80.0 * a, "mass": 1.0 + 15.0 * b, "noise": 10.0 + 2.0 * a * b}


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(machine(), simulate, 30, SOLVER)


def test_limits_move_in_round_steps_and_those_that_buy_nothing_stay(model: Model) -> None:
    found = model.recommend(BASE, {"stress": "loosen", "mass": "loosen", "noise": "loosen"})
    assert found.thresholds in (
        {**BASE, "stress": 80.0, "mass": mass} for mass in (1.0, 0.5)
    )  # With or without a margin.
    assert found.improvement > 0.0
    for proposal in (found, *found.alternatives):
        for name, change in proposal.changes.items():
            steps = (change.after - change.before) / STEPS[name]
            assert steps == pytest.approx(round(steps), abs=1e-9) or change.after in (0.0, 1.0)
        assert proposal.thresholds["noise"] == 50.0


def test_alternatives_move_other_limits(model: Model) -> None:
    found = model.recommend(BASE, {"stress": "loosen", "mass": "loosen", "noise": "loosen"}, alternatives=2)
    kinds = [{n for n in BASE if p.thresholds[n] != BASE[n]} for p in (found, *found.alternatives)]
    assert kinds == [{"stress", "mass"}, {"stress"}, {"mass"}] or kinds == [{"stress", "mass"}, {"mass"}, {"stress"}]
    utilities = [p.utility for p in (found, *found.alternatives)]
    assert utilities == sorted(utilities, reverse=True)


def test_never_worse_than_one_limit_moved_alone(model: Model) -> None:
    found = model.recommend(BASE, {"stress": "loosen", "mass": "loosen"})
    assert found.improvement >= max(change.effect for change in found.changes.values()) - 1e-9
    now = model.predict(BASE)
    for name, price in now.prices.items():
        if name in found.changes and price.binds:
            reach = abs({"stress": 80.0, "mass": 0.0}[name] - BASE[name])
            alone = {**BASE, name: BASE[name] + math.copysign(min(reach, 1.0), found.changes[name].after - BASE[name])}
            assert found.improvement >= now.objective.mean - model.predict(alone).objective.mean - 1e-9


def test_a_limit_is_loosened_to_a_stated_value_at_most(model: Model) -> None:
    found = model.recommend(BASE, {"stress": ("loosen", 47.5), "mass": "lock"})
    assert found.thresholds == {**BASE, "stress": 47.5}
    assert found.changes["stress"].intent == "loosen"
    assert model.recommend(BASE, {"stress": (">", 95.0)}).thresholds["stress"] > 84.0  # Further than it goes by itself.


def test_a_limit_is_tightened_to_the_stated_value(model: Model) -> None:
    found = model.recommend(BASE, {"stress": ("tighten", 31.0), "mass": "loosen"})
    assert found.thresholds["stress"] == 31.0
    assert found.answer.warnings == ()


def test_a_value_that_cannot_be_met_is_approached_and_named(model: Model) -> None:
    found = model.recommend(BASE, {"stress": ("tighten", 2.0)})
    assert 10.0 <= found.thresholds["stress"] < 40.0
    after = f"{found.thresholds['stress']:g}"
    assert found.answer.warnings == (
        f"stress is tightened to {after} and not to 2, which is predicted to be unreachable",
    )


def test_locked_limits_stay_to_the_last_bit(model: Model) -> None:
    base = {**BASE, "mass": 7.300000000000001}
    found = model.recommend(base, {"stress": "loosen"})
    for proposal in (found, *found.alternatives):
        assert proposal.thresholds["mass"] == 7.300000000000001
        assert proposal.thresholds["noise"] == 50.0


def test_the_same_question_gets_the_same_answer(model: Model) -> None:
    assert model.recommend(BASE, {"stress": "loosen"}) == model.recommend(BASE, {"stress": "loosen"})


@pytest.mark.parametrize(
    ("intents", "words"),
    [
        ({"stress": ("loosen", 30.0)}, "stress at 40 can be loosened to a value between 40 and 100, got 30"),
        ({"stress": ("tighten", 41.0)}, "stress at 40 can be tightened to a value between 0 and 40, got 41"),
        ({"mass": ("loosen", 9.0)}, "mass at 8 can be loosened to a value between 0 and 8, got 9"),
        (
            {"stress": ("lock", 40.0)},
            'the intent of stress with a value must be ("tighten", number) or ("loosen", number)',
        ),
        ({"stress": ("loosen", "far")}, "the intent of stress with a value must be"),
        ({"stress": ("loosen", float("nan"))}, "the intent of stress with a value must be"),
        ({"stress": ("relax", 50.0)}, "the intent of stress must be tighten, lock or loosen"),
        ({"stress": ("loosen", 50.0, 1)}, "the intent of stress must be tighten, lock or loosen"),
    ],
)
def test_wrong_values_get_one_sentence(model: Model, intents: Any, words: str) -> None:
    with pytest.raises(InputError, match=r"^recommend: [^\n]*$") as caught:
        model.recommend(BASE, intents)
    assert words in str(caught.value)


def test_the_papers_method_takes_no_values() -> None:
    model = model_of(valley(), simulate_valley, 20, QUICK)
    with pytest.raises(InputError, match="the paper method moves limits by directions alone"):
        model.recommend({"c": 1.0, "g": 0.0}, {"c": ("loosen", 1.5)})


@pytest.mark.parametrize(
    ("largest", "step"), [(1.0, 1.0), (1.9, 1.0), (2.0, 2.0), (4.99, 2.0), (9.0, 5.0), (0.03, 0.02), (1e-7, 1e-7)]
)
def test_round_steps(largest: float, step: float) -> None:
    assert round_step(largest) == step
