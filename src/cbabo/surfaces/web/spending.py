"""Spending evaluations on answers: by the evaluator, one at a time and in the background, or by hand."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cbabo.answering.answers import Answer
from cbabo.answering.refine import measured_answer
from cbabo.domain.audits import Audit
from cbabo.domain.evaluations import Evaluation, Trial
from cbabo.domain.parts import Reading
from cbabo.domain.query import Query
from cbabo.errors import CbaboError, StudyError
from cbabo.evaluators.function import describe
from cbabo.evaluators.spec import Simulator
from cbabo.surfaces.deciding_records import audit_record
from cbabo.surfaces.records import answer_record
from cbabo.surfaces.web.following import Follower

_LOG = logging.getLogger(__name__)
_KEPT = 200  # Verified answers that the page receives, at most.


@dataclass
class Job:
    """One refinement or audit, under way or ended."""

    id: int
    thresholds: dict[str, float]
    evaluations: int
    """Most evaluations that it may spend."""
    begun: float
    spent: int = 0
    ended: float | None = None
    answer: Answer | None = None
    audit: Audit | None = None
    error: str | None = None

    def count(self, _: Evaluation) -> None:
        """Count an evaluation that has ended."""
        self.spent += 1

    def record(self) -> dict[str, Any]:
        """State it in plain values."""
        return {
            "id": self.id,
            "state": "running" if self.ended is None else "failed" if self.error else "done",
            "limits": self.thresholds,
            "evaluations": self.evaluations,
            "spent": self.spent,
            "seconds": (time.monotonic() if self.ended is None else self.ended) - self.begun,
            "answer": None if self.answer is None else answer_record(self.answer),
            "audit": None if self.audit is None else audit_record(self.audit),
            "error": self.error,
        }


_Work = Callable[[Job, Simulator], None]


@dataclass(frozen=True, eq=False)
class _HandOut:
    thresholds: dict[str, float]


class Spending:
    """Keeps the designs handed out, the jobs under way, and the answers verified since the server started."""

    def __init__(self, follower: Follower, simulator: Simulator | None) -> None:
        self._follower = follower
        self._study = follower.study
        self._simulator = simulator
        self._guard = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: dict[int, Job] = {}
        self._handed: dict[int, _HandOut] = {}
        self._verified: dict[tuple[float, ...], Answer] = {}

    def refine(self, thresholds: Mapping[str, float], evaluations: int) -> Job:
        """Begin to spend evaluations on an answer; a verified one is improved."""
        named = self._study.problem.box.complete(thresholds)
        return self._begin("refine", named, evaluations, self._refine)

    def audit(self, evaluations: int) -> Job:
        """Begin to test the model's claims."""
        return self._begin("audit", {}, evaluations, self._audit)

    def _begin(self, what: str, limits: dict[str, float], evaluations: int, work: _Work) -> Job:
        simulator = self._simulator
        if simulator is None:
            by_hand = "measure the point by hand, or start it with one" if what == "refine" else "start it with one"
            raise StudyError(f"{what}: this server was started without an evaluator; {by_hand}")
        with self._guard:
            if any(job.ended is None for job in self._jobs.values()):
                raise StudyError(f"{what}: another evaluation is under way; wait until it has ended")
            job = Job(next(self._numbers), limits, evaluations, time.monotonic())
            self._jobs[job.id] = job
        threading.Thread(target=self._work, args=(job, simulator, work), daemon=True).start()
        return job

    def job(self, id: int) -> Job | None:
        """Return a job by its number, if there is one."""
        return self._jobs.get(id)

    def hand_out(self, thresholds: Mapping[str, float]) -> Trial:
        """Store the answer's design as a pending evaluation, to be measured by hand."""
        with self._follower.model() as model:
            answer = model.predict(thresholds)
        trial = self._study.ask_at(answer.point)
        self._handed[trial.id] = _HandOut(dict(answer.thresholds))
        self._follower.forget()
        return trial

    def tell(
        self, id: int, outputs: Mapping[str, Reading] | None, failed: str | None
    ) -> tuple[Evaluation, Answer | None]:
        """Store what a design measured; where it was handed out for an answer, return that answer, measured."""
        self._study.tell(id, outputs, failed=failed)
        self._follower.forget()
        evaluations = self._study.evaluations
        told = next(row for row in evaluations if row.id == id)
        handed = self._handed.get(id)
        if handed is None or told.state != "complete":
            return told, None
        with self._follower.model() as model:
            known = any(
                row.id == told.id for row in model.evaluations.complete
            )  # It may be pending in a model from before.
            fitted = model if known else model.conditioned([told])
            answer = measured_answer(fitted, Query.of(model.problem.box, handed.thresholds), told)
        if answer.verified:
            self._remember(answer)
        return told, answer

    def verified(self) -> list[Answer]:
        """Return the answers that were verified since the server began, the latest last."""
        return list(self._verified.values())[-_KEPT:]

    def _work(self, job: Job, simulator: Simulator, work: _Work) -> None:
        try:
            work(job, simulator)
        except CbaboError as error:
            job.error = str(error)
        except Exception as error:
            what = "an audit" if work == self._audit else "a refinement"
            _LOG.error("%s failed: %s", what, describe(error))
            job.error = f"{'audit' if work == self._audit else 'refine'}: the server failed; what it printed says why"
        finally:
            self._follower.forget()
            job.ended = time.monotonic()

    def _refine(self, job: Job, simulator: Simulator) -> None:
        job.answer = self._study.refine(
            job.thresholds,
            simulator.evaluate,
            job.evaluations,
            self._known(job.thresholds),
            timeout=simulator.timeout,
            retries=simulator.retries,
            on_result=job.count,
        )
        if job.answer.verified:
            self._remember(job.answer)

    def _audit(self, job: Job, simulator: Simulator) -> None:
        job.audit = self._study.audit(
            simulator.evaluate,
            job.evaluations,
            timeout=simulator.timeout,
            retries=simulator.retries,
            on_result=job.count,
        )

    def _known(self, thresholds: Mapping[str, float]) -> dict[str, float] | None:
        """Return the design that is the answer already and was measured, if there is one: it is improved, not measured again."""
        answer = self._verified.get(tuple(thresholds.values()))
        if answer is None:
            with self._follower.model() as model:
                answer = model.predict(thresholds)
        return dict(answer.point) if answer.verified else None

    def _remember(self, answer: Answer) -> None:
        self._verified[tuple(answer.thresholds.values())] = answer
