"""Checks of what users state and tell, and of what an earlier refinement left behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.parts import Reading, whole_name
from cbabo.domain.problem import Problem
from cbabo.domain.space import Point
from cbabo.errors import InputError, StudyError, shown
from cbabo.evaluators.outputs import check_objective, missing, not_finite, output_reading
from cbabo.methods.settings import MethodSettings
from cbabo.storage.studies import StudyRecord


def told_readings(problem: Problem, outputs: Any) -> tuple[dict[str, Reading], str | None]:
    """Return the outputs that were told, and why they are a failure, if they are."""
    if not isinstance(outputs, Mapping):
        raise InputError(f"tell: expected outputs as a mapping of names to numbers, got {shown(outputs)}")
    declared = problem.outputs
    absent = missing(outputs, declared)
    if absent is not None:
        raise InputError(f"tell: the output {absent!r} is missing; expected {', '.join(declared)}")
    readings: dict[str, Reading] = {}
    failure = None
    try:
        for name, value in outputs.items():
            readings[str(name)] = output_reading(str(name), value)
        check_objective(declared, readings)
    except InputError as error:
        raise InputError(f"tell: {error}") from None
    for name in list(readings):
        bad = not_finite(name, readings[name])
        whole = whole_name(name)
        if bad is not None:
            del readings[name]
            if name in declared or (whole in declared and whole not in outputs):
                failure = failure or bad
    return readings, failure


def split_refinement(
    evaluations: Evaluations, limits: Mapping[str, float], start: Point | None
) -> tuple[Evaluations, tuple[Evaluation, ...]]:
    """Return the evaluations before a refinement for these limits, and those that were spent on it at the very end.

    start: a design with which the refinement begins; if it was measured before, it counts as spent on it.
    """
    rows = [row for row in evaluations if row.state != "running" and row.excluded is None]
    first = len(rows)
    while first > 0 and rows[first - 1].kind == "refine" and rows[first - 1].thresholds == limits:
        first -= 1
    spent = rows[first:]
    if start is not None and all(row.point != start for row in spent):
        spent = [row for row in rows if row.state == "complete" and row.point == start][-1:]
    ids = {row.id for row in spent}
    return Evaluations(evaluations.problem, tuple(row for row in evaluations if row.id not in ids)), tuple(spent)


def refuse_difference(
    stored: StudyRecord, problem: Problem, seed: int, settings: MethodSettings, exist_ok: bool
) -> None:
    """Refuse to open a study that exists with something else than was stated."""
    if not exist_ok:
        raise StudyError(f"study {stored.name!r} exists already; choose another name or pass exist_ok=True")
    different = [
        what
        for what, same in (
            ("problem", problem == stored.problem),
            ("seed", seed == stored.seed),
            ("settings", settings == stored.settings),
        )
        if not same
    ]
    if different:
        raise StudyError(
            f"study {stored.name!r} exists with another {' and another '.join(different)}; "
            "choose another name, or state what is stored"
        )


def read_focus(problem: Problem, thresholds: ThresholdsLike | None) -> Focus | None:
    """Read a focus; None and an empty list mean the whole box."""
    if thresholds is None or (isinstance(thresholds, list | tuple) and not thresholds):
        return None
    return Focus.of(problem.box, thresholds)
