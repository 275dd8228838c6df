"""How evaluations are executed: in worker processes unless this process was asked for, and when one is tried again.

A run, a refinement and a trial call of a simulator all go this way, so that time limits, dead processes and retries mean the
same everywhere.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from cbabo.errors import EvaluationError, InputError
from cbabo.evaluators.function import Evaluate, Outcome, describe, failed, perform
from cbabo.evaluators.guard import Guardian
from cbabo.evaluators.pool import WorkerPool, packed
from cbabo.evaluators.slot import WorkerDiedError
from cbabo.numerics.arrays import is_number

MOST_DEATHS = 2
"""Processes that one design may end before it counts as failed: the first death may be an accident, two are the design's."""


@dataclass(frozen=True)
class Execution:
    """Where evaluations run and how often one is tried."""

    workers: int = 1
    """Evaluations at a time."""
    timeout: float | None = None
    """Seconds for one evaluation, from its start on; None for no limit."""
    retries: int = 0
    """Further tries after a timeout or a failure marked as worth another try."""
    in_process: bool = False
    """Whether to call the simulator in this process: for one with a state that cannot be sent to a worker process."""

    def __post_init__(self) -> None:
        for name, least in (("workers", 1), ("retries", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"{name} must be a whole number from {least} on, got {value!r}")
        if self.timeout is not None and not (is_number(self.timeout) and self.timeout > 0):
            raise InputError(f"timeout must be a positive number of seconds, got {self.timeout!r}")
        if self.in_process and self.workers > 1:
            raise InputError(f"in_process takes one worker, got {self.workers}; leave out one of the two")
        if self.in_process and self.timeout is not None:
            raise InputError(
                "in_process has no time limit, because a function cannot be ended inside this process, "
                f"got a timeout of {self.timeout:g} s; leave out one of the two"
            )

    @contextmanager
    def executor(self, evaluate: Evaluate) -> Iterator[Executor]:
        """Provide the workers for a simulator; what they started ends with the block, also if this process is killed.

        A simulator that cannot be sent to a worker is refused before anything has begun.
        """
        if not self.in_process:
            packed(evaluate)
        executor: Executor = _InProcess() if self.in_process else WorkerPool(self.workers, self.timeout)
        with Guardian():
            try:
                yield executor
            except BaseException:
                executor.shutdown(wait=False, cancel_futures=True)
                raise
            executor.shutdown()

    def evaluate(
        self, executor: Executor, evaluate: Evaluate, point: Mapping[str, Any], outputs: tuple[str, ...], number: int
    ) -> Outcome:
        """Make one evaluation with all its tries and wait for its outcome."""
        tries = Tries(self.retries)
        while True:
            begun = time.monotonic()
            future = executor.submit(perform, evaluate, point, outputs, number)
            came = outcome_of(future, begun)
            self.show_printed(came)
            outcome = tries.settle(came)
            if outcome is not None:
                return outcome

    def show_printed(self, outcome: Outcome) -> None:
        """Print what a simulator has printed in its worker process; of several at a time nothing is shown."""
        if self.workers == 1 and outcome.printed:
            with suppress(OSError, ValueError):  # A closed or full output is no reason to end a run.
                sys.stdout.write(f"{outcome.printed}\n")
                sys.stdout.flush()


@dataclass
class Tries:
    """The tries of one evaluation so far."""

    retries: int
    made: int = 0
    deaths: int = 0

    def settle(self, outcome: Outcome) -> Outcome | None:
        """Count one more try; return the outcome to store, or None if the evaluation is to be tried again."""
        self.made += 1
        if outcome.killed_worker:
            self.deaths += 1
            if self.deaths < MOST_DEATHS:
                return None
            reason = f"{outcome.failure}; it has ended {self.deaths} processes and is not tried again"
            return replace(outcome, failure=reason, cause="design")
        return None if outcome.retryable and self.made <= self.retries else outcome


def outcome_of(future: Future[Outcome], begun: float) -> Outcome:
    """Wait for an evaluation and turn what its worker process did into an outcome.

    begun: when it was submitted, in monotonic time. Exceptions of an executor itself pass through.
    """
    try:
        return future.result()
    except EvaluationError as error:
        return failed(
            error.reason,
            log=error.log,
            retryable=error.retryable,
            cause=error.cause,
            seconds=time.monotonic() - begun,
            killed_worker=isinstance(error, WorkerDiedError),
        )


class _InProcess(Executor):
    """Evaluates in this process, at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call and return a finished future; Ctrl-C passes through."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def lost(error: Exception, seconds: float) -> Outcome:
    """Return the outcome of an evaluation that somebody else's executor lost, such as with a worker that was killed."""
    return failed(f"the executor lost it ({describe(error)})", retryable=True, cause="set-up", seconds=seconds)
