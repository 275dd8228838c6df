"""A complete study of an engineering problem, from run to explorer, and what it says about the limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd
import typer

from cbabo.errors import InputError
from cbabo.surfaces.cli.files import write_example
from cbabo.surfaces.cli.printing import print_frame, print_paragraph, simulator_output
from cbabo.surfaces.cli.progress import watching
from cbabo.surfaces.records import csv_text
from cbabo.surfaces.studyfile import StudyFile

if TYPE_CHECKING:
    from cbabo.model import Model

_BUDGET = 200
_ROWS = 6
_TASK = """\
A steel cantilever is to be as light as possible. How much stress and deflection it may have, and how low its first natural
frequency may be, is still being negotiated. {budget} simulations are run once; they answer every combination of these limits."""


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(demo)


def demo(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to leave the study.")] = Path("demo"),
) -> None:
    """Run a study of a cantilever, say what its limits cost, verify an answer, write the explorer; running again resumes."""
    from cbabo.surfaces.document import document  # These take a while to load, and few commands need them.
    from cbabo.surfaces.explaining import summary
    from cbabo.surfaces.page import single_file

    file = folder / "study.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no folder can be made there ({error.strerror}); choose another place") from error
    if not file.exists():
        write_example(file)
    stated = StudyFile.read(file)
    print_paragraph(_TASK.format(budget=_BUDGET))
    with simulator_output():
        simulator, study = stated.simulator(), stated.create()
        with watching(study, _BUDGET, (), quiet=False) as on_result:
            study.run(simulator.evaluate, budget=_BUDGET, on_result=on_result)
    model = study.model()
    print_frame(answers(model), "table", "The lightest beams as all three limits are relaxed together, as predicted:")
    explanation = model.explain()
    with simulator_output():
        verified = study.refine(study.problem.box.nominal, simulator.evaluate, evaluations=1)
    typer.echo("")
    print_paragraph(summary(study.problem, explanation, verified))
    table, page = folder / "evaluations.csv", folder / "explorer.html"
    table.write_text(csv_text(study.evaluations.to_frame()), encoding="utf-8", newline="")
    page.write_text(single_file(document(study.model(), study.name)), encoding="utf-8")
    typer.echo(f"\nAll {len(study.evaluations)} evaluations: {table}")
    typer.echo(f"Ask it yourself:     cbabo explain {file} --at stress=150")
    typer.echo(f"Move the limits:     cbabo serve {file}")
    typer.echo(f"Without a server:    {page.absolute().as_uri()}")


def answers(model: Model) -> pd.DataFrame:
    """Return the model's answers for limits from strictest to most relaxed, written with units."""
    problem = model.problem
    theta = np.tile(np.linspace(0.0, 1.0, _ROWS)[:, None], (1, len(problem.box.names)))
    found = model.predict_many(problem.box.from_theta(theta))
    columns = {
        f"{c.name} {c.sense}": [with_unit(value, c.unit) for value in values]
        for c, values in zip(problem.box.movable, found.thresholds.T, strict=True)
    }
    columns[problem.objective.name] = [with_unit(mean, problem.objective.unit) for mean in found.moments[0][:, 0]]
    points = [found.answer(i).point for i in range(len(found))]
    return pd.DataFrame(
        columns | {v.name: [with_unit(point[v.name], v.unit) for point in points] for v in problem.variables}
    )


def with_unit(value: float | str, unit: str) -> str:
    """Write a value with four digits, which fit into a narrow table, and its unit."""
    text = value if isinstance(value, str) else f"{value:.4g}"
    return f"{text} {unit}".rstrip()
