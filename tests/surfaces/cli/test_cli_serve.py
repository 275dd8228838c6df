"""cbabo serve, as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from surfaces.cli.conftest import BIN


@pytest.fixture
def server(learned: str) -> Iterator[subprocess.Popen[str]]:
    command = [BIN / "cbabo", "serve", learned, "--port", "0", "--no-browser", "--evaluator", "beamsim:chatty"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        yield server
        server.kill()


def test_it_prints_an_address_and_a_token_and_ends_on_ctrl_c(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    found = re.search(r"(http://127\.0\.0\.1:\d+/)#token=(\S+)", server.stdout.readline())
    assert found
    address, token = found.groups()
    assert token in server.stdout.readline()
    with urlopen(f"{address}api/follow", timeout=20) as answer:
        assert json.load(answer)["evaluator"] is True
    limits = {"thresholds": {"stress": 5, "frequency": 3}, "evaluations": 1}
    request = Request(f"{address}api/refine", json.dumps(limits).encode(), {"Content-Type": "application/json"})
    with pytest.raises(HTTPError) as refused:
        urlopen(request, timeout=20)
    refused.value.close()
    assert refused.value.code == 401
    request.add_header("Authorization", f"Bearer {token}")
    with urlopen(request, timeout=20) as answer:
        job = json.load(answer)
    while job["state"] == "running":
        with urlopen(f"{address}api/jobs/{job['id']}", timeout=20) as answer:
            job = json.load(answer)
    assert job["answer"]["status"] == "verified"
    server.send_signal(signal.SIGINT)
    out, err = server.communicate(timeout=30)
    assert err.splitlines()[-1] == "cbabo: the server has ended; everything told so far is stored"
    assert "Traceback" not in err
    assert "a line from compiled code" in err  # what a simulator prints is no result
    assert out == ""
    assert server.returncode == 130


def test_the_token_is_on_no_command_line(learned: str, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        '#!/bin/sh\necho "$@" > opened\nstat -c "%a %n" "${1#file://}" > rights\ncp "${1#file://}" page\n'
    )
    browser.chmod(0o755)
    command = [BIN / "cbabo", "serve", learned, "--port", "0"]
    environment = {**os.environ, "BROWSER": f"{browser} %s", "DISPLAY": ":0"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        server.stdout.readline()
        until = time.monotonic() + 30
        while not (tmp_path / "page").exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.2)
        server.send_signal(signal.SIGINT)
        server.wait(30)
    token = address.partition("#token=")[2]
    assert len(token) > 20
    opened = (tmp_path / "opened").read_text().strip()
    assert opened.startswith("file:///")
    assert token not in opened
    assert (tmp_path / "rights").read_text().startswith("600 ")
    assert address in (tmp_path / "page").read_text()
    assert not Path(opened.removeprefix("file://")).exists()


def test_a_port_that_is_taken_gets_a_sentence(cli: Any, learned: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = cli("serve", learned, "--port", port, "--no-browser", code=2).err
    assert f"port {port} cannot be used" in error
    assert "--port" in error


def test_a_study_that_is_not_there_gets_a_sentence(cli: Any, folder: Path) -> None:
    assert "was not started yet" in cli("serve", "study.yaml", "--no-browser", code=2).err
    assert "there is no" in cli("serve", f"sqlite:///{folder}/nothing.db::beam", "--no-browser", code=2).err


def test_a_missing_package_is_named(cli: Any, learned: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "cbabo.surfaces.web.server", raising=False)
    assert "pip install 'cbabo[web]'" in cli("serve", learned, "--no-browser", code=2).err
