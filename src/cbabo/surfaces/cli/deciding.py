"""Commands about what was decided, and whether to trust the model: decide, decisions, audit."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
import typer

from cbabo.study.modelcache import cached_model, keep_model
from cbabo.surfaces.cli.answering import AtOption, read_thresholds
from cbabo.surfaces.cli.options import (
    FormatOption,
    LoosenOption,
    StudyArgument,
    TightenOption,
    find_simulator,
    open_study,
    read_intents,
)
from cbabo.surfaces.cli.printing import print_frame, print_json, simulator_output
from cbabo.surfaces.cli.showing import show_record
from cbabo.surfaces.deciding_records import audit_record, decision_record

ByOption = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who; this machine's user unless given.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(decide)
    app.command()(decisions)
    app.command()(audit)


def decide(
    study: StudyArgument,
    at: AtOption = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Why, or with whom.")] = "",
    by: ByOption = None,
    tighten: TightenOption = None,
    loosen: LoosenOption = None,
    proposal: Annotated[bool, typer.Option("--proposal", help="The limits are proposed, not agreed on.")] = False,
    form: FormatOption = "table",
) -> None:
    """Write agreed limits into the ledger, with their answer and the state of the data; entries are never changed."""
    opened = open_study(study)
    limits, intents = read_thresholds(opened.problem, at), dict(read_intents(tighten, loosen))
    model = cached_model(opened)
    made = opened.decide(limits, note, by, intents, proposal=proposal, model=model)
    keep_model(opened, model)
    show_record(decision_record(made), form)


def decisions(study: StudyArgument, form: FormatOption = "table") -> None:
    """List what was decided and proposed: who, when, limits, design, stated probability and measured value."""
    found = open_study(study).decisions
    if form == "json":
        print_json([decision_record(decision) for decision in found])
    elif form == "csv":
        print_frame(found.to_frame(), "csv")
    elif not len(found):
        typer.echo("Nothing was decided yet; cbabo decide writes an entry.")
    else:
        rows = [
            {
                "number": str(d.number),
                "made": d.made.isoformat(" ", "minutes").removesuffix("+00:00"),
                "by": d.by,
                "kind": d.kind,
                "limits": ", ".join(f"{name} {value:.4g}" for name, value in d.thresholds.items()),
                d.objective_name: f"{d.objective.mean:.6g}",
                "feasible": f"{100 * d.probability_feasible:.1f} %",
                "status": d.status,
                "measured": "" if d.evaluation is None else f"{d.measured[d.objective_name]:.6g}",
                "note": d.note,
            }
            for d in found
        ]
        print_frame(pd.DataFrame(rows).fillna(""), "table")


def audit(
    study: StudyArgument,
    evaluations: Annotated[int, typer.Option(min=1, help="Simulations to spend, one for each fresh threshold.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="Evaluations at a time, each in a process of its own.")] = 1,
    by: ByOption = None,
    evaluator: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="The simulator, where STUDY is URL::name.")
    ] = None,
    form: FormatOption = "table",
) -> None:
    """Test the model's claims: measure its answers to fresh random limits, and compare claimed with found shares.

    The exit code is 1 where the stated probabilities are rejected at 95 %.
    """
    opened, simulator = open_study(study), find_simulator("audit", study, evaluator)
    assert simulator is not None
    with simulator_output():
        found = opened.audit(
            simulator.evaluate, evaluations, workers, timeout=simulator.timeout, retries=simulator.retries, by=by
        )
    show_record(audit_record(found), form)
    if found.rejected:
        typer.echo(f"cbabo: {found.sentence()}", err=True)
        raise typer.Exit(1)
