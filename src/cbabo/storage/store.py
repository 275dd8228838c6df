"""One study's rows: every write is one transaction that first makes sure that nobody else is optimising."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from cbabo.domain.evaluations import Evaluation, Kind, Trial
from cbabo.domain.focus import Focus
from cbabo.domain.problem import Problem
from cbabo.errors import StorageError, StudyError, StudyLockedError
from cbabo.methods.settings import Settings
from cbabo.numerics.versions import versions
from cbabo.storage.database import Database
from cbabo.storage.lock import HEARTBEAT_SECONDS, Holder, beat, read_holder, write_holder
from cbabo.storage.schema import EVALUATIONS, LEARNERS, PLANNED, STUDIES


@dataclass(frozen=True)
class StudyRecord:
    """What was fixed when a study was created."""

    id: int
    name: str
    problem: Problem
    seed: int
    settings: Settings
    versions: Mapping[str, str]
    created: datetime


class StudyStore:
    """Reads and writes one study; `token` is set while this object holds the study's lock."""

    def __init__(self, database: Database, record: StudyRecord) -> None:
        self.database = database
        self.record = record
        self.token: str | None = None

    @classmethod
    def create(
        cls, database: Database, name: str, problem: Problem, seed: int, settings: Settings
    ) -> tuple[StudyStore, bool]:
        """Store a new study, or open the one that bears the name; tell whether it is new."""
        values = {
            "name": name,
            "problem": json.dumps(problem.to_dict()),
            "seed": str(seed),
            "settings": settings.model_dump_json(),
            "versions": json.dumps(versions()),
            "created": time.time(),
        }
        new = name not in study_names(database)
        if new:
            try:
                with database.writing() as connection:
                    connection.execute(sa.insert(STUDIES).values(values))
            except IntegrityError:
                new = False  # another process was quicker
        return cls.open(database, name), new

    @classmethod
    def open(cls, database: Database, name: str) -> StudyStore:
        """Open the study of this name."""
        with database.reading() as connection:
            row = connection.execute(sa.select(STUDIES).where(STUDIES.c.name == name)).mappings().first()
        if row is None:
            names = ", ".join(repr(n) for n in study_names(database)) or "none"
            raise StudyError(f"there is no study {name!r} in {database.label}; it holds: {names}")
        record = _record(database, row)
        return cls(database, record)

    # ---- reading

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return all evaluations in the order of their ids."""
        query = sa.select(EVALUATIONS).where(EVALUATIONS.c.study_id == self.record.id).order_by(EVALUATIONS.c.number)
        with self.database.reading() as connection:
            return tuple(_evaluation(row) for row in connection.execute(query).mappings())

    def requested(self) -> int:
        """Count the evaluations that count against a budget."""
        mine = (EVALUATIONS.c.study_id == self.record.id) & (EVALUATIONS.c.kind == "run")
        with self.database.reading() as connection:
            return int(connection.execute(sa.select(sa.func.count()).where(mine)).scalar_one())

    def learner(self) -> tuple[int, bytes | None]:
        """Return how many iterations were made, and the learner's state after the last."""
        query = sa.select(LEARNERS.c.steps, LEARNERS.c.state).where(LEARNERS.c.study_id == self.record.id)
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        return (0, None) if row is None else (int(row[0]), bytes(row[1]))

    def focus(self) -> Focus | None:
        """Return the thresholds under discussion, None for the whole box."""
        query = sa.select(STUDIES.c.focus).where(STUDIES.c.id == self.record.id)
        with self.database.reading() as connection:
            text = connection.execute(query).scalar()
        if text is None:
            return None
        stored = json.loads(text)
        return Focus(tuple(map(tuple, stored["thresholds"])), tuple(stored["weights"]))

    def holder(self) -> Holder | None:
        """Return the live process that is optimising this study, if any."""
        with self.database.reading() as connection:
            holder = read_holder(connection, self.record.id)
        return holder if holder is not None and holder.alive else None

    # ---- writing

    def plan(self, points: Sequence[Mapping[str, float]], steps: int, state: bytes) -> None:
        """Store a batch of proposals and the learner's state after it, both or neither."""
        study = self.record.id
        with self._writing() as connection:
            start = _next(connection, PLANNED.c.position, PLANNED.c.study_id == study)
            rows = [
                {"study_id": study, "position": start + i, "point": json.dumps(dict(p))} for i, p in enumerate(points)
            ]
            if rows:
                connection.execute(sa.insert(PLANNED), rows)
            connection.execute(sa.delete(LEARNERS).where(LEARNERS.c.study_id == study))
            connection.execute(sa.insert(LEARNERS).values(study_id=study, steps=steps, state=state))

    def take(self, count: int, *, started: bool) -> list[Trial]:
        """Turn up to `count` proposals into running evaluations; `started` marks them as this run's own."""
        study = self.record.id
        query = sa.select(PLANNED).where(PLANNED.c.study_id == study).order_by(PLANNED.c.position).limit(count)
        with self._writing() as connection:
            planned = connection.execute(query).mappings().all()
            trials = [
                Trial(self._insert(connection, row["point"], "run", started=started), json.loads(row["point"]))
                for row in planned
            ]
            taken = [row["position"] for row in planned]
            connection.execute(sa.delete(PLANNED).where(PLANNED.c.study_id == study, PLANNED.c.position.in_(taken)))
        return trials

    def start(self, point: Mapping[str, float], kind: Kind, *, started: bool) -> Trial:
        """Store one evaluation; `started` marks it as one that this process is about to make."""
        with self._writing() as connection:
            return Trial(self._insert(connection, json.dumps(dict(point)), kind, started=started), dict(point))

    def finish(self, number: int, values: Mapping[str, Any]) -> Evaluation:
        """Move an evaluation from running to complete or failed and return it; every other move is refused."""
        row = EVALUATIONS.c.study_id == self.record.id, EVALUATIONS.c.number == number
        stored = {name: _text(value) if isinstance(value, str) else value for name, value in values.items()}
        if stored.get("outputs") is not None:
            stored["outputs"] = json.dumps(stored["outputs"], allow_nan=False)
        with self._writing() as connection:
            update = sa.update(EVALUATIONS).where(*row, EVALUATIONS.c.state == "running").values(**stored)
            if connection.execute(update).rowcount != 1:
                state = connection.execute(sa.select(EVALUATIONS.c.state).where(*row)).scalar()
                raise StudyError(
                    f"there is no evaluation {number} in study {self.record.name!r}; ask for one first"
                    if state is None
                    else f"evaluation {number} is already {state}; each one is told once"
                )
            return _evaluation(connection.execute(sa.select(EVALUATIONS).where(*row)).mappings().one())

    def insert(self, rows: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> list[int]:
        """Store old runs, given as point and outputs; return their ids."""
        with self._writing() as connection:
            return [
                self._insert(
                    connection, json.dumps(dict(point)), "import", outputs=json.dumps(dict(outputs), allow_nan=False)
                )
                for point, outputs in rows
            ]

    def interrupted(self) -> list[Trial]:
        """Adopt what an earlier run left unfinished: the caller runs it again or tells it as failed."""
        left = (
            (EVALUATIONS.c.study_id == self.record.id)
            & (EVALUATIONS.c.state == "running")
            & EVALUATIONS.c.holder.is_not(None)
            & (EVALUATIONS.c.holder != self.token)
        )
        with self._writing() as connection:
            query = sa.select(EVALUATIONS.c.number, EVALUATIONS.c.point).where(left).order_by(EVALUATIONS.c.number)
            trials = [Trial(number, json.loads(point)) for number, point in connection.execute(query)]
            connection.execute(sa.update(EVALUATIONS).where(left).values(holder=self.token, started=time.time()))
        return trials

    def set_focus(self, focus: Focus | None) -> None:
        """Store the thresholds under discussion."""
        text = None if focus is None else json.dumps(asdict(focus))
        with self._writing() as connection:
            connection.execute(sa.update(STUDIES).where(STUDIES.c.id == self.record.id).values(focus=text))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the study's lock; inside another `locked` of the same object this does nothing more."""
        if self.token is not None:
            yield
            return
        holder = Holder.here()
        with self._writing() as connection:
            write_holder(connection, self.record.id, holder)
        self.token = holder.token
        stop = threading.Event()
        heart = threading.Thread(target=self._beat, args=(holder.token, stop), daemon=True, name="cbabo-heartbeat")
        if self.database.shared:
            heart.start()
        try:
            yield
        finally:
            stop.set()
            if heart.is_alive():
                heart.join()
            self._release()

    def _release(self) -> None:
        try:
            with self._writing() as connection:
                write_holder(connection, self.record.id, None)
        except (StudyLockedError, StorageError):
            pass  # already somebody else's, or the database is gone: a dead holder is recognised as such
        finally:
            self.token = None

    def _beat(self, token: str, stop: threading.Event) -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            try:
                with self.database.writing() as connection:
                    if not beat(connection, self.record.id, token):
                        return
            except StorageError:
                continue  # busy: the next beat tries again

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Begin a transaction in which nobody else may write to this study."""
        with self.database.writing() as connection:
            if self.database.locks_rows:
                connection.execute(sa.select(STUDIES.c.id).where(STUDIES.c.id == self.record.id).with_for_update())
            holder = read_holder(connection, self.record.id)
            if self.token is not None and (holder is None or holder.token != self.token):
                raise StudyLockedError(
                    f"study {self.record.name!r} was taken over by another process while this one did not answer; "
                    "stop this one, what it had stored is kept"
                )
            if self.token is None and holder is not None and holder.alive:
                raise StudyLockedError(
                    f"study {self.record.name!r} is being optimised by {holder.label}; "
                    "wait until it ends or stop it (reading is always possible)"
                )
            yield connection

    def _insert(
        self, connection: Connection, point: str, kind: Kind, *, started: bool = False, outputs: str | None = None
    ) -> int:
        number = _next(connection, EVALUATIONS.c.number, EVALUATIONS.c.study_id == self.record.id)
        connection.execute(
            sa.insert(EVALUATIONS).values(
                study_id=self.record.id,
                number=number,
                state="running" if outputs is None else "complete",
                kind=kind,
                point=point,
                outputs=outputs,
                started=time.time() if started else None,
                holder=self.token if started else None,
            )
        )
        return number


def _record(database: Database, row: sa.RowMapping) -> StudyRecord:
    try:
        return StudyRecord(
            id=row["id"],
            name=row["name"],
            problem=Problem.from_dict(json.loads(row["problem"])),
            seed=int(row["seed"]),
            settings=Settings.model_validate_json(row["settings"]),
            versions=json.loads(row["versions"]),
            created=_utc(row["created"]),
        )
    except ValueError as error:  # of JSON, of the problem or of the settings
        raise StorageError(
            f"{database.label}: study {row['name']!r} states a problem or settings that this version does not know; "
            "use the version of cbabo that created it, or a newer one"
        ) from error


def study_names(database: Database) -> list[str]:
    """List the studies of a database."""
    with database.reading() as connection:
        return list(connection.execute(sa.select(STUDIES.c.name).order_by(STUDIES.c.id)).scalars())


def _next(connection: Connection, column: sa.Column[int], where: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(column), 0)).where(where)).scalar_one()) + 1


def _evaluation(row: sa.RowMapping) -> Evaluation:
    return Evaluation(
        id=row["number"],
        state=row["state"],
        kind=row["kind"],
        point=json.loads(row["point"]),
        outputs=json.loads(row["outputs"]) if row["outputs"] else {},
        failure=row["failure"],
        log=row["log"] or "",
        started=None if row["started"] is None else _utc(row["started"]),
        seconds=row["seconds"],
        worker=row["worker"],
    )


def _text(value: str) -> str:
    """Return a text that every database takes: a simulator may print bytes that are no text."""
    return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)
