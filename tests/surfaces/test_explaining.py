"""Explanations in sentences: what a paragraph about limits says, and how numbers are written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cbabo import Constraint, Model, Objective, Problem, Real, Settings
from cbabo.answering.answers import Answer
from cbabo.surfaces.explaining import joined_words, summary
from learned import model_of


@pytest.fixture(scope="module")
def model() -> Model:
    """The mass falls with the stress that is allowed, until 0.8 MPa; the sag never binds below 0.4 mm."""
    problem = Problem(
        "rod",
        [Real("area", 0.0, 1.0)],
        Objective("mass", unit="kg"),
        [
            Constraint("stress", "<=", low=0.2, high=1.0, unit="MPa", nominal=0.5),
            Constraint("sag", "<=", low=0.1, high=1.1, unit="mm", nominal=0.9),
        ],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        area = point["area"]
        return {"mass": 1.0 + 2.0 * area, "stress": 1.0 - 0.8 * area, "sag": 0.6 - 0.4 * area}

    return model_of(problem, simulate, 12, Settings.default().replace(library=16))


def measured(model: Model, **changes: object) -> Answer:
    return replace(model.predict(), status="verified", measurements=1, **changes)  # type: ignore[arg-type]


def test_a_paragraph_says_what_decides_what_costs_nothing_and_what_was_measured(model: Model) -> None:
    text = summary(model.problem, model.explain(), measured(model))
    first, relaxing, free, last = text.removesuffix(".").split(". ")
    assert first.startswith("With stress <= 0.5 MPa and sag <= 0.9 mm, the lowest mass is 2.25")
    assert first.endswith(" kg, as predicted")
    assert relaxing.startswith("Relaxing stress by 1 MPa saves 2.5")
    assert free == "Sag <= 0.35 mm instead of 0.9 mm would cost nothing" or free.startswith("Sag <= 0.36 mm")
    assert last.startswith("One more simulation of this design measured 2.25")
    assert last.endswith("and obeys all limits")


def test_a_paragraph_does_not_praise_what_broke_a_limit(model: Model) -> None:
    broken = replace(measured(model), status="measured", measurements=3)
    text = summary(model.problem, model.explain(), broken)
    assert "3 simulations of this design measured" in text
    assert text.endswith("but does not obey all limits.")


def test_a_paragraph_of_limits_that_conflict_names_a_way_out(model: Model) -> None:
    at = {"stress": 0.05, "sag": 0.9}
    text = summary(model.problem, model.explain(at), measured(model))
    assert text.startswith("Stress <= 0.05 MPa cannot be met")
    assert "way out" in text.lower()


def test_words_are_listed_as_in_a_sentence() -> None:
    assert joined_words(["a"]) == "a"
    assert joined_words(["a", "b", "c"], "or") == "a, b or c"
