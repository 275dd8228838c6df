"""How outputs stand to limits."""

from __future__ import annotations

import pytest

from cbabo import Constraint, Objective, Problem, Real
from cbabo.answering.answers import Answer, Estimate
from cbabo.answering.standings import limit_standings, standing
from simulators import make_beam


@pytest.mark.parametrize(
    ("room", "std", "expected"),
    [
        (1.0, 0.1, "slack"),
        (0.15, 0.1, "active"),
        (-0.05, 0.1, "active"),
        (-0.15, 0.1, "violated"),
        (0.05, 0.0, "active"),  # within 1 % of the range
        (0.15, 0.0, "slack"),
        (-1e-6, 0.0, "violated"),  # measured
        (-1e-12, 0.0, "active"),
    ],
)
def test_standing_is_told_by_room_and_deviation(room: float, std: float, expected: str) -> None:
    assert standing(room, std, 10.0) == expected


def test_every_limit_is_told_in_the_problems_order() -> None:
    outputs = {
        "mass": Estimate(3.0, 0.1),
        "stress": Estimate(4.0, 0.1),
        "frequency": Estimate(2.5, 0.1),
        "cost": Estimate(45.0, 0.0),
    }
    at = {"stress": 5.0, "frequency": 2.55}
    found = limit_standings(
        make_beam(), Answer(at, {"width": 2.0, "ribs": 1}, outputs["mass"], outputs, 0.5, "predicted")
    )
    assert [(s.title, s.limit, s.standing) for s in found] == [
        ("stress", 5.0, "slack"),
        ("frequency", 2.55, "active"),
        ("cost", 40.0, "violated"),
    ]
    assert [s.room for s in found] == pytest.approx([1.0, -0.05, -5.0])


def test_parts_stand_as_the_one_that_governs_and_several_outputs_are_named() -> None:
    limits = [Constraint("stress", low=1.0, high=9.0), Constraint("top", limit=5.0, outputs=["u", "v"])]
    problem = Problem("bar", [Real("x", 0.0, 1.0)], Objective("mass"), limits).expanded({"stress": 2})
    outputs = {name: Estimate(3.0, 0.1) for name in problem.reported_outputs}
    found = limit_standings(problem, Answer({"stress": 4.0}, {"x": 0.5}, outputs["mass"], outputs, 1.0, "predicted"))
    assert [s.title for s in found] == ["stress", "top (u)", "top (v)"]
