"""Commands of the benchmark: plan, run, table, figure."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd
import typer

from cbabo.errors import InputError, MissingExtraError
from cbabo.surfaces.cli.cluster import connected
from cbabo.surfaces.cli.options import FormatOption, interrupted
from cbabo.surfaces.cli.printing import print_frame
from cbabo.surfaces.cli.progress import clock

if TYPE_CHECKING:
    from cbabo.bench.campaign import Progress, Row

_FOLDER = Path("benchmarks/campaigns")
CampaignArgument = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="A campaign's YAML file.")]
FolderOption = Annotated[Path, typer.Option(help="Where the campaigns' CSV files are.")]
OursOption = Annotated[str, typer.Option(metavar="METHOD", help="The method that is ours: paper or default.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    bench = typer.Typer(help="Run the paper's evaluation, and ours.", no_args_is_help=True)
    bench.command()(plan)
    bench.command()(run)
    bench.command()(table)
    bench.command()(figure)
    app.add_typer(bench, name="bench")


def plan(campaign: CampaignArgument, form: FormatOption = "table") -> None:
    """Show what a campaign would compute, and an estimate of its time."""
    with _extra():
        from cbabo.bench.campaign import ROUGH_SECONDS, Campaign, Estimates
        from cbabo.bench.methods import METHODS

    read = Campaign.read(campaign)
    pending = set(read.pending())
    estimates = Estimates.of(read)
    lines = []
    for name in dict.fromkeys(unit.method for unit in read.units):
        units = [unit for unit in read.units if unit.method == name]
        todo = [unit for unit in units if unit in pending]
        lines.append(
            {
                "method": name,
                "runs": len(units),
                "to do": len(todo),
                "iterations": METHODS[name].iterations * len(todo),
                "core-hours": round(sum(map(estimates.seconds, todo)) / 3600.0, 3),
                "longest unit [s]": round(max(map(estimates.seconds, units))),
                "measured": "yes" if name in estimates.by_method else f"no: {ROUGH_SECONDS:g} s a run",
            }
        )
    table = pd.DataFrame(lines)
    print_frame(table, form)
    if form == "table":
        todo_count, iterations, hours = (table[column].sum() for column in ("to do", "iterations", "core-hours"))
        typer.echo(
            f"{read.name}: {len(read.units)} runs, {todo_count} to do, {iterations} iterations, about {hours:.2f} core-hours."
        )


def run(
    campaign: CampaignArgument,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core if left out.")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Compute on this Dask cluster.")] = None,
) -> None:
    """Compute what is missing; Ctrl-C stops, the same command resumes."""
    with _extra():
        from cbabo.bench.campaign import Campaign
        from cbabo.bench.campaign import run as compute

    if workers is not None and dask is not None:
        raise InputError("bench run: expected --workers or --dask, got both; a cluster has workers of its own")
    read = Campaign.read(campaign)
    try:
        with connected(dask) as executor:
            compute(read, workers or os.cpu_count() or 1, _tell, executor)
    except KeyboardInterrupt:
        raise interrupted("every finished unit is stored") from None
    typer.echo(f"{read.name}: all {len(read.units)} units are in {read.results}.")


def table(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which table.")],
    folder: FolderOption = _FOLDER,
    ours: OursOption = "paper",
    form: FormatOption = "table",
) -> None:
    """Print a table from the campaigns' results, beside the paper's numbers."""
    with _extra():
        from cbabo.bench.tables import TABLES

    if name not in TABLES:
        raise InputError(f"bench table: unknown table {name!r}; expected one of {', '.join(TABLES)}")
    print_frame(TABLES[name](_rows(folder), ours), form, name)


def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which figure.")],
    file: Annotated[
        Path | None, typer.Option(help="PNG, SVG or PDF; NAME.png in the current folder if left out.")
    ] = None,
    folder: FolderOption = _FOLDER,
    ours: OursOption = "paper",
) -> None:
    """Draw a figure from the campaigns' results."""
    with _extra():
        from cbabo.bench.figures import FIGURES

    if name not in FIGURES:
        raise InputError(f"bench figure: unknown figure {name!r}; expected one of {', '.join(FIGURES)}")
    path = Path(f"{name}.png") if file is None else file
    FIGURES[name](_rows(folder), path, ours)
    typer.echo(f"Drew {path}.")


def _rows(folder: Path) -> list[Row]:
    from cbabo.bench.campaign import read_rows

    found = read_rows(sorted(folder.glob("*.csv")))
    if not found:
        raise InputError(f"{folder}: no results there; compute them by: cbabo bench run {_FOLDER}/smoke.yaml")
    old = sorted({row.method for row in found if not row.current})
    if old:
        sys.stderr.write(f"note: rows of an earlier revision are among these: {', '.join(old)}\n")
    return found


def _tell(progress: Progress) -> None:
    unit = progress.unit
    outcome = f"{progress.seconds:.0f} s" if progress.failure is None else f"failed: {progress.failure}"
    sys.stderr.write(
        f"{progress.done}/{progress.total} {unit.problem}, {unit.method}, seed {unit.seed}, N {unit.n}: {outcome}; "
        f"about {clock(progress.left)} left\n"
    )


@contextmanager
def _extra() -> Iterator[None]:
    """Say how to install what the benchmark needs beyond the package itself."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cbabo"):
            raise
        raise MissingExtraError(
            f"bench needs {error.name}, which is missing; install it by: pip install 'cbabo[bench]'"
        ) from error
