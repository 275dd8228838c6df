"""Process clean-up: processes are found by marks in their environment, and killed when their driver ends.

A process group or a parent's list of children does not include a simulator that detaches itself, but everything
that a process starts inherits its environment. A driver marks its environment with a token of its own, a pool marks
each worker and a command marks each start. Marks add up, so that a study may run inside a worker of another.
A process that clears its environment is found only as long as its parents live.

This file is also a script, the guardian that waits for its driver's end. It imports nothing but the standard
library and psutil, so that it starts quickly.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

import psutil

logger = logging.getLogger(__name__)

GUARD = "CBABO_GUARD"
"""Environment variable that holds the tokens of the drivers for which a process runs."""
WORKER = "CBABO_WORKER"
"""Environment variable that holds the tokens of the workers and commands inside which a process runs."""

_SEPARATOR = ","
_PATIENCE = 3.0
_POLL = 0.5


class Guardian:
    """While the block runs, a small process watches this one and, should it die, kills all that it started.

    A guardian that is killed is replaced. Blocks may be nested and may run in several threads: the first starts the
    guardian, the last ends it.
    """

    def __enter__(self) -> Guardian:
        _hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _release()


def own_token() -> str:
    """Return the token of this process, the same as long as it lives and another one after a fork."""
    with _lock:
        return _own()


def marked_environment(token: str) -> dict[str, str]:
    """Return this process's environment with its own mark and that of the worker or command to be started."""
    environment = dict(os.environ)
    environment[GUARD] = _with_token(environment.get(GUARD), own_token())
    environment[WORKER] = _with_token(environment.get(WORKER), token)
    return environment


def new_token() -> str:
    """Return a token for one worker or one command."""
    return uuid.uuid4().hex


def marked(token: str) -> list[psutil.Process]:
    """Return the living processes, other than this one, whose environment holds the token."""
    return [process for process in _others() if _holds(process, token)]


def kill_marked(token: str) -> None:
    """Kill all processes that hold the token and all their descendants, looking again until none is left."""
    deadline = time.monotonic() + _PATIENCE
    quiet = 0
    while quiet < 2:
        found = marked(token)
        quiet = 0 if found else quiet + 1
        _kill(_with_descendants(found))
        if found and time.monotonic() > deadline:
            logger.warning("Some processes could not be killed: %s.", [process.pid for process in found])
            return
        if quiet < 2:
            time.sleep(0.05)


def kill_tree(pid: int) -> None:
    """Kill a process, all its descendants, and its process group if it leads one; return when they are gone.

    The exit status is left for whoever started the process to collect.
    """
    try:
        family = _with_descendants([psutil.Process(pid)])
    except psutil.NoSuchProcess:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == pid != os.getpgrp():
                os.killpg(pid, signal.SIGKILL)
    _kill(family)
    deadline = time.monotonic() + _PATIENCE
    while any(_lives(process) for process in family) and time.monotonic() < deadline:
        time.sleep(0.01)


def ending(code: int) -> str:
    """Say in words how a process ended, from its return code."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"was killed by signal {-code} ({name})"


@dataclass
class _Watch:
    """The guardian of this process, held by one or more blocks."""

    token: str
    process: subprocess.Popen[bytes]
    before: str | None
    """What the environment variable held before."""
    holders: int = 1
    released: bool = False


_lock = threading.RLock()
_tokens: dict[int, str] = {}
_watches: dict[int, _Watch] = {}
"""Both by process id, because a forked process must not take its parent's for its own."""


def _own() -> str:
    return _tokens.setdefault(os.getpid(), new_token())


def _hold() -> None:
    with _lock:
        watch = _watches.get(os.getpid())
        if watch is not None:
            watch.holders += 1
            return
        token, before = _own(), os.environ.get(GUARD)
        watch = _Watch(token, _start(token), before)
        _watches[os.getpid()] = watch
        os.environ[GUARD] = _with_token(before, token)
    threading.Thread(target=_keep, args=(watch,), name="cbabo-guardian", daemon=True).start()


def _release() -> None:
    with _lock:
        watch = _watches.get(os.getpid())
        if watch is None:  # A fork of the driver leaves the block too, but has no guardian.
            return
        watch.holders -= 1
        if watch.holders:
            return
        del _watches[os.getpid()]
        watch.released = True
        if watch.before is None:
            os.environ.pop(GUARD, None)
        else:
            os.environ[GUARD] = watch.before
    _dismiss(watch.process)


def _keep(watch: _Watch) -> None:
    """Start another guardian whenever one ends before it is released."""
    while True:
        watch.process.wait()
        with _lock:
            if watch.released:
                return
            logger.warning("The guardian process has ended (exit code %s); starting another.", watch.process.returncode)
            watch.process.stdin.close()  # type: ignore[union-attr]
            try:
                watch.process = _start(watch.token)
            except OSError as error:
                logger.warning("No guardian can be started (%s); processes may be left if this one is killed.", error)
                return
        time.sleep(_POLL)


def _start(token: str) -> subprocess.Popen[bytes]:
    """Start the guardian, out of reach of the driver's terminal and with a pipe that ends with the driver."""
    environment = {name: value for name, value in os.environ.items() if name not in (GUARD, WORKER)}
    return subprocess.Popen(
        [sys.executable, "-P", __file__, token, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=tempfile.gettempdir(),
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _dismiss(process: subprocess.Popen[bytes]) -> None:
    try:
        process.communicate(b"done\n", timeout=5.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    if process.returncode != 0:
        logger.warning("The guardian process had ended before its driver (exit code %s).", process.returncode)


def _guard(token: str, driver: int) -> None:
    """Wait until the driver is done or dead, and when it is dead kill what it has started."""
    ended = threading.Event()
    lines: list[bytes] = []

    def listen() -> None:
        lines.append(os.read(0, 16))
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    try:
        process = psutil.Process(driver)
    except psutil.NoSuchProcess:
        pass
    else:
        # A fork of the driver may hold the pipe open, so its end alone is not relied on.
        while not ended.wait(_POLL) and _lives(process):
            pass
    if lines != [b"done\n"]:
        for _ in range(3):  # A process that is just being started shows its mark a moment later.
            kill_marked(token)
            time.sleep(0.2)


def _with_token(value: str | None, token: str) -> str:
    tokens = value.split(_SEPARATOR) if value else []
    return _SEPARATOR.join(tokens if token in tokens else [*tokens, token])


def _others() -> Iterator[psutil.Process]:
    for pid in psutil.pids():
        if pid != os.getpid():
            with suppress(psutil.Error):
                yield psutil.Process(pid)


def _holds(process: psutil.Process, token: str) -> bool:
    try:
        environment = process.environ()
    except (psutil.Error, OSError):
        return False
    return any(token in environment.get(name, "").split(_SEPARATOR) for name in (GUARD, WORKER))


def _with_descendants(roots: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return the processes and their descendants, parents first so that none can start a replacement."""
    family = list(roots)
    if not family:
        return []
    children: dict[int, list[psutil.Process]] = {}
    for process in _others():
        with suppress(psutil.Error):
            children.setdefault(process.ppid(), []).append(process)
    for parent in family:
        for child in children.get(parent.pid, []):
            if child not in family and child.create_time() >= parent.create_time():
                family.append(child)
    return family


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


if __name__ == "__main__":
    _guard(sys.argv[1], int(sys.argv[2]))
