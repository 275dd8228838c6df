from __future__ import annotations

import time
from dataclasses import replace

import pytest
import sqlalchemy as sa

from cbabo import Problem, Settings
from cbabo.errors import StorageError, StudyError, StudyLockedError
from cbabo.storage import transactions as module
from cbabo.storage.database import Database
from cbabo.storage.lock import STALE_SECONDS, Holder, read_holder, write_holder
from cbabo.storage.rows import sealed
from cbabo.storage.schema import LOCKS, STUDIES
from cbabo.storage.store import StudyStore
from cbabo.storage.studies import study_names

POINT = {"width": 1.5, "ribs": 2}
OUTPUTS = {"mass": 0.1 + 0.2, "stress": 1e-300, "frequency": -3.0, "cost": 1 / 3}


@pytest.fixture
def store(database: Database, beam: Problem) -> StudyStore:
    return StudyStore.create(database, "beam", beam, 7, Settings.default())[0]


def another(store: StudyStore) -> StudyStore:
    """The same study as another object of another connection sees it."""
    return StudyStore.open(Database.open(str(store.database.url)), "beam")


def test_what_a_study_was_created_with_comes_back(store: StudyStore, beam: Problem) -> None:
    record = another(store).record
    assert (record.problem, record.seed, record.settings) == (beam, 7, Settings.default())
    assert {"cbabo", "numpy", "torch"} <= set(record.versions)


def test_settings_of_another_version_get_a_sentence(store: StudyStore) -> None:
    with store.database.writing() as connection:
        row = connection.execute(sa.select(STUDIES)).mappings().one()
        connection.execute(sa.update(STUDIES).values(sealed(STUDIES, {**row, "settings": '{"warp_drive": 9}'})))
    with pytest.raises(StorageError, match="settings that this version does not know"):
        another(store)


def test_seeds_may_be_large(database: Database, beam: Problem) -> None:
    StudyStore.create(database, "big", beam, 2**100, Settings.default())
    assert StudyStore.open(database, "big").record.seed == 2**100


def test_an_unknown_study_is_told_which_there_are(store: StudyStore) -> None:
    with pytest.raises(StudyError, match="no study 'truss' .* it holds: 'beam'"):
        StudyStore.open(store.database, "truss")
    assert study_names(store.database) == ["beam"]


def test_a_batch_and_the_learners_state_are_stored_together(store: StudyStore) -> None:
    assert store.learner() == (0, None)
    store.plan([POINT, {**POINT, "ribs": 3}], 1, b"\x00state\xff")
    assert another(store).learner() == (1, b"\x00state\xff")
    with pytest.raises(StorageError, match="refused a row"):
        store.plan([POINT], 2, None)  # type: ignore[arg-type]
    assert another(store).learner() == (1, b"\x00state\xff")
    assert len(store.take(10, started=False)) == 2


def test_proposals_are_taken_in_order_and_once(store: StudyStore) -> None:
    store.plan([{**POINT, "ribs": i} for i in range(4)], 1, b"")
    first, second = store.take(2, started=False), another(store).take(5, started=False)
    assert [t.id for t in first + second] == [1, 2, 3, 4]
    assert [t.point["ribs"] for t in first + second] == [0, 1, 2, 3]
    assert store.take(1, started=False) == []
    assert store.requested() == 4


def test_numbers_come_back_to_the_last_bit(store: StudyStore) -> None:
    store.plan([{"width": 0.1 + 0.2, "ribs": 1}], 1, b"")
    trial = store.take(1, started=False)[0]
    store.finish(trial.id, {"state": "complete", "outputs": OUTPUTS})
    (row,) = another(store).evaluations()
    assert row.point == {"width": 0.1 + 0.2, "ribs": 1}
    assert row.outputs == OUTPUTS


def test_an_evaluation_is_finished_once(store: StudyStore) -> None:
    store.plan([POINT], 1, b"")
    (trial,) = store.take(1, started=False)
    store.finish(trial.id, {"state": "complete", "outputs": OUTPUTS})
    with pytest.raises(StudyError, match="already complete"):
        another(store).finish(trial.id, {"state": "failed", "failure": "late"})
    with pytest.raises(StudyError, match="no evaluation 99"):
        store.finish(99, {"state": "failed", "failure": "?"})
    assert store.evaluations()[0].state == "complete"


def test_nan_never_reaches_the_database(store: StudyStore) -> None:
    store.plan([POINT], 1, b"")
    (trial,) = store.take(1, started=False)
    with pytest.raises(ValueError, match="Out of range float"):
        store.finish(trial.id, {"state": "complete", "outputs": {"mass": float("nan")}})
    assert store.evaluations()[0].state == "running"


def test_while_one_holds_the_lock_others_read_but_do_not_write(store: StudyStore) -> None:
    store.plan([POINT, POINT], 1, b"")
    other = another(store)
    with store.locked():
        (trial,) = store.take(1, started=True)
        for write in (
            lambda: other.take(1, started=False),
            lambda: other.finish(trial.id, {"state": "failed", "failure": "x"}),
            lambda: other.insert([(POINT, OUTPUTS)]),
            lambda: other.set_focus(None),
        ):
            with pytest.raises(StudyLockedError, match="is being optimised by process"):
                write()
        with pytest.raises(StudyLockedError), other.locked():
            pass
        assert len(other.evaluations()) == 1
        holder = other.holder()
        assert holder is not None
        assert holder.token == store.token
    assert other.holder() is None
    assert len(other.take(1, started=False)) == 1


def test_the_lock_is_released_after_an_error_and_may_be_nested(store: StudyStore) -> None:
    with pytest.raises(ZeroDivisionError), store.locked(), store.locked():
        raise ZeroDivisionError
    with another(store).locked():
        pass


def elsewhere() -> Holder:
    return replace(Holder.here(), machine="boot:another|pid:[1]", host="elsewhere")


def leave_lock(store: StudyStore, holder: Holder) -> None:
    """Let a process elsewhere hold the lock, with its heartbeat."""
    with store.database.writing() as connection:
        write_holder(connection, store.record.id, holder)
        connection.execute(sa.update(LOCKS).values(heartbeat=holder.heartbeat))


def test_a_dead_holder_elsewhere_is_replaced_after_the_stated_time(
    store: StudyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.3)
    monkeypatch.setattr(type(store.database), "is_local", False)
    for age, free in ((STALE_SECONDS - 10, False), (STALE_SECONDS + 10, True), (-3600.0, True)):
        leave_lock(store, replace(elsewhere(), heartbeat=time.time() - age))
        if free:
            with store.locked():
                pass
        else:
            with pytest.raises(StudyLockedError, match="on elsewhere"), store.locked():
                pass


def test_who_lost_the_lock_stops_writing(store: StudyStore) -> None:
    store.plan([POINT], 1, b"")
    thief = elsewhere()
    with store.locked():
        with store.database.writing() as connection:
            write_holder(connection, store.record.id, thief)
        with pytest.raises(StudyLockedError, match="taken over by another process"):
            store.take(1, started=True)
    with store.database.reading() as connection:
        left = read_holder(connection, store.record.id)
    assert left is not None
    assert left.token == thief.token  # leaving does not break the new holder's lock


def test_the_holder_says_that_it_is_alive(store: StudyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.05)
    with store.locked():
        first = store.holder()
        deadline = time.monotonic() + 10
        while store.holder() == first and time.monotonic() < deadline:
            time.sleep(0.02)
        latest = store.holder()
        assert first is not None
        assert latest is not None
        assert latest.heartbeat > first.heartbeat


def test_only_what_a_run_left_behind_counts_as_interrupted(store: StudyStore) -> None:
    store.plan([{**POINT, "ribs": i} for i in range(3)], 1, b"")
    by_hand = store.take(1, started=False)
    with store.locked():
        by_run = store.take(2, started=True)
        store.finish(by_run[0].id, {"state": "failed", "failure": "x"})
        assert store.interrupted() == []  # its own are under way
    with another(store).locked():
        pass
    other = another(store)
    with other.locked():
        assert other.interrupted() == by_run[1:]
        assert other.interrupted() == []  # adopted
    assert [row.id for row in store.evaluations() if row.state == "running"] == [by_hand[0].id, by_run[1].id]


def test_imports_share_the_numbering_but_not_the_budget(store: StudyStore) -> None:
    store.plan([POINT], 1, b"")
    store.take(1, started=False)
    assert store.insert([(POINT, OUTPUTS), (POINT, OUTPUTS)]) == [2, 3]
    assert store.requested() == 1
    assert [(row.kind, row.state) for row in store.evaluations()][1:] == [("import", "complete")] * 2


def test_the_cause_of_a_failure_and_the_limits_of_a_refinement_come_back(store: StudyStore) -> None:
    limits = {"stress": 0.1 + 0.2, "frequency": 3.0}
    first = store.start(POINT, "refine", started=False, thresholds=limits)
    second = store.start(POINT, "refine", started=False)
    store.finish(first.id, {"state": "failed", "failure": "x", "cause": "set-up"})
    rows = another(store).evaluations()
    assert [(row.cause, row.thresholds) for row in rows] == [("set-up", limits), (None, None)]
    assert second.id == 2


def test_a_study_in_memory_works_too(beam: Problem) -> None:
    store, new = StudyStore.create(Database.create("sqlite://"), "beam", beam, 0, Settings.default())
    assert new
    with store.locked():
        store.plan([POINT], 1, b"x")
        assert store.take(1, started=True)[0].point == POINT
