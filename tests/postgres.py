"""A real PostgreSQL server for the tests: started when the first test asks for it, gone when the tests are.

Where the server's programs are missing the tests are skipped, except where CI=true: there they fail.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

USER, PASSWORD = "engineer", "p4ss-w0rd"
_PROGRAMS = ("initdb", "pg_ctl", "postgres")
_SERVE = """
trap '' HUP TERM INT
if "$1/pg_ctl" --pgdata=data --log=server.log -w -t 60 --options="$2" start >start.log 2>&1 </dev/null; then
    echo ready
    read -r _
    "$1/pg_ctl" --pgdata=data --mode=immediate stop >stop.log 2>&1 </dev/null
    cd / && rm -rf "$3"
fi
"""
"""Serve until the standard input ends, which it also does when the tests are killed; then leave nothing behind."""


@dataclass(frozen=True)
class Server:
    """A server on a port of this machine; every database is a new one."""

    port: int
    _numbers: Iterator[int] = field(default_factory=count)

    def url(self, database: str, user: str = USER, password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"studies_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """Execute a statement outside of our code, by default in the server's own database."""
        with psycopg.connect(url or self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    programs = _find_programs()
    if programs is None:
        reason = f"no PostgreSQL server: {', '.join(_PROGRAMS)} are neither on PATH nor in /usr/lib/postgresql/*/bin"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}; install Debian's package postgresql")
        pytest.skip(reason)
    place = Path(tempfile.mkdtemp(prefix="cbabo-postgres-", dir=_open_directory()))
    process = None
    try:
        _initialise(programs, place)
        process, port = _start(programs, place)
        yield Server(port)
    finally:
        if process is not None:
            process.communicate()  # closes its standard input
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: Server) -> str:
    return postgres.new_database()


def _find_programs() -> Path | None:
    """Return the folder of the server's programs, of the newest version where there are several."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(installed, key=lambda folder: float(folder.parent.name), reverse=True)
    return next((folder for folder in folders if all((folder / name).exists() for name in _PROGRAMS)), None)


def _open_directory() -> Path:
    """Return a folder for temporary files that other users can reach too."""
    for folder in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        if all(part.stat().st_mode & stat.S_IXOTH for part in (folder, *folder.parents)):
            return folder
    raise RuntimeError("no temporary folder is open to the user who runs the PostgreSQL server")


def _somebody() -> dict[str, Any]:
    """Say as whom to run the server, which refuses to be root's."""
    if os.geteuid() != 0:
        return {}
    import pwd

    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _initialise(programs: Path, place: Path) -> None:
    somebody = _somebody()
    (place / "password").write_text(PASSWORD)
    for path in (place, place / "password"):
        if somebody:
            os.chown(path, somebody["user"], somebody["group"])
    words = [programs / "initdb", "--pgdata=data", f"--username={USER}", "--pwfile=password", "--auth=scram-sha-256"]
    words += ["--encoding=UTF8", "--locale=C", "--no-sync"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, **somebody)
    if done.returncode != 0:
        raise RuntimeError(f"initdb failed: {done.stdout}{done.stderr}")


def _start(programs: Path, place: Path) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(3):  # somebody else may take the port before the server does
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        process = subprocess.Popen(
            ["sh", "-c", _SERVE, "serve", str(programs), options, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=place,
            start_new_session=True,
            **_somebody(),
        )
        assert process.stdout is not None
        if process.stdout.readline() == b"ready\n":
            return process, port
        process.communicate()
    logs = [place / name for name in ("start.log", "server.log")]
    raise RuntimeError("the server did not start: " + "".join(log.read_text() for log in logs if log.exists()))
