"""Commands about files: init, check, storage upgrade, storage check."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from cbabo.domain.categorical import Categorical
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.parts import taken_apart, whole_name
from cbabo.domain.problem import Problem
from cbabo.domain.space import Real
from cbabo.errors import InputError, RunStoppedError, StorageError
from cbabo.evaluators.execution import Execution
from cbabo.evaluators.spec import EvaluatorSpec, Simulator
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from cbabo.surfaces.cli.examples import SIMULATOR, STUDY
from cbabo.surfaces.cli.options import FormatOption, SetOption, read_file
from cbabo.surfaces.cli.printing import print_frame, print_json, simulator_output
from cbabo.surfaces.studyfile import json_schema, lasting_url

_LOG = logging.getLogger(__name__)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(init)
    app.command()(check)
    storage = typer.Typer(help="Look after a database.", no_args_is_help=True)
    storage.command("upgrade")(upgrade)
    storage.command("check")(check_storage)
    app.add_typer(storage, name="storage")


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study file to write.")] = Path("study.yaml"),
) -> None:
    """Write a commented example of a study file, and a small simulator that it calls."""
    simulator = write_example(file)
    typer.echo(f"Wrote {file} and {simulator}. Next: cbabo check {file}, then cbabo run {file}")


def write_example(file: Path) -> Path:
    """Write the example of a study file and its simulator beside it, and return the simulator's path."""
    simulator = file.parent / "simulator.py"
    for path in (file, simulator):
        if path.exists():
            raise InputError(f"{path} exists already and is left as it is; choose another name or folder")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(STUDY.replace("study.yaml", file.name), encoding="utf-8")
        simulator.write_text(SIMULATOR, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror or error}); choose another place") from error
    return simulator


def check(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="The study file to check.")] = None,
    changes: SetOption = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a study file instead.")] = False,
    attempt: Annotated[bool, typer.Option("--try", help="Also evaluate the centre of the space once.")] = False,
) -> None:
    """Say whether a study file is valid, and what it states."""
    if schema:
        print_json(json_schema())
        return
    if file is None:
        raise InputError("check: expected a study file; or give --schema")
    study = read_file(file, changes)
    problem = study.problem
    simulator = None
    if study.evaluator is not None:
        with simulator_output():
            simulator = study.simulator()
        _warn_of_strangers(problem, study.evaluator)
    elif attempt:
        raise InputError(f"{file}: --try needs an 'evaluator:' section with python or command; add it")
    print_frame(_variables(problem), "table", f"{problem.name}: variables")
    print_frame(_requirements(problem), "table", "outputs and limits")
    if problem.relations:
        print_frame(pd.DataFrame({"relation": problem.relations}), "table", "known relations")
    if problem.derived:
        print_frame(_derived(problem), "table", "derived outputs")
        typer.echo(f"\nThe simulator must return: {', '.join(problem.simulated)}")
    if attempt and simulator is not None:
        _attempt(problem, simulator)
    following = f"Next: cbabo run {file}" if simulator else "It names no evaluator: use cbabo ask and cbabo tell."
    typer.echo(f"\n{file} is valid. {following}")


def upgrade(url: Annotated[str, typer.Argument(metavar="URL", help="The database, as sqlite:///truss.db.")]) -> None:
    """Bring a database of an older revision up to date."""
    lasting_url(url)
    database = Database.existing(url)
    before, after = database.upgrade()
    what = "already at" if before == after else f"upgraded from revision {before} to"
    typer.echo(f"{database.label}: {what} revision {after}.")


def check_storage(
    url: Annotated[str, typer.Argument(metavar="URL", help="The database, as sqlite:///truss.db.")],
    form: FormatOption = "table",
) -> None:
    """Look for damage in a database: every row is compared with its checksum. The exit code is 1 if there is some."""
    lasting_url(url)
    database = Database.open(url)
    damages = [{"study": damage.study, "id": damage.id, "damage": damage.what} for damage in find_damage(database)]
    if form != "table" or damages:
        frame = pd.DataFrame(damages, columns=["study", "id", "damage"]).astype({"id": "Int64"})
        print_frame(frame, form)
    if damages:
        raise StorageError(
            f"{database.label}: {len(damages)} of its parts are damaged; damaged evaluations are left out, "
            "anything else needs a copy of the database to be restored"
        )
    if form == "table":
        typer.echo(f"{database.label}: no damage was found.")


def _attempt(problem: Problem, simulator: Simulator) -> None:
    """Evaluate the centre of the space, or the nearest design that obeys all relations, and show what came."""
    middle = np.full((1, problem.space.dimension), 0.5)
    point = problem.space.points(middle if problem.region is None else problem.region.repaired(middle))[0]
    where = ", ".join(f"{name}={value if isinstance(value, str) else f'{value:.6g}'}" for name, value in point.items())
    execution = Execution(timeout=simulator.timeout, retries=simulator.retries)
    with simulator_output(), execution.executor(simulator.evaluate) as executor:
        outcome = execution.evaluate(executor, simulator.evaluate, point, problem.simulated, 0)
    if not outcome.complete:
        typer.echo(outcome.log, err=True)
        raise RunStoppedError(f"the evaluator failed at {where}: {outcome.failure}")
    rows = [{"name": name, "value": value} for name, value in (outcome.outputs or {}).items()]
    if problem.derived:
        measured = Evaluation(1, "complete", "run", point, taken_apart(outcome.outputs or {})[0])
        judged: Evaluation = Evaluations(problem, (measured,))[0]
        if judged.failure is not None:
            raise RunStoppedError(f"the evaluator returned its outputs at {where}, but {judged.failure}")
        rows = [row for row in rows if row["name"] not in problem.derived]
        rows += [{"name": n, "value": v} for n, v in judged.outputs.items() if (whole_name(n) or n) in problem.derived]
    print_frame(pd.DataFrame(rows), "table", f"outputs at {where}, after {outcome.seconds:.2g} s")


def _warn_of_strangers(problem: Problem, evaluator: EvaluatorSpec) -> None:
    """Point at what looks like a placeholder in the command, but stands for nothing."""
    known = {*problem.space.names, "here", "workdir"}
    for word in evaluator.words():
        for name in re.findall(r"\{([A-Za-z_]\w*)(?::[^{}\s]*)?\}", word):
            if name not in known:
                _LOG.warning(
                    "evaluator.command holds {%s}, which is no variable and is passed on as it is; check its spelling",
                    name,
                )


def _variables(problem: Problem) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for v in problem.variables:
        ends = ("", "") if isinstance(v, Categorical) else (v.low, v.high)
        scale = ("log" if v.log else "linear") if isinstance(v, Real) else ""
        rows.append({"name": v.name, "type": v.type, "low": ends[0], "high": ends[1], "unit": v.unit, "scale": scale})
        if problem.space.categories:
            rows[-1]["labels"] = ", ".join(v.values) if isinstance(v, Categorical) else ""
    return pd.DataFrame(rows)


def _derived(problem: Problem) -> pd.DataFrame:
    exact = {problem.outputs[j] for j in problem.exact}
    rows = [
        {"name": name, "formula": text, "of": "variables, exact" if name in exact else "outputs"}
        for name, text in problem.derived.items()
    ]
    return pd.DataFrame(rows)


def _requirements(problem: Problem) -> pd.DataFrame:
    goal = problem.objective
    rows = [
        {
            "name": goal.name,
            "asked": goal.direction,
            "limit": "",
            "nominal": "",
            "unit": goal.unit,
            "outputs": goal.name,
        }
    ]
    for c in problem.constraints:
        limit = f"{c.limit:g}" if c.limit is not None else f"{c.low:g} to {c.high:g}"
        outputs = ", ".join(c.output_names)
        nominal = f"{problem.box.nominal[c.name]:g}" if c.movable else ""
        rows.append(
            {"name": c.name, "asked": c.sense, "limit": limit, "nominal": nominal, "unit": c.unit, "outputs": outputs}
        )
    return pd.DataFrame(rows)
