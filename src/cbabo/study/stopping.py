"""When a run ends early: failures that are the set-up's fault, such as a misspelt program, or answers that have converged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cbabo.domain.convergence import Convergence
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.reasons import reason_key


@dataclass(frozen=True)
class StoppingTuning:
    """Numbers that decide when failures are taken for the fault of the set-up."""

    first: int = 5
    """Failures for the same reason with which a run begins: where a third of all designs fail, 1 run in 240 stops."""
    in_a_row: int = 10
    """Failures for the same reason in a row, later in a run: designs that a model has chosen may lie close together."""
    check_every: int = 10
    """Evaluations between two estimates of the convergence: two batches of the usual size, about as costly as one estimate."""
    shown: int = 150
    """Characters of the reason in the sentence; the whole of it is in the log of the run and in `status`."""


TUNING = StoppingTuning()


class Checks:
    """Asks whether the answers have converged, at the start and whenever so many more evaluations are finished.

    The counts at which it asks are fixed, so that a run that is resumed asks at the same ones.
    """

    def __init__(self, enough: Callable[[], bool] | None, finished: int) -> None:
        self._enough = enough
        self.finished = finished
        self._asked = -1
        self._answer = False

    def now(self) -> bool:
        """Return whether the run may end."""
        if self._enough is not None and not self._answer and self.finished // TUNING.check_every > self._asked:
            self._asked = self.finished // TUNING.check_every
            self._answer = self._enough()
        return self._answer


@dataclass(frozen=True)
class Until:
    """Tells whether the answers have converged to a share of the span."""

    share: float
    estimate: Callable[[], Convergence | None]
    on_convergence: Callable[[Convergence], None] | None

    def __call__(self) -> bool:
        """Estimate it."""
        found = self.estimate()
        if found is not None and self.on_convergence is not None:
            self.on_convergence(found)
        return found is not None and found.figure <= self.share


class FailureCount:
    """Counts the failures of a run, and says when to give up.

    limit: give up after so many failures in a row, whatever their reasons; None: as `TUNING` says, if the reasons are the same.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._finished = 0
        self._in_a_row = 0
        self._same = 0
        self._latest = ""

    def count(self, evaluation: Evaluation) -> None:
        """Take one more finished evaluation into account."""
        self._finished += 1
        if evaluation.state != "failed":
            self._in_a_row = self._same = 0
            return
        failure = evaluation.failure or ""
        self._same = self._same + 1 if self._in_a_row and reason_key(failure) == reason_key(self._latest) else 1
        self._in_a_row += 1
        self._latest = failure

    @property
    def hopeless(self) -> bool:
        """Whether the run should give up."""
        if self._limit is not None:
            return self._in_a_row >= self._limit
        return self._same >= TUNING.in_a_row or self._same == self._finished >= TUNING.first

    @property
    def sentence(self) -> str:
        """Why the run gives up, and how to go on."""
        if self._limit is not None:
            return (
                f"the last {self._in_a_row} evaluations failed in a row (the latest: {self._latest}); "
                "repair the simulator and run again: everything so far is stored"
            )
        which = f"{'first' if self._same == self._finished else 'last'} {self._same}"
        latest = self._latest if len(self._latest) <= TUNING.shown else f"{self._latest[: TUNING.shown]}…"
        return (
            f"the {which} evaluations of this run failed for the same reason (the latest: {latest}); correct the set-up, then "
            "cbabo retry STUDY --failed, or study.retry(), and run again; "
            "if it is the designs that fail, raise --stop-after-failures"
        )
