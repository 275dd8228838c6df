"""Helpers of these tests: waiting for processes, and drivers that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

import cbabo

SLEEPER = "import time; time.sleep(60)"
"""A program that ends by itself in any case, but later than any test."""

STUBBORN = """
import os, pathlib, signal, subprocess, sys, time
pathlib.Path(sys.argv[1], f"{os.getpid()}.pid").touch()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) > 2:
    subprocess.Popen([sys.executable, sys.argv[2], sys.argv[1]], start_new_session=True)
time.sleep(60)
"""
"""A simulator that ignores SIGTERM, leaves a file named after its process, and may start another in its own session."""


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pids(directory: Path) -> list[int]:
    """The processes that have left a file in the directory."""
    return [int(path.stem) for path in directory.glob("*.pid")]


def all_gone(numbers: Iterable[int]) -> bool:
    return not any(lives(number) for number in numbers)


def start_driver(script: str, directory: Path) -> subprocess.Popen[bytes]:
    """Run a script as a user would, with the package that is being tested."""
    path = directory / "driver.py"
    path.write_text(script)
    root = str(Path(next(iter(cbabo.__path__))).parent)
    environment = {**os.environ, "PYTHONPATH": root, "TMPDIR": str(directory)}
    return subprocess.Popen([sys.executable, str(path)], env=environment, cwd=directory, start_new_session=True)
