"""Limits that cannot be met: which conflict, and the cheapest ways out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cbabo import Constraint, Model, Objective, Problem, Real, Settings
from cbabo.errors import InputError
from cbabo.surrogate.posterior import calibrated
from learned import model_of

SOLVER = Settings.default().replace(library=32)


def pulled() -> Problem:
    """Stress falls and mass grows with the width, noise falls with the depth; temperature is indifferent."""
    return Problem(
        "pulled",
        [Real("width", 0.0, 1.0), Real("depth", 0.0, 1.0)],
        Objective("price"),
        [
            Constraint("stress", "<=", low=0.0, high=1.0, unit="MPa"),
            Constraint("mass", "<=", low=0.0, high=2.0),
            Constraint("quiet", ">=", low=0.0, high=1.0),
            Constraint("temperature", "<=", low=0.0, high=4.0),
        ],
    )


def simulate(point: dict[str, float]) -> dict[str, float]:
    w, d = point["width"], point["depth"]
    return {
        "price": w + d + 0.3 * w * d,
        "stress": 1.0 - 0.8 * w + 0.1 * w**2,
        "mass": 0.2 + 1.5 * w + 0.1 * d,
        "quiet": 0.1 + 0.8 * d,
        "temperature": 1.0 + 0.2 * w * d,
    }


TORN = {"stress": 0.35, "mass": 0.6, "quiet": 0.5, "temperature": 3.0}
"""Stress needs a width of 0.92, mass allows one of 0.23; the others can be met."""


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(pulled(), simulate, 30, SOLVER)


def test_the_conflict_is_found_and_is_irreducible(model: Model) -> None:
    found = model.conflict(TORN)
    assert found is not None
    assert set(found.limits) == {"stress", "mass"}
    assert found.probability < 0.5
    assert found.thresholds == TORN
    relaxed = {c.name: c.most_relaxed for c in model.problem.box.movable}
    assert model.predict({**relaxed, **{n: TORN[n] for n in found.limits}}).status == "unreachable"
    for dropped in found.limits:
        kept = {n: TORN[n] for n in found.limits if n != dropped}
        assert model.predict({**relaxed, **kept}).status != "unreachable"


def test_what_can_be_met_has_no_conflict_and_needs_no_way_out(model: Model) -> None:
    at = {"stress": 0.9, "mass": 1.8, "quiet": 0.3, "temperature": 3.0}
    assert model.predict(at).feasible
    assert model.conflict(at) is None
    assert model.ways_out(at) == ()


def test_ways_out_can_be_met_and_differ_in_kind(model: Model) -> None:
    found = model.ways_out(TORN)
    assert len(found) >= 2
    assert len({way.moved for way in found}) == len(found)
    assert [way.cost for way in found] == sorted(way.cost for way in found)
    box = model.problem.box
    for way in found:
        assert way.answer.status != "unreachable"
        assert way.answer.thresholds == way.thresholds
        assert {name for name in TORN if way.thresholds[name] != TORN[name]} == set(way.moved) <= {"stress", "mass"}
        moves = box.to_theta(box.array(way.thresholds)) - box.to_theta(box.array(TORN))
        assert (moves >= 0.0).all()
        assert way.cost == pytest.approx(moves.sum(), abs=1e-9)
        y = simulate(dict(way.answer.point))
        assert box.feasible(np.array([[y[name] for name in model.problem.outputs]]), box.array(way.thresholds))[0]


def test_designs_of_ways_out_stay_away_from_their_limits(model: Model) -> None:
    """Deviations far from the data may be too small, so that a margin of a few of them is not enough."""
    outputs = model.problem.outputs
    for way in model.ways_out(TORN):
        least = [
            c.sign * (way.thresholds[c.name] - way.answer.outputs[name].mean) / c.scale
            for c in model.problem.box.movable
            for name in c.outputs
            if name in outputs
        ]
        assert min(least) >= 0.99e-3


def test_the_cheapest_way_out_is_the_true_one(model: Model) -> None:
    """Per share of range, 0.01 of width costs 0.0065 of stress at its end, or 0.0075 of mass: relaxing stress is cheaper."""
    cheapest = model.ways_out(TORN, count=1)[0]
    w = np.linspace(0.0, 1.0, 20001)
    d = 0.5
    outputs = [np.asarray(v) for v in (1.0 - 0.8 * w + 0.1 * w**2, 0.2 + 1.5 * w + 0.1 * d)]
    true = np.clip(outputs[0] - 0.35, 0.0, None) + np.clip(outputs[1] - 0.6, 0.0, None) / 2.0
    assert cheapest.cost == pytest.approx(true.min(), abs=0.01)


def test_costs_decide_which_limit_moves(model: Model) -> None:
    cheap_mass = model.ways_out(TORN, costs={"mass": 0.1, "stress": 10.0}, count=1)[0]
    assert cheap_mass.moved == ("mass",)
    assert cheap_mass.cost == pytest.approx(0.1 * (cheap_mass.thresholds["mass"] - TORN["mass"]), abs=1e-9)
    kept = model.ways_out(TORN, costs={"mass": math.inf})
    assert [way.moved for way in kept] == [("stress",)]


def test_the_closest_thresholds_are_close_and_can_be_met(model: Model) -> None:
    closest = model.predict(TORN).closest_thresholds
    assert closest is not None
    assert model.predict(closest).status != "unreachable"
    box = model.problem.box

    def distance(limits: Any) -> float:
        return float(np.linalg.norm(box.to_theta(box.array(limits)) - box.to_theta(box.array(TORN))))

    assert distance(closest) <= min(distance(way.thresholds) for way in model.ways_out(TORN)) + 1e-3


def test_limits_that_nothing_meets_have_an_empty_conflict() -> None:
    problem = Problem(
        "never",
        [Real("x", 0.0, 1.0)],
        Objective("f"),
        [Constraint("c", "<=", low=0.0, high=1.0), Constraint("g", "<=", limit=-5.0)],
    )
    model = model_of(problem, lambda p: {"f": p["x"], "c": p["x"] ** 2, "g": p["x"]}, 10, SOLVER)
    found = model.conflict()
    assert found is not None
    assert found.limits == ()
    assert model.ways_out() == ()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"costs": {"x": 1.0}}, "unknown limit 'x' in costs; expected one of stress, mass, quiet, temperature"),
        ({"costs": {"mass": 0.0}}, "the cost of mass must be a number above 0, or inf for a limit that stays, got 0.0"),
        ({"costs": {"mass": "much"}}, "the cost of mass must be a number above 0"),
        ({"costs": [1.0]}, "expected costs as a mapping of limits to numbers"),
        ({"count": 0}, "count must be a whole number from 1 on, got 0"),
        ({"count": True}, "count must be a whole number from 1 on"),
    ],
)
def test_wrong_questions_get_one_sentence(model: Model, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=r"^ways_out: [^\n]*$") as caught:
        model.ways_out(TORN, **given)
    assert words in str(caught.value)


STRICT = (
    TORN,
    {"stress": 0.25, "mass": 0.3, "quiet": 0.95, "temperature": 0.9},
    {"stress": 0.6, "mass": 1.9, "quiet": 0.99, "temperature": 1.0},
    {"stress": -0.2, "mass": 1.0, "quiet": -0.3, "temperature": 1.0},
)


@pytest.mark.parametrize("limits", STRICT)
def test_where_limits_cannot_be_met_the_design_is_one_for_the_closest_that_can(
    model: Model, limits: dict[str, float]
) -> None:
    answer = model.predict(limits)
    assert answer.status == "unreachable"
    closest = answer.closest_thresholds
    assert closest is not None
    true = simulate(answer.point)
    for c in model.problem.box.movable:
        sign = 1.0 if c.sense == "<=" else -1.0
        assert sign * (true[c.name] - closest[c.name]) <= 2e-3 * c.scale
    met = model.predict(closest)
    assert met.status in ("predicted", "verified")
    assert met.closest_thresholds is None


def test_outside_the_box_errors_inside_do_not_lower_deviations(model: Model) -> None:
    """Calibration by errors near the data makes ways out of limits in the box cheaper, but not of those that lie outside."""
    posterior, factor = model.posterior, torch.full((5,), 0.01, dtype=torch.float64)
    wide = replace(posterior, surrogates=calibrated(posterior.surrogates, 1e5 * factor), kappa=torch.ones_like(factor))
    narrow = replace(wide, surrogates=calibrated(wide.surrogates, factor), kappa=factor)
    doubtful, sure = (replace(model, posterior=p, library=None) for p in (wide, narrow))
    outside = {**TORN, "stress": -0.1}
    for asked, alike in ((TORN, False), (outside, True)):
        costs = [m.ways_out(asked)[0].cost for m in (doubtful, sure)]
        assert (costs[0] == pytest.approx(costs[1], rel=1e-4)) == alike
    way = sure.ways_out(outside)[0]
    assert sure.predict(way.thresholds).status != "unreachable"
