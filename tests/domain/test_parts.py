from __future__ import annotations

import numpy as np
import pytest

from cbabo import Constraint, Objective, Problem, Real
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.parts import count_parts, taken_apart, whole_name


def bars(**stated: object) -> Problem:
    limits = [Constraint("stress", "<=", low=1.0, high=4.0), Constraint("buckling", ">=", low=1.0, high=2.0)]
    return Problem("bars", [Real("a", 0.5, 3.0)], Objective("mass"), limits, **stated)  # type: ignore[arg-type]


def complete(id: int, outputs: dict[str, object], **more: object) -> Evaluation:
    values, sem = taken_apart(outputs)  # type: ignore[arg-type]
    return Evaluation(id, "complete", "run", {"a": 1.0}, values, sem=sem, **more)  # type: ignore[arg-type]


def row(id: int, stress: object, **more: object) -> Evaluation:
    return complete(id, {"mass": 1.0, "stress": stress, "buckling": 1.5}, **more)


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("s[0]", "s"),
        ("s[12]", "s"),
        ("s[1][2]", "s[1]"),
        ("s[01]", None),
        ("s[-1]", None),
        ("[0]", None),
        ("s[x]", None),
    ],
)
def test_which_names_are_parts(name: str, whole: str | None) -> None:
    assert whole_name(name) == whole


def test_parts_are_counted_from_zero_without_gaps() -> None:
    assert count_parts("s", ["s[0]", "s[1]", "s[3]"]) == 2
    assert count_parts("s", ["s[1]"]) is None
    assert count_parts("s", ["s", "s[0]"]) is None, "the number itself counts"


def test_readings_are_taken_apart() -> None:
    values, sem = taken_apart({"a": 1.0, "b": {"value": 2.0, "sem": 0.1}, "c": [3.0, {"value": 4.0, "sem": 0.0}]})
    assert values == {"a": 1.0, "b": 2.0, "c[0]": 3.0, "c[1]": 4.0}
    assert sem == {"b": 0.1, "c[1]": 0.0}


def test_a_limit_on_an_output_is_a_limit_on_each_part() -> None:
    problem = bars().expanded({"stress": 2, "buckling": None, "mass": None})
    assert problem.outputs == ("mass", "stress[0]", "stress[1]", "buckling")
    assert problem.parts == {"stress": (1, 2)}
    assert problem.reported_outputs == ("mass", "stress", "buckling", "stress[0]", "stress[1]")
    assert problem.box.names == ("stress", "buckling")
    limits = np.array([[2.0, 1.0]])
    assert problem.box.feasible(np.array([[1.0, 1.9, 2.0, 1.5]]), limits)[0]
    assert not problem.box.feasible(np.array([[1.0, 1.9, 2.1, 1.5]]), limits)[0]
    assert Problem.from_dict(problem.to_dict()) == problem


def test_at_least_means_all_parts() -> None:
    problem = bars().expanded({"buckling": 2})
    y = np.array([[1.0, 1.0, 1.5, 1.2]])
    assert problem.box.feasible(y, np.array([[2.0, 1.2]]))[0]
    assert not problem.box.feasible(y, np.array([[2.0, 1.3]]))[0]
    assert problem.box.governing(y, np.array([[2.0, 1.3]]), (2, 3)).tolist() == [3]


def test_the_governing_part_is_the_one_closest_to_its_limit() -> None:
    interval = Problem(
        "p",
        [Real("a", 0, 1)],
        Objective("f"),
        [Constraint("s", low=4.0, high=6.0), Constraint("s_min", ">=", low=0, high=2, outputs="s")],
    ).expanded({"s": 2})
    y = np.array([[0.0, 4.5, 1.5]])
    assert interval.box.governing(y, np.array([[5.0, 0.0]]), (1, 2)).tolist() == [1]
    assert interval.box.governing(y, np.array([[6.0, 1.4]]), (1, 2)).tolist() == [2]


def test_valid_ranges_hold_for_each_part() -> None:
    table = Evaluations(bars(valid={"stress": (0.0, 10.0)}), (row(1, [1.0, 2.0]), row(2, [1.0, 11.0])))
    assert [r.state for r in table] == ["complete", "failed"]
    assert "'stress[1]' is out of range" in str(table[1].failure)


def test_the_first_measured_evaluation_says_how_many_parts_there_are() -> None:
    table = Evaluations(bars(), (row(1, [1.0, 2.0]), row(2, [1.0, 2.0, 3.0]), row(3, 1.0), row(4, [3.0, 4.0])))
    assert table.problem.outputs == ("mass", "stress[0]", "stress[1]", "buckling")
    assert [r.state for r in table] == ["complete", "failed", "failed", "complete"]
    assert table[1].failure == (
        "the output 'stress' must be a list of 2 as in the first measured evaluation, but is a list of 3; "
        "return the same parts for every design"
    )
    assert "but is one number" in str(table[2].failure)
    assert table[1].cause == "design"
    assert table.complete.y.tolist() == [[1.0, 1.0, 2.0, 1.5], [1.0, 3.0, 4.0, 1.5]]
    assert table.complete.problem == table.problem


def test_a_number_first_and_a_list_later_is_a_failure() -> None:
    table = Evaluations(bars(), (row(1, 2.0), row(2, [2.0])))
    assert table.problem == bars()
    assert "must be one number as in the first measured evaluation, but is a list of 1" in str(table[1].failure)


def test_an_excluded_evaluation_does_not_count_as_the_first() -> None:
    table = Evaluations(bars(), (row(1, [1.0], excluded="wrong mesh"), row(2, [1.0, 2.0])))
    assert table.problem.parts == {"stress": (1, 2)}
    assert [r.id for r in table.complete] == [2]


def test_names_that_look_like_parts_may_be_stated() -> None:
    limits = [Constraint("s", "<=", low=1.0, high=4.0, outputs=["s[0]", "s[1]"])]
    problem = Problem("bars", [Real("a", 0.5, 3.0)], Objective("mass"), limits)
    outputs = {"mass": 1.0, "s": 3.0, "s[0]": 2.0, "s[1]": 3.0, "s[2]": 9.0}
    table = Evaluations(problem, (complete(1, outputs),))  # type: ignore[arg-type]
    assert table[0].state == "complete", "further numbers change nothing"
    assert table.problem == problem


def test_standard_errors_are_a_matrix_with_nan_where_none_was_stated() -> None:
    table = Evaluations(bars(), (row(1, {"value": 2.0, "sem": 0.5}), row(2, 3.0)))
    assert np.array_equal(table.sem, [[np.nan, 0.5, np.nan], [np.nan] * 3], equal_nan=True)
    frame = table.to_frame()
    assert [name for name in frame.columns if name.endswith(" sem")] == ["stress sem"]
    assert np.array_equal(frame["stress sem"], [0.5, np.nan], equal_nan=True)
    parts = Evaluations(bars(), (row(1, [1.0, {"value": 2.0, "sem": 0.25}]),))
    assert list(parts.to_frame().filter(like="stress").columns) == ["stress[0]", "stress[1]", "stress[1] sem"]
