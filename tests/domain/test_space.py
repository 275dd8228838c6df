"""Variables and the unit cube."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cbabo.domain.space import Discrete, Integer, Real, Space
from cbabo.errors import InputError

EPS = sys.float_info.epsilon
NAN, INF = math.nan, math.inf

_units = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20).map(np.array)
_anywhere = st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=20).map(np.array)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@st.composite
def reals(draw: st.DrawFn) -> Real:
    log = draw(st.booleans())
    bounds = st.floats(1e-150, 1e150) if log else st.floats(-1e300, 1e300)
    low, high = sorted(draw(st.tuples(bounds, bounds)))
    assume(low < high)
    return Real("x", low, high, log=log)


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    low = draw(st.one_of(st.integers(-100, 100), st.integers(-(2**53), 2**53 - 2000)))
    return Integer("n", low, low + draw(st.integers(1, 2000)))


@st.composite
def discretes(draw: st.DrawFn) -> Discrete:
    values = draw(st.lists(st.floats(-1e6, 1e6).map(lambda v: round(v, 4)), min_size=2, max_size=30, unique=True))
    return Discrete("d", values)


lattices = st.one_of(integers(), discretes())
variables = st.one_of(reals(), lattices)


# The unit cube


@settings(max_examples=150, deadline=None)
@given(variable=reals(), u=_units)
@example(variable=Real("x", 0.0, 5e-324), u=np.array([0.0, 0.4, 0.6, 1.0]))
@example(variable=Real("x", 1.0, 1.0 + EPS, log=True), u=np.array([0.0, 0.5, 1.0]))
@example(variable=Real("x", 1e-150, 1e150, log=True), u=np.array([0.1, 0.5, 0.9]))
def test_real_values_come_back_from_the_unit_cube(variable: Real, u: np.ndarray) -> None:
    values = variable.from_unit(u)
    again = variable.from_unit(variable.to_unit(values))
    if variable.log:  # an ulp of u is log(high / low) ulps of the value
        assert np.all(np.abs(again / values - 1.0) <= (4.0 + 2.0 * math.log(variable.high / variable.low)) * EPS)
    else:
        assert np.all(np.abs(again - values) <= 4.0 * EPS * max(abs(variable.low), abs(variable.high)))


@settings(max_examples=150, deadline=None)
@given(variable=reals())
def test_the_ends_of_a_real_are_exact(variable: Real) -> None:
    assert variable.from_unit(np.array([0.0, 1.0])).tolist() == [variable.low, variable.high]
    ends = variable.to_unit(np.array([variable.low, variable.high]))
    assert ends == pytest.approx([0.0, 1.0], abs=2 * EPS)


@settings(max_examples=100, deadline=None)
@given(variable=reals(), u=_anywhere)
def test_a_real_is_never_outside_its_bounds_and_never_turns_back(variable: Real, u: np.ndarray) -> None:
    values = variable.from_unit(np.sort(u))
    assert np.all((values >= variable.low) & (values <= variable.high))
    assert np.all(np.diff(values) >= 0)


def test_log_lays_the_unit_interval_out_on_the_logarithm() -> None:
    variable = Real("x", 1e-4, 1e4, log=True)
    assert variable.from_unit(np.array([0.25, 0.5, 0.75])) == pytest.approx([1e-2, 1.0, 1e2], rel=1e-12)
    assert variable.to_unit(np.array([1e-2, 1.0, 1e2])) == pytest.approx([0.25, 0.5, 0.75], rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(variable=lattices)
def test_lattice_values_come_back_exactly_from_the_unit_cube(variable: Integer | Discrete) -> None:
    values = np.array(variable.values, dtype=np.float64)
    u = variable.to_unit(values)
    assert (u[0], u[-1]) == (0.0, 1.0)
    assert np.all(np.diff(u) > 0)
    assert np.array_equal(variable.from_unit(u), values)


@settings(max_examples=100, deadline=None)
@given(variable=lattices, u=_anywhere)
def test_a_lattice_gives_only_legal_values_and_the_nearest_one(variable: Integer | Discrete, u: np.ndarray) -> None:
    legal = np.array(variable.values, dtype=np.float64)
    chosen = variable.from_unit(u)
    assert set(chosen) <= set(legal)
    assert set(variable.spread(np.clip(u, 0, 1))) <= set(legal)
    aimed = legal[0] + np.clip(u, 0, 1) * (legal[-1] - legal[0])
    nearest = np.abs(legal[:, None] - aimed).min(axis=0)
    assert np.all(np.abs(chosen - aimed) <= nearest)


def test_between_two_legal_values_the_nearer_one_wins_and_the_lower_of_equals() -> None:
    aimed = np.array([0.49, 0.51, 5.49, 5.5, 5.51])
    assert Discrete("d", [0, 1, 10]).from_unit(aimed / 10).tolist() == [0.0, 1.0, 1.0, 1.0, 10.0]


@settings(max_examples=100, deadline=None)
@given(variable=lattices, each=st.integers(1, 3))
def test_spread_gives_each_lattice_value_the_same_share(variable: Integer | Discrete, each: int) -> None:
    count = len(variable.values) * each
    shares = Counter(variable.spread((np.arange(count) + 0.5) / count).tolist())
    assert shares == Counter({float(v): each for v in variable.values})


def test_spread_includes_the_ends() -> None:
    assert Integer("n", 1, 3).spread(np.array([0.0, 1.0])).tolist() == [1.0, 3.0]
    assert Real("x", -2.0, 3.0).spread(np.array([0.0, 0.5, 1.0])).tolist() == [-2.0, 0.5, 3.0]


@settings(max_examples=150, deadline=None)
@given(data=st.data(), chosen=st.lists(variables, min_size=1, max_size=4), rows=st.integers(0, 4))
def test_points_of_a_space_are_legal_in_value_and_type(data: st.DataObject, chosen: list[Any], rows: int) -> None:
    space = Space(tuple(type(v)(**{**v.__dict__, "name": f"v{i}"}) for i, v in enumerate(chosen)))
    cells = st.lists(st.floats(-0.5, 1.5), min_size=len(chosen), max_size=len(chosen))
    x = np.array([data.draw(cells) for _ in range(rows)]).reshape(rows, len(chosen))
    for points in (space.points(x), space.spread(np.clip(x, 0, 1))):
        assert len(points) == rows
        for point in points:
            assert tuple(point) == space.names
            for variable in space.variables:
                value = point[variable.name]
                assert type(value) is (int if isinstance(variable, Integer) else float)
                assert variable.low <= value <= variable.high
                assert variable.values is None or value in variable.values
            assert space.check(point) == point
    natural = space.natural(x)
    assert np.array_equal(space.array(space.points(x)), natural)
    snapped = space.snap(x)
    assert np.all((snapped >= 0) & (snapped <= 1))
    for i, variable in enumerate(space.variables):
        if variable.values is not None:
            assert np.array_equal(space.snap(snapped)[:, i], snapped[:, i])


SPACE = Space((Real("x", 0.0, 1.0), Integer("teeth", 17, 28), Discrete("gauge", [0.345, 0.192])))


def test_a_space_knows_its_names_in_order() -> None:
    assert (SPACE.names, SPACE.dimension) == (("x", "teeth", "gauge"), 3)


def test_no_rows_stay_no_rows() -> None:
    none = np.zeros((0, 3))
    assert SPACE.points(none) == []
    assert SPACE.natural(none).shape == SPACE.unit(none).shape == SPACE.array([]).shape == (0, 3)


@pytest.mark.parametrize("method", ["points", "natural", "snap", "spread", "unit"])
@pytest.mark.parametrize(
    "rows",
    [None, 3, [], [0.5, 0.5, 0.5], [[0.5, 0.5]], [[0, 0, 0, 0]], [["a", 0, 0]], [[0, 0, 0], [0]], [[{}, 0, 0]],
     [[NAN, 0, 0]], [[0, INF, 0]], [[1j, 0, 0]], [["0", "0", "0"]], [[10**400, 0, 0]]],
)  # fmt: skip
def test_rows_of_another_shape_or_kind_get_one_sentence(method: str, rows: Any) -> None:
    message = refusal(lambda: getattr(SPACE, method)(rows))
    assert message.startswith("designs: expected ")


# Points


def test_a_point_is_returned_with_plain_legal_values_in_order() -> None:
    given = {"gauge": np.float64(0.345), "teeth": np.int64(20), "x": np.float32(0.5)}
    point = SPACE.check(given)
    assert list(point.items()) == [("x", 0.5), ("teeth", 20), ("gauge", 0.345)]
    assert [type(v) for v in point.values()] == [float, int, float]


def test_numbers_that_are_off_by_rounding_become_the_legal_ones() -> None:
    point = SPACE.check({"x": 1.0 + 1e-12, "teeth": 20.0 + 1e-12, "gauge": 0.345 - 1e-12})
    assert point == {"x": 1.0, "teeth": 20, "gauge": 0.345}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": 1.0001}, "point: x must lie between 0.0 and 1.0, got 1.0001"),
        ({"x": -1e-6}, "point: x must lie between 0.0 and 1.0, got -1e-06"),
        ({"teeth": 16}, "point: teeth must lie between 17 and 28, got 16.0"),
        ({"teeth": 20.5}, "point: teeth must be a whole number, got 20.5"),
        ({"teeth": 20.000001}, "point: teeth must be a whole number, got 20.000001"),
        ({"gauge": 0.2}, "point: gauge must be one of [0.192, 0.345], got 0.2"),
        ({"x": NAN}, "point: x must be a finite number, got nan"),
        ({"x": INF}, "point: x must be a finite number, got inf"),
        ({"x": True}, "point: x must be a finite number, got True"),
        ({"x": "0.5"}, "point: x must be a finite number, got '0.5'"),
        ({"x": None}, "point: x must be a finite number, got None"),
        ({"x": pd.NA}, "point: x must be a finite number, got <NA>"),
        ({"x": [0.5]}, "point: x must be a finite number, got [0.5]"),
        ({"y": 0.5}, "point: unknown variable 'y'; expected x, teeth, gauge"),
        ({3: 0.5}, "point: unknown variable 3; expected x, teeth, gauge"),
    ],
)
def test_a_point_with_an_illegal_value_gets_one_sentence_naming_it(change: dict[Any, Any], message: str) -> None:
    assert refusal(lambda: SPACE.check({"x": 0.5, "teeth": 20, "gauge": 0.192} | change)) == message


def test_a_point_needs_every_variable() -> None:
    assert refusal(lambda: SPACE.check({"x": 0.5, "gauge": 0.192})) == (
        "point: variable 'teeth' is missing; give all variables"
    )


@pytest.mark.parametrize("point", [None, 3, "x", [], [("x", 0.5)], 10**400])
def test_a_point_that_is_no_mapping_gets_one_sentence(point: Any) -> None:
    assert refusal(lambda: SPACE.check(point)).startswith("point: expected a value for each of x, teeth, gauge, got ")


def test_a_wide_range_does_not_blur_small_values() -> None:
    wide = Space((Discrete("d", [1e-6, 1e-5, 1e4]), Integer("n", 0, 1_000_000), Real("r", 1e-12, 1.0, log=True)))
    good = {"d": 1e-5, "n": 3, "r": 1e-12}
    assert wide.check(good) == good
    for change in ({"d": 5e-6}, {"n": 3.01}, {"r": 1e-13}, {"r": 0.0}):
        refusal(lambda change=change: wide.check(good | change))  # type: ignore[misc]


# Stating variables


def test_bounds_become_plain_floats_and_ints() -> None:
    real = Real("x", np.int64(0), np.float32(0.5), log=np.False_)
    assert real == Real("x", 0.0, 0.5)
    assert [type(v) for v in (real.low, real.high, real.log)] == [float, float, bool]
    assert Real("x", 0, Fraction(1, 4)).high == 0.25
    whole = Integer("n", np.float64(1.0), np.int8(4))
    assert [type(v) for v in (whole.low, whole.high)] == [int, int]
    assert Discrete("d", np.array([2, 1])).values == Discrete("d", (1.0, 2.0)).values == (1.0, 2.0)
    assert (Discrete("d", range(3, 6)).low, Discrete("d", range(3, 6)).high) == (3.0, 5.0)
    name = Real(np.str_("x"), 0, 1, unit=np.str_("mm"))
    assert [type(v) for v in (name.name, name.unit)] == [str, str]


def test_minus_zero_is_zero() -> None:
    assert math.copysign(1.0, Real("x", -0.0, 1.0).low) == 1.0
    assert math.copysign(1.0, Discrete("d", [-0.0, 1.0]).low) == 1.0


def test_variables_are_frozen_hashable_and_compare_by_value() -> None:
    for make in (lambda: Real("x", 0, 1), lambda: Integer("x", 0, 1), lambda: Discrete("x", [0, 1])):
        one, other = make(), make()
        assert (one, hash(one)) == (other, hash(other))
        with pytest.raises(FrozenInstanceError):
            one.name = "y"  # type: ignore[misc]
    assert Real("x", 0, 1) != Real("x", 0, 1, log=False, unit="mm")
    assert Integer("x", 0, 1) != Real("x", 0, 1)


def test_the_values_of_each_kind() -> None:
    assert Real("x", 0, 1).values is None
    assert Integer("n", -1, 2).values == (-1, 0, 1, 2)


NOT_NUMBERS = [
    True, np.True_, "1", "1e-3", "", None, NAN, INF, -INF, np.float64("nan"), [1], (1,), {"a": 1}, 1j,
    Decimal("0.5"), 10**400, 10**5000, np.array(0.5), np.array([[1], [2]]), pd.NA,
    pd.DataFrame({"a": [1, 2]}), object(),
]  # fmt: skip


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("bound", ["low", "high"])
@pytest.mark.parametrize("kind", [Real, Integer])
def test_a_bound_that_is_no_finite_number_gets_one_sentence(kind: Any, bound: str, value: object) -> None:
    message = refusal(lambda: kind("width", **{"low": 0, "high": 9, bound: value}))
    assert message.startswith(f"variable 'width': {bound} must be a finite number, got ")


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda v: type(v).__name__)
def test_a_discrete_value_that_is_no_finite_number_gets_one_sentence(value: object) -> None:
    message = refusal(lambda: Discrete("gauge", [0.25, value]))  # type: ignore[list-item]
    assert message.startswith("variable 'gauge': values must be finite numbers, got ")
    assert message.endswith("labels are the values of a Categorical")


@pytest.mark.parametrize(
    "values",
    [None, 3, 0.5, "12", b"12", {1, 2}, {1: 2}, np.array(3), pd.Series([1, 2]), (v for v in (1, 2)), Real("x", 0, 1)],
)
def test_values_that_are_no_list_get_one_sentence(values: Any) -> None:
    message = refusal(lambda: Discrete("gauge", values))
    assert message.startswith("variable 'gauge': values must be a list of numbers, got ")


@pytest.mark.parametrize("name", ["", " ", "\t", None, 3, True, b"x", ["x"]])
@pytest.mark.parametrize("make", [lambda n: Real(n, 0, 1), lambda n: Integer(n, 0, 1), lambda n: Discrete(n, [0, 1])])
def test_an_empty_name_gets_one_sentence(make: Callable[[Any], object], name: object) -> None:
    assert refusal(lambda: make(name)) == f"variable: the name must be a non-empty string, got {name!r}"


@pytest.mark.parametrize(
    "name", [" x", "x ", "a=b", "{x}", "x}", "a\nb", "a\tb", "a\0b", "a\u2028b", "\ud800", "a\u00a0b"]
)
def test_a_name_that_files_cannot_hold_gets_one_sentence(name: str) -> None:
    message = refusal(lambda: Real(name, 0, 1))
    assert message.startswith(f"variable {name!r}: a name may not hold '='")


@pytest.mark.parametrize(
    "name", ["x", "x 1", "Länge", "长度", "σ_max", "a.b", "a,b", "1", "yes", "x-y", "😀", "#", "x/y"]
)
def test_other_names_are_welcome(name: str) -> None:
    assert Real(name, 0, 1).name == name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real("w", 1, 1), "variable 'w': low must be below high, got low=1.0, high=1.0"),
        (lambda: Real("w", 2, 1), "variable 'w': low must be below high, got low=2.0, high=1.0"),
        (lambda: Integer("w", 3, 3), "variable 'w': low must be below high, got low=3.0, high=3.0"),
        (lambda: Real("w", 2**53, 2**53 + 1), "variable 'w': low must be below high, got low="),
        (lambda: Real("w", -1.7e308, 1.7e308), "variable 'w': the range must be smaller than 1e308, got low="),
        (lambda: Discrete("w", [-1.7e308, 1.7e308]), "variable 'w': the range must be smaller than 1e308"),
        (lambda: Real("w", 0, 1, log=True), "variable 'w': log=True needs low > 0, got low=0.0"),
        (lambda: Real("w", -1, 1, log=True), "variable 'w': log=True needs low > 0, got low=-1.0"),
        (lambda: Real("w", 1e-200, 1e200, log=True), "variable 'w': high / low is too large for log=True"),
        (lambda: Real("w", 1, 2, log="no"), "variable 'w': log must be True or False, got 'no'"),
        (lambda: Real("w", 1, 2, log=1), "variable 'w': log must be True or False, got 1"),
        (lambda: Real("w", 1, 2, unit=None), "variable 'w': the unit must be a printable string, got None"),
        (lambda: Real("w", 1, 2, unit="a\nb"), "variable 'w': the unit must be a printable string, got 'a\\nb'"),
        (lambda: Integer("w", 1, 2, unit=3), "variable 'w': the unit must be a printable string, got 3"),
        (lambda: Real("w", 1, 2, type="integer"), "variable 'w': its type is 'real', got 'integer'"),
        (lambda: Integer("w", 0.5, 3), "variable 'w': low of an Integer must be whole, got 0.5"),
        (lambda: Integer("w", 0, 2.5), "variable 'w': high of an Integer must be whole, got 2.5"),
        (lambda: Integer("w", 0, 10**7), "variable 'w': an Integer with more than 1,000,000 values"),
        (lambda: Integer("w", 2**53, 2**53 + 4), "variable 'w': high of an Integer must be between -2**53 and 2**53"),
        (lambda: Integer("w", 0, 1e300), "variable 'w': high of an Integer must be between -2**53 and 2**53"),
        (lambda: Discrete("w", []), "variable 'w': values must be two or more different numbers, got []"),
        (lambda: Discrete("w", [1]), "variable 'w': values must be two or more different numbers, got [1.0]"),
        (lambda: Discrete("w", [1, 2, 1.0]), "variable 'w': values must be two or more different numbers, got ["),
        (lambda: Discrete("w", [0.0, -0.0]), "variable 'w': values must be two or more different numbers, got ["),
        (lambda: Discrete("w", [[1, 2]]), "variable 'w': values must be finite numbers, got [[1, 2]]"),
        (lambda: Discrete("w", ["steel", "oak"]), "variable 'w': values must be finite numbers, got ['steel', 'oak']"),
        (lambda: Discrete("w", [-1, 1e-20, 2e-20, 1]), "variable 'w': some values are too close together"),
        (lambda: Discrete("w", [*range(5000), 0]), "variable 'w': values must be two or more different numbers"),
    ],
)  # fmt: skip
def test_a_variable_that_makes_no_sense_gets_one_sentence(make: Callable[[], object], message: str) -> None:
    said = refusal(make)
    assert said.startswith(message)
    assert len(said) < 300
