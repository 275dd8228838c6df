"""Revision 1: studies, evaluations, planned batches, learners and locks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the five tables."""
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("seed", sa.String(40), nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("focus", sa.Text),
        sa.Column("versions", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_table(
        "evaluations",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("point", sa.Text, nullable=False),
        sa.Column("outputs", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("log", sa.Text),
        sa.Column("started", sa.Float),
        sa.Column("seconds", sa.Float),
        sa.Column("worker", sa.String(255)),
        sa.Column("holder", sa.String(64)),
        sa.PrimaryKeyConstraint("study_id", "number"),
    )
    op.create_table(
        "planned",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("point", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("study_id", "position"),
    )
    op.create_table(
        "learners",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("steps", sa.Integer, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "locks",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("machine", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Float, nullable=False),
        sa.Column("heartbeat", sa.Float, nullable=False),
    )
