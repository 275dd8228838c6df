"""Refinement: measure the predicted design, then improve it with a few evaluations.

The evaluator is an argument, and what it measures is handed back to the caller, who stores it before it is learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cbabo.answering.answers import Answer
from cbabo.answering.predict import Answers, predict_many
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.methods.method import Fitted, Measure, measured_design
from cbabo.methods.settings import DefaultSettings


def refine(
    fitted: Fitted,
    query: Query,
    measure: Measure,
    evaluations: int = 2,
    start: Point | None = None,
    made: Sequence[Evaluation] = (),
) -> Answer:
    """Spend at most `evaluations` expensive calls on one answer: 1 verifies it, every further one looks for a better one.

    How designs are chosen, and which measured one is the best, is the method's. Designs that were tried before are left out.
    Failed evaluations are told as warnings. start: a design to begin with instead of the prediction. made: evaluations that
    earlier calls spent on this answer and that `fitted` does not know; this call goes on after them.
    """
    found = fitted.method.refine(fitted, query, measure, evaluations, start, made)
    notes = [*found.notes, *(f"evaluation {e.id} failed: {e.failure}" for e in found.made if e.state != "complete")]
    if found.designs is None:
        predicted = predict_many(fitted, query).answer(0)
        return replace(predicted, warnings=(*predicted.warnings, *notes, "not verified: every evaluation failed"))
    answer = Answers(found.fitted, query, found.designs, spent=True).answer(0)
    if answer.status == "predicted":
        notes.append("predicted after these evaluations, and expected to be better than every measured design")
    return replace(answer, warnings=(*answer.warnings, *notes))


def measured_answer(fitted: Fitted, query: Query, evaluation: Evaluation) -> Answer:
    """Return a measured design as the answer to a query with one row: verified if it obeys the limits, else measured.

    fitted: after this evaluation.
    """
    aim = fitted.settings.probability if isinstance(fitted.settings, DefaultSettings) else None
    return Answers(fitted, query, measured_design(fitted, evaluation, aim), spent=True).answer(0)
