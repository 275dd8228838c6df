"""Refinement: measure the predicted design, then improve it with a few evaluations.

The evaluator is an argument, and what it measures is handed back to the caller, who stores it before it is learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cbabo.answering.answers import Answer, Estimate
from cbabo.answering.predict import predict_many
from cbabo.domain.constraints import FEASIBILITY_TOLERANCE
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.methods.method import Fitted, Measure
from cbabo.numerics.arrays import FloatArray


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
    if found.best is None:
        predicted = predict_many(fitted, query).answer(0)
        return replace(predicted, warnings=(*predicted.warnings, *notes, "not verified: every evaluation failed"))
    answer = measured_answer(fitted.problem, query, found.best)
    return replace(answer, warnings=(*answer.warnings, *notes))


def measured_answer(problem: Problem, query: Query, evaluation: Evaluation) -> Answer:
    """Return a measured design as the answer to a query with one row: verified if it obeys the limits, else measured."""
    y = np.array([[evaluation.outputs[name] for name in problem.outputs]])
    columns = {name: j for j, name in enumerate(problem.outputs)}
    for whole, parts in problem.parts.items():
        columns[whole] = int(problem.box.governing(y, query.thresholds, parts)[0])
    outputs = {name: Estimate(float(y[0, columns[name]]), 0.0) for name in problem.reported_outputs}
    feasible = bool(problem.box.feasible(y, query.thresholds)[0])
    return Answer(
        thresholds=query.named(0),
        point=dict(evaluation.point),
        objective=outputs[problem.objective.name],
        outputs=outputs,
        probability_feasible=float(feasible),
        status="verified" if feasible else "measured",
        warnings=(*query.warnings(0), *broken_limits(problem, query, y)),
    )


def broken_limits(problem: Problem, query: Query, y: FloatArray) -> list[str]:
    """Say which limits outputs y (1 x q) break, and by how much."""
    violation = iter(problem.box.violations(y, query.thresholds)[0])
    found = []
    for constraint, limit in zip(problem.constraints, problem.box.limits(query.thresholds), strict=True):
        for output in constraint.output_names:
            over = float(next(violation))
            if over > FEASIBILITY_TOLERANCE * constraint.scale:
                unit = f" {constraint.unit}" if constraint.unit else ""
                name = constraint.name if output == constraint.name else f"{constraint.name} ({output})"
                found.append(
                    f"the measured design breaks {name} {constraint.sense} {limit[0]:g}{unit} by {over:.4g}{unit}"
                )
    return found
