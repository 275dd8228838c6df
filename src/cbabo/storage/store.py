"""One study's rows: evaluations, proposals, the learner's state and the focus."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo.domain.evaluations import RETRIED, Evaluation, Kind, Trial
from cbabo.domain.focus import Focus
from cbabo.domain.ledger import Entry, EntryKind
from cbabo.domain.parts import Reading
from cbabo.domain.problem import Problem
from cbabo.errors import StorageError, StudyError
from cbabo.methods.settings import MethodSettings
from cbabo.storage.database import Database
from cbabo.storage.ledger import append_entry, read_ledger
from cbabo.storage.lock import Holder
from cbabo.storage.rows import (
    UNREADABLE,
    Damage,
    Row,
    focus_text,
    is_intact,
    plain_text,
    read_all,
    read_evaluation,
    read_focus,
    read_learner,
    sealed,
)
from cbabo.storage.schema import EVALUATIONS, LEARNERS, PLANNED, PROGRESS, STUDIES
from cbabo.storage.studies import StudyRecord, add_study, find_study, read_study
from cbabo.storage.transactions import Transactions

_LOG = logging.getLogger(__name__)
RETRY = "retry"
"""Stands for the token of a run in evaluations that the next run is to make."""
_RESTORE = "restore a copy of the database, or export the evaluations and import them into a new study"


class StudyStore:
    """Reads and writes one study."""

    def __init__(self, database: Database, record: StudyRecord) -> None:
        self.database = database
        self.record = record
        self.transactions = Transactions(database, record.id, record.name)
        self._named: set[Damage] = set()

    @classmethod
    def create(
        cls, database: Database, name: str, problem: Problem, seed: int, settings: MethodSettings
    ) -> tuple[StudyStore, bool]:
        """Store a new study, or open the one that bears the name; tell whether it is new."""
        new = add_study(database, name, problem, seed, settings)
        return cls.open(database, name), new

    @classmethod
    def open(cls, database: Database, name: str) -> StudyStore:
        """Open the study of this name."""
        return cls(database, find_study(database, name))

    @property
    def token(self) -> str | None:
        """The token of the study's lock while this object holds it."""
        return self.transactions.token

    @contextmanager
    def locked(self, *, patient: bool = False) -> Iterator[None]:
        """Hold the study's lock, as `Transactions.locked` does, and read the problem again: nobody can amend it meanwhile."""
        with self.transactions.locked(patient=patient):
            self.refresh()
            yield

    def refresh(self) -> None:
        """Read the problem again, if it was amended."""
        self.transactions.read(self._refresh)

    # ---- reading

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return all evaluations in the order of their ids, and read the problem of the same moment into the record.

        Damaged evaluations are named in a warning and left out.
        """

        def work(connection: Connection) -> tuple[tuple[Evaluation, ...], tuple[Damage, ...]]:
            self._refresh(connection)
            return read_all(connection, self.record.id, self.record.name)

        found, damages = self.transactions.read(work)
        self._name_once(damages)
        return found

    def damages(self) -> tuple[Damage, ...]:
        """Return what is damaged among the evaluations."""
        return self.transactions.read(lambda connection: read_all(connection, self.record.id, self.record.name))[1]

    def first_measured(self) -> Evaluation | None:
        """Return the first complete evaluation that is neither excluded nor damaged, if there is one."""
        mine = (EVALUATIONS.c.study_id == self.record.id) & (EVALUATIONS.c.state == "complete")
        query = sa.select(EVALUATIONS).where(mine, EVALUATIONS.c.excluded.is_(None)).order_by(EVALUATIONS.c.number)

        def work(connection: Connection) -> Evaluation | None:
            with connection.execute(query.execution_options(yield_per=1)) as rows:
                return next((found for row in rows.mappings() if (found := read_evaluation(row)) is not None), None)

        return self.transactions.read(work)

    def requested(self) -> int:
        """Count the evaluations that count against a budget."""
        mine = (EVALUATIONS.c.study_id == self.record.id) & (EVALUATIONS.c.kind == "run")
        query = sa.select(sa.func.count()).where(mine)
        return self.transactions.read(lambda connection: int(connection.execute(query).scalar_one()))

    def learner(self) -> tuple[int, bytes | None]:
        """Return how many iterations were made, and the learner's state after the last."""
        return self.transactions.read(self._learner)

    def focus(self) -> Focus | None:
        """Return the thresholds under discussion, None for the whole box."""
        row = self.transactions.read(self._own_row)
        if row["focus"] is None:
            return None
        try:
            return read_focus(row["focus"])
        except UNREADABLE as error:
            self._refuse("its focus cannot be read", error)

    def ledger(self) -> tuple[Entry, ...]:
        """Return the entries of the ledger, the oldest first; damaged ones are named in a warning and left out."""
        found = self.transactions.read(lambda connection: read_ledger(connection, self.record.id, self.record.name))
        self._name_once(found.damages)
        return found.entries

    def holder(self) -> Holder | None:
        """Return the live process that is optimising this study, if any."""
        return self.transactions.holder()

    # ---- writing

    def plan(self, points: Sequence[Mapping[str, Any]], steps: int, state: bytes) -> None:
        """Store a batch of proposals and the learner's state after it, both or neither."""
        study = self.record.id

        def work(connection: Connection) -> None:
            last = connection.execute(sa.select(sa.func.max(PLANNED.c.position)).where(PLANNED.c.study_id == study))
            start = (last.scalar() or 0) + 1
            rows = [
                sealed(PLANNED, {"study_id": study, "position": start + i, "point": json.dumps(dict(p))})
                for i, p in enumerate(points)
            ]
            if rows:
                connection.execute(sa.insert(PLANNED), rows)
            connection.execute(sa.delete(LEARNERS).where(LEARNERS.c.study_id == study))
            connection.execute(
                sa.insert(LEARNERS).values(sealed(LEARNERS, {"study_id": study, "steps": steps, "state": state}))
            )
            self._progress(connection, steps=steps)

        self.transactions.write(work)

    def take(self, count: int, *, started: bool) -> list[Trial]:
        """Turn up to `count` proposals into running evaluations; `started` marks them as this run's own."""
        study = self.record.id
        query = sa.select(PLANNED).where(PLANNED.c.study_id == study).order_by(PLANNED.c.position)

        def work(connection: Connection) -> list[Trial]:
            points: list[str] = []
            taken: list[int] = []
            for row in connection.execute(query).mappings().all():
                if len(points) == count:
                    break
                taken.append(row["position"])
                if is_intact(PLANNED, row):
                    points.append(row["point"])
                else:
                    self._warn(f"the proposal at position {row['position']} is damaged and left out")
            if not taken:
                return []
            numbers = self._insert(connection, points, "run", started=started)
            connection.execute(sa.delete(PLANNED).where(PLANNED.c.study_id == study, PLANNED.c.position.in_(taken)))
            return [Trial(number, json.loads(point)) for number, point in zip(numbers, points, strict=True)]

        return self.transactions.write(work)

    def start(
        self,
        point: Mapping[str, Any],
        kind: Kind,
        *,
        started: bool,
        thresholds: Mapping[str, float] | None = None,
    ) -> Trial:
        """Store one evaluation; `started` marks it as one that this process is about to make.

        thresholds: the limits that a refinement is spent on.
        """
        limits = None if thresholds is None else json.dumps(dict(thresholds), allow_nan=False)
        text = json.dumps(dict(point))
        (number,) = self.transactions.write(
            lambda connection: self._insert(connection, [text], kind, started=started, thresholds=[limits])
        )
        return Trial(number, dict(point))

    def finish(self, number: int, values: Mapping[str, Any]) -> Evaluation:
        """Move an evaluation from running to complete or failed and return it; every other move is refused."""
        stored = {name: plain_text(value) if isinstance(value, str) else value for name, value in values.items()}
        if stored.get("outputs") is not None:
            stored["outputs"] = json.dumps(stored["outputs"], allow_nan=False)

        def work(connection: Connection) -> Evaluation:
            row = self._intact(connection, number)
            if row["state"] != "running":
                raise StudyError(f"evaluation {number} is already {row['state']}; each one is told once")
            return self._change(connection, row, stored)

        return self.transactions.write(work)

    def insert(self, rows: Sequence[tuple[Mapping[str, float], Mapping[str, Reading]]]) -> list[int]:
        """Store old runs, given as point and outputs; return their ids."""
        points = [json.dumps(dict(point)) for point, _ in rows]
        outputs = [json.dumps(dict(values), allow_nan=False) for _, values in rows]
        return self.transactions.write(lambda connection: self._insert(connection, points, "import", outputs=outputs))

    def exclude(self, numbers: Sequence[int], reason: str | None) -> None:
        """Exclude evaluations for a reason, all or none of them; None includes them again."""
        text = None if reason is None else plain_text(reason)

        def work(connection: Connection) -> None:
            rows = [self._intact(connection, number) for number in numbers]
            for row in rows:
                if row["state"] == "running":
                    raise StudyError(f"evaluation {row['number']} has no outcome yet; tell it as failed instead")
            for row in rows:
                if row["excluded"] != text:
                    self._change(connection, row, {"excluded": text})

        self.transactions.write(work)

    def interrupted(self) -> list[Trial]:
        """Adopt what an earlier run left unfinished: the caller runs it again or tells it as failed."""
        return self._adopt(EVALUATIONS.c.holder.not_in([self.token, RETRY]))

    def retried(self) -> list[Trial]:
        """Adopt what is to be evaluated again; the caller runs it."""
        return self._adopt(EVALUATIONS.c.holder == RETRY)

    def retry(self, numbers: Sequence[int]) -> list[Trial]:
        """Have evaluations made again by the next run, all or none of them: new ones at their points, outside the budget.

        The old ones stay and are excluded, with the id of the new one as the reason. A refinement keeps its limits.
        """

        def work(connection: Connection) -> list[Trial]:
            rows = [self._intact(connection, number) for number in numbers]
            limits = [row["thresholds"] if row["kind"] in ("refine", "retry") else None for row in rows]
            ids = self._insert(connection, [row["point"] for row in rows], "retry", holder=RETRY, thresholds=limits)
            for row, number in zip(rows, ids, strict=True):
                self._change(connection, row, {"excluded": f"{RETRIED} {number}"})
            return [Trial(number, json.loads(row["point"])) for number, row in zip(ids, rows, strict=True)]

        return self.transactions.write(work)

    def _adopt(self, which: sa.ColumnElement[bool]) -> list[Trial]:
        """Make unfinished evaluations those of this run."""
        mine = (EVALUATIONS.c.study_id == self.record.id) & (EVALUATIONS.c.state == "running")
        query = (
            sa.select(EVALUATIONS).where(mine, which).order_by(EVALUATIONS.c.number)
        )  # A holder that is null never fits.

        def work(connection: Connection) -> list[Trial]:
            trials = []
            for row in connection.execute(query).mappings().all():
                if is_intact(EVALUATIONS, row):
                    adopted = self._change(connection, row, {"holder": self.token, "started": time.time()})
                    trials.append(Trial(adopted.id, dict(adopted.point)))
            return trials

        return self.transactions.write(work)

    def set_focus(self, focus: Focus | None) -> None:
        """Store the thresholds under discussion."""
        text = focus_text(focus)

        def work(connection: Connection) -> None:
            row = sealed(STUDIES, {**self._own_row(connection), "focus": text})
            connection.execute(sa.update(STUDIES).where(STUDIES.c.id == self.record.id).values(row))

        self.transactions.write(work)

    def append(self, kind: EntryKind, author: str, content: Mapping[str, Any]) -> Entry:
        """Add an entry to the ledger; this is possible while another process optimises the study."""
        return self.transactions.append(append_entry(self.record.id, kind, author, content, self._refuse))

    # ---- rows

    def _insert(
        self,
        connection: Connection,
        points: Sequence[str],
        kind: Kind,
        *,
        started: bool = False,
        outputs: Sequence[str] | None = None,
        thresholds: Sequence[str | None] | None = None,
        holder: str | None = None,
    ) -> list[int]:
        """Store new evaluations; return their ids, which were never given out before."""
        study = self.record.id
        numbers = self._progress(connection, more=len(points))
        rows = [
            sealed(
                EVALUATIONS,
                {
                    "study_id": study,
                    "number": number,
                    "state": "running" if outputs is None else "complete",
                    "kind": kind,
                    "point": point,
                    "outputs": None if outputs is None else outputs[i],
                    "thresholds": None if thresholds is None else thresholds[i],
                    "started": time.time() if started else None,
                    "holder": self.token if started else holder,
                },
            )
            for i, (number, point) in enumerate(zip(numbers, points, strict=True))
        ]
        if rows:
            connection.execute(sa.insert(EVALUATIONS), rows)
        return numbers

    def _progress(self, connection: Connection, *, more: int = 0, steps: int | None = None) -> list[int]:
        """Count further evaluations, or iterations; return the ids of the former."""
        mine = PROGRESS.c.study_id == self.record.id
        row = connection.execute(sa.select(PROGRESS).where(mine)).mappings().first()
        if row is None or not is_intact(PROGRESS, row):
            self._refuse("the count of its evaluations is damaged, so that nothing can be added")
        taken = EVALUATIONS.c.study_id == self.record.id, EVALUATIONS.c.number > row["evaluations"]
        foreign = set(connection.execute(sa.select(EVALUATIONS.c.number).where(*taken)).scalars()) if more else set()
        numbers: list[int] = []
        number = row["evaluations"]
        while len(numbers) < more:
            number += 1
            if number not in foreign:  # a damaged row may bear a number that was never given out
                numbers.append(number)
        last = numbers[-1] if numbers else row["evaluations"]
        changed = sealed(PROGRESS, {**row, "evaluations": last, "steps": row["steps"] if steps is None else steps})
        connection.execute(sa.update(PROGRESS).where(mine).values(changed))
        return numbers

    def _intact(self, connection: Connection, number: int) -> sa.RowMapping:
        """Return the row of an evaluation, which must be there and undamaged."""
        query = sa.select(EVALUATIONS).where(EVALUATIONS.c.study_id == self.record.id, EVALUATIONS.c.number == number)
        row = connection.execute(query).mappings().first()
        if row is None:
            raise StudyError(f"there is no evaluation {number} in study {self.record.name!r}; ask for one first")
        if not is_intact(EVALUATIONS, row):
            self._refuse(f"evaluation {number} is damaged")
        return row

    def _change(self, connection: Connection, row: Row, values: Mapping[str, Any]) -> Evaluation:
        """Change columns of an evaluation; return it."""
        changed = sealed(EVALUATIONS, {**row, **values})
        connection.execute(
            sa.update(EVALUATIONS)
            .where(EVALUATIONS.c.study_id == self.record.id, EVALUATIONS.c.number == row["number"])
            .values({name: changed[name] for name in (*values, "checksum")})
        )
        evaluation = read_evaluation(changed)
        assert evaluation is not None
        return evaluation

    def _learner(self, connection: Connection) -> tuple[int, bytes | None]:
        study = self.record.id
        progress = connection.execute(sa.select(PROGRESS).where(PROGRESS.c.study_id == study)).mappings().first()
        row = read_learner(connection, study)
        if progress is None or not is_intact(PROGRESS, progress):
            self._refuse("the count of its iterations is damaged")
        if row is None and progress["steps"] == 0:
            return 0, None
        if row is None or not is_intact(LEARNERS, row) or row["steps"] != progress["steps"]:
            self._refuse("the method's state is damaged")
        return int(row["steps"]), bytes(row["state"])

    def _refresh(self, connection: Connection) -> None:
        query = sa.select(STUDIES.c.problem).where(STUDIES.c.id == self.record.id)
        if connection.execute(query).scalar() != self.record.stated:
            self.record = read_study(self.database, self._own_row(connection))

    def _own_row(self, connection: Connection) -> sa.RowMapping:
        row = connection.execute(sa.select(STUDIES).where(STUDIES.c.id == self.record.id)).mappings().first()
        if row is None or not is_intact(STUDIES, row):
            self._refuse("its problem, settings or focus are damaged")
        return row

    def _name_once(self, damages: Sequence[Damage]) -> None:
        for damage in damages:
            if damage not in self._named:
                self._named.add(damage)
                _LOG.warning("%s: %s; cbabo storage check tells more", self.database.label, damage)

    def _warn(self, what: str) -> None:
        _LOG.warning("%s: study %r: %s", self.database.label, self.record.name, what)

    def _refuse(self, what: str, error: Exception | None = None) -> NoReturn:
        raise StorageError(f"{self.database.label}: study {self.record.name!r}: {what}; {_RESTORE}") from error
