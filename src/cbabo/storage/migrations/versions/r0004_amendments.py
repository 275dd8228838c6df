"""Revision 4: what the problem of a study was before it was amended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the table of amendments; rows of other tables, and their checksums, stay as they are."""
    op.create_table(
        "amendments",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("changes", sa.Text, nullable=False),
        sa.Column("given", sa.Text, nullable=False),
        sa.Column("evaluations", sa.Integer, nullable=False),
        sa.Column("amended", sa.Float, nullable=False),
        sa.Column("checksum", sa.String(16)),
        sa.PrimaryKeyConstraint("study_id", "number"),
    )
