"""Spending evaluations on an audit of the model's claims."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cbabo.decisions.audit import draw_claims, judge
from cbabo.domain.audits import Audit
from cbabo.domain.evaluations import Evaluation
from cbabo.evaluators.execution import Execution
from cbabo.evaluators.function import Evaluate
from cbabo.model import Model
from cbabo.study.trials import Trials


def audit_model(
    model: Model,
    trials: Trials,
    evaluate: Evaluate,
    execution: Execution,
    evaluations: int,
    earlier: int,
    on_result: Callable[[Evaluation], None] | None,
) -> Audit:
    """Test a model at fresh thresholds; every outcome is stored the moment it is known. earlier: audits before this one."""
    claims = draw_claims(model, evaluations, earlier)
    made: list[Evaluation] = []
    with execution.executor(evaluate) as executor, ThreadPoolExecutor(execution.workers) as threads:
        for first in range(0, len(claims.answers), execution.workers):
            part = claims.answers[first : first + execution.workers]
            begun = [trials.start(dict(answer.point), answer.thresholds, "audit") for answer in part]
            outcomes = [
                threads.submit(execution.evaluate, executor, evaluate, trial.point, trials.outputs, trial.id)
                for trial in begun
            ]
            for trial, outcome in zip(begun, outcomes, strict=True):
                made.append(trials.record(trial.id, outcome.result()))
                if on_result is not None:
                    on_result(made[-1])
    return judge(model, claims, made)
