"""Databases that do not answer for a while."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo import Problem, Study
from cbabo.errors import InputError, OutageError, StorageError, StudyLockedError
from cbabo.storage import outages, place
from cbabo.storage.database import Database
from cbabo.storage.outages import VARIABLE, outage_seconds, persist
from simulators import simulate_beam


@contextmanager
def foreign_lock(file: str, seconds: float) -> Iterator[None]:
    """Let another program keep the database locked."""
    taken, release = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            taken.set()
            release.wait(seconds)
            connection.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        release.set()
        thread.join()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "BUSY_SECONDS", 0.05)


def test_a_run_waits_for_a_foreign_lock_and_loses_nothing(
    beam: Problem, url: str, impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    study = Study.create(beam, url)
    locks = []

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        if len(locks) == 0:
            lock = foreign_lock(url.removeprefix("sqlite:///"), 1.0)
            locks.append(lock)
            lock.__enter__()
        return simulate_beam(point)

    with caplog.at_level(logging.INFO, logger="cbabo"):
        study.run(evaluate, budget=4, in_process=True)
    locks[0].__exit__(None, None, None)
    assert [row.id for row in study.evaluations.complete] == [1, 2, 3, 4]
    waited = [r for r in caplog.records if r.name == outages.__name__]
    assert [r.levelname for r in waited] == ["WARNING", "INFO"]
    assert "Waiting for up to 600 s; finished evaluations are kept meanwhile" in waited[0].getMessage()


def test_other_commands_fail_fast(beam: Problem, url: str, impatient: None) -> None:
    study = Study.create(beam, url)
    with foreign_lock(url.removeprefix("sqlite:///"), 30.0):
        for write in (lambda: study.ask(), lambda: study.focus(None), lambda: study.run(simulate_beam, budget=1)):
            began = time.monotonic()
            with pytest.raises(StorageError, match="is another program keeping it locked"):
                write()
            assert time.monotonic() - began < 20


def test_a_run_does_not_wait_for_ever(
    beam: Problem, url: str, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0.3")
    study = Study.create(beam, url)
    with study._store.locked(patient=True), foreign_lock(url.removeprefix("sqlite:///"), 30.0):
        began = time.monotonic()
        with pytest.raises(StorageError, match="does not answer"):
            study.ask()
        assert 0.3 <= time.monotonic() - began < 20
    study.run(simulate_beam, budget=1)  # its lock could not be released, but this process no longer holds it


@pytest.mark.parametrize("stated", ["soon", "-1", "nan"])
def test_a_wrong_time_gets_one_sentence(stated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, stated)
    with pytest.raises(InputError, match="CBABO_OUTAGE_SECONDS: expected a number of seconds from 0 on"):
        outage_seconds()


def test_what_does_not_pass_is_not_waited_for() -> None:
    def fail() -> None:
        raise OutageError("gone")

    began = time.monotonic()
    with pytest.raises(OutageError):
        persist(fail, 60.0, lambda: True)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("verb", ["plan", "take", "start", "finish", "interrupted", "insert"])
def test_a_commit_without_an_answer_is_made_once(
    beam: Problem, url: str, verb: str, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost at the commit, which was applied or not; the attempt after it stores nothing twice."""
    study = Study.create(beam, url)
    store = study._store
    point = {"width": 1.5, "ribs": 2}
    store.plan([point, {**point, "ribs": 3}], 1, b"state")
    with store.locked(patient=True):
        store.take(1, started=True)
    with store.locked(patient=True):
        store.interrupted()
        deeds = {
            "plan": lambda: store.plan([point], 2, b"later"),
            "take": lambda: store.take(1, started=True)[0].id,
            "start": lambda: store.start(point, "refine", started=True).id,
            "finish": lambda: store.finish(1, {"state": "complete", "outputs": simulate_beam(point)}).state,
            "interrupted": lambda: len(store.interrupted()),
            "insert": lambda: store.insert([(point, simulate_beam(point))]),
        }
        losses = _lose_answers(store.database, applied, monkeypatch)
        result = deeds[verb]()
        assert losses == [1]
        expected = {"plan": None, "take": 2, "start": 2, "finish": "complete", "interrupted": 0, "insert": [2]}
        assert result == expected[verb]
    counts = [_count(store.database, table) for table in ("evaluations", "planned")]
    further = {"plan": (0, 1), "take": (1, -1), "start": (1, 0), "insert": (1, 0)}.get(verb, (0, 0))
    assert counts == [1 + further[0], 1 + further[1]]


def _count(database: Database, table: str) -> int:
    with database.reading() as connection:
        return int(connection.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one())


def _lose_answers(database: Database, applied: bool, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the next commit fail after, or instead of, being made."""
    real = Database.writing
    losses: list[int] = []

    @contextmanager
    def writing(self: Database) -> Iterator[Connection]:
        if losses:
            with real(self) as connection:
                yield connection
            return
        with real(self) as connection:
            yield connection
            if not applied:
                losses.append(1)
                raise OutageError("the connection was lost")
        losses.append(1)
        raise OutageError("the connection was lost")

    monkeypatch.setattr(Database, "writing", writing)
    return losses


def test_who_was_taken_over_during_an_outage_stops(beam: Problem, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.create(beam, url)
    with study._store.locked(patient=True):
        with Database.open(url).writing() as connection:
            connection.execute(sa.text("UPDATE locks SET token = 'another'"))
        with pytest.raises(StudyLockedError, match="was taken over by another process"):
            study.ask()


def test_the_heartbeat_survives_an_outage(beam: Problem, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from cbabo.storage import transactions

    monkeypatch.setattr(transactions, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(place, "BUSY_SECONDS", 0.05)
    study = Study.create(beam, url)
    with study._store.locked():
        with foreign_lock(url.removeprefix("sqlite:///"), 0.5):
            time.sleep(0.6)
        before = study._store.holder()
        deadline = time.monotonic() + 10
        while study._store.holder() == before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert study._store.holder() != before


def test_a_full_disk_is_waited_for(tmp_path: Path, beam: Problem) -> None:
    """Room is made while the run waits."""
    study = Study.create(beam, f"sqlite:///{tmp_path}/study.db")
    with study._store.locked(patient=True):
        database = study._store.database
        with database.reading() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()

        def limit(count: int) -> None:
            with database._engine.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA max_page_count={count}")

        limit(pages)
        threading.Timer(0.5, lambda: limit(100_000)).start()
        began = time.monotonic()
        study._store.plan([{"width": 1.5, "ribs": 2}], 1, b"x" * 100_000)
        assert time.monotonic() - began >= 0.3
