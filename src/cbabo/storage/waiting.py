"""What evaluations without an outcome wait for."""

from __future__ import annotations

import sqlalchemy as sa

from cbabo.domain.evaluations import Unfinished
from cbabo.storage.schema import EVALUATIONS
from cbabo.storage.store import RETRY, StudyStore


def unfinished(store: StudyStore) -> dict[int, Unfinished]:
    """Say of every evaluation without an outcome, by its id, what it waits for."""
    holder = store.holder()
    mine = (EVALUATIONS.c.study_id == store.record.id) & (EVALUATIONS.c.state == "running")
    query = sa.select(EVALUATIONS.c.number, EVALUATIONS.c.holder).where(mine).order_by(EVALUATIONS.c.number)
    rows = store.transactions.read(lambda connection: connection.execute(query).all())
    alive = None if holder is None else holder.token
    known: dict[str | None, Unfinished] = {None: "asked", RETRY: "retry", alive or "": "running"}
    return {number: known.get(token, "interrupted") for number, token in rows}
