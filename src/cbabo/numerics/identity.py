"""What tells one machine and one process from another, whatever happens to names and clocks.

Host names repeat, process numbers are used again, and a clock may be set while a process runs. On Linux the kernel states an id
of the boot and the start of each process in ticks since then; elsewhere the times that psutil reports stand in.
"""

from __future__ import annotations

import platform
import uuid
from functools import cache
from pathlib import Path

import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
_PROCESSES = Path("/proc")


@cache
def machine() -> str:
    """Name the boot of this machine and the process namespace: two hosts, or containers, of one name differ in them."""
    if not _BOOT.exists():
        return f"{platform.node()}-{uuid.getnode():x}"
    namespace = _NAMESPACE.readlink() if _NAMESPACE.exists() else ""
    return f"boot:{_BOOT.read_text().strip()}|{namespace}"


def process_start(pid: int) -> float | None:
    """Return when a process started, in ticks since the boot, which no clock changes; None if it is dead.

    Where there is no /proc, seconds since 1970.
    """
    if not (_PROCESSES / "self" / "stat").exists():
        try:
            process = psutil.Process(pid)
            return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
        except psutil.NoSuchProcess:
            return None
        except psutil.AccessDenied as error:
            raise PermissionError from error
    try:
        fields = (_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        if psutil.pid_exists(pid):
            raise PermissionError from None  # /proc hides the processes of others
        return None
    return None if fields[0] in "ZX" else float(fields[19])
