"""Commands of the benchmark: plan, run, table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from cbabo.cli.options import FormatOption
from cbabo.cli.printing import print_frame
from cbabo.errors import InputError

_FOLDER = Path("benchmarks/campaigns")
CampaignArgument = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="A campaign's YAML file.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    bench = typer.Typer(help="Run the paper's evaluation, and ours.", no_args_is_help=True)
    bench.command()(plan)
    bench.command()(run)
    bench.command()(table)
    app.add_typer(bench, name="bench")


def plan(campaign: CampaignArgument) -> None:
    """Say what a campaign would compute."""
    from cbabo.bench.campaign import Campaign

    read = Campaign.read(campaign)
    pending = read.pending()
    typer.echo(f"{read.name}: {len(read.units)} units, {len(pending)} to do, {34 * len(pending)} iterations.")


def run(
    campaign: CampaignArgument,
    workers: Annotated[int, typer.Option(min=1, help="Processes, one per core.")] = 2,
) -> None:
    """Compute what is missing; running again resumes."""
    from cbabo.bench.campaign import Campaign
    from cbabo.bench.campaign import run as compute

    compute(Campaign.read(campaign), workers, lambda line: typer.echo(line, err=True))


def table(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which table.")],
    folder: Annotated[Path, typer.Option(help="Where the campaigns' CSV files are.")] = _FOLDER,
    form: FormatOption = "table",
) -> None:
    """Print a table from a campaign's results, beside the paper's numbers."""
    from cbabo.bench.campaign import code_version, rows
    from cbabo.bench.tables import TABLES

    if name not in TABLES:
        raise InputError(f"bench table: unknown table {name!r}; expected one of {', '.join(TABLES)}")
    found = pd.DataFrame([row for path in sorted(folder.glob("*.csv")) for row in rows(path)])
    if found.empty:
        raise InputError(f"{folder}: no results there; compute them by: cbabo bench run {_FOLDER}/{name}.yaml")
    latest = found.drop_duplicates(["problem", "method", "seed", "n", "metric"], keep="last")
    if set(latest["code"]) != {code_version()}:
        sys.stderr.write("note: some rows were computed by an earlier version of the engine\n")
    print_frame(TABLES[name](latest), form, name)
