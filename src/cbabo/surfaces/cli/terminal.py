"""The way to the terminal: whatever is written there, nothing in it is obeyed.

Names, failure reasons, logs and error messages may hold escape sequences, which move the cursor, change the title or hide text,
and characters that reverse the direction of writing. `escaping` puts a stream around standard output and standard error that
shows them as text, so that no command has to think of it. Only the progress bar goes past it, with texts that it escapes itself.
"""

from __future__ import annotations

import logging
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from cbabo.storage.urls import hide_passwords

_JOINERS = "\u200c\u200d"  # Letters of several scripts need these, and they move nothing.


def escaped(text: str) -> str:
    r"""Return a text with everything that a terminal would obey written as in Python: "\x1b[31m", "\u202e".

    Line breaks and tabs are kept.

    Examples:
        >>> print(escaped("mesh \x1b[31mbroken\x07"))
        mesh \x1b[31mbroken\x07
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _harmless(c) else c.encode("unicode_escape").decode("ascii") for c in text)


@contextmanager
def escaping() -> Iterator[None]:
    """Escape all that is written to standard output and standard error inside."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast(TextIO, _Escaping(sys.stdout)), cast(TextIO, _Escaping(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unescaped(stream: TextIO) -> TextIO:
    """Return the stream under an escaping one: for what a machine reads, and for control sequences of our own."""
    while isinstance(stream, _Escaping):
        stream = stream.stream
    return stream


class TerminalHandler(logging.Handler):
    """Writes messages, one line each, where standard error is at the moment: a progress bar may have taken its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        sys.stderr.write(f"cbabo: {hide_passwords(' '.join(record.getMessage().split()))}\n")


class _Escaping:
    """A text stream that escapes what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.stream.write(escaped(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _harmless(c: str) -> bool:
    return c.isprintable() or c in "\n\t" or c in _JOINERS or unicodedata.category(c) == "Zs"
