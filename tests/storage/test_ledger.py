"""The ledger: entries are added, also while the study runs, and every change by other means is found."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from cbabo import Problem, Settings
from cbabo.errors import StorageError
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from cbabo.storage.store import StudyStore


@pytest.fixture
def store(database: Database, beam: Problem) -> StudyStore:
    store = StudyStore.create(database, "beam", beam, 7, Settings.default())[0]
    for i in range(3):
        store.append("decision", f"user {i}", {"note": f"caf\u00e9 {i}", "objective": 0.1 + 0.2})
    return store


def change(store: StudyStore, statement: str) -> list[str]:
    with store.database.writing() as connection:
        connection.execute(sa.text(statement))
    return [str(damage) for damage in find_damage(store.database)]


def test_entries_come_back_as_they_were_made(store: StudyStore, database: Database, beam: Problem) -> None:
    entries = StudyStore.open(database, "beam").ledger()
    assert [(e.number, e.kind, e.by) for e in entries] == [(i + 1, "decision", f"user {i}") for i in range(3)]
    assert entries[2].content == {"note": "caf\u00e9 2", "objective": 0.1 + 0.2}
    assert entries[0].made <= entries[2].made
    assert entries[0].made.tzinfo is not None
    assert find_damage(database) == []
    other = StudyStore.create(database, "other", beam, 7, Settings.default())[0]
    assert other.ledger() == ()
    assert other.append("audit", "x", {}).number == 1


def test_an_entry_can_be_made_while_another_process_optimises(store: StudyStore, database: Database) -> None:
    with store.locked():
        assert StudyStore.open(database, "beam").append("proposal", "hk", {}).number == 4
        store.plan([{"width": 1.5, "ribs": 2}], 1, b"state")  # The count of entries is kept by the other transactions.
    assert len(store.ledger()) == 4
    assert find_damage(database) == []


@pytest.mark.parametrize(
    ("statement", "said", "left"),
    [
        ("UPDATE ledger SET author = 'nobody' WHERE number = 2", "entry 2 of the ledger is damaged", [1, 3]),
        ("UPDATE ledger SET content = '{}' WHERE number = 3", "entry 3 of the ledger is damaged", [1, 2]),
        ("DELETE FROM ledger WHERE number = 2", "entry 2 of the ledger is missing", [1, 3]),
        ("DELETE FROM ledger WHERE number = 3", "entry 3 of the ledger is missing", [1, 2]),
        ("UPDATE ledger SET number = 9 WHERE number = 3", "entry 9 of the ledger was never made", [1, 2]),
    ],
)
def test_changes_by_other_means_are_found(
    store: StudyStore, statement: str, said: str, left: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    assert any(said in text for text in change(store, statement))
    assert [entry.number for entry in store.ledger()] == left
    assert "of the ledger" in caplog.text


def test_a_sealed_row_in_the_place_of_another_does_not_follow(store: StudyStore) -> None:
    from cbabo.storage.rows import sealed
    from cbabo.storage.schema import LEDGER

    with store.database.writing() as connection:
        row = dict(connection.execute(sa.select(LEDGER).where(LEDGER.c.number == 2)).mappings().one())
        forged = sealed(LEDGER, {**row, "author": "somebody else"})
        connection.execute(sa.update(LEDGER).where(LEDGER.c.number == 2).values(forged))
    assert any("entry 3 of the ledger does not follow" in str(d) for d in find_damage(store.database))


def test_nothing_is_added_to_a_damaged_count_or_after_a_missing_entry(store: StudyStore) -> None:
    change(store, "DELETE FROM ledger WHERE number = 3")
    with pytest.raises(StorageError, match="entry 3 of its ledger is missing"):
        store.append("decision", "hk", {})
    change(store, "UPDATE progress SET entries = 2")
    with pytest.raises(StorageError, match="count of its ledger's entries is damaged"):
        store.append("decision", "hk", {})
