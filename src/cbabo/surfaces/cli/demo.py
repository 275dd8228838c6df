"""A complete study, from run to explorer, of a problem that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd
import typer

from cbabo.errors import InputError
from cbabo.study.study import Study
from cbabo.surfaces.cli.printing import print_frame
from cbabo.surfaces.cli.progress import watching
from cbabo.surfaces.records import csv_text

if TYPE_CHECKING:
    from cbabo.model import Model

_BUDGET = 200
_ROWS = 6


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(demo)


def demo(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to leave the study.")] = Path("demo"),
) -> None:
    """Run a study of a three-bar truss, answer several limits from it, write its explorer; running again resumes."""
    from cbabo import problems  # these take a while to load, and few commands need them
    from cbabo.surfaces.document import document
    from cbabo.surfaces.page import single_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no folder can be made there ({error.strerror}); choose another place") from error
    shipped = problems.get("three_truss")
    study = Study.create(shipped.problem, f"sqlite:///{folder.absolute()}/three_truss.db", "three_truss")
    with watching(study, _BUDGET, (), quiet=False) as on_result:
        study.run(shipped.evaluate, budget=_BUDGET, on_result=on_result)
    print_frame(answers(study.model()), "table", "three-bar truss: predicted designs as all three limits are relaxed")
    limits = dict.fromkeys(study.problem.box.names, 2.0)
    refined = study.refine(limits, shipped.evaluate)
    obeyed = "obeyed" if refined.feasible else "not obeyed"
    typer.echo(
        f"Refined with two more simulations at limits of 2: f = {refined.objective.mean:.6g}, measured, limits {obeyed}.\n"
    )
    table, page, url = (
        folder / "evaluations.csv",
        folder / "explorer.html",
        f"sqlite:///{folder}/three_truss.db::three_truss",
    )
    table.write_text(csv_text(study.evaluations.to_frame()), encoding="utf-8", newline="")
    page.write_text(single_file(document(study.model(), study.name)), encoding="utf-8")
    typer.echo(f"The study is in {folder / 'three_truss.db'}, all {len(study.evaluations)} evaluations are in {table}.")
    typer.echo(f"Look again: cbabo status {url}")
    typer.echo(f"Explore it, and verify by hand what you find: cbabo serve {url}")
    typer.echo(f"Explore it without a server, open in any browser: {page.absolute().as_uri()}")


def answers(model: Model) -> pd.DataFrame:
    """Return the model's answers for limits from strictest to most relaxed."""
    box = model.problem.box
    theta = np.tile(np.linspace(0.0, 1.0, _ROWS)[:, None], (1, len(box.names)))
    return model.predict_many(box.from_theta(theta)).to_frame()
