"""The report of a study: one HTML file without scripts, with the problem, evaluations, answers and model quality."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cbabo.decisions.recommend import Intent
from cbabo.display.markup import Markup, joined, table, tag
from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.problem import Problem
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.versions import versions
from cbabo.study.modelcache import cached_model
from cbabo.study.study import Study
from cbabo.surfaces.report.answers import answers_section
from cbabo.surfaces.report.ledger import ledger_section
from cbabo.surfaces.report.sections import (
    evaluations_section,
    price_section,
    problem_section,
    quality_section,
    recommendation_section,
    tradeoff_section,
)

_STEPS = 5
_STYLE = """
body { font: 13px/1.45 "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #1b2430; max-width: 1080px; margin: 24px auto;
  padding: 0 16px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
h1 { font-size: 20px; } h2 { font-size: 15px; border-top: 1px solid #d5dae1; padding-top: 10px; margin-top: 22px; }
table { border-collapse: collapse; margin: 8px 0; display: block; max-width: 100%; overflow-x: auto; }
td, th { padding: 2px 14px 2px 0; border-bottom: 1px solid #e8ebef; text-align: left; vertical-align: baseline;
  overflow-wrap: normal; }
th { font-weight: 400; color: #5b6675; } .number { text-align: right; white-space: nowrap; } .warning { color: #8a5a00; }
.answers thead th { color: #1b2430; font-weight: 600; }
.answers tbody th { position: sticky; left: 0; background: #fff;
  min-width: 6.5em; max-width: 16em; overflow-wrap: anywhere; }
.answers .group th { color: #1b2430; font-weight: 600; padding-top: 10px; }
@media (max-width: 600px) { body { font-size: 12px; } td, th { padding-right: 9px; } svg { max-width: 100%; height: auto; } }
@media print { body { font-size: 10px; max-width: none; margin: 0; padding: 0; } table { display: table; overflow: visible; }
  tr { break-inside: avoid; } h2 { break-after: avoid; } .answers td, .answers th { padding-right: 9px; } }
.charts { display: flex; flex-wrap: wrap; gap: 12px; } svg { break-inside: avoid; } svg text { font-size: 10px; fill: #5b6675; }
svg text.label { font-size: 11px; fill: #1b2430; } .grid { stroke: #e8ebef; } .frame { stroke: #5b6675; fill: none; }
.line { stroke: #1f5fa8; stroke-width: 1.8; fill: none; } .unreachable { stroke: #b3261e; stroke-dasharray: 4 3; fill: none; }
.band { fill: #c7daf0; } .dot { fill: #5b6675; fill-opacity: 0.7; }
.diagonal { stroke: #5b6675; stroke-dasharray: 4 3; fill: none; }
.cell { fill: #184e8c; } .not { stroke: #9aa3af; stroke-width: 0.8; }
"""


def report(study: Study, thresholds: ThresholdsLike | None = None, intents: Mapping[str, Intent] | None = None) -> str:
    """Return the report as HTML.

    thresholds: the limits to answer, else the nominal ones and some from strictest to most relaxed; intents: of the
    recommendation from the nominal limits, else every limit that can is loosened.
    """
    model, problem = cached_model(study), study.problem
    rows, titles = _chosen(problem) if thresholds is None else _stated(problem, thresholds)
    nominal = problem.box.nominal
    body = joined(
        tag("h1", f"{study.name}: report"),
        problem_section(problem),
        evaluations_section(model.evaluations),
        answers_section(model, rows, titles),
        joined(*(tag("p", note, class_="warning") for note in model.notes)),
        tradeoff_section(model, nominal),
        price_section(model, nominal),
        recommendation_section(model, nominal, _loosened(problem) if intents is None else intents),
        quality_section(model),
        ledger_section(study),
        _origin(study),
    )
    view = Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">')
    policy = tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'")
    head = tag("head", view, _open(policy), tag("title", f"{study.name}: report"), _style())
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _chosen(problem: Problem) -> tuple[FloatArray, list[str]]:
    """Return the nominal limits, then some from strictest to most relaxed, with the titles of their answers."""
    shares = np.linspace(0.0, 1.0, _STEPS)
    theta = np.tile(shares[:, None], (1, len(problem.box.names)))
    between = [f"{100 * share:.0f} % relaxed" for share in shares[1:-1]]
    rows = np.vstack([problem.box.row(problem.box.nominal), problem.box.from_theta(theta)])
    return rows, ["nominal", "strictest", *between, "most relaxed"]


def _stated(problem: Problem, thresholds: ThresholdsLike) -> tuple[FloatArray, list[str]]:
    """Return limits that were asked for, numbered."""
    rows = problem.box.array(thresholds)
    return rows, [str(i) for i in range(1, len(rows) + 1)]


def _loosened(problem: Problem) -> dict[str, Intent]:
    """Return intents that loosen what can be loosened from the nominal limits; if nothing can, everything is tightened."""
    nominal = problem.box.nominal
    can = {c.name: nominal[c.name] != c.most_relaxed for c in problem.box.movable}
    if not any(can.values()):
        return dict.fromkeys(can, "tighten")
    return {name: "loosen" if may else "lock" for name, may in can.items()}


def _origin(study: Study) -> Markup:
    """State the versions and settings behind the report."""
    known = [("seed", str(study.seed)), ("problem", study.problem.digest)]
    made = [(name, version, study.versions.get(name, "")) for name, version in versions().items()]
    settings = [(name, str(value)) for name, value in study.settings.model_dump().items()]
    return joined(
        tag("h2", "Versions and settings"),
        table(("", ""), known),
        table(("package", "this report", "the study's beginning"), made),
        table(("setting", "value"), settings),
    )


def _open(element: Markup) -> Markup:
    """Return a void element, which has no end tag."""
    return Markup(element.removesuffix("</meta>"))


def _style() -> Markup:
    return Markup(f"<style>{_STYLE}</style>")
