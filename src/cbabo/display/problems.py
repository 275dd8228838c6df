"""A problem and its evaluations as HTML tables, for notebooks and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cbabo.display.markup import Markup, Written, joined, table, tag
from cbabo.display.numbers import estimated, labelled, number, stated
from cbabo.display.units import units

if TYPE_CHECKING:
    from cbabo.domain.evaluations import Evaluation, Evaluations
    from cbabo.domain.problem import Problem
    from cbabo.domain.space import AnyVariable

_MOST_ROWS = 20
"""Evaluations that are shown; of more, the first and the last ones."""
_NOTHING = 1e-9
"""Share of its range below which the value of a variable is rounding, and shown as zero."""


def framed(*children: str) -> str:
    """Return HTML for a notebook: what is too wide is scrolled."""
    return str(tag("div", *children, style="overflow-x:auto"))


def problem_html(problem: Problem) -> str:
    """Return a problem for a notebook."""
    return framed(tag("p", tag("b", problem.name)), problem_tables(problem))


def problem_tables(problem: Problem) -> Markup:
    """State a problem: its objective, variables, limits, known relations and derived outputs."""
    variables = [(v.name, v.type, *_range(v), v.unit) for v in problem.variables]
    goal = problem.objective
    limits = [
        (
            c.name,
            "≤" if c.sense == "<=" else "≥",
            stated(c.limit) if c.limit is not None else f"{stated(c.strictest)} to {stated(c.most_relaxed)}",
            Written("" if c.limit is not None else stated(problem.box.nominal[c.name])),
            c.unit,
            ", ".join(c.output_names),
        )
        for c in problem.constraints
    ]
    known = table(("known relation",), [(text,) for text in problem.relations]) if problem.relations else ""
    exact = {problem.outputs[j] for j in problem.exact}
    formulas = [
        (name, text, "variables: exact" if name in exact else "outputs: as certain as these are")
        for name, text in problem.derived.items()
    ]
    return joined(
        tag("p", f"{goal.direction.capitalize()} {labelled(goal.name, goal.unit)}."),
        table(("variable", "type", "low", "high", "unit"), variables),
        table(("limit", "", "strictest to most relaxed", "nominal", "unit", "outputs"), limits),
        known,
        table(("derived output", "formula", "of"), formulas) if formulas else "",
    )


def value_of(variable: AnyVariable, value: Any) -> str:
    """Write the value of a variable: those that a problem lists as they are stated."""
    if variable.type == "categorical":
        return str(value)
    if variable.type == "integer":
        return Written(round(value))
    if variable.type == "discrete":
        return Written(stated(value))
    least = _NOTHING * (float(variable.high) - float(variable.low))
    return Written(number(0.0 if abs(value) < least and not getattr(variable, "log", False) else value))


def evaluations_html(evaluations: Evaluations) -> str:
    """Return a table of evaluations for a notebook."""
    problem, rows = evaluations.problem, evaluations.rows
    unit = units(problem)
    columns = ["id", "state", "kind", *(labelled(v.name, v.unit) for v in problem.variables)]
    columns += [labelled(name, unit[name]) for name in problem.outputs]
    remarks = any(row.failure or row.excluded for row in rows)
    cut = len(rows) > _MOST_ROWS
    shown = (*rows[: _MOST_ROWS // 2], *rows[-_MOST_ROWS // 2 :]) if cut else rows
    cells = [_evaluation(problem, row, remarks) for row in shown]
    if cut:
        cells.insert(_MOST_ROWS // 2, ["…"] * (len(columns) + remarks))
    counts = (
        f"{len(evaluations.complete)} measured, {len(evaluations.failed)} failed, {len(evaluations.running)} pending"
    )
    if evaluations.excluded:
        counts += f", {len(evaluations.excluded)} excluded"
    return framed(
        tag("p", tag("b", f"Evaluations of {problem.name}"), f": {counts}"),
        table([*columns, *(["remark"] if remarks else [])], cells),
    )


def _evaluation(problem: Problem, row: Evaluation, remarks: bool) -> list[object]:
    outputs = [
        Written(estimated(row.outputs[name], row.sem.get(name, 0.0)) if name in row.outputs else "")
        for name in problem.outputs
    ]
    remark = f"excluded: {row.excluded}" if row.excluded else row.failure or ""
    values = [value_of(v, row.point[v.name]) for v in problem.variables]
    return [row.id, row.state, row.kind, *values, *outputs, *([remark] if remarks else [])]


def _range(variable: AnyVariable) -> tuple[float | str, float | str]:
    """Return where a variable may lie; its labels in place of bounds."""
    if variable.type == "categorical":
        return ", ".join(map(str, variable.values or ())), ""
    return float(variable.low), float(variable.high)
