"""Commands that ask a study's model: predict, explain, refine, recommend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from cbabo.domain.problem import Problem
from cbabo.errors import InputError
from cbabo.study.modelcache import cached_model, keep_model
from cbabo.surfaces.cli.options import (
    FormatOption,
    LoosenOption,
    StudyArgument,
    TightenOption,
    find_simulator,
    open_study,
    pairs,
    read_intents,
    read_limits,
)
from cbabo.surfaces.cli.printing import print_frame, print_json, simulator_output
from cbabo.surfaces.cli.questions import Question, ScatterOption, ToleranceOption
from cbabo.surfaces.cli.showing import show_answer, show_recommendation
from cbabo.surfaces.explaining import explanation_record, sentences

AtOption = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="NAME=VALUE", help="A limit; those left out stay at their nominal value."),
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(predict)
    app.command()(explain)
    app.command()(refine)
    app.command()(recommend)


def predict(
    study: StudyArgument,
    at: AtOption = None,
    file: Annotated[Path | None, typer.Option("--file", help="A CSV file with one row of limits per question.")] = None,
    probability: Annotated[
        float | None,
        typer.Option(
            help="The probability of obeying all limits to aim at, between 0 and 1; the settings' unless given."
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help='Another recorded number to optimise, as stress or "maximize stress".'),
    ] = None,
    scatter: ScatterOption = None,
    tolerance: ToleranceOption = None,
    reference: Annotated[
        int | None, typer.Option(metavar="ID", help="The evaluation to which limits such as mass=-5% are relative.")
    ] = None,
    form: FormatOption = "table",
) -> None:
    """Answer limits at once: the design, its predicted outputs, and the probability that it obeys them."""
    opened = open_study(study)
    asked = Question.read(at, objective, scatter, tolerance, reference)
    if file is not None:
        if at:
            raise InputError("predict: expected --at or --file, got both")
        if asked.is_special:
            raise InputError("predict: --file takes rows of the study's own limits; leave out the other options")
        model = cached_model(opened)
        answers = model.predict_many(read_limits(file), probability=probability)
        keep_model(opened, model)
        print_frame(answers.to_frame().assign(status=[answers.status(i) for i in range(len(answers))]), form)
        return
    model = cached_model(opened)
    if asked.is_special:
        answer = asked.answer(model, probability)
    else:
        answer = model.predict(read_thresholds(opened.problem, at), probability=probability)
    keep_model(opened, model)
    show_answer(answer, form)


def explain(
    study: StudyArgument,
    at: AtOption = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost",
            metavar="NAME=VALUE",
            help="What relaxing a limit by one unit costs; its range costs 1 unless given.",
        ),
    ] = None,
    ways: Annotated[int, typer.Option(min=1, help="Ways out to look for where limits cannot be met.")] = 3,
    form: FormatOption = "table",
) -> None:
    """Say what binds, what each limit costs and how far it could go; where limits conflict, which, and the cheapest ways out."""
    opened = open_study(study)
    thresholds = read_thresholds(opened.problem, at)
    costs = {name: _number(name, text, "--cost") for name, text in pairs(cost, "--cost").items()}
    unknown = [name for name in costs if name not in opened.problem.box.names]
    if unknown:
        raise InputError(f"--cost: unknown limit {unknown[0]!r}; expected {', '.join(opened.problem.box.names)}")
    model = cached_model(opened)
    found = model.explain(thresholds, costs=costs, count=ways)
    keep_model(opened, model)
    record = explanation_record(opened.problem, found)
    if form == "json":
        print_json(record)
    elif form == "csv":
        print_frame(pd.DataFrame(record["prices"]), "csv")
    else:
        for text in sentences(opened.problem, found):
            typer.echo(text)
        for text in found.answer.warnings:
            typer.echo(f"warning: {text}")


def refine(
    study: StudyArgument,
    at: AtOption = None,
    evaluations: Annotated[int, typer.Option(min=1, help="Simulations to spend: 1 verifies, 2 also improves.")] = 2,
    evaluator: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="The simulator, where STUDY is URL::name.")
    ] = None,
    form: FormatOption = "table",
) -> None:
    """Verify an answer with one simulation and improve it with a second.

    The exit code is 1 where the measured design is not verified; which limit it breaks, and by how much, is said.
    """
    opened = open_study(study)
    thresholds, simulator = read_thresholds(opened.problem, at), find_simulator("refine", study, evaluator)
    assert simulator is not None
    with simulator_output():
        answer = opened.refine(
            thresholds, simulator.evaluate, evaluations, timeout=simulator.timeout, retries=simulator.retries
        )
    show_answer(answer, form)
    if answer.status == "measured":
        broken = [text for text in answer.warnings if text.startswith("the measured design ")]
        typer.echo(f"cbabo: not verified: {'; '.join(broken)}", err=True)
        raise typer.Exit(1)


def recommend(
    study: StudyArgument,
    at: AtOption = None,
    tighten: TightenOption = None,
    loosen: LoosenOption = None,
    form: FormatOption = "table",
) -> None:
    """Propose limits from what should be tightened or may be loosened; the others stay locked."""
    opened = open_study(study)
    intents = read_intents(tighten, loosen)
    model = cached_model(opened)
    found = model.recommend(read_thresholds(opened.problem, at), intents)
    keep_model(opened, model)
    show_recommendation(opened.problem, found, form)


def read_thresholds(problem: Problem, at: list[str] | None) -> dict[str, float]:
    """Read limits; those left out have their nominal values."""
    stated = {name: _number(name, text) for name, text in pairs(at, "--at").items()}
    try:
        return problem.box.complete(stated)
    except InputError as error:
        raise InputError(f"--at: {str(error).removeprefix('thresholds: ')}") from error


def _number(name: str, text: str, option: str = "--at") -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option}: {name} must be a number, got {text!r}") from None
