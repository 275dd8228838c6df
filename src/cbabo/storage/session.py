"""A session of PostgreSQL that lives as long as the process that optimises a study.

It holds an advisory lock, which the server gives back when the session ends. So others see that the holder is alive even while
its heartbeat is late, as when a simulator keeps the interpreter busy. The server asks every half minute whether the holder's
machine is still there.
"""

from __future__ import annotations

from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from cbabo.errors import StorageError
from cbabo.storage.database import Database

_KIND = 1667391843
"""The first half of the advisory lock's number; the second is the study."""
_KEEPALIVE = {"tcp_keepalives_idle": 30, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 3}
"""After a minute without an answer of the holder's machine the server ends the session."""


class Session:
    """An advisory lock on one study, taken again when the connection was lost."""

    def __init__(self, database: Database, study: int) -> None:
        self._database = database
        self._study = study
        self._connection: Connection | None = None

    def renew(self) -> None:
        """Take the lock if the session does not hold it; if the server is away, the next call tries again."""
        try:
            if self._connection is not None:
                self._connection.execute(sa.text("SELECT 1"))
                return
            connection = self._database.session()
            try:
                for name, value in _KEEPALIVE.items():
                    connection.execute(sa.text(f"SET {name} = {value}"))
                taken = connection.execute(sa.text("SELECT pg_try_advisory_lock(:kind, :study)"), self._key).scalar()
            except SQLAlchemyError:
                _end(connection)
                raise
            if taken:
                self._connection = connection
            else:
                _end(connection)  # the session of a dead holder is about to end
        except (SQLAlchemyError, StorageError):
            self.close()

    def close(self) -> None:
        """End the session, and the lock with it."""
        if self._connection is not None:
            _end(self._connection)
            self._connection = None

    @property
    def _key(self) -> dict[str, int]:
        return {"kind": _KIND, "study": self._study}


def is_held(connection: Connection, study: int) -> bool:
    """Tell whether a session holds the lock of a study."""
    held = sa.text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = :kind AND objid = :study "
        "AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    return bool(connection.execute(held, {"kind": _KIND, "study": study}).scalar())


def _end(connection: Connection) -> None:
    with suppress(SQLAlchemyError):
        connection.invalidate()  # so that the session ends, rather than go back to the pool
        connection.close()
