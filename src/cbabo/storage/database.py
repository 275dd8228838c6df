"""Opening a database: which one, whether it is ours, and with what guarantees.

SQLite commits with synchronous=FULL, so that a stored evaluation survives a power cut; it uses a write-ahead log, so
that readers never wait, except on a network file system, where only a rollback journal is safe.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from cbabo.errors import InputError, StorageError
from cbabo.storage import schema

_LOG = logging.getLogger(__name__)
_NETWORK = ("nfs", "cifs", "smb", "sshfs", "9p", "lustre", "beegfs", "gpfs", "ceph", "gluster", "afs", "davfs")
_BUSY_SECONDS = 30.0
_CONNECT_SECONDS = 10
_SCRIPTS = resources.files("cbabo.storage") / "migrations"
VERSIONS = [str(_SCRIPTS / "versions")]
"""Folders with revision scripts."""


class Database:
    """A connection pool to one database of the right revision."""

    def __init__(self, url: str) -> None:
        self.url = read_url(url)
        self.label = _label(self.url)
        self._engine = _engine(self.url)
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
        if database.revision() is None:
            database.upgrade()
        database._check_revision()
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
            self._refuse_newer(before)
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
        with self._explained(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write in one transaction, alone; everything or nothing is stored."""
        with (
            self._explained(),
            self._engine.connect().execution_options(cbabo_write=True) as connection,
            connection.begin(),
        ):
            yield connection

    def dispose(self) -> None:
        """Close the pooled connections."""
        self._engine.dispose()

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
        return _sqlite_file(self.url)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            hint = (
                "is another program keeping it locked?" if "lock" in str(error.orig) else "is it there and ours to use?"
            )
            raise StorageError(f"{self.label}: the database does not answer ({_first_line(error)}); {hint}") from error
        except DatabaseError as error:
            if isinstance(error, sa.exc.IntegrityError):
                raise
            trouble = "refused" if self.locks_rows else "is damaged or not one"
            raise StorageError(f"{self.label}: the database {trouble} ({_first_line(error)})") from error
        except SQLAlchemyError as error:
            raise StorageError(f"{self.label}: {_first_line(error)}") from error

    def _check_revision(self) -> None:
        revision = self.revision()
        if revision is None:
            raise StorageError(f"{self.label}: this database holds no studies; create one first")
        if revision not in schema.REVISIONS:
            self._refuse_newer(revision)
        if revision != schema.REVISIONS[-1]:
            raise StorageError(
                f"{self.label}: this database has the older revision {revision}, expected {schema.REVISIONS[-1]}; "
                f"run: cbabo storage upgrade {self.label}"
            )

    def _refuse_newer(self, revision: str) -> None:
        raise StorageError(
            f"{self.label}: this database was written by a newer version of cbabo (revision {revision}, "
            f"this one knows up to {schema.REVISIONS[-1]}); install the newer version"
        )


def on_network(path: Path, partitions: list[Any] | None = None) -> str | None:
    """Return the kind of network file system that holds this path, None if the disk is local."""
    path = path.resolve()
    mounts = psutil.disk_partitions(all=True) if partitions is None else partitions
    holding = [m for m in mounts if path.is_relative_to(m.mountpoint)]
    if not holding:
        return None
    kind = str(max(holding, key=lambda m: len(m.mountpoint)).fstype).lower()
    return kind if any(word in kind for word in _NETWORK) else None


def read_url(url: str) -> URL:
    """Read a database URL, or say in one sentence what is wrong with it, without showing a password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: the port is not a number
        _, at, rest = str(url).rpartition("@")  # what stands before may be a password
        raise InputError(
            'storage: expected a URL such as "sqlite:///study.db" or "postgresql://user@host:5432/name", '
            f"got {f'...@{rest}' if at else url!r}"
        ) from error
    if parsed.get_backend_name() == "postgresql":
        if "@" in (parsed.host or ""):
            raise InputError("storage: a password with @ in it must be written with %40 instead")
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        raise InputError(f"storage: only sqlite and postgresql are supported, got {parsed.get_backend_name()!r}")
    if parsed.host:
        raise InputError(
            f"storage: sqlite takes three slashes, as in sqlite:///study.db (four for an absolute path), got {url!r}"
        )
    return parsed


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    patience = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS}
    try:
        engine = sa.create_engine(url, pool_pre_ping=True, connect_args=patience)
    except (ImportError, NoSuchModuleError) as error:
        raise StorageError(
            "storage: PostgreSQL needs the psycopg driver; install it by: pip install 'cbabo[postgres]'"
        ) from error
    milliseconds = round(1000 * _BUSY_SECONDS)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {milliseconds}")
            cursor.execute(f"SET idle_in_transaction_session_timeout = {2 * milliseconds}")  # whose machine is gone
        connection.commit()

    return engine


def _sqlite_engine(url: URL) -> Engine:
    file = _sqlite_file(url)
    network = on_network(file.parent) if file is not None else None
    if network is not None:
        _LOG.warning("%s lies on a network file system (%s): using a rollback journal, readers may wait", file, network)
    journal = "WAL" if network is None else "DELETE"
    if file is None:
        engine = sa.create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        engine = sa.create_engine(url, connect_args={"timeout": _BUSY_SECONDS})

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        cursor = connection.cursor()
        for pragma in (f"journal_mode={journal}", "synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("cbabo_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _label(url: URL) -> str:
    """Name the database in messages, without its password."""
    hidden = {name: "***" for name in url.query if "password" in name}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def _sqlite_file(url: URL) -> Path | None:
    in_memory = url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:")
    return None if in_memory else Path(str(url.database))


def _first_line(error: SQLAlchemyError) -> str:
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__
