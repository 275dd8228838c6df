"""Outputs with parts and with standard errors, from the simulator to the answer."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cbabo import Constraint, Model, Objective, Problem, Real, Settings, Study
from cbabo.answering.refine import measured_answer
from cbabo.domain.query import Query
from cbabo.errors import InputError

BARS = Problem(
    "bars",
    [Real("a", 0.5, 3.0), Real("b", 0.5, 3.0)],
    Objective("mass"),
    [Constraint("stress", "<=", low=1.0, high=4.0, nominal=2.0)],
)
QUICK = Settings.default().replace(initial_evaluations=8, library=16)


def stresses(point: dict[str, float]) -> list[float]:
    a, b = point["a"], point["b"]
    return [3.0 / a, 2.0 / b, 4.0 / (a + b)]


def simulate(point: dict[str, float]) -> dict[str, Any]:
    return {"mass": {"value": point["a"] + 2.0 * point["b"], "sem": 0.125}, "stress": stresses(point)}


def simulate_maximum(point: dict[str, float]) -> dict[str, Any]:
    return {"mass": point["a"] + 2.0 * point["b"], "stress": max(stresses(point)), "members": stresses(point)}


@pytest.fixture
def study(url: str) -> Study:
    return Study.create(BARS, url, settings=QUICK)


def told(study: Study, outputs: dict[str, Any]) -> Any:
    study.tell(study.ask()[0].id, outputs)
    return study.evaluations[-1]


def test_readings_are_told_and_stored_as_they_came(study: Study, url: str) -> None:
    outputs = {"mass": {"value": 2.0, "sem": 0.1}, "stress": [1.0, {"value": 2.0, "sem": 0.3}], "extra": [5, 6]}
    row = told(study, outputs)
    assert row.outputs == {"mass": 2.0, "stress[0]": 1.0, "stress[1]": 2.0, "extra[0]": 5.0, "extra[1]": 6.0}
    assert row.sem == {"mass": 0.1, "stress[1]": 0.3}
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        (stored,) = connection.execute("SELECT outputs FROM evaluations").fetchone()
    assert json.loads(stored) == outputs
    assert Study.open(url, "bars").evaluations[-1] == row
    assert study.damages == ()


@pytest.mark.parametrize(
    ("stress", "reason"),
    [
        ([], "empty list"),
        ([[1.0]], "'stress\\[0\\]' must be one number"),
        ({"value": 1.0, "sem": -1.0}, "from 0 on"),
        ({"value": 1.0, "sem": math.nan}, "from 0 on"),
    ],
)
def test_what_is_no_reading_is_refused_and_the_design_stays_pending(study: Study, stress: Any, reason: str) -> None:
    trial = study.ask()[0]
    with pytest.raises(InputError, match=reason):
        study.tell(trial.id, {"mass": 1.0, "stress": stress})
    with pytest.raises(InputError, match="the objective 'mass' must be one number, but is a list of 2"):
        study.tell(trial.id, {"mass": [1.0, 2.0], "stress": 1.0})
    assert study.evaluations[-1].state == "running"


def test_a_part_that_is_nan_is_a_failure(study: Study) -> None:
    row = told(study, {"mass": 1.0, "stress": [1.0, math.nan]})
    assert (row.state, row.failure) == ("failed", "the output 'stress[1]' must be a finite number, but is nan")


def test_another_number_of_parts_is_a_failure(study: Study) -> None:
    assert told(study, {"mass": 1.0, "stress": [1.0, 2.0]}).state == "complete"
    assert told(study, {"mass": 1.0, "stress[0]": 1.0, "stress[1]": 2.0}).state == "complete"
    row = told(study, {"mass": 1.0, "stress": [1.0, 2.0, 3.0]})
    assert row.state == "failed"
    assert "a list of 2 as in the first measured evaluation, but is a list of 3" in row.failure


def test_a_run_is_told_of_other_parts_at_once(study: Study) -> None:
    states = []

    def changing(point: dict[str, float]) -> dict[str, Any]:
        changing.calls += 1  # type: ignore[attr-defined]
        return {"mass": 1.0, "stress": [1.0] * (3 if changing.calls == 2 else 2)}  # type: ignore[attr-defined]

    changing.calls = 0  # type: ignore[attr-defined]
    study.run(changing, budget=3, in_process=True, on_result=lambda row: states.append(row.state))
    assert states == ["complete", "failed", "complete"]


def test_a_run_with_parts_resumes_to_the_last_bit(url: str, tmp_path: Path) -> None:
    whole = Study.create(BARS, url, settings=QUICK)
    whole.run(simulate, budget=18, in_process=True)
    halves = Study.create(BARS, f"sqlite:///{tmp_path}/halves.db", settings=QUICK)
    halves.run(simulate, budget=11, in_process=True)
    Study.open(f"sqlite:///{tmp_path}/halves.db", "bars").run(simulate, budget=18, in_process=True)
    for table in (whole.evaluations, halves.evaluations):
        assert table.sem[:, 0].tolist() == [0.125] * 18
    assert np.array_equal(whole.evaluations.y, halves.evaluations.y)
    assert np.array_equal(whole.evaluations.x, halves.evaluations.x)


def test_the_number_of_parts_may_change_after_evaluations_are_excluded(study: Study) -> None:
    study.run(lambda point: {"mass": 1.0 + point["a"], "stress": [point["b"]]}, budget=12, in_process=True)
    study.forget(range(1, 13), "another mesh")
    study.run(simulate, budget=24, in_process=True)
    assert study.evaluations.problem.parts == {"stress": (1, 2, 3)}
    assert study.model().predict().feasible


@pytest.mark.parametrize("settings", [QUICK, Settings.paper().replace(initial_evaluations=8, horizon=4, inner_steps=5)])
def test_answers_obey_the_limit_with_every_part(url: str, tmp_path: Path, settings: Any) -> None:
    study = Study.create(BARS, url, settings=settings)
    study.run(simulate, budget=24, in_process=True)
    model = study.model()
    answer = model.predict({"stress": 2.0})
    assert list(answer.outputs) == ["mass", "stress", "stress[0]", "stress[1]", "stress[2]"]
    parts = [answer.outputs[f"stress[{i}]"] for i in range(3)]
    assert answer.outputs["stress"] == max(parts, key=lambda e: e.mean)
    if settings is QUICK:
        assert max(stresses(answer.point)) <= 2.0
        assert answer.objective.mean == pytest.approx(3.5, rel=5e-3)
        fast = model.predict_many([{"stress": limit} for limit in (1.5, 2.0, 3.0)], fast=True)
        assert fast.to_frame()["mass"].tolist() == pytest.approx([7.0 / 1.5, 3.5, 7.0 / 3.0], rel=1e-2)
    refined = study.refine({"stress": 2.0}, simulate, 1, in_process=True)
    assert [refined.outputs[f"stress[{i}]"].mean for i in range(3)] == stresses(refined.point)
    assert refined.outputs["stress"].mean == max(stresses(refined.point))
    model.save(tmp_path / "bars.cbabo")
    loaded = Model.load(tmp_path / "bars.cbabo")
    assert loaded.predict({"stress": 2.0}) == answer
    assert np.array_equal(loaded.evaluations.sem, model.evaluations.sem, equal_nan=True)


def test_a_broken_part_is_named(study: Study) -> None:
    study.run(simulate, budget=8, in_process=True)
    trial = study.ask_at({"a": 1.0, "b": 3.0})
    study.tell(trial.id, simulate(trial.point))
    model = study.model()
    answer = measured_answer(model, Query.of(model.problem.box, {"stress": 1.5}), study.evaluations[-1])
    assert answer.status == "measured"
    assert answer.warnings == ("the measured design breaks stress (stress[0]) <= 1.5 by 1.5",)
    assert answer.outputs["stress"] == answer.outputs["stress[0]"]


def test_tables_carry_parts_and_errors_in_and_out(study: Study, tmp_path: Path) -> None:
    for i in range(3):
        told(study, {"mass": {"value": 1.0 + i, "sem": 0.1 * i} if i else 1.0, "stress": [1.0, 2.0 + i], "mesh": 3.0})
    frame = study.evaluations.to_frame()
    frame.to_csv(tmp_path / "runs.csv", index=False)
    for number, table in enumerate((frame, tmp_path / "runs.csv")):
        other = Study.create(BARS, f"sqlite:///{tmp_path}/other{number}.db", settings=QUICK)
        assert other.add(table).problems == ()
        assert np.array_equal(other.evaluations.y, study.evaluations.y)
        assert np.array_equal(other.evaluations.sem, study.evaluations.sem, equal_nan=True)
        assert other.evaluations[0].outputs == study.evaluations[0].outputs
        again = other.add(table)
        assert (again.added, again.known) == ((), 3)


def test_a_wrong_standard_error_in_a_table_is_a_problem_of_its_row(study: Study) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 2.5], "b": 1.0, "mass": 2.0, "stress": 3.0, "mass sem": [0.1, -0.1, np.nan]})
    report = study.add(frame)
    assert [line for line, _ in report.problems] == [2]
    assert "from 0 on" in report.problems[0][1]
    assert [row.sem for row in study.evaluations] == [{"mass": 0.1}, {}]
    with pytest.raises(InputError, match="expected a column 'stress'"):
        study.add(frame.drop(columns="stress"))


def test_members_that_were_recorded_can_be_limited_afterwards(study: Study, tmp_path: Path) -> None:
    study.run(simulate_maximum, budget=16, in_process=True)
    members = Constraint("stress", "<=", low=1.0, high=4.0, outputs="members")
    problem = Problem("bars", BARS.variables, BARS.objective, [members])
    other = Study.create(problem, f"sqlite:///{tmp_path}/members.db", settings=QUICK)
    other.add(study.evaluations.to_frame())
    assert other.evaluations.problem.parts == {"members": (1, 2, 3)}
    answer = other.model().predict({"stress": 2.0})
    assert max(stresses(answer.point)) <= 2.0
