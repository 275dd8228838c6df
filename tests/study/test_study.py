from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cbabo import Constraint, Model, Objective, Problem, Real, Settings, Study
from cbabo.errors import InputError, ModelError, StorageError, StudyError, StudyLockedError
from learned import QUICK
from simulators import make_beam, simulate_beam

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
        ({"problem": other}, "a different problem;"),
        ({"seed": 1}, "a different seed;"),
        ({"settings": batch}, "different settings;"),
        ({"problem": other, "seed": 1}, "a different problem and a different seed;"),
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
        ({**OUTPUTS, "stress": "high"}, "'stress' must be one number, but is 'high' .of type str"),
        ({**OUTPUTS, "stress": "2.0"}, "'stress' must be one number, but is '2.0' .of type str"),
        ({**OUTPUTS, "stress": None}, "'stress' must be one number"),
        ({**OUTPUTS, "stress": True}, "'stress' must be one number, but is True .of type bool"),
        ({**OUTPUTS, "stress": np.True_}, "'stress' must be one number"),
        ({**OUTPUTS, "mass": np.array([2.0])}, "the objective 'mass' must be one number"),
        ({**OUTPUTS, "stress": np.array([[2.0]])}, "'stress' must be one number"),
        ({**OUTPUTS, "stress": 10**400}, "'stress' must be a finite number, but is too large for one: 1000"),
        ({**OUTPUTS, "note": "fine"}, "'note' must be one number"),
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


def test_scalars_of_numpy_are_numbers(study: Study) -> None:
    (trial,) = study.ask()
    study.tell(trial.id, {"mass": np.float32(1.5), "stress": np.int64(2), "frequency": 3, "cost": np.array(4.0)})
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
    missing = study.settings.first_batch(2, focused=False) - 8
    study.ask(missing)
    assert [len(row.point) for row in study.evaluations.running] == [2] * missing
    assert study._store.learner()[0] == 1  # Imported and asked together are one Latin hypercube so far.
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


def test_an_empty_list_clears_the_focus(study: Study, beam: Problem, url: str) -> None:
    rows = [{"stress": 2.0, "frequency": 5.0}, {"stress": 4.0, "frequency": 3.0, "weight": 3.0}]
    study.focus(rows)
    assert study.focused is not None
    assert study.focused.weights == (0.25, 0.75)
    study.focus([])
    assert study.focused is None
    study.focus(rows)
    assert Study.create(beam, url, focus=None, settings=study.settings).focused is not None
    assert Study.create(beam, url, focus=[], settings=study.settings).focused is None


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

    study.run(nosy, budget=2, in_process=True)
    assert [count for count, _ in seen] == [1, 2]
    assert all(label is not None for _, label in seen)
    assert other.optimiser is None


def test_a_study_of_a_missing_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such database"):
        Study.open(f"sqlite:///{tmp_path}/nothing.db", "beam")


# ---- its model

AT = {"stress": 5.0, "frequency": 3.0}


@pytest.fixture
def quick(beam: Problem, url: str) -> Study:
    return Study.create(beam, url, settings=QUICK)


def stored(url: str) -> list[str]:
    """Everything in the database, as text."""
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize("count", [0, 1])
def test_a_model_of_too_few_evaluations_gets_one_sentence(quick: Study, evaluate, count: int) -> None:
    quick.run(evaluate, budget=count, in_process=True)
    quick.ask(3)
    for ask in (quick.model, lambda: quick.refine(AT, evaluate)):
        with pytest.raises(ModelError, match=rf"^a model needs at least 2 measured designs, got {count}; run more .*$"):
            ask()
    assert len(quick.evaluations) == count + 3


def test_a_model_is_a_pure_reading(quick: Study, url: str, evaluate, tmp_path: Path) -> None:
    quick.run(evaluate, budget=37, in_process=True)
    before = stored(url)
    one, two = quick.model(), quick.model()
    one.predict(AT), one.recommend(AT, {"stress": "loosen"}), one.save(tmp_path / "model")
    assert stored(url) == before
    assert one.predict(AT) == two.predict(AT)
    assert len(one.evaluations) == 37
    assert Model.load(tmp_path / "model").predict(AT) == one.predict(AT)


def test_reading_a_model_does_not_change_the_run(beam: Problem, tmp_path: Path, evaluate) -> None:
    read, unread = (
        Study.create(beam, f"sqlite:///{tmp_path}/{name}.db", settings=QUICK) for name in ("read", "unread")
    )
    for budget in (20, 32, 40):
        read.run(evaluate, budget=budget, in_process=True)
        read.model()
    unread.run(evaluate, budget=40, in_process=True)
    assert [row.point for row in read.evaluations] == [row.point for row in unread.evaluations]
    assert read._store.learner() == unread._store.learner()


def test_a_model_can_be_had_while_the_study_runs(quick: Study, url: str, evaluate) -> None:
    other = Study.open(url, "beam")
    seen: list[int] = []

    def nosy(point: dict[str, float]) -> dict[str, float]:
        if len(other.evaluations.complete) in (5, 33):
            seen.append(len(other.model().evaluations.complete))
            with pytest.raises(StudyLockedError):
                other.refine(AT, evaluate)
        return evaluate(point)

    quick.run(nosy, budget=35, in_process=True)
    assert seen == [5, 33]
    assert len(quick.evaluations.complete) == 35


def test_a_model_of_imported_runs_only(quick: Study, evaluate) -> None:
    points = quick.problem.space.points(np.random.default_rng(0).random((12, 2)))
    quick.add(pd.DataFrame([{**point, **evaluate(point)} for point in points]))
    model = quick.model()
    answer = model.predict(AT)
    assert answer.status == "predicted"
    assert (
        model.predict({"stress": 9.0, "frequency": 2.0}).point != model.predict({"stress": 1.0, "frequency": 6.0}).point
    )
    assert quick.model().predict(AT) == answer
    assert quick._store.learner() == (0, None)


def test_a_model_knows_what_was_told_since(quick: Study, evaluate) -> None:
    quick.run(evaluate, budget=36, in_process=True)
    before = quick.model()
    (trial,) = quick.ask()
    assert len(quick.model().surrogates.x) == 36
    quick.tell(trial.id, evaluate(trial.point))
    after = quick.model()
    assert (len(before.surrogates.x), len(after.surrogates.x)) == (36, 37)
    assert after.pcm.weights.equal(before.pcm.weights)  # only an iteration trains it


def test_a_damaged_state_gets_one_sentence(quick: Study, url: str, evaluate) -> None:
    quick.run(evaluate, budget=35, in_process=True)
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE learners SET state = substr(state, 1, 1000)")
        connection.commit()
    for ask in (quick.model, lambda: quick.ask(6)):
        with pytest.raises(StorageError, match=r"study 'beam': the method's state is damaged; restore .*$"):
            ask()


# ---- refinement


@pytest.fixture(scope="module")
def after_a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "study.db"
    Study.create(make_beam(), f"sqlite:///{path}", settings=QUICK).run(simulate_beam, budget=35, in_process=True)
    return path


@pytest.fixture
def run(after_a_run: Path, url: str) -> Study:
    """A study of 35 evaluations, each time a fresh copy."""
    copy(after_a_run, Path(url.removeprefix("sqlite:///")))
    return Study.open(url, "beam")


def copy(source: Path, target: Path) -> None:
    with contextlib.closing(sqlite3.connect(source)) as old, contextlib.closing(sqlite3.connect(target)) as new:
        old.backup(new)


@pytest.mark.parametrize("evaluations", [1, 2])
def test_refinements_are_stored_and_do_not_count(run: Study, evaluate, evaluations: int) -> None:
    predicted = run.model().predict(AT)
    calls: list[dict[str, float]] = []

    def counting(point: dict[str, float]) -> dict[str, float]:
        calls.append(point)
        return evaluate(point)

    answer = run.refine(AT, counting, evaluations=evaluations, in_process=True)
    assert len(calls) == evaluations
    assert calls[0] == predicted.point
    rows = run.evaluations[35:]
    assert [(row.id, row.kind, row.state) for row in rows] == [
        (36 + i, "refine", "complete") for i in range(evaluations)
    ]
    assert [row.point for row in rows] == calls
    assert [row.thresholds for row in rows] == [AT] * evaluations  # what it was spent on is stored too
    assert rows[0].outputs == evaluate(calls[0])  # raw, with the number that nobody asked for
    assert rows[0].seconds is not None
    assert run.evaluations.requested == 35
    assert answer.verified
    assert answer.point in calls
    assert {name: e.mean for name, e in answer.outputs.items()}.items() <= evaluate(answer.point).items()
    run.run(evaluate, budget=37, in_process=True)
    assert run.evaluations.requested == 37
    assert len(run.evaluations) == 37 + evaluations


def test_an_evaluation_is_stored_before_anyone_learns_from_it(run: Study, url: str, evaluate) -> None:
    other = Study.open(url, "beam")
    seen: list[list[str]] = []

    def watching(point: dict[str, float]) -> dict[str, float]:
        rows = other.evaluations[35:]
        assert rows[-1].point == point
        seen.append([row.state for row in rows])
        return evaluate(point)

    run.refine(AT, watching, evaluations=3, in_process=True)
    assert seen == [["running"], ["complete", "running"], ["complete", "complete", "running"]]


def test_the_next_model_and_the_next_batch_know_refinements(run: Study, evaluate) -> None:
    before = len(run.model().surrogates.x)
    run.refine(AT, evaluate)
    model = run.model()
    assert len(model.surrogates.x) == before + 2
    refined = run.evaluations[36]
    x = torch.from_numpy(model.problem.space.unit(model.problem.space.array([refined.point])))
    assert float(model.surrogates.mean(x)[0, 0]) == pytest.approx(refined.outputs["mass"], abs=0.02)


def test_a_failing_evaluator_is_told_and_stored(run: Study) -> None:
    def broken(point: dict[str, float]) -> dict[str, float]:
        raise ValueError("mesh did not converge")

    predicted = run.model().predict(AT)
    answer = run.refine(AT, broken)
    assert answer.status == "predicted"
    assert answer.point == predicted.point
    assert answer.warnings == (
        "evaluation 36 failed: ValueError: mesh did not converge",
        "evaluation 37 failed: ValueError: mesh did not converge",
        "not verified: every evaluation failed",
    )
    rows = run.evaluations[35:]
    assert [(row.kind, row.state, row.failure) for row in rows] == [
        ("refine", "failed", "ValueError: mesh did not converge")
    ] * 2
    assert "Traceback" in rows[0].log
    assert run.evaluations.requested == 35
    assert len(run.model().surrogates.x) == 35


@pytest.mark.parametrize("outputs", [{"mass": 1.0}, {**OUTPUTS, "stress": float("nan")}, None, 3.0])
def test_what_a_simulator_returns_wrongly_is_a_failure(run: Study, outputs: object) -> None:
    answer = run.refine(AT, lambda point: outputs, evaluations=1)  # type: ignore[arg-type,return-value]
    assert answer.status == "predicted"
    assert len(answer.warnings) == 2
    assert run.evaluations[35].state == "failed"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"evaluations": 0}, "refine: evaluations must be a whole number from 1 on, got 0"),
        ({"evaluations": -1}, "refine: evaluations must be"),
        ({"evaluations": 1.5}, "refine: evaluations must be"),
        ({"evaluations": True}, "refine: evaluations must be"),
        ({"evaluations": None}, "refine: evaluations must be"),
        ({"evaluate": 3}, "refine: evaluate must be a function of a point, got 3"),
        ({"evaluate": None}, "refine: evaluate must be a function"),
        ({"thresholds": {**AT, "cost": 3.0}}, "fixed by the problem"),
        ({"thresholds": [[5.0, 3.0], [5.0, 3.0]]}, "thresholds: expected a mapping of names to limits"),
        ({"thresholds": None}, "thresholds: expected"),
    ],
)
def test_wrong_arguments_cost_nothing(run: Study, evaluate, changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        run.refine(**{"thresholds": AT, "evaluate": evaluate, **changes})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert len(run.evaluations) == 35


def test_an_interrupted_refinement_is_found_again_by_the_next_run(run: Study, evaluate) -> None:
    def interrupt(point: dict[str, float]) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.refine(AT, interrupt, in_process=True)
    assert run.optimiser is None
    assert [(row.kind, row.state) for row in run.evaluations[35:]] == [("refine", "running")]
    assert run.refine(AT, evaluate, evaluations=1).verified  # and does not stand in the way
    run.run(evaluate, budget=35, in_process=True)
    assert [(row.kind, row.state) for row in run.evaluations[35:]] == [("refine", "complete")] * 2
    assert run.evaluations.requested == 35


def test_a_refinement_that_was_made_again_counts_as_its_own(run: Study, evaluate, tmp_path: Path, url: str) -> None:
    copy(Path(url.removeprefix("sqlite:///")), tmp_path / "whole.db")

    def failing(point: dict[str, float]) -> dict[str, float]:
        raise OSError("no licence")

    run.refine(AT, failing, evaluations=1, in_process=True)
    run.retry()
    run.run(evaluate, budget=35, in_process=True)
    again = run.evaluations[-1]
    assert (again.kind, again.state, again.thresholds) == ("retry", "complete", AT)
    run.refine(AT, evaluate, evaluations=1, in_process=True)
    whole = Study.open(f"sqlite:///{tmp_path}/whole.db", "beam")
    whole.refine(AT, evaluate, evaluations=2, in_process=True)
    assert [row.point for row in run.evaluations[36:]] == [row.point for row in whole.evaluations[35:]]


def test_refining_imported_runs_only(quick: Study, evaluate) -> None:
    points = quick.problem.space.points(np.random.default_rng(0).random((8, 2)))
    quick.add(pd.DataFrame([{**point, **evaluate(point)} for point in points]))
    assert quick.refine(AT, evaluate).verified
    assert [row.kind for row in quick.evaluations] == ["import"] * 8 + ["refine"] * 2


class TellMachine(RuleBasedStateMachine):
    """Whatever the order of asks and tells: an evaluation is told once, nothing is lost, nothing comes back."""

    @initialize()
    def begin(self) -> None:
        problem = Problem("tiny", [Real("x", 0, 1)], Objective("f"), [Constraint("c", "<=", low=0, high=1)])
        self.study = Study.create(problem, "sqlite://", settings=QUICK)
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
        self.done[id] = "complete" if abs(value) <= 1e150 else "failed"

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
        with pytest.raises(StudyError, match="is already"):
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


# ---- with the default settings


DEFAULT = Settings.default().replace(library=8)


@pytest.fixture
def solving(beam: Problem, url: str) -> Study:
    return Study.create(beam, url, settings=DEFAULT)


@pytest.fixture(scope="module")
def after_a_default_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("default") / "study.db"
    Study.create(make_beam(), f"sqlite:///{path}", settings=DEFAULT).run(simulate_beam, budget=27, in_process=True)
    return path


@pytest.fixture
def solved(after_a_default_run: Path, url: str) -> Study:
    """A study of 27 evaluations, each time a fresh copy."""
    copy(after_a_default_run, Path(url.removeprefix("sqlite:///")))
    return Study.open(url, "beam")


def test_a_default_model_is_a_pure_reading_too(beam: Problem, tmp_path: Path, evaluate) -> None:
    read, unread = (
        Study.create(beam, f"sqlite:///{tmp_path}/{name}.db", settings=DEFAULT) for name in ("read", "unread")
    )
    for budget in (14, 17, 22):
        read.run(evaluate, budget=budget, in_process=True)
        before = stored(f"sqlite:///{tmp_path}/read.db")
        model = read.model()
        model.predict(AT), model.predict_many([[5.0, 3.0]], fast=True).to_frame()
        assert stored(f"sqlite:///{tmp_path}/read.db") == before
        assert read.model().predict(AT) == model.predict(AT)
    unread.run(evaluate, budget=22, in_process=True)
    assert [row.point for row in read.evaluations] == [row.point for row in unread.evaluations]
    assert read._store.learner() == unread._store.learner()


def test_the_next_answer_knows_a_refinement(solved: Study, evaluate) -> None:
    for at in (AT, {"stress": 2.0, "frequency": 4.0}, {"stress": 8.0, "frequency": 2.5}):
        refined = solved.refine(at, evaluate, in_process=True)
        assert refined.verified
        assert refined.feasible
        again = solved.model().predict(at)
        assert again.objective.mean <= refined.objective.mean + 1e-9
        assert again.probability_feasible >= 0.97
        known = evaluate(again.point)
        assert known["stress"] <= at["stress"] + 1e-6
        assert known["frequency"] >= at["frequency"] - 1e-6
    assert {row.kind for row in solved.evaluations[27:]} <= {"refine"}
    assert solved.evaluations.requested == 27


def test_old_runs_are_answered_from_at_once(solving: Study, evaluate) -> None:
    points = solving.problem.space.points(np.random.default_rng(0).random((25, 2)))
    solving.add(pd.DataFrame([{**point, **evaluate(point)} for point in points]))
    answer = solving.model().predict(AT)
    assert answer.status in ("predicted", "verified")
    assert evaluate(answer.point)["stress"] <= 5.0 + 1e-6
    assert solving._store.learner() == (0, None)
    solving.run(evaluate, budget=10, in_process=True)
    assert len(solving.evaluations.complete) == 35


def test_a_focus_draws_evaluations_to_its_thresholds(beam: Problem, tmp_path: Path, evaluate) -> None:
    at = {"stress": 2.0, "frequency": 3.0}
    focused = Study.create(beam, f"sqlite:///{tmp_path}/focused.db", settings=DEFAULT, focus=pd.DataFrame([at]))
    whole = Study.create(beam, f"sqlite:///{tmp_path}/whole.db", settings=DEFAULT)
    for study in (focused, whole):
        study.run(evaluate, budget=30, in_process=True)
    best = np.sqrt(6.0)  # the width at which the stress is 2 without ribs

    def near(study: Study) -> int:
        return sum(abs(row.point["width"] - best) < 0.05 for row in study.evaluations[15:])

    assert near(focused) > near(whole)
    incumbent = focused.evaluations.best(at)
    assert incumbent is not None
    assert incumbent.outputs["mass"] < 6.2


def test_failures_do_not_stop_the_defaults(beam: Problem, url: str, evaluate) -> None:
    study = Study.create(beam, url, settings=DEFAULT.replace(initial_evaluations=30))

    def brittle(point: dict[str, float]) -> dict[str, float]:
        if point["width"] > 2.6:
            raise ValueError("mesh")
        return evaluate(point)

    study.run(brittle, budget=60, in_process=True)
    assert len(study.evaluations) == 60
    late = study.evaluations[40:]
    assert sum(row.state == "failed" for row in late) <= 4
    model = study.model()
    assert model.predict({"stress": 5.0, "frequency": 3.0}).point["width"] <= 2.65


def spent(study: Study) -> list[tuple[dict[str, float], dict[str, float]]]:
    return [(dict(row.point), dict(row.outputs)) for row in study.evaluations if row.kind == "refine"]


@pytest.mark.parametrize("ran", ["after_a_default_run", "after_a_run"], ids=["default", "paper"])
def test_one_call_and_several_calls_refine_alike(
    request: pytest.FixtureRequest, tmp_path: Path, evaluate, ran: str
) -> None:
    """Verify, then improve in further calls: the error just measured counts, and no row is learned twice."""
    names = ("one", "several", "started")
    for name in names:
        copy(request.getfixturevalue(ran), tmp_path / f"{name}.db")
    one, several, started = (Study.open(f"sqlite:///{tmp_path}/{name}.db", "beam") for name in names)
    at = {"stress": 4.3, "frequency": 3.1}
    whole = one.refine(at, evaluate, evaluations=3, in_process=True)
    parts = [several.refine(at, evaluate, evaluations=1, in_process=True) for _ in range(3)]
    first = started.refine(at, evaluate, evaluations=1, in_process=True)
    last = started.refine(at, evaluate, evaluations=2, start=first.point, in_process=True)
    assert len(spent(one)) >= 2
    assert spent(one) == spent(several) == spent(started)
    assert parts[-1].point == last.point == whole.point
    assert parts[-1].objective == last.objective == whole.objective
    assert all(row.thresholds == at for row in one.evaluations if row.kind == "refine")


def test_a_refinement_for_other_limits_begins_anew(solved: Study, evaluate) -> None:
    solved.refine({"stress": 4.3, "frequency": 3.1}, evaluate, evaluations=1, in_process=True)
    before = len(solved.evaluations)
    known = solved.model().predict({"stress": 6.0, "frequency": 3.0})
    solved.refine({"stress": 6.0, "frequency": 3.0}, evaluate, evaluations=1, in_process=True)
    made = solved.evaluations[before:]
    assert len(made) == (0 if known.verified else 1)
    assert all(dict(row.point) == known.point for row in made)


def test_a_measured_design_that_breaks_a_limit_says_which_and_by_how_much(solved: Study, evaluate) -> None:
    answer = solved.refine({"stress": 1.0, "frequency": 6.0}, evaluate, evaluations=1, in_process=True)
    assert answer.status == "measured"
    assert not answer.verified
    assert answer.probability_feasible == 0.0
    broken = [text for text in answer.warnings if text.startswith("the measured design breaks ")]
    assert broken
    stress = next(text for text in broken if "stress <= 1" in text)
    assert f"by {answer.outputs['stress'].mean - 1.0:.4g}" in stress


# ---- excluding


def test_what_is_forgotten_teaches_nothing_but_stays_in_the_record(beam: Problem, url: str, evaluate) -> None:
    study = Study.create(beam, url)
    study.run(evaluate, budget=6)
    (failed,) = study.ask()
    study.tell(failed.id, failed="no convergence")
    study.forget([2, failed.id], reason="the wrong\n mesh")
    rows = Study.open(url, "beam").evaluations
    assert [row.id for row in rows.complete] == [1, 3, 4, 5, 6]
    assert len(rows.failed) == len(rows.failed_designs) == 0
    assert [(row.id, row.excluded) for row in rows.excluded] == [(2, "the wrong mesh"), (7, "the wrong mesh")]
    assert rows.requested == 7  # they were spent
    assert rows.to_frame()["excluded"].dropna().to_dict() == dict.fromkeys((1, 6), "the wrong mesh")
    assert rows[1].outputs == evaluate(dict(rows[1].point))
    study.forget(2, reason="the wrong mesh")
    study.forget([2, 7], undo=True)
    study.forget([2, 7], undo=True)
    again = study.evaluations
    assert (len(again.complete), len(again.failed), len(again.excluded)) == (6, 1, 0)


def test_forgetting_is_all_or_nothing(beam: Problem, url: str, evaluate) -> None:
    study = Study.create(beam, url)
    study.run(evaluate, budget=2)
    (pending,) = study.ask()
    for wrong, words in (([1, pending.id], "evaluation 3 has no outcome yet"), ([1, 99], "there is no evaluation 99")):
        with pytest.raises(StudyError, match=words):
            study.forget(wrong)
    for ids, reason in (([], "x"), (["1"], "x"), ([True], "x"), ([1], " "), ([1], None)):
        with pytest.raises(InputError, match="forget: "):
            study.forget(ids, reason)
    assert len(study.evaluations.excluded) == 0


def test_an_excluded_run_is_not_imported_again(beam: Problem, url: str, evaluate) -> None:
    study = Study.create(beam, url)
    table = pd.DataFrame([{"width": 1.5, "ribs": 2, **evaluate({"width": 1.5, "ribs": 2})}])
    study.add(table)
    study.forget([1])
    assert study.add(table).known == 1


def test_a_model_knows_nothing_of_what_is_forgotten(quick: Study, evaluate) -> None:
    quick.run(evaluate, budget=34)
    quick.forget([5, 6])
    assert len(quick.model().surrogates.x) == 32
