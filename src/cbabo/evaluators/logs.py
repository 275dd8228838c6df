"""The log of a failed evaluation: the last lines of the simulator's output."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from pathlib import Path

LOG_CHARACTERS = 4000
"""The most that is kept of one evaluation's log."""

printed_log: ContextVar[Path | None] = ContextVar("printed_log", default=None)
"""The file that takes what user code prints; set in the worker processes of the pool."""


def tail(text: str, limit: int = LOG_CHARACTERS) -> str:
    """Return the end of a text, with a mark where something was cut off."""
    text = text.strip()
    return text if len(text) <= limit else "… " + text[-(limit - 2) :]


def file_tail(path: Path, limit: int = LOG_CHARACTERS) -> str:
    """Return the end of a text file, whatever its encoding; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 4 * limit))
            return tail(file.read().decode("utf-8", errors="replace"), limit)
    except OSError:
        return ""


def printed_tail() -> str:
    """Return the end of what user code has printed in this worker process during the current task."""
    path = printed_log.get()
    if path is None:
        return ""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return file_tail(path)


def joined(*sections: tuple[str, str]) -> str:
    """Join (title, text) sections into one log, where each section that is not empty gets an equal share of the characters."""
    filled = [(title, text) for title, text in sections if text.strip()]
    if not filled:
        return ""
    share = LOG_CHARACTERS // len(filled)
    parts = []
    for title, text in filled:
        heading = f"--- {title}\n"
        parts.append(heading + tail(text, share - len(heading) - 1))
    return "\n".join(parts)
