"""Revision 3: a checksum in every row, how many evaluations there must be, excluded evaluations, and who holds a lock."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import sqlalchemy as sa
from alembic import op

from cbabo.errors import StorageError

revision = "0003"
down_revision = "0002"

_LIVE_SECONDS = 60.0
"""A lock with a younger heartbeat is taken to be in use."""

_COLUMNS = {
    "studies": ("created", "focus", "id", "name", "problem", "seed", "settings", "versions"),
    "evaluations": (
        "cause",
        "excluded",
        "failure",
        "holder",
        "kind",
        "log",
        "number",
        "outputs",
        "point",
        "seconds",
        "started",
        "state",
        "study_id",
        "thresholds",
        "worker",
    ),
    "planned": ("point", "position", "study_id"),
    "learners": ("state", "steps", "study_id"),
    "progress": ("evaluations", "steps", "study_id"),
}
"""What a checksum is made of, by table."""
_KEYS = {
    "studies": ("id",),
    "evaluations": ("study_id", "number"),
    "planned": ("study_id", "position"),
    "learners": ("study_id",),
}


def upgrade() -> None:
    """Add the columns, count what is there, and compute the checksum of every row."""
    connection = op.get_bind()
    refuse_live(connection)
    op.create_table(
        "progress",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("evaluations", sa.Integer, nullable=False),
        sa.Column("steps", sa.Integer, nullable=False),
        sa.Column("checksum", sa.String(16)),
    )
    for name in _KEYS:
        op.add_column(name, sa.Column("checksum", sa.String(16)))
    op.add_column("evaluations", sa.Column("excluded", sa.Text))
    op.add_column("locks", sa.Column("host", sa.String(255)))
    op.add_column("locks", sa.Column("written", sa.String(64)))
    _count(connection)
    for name, keys in _KEYS.items():
        _seal(connection, name, keys)


def checksum(table: str, row: Any) -> str:
    """Return the digest of a row, as revision 3 stores it."""
    content = ascii((table, *[row[name] for name in _COLUMNS[table]]))
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def refuse_live(connection: sa.Connection) -> None:
    """Refuse while a study is optimised: the older version would go on to write rows without checksums."""
    locks = sa.table("locks", sa.column("heartbeat"))
    if any(
        abs(time.time() - beat) < _LIVE_SECONDS for beat in connection.execute(sa.select(locks.c.heartbeat)).scalars()
    ):
        raise StorageError(
            "a study of this database is being optimised, or was within the last minute; stop it and upgrade a minute later"
        )
    connection.execute(sa.delete(locks))


def _count(connection: sa.Connection) -> None:
    """Write down how many evaluations and iterations each study has."""
    studies = sa.table("studies", sa.column("id"))
    evaluations = sa.table("evaluations", sa.column("study_id"), sa.column("number"))
    learners = sa.table("learners", sa.column("study_id"), sa.column("steps"))
    progress = sa.table("progress", *map(sa.column, (*_COLUMNS["progress"], "checksum")))
    last = sa.select(evaluations.c.study_id, sa.func.max(evaluations.c.number)).group_by(evaluations.c.study_id)
    numbers = {row[0]: row[1] for row in connection.execute(last)}
    steps = {row[0]: row[1] for row in connection.execute(sa.select(learners.c.study_id, learners.c.steps))}
    for study in connection.execute(sa.select(studies.c.id)).scalars().all():
        row = {"study_id": study, "evaluations": numbers.get(study, 0), "steps": steps.get(study, 0)}
        connection.execute(sa.insert(progress).values(**row, checksum=checksum("progress", row)))


def _seal(connection: sa.Connection, name: str, keys: tuple[str, ...]) -> None:
    """Compute the checksums of one table."""
    table = sa.table(name, *map(sa.column, (*_COLUMNS[name], "checksum")))
    rows = connection.execute(sa.select(*(table.c[column] for column in _COLUMNS[name]))).mappings().all()
    for row in rows:
        same = [table.c[key] == row[key] for key in keys]
        connection.execute(sa.update(table).where(*same).values(checksum=checksum(name, row)))
