"""Revision 5: the ledger of decisions, proposals and audits, and how many entries it must have."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa
from alembic import op

from cbabo.storage.migrations.versions.r0003_checksums import refuse_live

revision = "0005"
down_revision = "0004"

_PROGRESS = ("entries", "evaluations", "steps", "study_id")
"""What the checksum of a row of the table progress is made of."""


def upgrade() -> None:
    """Create the ledger, and compute the checksums of the table that counts its entries."""
    connection = op.get_bind()
    refuse_live(connection)  # The older version would write checksums without the new column.
    op.create_table(
        "ledger",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("made", sa.Float, nullable=False),
        sa.Column("author", sa.String(255), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("previous", sa.String(16)),
        sa.Column("checksum", sa.String(16)),
        sa.PrimaryKeyConstraint("study_id", "number"),
    )
    op.add_column("progress", sa.Column("entries", sa.Integer))
    table = sa.table("progress", *map(sa.column, (*_PROGRESS, "checksum")))
    for row in connection.execute(sa.select(table)).mappings().all():
        if row["checksum"] != _digest(("progress", *(row[name] for name in _PROGRESS if name != "entries"))):
            continue  # A damaged row stays one.
        mine = table.c.study_id == row["study_id"]
        connection.execute(sa.update(table).where(mine).values(checksum=checksum(row)))


def checksum(row: Any) -> str:
    """Return the digest of a row of the table progress, as revision 5 stores it."""
    return _digest(("progress", *(row[name] for name in _PROGRESS)))


def _digest(content: tuple[Any, ...]) -> str:
    return hashlib.blake2b(ascii(content).encode(), digest_size=8).hexdigest()
