"""Handing out trials and taking their outcomes: where the method meets the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbabo.domain.evaluations import Evaluation, Evaluations, Trial
from cbabo.domain.space import Point
from cbabo.evaluators.function import Evaluate, Outcome, perform
from cbabo.storage.store import StudyStore


class Trials:
    """The trials of one study. Proposals are stored as whole batches and requested one by one.

    A budget may therefore end inside a batch: the rest of it is what the next run begins with.
    """

    def __init__(self, store: StudyStore) -> None:
        self._store = store
        self.outputs = store.record.problem.outputs
        self.batch_size = store.record.settings.batch_size

    def take(self, count: int, *, started: bool, may_learn: bool = True) -> list[Trial]:
        """Request designs, making iterations of the method as needed; fewer come if it may not learn."""
        trials = self._store.take(count, started=started)
        while len(trials) < count and may_learn:
            self._advance()
            trials += self._store.take(count - len(trials), started=started)
        return trials

    def next(self, budget: int, *, may_learn: bool) -> Trial | None:
        """Start the next evaluation within the budget; None if there is none, or none without learning first."""
        if self._store.requested() >= budget:
            return None
        return next(iter(self.take(1, started=True, may_learn=may_learn)), None)

    def interrupted(self) -> list[Trial]:
        """Adopt the evaluations that a dead run left unfinished."""
        return self._store.interrupted()

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
        return self._store.finish(id, values)

    def measure(self, point: Point, evaluate: Evaluate, thresholds: Mapping[str, float] | None = None) -> Evaluation:
        """Evaluate one design outside the budget, for one answer; it is stored before and after.

        thresholds: the limits that the answer is for.
        """
        trial = self._store.start(point, "refine", started=True, thresholds=thresholds)
        return self.record(trial.id, perform(evaluate, trial.point, self.outputs, trial.id))

    def _advance(self) -> None:
        """Make one iteration of the method and store its batch with its state."""
        from cbabo.methods.step import step

        record = self._store.record
        evaluations = Evaluations(record.problem, self._store.evaluations())
        steps, state = self._store.learner()
        focus = self._store.focus()
        batch, state = step(evaluations, evaluations.running, state, record.settings, record.seed, focus)
        self._store.plan(batch, steps + 1, state)
