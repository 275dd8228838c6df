"""Who is optimising a study: one process at a time, and a dead one never blocks the next.

A holder on this machine is known to be dead at once, by its process number and start time. A holder on another
machine counts as dead when its heartbeat is older than STALE_SECONDS; the machines' clocks must agree to within
half of that.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cbabo.storage.schema import LOCKS

HEARTBEAT_SECONDS = 10.0
"""How often a holder says that it is alive."""
STALE_SECONDS = 60.0
"""After how long without a heartbeat a holder on another machine counts as dead."""


@dataclass(frozen=True)
class Holder:
    """A process that holds, or held, the lock of a study."""

    token: str
    machine: str
    pid: int
    process_started: float
    heartbeat: float

    @classmethod
    def here(cls) -> Holder:
        """Describe this process, with a token of its own for each lock."""
        started = psutil.Process().create_time()
        return cls(uuid4().hex, machine(), os.getpid(), started, time.time())

    @property
    def alive(self) -> bool:
        """Whether the holder must be taken to be alive."""
        if self.machine != machine():
            return time.time() - self.heartbeat < STALE_SECONDS
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.process_started) < 1.0
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True

    @property
    def label(self) -> str:
        """Where it runs, for messages."""
        return f"process {self.pid} on {self.machine.split('|')[0]}"


def machine() -> str:
    """Name this machine; two containers with the same host name have different process namespaces."""
    namespace = Path("/proc/self/ns/pid")
    return f"{platform.node()}|{namespace.readlink()}" if namespace.exists() else platform.node()


def read_holder(connection: Connection, study: int) -> Holder | None:
    """Return who holds the study's lock, alive or not."""
    row = connection.execute(sa.select(LOCKS).where(LOCKS.c.study_id == study)).mappings().first()
    if row is None:
        return None
    fields: dict[str, Any] = {name: row[name] for name in Holder.__dataclass_fields__}
    return Holder(**fields)


def write_holder(connection: Connection, study: int, holder: Holder | None) -> None:
    """Replace the holder of the study's lock."""
    connection.execute(sa.delete(LOCKS).where(LOCKS.c.study_id == study))
    if holder is not None:
        connection.execute(sa.insert(LOCKS).values(study_id=study, **asdict(holder)))


def beat(connection: Connection, study: int, token: str) -> bool:
    """Renew the heartbeat; return False if the lock is no longer ours."""
    mine = (LOCKS.c.study_id == study) & (LOCKS.c.token == token)
    return connection.execute(sa.update(LOCKS).where(mine).values(heartbeat=time.time())).rowcount == 1
