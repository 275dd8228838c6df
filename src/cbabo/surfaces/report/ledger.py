"""The sections of a report about what was decided, and about audits of the model."""

from __future__ import annotations

from cbabo.display.markup import Markup, joined, table, tag
from cbabo.display.numbers import estimated, number, percent
from cbabo.study.ledger import Decision
from cbabo.study.study import Study

_COLUMNS = (
    *("entry", "made (UTC)", "by", "kind", "limits", "design", "objective", "feasible", "status"),
    *("measured", "data", "note"),
)


def ledger_section(study: Study) -> Markup:
    """List the decisions and proposals, and what the audits found; nothing where there are none."""
    decisions, audits = study.decisions, study.audits
    parts: list[Markup] = []
    if len(audits):
        rows = [(audit.number, audit.made[:16].replace("T", " "), audit.sentence()) for audit in audits]
        parts += [tag("h2", "Audits"), table(("entry", "made (UTC)", "claimed and found"), rows)]
        parts += [tag("p", f"{text}.") for text in audits[-1].where]
    if len(decisions):
        cells = [_row(decision) for decision in decisions]
        parts += [tag("h2", "Decisions"), table(_COLUMNS, cells)]
    return joined(*parts)


def _row(decision: Decision) -> tuple[str | float | int, ...]:
    name = decision.objective_name
    intents = decision.intents
    return (
        decision.number,
        f"{decision.made:%Y-%m-%d %H:%M}",
        decision.by,
        decision.kind,
        ", ".join(
            f"{limit} {number(value)}{f' ({intents[limit]})' if limit in intents else ''}"
            for limit, value in decision.thresholds.items()
        ),
        ", ".join(f"{variable} {number(value)}" for variable, value in decision.point.items()),
        f"{name} {estimated(decision.objective.mean, decision.objective.std)}",
        percent(decision.probability_feasible),
        decision.status,
        "" if decision.evaluation is None else f"{number(decision.measured[name])} (evaluation {decision.evaluation})",
        f"{decision.evaluations} measured, {decision.data}",
        decision.note,
    )
