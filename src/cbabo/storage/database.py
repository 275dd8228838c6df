"""Opening a database: which one, whether it is ours, and with what guarantees.

SQLite commits with synchronous=FULL, so that a stored evaluation survives a power cut; it uses a write-ahead log, so
that readers never wait, except on a network file system, where only a rollback journal is safe.
"""

from __future__ import annotations

import logging
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DatabaseError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from cbabo.errors import ConflictError, InputError, OutageError, StorageError
from cbabo.storage import place as files
from cbabo.storage import schema
from cbabo.storage.place import Place
from cbabo.storage.urls import label, read_url, sqlite_file

_LOG = logging.getLogger(__name__)
_CONNECT_SECONDS = 10
_SCRIPTS = resources.files("cbabo.storage") / "migrations"
VERSIONS = [str(_SCRIPTS / "versions")]
"""Folders with revision scripts."""
_PASSING_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
"""Errors of SQLite that may pass: locked, no space, or a file system that does not answer."""
_PASSING_POSTGRES = ("08", "53", "57P", "55P03", "40", "25P03")
"""How the codes of PostgreSQL's errors begin that may pass: connection, resources, restart, locks, conflicts, idle too long."""


class Database:
    """A connection pool to one database of the right revision."""

    def __init__(self, url: str) -> None:
        self.url = read_url(url)
        self.label = label(self.url)
        file = sqlite_file(self.url)
        self._place = None if file is None else Place(file)
        self._engine = _engine(self.url, self._place)
        weakref.finalize(self, self._engine.dispose)

    @classmethod
    def open(cls, url: str) -> Database:
        """Open a database that exists and is of the newest revision."""
        database = cls.existing(url)
        database._check_revision()
        return database

    @classmethod
    def existing(cls, url: str) -> Database:
        """Open a database that exists, of whatever revision."""
        database = cls(url)
        if database.file is not None and not database.file.exists():
            raise InputError(f"{database.label}: there is no such database; check the path, or create a study first")
        return database

    @classmethod
    def create(cls, url: str) -> Database:
        """Open a database, laying out the tables if it is empty."""
        database = cls(url)
        if database.file is not None and not database.file.parent.is_dir():
            raise InputError(f"{database.label}: the folder {database.file.parent} does not exist; create it first")
        if database._place is not None:
            database._place.may_create = True
        if database.revision() is None:
            database.upgrade()
        database._check_revision()
        if database._place is not None:
            database._place.may_create = False
        return database

    def revision(self) -> str | None:
        """Return the revision stored in the database, None if it holds no tables of ours."""
        with self.reading() as connection:
            tables = sa.inspect(connection).get_table_names()
            if "alembic_version" not in tables:
                if tables:
                    raise StorageError(
                        f"{self.label}: this database belongs to something else (it has a table {tables[0]!r}); "
                        "choose another file or database"
                    )
                return None
            revision = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
            return None if revision is None else str(revision)

    def upgrade(self) -> tuple[str | None, str]:
        """Bring the tables to the newest revision; return the revisions before and after."""
        from alembic import command
        from alembic.config import Config

        before = self.revision()
        if before is not None and before not in schema.REVISIONS:
            self._refuse_unknown(before)
        config = Config()
        config.set_main_option("script_location", str(_SCRIPTS))
        config.set_main_option("path_separator", "newline")
        config.set_main_option("version_locations", "\n".join(VERSIONS))
        with self.writing() as connection:
            if self.locks_rows:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(1667391842)"))  # one upgrade at a time
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        return before, schema.REVISIONS[-1]

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read a consistent picture; never waits for a writer (on a network file system: for one commit at most)."""
        with self.explained(), self._engine.connect() as connection:
            if self.locks_rows:
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write in one transaction, alone; everything or nothing is stored."""
        if self.is_read_only:
            raise StorageError(f"{self.label}: the database cannot be written, its file or folder is read-only")
        with (
            self.explained(),
            self._engine.connect().execution_options(cbabo_write=True) as connection,
            connection.begin(),
        ):
            yield connection

    def session(self) -> Connection:
        """Open a connection that the caller keeps and closes; every statement is a transaction of its own."""
        with self.explained():
            return self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def dispose(self) -> None:
        """Close the pooled connections."""
        self._engine.dispose()
        if self._place is not None:
            self._place.forget()

    def is_displaced(self) -> bool:
        """Tell whether the file of a SQLite database was deleted, moved or replaced since it was opened."""
        return self._place is not None and self._place.is_displaced()

    def rescue(self) -> Path:
        """Copy a database whose file was displaced from a connection that still has it open; return the copy."""
        assert self._place is not None
        with self.explained(), self._engine.connect() as connection:
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            return self._place.rescue(source)

    @property
    def is_read_only(self) -> bool:
        """Whether it lies on a medium that cannot be written."""
        return self._place is not None and self._place.read_only

    @property
    def is_local(self) -> bool:
        """Whether only this machine can use it: a file on a local disk, or a database in memory."""
        return not self.locks_rows and (self._place is None or self._place.network is None)

    @property
    def locks_rows(self) -> bool:
        """Whether rows must be locked one by one (PostgreSQL), rather than the whole file (SQLite)."""
        return self._engine.dialect.name != "sqlite"

    @property
    def shared(self) -> bool:
        """Whether other processes can see it (a database in memory is this process's alone)."""
        return self.locks_rows or self.file is not None

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database; None for others, and for one in memory."""
        return None if self._place is None else self._place.file

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn every error of the database into one sentence."""
        try:
            yield
        except sa.exc.IntegrityError as error:
            raise ConflictError(f"{self.label}: the database refused a row ({_first_line(error)})") from error
        except SQLAlchemyError as error:
            passing = isinstance(error, DatabaseError) and _may_pass(error)
            raise (OutageError if passing else StorageError)(self._sentence(error)) from error
        except UnicodeDecodeError as error:  # SQLite quotes damaged bytes in its own message
            raise StorageError(
                f"{self.label}: the database is damaged or not one (its text cannot be decoded)"
            ) from error

    def _sentence(self, error: SQLAlchemyError) -> str:
        said = _first_line(error)
        if isinstance(error, OperationalError) and _may_pass(error):
            hint = "is another program keeping it locked?" if "lock" in said else "is it there and ours to use?"
            return f"{self.label}: the database does not answer ({said}); {hint}"
        if isinstance(error, DatabaseError):
            trouble = "refused" if self.locks_rows else "is damaged or not one"
            return f"{self.label}: the database {trouble} ({said})"
        return f"{self.label}: {said}"

    def _check_revision(self) -> None:
        revision = self.revision()
        if revision is None:
            raise StorageError(f"{self.label}: this database holds no studies; create one first")
        if revision not in schema.REVISIONS:
            self._refuse_unknown(revision)
        if revision != schema.REVISIONS[-1]:
            raise StorageError(
                f"{self.label}: this database has the older revision {revision}, expected {schema.REVISIONS[-1]}; "
                f"run: cbabo storage upgrade {self.label}"
            )

    def _refuse_unknown(self, revision: str) -> None:
        if revision < schema.REVISIONS[-1]:
            raise StorageError(
                f"{self.label}: the database is damaged or not one (it states the revision {revision!r}); "
                "restore a copy of it"
            )
        raise StorageError(
            f"{self.label}: this database was written by a newer version of cbabo (revision {revision}, "
            f"this one knows up to {schema.REVISIONS[-1]}); install the newer version"
        )


def _engine(url: URL, place: Place | None) -> Engine:
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, place)
    patience = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS}
    try:
        engine = sa.create_engine(url, pool_pre_ping=True, connect_args=patience)
    except (ImportError, NoSuchModuleError) as error:
        raise StorageError(
            "storage: PostgreSQL needs the psycopg driver; install it by: pip install 'cbabo[postgres]'"
        ) from error
    milliseconds = round(1000 * files.BUSY_SECONDS)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {milliseconds}")
            cursor.execute(f"SET idle_in_transaction_session_timeout = {2 * milliseconds}")  # whose machine is gone
        connection.commit()

    return engine


def _sqlite_engine(url: URL, place: Place | None) -> Engine:
    if place is None:
        engine = sa.create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        if place.network is not None:
            _LOG.warning(
                "%s lies on a network file system (%s): using a rollback journal, readers may wait",
                place.file,
                place.network,
            )
        engine = sa.create_engine(url, creator=place.connect, poolclass=NullPool if place.read_only else QueuePool)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        if place is None:
            connection.execute("PRAGMA foreign_keys=ON")
        else:
            place.prepare(connection)

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("cbabo_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _may_pass(error: DatabaseError) -> bool:
    """Tell whether the same statement may succeed a little later."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        # Python's own errors carry no code: none of them passes, but for what Place.connect raises.
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in _PASSING_SQLITE
    if not isinstance(error, OperationalError | sa.exc.InterfaceError | sa.exc.InternalError):
        return False
    code = getattr(cause, "sqlstate", None)
    return error.connection_invalidated or code is None or str(code).startswith(_PASSING_POSTGRES)


def _first_line(error: SQLAlchemyError) -> str:
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__
