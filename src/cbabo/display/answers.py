"""Answers and recommendations as HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cbabo.display.markup import Markup, Written, joined, table, tag
from cbabo.display.numbers import estimated, labelled, measured, number, percent, rounded_like, stated
from cbabo.display.problems import framed, value_of
from cbabo.display.units import units

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer, Recommendation
    from cbabo.answering.standings import LimitStanding

SYMBOLS = {"slack": "●", "active": "◆", "violated": "✕"}
"""How an output stands to its limit, told by shape as in the explorer."""


def answer_html(answer: Answer, standings: Sequence[LimitStanding]) -> str:
    """Return an answer for a notebook; standings: of its outputs, none if its problem is not known."""
    parts = [
        tag("div", _limits(answer, standings)),
        tag("div", _design(answer)),
        tag("div", _others(answer, standings)),
    ]
    side_by_side = tag("div", *parts, style="display:flex;flex-wrap:wrap;gap:0 2em;align-items:flex-start")
    closest = answer.closest_thresholds
    nearest = ", ".join(f"{name} {number(value)}" for name, value in (closest or {}).items())
    return framed(
        tag("p", tag("b", answer.status), f": {summary(answer)}"),
        tag("p", f"The closest limits that can be met: {nearest}.") if nearest else "",
        side_by_side,
        *(tag("p", text) for text in answer.warnings),
    )


def summary(answer: Answer) -> str:
    """Say what an answer promises: the objective and the probabilities."""
    goal = None if answer.problem is None else answer.problem.objective
    value = estimated(answer.objective.mean, answer.objective.std)
    words = [f"{goal.name if goal else 'objective'} {value}{f' {goal.unit}' if goal and goal.unit else ''}"]
    words.append(f"feasible with {percent(answer.probability_feasible)}")
    if answer.probability_success < 1.0:
        words.append(f"the simulator returns with {percent(answer.probability_success)}")
    return ", ".join(words)


def room_words(standing: LimitStanding) -> str:
    """Say how far an output is from its limit: what is left, or by how much it breaks the limit."""
    size = rounded_like(abs(standing.room), standing.estimate.mean, standing.estimate.std)
    if standing.standing != "violated":
        return size if standing.room >= 0.0 else f"-{size}"
    return f"over by {size}" if standing.constraint.sense == "<=" else f"falls short by {size}"


def recommendation_html(found: Recommendation) -> str:
    """Return a recommendation for a notebook."""
    problem = found.answer.problem
    unit = {} if problem is None else {c.name: c.unit for c in problem.constraints}
    goal = "" if problem is None else problem.objective.unit
    better = "better" if found.improvement >= 0.0 else "worse"
    rows = [
        (
            name,
            change.intent,
            Written(stated(change.before)),
            Written(number(change.after)),
            unit.get(name, ""),
            Written(number(change.effect)),
        )
        for name, change in found.changes.items()
    ]
    others = [
        (
            f"alternative {i}",
            Written(estimated(other.answer.objective.mean, other.answer.objective.std)),
            Written(number(other.improvement)),
            ", ".join(f"{name} {number(value)}" for name, value in other.thresholds.items()),
        )
        for i, other in enumerate(found.alternatives, 1)
    ]
    columns = ("limit", "intent", "before", "proposed", "unit", f"alone gains{f' [{goal}]' if goal else ''}")
    return framed(
        tag(
            "p", tag("b", "recommendation"), f": {summary(found.answer)}, {better} by {number(abs(found.improvement))}"
        ),
        table(columns, rows),
        table(("", labelled("objective", goal), "gain", "limits"), others) if others else "",
        *(tag("p", text) for text in found.answer.warnings),
    )


def _limits(answer: Answer, standings: Sequence[LimitStanding]) -> Markup:
    if not standings:
        return table(("limit", "value"), [(n, Written(stated(v))) for n, v in answer.thresholds.items()])
    rows = [
        (
            s.title,
            f"{'≤' if s.constraint.sense == '<=' else '≥'} {measured(s.limit, s.constraint.unit)}",
            Written(estimated(s.estimate.mean, s.estimate.std)),
            Written(room_words(s)),
            f"{SYMBOLS[s.standing]} {s.standing}",
        )
        for s in standings
    ]
    return table(("limit", "", "output", "room", ""), rows)


def _design(answer: Answer) -> Markup:
    if answer.problem is None:
        rows = [
            (name, value if isinstance(value, str) else Written(number(value))) for name, value in answer.point.items()
        ]
        return table(("variable", "value"), rows)
    cells = [(v.name, value_of(v, answer.point[v.name]), v.unit) for v in answer.problem.variables]
    return table(("variable", "value", "unit"), cells)


def _others(answer: Answer, standings: Sequence[LimitStanding]) -> Markup:
    """List the outputs that no limit refers to; parts are governed by the output that they belong to."""
    problem = answer.problem
    hidden = {s.output for s in standings}
    if problem is not None:
        hidden |= {problem.objective.name} | {problem.outputs[j] for at in problem.parts.values() for j in at}
    unit = {} if problem is None else units(problem)
    rows = [
        (labelled(name, unit.get(name, "")), Written(estimated(e.mean, e.std)))
        for name, e in answer.outputs.items()
        if name not in hidden
    ]
    return table(("output", "value"), rows) if rows else joined()
