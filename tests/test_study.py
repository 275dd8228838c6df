from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cbabo import Constraint, Objective, Problem, Real, Settings, Study
from cbabo.errors import InputError, StudyError, StudyLockedError

OUTPUTS = {"mass": 1.0, "stress": 2.0, "frequency": 3.0, "cost": 4.0}


@pytest.fixture
def study(beam: Problem, url: str) -> Study:
    return Study.create(beam, url)


def test_a_study_is_created_once_and_opened_after(beam: Problem, url: str) -> None:
    first = Study.create(beam, storage=url, name="first", seed=3, settings=Settings.paper(), focus=None, exist_ok=True)
    first.ask()
    again = Study.create(beam, storage=url, name="first", seed=3, settings=Settings.paper())
    assert len(again.evaluations) == 1
    opened = Study.open(url, "first")
    assert (opened.name, opened.problem, opened.seed, opened.settings) == ("first", beam, 3, Settings.paper())


def test_another_problem_seed_or_settings_is_refused_by_name(study: Study, beam: Problem, url: str) -> None:
    other = Problem("beam", beam.variables, beam.objective, [*beam.constraints, "noise <= 3"])
    batch = Settings.default().replace(batch_size=2)
    for arguments, named in (
        ({"problem": other}, "another problem;"),
        ({"seed": 1}, "another seed;"),
        ({"settings": batch}, "another settings;"),
        ({"problem": other, "seed": 1}, "another problem and another seed;"),
    ):
        with pytest.raises(StudyError, match=named):
            Study.create(**{"problem": beam, "storage": url, "name": "beam", **arguments})  # type: ignore[arg-type]
    with pytest.raises(StudyError, match="exists already"):
        Study.create(beam, url, exist_ok=False)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "0"])
def test_a_wrong_seed_is_refused(beam: Problem, url: str, seed: object) -> None:
    with pytest.raises(InputError, match="seed"):
        Study.create(beam, url, seed=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "  ", "a::b", "x" * 256])
def test_a_wrong_name_is_refused(beam: Problem, url: str, name: str) -> None:
    with pytest.raises(InputError, match="name"):
        Study.create(beam, url, name=name)


def test_ask_and_tell_by_hand(study: Study) -> None:
    trials = study.ask(5)
    assert [trial.id for trial in trials] == [1, 2, 3, 4, 5]
    study.tell(trials[0].id, {**OUTPUTS, "elements": 12})
    study.tell(trials[1].id, failed="mesh did\nnot converge")
    frame = study.evaluations.to_frame()
    assert list(frame["state"]) == ["complete", "failed", "running", "running", "running"]
    assert frame["elements"][0] == 12.0
    assert frame["failure"][1] == "mesh did not converge"
    assert (frame["kind"] == "run").all()


@pytest.mark.parametrize("count", [0, -1, 1.5, True, None])
def test_ask_wants_a_whole_number(study: Study, count: object) -> None:
    with pytest.raises(InputError, match="ask: expected a whole number"):
        study.ask(count)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf])
def test_an_output_that_is_not_finite_is_a_failure(study: Study, value: float) -> None:
    (trial,) = study.ask()
    study.tell(trial.id, {**OUTPUTS, "stress": value})
    (row,) = study.evaluations
    assert row.state == "failed"
    assert "'stress' must be a finite number" in str(row.failure)
    assert row.outputs == {}


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({"mass": 1.0}, "'stress' is missing"),
        ({**OUTPUTS, "stress": "high"}, "stress must be a number"),
        ({**OUTPUTS, "stress": None}, "stress must be a number"),
        ([1.0, 2.0], "as a mapping"),
        (None, "either outputs or failed"),
    ],
)
def test_a_slip_of_the_pen_loses_nothing(study: Study, outputs: object, words: str) -> None:
    (trial,) = study.ask()
    with pytest.raises(InputError, match=words):
        study.tell(trial.id, outputs)  # type: ignore[arg-type]
    study.tell(trial.id, OUTPUTS)  # still pending, told right this time
    assert study.evaluations[0].state == "complete"


def test_failed_wants_a_reason(study: Study) -> None:
    (trial,) = study.ask()
    for reason in ("", " ", 3):
        with pytest.raises(InputError, match="reason"):
            study.tell(trial.id, failed=reason)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="both or neither"):
        study.tell(trial.id, OUTPUTS, failed="x")


def test_numbers_of_numpy_and_strings_of_digits_are_numbers(study: Study) -> None:
    (trial,) = study.ask()
    study.tell(trial.id, {"mass": np.float32(1.5), "stress": np.int64(2), "frequency": "3e0", "cost": np.array(4.0)})
    assert study.evaluations[0].outputs == {"mass": 1.5, "stress": 2.0, "frequency": 3.0, "cost": 4.0}


def test_old_runs_come_in_and_top_up_the_initial_design(study: Study) -> None:
    rows = [{"width": 1.0 + 0.1 * i, "ribs": i % 5, "note": "old", "load": 2.0, **OUTPUTS} for i in range(10)]
    rows[3]["width"] = 99.0
    rows[4]["stress"] = float("nan")
    report = study.add(pd.DataFrame(rows))
    assert report.added == (1, 2, 3, 4, 5, 6, 7, 8)
    assert [line for line, _ in report.problems] == [4, 5]
    assert "width must lie between 1.0 and 3.0" in report.problems[0][1]
    frame = study.evaluations.to_frame()
    assert set(frame["kind"]) == {"import"}
    assert (frame["load"] == 2.0).all()
    assert study.evaluations.requested == 0
    assert study.add(pd.DataFrame(rows)).known == 8
    study.ask(22)
    assert [len(row.point) for row in study.evaluations.running] == [2] * 22
    assert study._store.learner()[0] == 1  # 8 imported and 22 asked: one Latin hypercube so far
    study.ask(1)
    assert study._store.learner()[0] == 2


def test_the_focus_is_kept(study: Study, url: str) -> None:
    assert study.focused is None
    study.focus(pd.DataFrame({"stress": [2.0, 4.0], "frequency": [5.0, 3.0], "weight": [3, 1]}))
    focus = Study.open(url, "beam").focused
    assert focus is not None
    assert focus.thresholds == ((2.0, 5.0), (4.0, 3.0))
    assert focus.weights == (0.75, 0.25)
    with pytest.raises(InputError, match="stress must lie between"):
        study.focus({"stress": 100.0, "frequency": 5.0})
    assert study.focused == focus
    study.focus(None)
    assert study.focused is None


def test_a_frozen_table_does_not_change(study: Study) -> None:
    before = study.evaluations
    study.ask(3)
    assert len(before) == 0
    assert len(study.evaluations) == 3


def test_a_second_optimiser_is_refused_and_readers_are_welcome(study: Study, url: str, evaluate) -> None:
    other = Study.open(url, "beam")
    seen = []

    def nosy(point: dict[str, float]) -> dict[str, float]:
        with pytest.raises(StudyLockedError, match="is being optimised by process"):
            other.ask()
        seen.append((len(other.evaluations), other.optimiser))
        return evaluate(point)

    study.run(nosy, budget=2)
    assert [count for count, _ in seen] == [1, 2]
    assert all(label is not None for _, label in seen)
    assert other.optimiser is None


def test_a_study_of_a_missing_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such database"):
        Study.open(f"sqlite:///{tmp_path}/nothing.db", "beam")


class TellMachine(RuleBasedStateMachine):
    """Whatever the order of asks and tells: an evaluation is told once, nothing is lost, nothing comes back."""

    @initialize()
    def begin(self) -> None:
        problem = Problem("tiny", [Real("x", 0, 1)], Objective("f"), [Constraint("c", "<=", low=0, high=1)])
        self.study = Study.create(problem, "sqlite://")
        self.pending: list[int] = []
        self.done: dict[int, str] = {}

    @rule(count=st.integers(1, 4))
    def ask(self, count: int) -> None:
        trials = self.study.ask(count)
        assert len(trials) == count
        assert not {trial.id for trial in trials} & {*self.pending, *self.done}
        self.pending += [trial.id for trial in trials]

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), value=st.floats())
    def tell(self, data: st.DataObject, value: float) -> None:
        id = data.draw(st.sampled_from(self.pending))
        self.study.tell(id, {"f": 1.0, "c": value})
        self.pending.remove(id)
        self.done[id] = "complete" if np.isfinite(value) else "failed"

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(self.pending))
        self.study.tell(id, failed="no reason")
        self.pending.remove(id)
        self.done[id] = "failed"

    @precondition(lambda self: self.done)
    @rule(data=st.data())
    def tell_again(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.done)))
        with pytest.raises(StudyError, match=f"already {self.done[id]}"):
            self.study.tell(id, {"f": 0.0, "c": 0.0})

    @rule(id=st.integers(1000, 2000))
    def tell_unknown(self, id: int) -> None:
        with pytest.raises(StudyError, match="no evaluation"):
            self.study.tell(id, {"f": 0.0, "c": 0.0})

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def tell_half(self, data: st.DataObject) -> None:
        with pytest.raises(InputError, match="missing"):
            self.study.tell(data.draw(st.sampled_from(self.pending)), {"f": 0.0})

    @invariant()
    def nothing_is_lost(self) -> None:
        states = {row.id: row.state for row in self.study.evaluations}
        assert states == {**dict.fromkeys(self.pending, "running"), **self.done}


TellMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_the_tell_state_machine = TellMachine.TestCase
