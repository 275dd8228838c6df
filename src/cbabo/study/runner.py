"""The loop around a study: keep evaluations in flight, store every outcome, and survive what simulators do."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from cbabo.domain.evaluations import Evaluation, Trial
from cbabo.domain.space import Point
from cbabo.errors import CbaboError, InputError, RunStoppedError
from cbabo.evaluators.execution import Execution, Tries, lost, outcome_of
from cbabo.evaluators.function import Evaluate, Outcome, describe, failed, perform
from cbabo.evaluators.guard import Guardian
from cbabo.evaluators.starts import StartReport, Starts, listening
from cbabo.study.stopping import Checks, FailureCount
from cbabo.study.trials import Trials

_LOG = logging.getLogger(__name__)
_LOOK = 0.05
"""Seconds after which to look again whether a waiting evaluation has begun."""
_HOPE = 10.0
"""Time limits that a run waits for evaluations that were given up to leave the workers of an executor."""


@dataclass
class _Job:
    trial: Trial
    tries: Tries
    submitted: float = 0.0
    token: str = ""


@dataclass
class _Timing:
    """Keeps the time of evaluations on somebody else's executor, from when each begins; our own workers keep theirs."""

    limit: float
    starts: Starts
    given_up: list[Future[Outcome]] = field(default_factory=list)
    """What may still occupy a worker of the executor."""
    latest: float = 0.0
    """When an evaluation was last given up."""
    since: float = 0.0
    """When an evaluation last began, ended or was given up."""

    def done(self, jobs: Mapping[Future[Outcome], _Job]) -> set[Future[Outcome]]:
        """Wait for an evaluation to end, or to take too long."""
        self.since = time.monotonic()
        while True:
            began = {future: self.starts.when(job.token, future) for future, job in jobs.items()}
            known = [moment for moment in began.values() if moment is not None]
            now = time.monotonic()
            if known:
                self.since = max(self.since, *known)
                self._forget(max(known))
            elif self.stuck(now):
                raise RunStoppedError(
                    f"no evaluation has begun for {_HOPE * self.limit:g} s, because {len(self.given_up)} that were given up "
                    "still occupy the executor's workers; start it anew and run again: everything told so far is stored"
                )
            patience = max(0.0, min(known) + self.limit - now) if known else _LOOK
            if len(known) < len(began):
                patience = min(patience, _LOOK)
            finished = wait(jobs, timeout=patience, return_when=FIRST_COMPLETED).done
            late = {f for f, moment in began.items() if moment is not None and time.monotonic() - moment >= self.limit}
            if finished or late:
                return finished or late

    def give_up(self, future: Future[Outcome]) -> None:
        """Cancel an evaluation that takes too long; one that runs in a worker goes on nevertheless."""
        future.cancel()
        self.given_up.append(future)
        self.latest = time.monotonic()

    def _forget(self, began: float) -> None:
        """Once another has begun, what Dask calls cancelled, but may be running, is no more in the way."""
        if began > self.latest:
            self.given_up = [future for future in self.given_up if not future.cancelled()]

    def stuck(self, now: float) -> bool:
        """Whether nothing begins because of what was given up."""
        self.given_up = [future for future in self.given_up if future.cancelled() or not future.done()]
        return bool(self.given_up) and now - self.since > _HOPE * self.limit

    def seconds(self, future: Future[Outcome], job: _Job) -> float:
        """Return how long an evaluation has been running."""
        began = self.starts.when(job.token, future)
        return time.monotonic() - (job.submitted if began is None else began)


@dataclass(frozen=True)
class Run:
    """How to run; the meanings stand at `Study.run`."""

    evaluate: Evaluate
    budget: int
    execution: Execution
    executor: Executor | None
    asynchronous: bool
    stop_after_failures: int | None
    on_interrupted: Literal["rerun", "fail"]
    on_result: Callable[[Evaluation], None] | None
    enough: Callable[[], bool] | None = None
    """Whether the answers have converged, so that the run may end before its budget is spent; None: it does not matter."""

    def __post_init__(self) -> None:
        if not callable(self.evaluate):
            raise InputError(f"run: evaluate must be a function of a point, got {self.evaluate!r}")
        for name, least in (("budget", 0), ("stop_after_failures", 1)):
            value = getattr(self, name)
            if value is None and name == "stop_after_failures":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"run: {name} must be a whole number from {least} on, got {value!r}")
        if self.executor is not None and self.execution.in_process:
            raise InputError("run: expected an executor or in_process, got both; leave out one of the two")
        if self.on_interrupted not in ("rerun", "fail"):
            raise InputError(f"run: on_interrupted must be 'rerun' or 'fail', got {self.on_interrupted!r}")

    def drive(self, trials: Trials) -> None:
        """Evaluate until the budget is spent."""
        waiting = deque(self._recover(trials))
        jobs: dict[Future[Outcome], _Job] = {}
        converged = Checks(self.enough, 0 if self.enough is None else trials.finished)
        failures = FailureCount(self.stop_after_failures)
        with self._executing() as executor, self._timing() as timing, _withdrawing(jobs):
            capacity = self._capacity(trials)
            while True:
                while len(jobs) < capacity and not failures.hopeless:
                    if not waiting and converged.now():
                        break
                    job = waiting.popleft() if waiting else self._next(trials, capacity, busy=bool(jobs))
                    if job is None:
                        break
                    jobs[self._submit(executor, trials, job, timing)] = job
                if not jobs:
                    break
                done = wait(jobs, return_when=FIRST_COMPLETED).done if timing is None else timing.done(jobs)
                for future in sorted(done, key=_given_up):
                    job = jobs.pop(future)
                    came = self._outcome(future, job, timing)
                    if self.executor is None:
                        self.execution.show_printed(came)
                    outcome = job.tries.settle(came)
                    if outcome is None:
                        _LOG.info("evaluation %d: %s; trying again", job.trial.id, came.failure)
                        waiting.append(job)
                        continue
                    failures.count(self._store(trials, job.trial, outcome))
                    converged.finished += 1
        if trials.used_up:
            _LOG.warning("all designs of this space were evaluated; the run ends before its budget of %d", self.budget)
        if failures.hopeless:
            raise RunStoppedError(failures.sentence)

    def _recover(self, trials: Trials) -> Iterator[_Job]:
        for trial in trials.retried():
            if not self._given_up(trials, trial):
                yield self._job(trial)
        for trial in trials.interrupted():
            if self._given_up(trials, trial):
                continue
            if self.on_interrupted == "rerun":
                _LOG.info("evaluation %d was interrupted; running it again", trial.id)
                yield self._job(trial)
            else:
                interrupted = failed("interrupted: the run that had started it ended", cause="set-up")
                self._store(trials, trial, interrupted)

    def _given_up(self, trials: Trials, trial: Trial) -> bool:
        """Store an evaluation as failed if an amendment excludes its design, and tell whether it is so."""
        reason = trials.why_excluded(trial.point)
        if reason is not None:
            self._store(trials, trial, failed(f"not evaluated: {reason}", cause="set-up"))
        return reason is not None

    def _next(self, trials: Trials, capacity: int, *, busy: bool) -> _Job | None:
        """Start the next evaluation; batch by batch, learning waits until the whole batch is measured."""
        at_once = 1 if self.asynchronous else capacity
        trial = trials.next(self.budget, may_learn=self.asynchronous or not busy, at_once=at_once)
        return None if trial is None else self._job(trial)

    def _job(self, trial: Trial) -> _Job:
        return _Job(trial, Tries(self.execution.retries))

    def _submit(self, executor: Executor, trials: Trials, job: _Job, timing: _Timing | None) -> Future[Outcome]:
        report = StartReport(uuid4().hex) if timing is None else timing.starts.report()
        job.submitted, job.token = time.monotonic(), report.token
        task = (self.evaluate, job.trial.point, trials.outputs, job.trial.id)
        try:
            if self.executor is None:
                return executor.submit(perform, *task)
            return executor.submit(attempt, report, *task)
        except CbaboError:
            raise
        except Exception as error:  # it was shut down, or has lost its workers
            raise _broken(describe(error)) from error

    def _outcome(self, future: Future[Outcome], job: _Job, timing: _Timing | None) -> Outcome:
        seconds = time.monotonic() - job.submitted if timing is None else timing.seconds(future, job)
        if timing is not None and not future.done():
            timing.give_up(future)
            return failed(f"no answer within {timing.limit:g} s", retryable=True, cause="set-up", seconds=seconds)
        try:
            return outcome_of(future, time.monotonic() - seconds)
        except BrokenExecutor as error:
            raise _broken(describe(error)) from error
        except CancelledError as error:  # not by us: a cluster whose scheduler is gone, an executor shut down
            raise _broken("it cancelled an evaluation") from error
        except Exception as error:  # the executor's own trouble, such as a worker that was killed
            return lost(error, seconds)

    def _store(self, trials: Trials, trial: Trial, outcome: Outcome) -> Evaluation:
        evaluation = trials.record(trial.id, outcome)
        if evaluation.state == "failed":
            _LOG.warning("evaluation %d failed: %s", trial.id, evaluation.failure)
        if self.on_result is not None:
            self.on_result(evaluation)
        return evaluation

    @contextmanager
    def _executing(self) -> Iterator[Executor]:
        if self.executor is not None:
            with Guardian():
                yield self.executor
            return
        with self.execution.executor(self.evaluate) as executor:
            yield executor

    @contextmanager
    def _timing(self) -> Iterator[_Timing | None]:
        """Keep the time where there is a limit and an executor that does not."""
        timeout = self.execution.timeout
        with listening(self.executor if timeout is not None else None) as starts:
            yield None if starts is None or timeout is None else _Timing(timeout, starts)

    def _capacity(self, trials: Trials) -> int:
        """How many evaluations to keep in flight: `workers`, or a batch where an executor has workers of its own."""
        workers = self.execution.workers
        return trials.batch_size if self.executor is not None and workers == 1 else workers


def read_execution(where: str, **stated: Any) -> Execution:
    """Read how to execute evaluations, naming the method that was called in messages."""
    try:
        return Execution(**stated)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def attempt(report: StartReport, evaluate: Evaluate, point: Point, outputs: tuple[str, ...], number: int) -> Outcome:
    """Report the start and perform one try in a worker of somebody else's executor; what it starts dies with that worker."""
    with Guardian():
        report.send()
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
