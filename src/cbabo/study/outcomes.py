"""Checks of what users state and tell: outcomes, a focus, what is spent or evaluated again, and what a refinement left behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.convergence import read_share
from cbabo.domain.evaluations import RETRIED, Evaluation, Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.parts import Reading, whole_name
from cbabo.domain.problem import Problem
from cbabo.domain.space import Point
from cbabo.errors import InputError, StudyError, shown
from cbabo.evaluators.outputs import check_objective, missing, not_finite, output_reading
from cbabo.methods.settings import MethodSettings


def told_readings(problem: Problem, outputs: Any) -> tuple[dict[str, Reading], str | None]:
    """Return the outputs that were told, and why they are a failure, if they are."""
    if not isinstance(outputs, Mapping):
        raise InputError(f"tell: expected outputs as a mapping of names to numbers, got {shown(outputs)}")
    declared = problem.simulated
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


def retryable_ids(evaluations: Evaluations, ids: Iterable[int] | None) -> list[int]:
    """Return the evaluations that are to be made again; None: all that failed and are not excluded."""
    if ids is None:
        return [row.id for row in evaluations.failed if why_excluded(evaluations.problem, row.point) is None]
    numbers = checked_ids("retry", ids)
    rows = {row.id: row for row in evaluations}
    for number in numbers:
        row = rows.get(number)
        if row is None:
            raise StudyError(f"retry: there is no evaluation {number}; the study has {len(rows)}")
        if row.state == "running":
            raise StudyError(f"retry: evaluation {number} has no outcome yet; wait for it, or tell it")
        if (row.excluded or "").startswith(RETRIED):
            raise StudyError(f"retry: evaluation {number} was {row.excluded} already; retry that one")
        if row.state == "complete" and row.excluded is None:
            raise StudyError(
                f"retry: evaluation {number} did not fail; if its outputs are wrong, exclude it first (forget)"
            )
        why = why_excluded(evaluations.problem, row.point)
        if why is not None:
            raise StudyError(f"retry: evaluation {number} cannot be made again, because {why}; leave it out")
    return numbers


def why_excluded(problem: Problem, point: Mapping[str, Any]) -> str | None:
    """Say why a problem does not have a design, as after an amendment; None if it has."""
    if not problem.space.inside([point])[0]:
        return "its design lies outside the bounds of the problem"
    broken = None if problem.region is None else problem.region.broken(dict(point))
    return f"its design breaks {broken}" if broken else None


def checked_share(settings: MethodSettings, until: Any) -> float:
    """Return the share of the span at which a run ends."""
    share = read_share("run: until", until)
    if settings.method != "default":
        raise InputError(
            "run: until needs the default method, because the paper's states no probabilities; leave it out"
        )
    return share


def checked_ids(where: str, ids: Any) -> list[int]:
    """Return ids of evaluations, each once."""
    numbers = [ids] if isinstance(ids, int) else list(ids)
    if not numbers or any(not isinstance(number, int) or isinstance(number, bool) for number in numbers):
        raise InputError(f"{where}: expected ids of evaluations as whole numbers, got {shown(ids)}")
    return list(dict.fromkeys(numbers))


def check_spending(where: str, evaluate: object, evaluations: object) -> None:
    """Check what is to be spent on answers, and by whom."""
    if not isinstance(evaluations, int) or isinstance(evaluations, bool) or evaluations < 1:
        raise InputError(f"{where}: evaluations must be a whole number from 1 on, got {evaluations!r}")
    if not callable(evaluate):
        raise InputError(f"{where}: evaluate must be a function of a point, got {evaluate!r}")


def read_focus(problem: Problem, thresholds: ThresholdsLike | None) -> Focus | None:
    """Read a focus; None and an empty list mean the whole box."""
    if thresholds is None or (isinstance(thresholds, list | tuple) and not thresholds):
        return None
    return Focus.of(problem.box, thresholds)


def split_refinement(
    evaluations: Evaluations, limits: Mapping[str, float], start: Point | None
) -> tuple[Evaluations, tuple[Evaluation, ...]]:
    """Return the evaluations before a refinement for these limits, and those that were spent on it at the very end.

    start: a design with which the refinement begins; if it was measured before, it counts as spent on it.
    """
    rows = [row for row in evaluations if row.state != "running" and row.excluded is None]
    first = len(rows)
    while first > 0 and rows[first - 1].kind in ("refine", "retry") and rows[first - 1].thresholds == limits:
        first -= 1
    spent = rows[first:]
    if start is not None and all(row.point != start for row in spent):
        spent = [row for row in rows if row.state == "complete" and row.point == start][-1:]
    ids = {row.id for row in spent}
    return Evaluations(evaluations.problem, tuple(row for row in evaluations if row.id not in ids)), tuple(spent)
