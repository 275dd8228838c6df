"""Rows and their checksums: what is written carries one, and what is read is compared with it.

SQLite notices damage to the structure of a file, not a changed byte within a value. So every row has a column `checksum`,
a digest of all its other columns. A row whose checksum does not fit is damaged: it is named, and never used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo.domain.evaluations import Evaluation
from cbabo.domain.focus import Focus
from cbabo.domain.parts import taken_apart
from cbabo.storage.schema import EVALUATIONS, LEARNERS, PROGRESS

Row = Mapping[str, Any] | sa.RowMapping
"""A row by the names of its columns, as it is written or as it was read."""
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""What decoding a row may raise if it was written by somebody else."""


@dataclass(frozen=True)
class Damage:
    """Something in a database that cannot be trusted."""

    study: str
    """The study's name; empty if it concerns the whole database."""
    id: int | None
    """The evaluation, if it is one."""
    what: str
    """What is wrong, in one line."""

    def __str__(self) -> str:
        place = "" if self.id is None else f"evaluation {self.id} "
        return f"study {self.study!r}: {place}{self.what}" if self.study else self.what


def checksum(table: sa.Table, row: Row) -> str:
    """Return the digest of a row: of its table and of all columns but the checksum itself."""
    content = ascii(
        (table.name, *[row[name] for name in _columns(table)])
    )  # the shortest digits of a float, in every Python
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def sealed(table: sa.Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole row with its checksum, as it is to be written; columns that are not given are empty."""
    row = {name: _stored(table, name, values.get(name)) for name in _columns(table)}
    return {**row, "checksum": checksum(table, row)}


def is_intact(table: sa.Table, row: Row) -> bool:
    """Tell whether a row that was read is what was written."""
    return bool(row["checksum"] == checksum(table, row))


def read_evaluation(row: Row) -> Evaluation | None:
    """Return the evaluation of a row, None if the row is damaged."""
    if not is_intact(EVALUATIONS, row):
        return None
    try:
        outputs, sem = taken_apart(json.loads(row["outputs"]) if row["outputs"] else {})
        return Evaluation(
            id=row["number"],
            state=row["state"],
            kind=row["kind"],
            point=json.loads(row["point"]),
            outputs=outputs,
            failure=row["failure"],
            cause=row["cause"],
            log=row["log"] or "",
            started=None if row["started"] is None else utc(row["started"]),
            seconds=row["seconds"],
            worker=row["worker"],
            thresholds=json.loads(row["thresholds"]) if row["thresholds"] else None,
            excluded=row["excluded"],
            sem=sem,
        )
    except UNREADABLE:
        return None


def read_all(connection: Connection, study: int, name: str) -> tuple[tuple[Evaluation, ...], tuple[Damage, ...]]:
    """Return the intact evaluations of a study in the order of their ids, and which others are damaged or missing."""
    progress = connection.execute(sa.select(PROGRESS).where(PROGRESS.c.study_id == study)).mappings().first()
    query = sa.select(EVALUATIONS).where(EVALUATIONS.c.study_id == study).order_by(EVALUATIONS.c.number)
    found: dict[int, Evaluation] = {}
    damaged: dict[int, Damage] = {}
    rows = connection.execute(query)
    names = tuple(rows.keys())
    for values in rows:
        row = dict(zip(names, values, strict=True))  # many lookups follow, which a mapping of SQLAlchemy is slow at
        evaluation = read_evaluation(row)
        if evaluation is not None:
            found[evaluation.id] = evaluation
        elif isinstance(row["number"], int):
            damaged[row["number"]] = Damage(name, row["number"], "is damaged and left out")
    general = []
    if progress is None or not is_intact(PROGRESS, progress):
        general.append(Damage(name, None, "the count of its evaluations is damaged"))
        last = max(found, default=0)
    else:
        last = progress["evaluations"]
    for number in range(1, last + 1):
        if number not in found and number not in damaged:
            damaged[number] = Damage(name, number, "is missing")
    whole = tuple(found[number] for number in sorted(found))
    return whole, (*general, *(damaged[number] for number in sorted(damaged) if number not in found))


def read_learner(connection: Connection, study: int) -> sa.RowMapping | None:
    """Return the row of a study's learner; its state as it comes, since damage may have made something else of it."""
    state = sa.type_coerce(LEARNERS.c.state, sa.types.NullType()).label("state")
    query = sa.select(LEARNERS.c.study_id, LEARNERS.c.steps, state, LEARNERS.c.checksum)
    return connection.execute(query.where(LEARNERS.c.study_id == study)).mappings().first()


def focus_text(focus: Focus | None) -> str | None:
    """Write a focus down."""
    return None if focus is None else json.dumps(asdict(focus))


def read_focus(text: str) -> Focus:
    """Read a focus that was written down."""
    stored = json.loads(text)
    return Focus(tuple(map(tuple, stored["thresholds"])), tuple(stored["weights"]))


def plain_text(value: str) -> str:
    """Return a text that every database takes: a simulator may print bytes that are no text."""
    return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def utc(seconds: float) -> datetime:
    """Return a moment that is stored as seconds since 1970."""
    return datetime.fromtimestamp(seconds, tz=UTC)


@cache
def _columns(table: sa.Table) -> tuple[str, ...]:
    return tuple(sorted(column.name for column in table.columns if column.name != "checksum"))


def _stored(table: sa.Table, name: str, value: Any) -> Any:
    """Return a value with the type with which the database will return it."""
    if value is None:
        return None
    kind = table.c[name].type
    if isinstance(kind, sa.Float):
        return float(value)
    return int(value) if isinstance(kind, sa.Integer) else value
