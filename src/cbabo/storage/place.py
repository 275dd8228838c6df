"""The file of a SQLite database: how it is opened, and whether it still is where it was.

A process keeps the file open. If somebody deletes or moves it, or puts another one in its place, SQLite goes on to read and
write a file that nobody else can see. So the device and the inode of the file and of its write-ahead log are compared after
every commit. The open connection still sees everything, and the whole database is copied from it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import weakref
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil

BUSY_SECONDS = 30.0
"""How long one transaction waits for another program's."""
_NETWORK = (
    "nfs", "cifs", "smb", "sshfs", "9p", "lustre", "beegfs", "gpfs", "ceph", "gluster", "afs", "davfs", "virtiofs",
    "vboxsf", "vmhgfs", "prl_fs",
)  # fmt: skip
_PARTS = ("", "-wal", "-shm")
_WAL_VERSION = b"\x02\x02"
"""Bytes 18 and 19 of a database file that uses a write-ahead log."""


class Place:
    """A database file as this process knows it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.network = on_network(file.parent)
        """The kind of network file system that holds the file, None if the disk is local."""
        self.may_create = False
        """Whether the file is created if there is none."""
        self.read_only = file.exists() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))
        """Whether the file or its folder cannot be written, as on a read-only medium."""
        self._known: dict[str, tuple[int, int]] = {}
        self._copy: Path | None = None
        self._rescued: Path | None = None

    def connect(self) -> sqlite3.Connection:
        """Open a connection to the file that the first connection has opened."""
        if self._known and self.is_displaced():
            raise sqlite3.OperationalError("the file was deleted, moved or replaced")
        uri = f"{self.file.absolute().as_uri()}?mode={'rwc' if self.may_create and not self._known else 'rw'}"
        if self.read_only:
            uri = self._read_only_uri()
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)
        connection.text_factory = _decode
        if not self.read_only:
            with suppress(OSError):
                self._known.setdefault("", _identity(self.file))
        return connection

    def prepare(self, connection: Any) -> None:
        """Set what a new connection guarantees."""
        journal = "WAL" if self.network is None else "DELETE"
        pragmas = [f"journal_mode={journal}", "synchronous=FULL"] if not self.read_only else ["query_only=ON"]
        with closing(connection.cursor()) as cursor:
            for pragma in (*pragmas, "foreign_keys=ON"):
                cursor.execute(f"PRAGMA {pragma}")

    def is_displaced(self) -> bool:
        """Tell whether the file, or its write-ahead log, is no longer the one that this process has open."""
        if not self._known:
            return False
        for part in _PARTS:
            try:
                now = _identity(Path(f"{self.file}{part}"))
            except OSError:
                if part in self._known:
                    return True
                continue
            if self._known.setdefault(part, now) != now and self.network is None:  # inodes may change on a network
                return True
        return False

    def forget(self) -> None:
        """Take the file as it will be found next; there is no connection any more."""
        self._known.clear()

    def rescue(self, connection: sqlite3.Connection) -> Path:
        """Copy the whole database from an open connection to a file beside its old place, or as near as possible."""
        folder = self.file.absolute().parent
        folders = [folder, *folder.parents, Path(tempfile.gettempdir())]
        for nearest in folders:
            if not nearest.is_dir() or not os.access(nearest, os.W_OK):
                continue
            target = self._rescued or _free_name(nearest / f"{self.file.name}.recovered")
            try:
                _copy_database(connection, target)
            except (OSError, sqlite3.Error):
                if nearest is folders[-1]:
                    raise
                continue
            self._rescued = target
            return target
        raise OSError("no folder can be written")

    def _read_only_uri(self) -> str:
        """Open what cannot be written: SQLite needs help where a write-ahead log has no index yet."""
        uri = self.file.absolute().as_uri()
        with self.file.open("rb") as opened:
            uses_wal = opened.read(20)[18:20] == _WAL_VERSION
        log, index = (Path(f"{self.file}{part}") for part in _PARTS[1:])
        if not uses_wal or index.exists() or os.access(self.file.parent, os.W_OK):
            return f"{uri}?mode=ro"
        if not log.exists() or log.stat().st_size == 0:
            return f"{uri}?mode=ro&immutable=1"
        if self._copy is None:  # the log holds commits, and cannot be read without an index beside it
            folder = Path(tempfile.mkdtemp(prefix="cbabo-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            shutil.copy(self.file, folder / "copy.db")
            shutil.copy(log, folder / "copy.db-wal")
            self._copy = folder / "copy.db"
        return f"{self._copy.as_uri()}?mode=rw"


def on_network(path: Path, partitions: list[Any] | None = None) -> str | None:
    """Return the kind of network file system that holds this path, None if the disk is local."""
    path = path.resolve()
    mounts = psutil.disk_partitions(all=True) if partitions is None else partitions
    holding = [m for m in mounts if path.is_relative_to(m.mountpoint)]
    if not holding:
        return None
    kind = str(max(holding, key=lambda m: len(m.mountpoint)).fstype).lower()
    return kind if any(word in kind for word in _NETWORK) else None


def _identity(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_dev, status.st_ino


def _free_name(file: Path) -> Path:
    """Return the name, with a number if it is taken."""
    number = 1
    free = file
    while free.exists():
        number += 1
        free = file.with_name(f"{file.name}-{number}")
    return free


def _copy_database(source: sqlite3.Connection, target: Path) -> None:
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # so that it is one file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _decode(text: bytes) -> str:
    """Decode a text; bytes that are no text make the row's checksum wrong, rather than the whole query fail."""
    return text.decode("utf-8", "backslashreplace")
