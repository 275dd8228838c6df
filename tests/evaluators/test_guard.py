from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import cbabo
from cbabo.evaluators.guard import (
    GUARD,
    WORKER,
    Guardian,
    ending,
    kill_marked,
    kill_tree,
    marked,
    marked_environment,
    new_token,
    own_token,
)

from .processes import SLEEPER, STUBBORN, all_gone, lives, pids, start_driver, wait_until

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes")


@pytest.fixture
def token() -> Iterator[str]:
    """A token whose processes do not survive the test."""
    token = new_token()
    yield token
    kill_marked(token)


def sleeper(**environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SLEEPER], env={**os.environ, **environment})


def guardians(driver: int | None = None) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(driver).children():
        with suppress(psutil.Error):  # It has just ended.
            wait_until(lambda p=process: not p.is_running() or p.status() == psutil.STATUS_ZOMBIE or p.cmdline())
            if process.is_running() and any(word.endswith("guard.py") for word in process.cmdline()):
                found.append(process)
    return found


def test_marks_are_found_and_killed(token: str) -> None:
    processes = [sleeper(**{GUARD: token}), sleeper(**{WORKER: f"other,{token}"})]
    stranger = sleeper(**{GUARD: token + "0"})
    wait_until(lambda: {p.pid for p in marked(token)} == {p.pid for p in processes})
    kill_marked(token)
    assert marked(token) == []
    assert all(process.wait(5) != 0 for process in processes)
    assert lives(stranger.pid)
    stranger.kill()
    stranger.wait()


def test_marks_add_up(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv(GUARD, "outer")
    monkeypatch.setenv(WORKER, "outer-worker")
    environment = marked_environment(token)
    assert environment[GUARD] == f"outer,{own_token()}"
    assert environment[WORKER] == f"outer-worker,{token}"
    monkeypatch.setenv(GUARD, environment[GUARD])
    assert marked_environment(token)[GUARD] == environment[GUARD]


@posix
def test_a_child_that_wiped_its_environment_goes_with_its_parent(token: str, tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(STUBBORN)
    code = f"""
import subprocess, sys
subprocess.run([sys.executable, {str(tmp_path / "child.py")!r}, {str(tmp_path)!r}], env={{}}, start_new_session=True)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, WORKER: token})
    wait_until(lambda: pids(tmp_path))
    kill_marked(token)
    parent.wait(5)
    wait_until(lambda: all_gone(pids(tmp_path)), 5)


def test_a_tree_is_killed_and_its_exit_status_left(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STUBBORN)
    process = subprocess.Popen([sys.executable, str(program), str(tmp_path), str(program)])
    wait_until(lambda: len(pids(tmp_path)) == 2)
    kill_tree(process.pid)
    assert all_gone(pids(tmp_path))
    code = process.wait(5)
    assert code == (-9 if os.name == "posix" else code)
    kill_tree(process.pid)


def test_endings() -> None:
    assert ending(3) == "exited with code 3"
    assert ending(-9) == "was killed by signal 9 (SIGKILL)"
    assert ending(-200) == "was killed by signal 200 (unknown)"


# --- the guardian of a living driver


def test_the_guardian_starts_without_heavy_imports() -> None:
    code = "import sys, cbabo.evaluators.guard; print(sorted({'numpy', 'pydantic', 'torch'} & set(sys.modules)))"
    root = str(Path(next(iter(cbabo.__path__))).parent)
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_environment_is_marked_and_restored() -> None:
    assert GUARD not in os.environ
    with Guardian():
        assert os.environ[GUARD] == own_token()
        assert len(guardians()) == 1
        assert GUARD not in guardians()[0].environ()
        with Guardian():
            assert len(guardians()) == 1
        assert os.environ[GUARD] == own_token()
    assert GUARD not in os.environ
    assert guardians() == []


def test_two_studies_in_two_threads() -> None:
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    seen: list[object] = []

    def first() -> None:
        with Guardian():
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second() -> None:
        first_in.wait(10)
        with Guardian():
            second_in.set()
            first_out.wait(10)
            seen.extend([os.environ.get(GUARD) == own_token(), len(guardians())])

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True, 1]
    assert GUARD not in os.environ
    assert guardians() == []


def test_a_driver_that_is_done_leaves_its_processes_alone() -> None:
    with Guardian():
        process = sleeper(**{GUARD: os.environ[GUARD]})
    assert lives(process.pid)
    process.kill()
    process.wait()


def test_a_guardian_that_was_killed_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cbabo"), Guardian():
        for _ in range(2):
            (first,) = guardians()
            first.kill()
            wait_until(lambda killed=first: [g.pid for g in guardians()] not in ([], [killed.pid]))
    assert "has ended" in caplog.text
    assert guardians() == []


# --- drivers that are killed

COMMAND_DRIVER = """
import sys
from pathlib import Path
from cbabo.evaluators.command import CommandEvaluator
from cbabo.evaluators.function import perform
from cbabo.evaluators.guard import Guardian

here = Path.cwd()
program = str(here / "program.py")
simulator = CommandEvaluator((sys.executable, program, str(here), program), here / "runs", here)
with Guardian():
    perform(simulator, {"x": 1.0}, ("y",), 1)
"""

POOL_DRIVER = """
import os, subprocess, sys, time
from pathlib import Path
from cbabo.evaluators.guard import Guardian
from cbabo.evaluators.pool import WorkerPool

here = Path.cwd()

def simulate():
    (here / f"{os.getpid()}.pid").touch()
    subprocess.run([sys.executable, str(here / "program.py"), str(here)], start_new_session=True)

with Guardian(), WorkerPool(2) as pool:
    for future in [pool.submit(simulate) for _ in range(2)]:
        future.result()
"""

FORKING_DRIVER = """
import os, subprocess, sys, time
from pathlib import Path
from cbabo.evaluators.guard import Guardian

here = Path.cwd()
with Guardian():
    if os.fork() == 0:
        (here / "fork").write_text(str(os.getpid()))
        time.sleep(60)
    program = str(here / "program.py")
    subprocess.run([sys.executable, program, str(here), program], start_new_session=True)
"""

NESTED_DRIVER = """
import sys
from pathlib import Path
from cbabo.evaluators.guard import Guardian
from cbabo.evaluators.pool import WorkerPool

here = Path.cwd()

def study():
    exec((here / "inner.py").read_text(), {"__name__": "inner"})

with Guardian(), WorkerPool(1) as pool:
    pool.submit(study).result()
"""


@pytest.mark.parametrize(
    ("script", "count"), [(COMMAND_DRIVER, 2), (POOL_DRIVER, 4), (NESTED_DRIVER, 2)], ids=["command", "pool", "nested"]
)
def test_nothing_survives_a_killed_driver(tmp_path: Path, script: str, count: int) -> None:
    (tmp_path / "program.py").write_text(STUBBORN)
    (tmp_path / "inner.py").write_text(COMMAND_DRIVER)
    driver = start_driver(script, tmp_path)
    wait_until(lambda: len(pids(tmp_path)) == count, 20)
    driver.kill()
    driver.wait()
    wait_until(lambda: all_gone(pids(tmp_path)), 5)


@posix
def test_nothing_survives_when_the_whole_group_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(STUBBORN)
    driver = start_driver(POOL_DRIVER, tmp_path)
    wait_until(lambda: len(pids(tmp_path)) == 4, 20)
    os.killpg(driver.pid, 9)
    driver.wait()
    wait_until(lambda: all_gone(pids(tmp_path)), 5)


@posix
def test_a_fork_that_holds_the_pipe_does_not_blind_the_guardian(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(STUBBORN)
    driver = start_driver(textwrap.dedent(FORKING_DRIVER), tmp_path)
    wait_until(lambda: len(pids(tmp_path)) == 2 and (tmp_path / "fork").exists(), 20)
    wait_until(lambda: [p.num_threads() for p in guardians(driver.pid)] == [2])
    driver.kill()
    driver.wait()
    try:
        wait_until(lambda: all_gone(pids(tmp_path)), 5)
    finally:
        wait_until(lambda: (tmp_path / "fork").read_text())
        os.kill(int((tmp_path / "fork").read_text()), 9)
