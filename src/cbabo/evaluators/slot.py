"""One slot of the pool: a worker process, as the driver sees it, and its replacement after its death."""

from __future__ import annotations

import os
import pickle
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from cbabo.errors import Cause, EvaluationError
from cbabo.evaluators import worker
from cbabo.evaluators.function import describe
from cbabo.evaluators.guard import ending, kill_marked, kill_tree, marked_environment, new_token
from cbabo.evaluators.logs import file_tail
from cbabo.evaluators.worker import ID_BYTES, opened, read_frame, write_frame

_LOADING = 120.0
"""Seconds that a worker may take, beyond the timeout, to import what the task needs."""
_PATIENCE = 1.0
"""Seconds that a worker may take to end by itself."""
_SHUT_DOWN = "the pool was shut down before the task was done; run it again"


class WorkerDiedError(EvaluationError):
    """The worker process died during the task, by itself or by somebody else's hand."""


class Slot:
    """Runs one task at a time, each in the same worker process as long as that lives."""

    def __init__(self, log: Path, timeout: float | None) -> None:
        self._log = log
        self._timeout = timeout
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._closed = False

    def call(self, body: bytes) -> Any:
        """Run a packed (function, args, kwargs) and return its result or raise what it raised."""
        return self._ready().call(body, self._timeout)

    def release(self) -> None:
        """Start no more workers and let an idle one end by itself."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.release()

    def kill(self) -> None:
        """Start no more workers and kill the present one, whatever it is doing."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.kill(_SHUT_DOWN)

    def join(self) -> None:
        """Wait for the end of a released or killed worker and of all that it has started."""
        if self._worker is not None:
            self._worker.join()

    def _ready(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise EvaluationError(_SHUT_DOWN, retryable=True, cause="set-up")
            if self._worker is not None and not self._worker.alive:
                self._worker.join()
                self._worker = None
            if self._worker is None:
                self._worker = _Worker(self._log)
            return self._worker


class _Worker:
    """A worker process with its pipes, its deadline and the thread that cleans up after it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._verdict: str | None = None
        self._cause: Cause = "set-up"
        token = new_token()
        try:
            with log.open("wb"), log.open("ab") as printed:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", worker.__file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=printed,
                    env=marked_environment(token),
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                )
        except OSError as error:
            raise EvaluationError(
                f"a worker process cannot be started ({error}); free some memory or use fewer workers",
                retryable=True,
                cause="set-up",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to: IO[bytes] = self._process.stdin
        self._from: IO[bytes] = self._process.stdout
        self._end = threading.Thread(target=_clean_up_after, args=(self._process, token), daemon=True)
        self._end.start()
        with suppress(OSError):  # A worker that is dead already is found out by its first task.
            write_frame(self._to, pickle.dumps((list(sys.path), os.fspath(log))))

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and not self._from.closed

    def call(self, body: bytes, timeout: float | None) -> Any:
        task = secrets.token_bytes(ID_BYTES)
        try:
            with self._deadline(timeout, _LOADING, "could not load the task", "set-up"):
                write_frame(self._to, pickle.dumps((task, list(sys.path), body)))
                self._receive(task)
            with self._deadline(timeout, 0.0, "gave no answer", "design"):
                reply = self._receive(task)
        except (EOFError, OSError, ValueError) as error:  # ValueError: the pool has closed the pipe.
            raise self._lost() from error
        try:
            result, failure, text = pickle.loads(reply)
        except Exception as error:
            raise EvaluationError(f"the worker's reply cannot be unpacked ({describe(error)})") from error
        if failure is not None:
            failure.add_note(f"In the worker process:\n{text}")
            raise failure
        return result

    def _receive(self, task: bytes) -> bytes:
        """Receive the next message; one that is not the worker's about this task costs the evaluation and the worker."""
        message = read_frame(self._from)
        try:
            return opened(message, task, self._process.pid)
        except OSError:
            self.kill("something other than the worker wrote to its pipe; leave foreign open files alone")
            raise

    @contextmanager
    def _deadline(self, timeout: float | None, extra: float, what: str, cause: Cause) -> Iterator[None]:
        """Kill the worker when the block takes too long; the first of block and timer takes the lock."""
        if timeout is None:
            yield
            return
        seconds = timeout + extra
        decided = threading.Lock()

        def expire() -> None:
            if decided.acquire(blocking=False):
                self.kill(f"the worker {what} within {seconds:g} s and was killed; allow for more time", cause)

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        if not decided.acquire(blocking=False):
            raise EOFError("the reply came too late")

    def _lost(self) -> EvaluationError:
        """Say why there is no reply, when the worker and all that it has started are gone."""
        self._end.join(_PATIENCE)
        if self._process.returncode is None:
            self.kill("the worker process closed the pipe to its driver; leave foreign open files alone")
        self.join()
        log = file_tail(self._log)
        if self._verdict is None:
            return WorkerDiedError(self._death(), log=log, retryable=True, cause="set-up")
        return EvaluationError(self._verdict, log=log, retryable=True, cause=self._cause)

    def _death(self) -> str:
        code = self._process.returncode
        hint = "the machine may be short of memory" if code == -9 else "read the log for the cause"
        return f"the worker process died during the task (it {ending(code)}); {hint}"

    def release(self) -> None:
        with suppress(OSError):
            self._to.close()

    def kill(self, verdict: str, cause: Cause = "set-up") -> None:
        if self._verdict is None:
            self._verdict, self._cause = verdict, cause
        if self._process.returncode is None:
            kill_tree(self._process.pid)

    def join(self) -> None:
        """Wait until the process is gone, killing it if it takes long, and close the pipes."""
        self._end.join(_PATIENCE)
        if self._process.returncode is None:
            kill_tree(self._process.pid)
        self._end.join()
        for pipe in (self._to, self._from):
            with suppress(OSError):
                pipe.close()


def _clean_up_after(process: subprocess.Popen[bytes], token: str) -> None:
    """Kill what a worker leaves behind, which may also hold its end of the pipe open."""
    process.wait()
    kill_marked(token)
