"""Transactions on one study: who may write, what waits for a database that is away, and what is kept when its file is gone."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo.errors import StorageError, StudyLockedError
from cbabo.numerics.identity import machine
from cbabo.storage.database import Database
from cbabo.storage.lock import (
    HEARTBEAT_SECONDS,
    WATCH_SECONDS,
    Holder,
    Life,
    beat,
    database_time,
    read_holder,
    write_holder,
)
from cbabo.storage.outages import outage_seconds, persist
from cbabo.storage.schema import STUDIES
from cbabo.storage.session import Session, is_held

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
"""How often a heartbeat is looked at while it is watched."""
_HELD: set[str] = set()
"""Tokens of the locks that this process holds."""

T = TypeVar("T")


class _UncertainError(Exception):
    """Whether the holder of a lock is alive can only be told by watching it."""


class Transactions:
    """Reads and writes on behalf of one study; `token` is set while this object holds the study's lock."""

    def __init__(self, database: Database, study: int, name: str) -> None:
        self.database = database
        self.token: str | None = None
        self._study = study
        self._name = name
        self._outage_seconds = 0.0

    def holder(self) -> Holder | None:
        """Return the live process that is optimising this study, if any."""
        with self.database.reading() as connection:
            holder = read_holder(connection, self._study)
            return holder if holder is not None and self._life(connection, holder) == "alive" else None

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read in one transaction; a process that optimises waits for the database."""

        def transaction() -> T:
            with self.database.reading() as connection:
                return work(connection)

        return persist(transaction, self._outage_seconds, self.database.is_displaced)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Write in one transaction in which nobody else may write to this study.

        A process that optimises waits for the database and tries again. The work is stored once nevertheless: a commit
        whose answer was lost is recognised by the name of its transaction in the lock.
        """
        name = uuid4().hex
        results: list[T] = []
        watched: list[Holder] = []

        def transaction() -> T:
            with self.database.writing() as connection:
                holder = self._admit(connection, watched)
                if results and holder is not None and holder.written == name:
                    return results[0]
                results[:] = [work(connection)]
                if self.token is not None and holder is not None and holder.token == self.token:
                    beat(connection, self._study, self.token, name)
                return results[0]

        try:
            try:
                result = persist(transaction, self._outage_seconds, self.database.is_displaced)
            except _UncertainError:
                watched.append(self._watch())
                result = persist(transaction, self._outage_seconds, self.database.is_displaced)
        except StorageError as error:
            if self.database.is_displaced():
                self._rescue(work, error)
            raise
        if self.database.is_displaced():
            self._rescue(None, None)
        return result

    def append(self, work: Callable[[Connection], T]) -> T:
        """Write in one transaction that changes nothing which the holder of the lock relies on; it need not be the holder."""
        with self.database.writing() as connection:
            self._lock_row(connection)
            return work(connection)

    @contextmanager
    def locked(self, *, patient: bool = False) -> Iterator[None]:
        """Hold the study's lock; inside another `locked` of the same object this does nothing more.

        patient: wait for a database that does not answer, as long as `outage_seconds` says.
        """
        if self.token is not None:
            yield
            return
        patience = outage_seconds() if patient else 0.0
        holder = Holder.here()
        self.write(lambda connection: write_holder(connection, self._study, holder))
        self.token, self._outage_seconds = holder.token, patience
        _HELD.add(holder.token)
        session = Session(self.database, self._study) if self.database.locks_rows else None
        if session is not None:
            session.renew()
        stop = threading.Event()
        heart = threading.Thread(
            target=self._beat, args=(holder.token, session, stop), daemon=True, name="cbabo-heartbeat"
        )
        if self.database.shared:
            heart.start()
        try:
            yield
        finally:
            stop.set()
            if heart.is_alive():
                heart.join()
            self._release(session)

    def _release(self, session: Session | None) -> None:
        self._outage_seconds = 0.0
        try:
            self.write(lambda connection: write_holder(connection, self._study, None))
        except (StudyLockedError, StorageError):
            pass  # already somebody else's, or the database is gone: a dead holder is recognised as such
        finally:
            _HELD.discard(self.token or "")
            self.token = None
            if session is not None:
                session.close()

    def _beat(self, token: str, session: Session | None, stop: threading.Event) -> None:
        said = False
        while not stop.wait(HEARTBEAT_SECONDS):
            if session is not None:
                session.renew()
            with (
                suppress(StorageError),
                self.database.writing() as connection,
            ):  # if it is away, the next beat tries again
                if not beat(connection, self._study, token):
                    return
            if self.database.is_displaced() and not said:
                said = True
                _LOG.warning(
                    "%s: the file was deleted, moved or replaced; put it back, or the run ends with its next result",
                    self.database.label,
                )

    def _admit(self, connection: Connection, watched: Sequence[Holder]) -> Holder | None:
        """Make sure that this process may write; return the holder of the lock."""
        self._lock_row(connection)
        holder = read_holder(connection, self._study)
        if self.token is not None:
            if holder is None or holder.token != self.token:
                raise StudyLockedError(
                    f"study {self._name!r} was taken over by another process while this one did not answer; "
                    "stop this one, what it had stored is kept"
                )
            return holder
        if holder is None or holder in watched:
            return holder
        life = self._life(connection, holder)
        if life == "uncertain" and not watched:
            raise _UncertainError
        if life != "dead":
            raise StudyLockedError(
                f"study {self._name!r} is being optimised by {holder.label}; "
                "wait until it ends or stop it (reading is always possible)"
            )
        return holder

    def _lock_row(self, connection: Connection) -> None:
        """Let writers of one study wait for each other where the database has no lock of the whole file."""
        if self.database.locks_rows:
            connection.execute(sa.select(STUDIES.c.id).where(STUDIES.c.id == self._study).with_for_update())

    def _life(self, connection: Connection, holder: Holder) -> Life:
        if holder.token not in _HELD and holder.machine == machine() and holder.pid == os.getpid():
            return "dead"  # this process could not release it, because the database was away
        life = holder.life(database_time(connection), local=self.database.is_local)
        if life == "uncertain" and self.database.locks_rows and is_held(connection, self._study):
            return "alive"
        return life

    def _watch(self) -> Holder:
        """Watch a holder, and return it as it was if it has shown no sign of life."""
        deadline = time.monotonic() + WATCH_SECONDS
        with self.database.reading() as connection:
            first = now = read_holder(connection, self._study)
        _LOG.info("watching whether the process that held study %r is alive", self._name)
        while now is not None and now == first and time.monotonic() < deadline:
            time.sleep(min(_LOOK_SECONDS, WATCH_SECONDS))
            with self.database.reading() as connection:
                now = read_holder(connection, self._study)
        return first if first is not None else Holder.here()

    def _rescue(self, work: Callable[[Connection], Any] | None, error: StorageError | None) -> NoReturn:
        """Copy a database whose file was displaced, make up for a write that it refused, and end with one sentence."""
        file = self.database.file
        said = f"{self.database.label}: the file was deleted, moved or replaced while it was in use"
        try:
            copy = self.database.rescue()
            if work is not None:
                with Database(f"sqlite:///{copy}").writing() as connection:
                    work(connection)
        except (OSError, sqlite3.Error, StorageError) as trouble:
            raise StorageError(f"{said}, and could not be copied ({trouble}); restore a copy of it") from trouble
        raise StorageError(
            f"{said}; everything, the last result included, is in {copy}; "
            f"bring it back by: rm -f {file}-wal {file}-shm && mv {copy} {file}"
        ) from error
