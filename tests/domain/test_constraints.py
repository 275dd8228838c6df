"""Constraints whose limits may move, and the box that those limits span."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cbabo.domain.constraints import FEASIBILITY_TOLERANCE, Constraint, ThresholdBox
from cbabo.domain.query import Query
from cbabo.errors import InputError

NAN, INF = math.nan, math.inf

_limits = st.floats(-1e6, 1e6)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def box_of(*constraints: Constraint) -> ThresholdBox:
    return ThresholdBox(constraints, tuple(dict.fromkeys(name for c in constraints for name in c.output_names)))


@st.composite
def movables(draw: st.DrawFn, name: str = "c") -> Constraint:
    low, high = sorted(draw(st.tuples(_limits, _limits)))
    assume(low < high)
    return Constraint(name, draw(st.sampled_from(["<=", ">="])), low=low, high=high)


@st.composite
def boxes(draw: st.DrawFn) -> ThresholdBox:
    return box_of(*(draw(movables(f"c{i}")) for i in range(draw(st.integers(1, 4)))))


def mirrored(constraint: Constraint) -> Constraint:
    """State the same limit on the negated output."""

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return replace(
        constraint,
        sense=">=" if constraint.sense == "<=" else "<=",
        low=minus(constraint.high),
        high=minus(constraint.low),
        limit=minus(constraint.limit),
        nominal=minus(constraint.nominal),
    )


# The threshold mapping


def test_theta_runs_from_strictest_to_most_relaxed() -> None:
    box = box_of(Constraint("stress", "<=", low=2.0, high=10.0), Constraint("frequency", ">=", low=20.0, high=60.0))
    assert box.from_theta(np.array([[0.0, 0.0], [1.0, 1.0], [0.25, 0.25]])).tolist() == [
        [2.0, 60.0],
        [10.0, 20.0],
        [4.0, 50.0],
    ]
    assert box.to_theta(np.array([[2.0, 60.0], [10.0, 20.0], [4.0, 50.0]])).tolist() == [[0, 0], [1, 1], [0.25, 0.25]]


@settings(max_examples=150, deadline=None)
@given(box=boxes())
def test_the_ends_of_the_box_are_exact_both_ways(box: ThresholdBox) -> None:
    strictest = np.array([[c.strictest for c in box.movable]])
    relaxed = np.array([[c.most_relaxed for c in box.movable]])
    assert np.array_equal(box.from_theta(np.zeros_like(strictest)), strictest)
    assert np.array_equal(box.from_theta(np.ones_like(strictest)), relaxed)
    assert np.array_equal(box.to_theta(strictest), np.zeros_like(strictest))
    assert np.array_equal(box.to_theta(relaxed), np.ones_like(strictest))


@settings(max_examples=150, deadline=None)
@given(constraint=movables(), theta=st.floats(0.0, 1.0))
@example(constraint=Constraint("c", ">=", low=0.1, high=0.3), theta=math.nextafter(1.0, 0.0))
def test_thresholds_come_back_and_never_leave_the_box(constraint: Constraint, theta: float) -> None:
    box = box_of(constraint)
    assert constraint.low is not None
    assert constraint.high is not None
    threshold = box.from_theta(np.array([[theta]]))
    assert constraint.low <= threshold[0, 0] <= constraint.high
    again = box.from_theta(box.to_theta(threshold))
    assert again == pytest.approx(threshold, rel=0, abs=1e-15 * max(abs(constraint.low), abs(constraint.high)))


@settings(max_examples=100, deadline=None)
@given(constraint=movables(), one=st.floats(0.0, 1.0), other=st.floats(0.0, 1.0), y=st.floats(-2e6, 2e6))
def test_relaxing_never_makes_a_design_infeasible(constraint: Constraint, one: float, other: float, y: float) -> None:
    strict, relaxed = sorted([one, other])
    box = box_of(constraint)
    feasible = box.feasible(np.full((2, 1), y), box.from_theta(np.array([[strict], [relaxed]])))
    assert feasible[1] or not feasible[0]


def test_thresholds_outside_the_box_go_outside_the_unit_cube() -> None:
    box = box_of(Constraint("s", "<=", low=0.0, high=2.0), Constraint("f", ">=", low=0.0, high=2.0))
    assert box.to_theta(np.array([[3.0, 3.0], [-1.0, -1.0]])).tolist() == [[1.5, -0.5], [-0.5, 1.5]]


@settings(max_examples=150, deadline=None)
@given(
    box=boxes(),
    flips=st.lists(st.booleans(), min_size=4, max_size=4),
    theta=st.lists(st.floats(-0.5, 1.5), min_size=4, max_size=4),
    y=st.lists(st.floats(-2e6, 2e6), min_size=4, max_size=4),
)
def test_greater_or_equal_restates_the_same_problem(
    box: ThresholdBox, flips: list[bool], theta: list[float], y: list[float]
) -> None:
    k = len(box.constraints)
    signs = np.array([-1.0 if flip else 1.0 for flip in flips[:k]])
    other = box_of(*(mirrored(c) if flip else c for c, flip in zip(box.constraints, flips, strict=False)))
    thetas, outputs = np.array([theta[:k]]), np.array([y[:k]])
    thresholds = box.from_theta(thetas)
    assert np.array_equal(other.from_theta(thetas), signs * thresholds)
    assert np.array_equal(other.to_theta(signs * thresholds), box.to_theta(thresholds))
    assert np.array_equal(other.violations(signs * outputs, signs * thresholds), box.violations(outputs, thresholds))
    assert np.array_equal(other.feasible(signs * outputs, signs * thresholds), box.feasible(outputs, thresholds))


# Feasibility


@pytest.mark.parametrize(
    ("constraint", "threshold", "scale"),
    [
        (Constraint("c", "<=", low=0.0, high=200.0), [100.0], 200.0),
        (Constraint("c", ">=", low=0.0, high=200.0), [100.0], 200.0),
        (Constraint("c", "<=", low=-1e-6, high=1e-6), [0.0], 2e-6),
        (Constraint("c", "<=", limit=5000.0), [], 5000.0),
        (Constraint("c", ">=", limit=-5000.0), [], 5000.0),
        (Constraint("c", "<=", limit=0.0), [], 1.0),
    ],
)
def test_the_tolerance_is_a_billionth_of_the_range_or_of_the_fixed_limit(
    constraint: Constraint, threshold: list[float], scale: float
) -> None:
    box = box_of(constraint)
    limit = threshold[0] if threshold else constraint.limit
    assert limit is not None
    assert (FEASIBILITY_TOLERANCE, constraint.scale) == (1e-9, scale)
    excess = np.array([-1.0, 0.0, 0.9e-9, 1.1e-9, 1.0, NAN]) * scale * constraint.sign
    y = (limit + excess)[:, None]
    feasible = box.feasible(y, np.repeat([threshold], len(y), axis=0))
    assert feasible.tolist() == [True, True, True, False, False, False]


def test_one_limit_on_several_outputs_must_be_obeyed_by_all() -> None:
    box = box_of(Constraint("members", "<=", low=1.0, high=3.0, outputs=["s1", "s2", "s3"]))
    y = np.array([[1.0, 1.5, 2.0], [1.0, 2.5, 2.0], [0.0, 0.0, 2.1], [2.0, 2.0, 2.0]])
    limits = np.full((4, 1), 2.0)
    assert box.violations(y, limits).tolist()[1] == [-1.0, 0.5, 0.0]
    assert box.feasible(y, limits).tolist() == [True, False, False, True]


def test_two_limits_on_one_output_make_a_band() -> None:
    box = box_of(
        Constraint("frequency", ">=", low=20.0, high=60.0),
        Constraint("frequency_max", "<=", low=80.0, high=99.0, outputs="frequency"),
    )
    assert box.outputs == ("frequency",)
    y = np.array([[39.0], [40.0], [70.0], [90.0], [91.0]])
    limits = np.repeat([[40.0, 90.0]], 5, axis=0)
    assert box.violations(y, limits)[0].tolist() == [1.0, -51.0]
    assert box.feasible(y, limits).tolist() == [False, True, True, True, False]


def test_a_fixed_limit_is_part_of_feasibility_and_not_of_theta() -> None:
    box = box_of(
        Constraint("mass", "<=", limit=12.0),
        Constraint("stress", "<=", low=0.0, high=10.0),
        Constraint("width", ">=", limit=1.0),
    )
    assert box.names == ("stress",)
    assert [limit.tolist() for limit in box.limits(np.array([[5.0], [6.0]]))] == [[12.0, 12.0], [5.0, 6.0], [1.0, 1.0]]
    y = np.array([[12.0, 5.0, 1.0], [12.1, 5.0, 1.0], [12.0, 5.1, 1.0], [12.0, 5.0, 0.9]])
    assert box.feasible(y, np.full((4, 1), 5.0)).tolist() == [True, False, False, False]


def test_outputs_are_found_by_name_whatever_their_order() -> None:
    constraints = (Constraint("a", "<=", low=0.0, high=1.0), Constraint("b", ">=", low=0.0, high=1.0))
    box = ThresholdBox(constraints, ("objective", "b", "a"))
    y = np.array([[99.0, 0.9, 0.1], [99.0, 0.1, 0.9]])
    assert box.feasible(y, np.full((2, 2), 0.5)).tolist() == [True, False]


def test_no_rows_are_no_answers() -> None:
    box = box_of(Constraint("a", low=0.0, high=1.0), Constraint("b", limit=1.0))
    assert box.feasible(np.zeros((0, 2)), np.zeros((0, 1))).shape == (0,)
    assert box.violations(np.zeros((0, 2)), np.zeros((0, 1))).shape == (0, 2)


# Thresholds as users give them


BOX = box_of(
    Constraint("stress", "<=", low=0.0, high=10.0, nominal=2.0),
    Constraint("mass", "<=", limit=12.0),
    Constraint("frequency", ">=", low=20.0, high=60.0),
    Constraint("slack", "<=", low=0.0, high=1.0),
)


def test_nominal_limits_are_the_stated_ones_or_the_middle_of_the_range() -> None:
    assert BOX.nominal == {"stress": 2.0, "frequency": 40.0, "slack": 0.5}


def test_limits_left_out_are_completed_with_the_nominal_ones() -> None:
    assert BOX.complete({"frequency": np.float32(30)}) == {"stress": 2.0, "frequency": 30.0, "slack": 0.5}
    assert BOX.complete({}) == BOX.nominal
    assert refusal(lambda: BOX.complete({"mass": 1.0})).startswith(
        "thresholds: the limit of 'mass' is fixed by the problem; expected stress, frequency, slack"
    )
    assert refusal(lambda: BOX.complete({"colour": 1.0})).startswith("thresholds: unknown constraint 'colour'")
    assert refusal(lambda: BOX.complete({"stress": NAN})).startswith("thresholds: stress must be a finite number")
    assert refusal(lambda: BOX.complete([1.0])) == "thresholds: expected a mapping of names to limits, got [1.0]"


@pytest.mark.parametrize(
    "thresholds",
    [
        {"slack": 0.5, "stress": 3, "frequency": np.float32(40)},
        pd.DataFrame({"slack": [0.5], "frequency": [40], "stress": [3.0]}),
        pd.DataFrame({"slack": [0.5], "frequency": [40], "stress": [3]}, dtype="Float64", index=["a"]),
        [{"slack": 0.5, "stress": 3, "frequency": 40}],
        [[3, 40, 0.5]],
        ((3.0, 40.0, 0.5),),
        np.array([[3.0, 40.0, 0.5]]),
    ],
)
def test_thresholds_come_by_name_as_a_table_or_as_rows(thresholds: Any) -> None:
    rows = BOX.array(thresholds)
    assert rows.tolist() == [[3.0, 40.0, 0.5]]
    assert rows.dtype == np.float64
    assert BOX.named(rows[0]) == {"stress": 3.0, "frequency": 40.0, "slack": 0.5}
    assert all(type(v) is float for v in BOX.named(rows[0]).values())


def test_tables_keep_their_rows_even_none() -> None:
    frame = pd.DataFrame({"frequency": [40.0, 50.0], "slack": [0.0, 1.0], "stress": [1.0, 2.0]})
    assert BOX.array(frame).tolist() == [[1.0, 40.0, 0.0], [2.0, 50.0, 1.0]]
    assert BOX.array(frame.iloc[:0]).shape == (0, 3)
    assert BOX.array(np.zeros((0, 3))).shape == (0, 3)


def test_rows_are_a_copy_of_what_was_given() -> None:
    given = np.array([[3.0, 40.0, 0.5]])
    BOX.array(given)[0, 0] = 99.0
    assert given[0, 0] == 3.0


GOOD = {"stress": 3.0, "frequency": 40.0, "slack": 0.5}


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({}, "thresholds: 'stress' is missing; expected stress, frequency, slack"),
        ([GOOD, {"stress": 1.0}], "thresholds[1]: 'frequency' is missing; expected stress, frequency, slack"),
        ([{**GOOD, "mass": 1.0}, GOOD], "thresholds[0]: the limit of 'mass' is fixed by the problem"),
        ([GOOD, {**GOOD, "slack": "x"}], "thresholds[1]: slack must be a finite number, got 'x'"),
        ([GOOD, [1.0, 2.0, 3.0]], "thresholds[1]: expected a mapping of names to limits as in the other rows"),
        ({"stress": 3.0, "slack": 0.5}, "thresholds: 'frequency' is missing; expected stress, frequency, slack"),
        (GOOD | {"mass": 1}, "thresholds: the limit of 'mass' is fixed by the problem; expected stress, frequency"),
        (GOOD | {"strain": 1}, "thresholds: unknown constraint 'strain'; expected stress, frequency, slack"),
        (GOOD | {3: 1}, "thresholds: unknown constraint 3; expected stress, frequency, slack"),
        (GOOD | {"stress": "3"}, "thresholds: stress must be a finite number, got '3'"),
        (GOOD | {"stress": None}, "thresholds: stress must be a finite number, got None"),
        (GOOD | {"stress": NAN}, "thresholds: stress must be a finite number, got nan"),
        (GOOD | {"stress": INF}, "thresholds: stress must be a finite number, got inf"),
        (GOOD | {"stress": True}, "thresholds: stress must be a finite number, got True"),
        (GOOD | {"stress": [3.0]}, "thresholds: stress must be a finite number, got [3.0]"),
        (GOOD | {"stress": 10**400}, "thresholds: stress must be a finite number, got 1000"),
        (pd.DataFrame([GOOD | {"weight": 1}]), "thresholds: unknown constraint 'weight'; expected stress"),
        (pd.DataFrame([GOOD]).drop(columns="slack"), "thresholds: 'slack' is missing"),
        (pd.DataFrame([GOOD, {"stress": 1.0}]), "thresholds: frequency must be a finite number, got nan"),
        (pd.DataFrame([GOOD | {"stress": pd.NA}]), "thresholds: stress must be a finite number, got <NA>"),
        (pd.DataFrame([GOOD | {"stress": "3"}]), "thresholds: stress must be a finite number, got '3'"),
        (pd.DataFrame([[1, 2, 3, 4]], columns=[*GOOD, "slack"]), "thresholds: the column 'slack' is there twice"),
        (pd.DataFrame([[1, 2, 3]]), "thresholds: unknown constraint 0; expected stress"),
        (pd.Series(GOOD), "thresholds: expected n rows and 3 columns (stress, frequency, slack), got shape (3,)"),
        ([3.0, 40.0, 0.5], "thresholds: expected n rows and 3 columns (stress, frequency, slack), got shape (3,)"),
        ([[3.0, 40.0]], "thresholds: expected n rows and 3 columns (stress, frequency, slack), got shape (1, 2)"),
        ([[3.0, 40.0, 0.5], [1.0]], "thresholds: expected n rows and 3 columns"),
        ([[3.0, 40.0, "x"]], "thresholds: expected n rows and 3 columns"),
        ([["3", "40", "0.5"]], "thresholds: expected n rows and 3 columns"),
        ([[True, False, True]], "thresholds: expected n rows and 3 columns"),
        ([[1j, 0, 0]], "thresholds: expected n rows and 3 columns"),
        ([[3.0, 40.0, NAN]], "thresholds: expected finite numbers, got NaN or infinity"),
        ([[3.0, 40.0, None]], "thresholds: expected finite numbers, got NaN or infinity"),
        (None, "thresholds: expected n rows and 3 columns"),
        (3, "thresholds: expected n rows and 3 columns"),
        ("stress", "thresholds: expected n rows and 3 columns"),
        (["stress"], "thresholds: expected n rows and 3 columns"),
        (iter([]), "thresholds: expected n rows and 3 columns"),
    ],
)
def test_thresholds_that_do_not_fit_get_one_sentence_naming_what(thresholds: Any, message: str) -> None:
    assert refusal(lambda: BOX.array(thresholds)).startswith(message)


# Stating constraints


def test_a_constraint_is_made_of_plain_values_and_frozen() -> None:
    constraint = Constraint(
        np.str_("c"), ">=", low=np.int64(1), high=np.float32(2), nominal=1, outputs=["a", np.str_("b")]
    )
    assert constraint == Constraint("c", ">=", low=1.0, high=2.0, nominal=1.0, outputs=("a", "b"))
    assert {type(v) for v in (constraint.low, constraint.high, constraint.nominal)} == {float}
    assert {type(v) for v in (constraint.name, *constraint.output_names)} == {str}
    assert hash(constraint) == hash(replace(constraint))
    with pytest.raises(FrozenInstanceError):
        constraint.low = 0.0  # type: ignore[misc]


def test_a_constraint_names_its_own_output_unless_told_otherwise() -> None:
    assert Constraint("c", low=0, high=1).output_names == ("c",)
    assert Constraint("c", low=0, high=1, outputs="d").output_names == ("d",)
    assert Constraint("c", low=0, high=1, outputs=["d", "c"]).output_names == ("d", "c")


def test_the_ends_and_the_sign_of_each_kind() -> None:
    below, above = Constraint("c", "<=", low=1, high=3), Constraint("c", ">=", low=1, high=3)
    fixed = Constraint("c", ">=", limit=2)
    assert (below.movable, below.sign, below.strictest, below.most_relaxed) == (True, 1.0, 1.0, 3.0)
    assert (above.movable, above.sign, above.strictest, above.most_relaxed) == (True, -1.0, 3.0, 1.0)
    assert (fixed.movable, fixed.sign, fixed.strictest, fixed.most_relaxed) == (False, -1.0, 2.0, 2.0)


@pytest.mark.parametrize("nominal", [0, 0.5, 1])
def test_a_nominal_limit_may_be_at_the_ends(nominal: float) -> None:
    assert Constraint("c", low=0, high=1, nominal=nominal).nominal == nominal


@pytest.mark.parametrize("key", ["low", "high", "limit", "nominal"])
@pytest.mark.parametrize(
    "value",
    [True, "1", "", NAN, INF, -INF, [1], {}, 1j, 10**400, 10**5000, np.array([[1], [2]]), pd.NA],
    ids=lambda value: type(value).__name__,
)
def test_a_limit_that_is_no_finite_number_gets_one_sentence(key: str, value: object) -> None:
    stated = {"limit": value} if key == "limit" else {"low": 0, "high": 1, key: value}
    message = refusal(lambda: Constraint("stress", **stated))  # type: ignore[arg-type]
    assert message.startswith(f"constraint 'stress': {key} must be a finite number, got ")


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({}, "constraint 'c': expected low and high (a limit that may move) or limit (a fixed one)"),
        ({"low": 0}, "constraint 'c': expected low and high"),
        ({"high": 0}, "constraint 'c': expected low and high"),
        ({"nominal": 0}, "constraint 'c': expected low and high"),
        ({"low": 1, "high": 1}, "constraint 'c': low must be below high, also for >=, got low=1.0, high=1.0"),
        ({"low": 2, "high": 1, "sense": ">="}, "constraint 'c': low must be below high, also for >=, got low=2.0"),
        ({"low": 2**53, "high": 2**53 + 1}, "constraint 'c': low must be below high"),
        ({"low": -1.7e308, "high": 1.7e308}, "constraint 'c': the range must be smaller than 1e308"),
        ({"limit": 1, "low": 0}, "constraint 'c': a fixed limit excludes low; give limit, or low and high"),
        ({"limit": 1, "high": 0}, "constraint 'c': a fixed limit excludes high"),
        ({"limit": 1, "nominal": 1}, "constraint 'c': a fixed limit excludes nominal"),
        ({"low": 0, "high": 1, "nominal": 1.1}, "constraint 'c': nominal must lie between 0.0 and 1.0, got 1.1"),
        ({"low": 0, "high": 1, "nominal": -1e-9}, "constraint 'c': nominal must lie between 0.0 and 1.0, got -1e-09"),
        ({"limit": 1, "unit": None}, "constraint 'c': the unit must be a printable string, got None"),
        ({"limit": 1, "unit": "a\nb"}, "constraint 'c': the unit must be a printable string"),
        ({"limit": 1, "outputs": []}, "constraint 'c': outputs must be a name or a list of names, got []"),
        ({"limit": 1, "outputs": 3}, "constraint 'c': outputs must be a name or a list of names, got 3"),
        ({"limit": 1, "outputs": {"a": 1}}, "constraint 'c': outputs must be a name or a list of names, got {'a': 1}"),
        ({"limit": 1, "outputs": {"a"}}, "constraint 'c': outputs must be a name or a list of names, got {'a'}"),
        ({"limit": 1, "outputs": ["a", "a"]}, "constraint 'c': outputs must be different names, got"),
        ({"limit": 1, "outputs": [None]}, "constraint 'c': outputs: the name must be a non-empty string, got None"),
        ({"limit": 1, "outputs": [["a"]]}, "constraint 'c': outputs: the name must be a non-empty string, got ['a']"),
        ({"limit": 1, "outputs": ""}, "constraint 'c': outputs: the name must be a non-empty string, got ''"),
        ({"limit": 1, "outputs": "a=b"}, "constraint 'c': outputs 'a=b': a name may not hold '='"),
        ({"limit": 1, "name": ""}, "constraint: the name must be a non-empty string, got ''"),
        ({"limit": 1, "name": None}, "constraint: the name must be a non-empty string, got None"),
        ({"limit": 1, "name": "a\nb"}, "constraint 'a\\nb': a name may not hold"),
    ],
)
def test_a_constraint_that_makes_no_sense_gets_one_sentence(stated: dict[str, Any], message: str) -> None:
    assert refusal(lambda: Constraint(**{"name": "c", **stated})).startswith(message)


@pytest.mark.parametrize("sense", ["=", "==", "<", ">", "≤", "", None, 3, ["<="], {"<="}, np.array(["<=", ">="])])
def test_another_sense_is_refused_and_equality_with_the_way_out(sense: Any) -> None:
    message = refusal(lambda: Constraint("c", sense, low=0, high=1))
    assert message.startswith("constraint 'c': sense must be '<=' or '>=', got ")
    assert "equality constraints are not supported: state two limits" in message


@pytest.mark.parametrize("far", [1e308, -1e308, 4e306])
def test_limits_far_beyond_the_box_are_read_without_overflow(far: float) -> None:
    box = ThresholdBox((Constraint("s", "<=", low=0.0, high=1e-9),), ("f", "s"))
    query = Query.of(box, {"s": far})
    assert np.isfinite(query.theta).all()
    assert len(query.warnings(0)) == 1
