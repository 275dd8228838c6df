"""The ledger of a study: decisions, proposals and audits. Entries are added, and never changed or removed.

Every entry carries the checksum of the one before, and the table `progress` counts them: an entry that was changed, removed or
slipped in by other means is damage, and is named.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo.domain.ledger import Entry, EntryKind
from cbabo.storage.rows import UNREADABLE, Damage, Row, is_intact, plain_text, sealed, utc
from cbabo.storage.schema import LEDGER, PROGRESS

AUTHOR_CHARACTERS = 255
"""Longest name of an author that is stored."""


class LedgerReading(NamedTuple):
    """What a ledger says, and what of it cannot be trusted."""

    entries: tuple[Entry, ...]
    damages: tuple[Damage, ...]


def read_ledger(connection: Connection, study: int, name: str) -> LedgerReading:
    """Return the intact entries of a study in the order in which they were made, and which others are damaged or missing."""
    query = sa.select(LEDGER).where(LEDGER.c.study_id == study).order_by(LEDGER.c.number)
    rows = {row["number"]: row for row in connection.execute(query).mappings()}
    progress = connection.execute(sa.select(PROGRESS).where(PROGRESS.c.study_id == study)).mappings().first()
    counted = progress is not None and is_intact(PROGRESS, progress)
    last = (progress["entries"] or 0) if counted and progress is not None else max(rows, default=0)
    found: list[Entry] = []
    damages: list[Damage] = []
    before: str | None = None
    for number in range(1, last + 1):
        row = rows.pop(number, None)
        entry = None if row is None else _read(row)
        if row is None:
            damages.append(Damage(name, None, f"entry {number} of the ledger is missing"))
        elif entry is None:
            damages.append(Damage(name, None, f"entry {number} of the ledger is damaged and left out"))
        elif row["previous"] != before:
            damages.append(Damage(name, None, f"entry {number} of the ledger does not follow the one before it"))
        if entry is not None:
            found.append(entry)
        before = None if row is None else row["checksum"]
    damages += [Damage(name, None, f"entry {number!r} of the ledger was never made") for number in rows]
    return LedgerReading(tuple(found), tuple(damages))


def append_entry(
    study: int, kind: EntryKind, author: str, content: Mapping[str, Any], refuse: Callable[[str], Any]
) -> Callable[[Connection], Entry]:
    """Return the transaction that adds an entry; refuse: called with what is damaged, if nothing can be added."""
    text = json.dumps(dict(content), allow_nan=False)
    by, made = plain_text(author)[:AUTHOR_CHARACTERS], time.time()

    def work(connection: Connection) -> Entry:
        mine = PROGRESS.c.study_id == study
        progress = connection.execute(sa.select(PROGRESS).where(mine)).mappings().first()
        if progress is None or not is_intact(PROGRESS, progress):
            refuse("the count of its ledger's entries is damaged, so that nothing can be added")
        assert progress is not None
        last = progress["entries"] or 0
        query = sa.select(LEDGER.c.checksum).where(LEDGER.c.study_id == study, LEDGER.c.number == last)
        before = connection.execute(query).scalar()
        if last and before is None:
            refuse(f"entry {last} of its ledger is missing, so that nothing can be added")
        values = {"study_id": study, "number": last + 1, "kind": kind, "made": made, "author": by, "content": text}
        row = sealed(LEDGER, {**values, "previous": before})
        connection.execute(sa.insert(LEDGER).values(row))
        changed = sealed(PROGRESS, {**progress, "entries": last + 1})
        connection.execute(sa.update(PROGRESS).where(mine).values(changed))
        entry = _read(row)
        assert entry is not None
        return entry

    return work


def _read(row: Row) -> Entry | None:
    """Return the entry of a row, None if the row is damaged."""
    if not is_intact(LEDGER, row):
        return None
    try:
        return Entry(row["number"], row["kind"], utc(row["made"]), row["author"], json.loads(row["content"]))
    except UNREADABLE:
        return None
