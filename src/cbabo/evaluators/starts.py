"""When an evaluation begins on somebody else's executor: the task itself reports it.

`Future.running()` does not tell: a process pool also marks what waits in its queue as running, and Dask marks nothing. So each
task carries a `StartReport`, sent by the shortest way there is:

in the driver's own process (a pool of threads)     a call
in a worker of Dask's                               an event of Dask's, on the connections that are there anyway
elsewhere on the machine (a pool of processes)      a file in the driver's temporary folder

Only for an executor of another kind, none of whose tasks has reported, `Future.running()` decides.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4


@dataclass(frozen=True)
class StartReport:
    """Travels with one task; the token makes every try a task of its own, which Dask would take for the same otherwise."""

    token: str
    run: str = ""
    """Which driver waits for it; empty if none does."""
    folder: str = ""

    def send(self) -> None:
        """Tell the driver that the task begins now."""
        if not self.run:
            return
        starts = _WAITING.get(self.run)
        if starts is not None and starts.process == os.getpid():  # a forked process has a copy
            starts.note(self.token)
            return
        worker = _dask_worker()
        if worker is not None:
            with suppress(Exception):  # without it there is no time limit, but an answer
                worker.log_event(self.run, self.token)
        elif Path(self.folder).is_dir():
            with suppress(OSError):
                Path(self.folder, self.token).touch()


class Starts:
    """The driver's side: hands out reports and knows which tasks have begun, and when."""

    def __init__(self, executor: Executor, run: str, folder: str) -> None:
        self.process = os.getpid()
        self.client: Any = getattr(executor, "_client", None)  # of Dask's ClientExecutor
        if not hasattr(self.client, "subscribe_topic"):
            self.client = None
        self._run = run
        self._folder = folder
        self._reported: dict[str, float] = {}
        self._seen_running: dict[str, float] = {}
        self._believes = self.client is None and not isinstance(executor, ProcessPoolExecutor)

    def report(self) -> StartReport:
        """Return the report for one more task."""
        return StartReport(uuid4().hex, self._run, self._folder)

    def note(self, token: str) -> None:
        """Take a report; after a lost worker Dask begins a task again, and so does its time."""
        self._reported[token] = time.monotonic()

    def when(self, token: str, future: Future[Any]) -> float | None:
        """Return when a task began, in monotonic time; None if it still waits."""
        if token not in self._reported and self._folder:
            with suppress(OSError):
                age = time.time() - Path(self._folder, token).stat().st_mtime
                self._reported[token] = time.monotonic() - max(0.0, age)
        if token in self._reported:
            return self._reported[token]
        if self._believes and not self._reported and future.running():
            return self._seen_running.setdefault(token, time.monotonic())
        return None


@contextmanager
def listening(executor: Executor | None) -> Iterator[Starts | None]:
    """Listen to reports from the tasks of an executor; without one there is nothing to listen to."""
    if executor is None:
        yield None
        return
    run, folder = f"cbabo-starts-{uuid4().hex}", tempfile.mkdtemp(prefix="cbabo-starts-")
    starts = Starts(executor, run, folder)
    _WAITING[run] = starts
    try:
        if starts.client is not None:
            starts.client.subscribe_topic(run, lambda event: starts.note(event[1]))
        yield starts
    finally:
        del _WAITING[run]
        shutil.rmtree(folder, ignore_errors=True)
        if starts.client is not None:
            with suppress(Exception):  # the scheduler may be gone
                starts.client.unsubscribe_topic(run)


_WAITING: dict[str, Starts] = {}


def _dask_worker() -> Any:
    """Return the worker of Dask's that runs this task, if one does."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.get_worker()
    except ValueError:
        return None
