"""Effort: lowered where batches are costly in themselves and beside their evaluations, stored with each batch, and said once."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from cbabo import Settings, Study
from cbabo.domain.evaluations import Evaluations
from cbabo.methods import effort as module
from cbabo.methods.effort import Effort, stored_effort, time_of_batch
from cbabo.methods.learner import Learner
from cbabo.methods.step import step
from cbabo.numerics.codec import pack, unpack
from cbabo.study import trials
from cbabo.surfaces.records import status_record
from learned import evaluated
from simulators import simulate_valley, valley

SETTINGS = Settings.default().replace(initial_evaluations=10, library=16)


def after(seconds: list[float], evaluation_seconds: float | None) -> list[int]:
    levels, effort = [], Effort()
    for one in seconds:
        effort = effort.after(one, evaluation_seconds)
        levels.append(effort.level)
    return levels


def test_effort_is_lowered_after_three_costly_batches_in_a_row() -> None:
    assert after([20.0, 20.0, 1.0, 20.0, 20.0, 20.0, 20.0], 50.0) == [0, 0, 0, 0, 0, 1, 1]
    assert after([20.0] * 12, 50.0)[-1] == 2


@pytest.mark.parametrize(
    ("seconds", "evaluation_seconds"),
    [(9.9, 0.001), (4.0, 1.0), (29.0, 300.0), (1e6, None)],
    ids=["a fast simulator", "an ordinary run", "a slow simulator", "unknown times"],
)
def test_effort_stays_where_batches_are_cheap(seconds: float, evaluation_seconds: float | None) -> None:
    assert after([seconds] * 10, evaluation_seconds)[-1] == 0


def test_evaluations_at_the_same_time_count_once() -> None:
    assert time_of_batch([1.0, 3.0], size=4, at_once=1) == 8.0
    assert time_of_batch([1.0, 3.0], size=4, at_once=4) == 2.0
    assert time_of_batch([1.0, 3.0], size=4, at_once=100) == 2.0
    assert time_of_batch([], size=4, at_once=1) is None


def test_each_level_uses_fewer_designs_but_not_too_few() -> None:
    assert [Effort(level).designs(5_000_000) for level in (0, 1, 2)] == [None, 790, 300]


def test_a_lower_level_is_stored_with_the_state_and_read_without_it() -> None:
    state = Learner(3, 8, effort=Effort(1, 2)).to_bytes()
    assert Learner.from_bytes(state).effort == stored_effort(state) == Effort(1, 2)
    assert stored_effort(None) == stored_effort(b"nonsense") == stored_effort(Learner(1).to_bytes()) == Effort()


def test_a_state_of_before_has_full_effort() -> None:
    plain, tensors = unpack(Learner(3, 8).to_bytes())
    del plain["learner"]["effort"]
    old = Learner.from_bytes(pack({**plain, "format": 3}, tensors))
    assert (old.iteration, old.sobol_position, old.effort) == (3, 8, Effort())


def test_a_lower_level_conditions_on_fewer_designs_and_repeats_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TUNING", replace(module.TUNING, fewest=20, factor=10**6))
    rows = evaluated(valley(), simulate_valley, 40)
    none = Evaluations(valley(), ())
    state = Learner(1, effort=Effort(1)).to_bytes()
    settings = SETTINGS.replace(noise="none")
    batch, new = step(rows, none, state, settings, 0)
    learner = Learner.from_bytes(new)
    assert learner.effort == Effort(1)
    assert learner.fit.hyperparameters is not None
    assert learner.fit.hyperparameters.explored == 20
    assert not any(row.point == point for row in rows for point in batch)
    assert (batch, new) == step(rows, none, state, settings, 0)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every batch take 20 s."""
    clock = itertools.count(0.0, 20.0)
    monkeypatch.setattr(trials, "thread_time", lambda: next(clock))


def run(url: str, *budgets: int) -> Study:
    for budget in budgets:
        study = Study.create(valley(), url, settings=SETTINGS, seed=1)
        study.run(simulate_valley, budget=budget, in_process=True)
    return Study.open(url, "valley")


@pytest.mark.usefixtures("slow")
def test_a_run_with_lowered_effort_is_the_same_when_it_is_resumed(tmp_path: Path) -> None:
    whole = run(f"sqlite:///{tmp_path}/whole.db", 40)
    resumed = run(f"sqlite:///{tmp_path}/resumed.db", 10, 22, 28, 40)
    assert [row.point for row in whole.evaluations] == [row.point for row in resumed.evaluations]
    assert whole.effort.level == resumed.effort.level == 2
    assert whole.learner_state == resumed.learner_state


def test_a_resumed_run_reads_the_level_instead_of_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/slow.db"
    with monkeypatch.context() as patch:
        clock = itertools.count(0.0, 20.0)
        patch.setattr(trials, "thread_time", lambda: next(clock))
        assert run(url, 25).effort == Effort(1, 0)
    assert run(url, 30).effort == Effort(1, 0)


@pytest.mark.usefixtures("slow")
def test_lowered_effort_is_said_once_for_each_level_and_by_status(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        study = run(f"sqlite:///{tmp_path}/said.db", 20, 50)
    said = [record.message for record in caplog.records if "effort" in record.message]
    assert len(said) == 2
    assert said[0].startswith("choosing a batch took 20 s, more than a tenth of the time of its evaluations")
    assert "level 2 of 2" in status_record(study, study.evaluations)["effort"]


def test_an_ordinary_run_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        study = run(f"sqlite:///{tmp_path}/plain.db", 20)
    assert not caplog.records
    assert status_record(study, study.evaluations)["effort"] is None
