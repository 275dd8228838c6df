"""The server below the application: slow, silent and malformed clients, and too many of them."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import served
from cbabo import Study
from cbabo.surfaces.web import server
from cbabo.surfaces.web.server import RateLimit
from learned import QUICK
from simulators import make_beam

GET = b"GET /api/follow HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"


@pytest.fixture
def beam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study without evaluations; servers made from now on wait for half a second only."""
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(server, "RESPONSE_SECONDS", 0.5)
    return Study.create(make_beam(), f"sqlite:///{tmp_path}/new.db", settings=QUICK)


@pytest.fixture
def port(beam: Study) -> Iterator[int]:
    with served(beam) as address:
        yield int(address.rstrip("/").rpartition(":")[2])


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def ending(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    connection.close()
    return b"".join(parts)


def follow(connection: socket.socket, port: int) -> int:
    """Ask for the study's progress; return the status code once the whole answer is there."""
    connection.sendall(GET % port)
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def check_refusal(answer: bytes, code: int) -> str:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    assert first.startswith(f"HTTP/1.1 {code} ")
    assert headers["content-type"] == "application/json"
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
    return str(json.loads(body)["error"])


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: 127",
        b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 100\r\n\r\n{",
    ],
)
def test_a_request_that_does_not_arrive_is_given_up(port: int, sent: bytes) -> None:
    begun = time.monotonic()
    with connect(port) as connection:
        connection.sendall(sent.replace(b"%d", str(port).encode()))
        said = check_refusal(ending(connection), 408)
    assert "did not arrive within 0.5 s" in said
    assert time.monotonic() - begun > 0.3


def test_a_request_that_trickles_in_is_given_up(port: int) -> None:
    with connect(port) as connection:
        with pytest.raises(OSError, match="."):
            for _ in range(100):
                connection.sendall(b"G")
                time.sleep(0.05)
        with pytest.raises(OSError, match="."):
            if not connection.recv(1):
                raise OSError("closed")
            connection.sendall(b"x" * 100_000)


def test_a_silent_connection_is_closed_without_an_answer(port: int) -> None:
    with connect(port) as connection:
        assert ending(connection) == b""


def test_what_is_no_http_is_refused_with_all_headers(port: int) -> None:
    for sent in (
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000,
    ):
        with connect(port) as connection:
            connection.sendall(sent)
            assert "not valid HTTP" in check_refusal(ending(connection), 400)


def test_a_client_that_does_not_read_is_cut_off(beam: Study) -> None:
    # Buffers of a few kilobytes, so that a few responses fill them.
    with served(beam, send_buffer=4096) as address, socket.socket() as connection:
        port = int(address.rstrip("/").rpartition(":")[2])
        connection.settimeout(10)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        sent = b"GET /main.js HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
        until = time.monotonic() + 120
        with pytest.raises(ConnectionError, match="."):
            while time.monotonic() < until:
                connection.sendall(sent)
                time.sleep(0.05)


def test_resting_connections_give_way_to_new_ones(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(server, "REQUEST_SECONDS", 30.0)
    resting = [connect(port) for _ in range(20)]
    with connect(port) as connection:
        assert follow(connection, port) == 200
    for other in resting[:10]:
        assert ending(other) == b""
    for other in resting:
        other.close()


def test_a_connection_is_used_again(port: int) -> None:
    with connect(port) as connection:
        for _ in range(3):
            assert follow(connection, port) == 200
            time.sleep(0.4)  # Longer in all than a request may take.


def test_messages_are_limited() -> None:
    limit = RateLimit(2, seconds=0.05)

    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("x", logging.WARNING, "", 0, "%s", (text,), None)

    assert [limit.filter(record("a")) for _ in range(5)] == [True, True, False, False, False]
    time.sleep(0.06)
    later = record("b")
    assert limit.filter(later)
    assert later.getMessage() == "b (3 further messages were left out before this one)"
