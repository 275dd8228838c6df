"""Who computes when: light requests first, heavy ones row by row, and so many of each for one client."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from cbabo import Model, Study
from cbabo.surfaces.web.turns import PLACES, Places, Turns
from web.conftest import ALLOWED, AT, client_of


def test_light_turns_come_first_and_others_in_order() -> None:
    turns, order = Turns(), []

    def compute(name: str, heavy: bool) -> None:
        with turns.turn(heavy=heavy):
            order.append(name)

    waiting = [("a", True), ("b", True), ("c", False), ("d", False)]
    with turns.turn(heavy=True):
        threads = []
        for name, heavy in waiting:
            threads.append(threading.Thread(target=compute, args=(name, heavy)))
            threads[-1].start()
            while len(turns._waiting) < len(threads):
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == ["c", "d", "a", "b"]


def test_a_turn_ends_with_an_error_too() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="no"), turns.turn(heavy=False):
        raise ValueError("no")
    with turns.turn(heavy=True):
        pass


def test_places_are_counted_for_each_client() -> None:
    places = Places("heavy", 1)
    with places.place("anyone"):
        with pytest.raises(HTTPException) as refused, places.place("anyone"):
            raise AssertionError
        with places.place("owner"):
            pass
    assert refused.value.status_code == 429
    assert refused.value.headers == {"Retry-After": "2"}
    with places.place("anyone"):
        pass


@contextmanager
def slow_model(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[list[int]]:
    """Make every answer take a while; yields how many rows each call had."""
    asked: list[int] = []
    answer = Model.predict_many

    def slow(self: Model, rows: object, **how: object) -> object:
        asked.append(len(rows))  # type: ignore[arg-type]
        time.sleep(seconds)
        return answer(self, rows, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Model, "predict_many", slow)
    yield asked


def test_one_client_cannot_block_the_page(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(study)
    heavy = {"thresholds": [AT] * 20}
    with slow_model(monkeypatch, 0.02), client, ThreadPoolExecutor(45) as pool:
        asked = [pool.submit(client.post, "/api/predict-many", json=heavy) for _ in range(45)]
        time.sleep(0.3)
        for request in (("GET", "/"), ("GET", "/api/follow"), ("POST", "/api/predict")) * 3:
            body = {"thresholds": AT} if request[0] == "POST" else None
            assert client.request(*request, json=body).status_code == 200
        assert not all(future.done() for future in asked)  # No light request has waited for the heavy ones.
        own = client.post("/api/predict-many", json={"thresholds": [AT]}, headers=ALLOWED)
        assert own.status_code == 200  # Whoever has the token has places of their own.
        answers = [future.result() for future in asked]
    codes = [answer.status_code for answer in answers]
    assert set(codes) == {200, 429}
    assert codes.count(200) >= PLACES
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["retry-after"] == "2"
    assert refused.json() == {"error": "8 heavy requests are under way already, which is the limit; ask again in 2 s"}
    assert {len(answer.json()) for answer in answers if answer.status_code == 200} == {20}


def test_heavy_requests_are_cut_into_slices(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_model(monkeypatch, 0.0) as asked:
        assert client.post("/api/predict-many", json={"thresholds": [AT] * 3}).status_code == 200
        assert asked == [1, 1, 1]
        asked.clear()
        assert client.post("/api/predict-many", json={"thresholds": [AT] * 600, "fast": True}).status_code == 200
        assert asked == [250, 250, 100]


def test_what_nobody_waits_for_is_not_computed(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    app = client_of(study).app
    received = iter([{"type": "http.request", "body": b'{"thresholds": [{"stress": 5, "frequency": 3}]}'}])

    async def receive() -> dict[str, object]:
        return next(received, {"type": "http.disconnect"})

    async def send(message: dict[str, object]) -> None:
        pass

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/api/predict-many",
        "raw_path": b"/api/predict-many",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8321"), (b"content-type", b"application/json")],
        "scheme": "http",
        "server": ("127.0.0.1", 8321),
        "client": ("127.0.0.1", 1),
    }
    # Tests of the page keep an event loop in the main thread.
    with slow_model(monkeypatch, 0.0) as asked, ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(app(scope, receive, send))).result()  # type: ignore[arg-type]
    assert asked == []
