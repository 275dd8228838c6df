"""Amending a study: whether its data can serve another statement of its problem, and what of its state can."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbabo.domain.differences import changes_labels_only, differences, same_space
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.focus import Focus
from cbabo.domain.parts import part_name
from cbabo.domain.problem import Problem
from cbabo.domain.space import Space
from cbabo.errors import InputError, StudyError, shown
from cbabo.methods.settings import MethodSettings
from cbabo.storage.amendments import Change
from cbabo.storage.studies import StudyRecord

_LOG = logging.getLogger(__name__)
_NAMED = 3
"""Differences, or evaluations, that a message names; it counts the others."""


def named_differences(old: Problem, new: Problem) -> str:
    """Name the differences of two problems in a message."""
    found = differences(old, new)
    more = "" if len(found) <= _NAMED else f", and {len(found) - _NAMED} more"
    return ", ".join(found[:_NAMED]) + more


def refuse_difference(record: StudyRecord, problem: Problem, seed: int, settings: MethodSettings) -> None:
    """Refuse to open a study as one with another problem, seed or settings; name what differs."""
    stated = (
        ("a different problem", problem == record.problem),
        ("a different seed", seed == record.seed),
        ("different settings", settings == record.settings),
    )
    different = [what for what, same in stated if not same]
    if not different:
        return
    how = "choose another name, or restore what was stated before"
    if problem != record.problem:
        found = named_differences(record.problem, problem)
        how = f"{found}; amend the study by study.amend or cbabo amend, {how}"
    raise StudyError(f"study {record.name!r} exists with {' and '.join(different)}; {how}")


def planned_change(
    old: Problem,
    new: Problem,
    rows: Sequence[Evaluation],
    values: Mapping[str, Any],
    focus: Focus | None,
    state: bytes | None,
) -> Change | None:
    """Return what an amendment writes, None if nothing differs; raise if the data cannot serve the new problem.

    rows: the study's evaluations; values: those that all designs so far have of variables that are added; state: the learner's.
    """
    found = differences(old, new)
    if not found:
        return None
    added = _added_values(old, new, rows, values)
    points = [{**row.point, **added} for row in rows]
    _refuse_other_kinds(old, new, points)
    _refuse_missing_outputs(new, rows)
    outside = len(rows) - int(new.space.inside(points).sum())
    if outside:
        _LOG.warning("%d designs lie outside the new bounds: they are kept, and are never answers", outside)
    labels_only = changes_labels_only(old, new)
    keeps = labels_only
    if state is not None and not labels_only:
        state, keeps = _learned_anew(state, same=same_space(old, new))
    return Change(new, found, added, _amended_focus(old, new, focus), state, keeps)


def _added_values(
    old: Problem, new: Problem, rows: Sequence[Evaluation], values: Mapping[str, Any]
) -> dict[str, float]:
    """Return the value of every variable that is added; raise if one is missing, or a variable is removed."""
    names = set(old.space.names)
    removed = [name for name in old.space.names if name not in new.space.names]
    if removed:
        raise StudyError(
            f"amend: variable {removed[0]!r} cannot be removed, because the stored designs differ in it; keep it, with narrower "
            "bounds, or start a new study and import those with the value that it has now"
        )
    added = [v for v in new.space.variables if v.name not in names]
    for name in values:
        if name not in {v.name for v in added}:
            raise InputError(
                f"amend: a value was given for {shown(name)}, which is not a variable that is added; leave it out"
            )
    absent = [v.name for v in added if v.name not in values]
    if absent and rows:
        raise StudyError(
            f"amend: variable {absent[0]!r} is added; state the value that it had in the {len(rows)} stored evaluations: "
            f"values={{{absent[0]!r}: ...}}, or --value {absent[0]}=..."
        )
    given = {v.name: values[v.name] for v in added if v.name in values}
    try:
        return dict(Space(tuple(v for v in added if v.name in given)).check(given)) if given else {}
    except InputError as error:
        raise InputError(
            f"amend: values: {str(error).removeprefix('point: ')}; widen its bounds if it had that value"
        ) from None


def _refuse_other_kinds(old: Problem, new: Problem, points: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a variable of another kind whose stored values it cannot have."""
    kinds = {v.name: v.type for v in old.space.variables}
    for v in new.space.variables:
        if kinds.get(v.name, v.type) != v.type:
            bad = [point[v.name] for point in points if not Space((v,)).inside([point])[0]]
            if bad:
                raise StudyError(
                    f"amend: variable {v.name!r} cannot become {v.type}, because {len(bad)} stored designs have values that it "
                    f"cannot have, such as {shown(bad[0])}; leave it {kinds[v.name]}, or start a new study"
                )


def _refuse_missing_outputs(new: Problem, rows: Sequence[Evaluation]) -> None:
    """Refuse an output that was not recorded in every measured evaluation."""
    measured = [row for row in rows if row.state == "complete" and row.excluded is None]
    for name in new.simulated:
        without = [row.id for row in measured if name not in row.outputs and part_name(name, 0) not in row.outputs]
        if without:
            ids = ", ".join(map(str, without[:_NAMED])) + (", ..." if len(without) > _NAMED else "")
            known = ", ".join(dict.fromkeys(known for row in measured for known in row.outputs))
            raise StudyError(
                f"amend: {len(without)} of {len(measured)} measured evaluations ({ids}) have no output {name!r}; recorded are "
                f"{known}; exclude these evaluations (forget), or retry them"
            )
        if name == new.objective.name and any(name not in row.outputs for row in measured):
            raise StudyError(f"amend: the output {name!r} has parts and cannot be the objective; limit it instead")


def _learned_anew(state: bytes, *, same: bool) -> tuple[bytes, bool]:
    """Return the learner's state without what was learned from the old problem, and whether its proposals can be kept.

    same: whether the designs are the same. The initial design does not depend on limits; in another space it is begun again, and
    what was measured of it counts. Later proposals were chosen for the old problem and are dropped.
    """
    from cbabo.methods.learner import Learner

    learner = Learner.from_bytes(state)
    initial = learner.iteration <= 1
    iteration = 0 if initial and not same else learner.iteration
    return Learner(iteration, learner.sobol_position, effort=learner.effort).to_bytes(), initial and same


def _amended_focus(old: Problem, new: Problem, focus: Focus | None) -> Focus | None:
    """Return the focus under the new limits: a new one is nominal, one that no longer moves is left out, as are rows outside."""
    if focus is None or (old.box.names == new.box.names and _holds(new, focus)):
        return focus
    rows, weights = [], []
    for row, weight in zip(focus.thresholds, focus.weights, strict=True):
        named = {**new.box.nominal, **{n: t for n, t in zip(old.box.names, row, strict=True) if n in new.box.names}}
        if all(c.low is not None and c.high is not None and c.low <= named[c.name] <= c.high for c in new.box.movable):
            rows.append(named)
            weights.append(weight)
    if len(rows) < len(focus.weights):
        lost = len(focus.weights) - len(rows)
        _LOG.warning("%d of %d rows of the focus lie outside the new limits and are left out", lost, len(focus.weights))
    if not rows:
        return None
    amended = Focus.of(new.box, rows)
    total = sum(weights)
    return replace(amended, weights=tuple(weight / total for weight in weights))


def _holds(problem: Problem, focus: Focus) -> bool:
    """Tell whether every row of a focus lies in the box."""
    theta = problem.box.to_theta(focus.array)
    return bool(((theta >= 0.0) & (theta <= 1.0)).all())
