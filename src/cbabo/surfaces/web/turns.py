"""Who computes when: a few requests at a time for each client, light ones first, and heavy ones row by row.

A request is heavy if it asks for many answers or a decision (`predict-many`, `recommend`, `explain`, `atlas`), else light. The
model computes for one request at a time. Requests for many answers are cut into slices, between which others have their turn: a
light request waits for one slice, or one decision, at most. A client that has all its places taken is told to ask later.
"""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from starlette.exceptions import HTTPException

Client = Literal["owner", "anyone"]
"""Whoever has the token, and everybody else. All clients are on this machine, so that their addresses do not tell them apart."""
PLACES = 8
"""Requests of one kind that a client may have under way; those of both kinds and clients take 32 of the server's 40 threads."""
RETRY_SECONDS = 2


class Turns:
    """A lock that light requests get before heavy ones, and requests of one kind in the order of their arrival.

    Examples:
        >>> turns = Turns()
        >>> with turns.turn(heavy=True):
        ...     print("computing")
        computing
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._waiting: list[tuple[bool, int]] = []
        self._taken = False

    @contextmanager
    def turn(self, *, heavy: bool) -> Iterator[None]:
        """Wait for the lock and hold it."""
        with self._changed:
            ticket = (heavy, next(self._numbers))
            bisect.insort(self._waiting, ticket)
            self._changed.wait_for(lambda: not self._taken and self._waiting[0] == ticket)
            self._waiting.pop(0)
            self._taken = True
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()


class Places:
    """The places that each client has for requests of one kind."""

    def __init__(self, kind: str, places: int = PLACES) -> None:
        self._kind = kind
        self._places = places
        self._taken: Counter[Client] = Counter()  # Changed by the event loop only.

    @contextmanager
    def place(self, client: Client) -> Iterator[None]:
        """Take a place; HTTPException with status 429 where none is left."""
        if self._taken[client] >= self._places:
            raise HTTPException(
                429,
                f"{self._places} {self._kind} requests are under way already, which is the limit; "
                f"ask again in {RETRY_SECONDS} s",
                {"Retry-After": str(RETRY_SECONDS)},
            )
        self._taken[client] += 1
        try:
            yield
        finally:
            self._taken[client] -= 1
