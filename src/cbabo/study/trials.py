"""Handing out trials and taking their outcomes: where the method meets the database."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import thread_time
from typing import Any

from cbabo.domain.evaluations import Evaluation, Evaluations, Kind, Trial, judged, part_counts
from cbabo.domain.space import Point
from cbabo.evaluators.function import Outcome
from cbabo.methods.effort import time_of_batch
from cbabo.storage.store import StudyStore
from cbabo.study.outcomes import why_excluded

_LOG = logging.getLogger(__name__)


class Trials:
    """The trials of one study. Proposals are stored as whole batches and requested one by one.

    A budget may therefore end inside a batch: the rest of it is what the next run begins with.
    """

    def __init__(self, store: StudyStore) -> None:
        self._store = store
        self.used_up = False
        """Whether every design of a space with finitely many was asked for."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """What an evaluation has to return."""
        return self._store.record.problem.simulated

    @property
    def batch_size(self) -> int:
        """How many designs an iteration proposes."""
        return self._store.record.settings.batch_size

    @property
    def finished(self) -> int:
        """How many evaluations have an outcome."""
        return sum(row.state != "running" for row in self._store.evaluations())

    def take(self, count: int, *, started: bool, may_learn: bool = True, at_once: int | None = None) -> list[Trial]:
        """Request designs, making iterations of the method as needed; fewer come if it may not learn, or if none is left.

        at_once: how many designs will be evaluated at the same time; None: as many as are missing.
        """
        trials = self._store.take(count, started=started)
        while len(trials) < count and may_learn and self._advance(at_once or count - len(trials)):
            trials += self._store.take(count - len(trials), started=started)
        return trials

    def next(self, budget: int, *, may_learn: bool, at_once: int) -> Trial | None:
        """Start the next evaluation within the budget; None if there is none, or none without learning first."""
        if self._store.requested() >= budget:
            return None
        return next(iter(self.take(1, started=True, may_learn=may_learn, at_once=at_once)), None)

    def why_excluded(self, point: Point) -> str | None:
        """Say why the problem, as it may have been amended since, does not have a design; None if it has."""
        return why_excluded(self._store.record.problem, point)

    def interrupted(self) -> list[Trial]:
        """Adopt the evaluations that a dead run left unfinished."""
        return self._store.interrupted()

    def retried(self) -> list[Trial]:
        """Start the evaluations that are to be made again."""
        return self._store.retried()

    def record(self, id: int, outcome: Outcome) -> Evaluation:
        """Store the outcome of an evaluation that a run made."""
        values: dict[str, Any] = {
            "state": "complete" if outcome.complete else "failed",
            "outputs": outcome.outputs,
            "failure": outcome.failure,
            "cause": outcome.cause,
            "log": outcome.log or None,
            "started": outcome.started,
            "seconds": outcome.seconds,
            "worker": outcome.worker[:255] or None,
        }
        finished = self._store.finish(id, values)
        problem = self._store.record.problem
        counts = part_counts(problem, self._store.first_measured())
        return judged(problem.expanded(counts), counts, finished)

    def start(self, point: Point, thresholds: Mapping[str, float], kind: Kind = "refine") -> Trial:
        """Begin one evaluation outside the budget, for the answer to these limits."""
        return self._store.start(point, kind, started=True, thresholds=thresholds)

    def _advance(self, at_once: int) -> bool:
        """Make one iteration of the method and store its batch with its state; False if no design is left to propose."""
        from cbabo.methods.step import step

        rows, record = self._store.evaluations(), self._store.record
        evaluations = Evaluations(record.problem, rows)
        steps, state = self._store.learner()
        focus = self._store.focus()
        if record.problem.space.size is not None and not _unseen(evaluations, [], 1):
            self.used_up = True
            return False
        begun = thread_time()
        batch, state = step(evaluations, evaluations.running, state, record.settings, record.seed, focus, at_once)
        if record.settings.method == "default":
            seconds = thread_time() - begun
            state = _with_effort(state, seconds, time_of_batch([row.seconds for row in rows], len(batch), at_once))
        if record.problem.space.size is not None:
            batch = _unseen(evaluations, batch, len(batch))
        self._store.plan(batch, steps + 1, state)
        return True


def _with_effort(state: bytes, seconds: float, evaluation_seconds: float | None) -> bytes:
    """Return the learner's state with the effort for the next batch, and say so where it is lowered."""
    from cbabo.methods.learner import Learner

    learner = Learner.from_bytes(state)
    effort = learner.effort.after(seconds, evaluation_seconds)
    if effort == learner.effort:
        return state
    if effort.level > learner.effort.level:
        _LOG.warning("%s", effort.sentence(seconds))
    return replace(learner, effort=effort).to_bytes()


def _unseen(evaluations: Evaluations, batch: Sequence[Point], count: int) -> list[Point]:
    """Return the designs of a batch that were not asked for before, filled up with others of a space with finitely many."""
    space = evaluations.problem.space
    asked = {tuple(row.point[name] for name in space.names) for row in evaluations if row.cause != "set-up"}
    found: list[Point] = []
    region = evaluations.problem.region
    for point in itertools.chain(batch, space.designs()):
        if len(found) == count:
            break
        key = tuple(point[name] for name in space.names)
        if key not in asked and (region is None or bool(region.holds([point])[0])):
            asked.add(key)
            found.append(point)
    return found
