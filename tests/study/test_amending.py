"""Amended studies: what is kept, what is learned anew, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cbabo import Constraint, Discrete, Integer, Model, Objective, Problem, Real, Settings, Study
from cbabo.domain.differences import differences
from cbabo.errors import InputError, StudyError, StudyLockedError
from cbabo.methods.learner import Learner
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from cbabo.study.modelcache import study_key
from cbabo.surfaces.document import document
from simulators import simulate_beam

SETTINGS = Settings.default().replace(initial_evaluations=12, library=16)


def changed(beam: Problem, **parts) -> Problem:
    stated = {
        "variables": beam.variables,
        "objective": beam.objective,
        "constraints": beam.constraints,
        **parts,
    }
    return Problem(beam.name, stated["variables"], stated["objective"], stated["constraints"])


def with_limit(beam: Problem, name: str, **fields) -> Problem:
    return changed(beam, constraints=[replace(c, **fields) if c.name == name else c for c in beam.constraints])


@pytest.fixture
def study(beam: Problem, url: str) -> Study:
    study = Study.create(beam, url, settings=SETTINGS)
    study.run(simulate_beam, budget=20, in_process=True)
    return study


def content(study: Study) -> list[tuple[object, ...]]:
    return [(row.id, row.state, dict(row.point), dict(row.outputs)) for row in study.evaluations]


def test_differences_are_named(beam: Problem) -> None:
    other = Problem(
        "beam 2",
        [replace(beam.variables[0], high=4.0, unit="mm"), Real("load", 1.0, 2.0)],
        Objective("mass", unit="t"),
        [replace(beam.constraints[0], high=12.0), Constraint("cost", "<=", low=10.0, high=40.0)],
    )
    assert differences(beam, other) == [
        "variable 'ribs' removed",
        "variable 'load' added",
        "variable 'width': high 3 -> 4",
        "variable 'width': unit none -> 'mm'",
        "constraint 'frequency' removed",
        "constraint 'stress': high 9 -> 12",
        "constraint 'cost': limit 40 -> none",
        "constraint 'cost': low none -> 10",
        "constraint 'cost': high none -> 40",
        "objective: unit 'kg' -> 't'",
        "problem: name 'beam' -> 'beam 2'",
    ]
    assert differences(beam, beam) == []
    assert differences(beam, changed(beam, variables=beam.variables[::-1])) == ["variables: in another order"]


def test_a_wider_box_is_answered_and_nothing_is_lost(study: Study, beam: Problem, url: str) -> None:
    before, key = content(study), study_key(study)
    wider = with_limit(beam, "stress", high=12.0)
    assert study.amend(wider) == ("constraint 'stress': high 9 -> 12",)
    assert study.problem == wider == Study.open(url, "beam").problem
    assert content(study) == before
    assert study_key(study) != key  # A kept model is not used any more.
    (noted,) = study.amendments
    assert (noted.problem, noted.evaluations, noted.changes) == (beam, 20, ("constraint 'stress': high 9 -> 12",))
    assert not study.model().predict({"stress": 11.0}).warnings
    study.run(simulate_beam, budget=24, in_process=True)
    assert len(study.evaluations.complete) == 24
    assert find_damage(Database.open(url)) == []
    assert study.amend(wider) == ()
    assert len(study.amendments) == 1


def test_labels_leave_what_was_learned(study: Study, beam: Problem) -> None:
    state = study.learner_state
    study.amend(with_limit(beam, "stress", nominal=7.0, unit="MPa"))
    assert study.learner_state == state
    assert study.problem.box.nominal["stress"] == 7.0


def test_limits_change_their_kind_or_go_and_others_come(study: Study, beam: Problem, tmp_path: Path) -> None:
    further = next(name for name in study.evaluations[0].outputs if name not in beam.outputs)
    ceiling = max(row.outputs[further] for row in study.evaluations) + 1.0
    study.focus([{"stress": 5.0, "frequency": 4.0, "weight": 3.0}, {"stress": 8.5, "frequency": 3.0}])
    new = changed(
        beam,
        objective=Objective("cost"),
        constraints=[
            Constraint("stress", "<=", low=1.0, high=6.0),
            Constraint("frequency", ">=", limit=2.0),
            Constraint(further, "<=", low=ceiling, high=ceiling + 1.0),
        ],
    )
    study.amend(new)
    focused = study.focused
    assert focused is not None
    assert focused.thresholds == ((5.0, ceiling + 0.5),)  # The other row lies outside; the frequency no longer moves.
    assert focused.weights == (1.0,)
    answer = study.model().predict({"stress": 5.0})
    assert answer.outputs[further].mean < ceiling
    study.run(lambda point: simulate_beam(point), budget=24, in_process=True)
    study.refine({"stress": 5.0}, simulate_beam, evaluations=1, in_process=True)
    study.amend(changed(new, constraints=[new.constraints[0], new.constraints[1]]))
    study.model().save(tmp_path / "amended.cbabo")
    assert Model.load(tmp_path / "amended.cbabo").evaluations[-1].thresholds is None  # Of a limit that is no more.
    assert study.problem.outputs == ("cost", "stress", "frequency")
    assert study.model().predict({}).status in ("predicted", "verified", "unreachable")


def test_an_output_that_was_not_recorded_is_refused_with_a_count(study: Study, beam: Problem) -> None:
    before = content(study)
    new = changed(beam, constraints=[*beam.constraints, Constraint("noise", "<=", low=1.0, high=2.0)])
    with pytest.raises(StudyError, match=r"20 of 20 measured evaluations \(1, 2, 3, \.\.\.\) have no output 'noise'"):
        study.amend(new)
    assert (study.problem, content(study), study.amendments) == (beam, before, ())
    trial = study.ask(1)[0]
    study.tell(trial.id, {**simulate_beam(trial.point), "noise": 1.5})
    study.forget(range(1, 21), "without noise")
    study.amend(new)
    with pytest.raises(InputError, match="'noise' is missing"):
        study.tell(study.ask(1)[0].id, simulate_beam(trial.point))


def test_narrower_bounds_keep_designs_outside_and_answers_inside(study: Study, beam: Problem, tmp_path: Path) -> None:
    narrow = changed(beam, variables=[Real("width", 1.5, 2.5), Integer("ribs", 0, 3)])
    study.amend(narrow)
    evaluations = study.evaluations
    inside = [1.5 <= row.point["width"] <= 2.5 and row.point["ribs"] <= 3 for row in evaluations]
    assert 0 < sum(inside) == len(evaluations.complete) < len(evaluations) == 20
    assert len(evaluations.outside) == 20 - sum(inside)
    assert float(np.abs(evaluations.complete.x - 0.5).max()) <= 0.5
    model = study.model()
    # What lies at most one range outside is learned from.
    assert len(model.posterior.measured) == len({tuple(row.point.values()) for row in evaluations})
    x = model.surrogates.x.numpy()
    assert x.min() < -0.3
    assert x.max() > 1.3
    stated = document(model, "beam")
    assert {row["id"] for row in stated["evaluations"]} == {row.id for row in evaluations.complete}
    assert set(stated["map"]["measured"]["ids"]) <= {row.id for row in evaluations.complete}
    model.save(tmp_path / "narrow.cbabo")
    again = Model.load(tmp_path / "narrow.cbabo")
    assert again.predict({"stress": 5.0}) == model.predict({"stress": 5.0})
    for stress in (1.0, 5.0, 9.0):
        row = model.predict_many([{"stress": stress, "frequency": 4.0}], fast=True).points[0]
        for point in (model.predict({"stress": stress}).point, dict(zip(narrow.space.names, row, strict=True))):
            assert 1.5 <= point["width"] <= 2.5
            assert point["ribs"] <= 3
    best = evaluations.best(narrow.box.nominal)
    assert best is None or 1.5 <= best.point["width"] <= 2.5
    study.run(simulate_beam, budget=26, in_process=True)
    assert len(study.evaluations.outside) == len(evaluations.outside)  # All new designs lie inside.
    study.amend(beam)  # Widened again: everything counts.
    assert len(study.evaluations.complete) == 26


def test_a_variable_is_added_with_the_value_that_it_had(study: Study, beam: Problem, url: str) -> None:
    new = changed(beam, variables=[*beam.variables, Real("load", 1.0, 3.0)])
    with pytest.raises(StudyError, match="'load' is added; state the value .* in the 20 stored evaluations"):
        study.amend(new)
    with pytest.raises(InputError, match="load must lie between 1.0 and 3.0"):
        study.amend(new, values={"load": 9.0})
    with pytest.raises(InputError, match="given for 'width'"):
        study.amend(new, values={"load": 2.0, "width": 1.0})
    asked = study.ask(1)[0]
    study.amend(new, values={"load": 2.0})
    assert {row.point["load"] for row in study.evaluations} == {2.0}
    assert study.amendments[0].values == {"load": 2.0}
    study.tell(asked.id, simulate_beam(asked.point))
    study.run(lambda point: simulate_beam({k: point[k] for k in ("width", "ribs")}), budget=26, in_process=True)
    assert len({row.point["load"] for row in study.evaluations}) > 2
    assert find_damage(Database.open(url)) == []


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ([Real("width", 1.0, 3.0)], "variable 'ribs' cannot be removed"),
        ([Integer("width", 1, 3), Integer("ribs", 0, 4)], "'width' cannot become integer, because .* stored designs"),
        ([Discrete("width", [1, 2, 3]), Integer("ribs", 0, 4)], "'width' cannot become discrete"),
    ],
)
def test_designs_that_do_not_fit_are_refused(study: Study, beam: Problem, variables, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        study.amend(changed(beam, variables=variables))
    assert study.problem == beam


def test_a_kind_that_all_designs_fit_is_taken(study: Study, beam: Problem) -> None:
    study.amend(changed(beam, variables=[beam.variables[0], Discrete("ribs", [0, 1, 2, 3, 4, 8])]))
    assert len(study.evaluations.complete) == 20
    assert study.model().predict({}).point["ribs"] in (0, 1, 2, 3, 4, 8)


def test_an_initial_design_is_begun_again_in_other_bounds(beam: Problem, url: str) -> None:
    study = Study.create(beam, url, settings=SETTINGS)
    study.run(simulate_beam, budget=5, in_process=True)
    study.amend(with_limit(beam, "stress", high=12.0))  # Limits do not matter to it.
    assert Learner.from_bytes(study.learner_state).iteration == 1
    study.amend(changed(beam, variables=[Real("width", 1.0, 5.0), beam.variables[1]]))
    assert Learner.from_bytes(study.learner_state).iteration == 0
    study.run(simulate_beam, budget=12, in_process=True)
    assert Learner.from_bytes(study.learner_state).iteration == 1
    assert max(row.point["width"] for row in study.evaluations) > 3.0


def test_a_study_that_runs_is_not_amended(study: Study, beam: Problem, url: str) -> None:
    other = Study.open(url, "beam")
    with study._store.locked(), pytest.raises(StudyLockedError, match="being optimised"):
        other.amend(with_limit(beam, "stress", high=12.0))


def test_whoever_opened_the_study_before_sees_it(study: Study, beam: Problem, url: str) -> None:
    earlier = Study.open(url, "beam")
    study.amend(changed(beam, variables=[Real("width", 2.0, 3.0), beam.variables[1]]))
    assert earlier.ask(1)[0].point["width"] >= 2.0
    assert earlier.problem == study.problem


def test_exist_ok_names_what_differs(study: Study, beam: Problem, url: str) -> None:
    with pytest.raises(StudyError, match=r"a different problem; constraint 'stress': high 9 -> 12; amend the study by"):
        Study.create(with_limit(beam, "stress", high=12.0), url, settings=SETTINGS)


def test_only_a_problem_is_taken(study: Study) -> None:
    with pytest.raises(InputError, match="amend: expected a Problem, got str"):
        study.amend("beam")  # type: ignore[arg-type]


def test_designs_far_outside_are_not_learned_from(beam: Problem, url: str) -> None:
    wide = changed(beam, variables=[Real("width", 1.0, 30.0), beam.variables[1]])
    study = Study.create(wide, url, settings=SETTINGS)
    study.run(simulate_beam, budget=14, in_process=True)
    near = [{"width": 1.0 + 0.4 * i, "ribs": i % 5} for i in range(6)]
    study.add(pd.DataFrame([{**point, **simulate_beam(point)} for point in near]))
    study.amend(changed(beam, variables=[Real("width", 1.0, 3.0, log=True), beam.variables[1]]))
    evaluations = study.evaluations
    widths = [row.point["width"] for row in evaluations.informative]
    assert len(widths) >= 6
    assert max(widths) <= 9.0  # One range beyond, on the logarithmic scale.
    assert 1.0 <= study.model().predict({"stress": 5.0}).point["width"] <= 3.0


def interrupt(point: dict[str, float]) -> dict[str, float]:
    raise KeyboardInterrupt


@pytest.mark.parametrize("left", ["interrupted", "retry"])
def test_what_waits_is_not_run_where_an_amendment_excludes_it(study: Study, beam: Problem, left: str) -> None:
    if left == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            study.run(interrupt, budget=21, in_process=True)
    else:
        study.run(lambda point: 1 / 0, budget=21, in_process=True)
        study.retry()
    waiting = study.evaluations[-1]
    assert study.unfinished == {waiting.id: left}
    width = float(waiting.point["width"])
    middle = 0.5 * (beam.variables[0].low + beam.variables[0].high)
    ends = {"low": width + 0.01} if width < middle else {"high": width - 0.01}
    study.amend(changed(beam, variables=[replace(beam.variables[0], **ends), *beam.variables[1:]]))
    asked: list[float] = []

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        asked.append(point["width"])
        return simulate_beam(point)

    study.run(evaluate, budget=24, in_process=True)
    assert width not in asked
    row = study.evaluations[waiting.id - 1]
    assert (row.state, row.failure, row.cause) == (
        "failed",
        "not evaluated: its design lies outside the bounds of the problem",
        "set-up",
    )
    assert not study.unfinished
    assert study.retry() == []
    with pytest.raises(StudyError, match=f"evaluation {row.id} cannot be made again, because its design lies outside"):
        study.retry([row.id])


def test_what_waits_is_not_run_where_a_new_relation_excludes_it(study: Study, beam: Problem) -> None:
    with pytest.raises(KeyboardInterrupt):
        study.run(interrupt, budget=21, in_process=True)
    waiting = study.evaluations[-1]
    width = float(waiting.point["width"])
    side = f"width >= {width + 0.01}" if width < 2.0 else f"width <= {width - 0.01}"
    study.amend(Problem(beam.name, beam.variables, beam.objective, beam.constraints, relations=[side]))
    study.run(simulate_beam, budget=22, in_process=True)
    assert study.evaluations[20].failure == f"not evaluated: its design breaks '{side}'"
