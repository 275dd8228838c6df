"""Changed bytes: what is damaged is named and left out, and never becomes another value."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from benchmark_scripts import script
from cbabo import Problem, Settings, Study
from cbabo.errors import StorageError, StudyError
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from cbabo.storage.rows import checksum, sealed
from cbabo.storage.schema import EVALUATIONS, LEARNERS, PLANNED, PROGRESS, STUDIES
from cbabo.storage.store import StudyStore
from simulators import simulate_beam

POINT = {"width": 1.5, "ribs": 2}
OUTPUTS = simulate_beam(POINT)


@pytest.fixture
def store(database: Database, beam: Problem) -> StudyStore:
    """A study with three complete evaluations, a running one, and two proposals."""
    store = StudyStore.create(database, "beam", beam, 7, Settings.default())[0]
    store.plan([{**POINT, "ribs": i} for i in range(6)], 1, b"state")
    for trial in store.take(4, started=False)[:3]:
        store.finish(trial.id, {"state": "complete", "outputs": OUTPUTS, "seconds": 2, "worker": "here:1"})
    return store


def change(store: StudyStore, statement: str) -> None:
    with store.database.writing() as connection:
        connection.execute(sa.text(statement))


def listed(store: StudyStore) -> list[str]:
    return [str(damage) for damage in find_damage(store.database)]


def test_a_sound_database_has_no_damage(store: StudyStore) -> None:
    assert listed(store) == []
    assert store.damages() == ()


@pytest.mark.parametrize(
    "assignment",
    [
        "state = 'failed'",
        "kind = 'import'",
        "point = replace(point, '1.5', '1.6')",
        "outputs = replace(outputs, '0', '1')",
        "outputs = NULL",
        "outputs = x'ff00'",
        "outputs = CAST(x'7b22ff227d' AS TEXT)",
        "failure = 'x'",
        "cause = 'design'",
        "log = 'x'",
        "started = 3.0",
        "seconds = 2.0000000000000004",
        "seconds = 'x'",
        "worker = 'there:1'",
        "thresholds = '{}'",
        "excluded = 'x'",
        "holder = 'x'",
        "checksum = NULL",
    ],
)
def test_a_changed_value_of_an_evaluation_is_noticed(
    store: StudyStore, assignment: str, caplog: pytest.LogCaptureFixture
) -> None:
    change(store, f"UPDATE evaluations SET {assignment} WHERE number = 2")
    with caplog.at_level(logging.WARNING):
        assert [row.id for row in store.evaluations()] == [1, 3, 4]
        store.evaluations()
    assert caplog.text.count("study 'beam': evaluation 2 is damaged and left out") == 1
    assert listed(store) == ["study 'beam': evaluation 2 is damaged and left out"]


@pytest.mark.parametrize("assignment", ["number = 77", "study_id = 2"])
def test_an_evaluation_that_is_gone_is_named(store: StudyStore, beam: Problem, assignment: str) -> None:
    StudyStore.create(store.database, "other", beam, 7, Settings.default())
    change(store, f"UPDATE evaluations SET {assignment} WHERE number = 2")
    assert [row.id for row in store.evaluations()] == [1, 3, 4]
    assert "study 'beam': evaluation 2 is missing" in listed(store)
    assert len(listed(store)) == 2  # and where it is now


def test_the_last_evaluation_is_missed_too_and_no_id_is_given_out_twice(store: StudyStore) -> None:
    change(store, "DELETE FROM evaluations WHERE number > 2")
    change(store, "UPDATE evaluations SET number = 5 WHERE number = 1")
    assert [damage.id for damage in store.damages()] == [1, 3, 4, 5]
    assert [trial.id for trial in store.take(2, started=False)] == [6, 7]
    assert [row.id for row in store.evaluations()] == [2, 6, 7]


def test_a_damaged_evaluation_is_not_told_and_not_adopted(store: StudyStore) -> None:
    change(store, "UPDATE evaluations SET point = '{}', holder = 'dead' WHERE number = 4")
    with pytest.raises(StorageError, match="evaluation 4 is damaged"):
        store.finish(4, {"state": "failed", "failure": "x"})
    with store.locked():
        assert store.interrupted() == []
    with pytest.raises(StudyError, match="no evaluation 99"):
        store.finish(99, {"state": "failed", "failure": "x"})


def test_a_damaged_proposal_is_left_out(store: StudyStore, caplog: pytest.LogCaptureFixture) -> None:
    change(store, "UPDATE planned SET point = replace(point, '4', '3') WHERE position = 5")
    assert listed(store) == ["study 'beam': the proposal at position 5 is damaged"]
    (trial,) = store.take(1, started=False)
    assert (trial.id, trial.point["ribs"]) == (5, 5)
    assert "the proposal at position 5 is damaged and left out" in caplog.text
    assert store.take(1, started=False) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE learners SET state = x'00'",
        "UPDATE learners SET state = 'text'",
        "UPDATE learners SET state = 99999999999999",
        "UPDATE learners SET steps = 2",
        "DELETE FROM learners",
    ],
)
def test_a_damaged_state_of_the_method_gets_one_sentence(store: StudyStore, statement: str) -> None:
    change(store, statement)
    with pytest.raises(StorageError, match="study 'beam': the method's state is damaged; restore a copy"):
        store.learner()
    assert listed(store) == ["study 'beam': the method's state is damaged"]


@pytest.mark.parametrize(
    "assignment",
    ["problem = '{}'", "problem = x'00'", "seed = '8'", "settings = ''", "versions = '[]'", "created = 1.0"],
)
def test_a_damaged_study_gets_one_sentence(store: StudyStore, assignment: str) -> None:
    change(store, f"UPDATE studies SET {assignment}")
    with pytest.raises(StorageError, match="study 'beam': its problem, seed or settings are damaged"):
        Study.open(str(store.database.url), "beam")
    assert listed(store) == ["study 'beam': its problem, seed, settings or focus are damaged"]


def test_a_damaged_focus_gets_one_sentence(store: StudyStore) -> None:
    change(store, """UPDATE studies SET focus = '{"thresholds": [[1.0, 2.0]], "weights": [1.0]}'""")
    with pytest.raises(StorageError, match="settings or focus are damaged"):
        store.focus()


def test_a_study_whose_name_is_damaged_is_not_created_again(store: StudyStore, beam: Problem) -> None:
    change(store, "UPDATE studies SET name = 'bean'")
    url = str(store.database.url)
    for opening in (lambda: Study.open(url, "beam"), lambda: Study.create(beam, url)):
        with pytest.raises(StorageError, match="a study of this database is damaged .it is called 'bean' now"):
            opening()


def test_with_a_damaged_count_nothing_is_added_but_everything_is_read(
    store: StudyStore, caplog: pytest.LogCaptureFixture
) -> None:
    change(store, "UPDATE progress SET evaluations = 2")
    assert len(store.evaluations()) == 4
    assert "the count of its evaluations is damaged" in caplog.text
    with pytest.raises(StorageError, match="nothing can be added"):
        store.take(1, started=False)
    store.finish(4, {"state": "complete", "outputs": OUTPUTS})


@pytest.mark.parametrize(
    "assignment", ["pid = 'x'", "pid = -1", "heartbeat = 'x'", "heartbeat = 9e999", "token = x'00'", "machine = 3.5"]
)
def test_a_damaged_lock_is_none(store: StudyStore, assignment: str) -> None:
    other = StudyStore.open(Database.open(str(store.database.url)), "beam")
    with store.locked():
        change(other, f"UPDATE locks SET {assignment}")
        assert other.holder() is None
        other.take(1, started=False)


def test_the_check_command_lists_damage_and_fails(store: StudyStore) -> None:
    from typer.testing import CliRunner

    from cbabo.surfaces.cli import app

    url = str(store.database.url)
    sound = CliRunner().invoke(app, ["storage", "check", url])
    assert (sound.exit_code, sound.output) == (0, f"{url}: no damage was found.\n")
    change(store, "UPDATE evaluations SET seconds = 3.0 WHERE number = 2")
    damaged = CliRunner().invoke(app, ["storage", "check", url])
    assert isinstance(damaged.exception, StorageError)
    assert damaged.output.splitlines()[-1].split(maxsplit=2) == ["beam", "2", "is damaged and left out"]
    status = CliRunner().invoke(app, ["status", f"{url}::beam"])
    assert status.exit_code == 0
    assert "damaged and left out" in status.output
    as_json = CliRunner().invoke(app, ["status", f"{url}::beam", "--format", "json"])
    assert '"damage": "is damaged and left out"' in as_json.output


def test_a_checksum_covers_every_other_column() -> None:
    for table in (STUDIES, EVALUATIONS, PLANNED, LEARNERS, PROGRESS):
        row = sealed(table, {column.name: 1 for column in table.columns})
        for column in table.columns:
            if column.name != "checksum":
                assert checksum(table, {**row, column.name: None}) != row["checksum"], column


@pytest.mark.skipif(sys.platform == "win32", reason="the time limit is an alarm signal")
def test_damaged_files_give_no_traceback_no_hang_and_no_other_value(tmp_path: Path) -> None:
    verdicts = script("fuzz").fuzz_databases(tmp_path, 60, seed=1, models=False)
    assert verdicts["traceback"] == verdicts["hang"] == verdicts["other value"] == 0
    assert min(verdicts["unchanged"], verdicts["named"], verdicts["refused"]) >= 3, verdicts
