"""Commands that write a study to a file: export explorer, report, model and csv."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cbabo.adapters.optuna import write_optuna
from cbabo.errors import InputError
from cbabo.storage.urls import hide_passwords
from cbabo.study.modelcache import cached_model, keep_model, kept_convergence
from cbabo.surfaces.cli.options import (
    LoosenOption,
    SetOption,
    StudyArgument,
    TightenOption,
    open_study,
    read_intents,
    read_limits,
)
from cbabo.surfaces.records import audit_text, csv_text

_SQLITE = b"SQLite format 3\0"
_File = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    export = typer.Typer(help="Write a study's content to a file.", no_args_is_help=True)
    export.command("explorer")(export_explorer)
    export.command("report")(export_report)
    export.command("model")(export_model)
    export.command("csv")(export_csv)
    export.command("optuna")(export_optuna)
    app.add_typer(export, name="export")


def export_explorer(study: StudyArgument, file: _File, changes: SetOption = None) -> None:
    """Write the explorer as one HTML file that needs neither server nor network."""
    from cbabo.surfaces.document import document
    from cbabo.surfaces.page import single_file

    opened = open_study(study, changes)
    model = cached_model(opened)
    page = single_file(document(model, opened.name, kept_convergence(opened), audit_text(opened)))
    keep_model(opened, model)
    _write(file, study, lambda: file.write_text(page, encoding="utf-8", errors="backslashreplace"))
    typer.echo(f"Wrote the explorer of {opened.name} to {file} ({file.stat().st_size / 1e6:.1f} MB).")
    typer.echo(f"Open it in any browser: {file.absolute().as_uri()}")


def export_optuna(
    study: StudyArgument,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="optuna://STORAGE::NAME, as optuna://sqlite:///trials.db::truss.")
    ],
    changes: SetOption = None,
) -> None:
    """Write all evaluations as trials of a new Optuna study: raw outputs as user attributes, slacks at the nominal limits."""
    opened = open_study(study, changes)
    count = write_optuna(opened, address)
    typer.echo(f"Wrote {count} evaluations as trials to {hide_passwords(address)}.")


def export_report(
    study: StudyArgument,
    file: _File,
    limits: Annotated[
        Path | None,
        typer.Option("--limits", metavar="CSV", help="Limits to answer, one row each; some of the box if left out."),
    ] = None,
    tighten: TightenOption = None,
    loosen: LoosenOption = None,
    changes: SetOption = None,
) -> None:
    """Write a report: problem, evaluations, answers, trade-offs, recommendation, quality, versions."""
    from cbabo.surfaces.report import report

    opened = open_study(study, changes)
    thresholds = None if limits is None else read_limits(limits)
    page = report(opened, thresholds, read_intents(tighten, loosen) if tighten or loosen else None)
    _write(file, study, lambda: file.write_text(page, encoding="utf-8", errors="backslashreplace"))
    typer.echo(f"Wrote the report of {opened.name} to {file}.")


def export_model(study: StudyArgument, file: _File, changes: SetOption = None) -> None:
    """Write the model; Model.load reads it."""
    opened = open_study(study, changes)
    model = cached_model(opened)
    _write(file, study, lambda: model.save(file))
    keep_model(opened, model)
    typer.echo(f"Wrote the model of {len(model.evaluations.complete)} measured designs to {file}.")


def export_csv(study: StudyArgument, file: _File, changes: SetOption = None) -> None:
    """Write all evaluations, failed ones included."""
    frame = open_study(study, changes).evaluations.to_frame()
    _write(file, study, lambda: file.write_text(csv_text(frame), encoding="utf-8", newline=""))
    typer.echo(f"Wrote {len(frame)} evaluations to {file}.")


def _write(file: Path, study: str, write: Callable[[], object]) -> None:
    """Write a file, but never over a study."""
    try:
        if file.is_file() and _is_study(file, study):
            raise InputError(f"{file} is a study and is left as it is; choose another file")
        write()
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror or error}); choose another place") from error


def _is_study(file: Path, study: str) -> bool:
    with file.open("rb") as content:
        return content.read(len(_SQLITE)) == _SQLITE or (Path(study).is_file() and file.samefile(study))
