"""The main job end to end, on a problem that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from cbabo.cli.printing import print_frame
from cbabo.cli.progress import watching
from cbabo.errors import InputError
from cbabo.evaluations import Evaluations
from cbabo.study import Study

_BUDGET = 200
_ROWS = 6


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(demo)


def demo(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to leave the study.")] = Path("demo"),
) -> None:
    """Run a study of a three-bar truss and show what it found for several limits; running again resumes."""
    from cbabo import problems  # the catalogue takes a while to load, and no other command needs it

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no folder can be made there ({error.strerror}); choose another place") from error
    shipped = problems.get("three_truss")
    study = Study.create(shipped.problem, f"sqlite:///{folder.absolute()}/three_truss.db", "three_truss")
    with watching(study, _BUDGET, quiet=False) as on_result:
        study.run(shipped.evaluate, budget=_BUDGET, on_result=on_result)
    frame = best_along_the_diagonal(study.evaluations)
    print_frame(frame, "table", "three-bar truss: the best evaluated design as all three limits are relaxed")
    table = folder / "evaluations.csv"
    study.evaluations.to_frame().to_csv(table, index=False)
    typer.echo(f"The study is in {folder / 'three_truss.db'}, all {len(study.evaluations)} evaluations are in {table}.")
    typer.echo(f"Look again: cbabo status sqlite:///{folder / 'three_truss.db'}::three_truss")


def best_along_the_diagonal(evaluations: Evaluations) -> pd.DataFrame:
    """Return the best evaluated design for limits from strictest to most relaxed."""
    box = evaluations.problem.box
    rows = []
    for level in np.linspace(0.0, 1.0, _ROWS):
        thresholds = box.named(box.from_theta(np.full((1, len(box.names)), level))[0])
        best = evaluations.best(thresholds)
        found = {} if best is None else {**best.point, **best.outputs}
        rows.append({f"limit {name}": value for name, value in thresholds.items()} | found)
    return pd.DataFrame(rows)
