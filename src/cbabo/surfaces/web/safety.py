"""Request checks: own pages of this machine only, small requests only, and no internal details in errors.

A page on another site can make a browser send requests here, and a name that resolves to 127.0.0.1 can make it treat
them as requests to that site. So every request must name this server as its host, and an origin, if given, must be this server.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from cbabo.errors import shown
from cbabo.evaluators.function import describe

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_LOG = logging.getLogger(__name__)
LARGEST = 1_000_000
"""Bytes of a request's body that are read at most."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response, also of those that are made below the application (see `server`)."""


class StrictJSON(Response):
    """JSON in plain ASCII: whatever a name holds, it can be sent."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the content; NaN has no place in JSON."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Safety:
    """Checks every request before the application sees it, and adds headers to every response."""

    def __init__(self, app: App, port: int) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [(name, value) for name, value in message.get("headers", []) if name != b"cache-control"]
                message["headers"] = headers + [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, send_with_headers)
            return
        try:
            await self._app(scope, _Limited(receive).receive, send_with_headers)
            return
        except ClientDisconnect:  # Nobody is left to be answered.
            return
        except asyncio.CancelledError:
            answer = StrictJSON({"error": "the server is ending; ask again when it has been started again"}, 503)
        except Exception as error:
            _LOG.error("a request to %s failed: %s", shown(scope["path"]), describe(error))
            answer = StrictJSON({"error": "the server failed; what it printed says why"}, 500)
        if not started:  # Else the application has answered already.
            await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: MutableMapping[str, Any]) -> Response | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "").lower() not in self._hosts:
            return StrictJSON({"error": "the server answers under its own address only; open the one it printed"}, 421)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        foreign = origin is not None and origin.lower() not in {f"http://{host}" for host in self._hosts}
        if foreign or (scope["path"].startswith("/api") and site not in ("none", "same-origin")):
            return StrictJSON({"error": "the server answers its own page only, not those of other sites"}, 403)
        try:
            if int(headers.get("content-length", "0")) > LARGEST:
                return StrictJSON({"error": _too_large()}, 413)
        except ValueError:
            return StrictJSON({"error": "the content-length must be a whole number"}, 400)
        return None


def is_token(given: str | None, token: str) -> bool:
    """Tell whether an Authorization header holds the token, in a time that does not depend on how much is right."""
    return given is not None and secrets.compare_digest(given.encode("utf-8", "replace"), f"Bearer {token}".encode())


class _Limited:
    """Counts what is read of a body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._count = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._count += len(message.get("body", b""))
        if self._count > LARGEST:
            raise HTTPException(413, _too_large())
        return message


def _too_large() -> str:
    return f"the request is larger than {LARGEST:,} bytes; ask in smaller parts"
