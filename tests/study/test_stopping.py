"""Failures that are the fault of the set-up: when a run gives up, and how the evaluations are made again."""

from __future__ import annotations

import pytest

from cbabo import Problem, Study
from cbabo.errors import InputError, RunStoppedError, StudyError
from learned import QUICK
from simulators import simulate_beam


@pytest.fixture
def study(beam: Problem, url: str) -> Study:
    return Study.create(beam, url, settings=QUICK)


def failing(where, says=lambda number: f"cannot open /tmp/run-{number}/beam.inp"):
    """An evaluator that fails where the number of the evaluation says so."""

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        number = current_evaluation.get()
        assert number is not None
        if where(number):
            raise OSError(says(number))
        return simulate_beam(point)

    return evaluate


def states(study: Study) -> str:
    return "".join({"failed": "f", "complete": "c", "running": "r"}[row.state] for row in study.evaluations)


def test_a_run_whose_first_five_fail_for_the_same_reason_stops(study: Study) -> None:
    with pytest.raises(RunStoppedError, match=r"first 5 .* same reason .*run-5/beam.inp.*cbabo retry STUDY --failed"):
        study.run(failing(lambda number: True), budget=30, in_process=True)
    assert states(study) == "fffff"


def test_ten_in_a_row_stop_a_run_that_began_well(study: Study) -> None:
    with pytest.raises(RunStoppedError, match="last 10 evaluations"):
        study.run(failing(lambda number: number > 2), budget=30, in_process=True)
    assert states(study) == "cc" + 10 * "f"
    with pytest.raises(RunStoppedError, match="first 5"):  # Of a run: the next one begins anew.
        study.run(failing(lambda number: True), budget=30, in_process=True)
    assert states(study) == "cc" + 15 * "f"


def test_failures_for_different_reasons_do_not_stop_a_run(study: Study) -> None:
    words = ("no convergence", "negative Jacobian")
    study.run(failing(lambda number: True, lambda number: words[number % 2]), budget=20, in_process=True)
    assert states(study) == 20 * "f"


def test_a_success_in_between_does_not_stop_a_run(study: Study) -> None:
    study.run(failing(lambda number: number % 5 > 0), budget=30, in_process=True)
    assert len(study.evaluations) == 30


def test_a_stated_number_overrides_the_default(study: Study) -> None:
    study.run(failing(lambda number: True), budget=20, stop_after_failures=100, in_process=True)
    assert states(study) == 20 * "f"


def test_what_failed_is_evaluated_again_and_counts_once(study: Study, beam: Problem, tmp_path) -> None:
    with pytest.raises(RunStoppedError):
        study.run(failing(lambda number: True), budget=30, in_process=True)
    made = study.retry()
    assert [trial.id for trial in made] == [6, 7, 8, 9, 10]
    assert [row.point for row in study.evaluations[:5]] == [trial.point for trial in made]
    assert set(study.unfinished.values()) == {"retry"}
    assert study.evaluations.requested == 5
    study.run(simulate_beam, budget=35, in_process=True)
    assert states(study) == "fffff" + 35 * "c"
    assert study.evaluations.requested == 35
    first = study.evaluations[0]
    assert (first.failure, first.excluded) == (
        "OSError: cannot open /tmp/run-1/beam.inp",
        "evaluated again as evaluation 6",
    )
    assert [row.kind for row in study.evaluations[5:11]] == [*5 * ["retry"], "run"]
    # The designs are those of a run that never failed.
    whole = Study.create(beam, f"sqlite:///{tmp_path}/whole.db", settings=QUICK)
    whole.run(simulate_beam, budget=35, in_process=True)
    assert [row.point for row in whole.evaluations] == [row.point for row in study.evaluations.complete]


def test_a_retry_that_was_killed_or_fails_is_not_lost(study: Study) -> None:
    study.run(failing(lambda number: number == 2), budget=3, in_process=True)

    def interrupted(point: dict[str, float]) -> dict[str, float]:
        raise KeyboardInterrupt

    study.retry([2])
    with pytest.raises(KeyboardInterrupt):
        study.run(interrupted, budget=3, in_process=True)
    assert study.unfinished == {4: "interrupted"}
    study.run(failing(lambda number: True), budget=3, in_process=True)
    assert (states(study), study.evaluations[3].excluded) == ("cfcf", None)
    study.retry([4])
    study.run(simulate_beam, budget=3, on_interrupted="fail", in_process=True)  # It was not interrupted.
    assert states(study) == "cfcfc"
    assert study.evaluations.requested == 3


def test_only_what_failed_or_was_excluded_is_evaluated_again(study: Study) -> None:
    assert study.retry() == []
    study.run(failing(lambda number: number == 2), budget=3, in_process=True)
    for ids, said in (([9], "no evaluation 9"), ([1], "did not fail"), ([2, 1], "did not fail")):
        with pytest.raises(StudyError, match=said):
            study.retry(ids)
    with pytest.raises(InputError, match="retry: expected ids"):
        study.retry([])
    study.forget([1], "coarse mesh")
    assert len(study.retry([1, 2, 2])) == 2
    with pytest.raises(StudyError, match="evaluated again as evaluation 4 already"):
        study.retry([1])
    with pytest.raises(StudyError, match="no outcome yet"):
        study.retry([4])
    study.tell(4, failed="again")
    study.tell(5, simulate_beam(dict(study.evaluations[4].point)))
    assert states(study) == "cfcfc"


def test_what_waits_is_told_apart(study: Study) -> None:
    (trial,) = study.ask(1)
    assert study.unfinished == {trial.id: "asked"}
    seen = []

    def look(point: dict[str, float]) -> dict[str, float]:
        seen.append(dict(study.unfinished))
        return simulate_beam(point)

    study.run(look, budget=2, in_process=True)
    assert seen == [{1: "asked", 2: "running"}]
