"""Answers, recommendations and studies in plain values: the JSON that the command line and the web server share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import pandas as pd

from cbabo.answering.answers import Answer, Recommendation
from cbabo.domain.evaluations import Evaluation, Evaluations, Unfinished
from cbabo.storage.amendments import Amendment
from cbabo.study.modelcache import kept_convergence
from cbabo.study.study import Study

_FORMULA = ("=", "+", "-", "@", "\t", "\n")
"""How a text begins that a spreadsheet runs as a formula, or that becomes one when it is pasted."""
_STANDING: dict[Unfinished, str] = {
    "running": "running",
    "asked": "asked for, not yet told",
    "interrupted": "interrupted, will be run again",
    "retry": "will be run again",
}


def answer_record(answer: Answer) -> dict[str, Any]:
    """State an answer."""
    outputs = [
        {"output": name, "mean": estimate.mean, "std": estimate.std} for name, estimate in answer.outputs.items()
    ]
    return {
        "status": answer.status,
        "objective": answer.objective.mean,
        "objective_std": answer.objective.std,
        "probability_feasible": answer.probability_feasible,
        "probability_success": answer.probability_success,
        "approximate": answer.approximate,
        "warnings": [{"warning": text} for text in answer.warnings],
        "limits": dict(answer.thresholds),
        "closest_limits": dict(answer.closest_thresholds or {}),
        "design": dict(answer.point),
        "outputs": outputs,
        "noise": [{"output": name, "std": std} for name, std in answer.noise.items()],
        "measurements": answer.measurements,
        "scatter": dict(answer.scatter),
        "tolerance": dict(answer.tolerance),
    }


def recommendation_record(found: Recommendation) -> dict[str, Any]:
    """State a recommendation and its alternatives."""
    changes = [
        {"limit": name, "intent": c.intent, "before": c.before, "after": c.after, "effect": c.effect}
        for name, c in found.changes.items()
    ]
    return {
        "objective_before": found.base.objective.mean,
        "objective_after": found.answer.objective.mean,
        "improvement": found.improvement,
        "probability_feasible": found.answer.probability_feasible,
        "warnings": [{"warning": text} for text in found.answer.warnings],
        "changes": changes,
        "design": dict(found.answer.point),
        "alternatives": [_alternative(other) for other in found.alternatives],
    }


def status_record(study: Study, evaluations: Evaluations) -> dict[str, Any]:
    """Say how far a study is."""
    best = evaluations.best(study.problem.box.nominal)
    times = [row.seconds for row in evaluations if row.seconds is not None]
    damages, unfinished, moves = study.damages, study.unfinished, kept_convergence(study)
    left = [row.id for row in evaluations.running if unfinished.get(row.id) in ("interrupted", "retry")]
    return {
        "study": study.name,
        "requested": evaluations.requested,
        "complete": len(evaluations.complete),
        "failed": len(evaluations.failed),
        "running": len(evaluations.running) - len(left),
        "imported": sum(row.kind == "import" for row in evaluations),
        "excluded": len(evaluations.excluded),
        "damaged": len(damages),
        "optimiser": study.optimiser or "none",
        "seconds_per_evaluation": sum(times) / len(times) if times else None,
        "to_run_again": len(left),
        "outside_bounds": len(evaluations.outside),
        "effort": study.effort.sentence() or None,
        "convergence": None if moves is None else {**asdict(moves), "figure": moves.figure, "text": str(moves)},
        "nominal_limits": study.problem.box.nominal,
        "last_audit": audit_text(study),
        "best_objective": None if best is None else best.outputs[study.problem.objective.name],
        "best_evaluation": None if best is None else best.id,
        "best_design": {} if best is None else dict(best.point),
        "best_outputs": {} if best is None else dict(best.outputs),
        "pending": [
            {"id": row.id, "point": dict(row.point), "standing": _STANDING[unfinished.get(row.id, "running")]}
            for row in evaluations.running
        ],
        "failures": [_failure(row) for row in evaluations.failed],
        "exclusions": [{"id": row.id, "reason": row.excluded} for row in evaluations.excluded],
        "damages": [{"id": damage.id, "damage": damage.what} for damage in damages],
        "amendments": [_amendment(amendment) for amendment in study.amendments],
    }


def audit_text(study: Study) -> str | None:
    """Say what the last audit found, and when; None if there was none."""
    audit = next(reversed(study.audits), None)
    return None if audit is None else f"{audit.made[:16].replace('T', ' ')} UTC: {audit.sentence()}"


def breaking_text(evaluations: Evaluations) -> str:
    """Say which measured designs break known relations; empty if none does."""
    rows = evaluations.breaking
    if not len(rows):
        return ""
    ids = ", ".join(str(row.id) for row in rows[:10]) + (", ..." if len(rows) > 10 else "")
    what = "1 measured design breaks" if len(rows) == 1 else f"{len(rows)} measured designs break"
    return f"{what} a known relation (evaluation {ids}): learned from, because it was measured, but never an answer."


def evaluation_record(row: Evaluation) -> dict[str, Any]:
    """State one evaluation."""
    return {
        "id": row.id,
        "state": row.state,
        "kind": row.kind,
        "point": dict(row.point),
        "outputs": dict(row.outputs),
        "sem": dict(row.sem),
        "failure": row.failure,
        "cause": row.cause,
        "started": None if row.started is None else row.started.isoformat(timespec="seconds"),
        "seconds": row.seconds,
        "worker": row.worker,
        "excluded": row.excluded,
    }


def table_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """State the rows of a table, None where there is no value."""
    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
    return [dict(zip(names, map(json_value, row), strict=True)) for row in zip(*columns, strict=True)]


def csv_text(frame: pd.DataFrame) -> str:
    """Write a table as CSV that can be encoded, and whose texts no spreadsheet runs as a formula.

    A text that begins like a formula gets an apostrophe before it, as a spreadsheet writes it; `plain_names` takes it away again.
    """
    safe = frame.rename(columns=_no_formula)
    for i in range(safe.shape[1]):
        if not pd.api.types.is_numeric_dtype(safe.iloc[:, i]):
            safe.isetitem(i, [_no_formula(value) for value in safe.iloc[:, i]])
    return str(safe.to_csv(index=False)).encode("utf-8", "backslashreplace").decode("utf-8")


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """Return the names that `csv_text` has put an apostrophe before, as they are in the file, with the names as they were."""
    return {name: name[1:] for name in names if name[:1] == "'" and _no_formula(name[1:]) == name}


def _no_formula(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")  # pandas does not quote a carriage return, which ends a row.
    return f"'{text}" if text.startswith(_FORMULA) else text


def json_value(value: Any) -> Any:
    """Return a value as JSON knows it."""
    if value is None or value is pd.NaT or (isinstance(value, float) and value != value):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else value


def _alternative(other: Recommendation) -> dict[str, Any]:
    return {
        "objective_after": other.answer.objective.mean,
        "improvement": other.improvement,
        "probability_feasible": other.answer.probability_feasible,
        "limits": dict(other.thresholds),
    }


def _amendment(amendment: Amendment) -> dict[str, Any]:
    return {
        "amended": amendment.amended.isoformat(timespec="seconds"),
        "after_evaluation": amendment.evaluations,
        "changes": list(amendment.changes),
    }


def _failure(row: Evaluation) -> dict[str, Any]:
    started = None if row.started is None else row.started.isoformat(timespec="seconds")
    return {"id": row.id, "started": started, "worker": row.worker, "failure": row.failure, "log": row.log}
