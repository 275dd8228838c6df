"""Revision 2: why an evaluation failed, which limits it was spent on, and settings as a preset with its own values."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_GIVEN_UP = (
    "no answer within%",
    "the executor lost it%",
    "interrupted:%",
    "the worker process died%",
    "the worker process closed the pipe%",
    "the worker could not load the task%",
    "a worker process cannot be started%",
    "the pool was shut down%",
)
"""How failures begin that say nothing about the design."""

_BOTH = (
    "initial_evaluations",
    "batch_size",
    "hidden_layers",
    "hidden_width",
    "recommend_candidates",
    "recommend_rounds",
    "recommend_guided",
    "recommend_range",
    "objective_weight",
    "barrier_weight",
    "reward_weight",
)
_OWN = {
    "default": ("probability", "answers_per_batch", "batch_thresholds", "library"),
    "paper": (
        "horizon",
        "inner_steps",
        "thresholds_per_step",
        "learning_rate",
        "least_learning_rate",
        "beta",
        "alpha",
        "candidates",
        "candidate_source",
        "similarity",
        "refine_radius",
        "recommend_tolerance",
    ),
}


def upgrade() -> None:
    """Add two columns to the evaluations and convert the settings of all studies."""
    op.add_column("evaluations", sa.Column("cause", sa.String(16)))
    op.add_column("evaluations", sa.Column("thresholds", sa.Text))
    connection = op.get_bind()
    rows = sa.table("evaluations", sa.column("state"), sa.column("failure"), sa.column("cause"))
    failed = sa.update(rows).where(rows.c.state == "failed")
    connection.execute(failed.values(cause="design"))
    given_up = sa.or_(*(rows.c.failure.like(text) for text in _GIVEN_UP))
    connection.execute(failed.where(given_up).values(cause="set-up"))
    studies = sa.table("studies", sa.column("id"), sa.column("settings"))
    for number, text in connection.execute(sa.select(studies.c.id, studies.c.settings)).all():
        settings = json.dumps(convert(json.loads(text)))
        connection.execute(sa.update(studies).where(studies.c.id == number).values(settings=settings))


def convert(old: dict[str, Any]) -> dict[str, Any]:
    """Return settings as a preset and the values that belong to it."""
    preset = "default" if old.get("candidate_source", "solver") == "solver" else "paper"
    return {"preset": preset, **{name: old[name] for name in (*_BOTH, *_OWN[preset]) if name in old}}
