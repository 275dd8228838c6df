"""Looking for damage: every row of a database against its checksum, and what SQLite itself finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo.errors import StorageError
from cbabo.storage.database import Database
from cbabo.storage.ledger import read_ledger
from cbabo.storage.rows import Damage, is_intact, read_all, read_learner
from cbabo.storage.schema import AMENDMENTS, EVALUATIONS, LEARNERS, LEDGER, PLANNED, PROGRESS, STUDIES
from cbabo.storage.studies import read_study


def find_damage(database: Database) -> list[Damage]:
    """Return everything in a database that cannot be trusted; an empty list means that it is sound."""
    studies: dict[int, str] = {}
    found = [] if database.locks_rows else _collect(database, _structure)
    found += _collect(database, partial(_studies, database, studies))
    for number, name in studies.items():
        for part in (_evaluations, _proposals, _learner, _amendments, _ledger):
            found += _collect(database, partial(part, number, name))
    return list(dict.fromkeys([*found, *_collect(database, partial(_strays, set(studies)))]))


def _collect(database: Database, part: Callable[[Connection], Iterator[Damage]]) -> list[Damage]:
    """Return the damage to one part; that it cannot be read at all is damage too."""
    found: list[Damage] = []
    try:
        with database.reading() as connection:
            found.extend(part(connection))
    except StorageError as error:
        found.append(Damage("", None, str(error).removeprefix(f"{database.label}: ")))
    return found


def _structure(connection: Connection) -> Iterator[Damage]:
    for line in connection.exec_driver_sql("PRAGMA integrity_check").scalars():
        for text in str(line).splitlines():
            if text not in ("ok", ""):
                yield Damage("", None, f"SQLite reports: {text}")


def _studies(database: Database, studies: dict[int, str], connection: Connection) -> Iterator[Damage]:
    """Look at the studies themselves, and note which there are."""
    for row in connection.execute(sa.select(STUDIES).order_by(STUDIES.c.id)).mappings():
        studies[row["id"]] = name = str(row["name"])
        if not is_intact(STUDIES, row):
            yield Damage(name, None, "its problem, seed, settings or focus are damaged")
            continue
        try:
            read_study(database, row)
        except StorageError as error:
            yield Damage(name, None, str(error).removeprefix(f"{database.label}: "))


def _evaluations(study: int, name: str, connection: Connection) -> Iterator[Damage]:
    yield from read_all(connection, study, name)[1]


def _proposals(study: int, name: str, connection: Connection) -> Iterator[Damage]:
    query = sa.select(PLANNED).where(PLANNED.c.study_id == study).order_by(PLANNED.c.position)
    for row in connection.execute(query).mappings():
        if not is_intact(PLANNED, row):
            yield Damage(name, None, f"the proposal at position {row['position']} is damaged")


def _learner(study: int, name: str, connection: Connection) -> Iterator[Damage]:
    progress = connection.execute(sa.select(PROGRESS).where(PROGRESS.c.study_id == study)).mappings().first()
    row = read_learner(connection, study)
    if progress is None or not is_intact(PROGRESS, progress):
        return  # the evaluations tell of it
    if (0 if row is None else row["steps"]) != progress["steps"] or not (row is None or is_intact(LEARNERS, row)):
        yield Damage(name, None, "the method's state is damaged")


def _amendments(study: int, name: str, connection: Connection) -> Iterator[Damage]:
    query = sa.select(AMENDMENTS).where(AMENDMENTS.c.study_id == study).order_by(AMENDMENTS.c.number)
    for row in connection.execute(query).mappings():
        if not is_intact(AMENDMENTS, row):
            yield Damage(name, None, f"the record of amendment {row['number']} is damaged")


def _ledger(study: int, name: str, connection: Connection) -> Iterator[Damage]:
    yield from read_ledger(connection, study, name).damages


def _strays(studies: set[int], connection: Connection) -> Iterator[Damage]:
    """Look for rows of studies that there are not."""
    for table in (EVALUATIONS, PLANNED, LEARNERS, PROGRESS, AMENDMENTS, LEDGER):
        for number in connection.execute(sa.select(table.c.study_id).distinct()).scalars():
            if number not in studies:
                yield Damage("", None, f"the table {table.name} has rows of a study {number!r} that there is not")
