"""A study as an HTML table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cbabo.display.markup import Written, table, tag
from cbabo.display.numbers import estimated, labelled
from cbabo.display.problems import framed, value_of
from cbabo.display.units import units

if TYPE_CHECKING:
    from cbabo.study.study import Study


def study_html(study: Study) -> str:
    """Return a study for a notebook: how far it is, and its best design at the nominal limits."""
    evaluations = study.evaluations
    problem = evaluations.problem
    rows = [
        ("problem", f"{problem.name}: {len(problem.variables)} variables, {len(problem.box.names)} movable limits"),
        ("stored in", study.storage_label),
        ("evaluations", f"{len(evaluations.complete)} measured, {len(evaluations.failed)} failed"),
        ("pending", f"{len(evaluations.running)}"),
        ("method, seed", f"{study.settings.method}, {study.seed}"),
        ("optimised by", study.optimiser or "no process now"),
        ("decisions, audits", f"{len(study.decisions)}, {len(study.audits)}"),
    ]
    head = [tag("p", tag("b", f"Study {study.name}")), table(("", ""), rows)]
    best = evaluations.best(problem.box.nominal)
    if best is None:
        return framed(*head, tag("p", "No measured design obeys the nominal limits."))
    unit = units(problem)
    cells: list[tuple[str, str]] = [
        (labelled(v.name, v.unit), value_of(v, best.point[v.name])) for v in problem.variables
    ]
    cells += [
        (labelled(name, unit[name]), Written(estimated(best.outputs[name], best.sem.get(name, 0.0))))
        for name in problem.outputs
    ]
    said = f"The best measured design that obeys the nominal limits (evaluation {best.id}):"
    return framed(*head, tag("p", said), table(("", "value"), cells))
