"""Amendments of a study: its problem as it was before each, and the change itself, in one transaction."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo.domain.focus import Focus
from cbabo.domain.problem import Problem
from cbabo.storage.rows import UNREADABLE, focus_text, is_intact, sealed, utc
from cbabo.storage.schema import AMENDMENTS, EVALUATIONS, LEARNERS, PLANNED, PROGRESS, STUDIES
from cbabo.storage.store import StudyStore

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Amendment:
    """One change of a study's problem."""

    problem: Problem
    """The problem before it."""
    changes: tuple[str, ...]
    """What was changed, such as "constraint 'stress': high 10 -> 12"."""
    values: Mapping[str, float]
    """The values that all designs before it have of variables that it added."""
    evaluations: int
    """The last evaluation that was requested before it."""
    amended: datetime
    """When, in UTC."""


@dataclass(frozen=True)
class Change:
    """What an amendment writes."""

    problem: Problem
    changes: Sequence[str]
    values: Mapping[str, float]
    focus: Focus | None
    state: bytes | None
    """The learner's state; None if there is none."""
    keeps_proposals: bool


def write_amendment(store: StudyStore, change: Change) -> None:
    """Replace the problem of a study, and note the one before: all or nothing of it."""
    study = store.record.id
    store.transactions.write(lambda connection: _write(connection, study, change))
    store.refresh()


def read_amendments(store: StudyStore) -> tuple[Amendment, ...]:
    """Return the amendments of a study, the oldest first; a damaged one is named in a warning and left out."""
    query = sa.select(AMENDMENTS).where(AMENDMENTS.c.study_id == store.record.id).order_by(AMENDMENTS.c.number)
    rows = store.transactions.read(lambda connection: connection.execute(query).mappings().all())
    found = []
    for row in rows:
        try:
            if not is_intact(AMENDMENTS, row):
                raise ValueError("the checksum does not fit")
            problem, changes = Problem.from_dict(json.loads(row["problem"])), tuple(json.loads(row["changes"]))
            found.append(Amendment(problem, changes, json.loads(row["given"]), row["evaluations"], utc(row["amended"])))
        except UNREADABLE:
            label, name = store.database.label, store.record.name
            _LOG.warning("%s: study %r: the record of amendment %s is damaged", label, name, row["number"])
    return tuple(found)


def _write(connection: Connection, study: int, change: Change) -> None:
    row = connection.execute(sa.select(STUDIES).where(STUDIES.c.id == study)).mappings().one()
    last = connection.execute(sa.select(PROGRESS.c.evaluations).where(PROGRESS.c.study_id == study)).scalar_one()
    count = connection.execute(sa.select(sa.func.count()).where(AMENDMENTS.c.study_id == study)).scalar_one()
    noted = {
        "study_id": study,
        "number": count + 1,
        "problem": row["problem"],
        "changes": json.dumps(list(change.changes)),
        "given": json.dumps(dict(change.values)),
        "evaluations": last,
        "amended": time.time(),
    }
    connection.execute(sa.insert(AMENDMENTS).values(sealed(AMENDMENTS, noted)))
    problem, focus = json.dumps(change.problem.to_dict()), focus_text(change.focus)
    amended = sealed(STUDIES, {**row, "problem": problem, "focus": focus})
    connection.execute(sa.update(STUDIES).where(STUDIES.c.id == study).values(amended))
    if change.values:
        _add_values(connection, study, change.values)
    if change.state is not None:
        learner = connection.execute(sa.select(LEARNERS).where(LEARNERS.c.study_id == study)).mappings().one()
        state = sealed(LEARNERS, {**learner, "state": change.state})
        connection.execute(sa.update(LEARNERS).where(LEARNERS.c.study_id == study).values(state))
    if not change.keeps_proposals:
        connection.execute(sa.delete(PLANNED).where(PLANNED.c.study_id == study))


def _add_values(connection: Connection, study: int, values: Mapping[str, float]) -> None:
    """Give every stored design the values of further variables; damaged rows stay as they are."""
    rows = connection.execute(sa.select(EVALUATIONS).where(EVALUATIONS.c.study_id == study)).mappings().all()
    for row in rows:
        if not is_intact(EVALUATIONS, row):
            continue
        point: dict[str, Any] = {**json.loads(row["point"]), **values}
        changed = sealed(EVALUATIONS, {**row, "point": json.dumps(point)})
        same = (EVALUATIONS.c.study_id == study) & (EVALUATIONS.c.number == row["number"])
        connection.execute(sa.update(EVALUATIONS).where(same).values({k: changed[k] for k in ("point", "checksum")}))
