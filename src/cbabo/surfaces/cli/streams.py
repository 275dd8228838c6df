"""Standard error that never ends a command: closed, full or a broken pipe, what cannot be written is dropped."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


@contextmanager
def forgiving_stderr() -> Iterator[None]:
    """Write to standard error as long as it can be written."""
    _open_missing()
    before = sys.stderr
    sys.stderr = _Forgiving(before)
    try:
        yield
    finally:
        sys.stderr = before


class _Forgiving:
    """A stream whose writes never fail."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or drop the text and everything after it."""
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # ValueError: it was closed
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Flush, or drop what is left."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._give_up()

    def _give_up(self) -> None:
        """Send the rest, also what is still buffered and what processes that are started later write, nowhere."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _open_missing() -> None:
    """Open standard streams that were closed, lest a file takes their number and is written to by mistake."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno == errno.EBADF:
                opened = os.open(os.devnull, os.O_RDWR)
                if opened != number:
                    os.dup2(opened, number)
                    os.close(opened)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
