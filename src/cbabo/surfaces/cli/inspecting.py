"""Commands about what a study holds: status, forget, retry, amend."""

from __future__ import annotations

from typing import Annotated, Any

import pandas as pd
import typer

from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.problem import Problem
from cbabo.domain.reasons import reason_key
from cbabo.errors import InputError
from cbabo.storage.urls import hide_passwords
from cbabo.study.modelcache import kept_advice
from cbabo.study.study import Study
from cbabo.surfaces.cli.options import (
    Format,
    FormatOption,
    SetOption,
    StudyArgument,
    names_database,
    open_study,
    pairs,
    read_file,
    stored_study,
)
from cbabo.surfaces.cli.printing import print_facts, print_frame, print_json, print_log
from cbabo.surfaces.records import breaking_text, status_record

_ROWS = 10
_IDS = 6
_REASON_CHARACTERS = 300
_ONLY_SOME = ("excluded", "damaged", "to_run_again", "outside_bounds", "effort", "convergence", "last_audit")
"""Counts that are shown only where there are some."""


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(status)
    app.command()(forget)
    app.command()(retry)
    app.command()(amend)


def status(
    study: StudyArgument,
    form: FormatOption = "table",
    logs: Annotated[bool, typer.Option("--logs", help="Show the log tail of every failure.")] = False,
    changes: SetOption = None,
) -> None:
    """Show the progress of a study, its best design at the nominal limits, and what failed why."""
    opened = open_study(study, changes)
    print_summary(opened, form)
    if logs and form == "table":
        for row in opened.evaluations.failed:
            print_log(f"evaluation {row.id}: {row.failure}", row.log or "(it left no log)")


def forget(
    study: StudyArgument,
    ids: Annotated[list[int], typer.Argument(metavar="ID...", help="The evaluations to exclude.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the record.")] = "no reason given",
    undo: Annotated[bool, typer.Option("--undo", help="Include them again.")] = False,
    changes: SetOption = None,
) -> None:
    """Exclude evaluations, so that nothing is learned from them; they stay in the record and count against the budget."""
    open_study(study, changes).forget(ids, reason, undo=undo)
    what = "evaluation" if len(ids) == 1 else "evaluations"
    typer.echo(f"{'Included' if undo else 'Excluded'} {what} {', '.join(map(str, ids))}.")


def retry(
    study: StudyArgument,
    ids: Annotated[list[int] | None, typer.Argument(metavar="[ID...]", help="The evaluations to make again.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All that failed and are not excluded.")] = False,
    changes: SetOption = None,
) -> None:
    """Have failed evaluations made again by the next run; the failures stay in the record, and the budget counts them once."""
    if bool(ids) == failed:
        raise InputError(f"retry: expected ids of evaluations or --failed, got {'both' if ids else 'neither'}")
    made = open_study(study, changes).retry(None if failed else ids)
    if not made:
        typer.echo("No evaluation has failed; there is nothing to run again.")
        return
    what = "evaluation" if len(made) == 1 else "evaluations"
    numbers = ", ".join(str(trial.id) for trial in made)
    typer.echo(f"{len(made)} {what} will be run again, as {what} {numbers}. Next: cbabo run {hide_passwords(study)}")


def amend(
    study: StudyArgument,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The file that states the new problem; STUDY if left out.")
    ] = None,
    value: Annotated[
        list[str] | None, typer.Option("--value", metavar="NAME=VALUE", help="What a new variable was so far.")
    ] = None,
    changes: SetOption = None,
) -> None:
    """State the problem of a study anew: other limits, bounds, units or variables; everything that was measured is kept."""
    source = study if file is None else file
    if names_database(source):
        raise InputError("amend: expected a FILE with the new problem after the study")
    given = {name: _number(name, text) for name, text in pairs(value, "--value").items()}
    stated = read_file(source, changes)
    opened = stored_study(study, None if file is not None else changes)
    found = opened.amend(stated.problem, given)
    for change in found:
        typer.echo(change)
    kept = len(opened.evaluations)
    typer.echo(f"Amended; all {kept} evaluations are kept." if found else "Nothing differs; the study is as it was.")


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"amend: the value of {name} must be a number, got {text!r}") from None


def print_summary(study: Study, form: Format) -> None:
    """Print the progress of a study: everything for machines, for people what fits on a page."""
    evaluations = study.evaluations
    summary = status_record(study, evaluations)
    if form == "json":
        print_json(summary)
        return
    flat = {name: value for name, value in summary.items() if not isinstance(value, list | dict)}
    if form == "csv":
        print_frame(pd.DataFrame([flat]), "csv")
        return
    limits = "; ".join(limit_texts(study.problem).values())
    facts = {
        name.replace("_", " "): value
        for name, value in flat.items()
        if not name.startswith("best_") and (value or name not in _ONLY_SOME)
    }
    print_facts({**facts, "nominal limits": limits})
    best = evaluations.best(study.problem.box.nominal)
    if best is None:
        typer.echo("\nNo measured design obeys the nominal limits yet.")
    else:
        print_frame(_design(evaluations.problem, best), "table", f"best at the nominal limits: evaluation {best.id}")
    if summary["convergence"] is not None:
        typer.echo(f"\nConvergence: {summary['convergence']['text']}.")
    if outside := breaking_text(evaluations):
        typer.echo(f"\n{outside}")
    for advice in kept_advice(study):
        typer.echo(f"\nAdvice: {advice}.")
    waiting: dict[str, list[dict[str, Any]]] = {}
    for row in summary["pending"]:
        title = row["standing"] if row["standing"].endswith("again") else "running, or asked for and not yet told"
        waiting.setdefault(title, []).append({"id": row["id"], **row["point"]})
    for title, rows in waiting.items():
        print_frame(pd.DataFrame(rows[:_ROWS]), "table", _title(title, len(rows)))
    if evaluations.failed:
        print_frame(
            _reasons(evaluations.failed),
            "table",
            "failures, the latest first; cbabo status --logs shows what they printed",
        )
    for row in summary["amendments"]:
        changes = "; ".join(row["changes"])
        typer.echo(f"\nAmended {row['amended']}, after evaluation {row['after_evaluation']}: {changes}.")
    for name, title in (
        ("exclusions", "excluded; cbabo forget --undo includes them again"),
        ("damages", "damaged and left out"),
    ):
        if summary[name]:
            frame = pd.DataFrame(summary[name][:_ROWS]).astype({"id": "Int64"})
            more = "" if len(summary[name]) <= _ROWS else f": the first {_ROWS} of {len(summary[name])}"
            print_frame(frame, "table", f"{title}{more}")


def limit_texts(problem: Problem) -> dict[str, str]:
    """Write every limit at its nominal value, as "stress <= 5 MPa", by the constraint's name."""
    nominal = problem.box.nominal
    return {
        c.name: f"{c.name} {c.sense} {nominal.get(c.name, c.limit):g} {c.unit}".rstrip() for c in problem.constraints
    }


def _design(problem: Problem, best: Evaluation) -> pd.DataFrame:
    rows: list[dict[str, Any]] = [
        {"name": v.name, "value": best.point[v.name], "unit": v.unit, "limit": ""} for v in problem.variables
    ]
    units = {name: c.unit for c in problem.constraints for name in c.output_names}
    units[problem.objective.name] = problem.objective.unit
    limits = limit_texts(problem)
    for name in problem.outputs:
        asked = [limits[c.name] for c in problem.constraints if name in c.output_names]
        if name == problem.objective.name:
            asked.insert(0, problem.objective.direction)
        rows.append({"name": name, "value": best.outputs[name], "unit": units.get(name, ""), "limit": "; ".join(asked)})
    return pd.DataFrame(rows)


def _reasons(failed: Evaluations) -> pd.DataFrame:
    """Group failures by their reason, which may differ in numbers and paths, the latest first."""
    ids: dict[str, list[int]] = {}
    latest: dict[str, str] = {}
    for row in reversed(failed.rows):
        reason = row.failure or ""
        latest.setdefault(reason_key(reason), reason)
        ids.setdefault(reason_key(reason), []).append(row.id)
    rows = []
    for key, numbers in list(ids.items())[:_ROWS]:
        reason = latest[key]
        short = reason if len(reason) <= _REASON_CHARACTERS else f"{reason[:_REASON_CHARACTERS]}…"
        listed = ", ".join(map(str, numbers[:_IDS])) + (", …" if len(numbers) > _IDS else "")
        rows.append({"times": str(len(numbers)), "ids": listed, "reason": short})
    if len(ids) > _ROWS:
        rows.append({"times": "", "ids": "", "reason": f"… and {len(ids) - _ROWS} more reasons, see --format json"})
    return pd.DataFrame(rows)


def _title(text: str, count: int) -> str:
    return text if count <= _ROWS else f"{text}: the first {_ROWS} of {count}"
