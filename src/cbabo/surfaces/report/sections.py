"""The sections of a report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbabo.answering.answers import Recommendation
from cbabo.answering.predict import Answers
from cbabo.answering.quality import LEVELS, leave_one_out, maxima_advice
from cbabo.answering.standings import standing
from cbabo.decisions.recommend import Intent
from cbabo.decisions.tradeoff import Curve, across, along, placed
from cbabo.display.markup import Markup, joined, table, tag
from cbabo.display.numbers import labelled, number
from cbabo.display.problems import problem_tables
from cbabo.display.units import units
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.problem import Problem
from cbabo.errors import InputError
from cbabo.model import Model
from cbabo.surfaces.explaining import sentences
from cbabo.surfaces.records import breaking_text
from cbabo.surfaces.report.charts import Axis, Chart

_DETAIL = 21


def problem_section(problem: Problem) -> Markup:
    """State the problem."""
    return joined(tag("h2", "Problem"), problem_tables(problem))


def _shown(value: float | str) -> float | str:
    """Return a number or a label as tables show it."""
    return value if isinstance(value, str) else float(value)


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
    rows: list[tuple[str, float | str, str]] = [(v.name, _shown(best.point[v.name]), v.unit) for v in problem.variables]
    rows += [(name, best.outputs[name], unit[name]) for name in problem.outputs]
    return joined(
        tag("h2", "Evaluations"),
        tag("p", f"{counts}. The best measured design that obeys the nominal limits is evaluation {best.id}:"),
        table(("name", "value", "unit"), rows),
        outside,
        failures,
    )


def answers_section(answers: Answers) -> Markup:
    """Answer the chosen thresholds, one table row each."""
    problem, model = answers.fitted.problem, answers.fitted
    shown = [answers.answer(i) for i in range(len(answers))]
    columns = [f"limit {name}" for name in problem.box.names] + [*problem.space.names]
    fails = len(model.evaluations.failed) > 0
    columns += [problem.objective.name, "±", "feasible", *(["simulator returns"] if fails else []), "status"]
    columns += ["active or violated"]
    rows = []
    for i, answer in enumerate(shown):
        slacks = -problem.box.violations(answers.moments[0][i : i + 1], answers.thresholds[i : i + 1])[0]
        names = [(c, output) for c in problem.constraints for output in c.output_names]
        stands = [
            f"{c.name} {kind}"
            for (c, output), slack in zip(names, slacks, strict=True)
            if (kind := standing(float(slack), answer.outputs[output].std, c.scale)) != "slack"
        ]
        chance = f"{100 * answer.probability_feasible:.1f} %"
        values = [*answer.thresholds.values(), *(_shown(v) for v in answer.point.values())]
        chances = [chance, f"{100 * answer.probability_success:.1f} %"] if fails else [chance]
        rows.append((*values, answer.objective.mean, answer.objective.std, *chances, answer.status, ", ".join(stands)))
    note = f"By the model of {len(model.evaluations.complete)} measured designs."
    return joined(tag("h2", "Answers"), tag("p", note), tag("div", table(columns, rows), class_="wide"))


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
    said = [tag("p", f"{text}.") for text in sentences(model.problem, found)]
    return joined(tag("h2", "What limits cost"), tag("p", "At the nominal limits, the other limits held:"), *said)


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
        (name, f"{100 * max(0.0, float(e)):.1f} %", f"{100 * float(c):.0f} %")
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
        f"{goal} from {number(found.base.objective.mean)} to {number(found.answer.objective.mean)}, {goes} by "
        f"{number(abs(found.improvement))}; feasible with {100 * found.answer.probability_feasible:.1f} %."
    )
    columns = ("limit", "intent", "nominal", "proposed", "what this change alone buys")
    return [tag("p", words), table(columns, rows), *(tag("p", w, class_="warning") for w in found.answer.warnings)]
