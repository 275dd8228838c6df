"""Commands about what is fixed before limits are agreed, and how exactly it must be made: freeze, common, tolerances."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cbabo.domain.categorical import Categorical
from cbabo.domain.problem import Problem
from cbabo.study.modelcache import cached_model, keep_model
from cbabo.surfaces.cli.answering import AtOption, read_thresholds
from cbabo.surfaces.cli.options import FormatOption, StudyArgument, open_study, pairs, read_limits
from cbabo.surfaces.cli.printing import print_frame
from cbabo.surfaces.cli.questions import number, numbers
from cbabo.surfaces.cli.showing import show_record
from cbabo.surfaces.deciding_records import common_record, freeze_record, tolerances_record

ProbabilityOption = Annotated[
    float | None, typer.Option(help="The probability of obeying all limits to aim at; the settings' unless given.")
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(freeze)
    app.command()(common)
    app.command()(tolerances)


def freeze(
    study: StudyArgument,
    file: Annotated[
        Path | None, typer.Option("--file", help="A CSV file of limits; the whole box unless given.")
    ] = None,
    fixed: Annotated[
        list[str] | None, typer.Option("--fixed", metavar="VARIABLE=VALUE", help="A variable that is fixed already.")
    ] = None,
    probability: ProbabilityOption = None,
    form: FormatOption = "table",
) -> None:
    """Show how far each variable moves over the limits, and what fixing it now costs: what can be ordered already."""
    opened = open_study(study)
    model = cached_model(opened)
    limits = None if file is None else read_limits(file)
    found = model.freeze(limits, fixed=_values(opened.problem, fixed), probability=probability)
    if form == "json":
        show_record(freeze_record(found), form)
    else:
        print_frame(found, form)


def common(
    study: StudyArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file of limits, with a column weight if wanted.")],
    probability: ProbabilityOption = None,
    form: FormatOption = "table",
) -> None:
    """Find one design that obeys all rows of limits, and what it costs against one design for each."""
    opened = open_study(study)
    limits = read_limits(file)
    weights = limits.pop("weight").tolist() if "weight" in limits else None
    model = cached_model(opened)
    found = model.common(limits, weights, probability=probability)
    keep_model(opened, model)
    record = common_record(found)
    if form == "table":
        record = {**{k: v for k, v in record.items() if k != "answer"}, "design": record["answer"]["design"]}
    show_record(record, form)


def tolerances(
    study: StudyArgument,
    at: AtOption = None,
    weight: Annotated[
        list[str] | None, typer.Option("--weight", metavar="VARIABLE=NUMBER", help="What holding its tolerance costs.")
    ] = None,
    give: Annotated[float, typer.Option(help="By which share of it the objective may be worse.")] = 0.02,
    point: Annotated[
        list[str] | None, typer.Option("--point", metavar="VARIABLE=VALUE", help="A design that does not move.")
    ] = None,
    probability: ProbabilityOption = None,
    form: FormatOption = "table",
) -> None:
    """Find the largest box of tolerances around the answer that keeps the stated probability."""
    opened = open_study(study)
    limits = read_thresholds(opened.problem, at)
    model = cached_model(opened)
    found = model.tolerances(
        limits, numbers(weight, "--weight"), give=give, point=numbers(point, "--point"), probability=probability
    )
    record = tolerances_record(found)
    if form == "table":
        record = {k: v for k, v in record.items() if k != "answer"}
    show_record(record, form)


def _values(problem: Problem, words: list[str] | None) -> dict[str, Any]:
    """Read values of variables by name: labels of categorical ones, numbers of all others."""
    labelled = {v.name for v in problem.variables if isinstance(v, Categorical)}
    given = pairs(words, "--fixed")
    return {name: text if name in labelled else number("--fixed", name, text) for name, text in given.items()}
