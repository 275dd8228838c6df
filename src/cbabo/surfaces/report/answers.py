"""The answers of a report: one column for each, so that limits, design, outputs and prices are read downwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbabo.answering.answers import Answer
from cbabo.answering.predict import Answers
from cbabo.answering.standings import limit_standings
from cbabo.display.markup import Markup, Written, joined, tag
from cbabo.display.numbers import estimated, labelled, number, percent, stated
from cbabo.display.problems import value_of
from cbabo.display.units import units
from cbabo.domain.problem import Problem
from cbabo.model import Model
from cbabo.numerics.arrays import FloatArray

_ACROSS = 6
"""Answers beside each other: more would not fit on a printed page."""
_BINDS, _BROKEN = "◆", "✕"

Row = tuple[str, list[str]]


def answers_section(model: Model, thresholds: FloatArray, titles: Sequence[str]) -> Markup:
    """Answer these thresholds (n x k), each once; titles: of the answers."""
    kept = distinct(thresholds)
    answers = model.predict_many(thresholds[kept])
    shown = [answers.answer(i) for i in range(len(answers))]
    names = [titles[i] for i in kept]
    tables = [_table(answers, shown[i : i + _ACROSS], names[i : i + _ACROSS]) for i in range(0, len(shown), _ACROSS)]
    note = f"By the model of {len(model.evaluations.complete)} measured designs; ± one standard deviation. "
    note += f"{_BINDS} a limit that binds: relaxing it gains. {_BROKEN} a limit that is broken."
    warnings = dict.fromkeys(text for answer in shown for text in answer.warnings)
    return joined(
        tag("h2", "Answers"), tag("p", note), *tables, *(tag("p", text, class_="warning") for text in warnings)
    )


def distinct(rows: FloatArray) -> list[int]:
    """Return which rows (n x k) are not equal to an earlier one."""
    return sorted(int(i) for i in np.unique(rows, axis=0, return_index=True)[1])


def _table(answers: Answers, shown: Sequence[Answer], titles: Sequence[str]) -> Markup:
    problem = answers.fitted.problem
    fails = len(answers.fitted.evaluations.failed) > 0
    groups = [
        ("", _promises(problem, shown, fails)),
        ("Limits", _limits(problem, shown)),
        ("Closest limits that can be met", _closest(problem, shown)),
        ("Design", _designs(problem, shown)),
        ("Outputs", _outputs(problem, shown)),
        (
            f"Gain of {labelled(problem.objective.name, problem.objective.unit)} per unit of relaxation",
            _prices(problem, shown),
        ),
    ]
    head = tag("tr", tag("th", ""), *(tag("th", title, scope="col", class_="number") for title in titles))
    body = []
    for title, rows in groups:
        lines = [
            tag("tr", tag("th", name, scope="row"), *(tag("td", cell, class_="number") for cell in cells))
            for name, cells in rows
        ]
        if title and lines:
            lines.insert(0, tag("tr", tag("th", title, scope="rowgroup", colspan=len(titles) + 1), class_="group"))
        body.append(tag("tbody", *lines))
    return tag("table", tag("thead", head), *body, class_="answers")


def _promises(problem: Problem, shown: Sequence[Answer], fails: bool) -> list[Row]:
    goal = problem.objective
    rows: list[Row] = [
        ("status", [answer.status for answer in shown]),
        (labelled(goal.name, goal.unit), [estimated(a.objective.mean, a.objective.std) for a in shown]),
        ("feasible with", [percent(answer.probability_feasible) for answer in shown]),
    ]
    if fails:
        rows.append(("simulator returns with", [percent(answer.probability_success) for answer in shown]))
    return rows


def _limits(problem: Problem, shown: Sequence[Answer]) -> list[Row]:
    """State the limits that were asked for, and those that the problem fixes, with a sign where they bind or are broken."""
    rows: list[Row] = []
    for c in problem.constraints:
        cells = []
        for answer in shown:
            mine = [s for s in limit_standings(problem, answer) if s.constraint is c]
            price = answer.prices.get(c.name)
            sign = f"{_BINDS} " if price is not None and price.binds else ""
            sign = f"{_BROKEN} " if any(s.standing == "violated" for s in mine) else sign
            cells.append(f"{sign}{stated(mine[0].limit)}")
        symbol = "≤" if c.sense == "<=" else "≥"
        rows.append((f"{labelled(c.name, c.unit)} {symbol}", cells))
    return rows


def _closest(problem: Problem, shown: Sequence[Answer]) -> list[Row]:
    """State the nearest limits that can be met, for answers to limits that cannot; nothing where all can."""
    closest = [answer.closest_thresholds or {} for answer in shown]
    return [
        (labelled(c.name, c.unit), [number(met[c.name]) if met else "" for met in closest])
        for c in problem.box.movable
        if any(closest)
    ]


def _designs(problem: Problem, shown: Sequence[Answer]) -> list[Row]:
    return [
        (labelled(v.name, v.unit), [value_of(v, answer.point[v.name]) for answer in shown]) for v in problem.variables
    ]


def _outputs(problem: Problem, shown: Sequence[Answer]) -> list[Row]:
    """State the outputs but the objective; of one with parts, the part that governs."""
    unit = units(problem)
    parts = {problem.outputs[j]: name for name, at in problem.parts.items() for j in at}
    names = [name for name in problem.reported_outputs if name not in parts and name != problem.objective.name]
    unit |= {whole: unit[part] for part, whole in parts.items()}
    return [
        (labelled(name, unit[name]), [estimated(a.outputs[name].mean, a.outputs[name].std) for a in shown])
        for name in names
    ]


def _prices(problem: Problem, shown: Sequence[Answer]) -> list[Row]:
    rows: list[Row] = []
    for c in problem.box.movable:
        cells = []
        for answer in shown:
            price = answer.prices.get(c.name)
            cells.append("" if price is None else estimated(price.value, price.std) if price.binds else "0")
        rows.append((f"{c.name}{f', per {c.unit}' if c.unit else ''}", [Written(cell) for cell in cells]))
    return rows
