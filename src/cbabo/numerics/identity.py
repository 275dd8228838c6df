"""What tells one machine and one process from another, whatever happens to names and clocks.

Host names repeat, process numbers are used again, and a clock may be set while a process runs. On Linux the kernel states an id
of the boot, and the start of each process in ticks since then; elsewhere the times that psutil reports stand in.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

import psutil


@cache
def machine_id() -> str:
    """Return an id of this machine since its last start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"{socket.gethostname()}-{psutil.boot_time():.0f}"


def process_start(process: int | None = None) -> str | None:
    """Return when a process of this machine began, in the machine's own count; None if there is none of this number."""
    number = os.getpid() if process is None else process
    try:
        if Path("/proc/self/stat").exists():
            # The second field is the program's name in parentheses, which may hold anything.
            after = (
                Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            )
            return None if after[0] == "Z" else after[19]
        return f"{psutil.Process(number).create_time():.2f}"
    except (OSError, IndexError, psutil.Error):
        return None
