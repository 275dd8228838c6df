"""The sections of a report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbabo.answering.answers import Answer, Recommendation
from cbabo.answering.quality import LEVELS, leave_one_out, maxima_advice
from cbabo.decisions.explain import Explanation
from cbabo.decisions.recommend import Intent
from cbabo.decisions.tradeoff import Curve, across, along, placed
from cbabo.display.markup import Markup, Written, joined, table, tag
from cbabo.display.numbers import estimated, labelled, number, percent, stated
from cbabo.display.problems import problem_tables, value_of
from cbabo.display.units import units
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.problem import Problem
from cbabo.errors import InputError
from cbabo.model import Model
from cbabo.surfaces.explaining import explanation_record, sentences
from cbabo.surfaces.records import breaking_text
from cbabo.surfaces.report.charts import Axis, Chart

_DETAIL = 21


def problem_section(problem: Problem) -> Markup:
    """State the problem."""
    return joined(tag("h2", "Problem"), problem_tables(problem))


def evaluations_section(evaluations: Evaluations) -> Markup:
    """Count the evaluations, show the best one, and list failures with their reasons."""
    counts = (
        f"{len(evaluations.complete)} measured, {len(evaluations.failed)} failed, {len(evaluations.running)} pending"
    )
    reasons = pd.Series([row.failure or "" for row in evaluations.failed], dtype=object).value_counts()
    failures = (
        table(("times", "reason"), [(int(n), str(reason)) for reason, n in reasons.items()]) if len(reasons) else ""
    )
    problem = evaluations.problem
    best = evaluations.best(problem.box.nominal)
    outside = tag("p", text) if (text := breaking_text(evaluations)) else ""
    if best is None:
        return joined(
            tag("h2", "Evaluations"),
            tag("p", f"{counts}; no measured design obeys the nominal limits."),
            outside,
            failures,
        )
    unit = units(problem)
    rows = [(v.name, value_of(v, best.point[v.name]), v.unit) for v in problem.variables]
    rows += [
        (name, Written(estimated(best.outputs[name], best.sem.get(name, 0.0))), unit[name]) for name in problem.outputs
    ]
    return joined(
        tag("h2", "Evaluations"),
        tag("p", f"{counts}. The best measured design that obeys the nominal limits is evaluation {best.id}:"),
        table(("name", "value", "unit"), rows),
        outside,
        failures,
    )


def tradeoff_section(model: Model, base: Mapping[str, float]) -> Markup:
    """Draw the objective over each limit at the base, and over the two most influential limits as a map."""
    curves = [along(model, base, name) for name in model.problem.box.names]
    charts = [_curve(model, base, curve) for curve in curves]
    note = (
        "The best objective as one limit moves, the others at their nominal values; ± 2 standard deviations; "
        "dots are measured designs."
    )
    if len(curves) > 1:
        steepest = sorted(curves, key=lambda c: -float(np.ptp(c.mean)))[:2]
        charts.append(_map(model, base, (steepest[0].name, steepest[1].name)))
        note += (
            " The map is over the two limits that matter most: the darker the larger, crossed out where unreachable."
        )
    return joined(tag("h2", "Trade-offs"), tag("p", note), tag("div", *charts, class_="charts"))


def price_section(model: Model, base: Mapping[str, float]) -> Markup:
    """Say what each limit costs at the base and how far it could go, or which limits conflict."""
    try:
        found = model.explain(base)
    except InputError as error:
        return joined(tag("h2", "What limits cost"), tag("p", str(error)))
    said = sentences(model.problem, found)
    if found.conflict is not None:
        return joined(tag("h2", "What limits cost"), *(tag("p", f"{text}.") for text in said))
    head = tag("p", f"At the nominal limits, {said[0]}. For each limit, the others held:")
    return joined(tag("h2", "What limits cost"), head, _price_table(model.problem, found))


def recommendation_section(model: Model, base: Mapping[str, float], intents: Mapping[str, Intent]) -> Markup:
    """Recommend limits, starting from the base."""
    try:
        found = model.recommend(base, intents, alternatives=0)
    except InputError as error:
        return joined(tag("h2", "Recommendation"), tag("p", str(error)))
    return joined(tag("h2", "Recommendation"), *_proposal(model.problem, found))


def quality_section(model: Model) -> Markup:
    """Show how well every measured design is predicted from all others."""
    quality = leave_one_out(model)
    rows = [
        (name, Written(percent(max(0.0, float(e)))), Written(percent(float(c))))
        for name, e, c in zip(quality.outputs, quality.explained, quality.covered[-1], strict=True)
    ]
    charts = []
    unit = units(model.problem)
    for j, name in enumerate(quality.outputs):
        observed, predicted = quality.observed[:, j], quality.predicted[:, j]
        axis = Axis.around("measured", np.clip(observed, *np.quantile(observed, [0.01, 0.99])))
        chart = Chart(axis, Axis(f"{labelled(name, unit[name])}, predicted", axis.low, axis.high), name, 220.0, 190.0)
        ends = np.array([axis.low, axis.high])
        chart.line(ends, ends, "diagonal")
        chart.points(np.clip(observed, axis.low, axis.high), np.clip(predicted, axis.low, axis.high))
        charts.append(chart.drawing())
    note = (
        "Every measured design predicted from all others: the share of variance explained, and how many lie inside the"
    )
    note += f" {LEVELS[-1]:.0%} interval."
    advice = [tag("p", f"Advice: {text}.") for text in maxima_advice(model)]
    head = joined(tag("h2", "Quality of the model"), tag("p", note), *advice)
    return joined(head, table(("output", "explained", "inside"), rows), tag("div", *charts, class_="charts"))


def _price_table(problem: Problem, found: Explanation) -> Markup:
    """List for each limit what relaxing it gains, where that holds, and how far the limit could go."""
    goal = labelled(problem.objective.name, problem.objective.unit)
    rows = []
    for row in explanation_record(problem, found)["prices"]:
        price = "" if row["price"] is None else estimated(row["price"], row["std"]) if row["price"] > 0.0 else "0"
        holds = "" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}"
        end = " (end of its range)" if row["gains_at_end"] else ""
        reach = ("" if row[key] is None else number(row[key]) for key in ("strictest", "gains_until"))
        strictest, until = reach
        cells = (stated(row["at"]), price, holds, strictest, f"{until}{end}")
        rows.append((row["limit"], row["unit"], *(Written(cell) for cell in cells)))
    columns = ("limit", "unit", "at", f"gain of {goal} per unit", "holds from", "as strict as", "gains until")
    return table(columns, rows)


def _curve(model: Model, base: Mapping[str, float], curve: Curve) -> Markup:
    problem = model.problem
    constraint = next(c for c in problem.constraints if c.name == curve.name)
    low, high = curve.mean - 2 * curve.std, curve.mean + 2 * curve.std
    x = Axis(labelled(curve.name, constraint.unit), *sorted((constraint.strictest, constraint.most_relaxed)))
    shown = curve.reachable if curve.reachable.any() else np.ones_like(curve.reachable)
    y = Axis.around(labelled(problem.objective.name, problem.objective.unit), np.concatenate([low[shown], high[shown]]))
    chart = Chart(x, y, f"{problem.objective.name} along {curve.name}")
    chart.band(curve.limits, low, high)
    designs = placed(model.evaluations, base, (curve.name,))
    chart.points(designs.limits[:, 0], designs.objective)
    for part, kind in ((~curve.reachable, "unreachable"), (curve.reachable, "line")):
        for run in _runs(part):
            chart.line(curve.limits[run], curve.mean[run], kind)
    return chart.drawing()


def _map(model: Model, base: Mapping[str, float], names: tuple[str, str]) -> Markup:
    problem = model.problem
    found = across(model, base, names, _DETAIL)
    axes, mean, good = [], found.mean, found.reachable
    for i, name in enumerate(names):
        c = next(c for c in problem.constraints if c.name == name)
        axes.append(Axis(labelled(name, c.unit), *sorted((c.strictest, c.most_relaxed))))
        if c.strictest > c.most_relaxed:
            mean, good = np.flip(mean, i), np.flip(good, i)
    chart = Chart(axes[0], axes[1], f"{problem.objective.name} over {names[0]} and {names[1]}")
    chart.cells(mean, good)
    return chart.drawing()


def _runs(part: NDArray[np.bool_]) -> list[slice]:
    """Return the stretches of neighbours that are true, each with the next point so that curves join."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], part.astype(int), [0]])))
    return [slice(int(a), int(b) + 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _proposal(problem: Problem, found: Recommendation) -> list[Markup]:
    rows = [(name, c.intent, c.before, c.after, c.effect) for name, c in found.changes.items()]
    goal = labelled(problem.objective.name, problem.objective.unit)
    goes = "better" if found.improvement >= 0 else "worse"
    words = (
        f"{goal} from {_objective(found.base)} to {_objective(found.answer)}, {goes} by "
        f"{number(abs(found.improvement))}; feasible with {percent(found.answer.probability_feasible)}."
    )
    columns = ("limit", "intent", "nominal", "proposed", "what this change alone buys")
    return [tag("p", words), table(columns, rows), *(tag("p", w, class_="warning") for w in found.answer.warnings)]


def _objective(answer: Answer) -> str:
    return estimated(answer.objective.mean, answer.objective.std)
