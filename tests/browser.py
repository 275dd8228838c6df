"""A real browser for the tests: Debian's Chromium, driven by Playwright.

Where it is missing the tests are skipped, except where CI=true: there they fail. Screenshots go to test-artefacts/.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from cbabo import Study
from cbabo.evaluators.spec import Simulator
from cbabo.surfaces.cli.serving import listen
from cbabo.surfaces.web.app import make_app
from cbabo.surfaces.web.server import make_server

ARTEFACTS = Path(__file__).parent.parent / "test-artefacts"
TOKEN = "a-token-for-tests"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        message = "Chromium is missing; scripts/system-packages.sh installs it"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    with _shared(path) as browser:
        yield browser


_running: list[Browser] = []
"""The browser that runs: every module that imports the fixture has one of its own, and a process may have one Playwright only."""


@contextmanager
def _shared(path: str) -> Iterator[Browser]:
    """Start the browser, unless it runs; the fixture that was made first ends last, and closes it."""
    if _running:
        yield _running[0]
        return
    with sync_playwright() as playwright:
        _running.append(playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]))
        yield _running[0]
        _running.pop().close()


@dataclass(frozen=True)
class Window:
    """A page that must not complain: errors, refused content and dialogs fail the test."""

    page: Page
    complaints: list[str]

    def shot(self, name: str) -> None:
        """Keep a picture of the whole page."""
        ARTEFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=True)

    def wait(self, condition: str) -> None:
        """Wait until an expression is true; asked from outside, for the page's own policy forbids it to evaluate texts."""
        until = time.monotonic() + 30
        while not self.page.evaluate(condition):
            assert time.monotonic() < until, condition
            self.page.wait_for_timeout(20)

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def answer(self) -> dict[str, Any]:
        """What the page shows."""
        return self.page.evaluate("() => ({...explorer.panel.answer, closest: undefined})")


def node_module(path: str) -> Path:
    """Return a file of a Node.js package that only tests need; without it the test is skipped, or fails where CI=true."""
    file = Path(__file__).parent.parent / "node_modules" / path
    if not file.exists():
        message = f"{path} is missing; scripts/lint-page.sh installs the packages of package-lock.json"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    return file


@contextmanager
def window(browser: Browser, *, offline: bool = False, **options: Any) -> Iterator[Window]:
    """Open an empty page; offline: every request but for files is refused and fails the test."""
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 1000}, **options})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    if offline:
        context.set_offline(True)
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else complaints.append(r.url))
    try:
        yield Window(page, complaints)
        assert complaints == [], complaints
    finally:
        context.close()


@contextmanager
def served(study: Study, evaluate: Callable[..., Any] | None = None, send_buffer: int | None = None) -> Iterator[str]:
    """Serve a study from a thread; yields the address without the token.

    send_buffer: bytes that the kernel keeps for a client that does not read; None: as many as it wants.
    """
    listening = listen(0)
    if send_buffer is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    port = listening.getsockname()[1]
    simulator = None if evaluate is None else Simulator(evaluate)
    server = make_server(make_app(study, simulator, TOKEN, port))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
