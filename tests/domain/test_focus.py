from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cbabo import Constraint, Objective, Problem, Real
from cbabo.domain.focus import Focus
from cbabo.errors import InputError


def test_weights_are_shares(beam: Problem) -> None:
    frame = pd.DataFrame({"frequency": [3.0, 4.0], "weight": [1, 3], "stress": [2.0, 5.0]})
    focus = Focus.of(beam.box, frame)
    assert focus.thresholds == ((2.0, 3.0), (5.0, 4.0)), "in the order of the problem's movable constraints"
    assert focus.weights == (0.25, 0.75)
    assert np.array_equal(focus.array, [[2.0, 3.0], [5.0, 4.0]])
    assert list(frame.columns) == ["frequency", "weight", "stress"], "the caller's table is left as it is"


def test_without_weights_all_rows_count_the_same(beam: Problem) -> None:
    assert Focus.of(beam.box, [[2.0, 3.0], [5.0, 4.0]]).weights == (0.5, 0.5)
    assert Focus.of(beam.box, np.array([[2.0, 3.0]])).weights == (1.0,)


def test_one_mapping_is_one_row(beam: Problem) -> None:
    assert Focus.of(beam.box, {"stress": 2.0, "frequency": 3.0}) == Focus(((2.0, 3.0),), (1.0,))
    assert Focus.of(beam.box, {"stress": 2.0, "frequency": 3.0, "weight": 7.0}) == Focus(((2.0, 3.0),), (1.0,))


def test_a_list_of_mappings_is_one_row_each(beam: Problem) -> None:
    rows = [{"stress": 2.0, "frequency": 3.0}, {"frequency": 4.0, "weight": 3, "stress": 5.0}]
    assert Focus.of(beam.box, rows) == Focus(((2.0, 3.0), (5.0, 4.0)), (0.25, 0.75))
    assert rows[1]["weight"] == 3, "the caller's rows are left as they are"


def test_the_ends_of_the_box_are_inside(beam: Problem) -> None:
    Focus.of(beam.box, [[1.0, 2.0], [9.0, 6.0]])


def test_huge_weights_do_not_overflow(beam: Problem) -> None:
    focus = Focus.of(beam.box, pd.DataFrame({"stress": [2.0, 5.0], "frequency": [3.0, 4.0], "weight": [1e308, 1e308]}))
    assert focus.weights == (0.5, 0.5)


def test_a_constraint_may_be_called_weight() -> None:
    problem = Problem("p", [Real("x", 0, 1)], Objective("f"), [Constraint("weight", "<=", low=0, high=9)])
    focus = Focus.of(problem.box, pd.DataFrame({"weight": [2.0, 5.0]}))
    assert focus == Focus(((2.0,), (5.0,)), (0.5, 0.5))
    assert Focus.of(problem.box, {"weight": 2.0}).thresholds == ((2.0,),)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (pd.DataFrame({"stress": [], "frequency": []}), "expected at least one row of thresholds, got none"),
        ({"stress": 0.5, "frequency": 3.0}, "stress must lie between 1.0 and 9.0, got 0.5"),
        ({"stress": 2.0, "frequency": 7.0}, "frequency must lie between 2.0 and 6.0, got 7.0"),
        ({"stress": 2.0}, "'frequency' is missing; expected stress, frequency"),
        ({"stress": 2.0, "frequency": 3.0, "cost": 3.0}, "the limit of 'cost' is fixed by the problem"),
        ({"stress": 2.0, "frequency": 3.0, "colour": 3.0}, "unknown constraint 'colour'"),
        ({"stress": float("nan"), "frequency": 3.0}, "stress must be a finite number, got nan"),
        ({"stress": "2", "frequency": 3.0}, "stress must be a finite number, got '2'"),
        ({"stress": 2.0, "frequency": 3.0, "weight": 0.0}, "weights must be positive numbers, got 0.0"),
        ({"stress": 2.0, "frequency": 3.0, "weight": "much"}, "weights must be positive numbers, got 'much'"),
        (
            pd.DataFrame({"stress": [2], "frequency": [3], "weight": [np.nan]}),
            "weights must be positive numbers, got nan",
        ),
        (
            [{"stress": 2.0, "frequency": 3.0}, {"stress": 2.0}],
            "thresholds[1]: 'frequency' is missing; expected stress, frequency",
        ),
        (
            [{"stress": 2.0, "frequency": 3.0}, [2.0, 3.0]],
            "thresholds[1]: expected a mapping of names to limits as in the other rows, got [2.0, 3.0]",
        ),
        ([{"stress": 2.0, "frequency": 3.0, "weight": -1}], "weights must be positive numbers, got -1"),
        ([[2.0]], "expected n rows and 2 columns"),
        ("stress", "expected n rows and 2 columns"),
    ],
)
def test_what_is_refused(beam: Problem, given: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        Focus.of(beam.box, given)
    assert said in str(error.value)
    assert str(error.value).startswith("focus: ")
