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

from cbabo.adapters.dakota import is_dakota, read_dakota
from cbabo.adapters.optuna import SCHEME, read_optuna
from cbabo.domain.convergence import FEWEST_MEASURED, Convergence, read_share
from cbabo.domain.evaluations import sem_column
from cbabo.domain.parts import Reading
from cbabo.errors import InputError, RunStoppedError
from cbabo.evaluators.function import Evaluate, describe
from cbabo.evaluators.spec import Simulator
from cbabo.storage.urls import hide_passwords
from cbabo.study.importing import ImportReport
from cbabo.study.modelcache import cached_model, keep_convergence
from cbabo.study.study import Study
from cbabo.surfaces.cli.cluster import connected
from cbabo.surfaces.cli.inspecting import print_summary
from cbabo.surfaces.cli.options import (
    FormatOption,
    QuietOption,
    SetOption,
    StudyArgument,
    find_simulator,
    interrupted,
    names_database,
    open_study,
    pairs,
    read_file,
    start_study,
)
from cbabo.surfaces.cli.printing import print_frame, print_json, simulator_output
from cbabo.surfaces.cli.progress import watching
from cbabo.surfaces.records import plain_names

_BUDGET = 200
"""Evaluations of a run where neither the command nor the file states a number."""


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(run)
    app.command()(ask)
    app.command()(tell)
    app.command("import")(import_runs)


def run(
    study: StudyArgument,
    budget: Annotated[
        int | None,
        typer.Option(min=0, help="Evaluations in all; running again resumes. The file's if left out, else 200."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="End early when the answers have converged, as 0.5% of the span."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Evaluations at a time, each in a process of its own.")] = 1,
    asynchronous: Annotated[bool, typer.Option("--asynchronous", help="Refill at once, not batch by batch.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds for one evaluation; the file's if left out.")] = None,
    retries: Annotated[int | None, typer.Option(help="Further tries after a timeout; the file's if left out.")] = None,
    stop_after_failures: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Give up after so many failures in a row; if left out: 5 first or 10 in a row for the same reason.",
        ),
    ] = None,
    on_interrupted: Annotated[
        Literal["rerun", "fail"], typer.Option(help="What to do with evaluations that a dead run left behind.")
    ] = "rerun",
    evaluator: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="The simulator, where STUDY is URL::name.")
    ] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Evaluate on this Dask cluster.")] = None,
    changes: SetOption = None,
    quiet: QuietOption = False,
    form: FormatOption = "table",
) -> None:
    """Evaluate until the budget is spent; Ctrl-C stops, the same command resumes."""
    try:
        with simulator_output():
            simulator = _simulator(study, evaluator, timeout, retries, changes or [])
            estimates: list[Convergence] = []
            budget, share = _extent(study, changes, budget, until)
            started = start_study(study, changes)
            with (
                connected(dask) as executor,
                watching(started, budget, estimates, quiet=quiet or form != "table") as on_result,
            ):
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
                    until=share,
                    on_convergence=estimates.append,
                )
            _estimate_convergence(started, estimates[-1] if estimates else None, share)
    except KeyboardInterrupt:
        raise interrupted("everything told so far is stored") from None
    if not quiet or form != "table":
        print_summary(started, form)


def _extent(study: str, changes: list[str] | None, budget: int | None, until: str | None) -> tuple[int, float | None]:
    """Return the budget, and the share of the span at which to end: as given, or else as the file states it."""
    section = None if names_database(study) else read_file(study, changes).study
    share = None if until is None else read_share("--until", until)
    if section is None:
        return _BUDGET if budget is None else budget, share
    stated = _BUDGET if section.budget is None else section.budget
    return stated if budget is None else budget, section.until if share is None else share  # type: ignore[return-value]


def _estimate_convergence(study: Study, latest: Convergence | None, share: float | None) -> None:
    """Estimate how far the answers still move, unless the run has just done so, and keep it for `status`."""
    measured = len(study.evaluations.complete)
    if latest is None or latest.evaluations != measured:
        if study.settings.method != "default" or measured < FEWEST_MEASURED:
            return
        from cbabo.answering.convergence import convergence

        latest = convergence(cached_model(study))
    if latest is not None:
        keep_convergence(study, latest)
        if share is not None and latest.figure <= share:
            sys.stderr.write(f"The answers have converged to {100.0 * share:g} % of the span.\n")


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
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV with the variables and the raw outputs, a tabular file of Dakota, or optuna://STORAGE::NAME.",
        ),
    ],
    column: Annotated[
        list[str] | None, typer.Option("--column", metavar="THEIRS=OURS", help="A column that bears another name.")
    ] = None,
    changes: SetOption = None,
    form: FormatOption = "table",
) -> None:
    """Import old runs; rows with problems are listed by line, the rest is kept."""
    try:
        report = _import(start_study(study, changes), file, pairs(column, "--column"))
    except InputError as error:
        hint = "; --column THEIRS=OURS does" if str(error).endswith("map the column that holds it") else ""
        raise InputError(f"{error}{hint}") from error
    source = hide_passwords(file)
    problems = [{"line": line, "problem": why} for line, why in report.problems]
    if form == "json":
        broken = [{"line": line, "broken": what} for line, what in report.broken]
        content = {"added": list(report.added), "known": report.known, "problems": problems}
        print_json(content | ({"broken": broken} if broken else {}))
    elif form == "csv":
        print_frame(pd.DataFrame(problems, columns=["line", "problem"]), "csv")
    else:
        for line, why in (*report.problems, *report.broken):
            typer.echo(f"{source}, line {line}: {why}", err=True)
        known = f", {_rows(report.known)} already there" if report.known else ""
        left = f", {_rows(len(problems))} with problems left out" if problems else ""
        typer.echo(f"Imported {_rows(len(report.added))} from {source}{known}{left}.")
    if problems and not report.added and not report.known:
        raise RunStoppedError(
            f"{source}: no row could be imported; correct the lines with problems and import it again"
        )


def _import(study: Study, source: str, columns: Mapping[str, str]) -> ImportReport:
    """Import a file, or the trials of an Optuna study."""
    path = Path(source)
    if source.startswith(SCHEME):
        table, others = read_optuna(source, study.problem)
        if others:
            typer.echo(f"{hide_passwords(source)}: {others} trials are not complete and are left out", err=True)
        return study.add(table, columns=columns)
    if is_dakota(path):
        return study.add(read_dakota(path), columns=columns)
    return study.add(path, columns=_plain_columns(path) | dict(columns))


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
