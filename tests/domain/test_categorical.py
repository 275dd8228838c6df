"""Categorical variables: labels, their columns in the unit cube, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cbabo import Categorical, Constraint, Integer, Objective, Problem, Real
from cbabo.domain.categorical import MOST_LABELS
from cbabo.domain.space import Discrete, Space
from cbabo.errors import InputError

MATERIALS = ("steel", "aluminium", "titanium")
_words = st.text(min_size=1, max_size=8).filter(lambda t: t == t.strip() and t.isprintable())


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@st.composite
def categoricals(draw: st.DrawFn) -> Categorical:
    return Categorical("m", tuple(draw(st.lists(_words, min_size=2, max_size=20, unique=True))))


def mixed_space() -> Space:
    return Space(
        (
            Real("x", 0.5, 2.5),
            Categorical("material", MATERIALS),
            Integer("n", 1, 4),
            Categorical("joint", ("weld", "bolt")),
            Discrete("t", (1.0, 1.5, 3.0)),
        )
    )


@settings(max_examples=100, deadline=None)
@given(variable=categoricals())
def test_labels_come_back_exactly_from_the_unit_cube(variable: Categorical) -> None:
    u = variable.to_unit(variable.legal)
    assert u.shape == (len(variable.values),) * 2
    assert np.array_equal(u.sum(1), np.ones(len(u)))
    assert [variable.label(i) for i in variable.from_unit(u)] == list(variable.values)
    assert [variable.index(label) for label in variable.values] == variable.legal.tolist()


@settings(max_examples=100, deadline=None)
@given(variable=categoricals(), data=st.data())
def test_any_row_of_the_unit_cube_is_the_label_of_its_largest_column(
    variable: Categorical, data: st.DataObject
) -> None:
    m = len(variable.values)
    row = np.array(data.draw(st.lists(st.floats(-3.0, 3.0), min_size=m, max_size=m)))
    chosen = int(variable.from_unit(row[None])[0])
    assert row[chosen] == row.max()
    assert (row[:chosen] < row[chosen]).all()


@settings(max_examples=50, deadline=None)
@given(variable=categoricals(), each=st.integers(1, 3))
def test_spread_gives_each_label_the_same_share(variable: Categorical, each: int) -> None:
    count = len(variable.values) * each
    shares = Counter(variable.spread((np.arange(count) + 0.5) / count).tolist())
    assert shares == Counter({float(i): each for i in range(len(variable.values))})
    assert set(variable.spread(np.array([0.0, 1.0]))) == {0.0, len(variable.values) - 1.0}


def test_a_space_has_a_column_for_every_label() -> None:
    space = mixed_space()
    assert space.dimension == 1 + 3 + 1 + 2 + 1
    assert space.column_names == (
        "x",
        "material=steel",
        "material=aluminium",
        "material=titanium",
        "n",
        "joint=weld",
        "joint=bolt",
        "t",
    )
    assert space.continuous.tolist() == [True] + [False] * 7
    assert space.categories == (slice(1, 4), slice(5, 7))
    assert space.size is None
    assert Space(space.variables[1:]).size == 3 * 4 * 2 * 3
    assert len(list(Space(space.variables[1:]).designs())) == 72


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.lists(st.floats(-1.0, 2.0), min_size=8, max_size=8), min_size=1, max_size=5))
def test_snapping_is_legal_and_stays(rows: list[list[float]]) -> None:
    space = mixed_space()
    snapped = space.snap(rows)
    for at in space.categories:
        assert np.array_equal(np.sort(snapped[:, at], axis=1)[:, -1], np.ones(len(rows)))
        assert np.array_equal(snapped[:, at].sum(1), np.ones(len(rows)))
    assert np.allclose(space.snap(snapped), snapped, atol=1e-12)
    points = space.points(rows)
    assert [space.check(p) for p in points] == points
    assert space.named(space.array(points)) == points
    assert np.allclose(space.unit(space.array(points)), snapped, atol=1e-12)


def test_points_hold_labels_and_arrays_their_indices() -> None:
    space = mixed_space()
    point = {"x": 1.0, "material": "titanium", "n": 2, "joint": "weld", "t": 1.5}
    assert space.array([point]).tolist() == [[1.0, 2.0, 2.0, 0.0, 1.5]]
    assert space.check(point) == point
    spread = space.spread(np.full((1, 5), 0.5))[0]
    assert spread["material"] == "aluminium"
    assert spread["joint"] == "bolt"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["steel"], "variable 'm': values must be 2 to 200 different labels, got ['steel']"),
        ([], "variable 'm': values must be 2 to 200 different labels, got []"),
        (["a", "b", "a"], "variable 'm': values must be 2 to 200 different labels"),
        ([str(i) for i in range(MOST_LABELS + 1)], "variable 'm': values must be 2 to 200 different labels"),
        ("steel", "variable 'm': values must be a list of labels, got 'steel'"),
        (None, "variable 'm': values must be a list of labels, got None"),
        ({"a", "b"}, "variable 'm': values must be a list of labels"),
        (["316", 304], "variable 'm': a label must be text, got 304; write it in quotes"),
        ([True, False], "variable 'm': a label must be text, got True; write it in quotes"),
        (["a", ""], "variable 'm': a label must be printable text without spaces at its ends and not empty, got ''"),
        (["a", " b"], "variable 'm': a label must be printable text without spaces at its ends and not empty"),
        (["a", "b\nc"], "variable 'm': a label must be printable text"),
    ],
)
def test_labels_that_cannot_be_used_get_one_sentence(values: Any, message: str) -> None:
    assert refusal(lambda: Categorical("m", values)).startswith(message)


@pytest.mark.parametrize(
    ("given_label", "ending"),
    [
        ("stel", "got 'stel'; did you mean 'steel'?"),
        ("Steel", "got 'Steel'; did you mean 'steel'?"),
        ("wood", "got 'wood'"),
        (1, "got 1"),
        (None, "got None"),
    ],
)
def test_a_label_that_is_not_legal_gets_one_sentence(given_label: object, ending: str) -> None:
    space = Space((Categorical("material", MATERIALS),))
    message = refusal(lambda: space.check({"material": given_label}))
    assert message.startswith("point: material must be one of ['steel', 'aluminium', 'titanium'], ")
    assert message.endswith(ending)


def test_a_problem_with_labels_goes_to_yaml_and_back(tmp_path: Any) -> None:
    stated = Problem(
        "bar",
        [Real("w", 1, 3), Categorical("material", ["steel", "no", "316"])],
        Objective("f"),
        [Constraint("c", low=0, high=1)],
    )
    assert stated.to_dict()["variables"][1] == {
        "name": "material",
        "values": ["steel", "no", "316"],
        "type": "categorical",
    }
    file = tmp_path / "study.yaml"
    file.write_text(stated.to_yaml())
    assert Problem.from_file(file) == stated
    assert Problem.from_file(file).digest == stated.digest


def test_a_file_whose_labels_are_numbers_asks_for_quotes() -> None:
    plain = {
        "name": "bar",
        "variables": [{"name": "alloy", "type": "categorical", "values": [316, 304]}],
        "objective": "f",
        "constraints": ["c <= [0..1]"],
    }
    assert (
        refusal(lambda: Problem.from_dict(plain))
        == "variable 'alloy': a label must be text, got 316; write it in quotes"
    )
    plain["variables"] = [{"name": "alloy", "type": "categorical", "values": ["a", "b"], "unit": "mm"}]
    assert "unit: unknown key" in refusal(lambda: Problem.from_dict(plain))


@settings(max_examples=50, deadline=None)
@given(labels=st.lists(_words, min_size=2, max_size=6, unique=True), wrong=_words)
def test_every_refusal_of_a_label_names_the_variable(labels: list[str], wrong: str) -> None:
    assume(wrong not in labels)
    assert "material must be one of" in refusal(lambda: Categorical("material", labels).check(wrong))  # type: ignore[arg-type]
