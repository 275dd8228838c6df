"""What an optional part needs, and how it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cbabo.errors import MissingExtraError


@contextmanager
def needs_matplotlib(what: str) -> Iterator[None]:
    """Say which extra to install where matplotlib is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingExtraError(
            f"{what} needs matplotlib, which is missing; install it by: pip install 'cbabo[plot]'"
        ) from error
