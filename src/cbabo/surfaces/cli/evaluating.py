"""Commands that add evaluations to a study: run, ask, tell, import."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

import cloudpickle
import pandas as pd
import typer

from cbabo.domain.evaluations import sem_column
from cbabo.domain.parts import Reading
from cbabo.errors import InputError, RunStoppedError
from cbabo.evaluators.function import Evaluate, describe
from cbabo.evaluators.spec import Simulator
from cbabo.surfaces.cli.cluster import connected
from cbabo.surfaces.cli.inspecting import print_summary
from cbabo.surfaces.cli.options import (
    FormatOption,
    SetOption,
    StudyArgument,
    find_simulator,
    interrupted,
    open_study,
    pairs,
    start_study,
)
from cbabo.surfaces.cli.printing import print_frame, print_json, simulator_output
from cbabo.surfaces.cli.progress import watching
from cbabo.surfaces.records import plain_names


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(run)
    app.command()(ask)
    app.command()(tell)
    app.command("import")(import_runs)


def run(
    study: StudyArgument,
    budget: Annotated[int, typer.Option(min=0, help="Evaluations in all; running again resumes.")] = 200,
    workers: Annotated[int, typer.Option(min=1, help="Evaluations at a time, each in a process of its own.")] = 1,
    asynchronous: Annotated[bool, typer.Option("--asynchronous", help="Refill at once, not batch by batch.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds for one evaluation; the file's if left out.")] = None,
    retries: Annotated[int | None, typer.Option(help="Further tries after a timeout; the file's if left out.")] = None,
    stop_after_failures: Annotated[
        int | None, typer.Option(min=1, help="Give up after so many failures in a row.")
    ] = None,
    on_interrupted: Annotated[
        Literal["rerun", "fail"], typer.Option(help="What to do with evaluations that a dead run left behind.")
    ] = "rerun",
    evaluator: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="The simulator, where STUDY is URL::name.")
    ] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Evaluate on this Dask cluster.")] = None,
    changes: SetOption = None,
    form: FormatOption = "table",
) -> None:
    """Evaluate until the budget is spent; Ctrl-C stops, the same command resumes."""
    try:
        with simulator_output():
            simulator = _simulator(study, evaluator, timeout, retries, changes or [])
            started = start_study(study, changes)
            with connected(dask) as executor, watching(started, budget, quiet=form != "table") as on_result:
                started.run(
                    simulator.evaluate if dask is None else _packed(simulator.evaluate),
                    budget=budget,
                    workers=workers,
                    executor=executor,
                    asynchronous=asynchronous,
                    timeout=simulator.timeout,
                    retries=simulator.retries,
                    stop_after_failures=stop_after_failures,
                    on_interrupted=on_interrupted,
                    on_result=on_result,
                )
    except KeyboardInterrupt:
        raise interrupted("everything told so far is stored") from None
    print_summary(started, form)


def ask(
    study: StudyArgument,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many designs.")] = 1,
    changes: SetOption = None,
    form: FormatOption = "table",
) -> None:
    """Request designs to evaluate by hand; tell their outcomes by their ids."""
    trials = start_study(study, changes).ask(count)
    print_frame(pd.DataFrame([{"id": t.id, **t.point} for t in trials]), form, exact=True)


def tell(
    study: StudyArgument,
    id: Annotated[int, typer.Argument(metavar="ID", help="The id that ask gave.")],
    outputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE...", help='The raw outputs; "NAME sem=VALUE" states a standard error.'),
    ] = None,
    failed: Annotated[str | None, typer.Option(metavar="REASON", help="It failed, and why.")] = None,
    changes: SetOption = None,
) -> None:
    """Store what a design measured, or why it failed."""
    stated = pairs(outputs, "tell")
    if bool(stated) == (failed is not None):
        came = "both" if stated else "neither"
        raise InputError(f"tell: expected outputs as name=value, or --failed REASON, got {came}; give one of the two")
    opened = open_study(study, changes)
    opened.tell(id, _readings(stated) or None, failed=failed)
    stored = next(row for row in opened.evaluations if row.id == id)
    typer.echo(f"Stored evaluation {id}{'' if stored.failure is None else f' as failed: {stored.failure}'}.")


def import_runs(
    study: StudyArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with the variables and the raw outputs.")],
    column: Annotated[
        list[str] | None, typer.Option("--column", metavar="THEIRS=OURS", help="A column that bears another name.")
    ] = None,
    changes: SetOption = None,
    form: FormatOption = "table",
) -> None:
    """Import old runs; rows with problems are listed by line, the rest is kept."""
    columns = _plain_columns(file) | pairs(column, "--column")
    try:
        report = start_study(study, changes).add(file, columns=columns)
    except InputError as error:
        hint = "; --column THEIRS=OURS does" if str(error).endswith("map the column that holds it") else ""
        raise InputError(f"{error}{hint}") from error
    problems = [{"line": line, "problem": why} for line, why in report.problems]
    if form == "json":
        broken = [{"line": line, "broken": what} for line, what in report.broken]
        content = {"added": list(report.added), "known": report.known, "problems": problems}
        print_json(content | ({"broken": broken} if broken else {}))
    elif form == "csv":
        print_frame(pd.DataFrame(problems, columns=["line", "problem"]), "csv")
    else:
        for line, why in (*report.problems, *report.broken):
            typer.echo(f"{file}, line {line}: {why}", err=True)
        known = f", {_rows(report.known)} already there" if report.known else ""
        left = f", {_rows(len(problems))} with problems left out" if problems else ""
        typer.echo(f"Imported {_rows(len(report.added))} from {file}{known}{left}.")
    if problems and not report.added and not report.known:
        raise RunStoppedError(f"{file}: no row could be imported; correct the lines with problems and import it again")


def _readings(stated: Mapping[str, str]) -> dict[str, Reading]:
    """Return outputs, each with its standard error where "NAME sem" states one, as the columns of a table do."""
    numbers = {name: _number(name, text) for name, text in stated.items()}
    errors = {sem_column(name) for name in numbers} & set(numbers)
    return {
        name: {"value": value, "sem": numbers[sem_column(name)]} if sem_column(name) in errors else value
        for name, value in numbers.items()
        if name not in errors
    }


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"tell: {name} must be a number, got {text!r}") from None


def _plain_columns(file: Path) -> dict[str, str]:
    """Return the columns of a CSV file whose names `export csv` has put an apostrophe before, with their own names."""
    try:
        with file.open(encoding="utf-8-sig") as lines:
            names = re.split("[,;\t]", lines.readline())
    except (OSError, UnicodeDecodeError):
        return {}  # The import says what is wrong with it.
    return plain_names(name.strip().strip('"') for name in names)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _simulator(
    study: str, evaluator: str | None, timeout: float | None, retries: int | None, changes: list[str]
) -> Simulator:
    """Load the simulator, which comes first, so that nothing is created when it is not there."""
    if evaluator is None:
        stated = {"timeout": timeout, "retries": retries}
        changes = changes + [f"evaluator.{name}={value}" for name, value in stated.items() if value is not None]
    found = find_simulator("run", study, evaluator, changes)
    assert found is not None
    return found if evaluator is None else replace(found, timeout=timeout, retries=retries or 0)


@dataclass(frozen=True)
class _Packed:
    """A simulator that travels with its own modules."""

    body: bytes

    def __call__(self, point: dict[str, float]) -> Mapping[str, float]:
        evaluate: Evaluate = _unpack(self.body)
        return evaluate(point)


_unpack = lru_cache(maxsize=8)(cloudpickle.loads)


def _packed(evaluate: Evaluate) -> Evaluate:
    """Pack a function with the modules beside it, which a cluster's workers do not find, or know from another study."""
    folder = Path(sys.path[0])  # where load_function has found it
    own = [module for name, module in list(sys.modules.items()) if _lies_in(folder, name, module)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        return _Packed(cloudpickle.dumps(evaluate))
    except Exception as error:
        raise InputError(
            f"--dask: the simulator cannot be sent to a cluster ({describe(error)}); "
            "keep open files, locks and connections out of its modules, or install it there as a package"
        ) from error
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def _lies_in(folder: Path, name: str, module: ModuleType) -> bool:
    top, file = name.partition(".")[0], getattr(module, "__file__", None)
    if file is None or top in ("__main__", "cbabo"):
        return False
    return Path(file) == folder / f"{top}.py" or Path(file).is_relative_to(folder / top)
