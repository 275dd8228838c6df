"""Frozen tables of what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbabo.domain.constraints import Constraint
from cbabo.domain.evaluations import Evaluation, Evaluations, Kind, State, Trial
from cbabo.domain.problem import RESERVED, Objective, Problem
from cbabo.domain.space import Discrete, Integer, Real
from cbabo.errors import InputError

PROBLEM = Problem(
    "truss",
    [Real("x", 0.0, 2.0), Integer("teeth", 17, 21), Discrete("gauge", [0.1, 0.2, 0.4])],
    Objective("volume"),
    [
        Constraint("stress", "<=", low=0.0, high=10.0),
        Constraint("frequency", ">=", low=20.0, high=60.0),
        Constraint("mass", "<=", limit=12.0),
    ],
)
STARTED = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
LIMITS = {"stress": 5.0, "frequency": 40.0}


def evaluation(
    number: int,
    outputs: Mapping[str, float] | None = None,
    state: State = "complete",
    kind: Kind = "run",
    point: Mapping[str, float] | None = None,
    **more: Any,
) -> Evaluation:
    point = {"x": 0.5, "teeth": 18, "gauge": 0.2} if point is None else point
    return Evaluation(number, state, kind, point, {} if outputs is None else outputs, **more)


def measured(number: int, volume: float, stress: float, frequency: float, mass: float = 1.0, **more: Any) -> Evaluation:
    outputs = {"volume": volume, "stress": stress, "frequency": frequency, "mass": mass}
    return evaluation(number, outputs, **more)


def table(*rows: Evaluation, problem: Problem = PROBLEM) -> Evaluations:
    return Evaluations(problem, rows)


MIXED = table(
    measured(1, 3.0, 4.0, 50.0, started=STARTED, seconds=2, worker="host:7"),
    evaluation(2, state="failed", failure="mesh did not converge", log="...", seconds=0.5),
    evaluation(3, {"volume": 4.0, "stress": 1.0, "frequency": 41.0, "mass": 2.0, "wear": 7.0}, kind="import"),
    evaluation(4, state="running"),
    measured(5, 1.0, 6.0, 50.0, kind="refine"),
    evaluation(6, state="failed", kind="refine", failure="timeout"),
)


# A sequence


def test_a_table_is_a_sequence_of_its_evaluations() -> None:
    assert len(MIXED) == 6
    assert [row.id for row in MIXED] == [1, 2, 3, 4, 5, 6]
    assert MIXED[1].failure == "mesh did not converge"
    assert MIXED[-1].id == 6
    assert [row.id for row in MIXED[2:4]] == [3, 4]
    assert MIXED[0] in MIXED
    with pytest.raises(IndexError):
        MIXED[6]


def test_tables_and_evaluations_are_frozen_and_compare_by_value() -> None:
    assert table(measured(1, 1, 1, 1)) == table(measured(1, 1, 1, 1))
    assert table(measured(1, 1, 1, 1)) != table(measured(2, 1, 1, 1))
    with pytest.raises(FrozenInstanceError):
        MIXED.rows = ()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        MIXED[0].state = "failed"
    with pytest.raises(FrozenInstanceError):
        Trial(1, {"x": 0.0}).id = 2  # type: ignore[misc]


def test_states_are_told_apart() -> None:
    assert [row.id for row in MIXED.complete] == [1, 3, 5]
    assert [row.id for row in MIXED.failed] == [2, 6]
    assert [row.id for row in MIXED.running] == [4]
    assert MIXED.complete.problem is PROBLEM
    assert len(table().complete) == len(table().failed) == len(table().running) == 0


def test_requested_counts_runs_in_every_state_and_nothing_else() -> None:
    assert MIXED.requested == 3
    assert table().requested == 0


# Matrices


def test_x_holds_every_design_in_the_unit_cube() -> None:
    rows = table(
        evaluation(1, state="failed", point={"gauge": 0.1, "x": 0.0, "teeth": 17}),
        evaluation(2, state="running", point={"x": 2.0, "teeth": 21, "gauge": 0.4}),
        evaluation(3, point={"x": 0.5, "teeth": 18, "gauge": 0.2}),
    )
    assert rows.x == pytest.approx(np.array([[0, 0, 0], [1, 1, 1], [0.25, 0.25, 1 / 3]]), abs=1e-15)
    assert rows.x.dtype == np.float64
    assert PROBLEM.space.points(rows.x) == [dict(row.point) for row in rows]


def test_y_holds_raw_outputs_in_the_problems_order_and_nan_without_a_measurement() -> None:
    assert PROBLEM.outputs == ("volume", "stress", "frequency", "mass")
    expected = np.full((6, 4), np.nan)
    expected[0] = [3.0, 4.0, 50.0, 1.0]
    expected[2] = [4.0, 1.0, 41.0, 2.0]
    expected[4] = [1.0, 6.0, 50.0, 1.0]
    assert np.array_equal(MIXED.y, expected, equal_nan=True)
    assert np.array_equal(MIXED.complete.y, expected[[0, 2, 4]])


def test_y_keeps_the_users_direction() -> None:
    problem = Problem("p", [Real("x", 0, 1)], "maximize f", ["c >= [0..1]"])
    rows = table(evaluation(1, {"f": 5, "c": 0.5}, point={"x": 0.5}), problem=problem)
    assert rows.y.tolist() == [[5.0, 0.5]]


def test_an_empty_table_has_empty_matrices() -> None:
    assert table().x.shape == (0, 3)
    assert table().y.shape == (0, 4)


# The best


def test_the_best_obeys_every_limit_and_has_the_smallest_objective() -> None:
    rows = table(
        measured(1, 3.0, 4.0, 50.0),
        measured(2, 2.0, 5.0, 40.0),  # at both limits
        measured(3, 1.0, 5.1, 50.0),  # stress
        measured(4, 1.0, 4.0, 39.0),  # frequency
        measured(5, 1.0, 4.0, 50.0, mass=12.1),  # the fixed limit
        evaluation(6, {"volume": 0.1, "stress": 0, "frequency": 99, "mass": 0}, state="failed"),
        evaluation(7, state="running"),
    )
    best = rows.best(LIMITS)
    assert best is rows[1]
    relaxed = rows.best({"stress": 6.0, "frequency": 40.0})
    assert relaxed is rows[2]
    assert rows.best({"stress": 1.0, "frequency": 40.0}) is None


def test_the_best_of_a_maximised_objective_is_the_largest() -> None:
    problem = Problem("p", [Real("x", 0, 1)], "maximize range", ["c <= [0..1]"])
    rows = [(1.0, 0.1), (5.0, 0.9), (3.0, 0.2), (-2.0, 0.0)]
    values = table(
        *(evaluation(i, {"range": f, "c": c}, point={"x": 0}) for i, (f, c) in enumerate(rows)), problem=problem
    )
    assert values.best({"c": 0.5}) is values[2]
    assert values.best({"c": 1.0}) is values[1]
    assert values.best({"c": 0.0}) is values[3]


def test_the_first_of_equals_is_the_best_and_the_tolerance_counts() -> None:
    rows = table(
        measured(1, 1.0, 5.0 + 0.9e-8, 50.0), measured(2, 1.0, 4.0, 50.0), measured(3, 0.5, 5.0 + 1.1e-8, 50.0)
    )
    assert rows.best(LIMITS) is rows[0]


def test_without_measurements_there_is_no_best_but_wrong_limits_are_still_refused() -> None:
    for rows in (table(), table(evaluation(1, state="failed"), evaluation(2, state="running"))):
        assert rows.best(LIMITS) is None
        with pytest.raises(InputError, match=r"^thresholds: 'frequency' is missing; .*$"):
            rows.best({"stress": 5.0})


def test_a_measurement_that_is_not_a_number_never_wins_nor_hides_the_best() -> None:
    rows = table(measured(1, np.nan, 4.0, 50.0), measured(2, 0.0, np.nan, 50.0), measured(3, 9.0, 4.0, 50.0))
    assert rows.best(LIMITS) is rows[2]


def test_the_best_leaves_the_table_as_it_was() -> None:
    rows = table(measured(1, 3.0, 99.0, 50.0), measured(2, 2.0, 4.0, 50.0))
    before = rows.complete.y.copy()
    rows.best(LIMITS)
    assert np.array_equal(rows.complete.y, before)


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({}, "thresholds: 'stress' is missing"),
        (LIMITS | {"mass": 1.0}, "thresholds: the limit of 'mass' is fixed by the problem"),
        (LIMITS | {"stress": "5"}, "thresholds: stress must be a finite number, got '5'"),
        (pd.DataFrame([LIMITS, LIMITS]), "thresholds: expected one limit for each constraint, got 2 rows"),
        (pd.DataFrame([LIMITS]).iloc[:0], "thresholds: expected one limit for each constraint, got 0 rows"),
        (None, "thresholds: expected n rows and 2 columns"),
    ],
)
def test_limits_that_do_not_fit_get_one_sentence(thresholds: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        MIXED.best(thresholds)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.floats(-10, 10)] * 4), min_size=1, max_size=8),
    limits=st.tuples(st.floats(0, 5), st.floats(0, 5)),
    flips=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
)
def test_maximize_and_greater_or_equal_restate_the_same_problem(
    rows: list[tuple[float, ...]], limits: tuple[float, float], flips: tuple[bool, ...]
) -> None:
    names = ("f", "a", "b", "c")
    signs = np.array([-1.0 if flip else 1.0 for flip in flips])

    def stated(sign: np.ndarray) -> tuple[Problem, Evaluations]:
        below = {1.0: "<=", -1.0: ">="}
        ends = [sorted((0.0 * s, 5.0 * s)) for s in sign]
        problem = Problem(
            "p",
            [Real("x", 0, 1)],
            Objective("f", direction="minimize" if sign[0] > 0 else "maximize"),
            [
                Constraint("a", below[sign[1]], low=ends[1][0], high=ends[1][1]),  # type: ignore[arg-type]
                Constraint("b", below[sign[2]], low=ends[2][0], high=ends[2][1]),  # type: ignore[arg-type]
                Constraint("c", below[sign[3]], limit=2.0 * sign[3]),  # type: ignore[arg-type]
            ],
        )
        values = [dict(zip(names, np.array(row) * sign, strict=True)) for row in rows]
        return problem, table(*(evaluation(i, v, point={"x": 0.5}) for i, v in enumerate(values)), problem=problem)

    (one, first), (other, second) = stated(np.ones(4)), stated(signs)
    thresholds = np.array([limits])
    mirrored = thresholds * signs[1:3]
    assert np.array_equal(one.box.to_theta(thresholds), other.box.to_theta(mirrored))
    repeat = (len(rows), 1)
    assert np.array_equal(
        one.box.violations(first.y, np.tile(thresholds, repeat)),
        other.box.violations(second.y, np.tile(mirrored, repeat)),
    )
    assert np.array_equal(
        one.box.feasible(first.y, np.tile(thresholds, repeat)), other.box.feasible(second.y, np.tile(mirrored, repeat))
    )
    best = first.best(one.box.named(thresholds[0]))
    again = second.best(other.box.named(mirrored[0]))
    assert (best is None) == (again is None)
    if best is not None and again is not None:
        assert again.id == best.id


# The table for people


def test_the_columns_of_the_table_are_the_contracts_in_order() -> None:
    frame = MIXED.to_frame()
    assert list(frame.columns) == [
        "id", "state", "kind", "x", "teeth", "gauge", "volume", "stress", "frequency", "mass", "wear",
        "failure", "cause", "started", "seconds", "worker", "excluded",
    ]  # fmt: skip
    assert set(RESERVED) <= set(frame.columns)


def test_every_evaluation_has_its_row_failed_ones_included() -> None:
    frame = MIXED.to_frame()
    assert frame["id"].tolist() == [1, 2, 3, 4, 5, 6]
    assert frame["state"].tolist() == ["complete", "failed", "complete", "running", "complete", "failed"]
    assert frame["kind"].tolist() == ["run", "run", "import", "run", "refine", "refine"]
    assert frame["failure"].isna().tolist() == [True, False, True, True, True, False]
    assert frame.loc[1, "failure"] == "mesh did not converge"
    assert frame["volume"].isna().tolist() == [False, True, False, True, False, True]
    assert frame.loc[2, "wear"] == 7.0
    assert frame["wear"].isna().sum() == 5
    assert frame["seconds"].tolist()[:2] == [2.0, 0.5]
    assert frame["seconds"].isna().tolist() == [False, False, True, True, True, True]
    assert frame.loc[0, "started"] == STARTED
    assert frame["started"].isna().sum() == 5
    assert frame.loc[0, "worker"] == "host:7"
    assert frame["worker"].isna().sum() == 5


def test_numbers_are_numbers_in_the_table() -> None:
    whole = evaluation(1, {"volume": 1, "stress": 2, "frequency": 3, "mass": 4})
    for rows in (MIXED, table(), table(evaluation(1, state="running")), table(whole)):
        dtypes = rows.to_frame().dtypes
        assert all(dtypes[name] == np.float64 for name in ("volume", "stress", "frequency", "mass", "seconds"))
    assert MIXED.to_frame()["teeth"].tolist() == [18] * 6


def test_an_empty_table_has_its_columns() -> None:
    frame = table().to_frame()
    assert len(frame) == 0
    assert list(frame.columns)[:4] == ["id", "state", "kind", "x"]
    assert list(frame.columns)[-6:] == ["failure", "cause", "started", "seconds", "worker", "excluded"]


@pytest.mark.parametrize("name", [*RESERVED, "x", "teeth"])
def test_a_further_number_never_covers_a_column(name: str) -> None:
    plain = {"volume": 1.0, "stress": 1.0, "frequency": 50.0, "mass": 1.0}
    rows = table(evaluation(1, plain | {name: 99.0, f"output {name}": 98.0}), evaluation(2, plain))
    frame = rows.to_frame()
    assert not frame.columns.duplicated().any()
    if name not in ("failure", "cause", "started", "seconds", "worker", "excluded"):
        assert 99.0 not in frame[name].tolist()
    assert frame.loc[0, f"output {name}"] == 99.0
    assert frame.loc[0, f"output output {name}"] == 98.0
    assert frame[["id", "x", "teeth"]].values.tolist() == [[1, 0.5, 18], [2, 0.5, 18]]
    assert frame[["failure", "started", "seconds", "worker"]].isna().all(axis=None)


def test_the_table_feeds_back_as_csv(tmp_path: Any) -> None:
    path = tmp_path / "runs.csv"
    MIXED.to_frame().to_csv(path, index=False)
    again = pd.read_csv(path)
    assert again["volume"].tolist()[0] == 3.0
    assert list(again.columns) == list(MIXED.to_frame().columns)


def test_outputs_out_of_their_valid_range_count_as_failures() -> None:
    stated = {
        "name": "p",
        "variables": [{"type": "real", "name": "x", "low": 0, "high": 1}],
        "objective": "f",
        "constraints": ["c <= [1..2]"],
        "valid": {"c": [0, "1e3"]},
    }
    problem = Problem.from_dict(stated)
    assert problem.valid == {"c": (0.0, 1000.0)}
    assert Problem.from_dict(problem.to_dict()) == problem

    def row(id: int, f: float, c: float) -> Evaluation:
        return Evaluation(id, "complete", "import", {"x": 0.5}, {"f": f, "c": c})

    rows = Evaluations(problem, (row(1, 1.0, 1000.0), row(2, 1.0, 1000.5), row(3, -1e151, 1.0), row(4, 1e150, 0.0)))
    assert [r.state for r in rows] == ["complete", "failed", "failed", "complete"]
    assert [r.cause for r in rows.failed] == ["design", "design"]
    assert "'c' is out of range: 1000.5 is not between 0 and 1000" in str(rows[1].failure)
    assert "'f' is out of range: -1e+151" in str(rows[2].failure)


@pytest.mark.parametrize(
    ("valid", "said"),
    [
        ({"x": [0, 1]}, "valid: unknown output 'x'; expected f, c"),
        ({"c": [1, 0]}, "expected \\[low, high\\] with low < high for 'c', got \\[1, 0\\]"),
        ({"c": 3}, "for 'c', got 3"),
        ({"c": ["a", 1]}, "for 'c'"),
        ([1, 2], "expected ranges by output"),
    ],
)
def test_wrong_valid_ranges_get_one_sentence(valid: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Problem("p", [Real("x", 0, 1)], "f", [Constraint("c", low=1, high=2)], valid=valid)  # type: ignore[arg-type]
