"""The HTTP server: uvicorn with limits on connections and on time, so that a client that sends nothing cannot hold it up.

uvicorn closes a connection that rests between two requests, but waits for ever for the rest of a request, or for a client that
does not read its response.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from cbabo.surfaces.web.safety import HEADERS, App
from cbabo.surfaces.web.turns import RETRY_SECONDS

MOST_CONNECTIONS = 200
"""Connections at a time. One more takes the place of the one that has rested for longest, or is refused if none rests."""
REQUEST_SECONDS = 10.0
"""Within this time a request must have arrived as a whole, after the connection was made or its first bytes came."""
RESPONSE_SECONDS = 30.0
"""A client that reads nothing of its response for so long is cut off."""
IDLE_SECONDS = 15
"""A connection that rests for so long between two requests is closed."""
MOST_MESSAGES = 20
"""Messages of one logger within a minute that are printed."""


def make_server(app: App) -> uvicorn.Server:
    """Return the server of an application; its messages go to the handlers of the loggers "uvicorn" and "cbabo"."""
    config = uvicorn.Config(
        app,
        http=Limited,
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=5,
    )
    for name in ("uvicorn.error", "cbabo.surfaces.web.safety"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, RateLimit) for known in logger.filters):
            logger.addFilter(RateLimit(MOST_MESSAGES))
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    return uvicorn.Server(config)


class Limited(H11Protocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request_clock: asyncio.TimerHandle | None = None
        self._response_clock: asyncio.TimerHandle | None = None
        self._rests_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if there is a place for it."""
        super().connection_made(transport)
        self._rests_since = time.monotonic()
        self._start_clock()
        if len(self.connections) > MOST_CONNECTIONS:
            others = [other for other in self.connections if isinstance(other, Limited) and other is not self]
            resting = [other for other in others if other.rests]
            if resting:
                min(resting, key=lambda other: other._rests_since)._close()
            else:
                self._refuse(503, "the server has as many connections as it takes; ask again later")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop_clocks()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; the clock stops when it is whole."""
        super().data_received(data)
        arriving = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if arriving and self._request_clock is None:
            self._start_clock()
        elif not arriving and self._request_clock is not None:
            self._request_clock.cancel()
            self._request_clock = None

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._rests_since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        super().pause_writing()
        self._response_clock = self._response_clock or self.loop.call_later(RESPONSE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        super().resume_writing()
        if self._response_clock is not None:
            self._response_clock.cancel()
            self._response_clock = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "the request is not valid HTTP; check it")

    @property
    def rests(self) -> bool:
        """Whether no whole request is being answered."""
        return self.cycle is None or self.cycle.response_complete or self.conn.their_state is h11.SEND_BODY

    def _start_clock(self) -> None:
        self._request_clock = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def _give_up(self) -> None:
        """Close a connection whose request did not arrive in time."""
        begun = self.conn.trailing_data[0] or self.conn.their_state is h11.SEND_BODY
        if begun and not self.transport.is_closing() and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refuse(408, f"the request did not arrive within {REQUEST_SECONDS:g} s; send it again")
        else:
            self._close()

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer below the application, with the headers of every response, and close the connection."""
        body = json.dumps({"error": sentence}).encode("ascii")
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        headers += [(b"Content-Type", b"application/json"), (b"Content-Length", str(len(body)).encode())]
        headers += [(b"Connection", b"close"), (b"Retry-After", str(RETRY_SECONDS).encode())]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self._close()

    def _close(self) -> None:
        self._stop_clocks()
        self.connections.discard(self)  # Its place is free at once.
        if self.flow.write_paused:  # Else it would wait for a client that does not read.
            self.transport.abort()
        else:
            self.transport.close()

    def _stop_clocks(self) -> None:
        for clock in (self._request_clock, self._response_clock):
            if clock is not None:
                clock.cancel()
        self._request_clock = self._response_clock = None


class RateLimit(logging.Filter):
    """Lets so many messages of a logger through within a minute, and says how many were left out."""

    def __init__(self, most: int, seconds: float = 60.0) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds
        self._begun = -seconds
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a message is printed."""
        now = time.monotonic()
        if now - self._begun >= self._seconds:
            left_out = self._count - self._most
            if left_out > 0:
                record.msg = f"{record.getMessage()} ({left_out} further messages were left out before this one)"
                record.args = None
            self._begun, self._count = now, 0
        self._count += 1
        return self._count <= self._most
