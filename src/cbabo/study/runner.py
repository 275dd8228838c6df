"""The loop around a study: keep evaluations in flight, store every outcome, and survive what simulators do."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from cbabo.domain.evaluations import Evaluation, Trial
from cbabo.domain.space import Point
from cbabo.errors import CbaboError, EvaluationError, InputError, RunStoppedError
from cbabo.evaluators.function import Evaluate, Outcome, describe, failed, perform
from cbabo.evaluators.guard import Guardian
from cbabo.evaluators.pool import WorkerPool
from cbabo.numerics.arrays import is_number
from cbabo.study.trials import Trials

_LOG = logging.getLogger(__name__)


@dataclass
class _Job:
    trial: Trial
    submitted: float
    tries: int = 1


@dataclass(frozen=True)
class Run:
    """How to run; the meanings stand at `Study.run`."""

    evaluate: Evaluate
    budget: int
    workers: int
    executor: Executor | None
    asynchronous: bool
    timeout: float | None
    retries: int
    stop_after_failures: int | None
    on_interrupted: Literal["rerun", "fail"]
    on_result: Callable[[Evaluation], None] | None

    def __post_init__(self) -> None:
        if not callable(self.evaluate):
            raise InputError(f"run: evaluate must be a function of a point, got {self.evaluate!r}")
        for name, least in (("budget", 0), ("workers", 1), ("retries", 0), ("stop_after_failures", 1)):
            value = getattr(self, name)
            if value is None and name == "stop_after_failures":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"run: {name} must be a whole number from {least} on, got {value!r}")
        if self.timeout is not None and not (is_number(self.timeout) and self.timeout > 0):
            raise InputError(f"run: timeout must be a positive number of seconds, got {self.timeout!r}")
        if self.on_interrupted not in ("rerun", "fail"):
            raise InputError(f"run: on_interrupted must be 'rerun' or 'fail', got {self.on_interrupted!r}")

    def drive(self, trials: Trials) -> None:
        """Evaluate until the budget is spent."""
        waiting = deque(self._recover(trials))
        jobs: dict[Future[Outcome], _Job] = {}
        failures = 0
        with self._executing() as executor, _withdrawing(jobs):
            capacity = self._capacity(trials)
            while True:
                while len(jobs) < capacity and not self._hopeless(failures):
                    job = waiting.popleft() if waiting else self._next(trials, busy=bool(jobs))
                    if job is None:
                        break
                    jobs[self._submit(executor, trials, job)] = job
                if not jobs:
                    break
                for future in sorted(self._done(jobs), key=_given_up):
                    job = jobs.pop(future)
                    outcome = self._outcome(future, job)
                    if outcome.retryable and job.tries <= self.retries:
                        _LOG.info("evaluation %d: %s; trying again", job.trial.id, outcome.failure)
                        waiting.append(_Job(job.trial, 0.0, job.tries + 1))
                        continue
                    failures = 0 if outcome.complete else failures + 1
                    self._store(trials, job, outcome)
        if self._hopeless(failures):
            raise RunStoppedError(
                f"the last {failures} evaluations failed in a row (the latest: {outcome.failure}); "
                "mend the simulator and run again: everything so far is stored"
            )

    def _recover(self, trials: Trials) -> Iterator[_Job]:
        for trial in trials.interrupted():
            if self.on_interrupted == "rerun":
                _LOG.info("evaluation %d was interrupted; running it again", trial.id)
                yield _Job(trial, 0.0)
            else:
                self._store(trials, _Job(trial, 0.0), failed("interrupted: the run that had started it ended"))

    def _next(self, trials: Trials, *, busy: bool) -> _Job | None:
        """Start the next evaluation; batch by batch, learning waits until the whole batch is measured."""
        trial = trials.next(self.budget, may_learn=self.asynchronous or not busy)
        return None if trial is None else _Job(trial, 0.0)

    def _submit(self, executor: Executor, trials: Trials, job: _Job) -> Future[Outcome]:
        job.submitted = time.monotonic()
        task = (self.evaluate, job.trial.point, trials.outputs, job.trial.id)
        try:
            if self.executor is None:
                return executor.submit(perform, *task)
            return executor.submit(attempt, uuid4().hex, *task)
        except CbaboError:
            raise
        except Exception as error:  # it was shut down, or has lost its workers
            raise _broken(describe(error)) from error

    def _done(self, jobs: dict[Future[Outcome], _Job]) -> set[Future[Outcome]]:
        """Wait for an evaluation to end, or to have been given up."""
        patience = None
        if self._watches:
            assert self.timeout is not None
            patience = max(0.0, min(job.submitted for job in jobs.values()) + self.timeout - time.monotonic())
        done = wait(jobs, timeout=patience, return_when=FIRST_COMPLETED).done
        return done or {future for future, job in jobs.items() if self._late(job)}

    def _outcome(self, future: Future[Outcome], job: _Job) -> Outcome:
        seconds = time.monotonic() - job.submitted
        if not future.done():
            future.cancel()
            return failed(f"no answer within {self.timeout:g} s", retryable=True, seconds=seconds)
        try:
            return future.result()
        except BrokenExecutor as error:
            raise _broken(describe(error)) from error
        except CancelledError as error:  # not by us: a cluster whose scheduler is gone, an executor shut down
            raise _broken("it cancelled an evaluation") from error
        except EvaluationError as error:
            return failed(error.reason, log=error.log, retryable=error.retryable, seconds=seconds)
        except Exception as error:  # the executor's own trouble, such as a worker that was killed
            return failed(f"the executor lost it ({describe(error)})", retryable=True, seconds=seconds)

    def _store(self, trials: Trials, job: _Job, outcome: Outcome) -> None:
        evaluation = trials.record(job.trial.id, outcome)
        if not outcome.complete:
            _LOG.warning("evaluation %d failed: %s", job.trial.id, evaluation.failure)
        if self.on_result is not None:
            self.on_result(evaluation)

    @contextmanager
    def _executing(self) -> Iterator[Executor]:
        if self.executor is not None:
            with Guardian():
                yield self.executor
            return
        in_process = self.workers == 1 and self.timeout is None
        executor: Executor = _InProcess() if in_process else WorkerPool(self.workers, self.timeout)
        with Guardian():
            try:
                yield executor
            except BaseException:
                executor.shutdown(wait=False, cancel_futures=True)
                raise
            executor.shutdown()

    @property
    def _watches(self) -> bool:
        """Whether this loop keeps the time: somebody else's executor cannot, our own workers do."""
        return self.executor is not None and self.timeout is not None

    def _late(self, job: _Job) -> bool:
        return self._watches and time.monotonic() - job.submitted >= (self.timeout or 0.0)

    def _capacity(self, trials: Trials) -> int:
        """How many evaluations to keep in flight: `workers`, or a batch where an executor has workers of its own."""
        return trials.batch_size if self.executor is not None and self.workers == 1 else self.workers

    def _hopeless(self, failures: int) -> bool:
        return self.stop_after_failures is not None and failures >= self.stop_after_failures


def attempt(token: str, evaluate: Evaluate, point: Point, outputs: tuple[str, ...], number: int) -> Outcome:
    """Perform one try in a worker of somebody else's executor; what it starts dies with that worker.

    The token makes every try a task of its own: Dask would take a second try for the first one, which is done.
    """
    with Guardian():
        return perform(evaluate, point, outputs, number)


@contextmanager
def _withdrawing(jobs: Mapping[Future[Outcome], _Job]) -> Iterator[None]:
    """Take back what is under way when a run ends early, lest a cluster goes on with what nobody will store."""
    try:
        yield
    except BaseException:
        for future in jobs:
            future.cancel()
        raise


def _given_up(future: Future[Outcome]) -> bool:
    """Whether the executor itself failed, which ends the run; what it did finish is stored before."""
    return future.cancelled() or (future.done() and isinstance(future.exception(), BrokenExecutor))


def _broken(why: str) -> RunStoppedError:
    return RunStoppedError(
        f"the executor broke ({why}); start it anew and run again: "
        "everything told so far is stored, and what was under way will be run again"
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
