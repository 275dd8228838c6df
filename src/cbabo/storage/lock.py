"""Who is optimising a study: one process at a time, and a dead one never blocks the next.

No host name and no host's clock decides. A holder of the same boot and process namespace is known to be dead or alive at once,
by its process number and its start, counted from the boot. Of others the heartbeat tells, in the database's own time: a recent
one means alive. If it is old, or lies in the future because a clock was set, it is watched: if it does not change for
WATCH_SECONDS, the holder is dead. On PostgreSQL a holder also keeps a session open (`storage.session`).
"""

from __future__ import annotations

import math
import os
import platform
import time
import uuid
from dataclasses import asdict, dataclass
from typing import Any, Literal

import psutil
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo.numerics.identity import machine, process_start
from cbabo.storage.schema import LOCKS

HEARTBEAT_SECONDS = 10.0
"""How often a holder says that it is alive."""
STALE_SECONDS = 60.0
"""From this age on a heartbeat no longer shows that its holder is alive."""
WATCH_SECONDS = 25.0
"""How long a heartbeat is watched before its holder counts as dead: it would have been renewed twice."""

Life = Literal["alive", "dead", "uncertain"]


@dataclass(frozen=True)
class Holder:
    """A process that holds, or held, the lock of a study."""

    token: str
    machine: str
    host: str
    pid: int
    process_started: float
    heartbeat: float = 0.0
    written: str | None = None

    @classmethod
    def here(cls) -> Holder:
        """Describe this process, with a token of its own for each lock."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex, machine(), platform.node()[:255], pid, process_start(pid) or 0.0)

    def life(self, now: float, *, local: bool) -> Life:
        """Tell whether the holder is alive.

        now: the database's time. local: only this machine can use the database, so that a holder of another boot is gone.
        """
        if self.machine == machine():
            return "alive" if psutil.pid_exists(self.pid) and self._is_same_process() else "dead"
        if local and _boot(self.machine) != _boot(machine()) and _boot(machine()):
            return "dead"
        return "alive" if 0.0 <= now - self.heartbeat < STALE_SECONDS else "uncertain"

    @property
    def label(self) -> str:
        """Where it runs, for messages."""
        return f"process {self.pid} on {self.host}"

    def _is_same_process(self) -> bool:
        try:
            started = process_start(self.pid)
        except PermissionError:
            return True
        return started is not None and abs(started - self.process_started) < 0.5


def read_holder(connection: Connection, study: int) -> Holder | None:
    """Return who holds the study's lock, alive or not; a damaged row is no lock: its holder cannot write either."""
    row = connection.execute(sa.select(LOCKS).where(LOCKS.c.study_id == study)).mappings().first()
    if row is None:
        return None
    fields: dict[str, Any] = {name: row[name] for name in Holder.__dataclass_fields__}
    numbers = (fields["pid"], fields["process_started"], fields["heartbeat"])
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in numbers):
        return None
    if not 0 < fields["pid"] < 2**31 or not all(isinstance(fields[name], str) for name in ("token", "machine")):
        return None
    return Holder(**{**fields, "pid": int(fields["pid"]), "host": str(fields["host"] or "another machine")})


def write_holder(connection: Connection, study: int, holder: Holder | None) -> None:
    """Replace the holder of the study's lock; its heartbeat is now."""
    connection.execute(sa.delete(LOCKS).where(LOCKS.c.study_id == study))
    if holder is not None:
        row = {**asdict(holder), "heartbeat": _now(connection)}
        connection.execute(sa.insert(LOCKS).values(study_id=study, **row))


def beat(connection: Connection, study: int, token: str, written: str | None = None) -> bool:
    """Renew the heartbeat; return False if the lock is no longer ours.

    written: the transaction that this is part of, which is then the holder's last.
    """
    mine = (LOCKS.c.study_id == study) & (LOCKS.c.token == token)
    values = {"heartbeat": _now(connection)} | ({} if written is None else {"written": written})
    return connection.execute(sa.update(LOCKS).where(mine).values(values)).rowcount == 1


def database_time(connection: Connection) -> float:
    """Return the database's time in seconds since 1970; SQLite has that of the machine."""
    return (
        time.time()
        if connection.dialect.name == "sqlite"
        else float(connection.execute(sa.select(_now(connection))).scalar_one())
    )


def _now(connection: Connection) -> Any:
    if connection.dialect.name == "sqlite":
        return time.time()
    return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)


def _boot(name: str) -> str:
    """Return the boot of a machine, empty if it is not known."""
    return name.partition("|")[0] if name.startswith("boot:") else ""
