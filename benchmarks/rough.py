"""The default settings on the rough suite: feasible share, stated probability and loss of answers, judged without noise.

python benchmarks/rough.py --out results.csv [--problems noise5 car_active_noise1 ...] [--seeds 3] [--jobs 1]
                           [--evaluations 40 60 100 200] [--refinements 1 2 5 10] [--settings probability=0.9 ...]
                           [--only-direct] [--models FOLDER] [--report]

--problems takes names of problems and of groups (noise1, noise5, noise20, multiplicative2, student5, partly5, kinks, basins,
simulators); any other shipped problem may be named too. A run is one problem and one seed; its lines are appended to the file
when it ends, and runs whose lines are there are not repeated. --report only prints what the file has.

Answers: "direct" after each number of evaluations, and after the last one also
- "surrogate@0.8", "@0.9", "@0.98": the solver's design for that probability, even where a measured one would be returned;
- "margin-free": the solver's design without a margin; the gap of other answers less the gap of this one is what margins cost;
- "fast": fast answers;
- "refined 1", "2", "5", "10": refined by so many evaluations, at 16 thresholds; each goes on after the one before;
  "refined 0": direct answers to the same thresholds.
--only-direct leaves out all but the first. --models keeps the fitted models in a folder, as `consistency.py` reads them.

The loss is the gap to the true optimum in percent of how far the optimum moves over the box, and 100 where the answer is
infeasible. The gap is the same whether limits are obeyed or not. For simulators the best known optimum stands for the true one:
where a loss is below zero an answer is better, and the report says so. After the last number of evaluations the feasible share
and the stated probability are of 200 thresholds, losses of those with a known optimum. Intervals hold 95 %, by bootstrap over
seeds; a group's average weighs its problems alike.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from subjects import Judgement, Subject, chosen, group_of, subject

from cbabo import Settings, Study
from cbabo.answering.answers import Answer
from cbabo.answering.predict import Answers
from cbabo.answering.refine import refine
from cbabo.bench.metrics import Interval, average_interval
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.evaluators.function import perform
from cbabo.methods.settings import MethodSettings
from cbabo.model import Model
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread

REFINED = 16
"""Thresholds of which the answers are refined: the first of the known optima."""
MOST_REFINEMENT = 100
"""Evaluations of one refinement at most: the numbers of evaluations of two thresholds differ by it."""
DIRECT = "direct"
"""The kind of answers that are judged after each number of evaluations."""
REFINEMENTS = (1, 2, 5, 10)
"""Evaluations of a refinement."""
FIRST_REFINEMENT = 100_000
"""Number of the first evaluation of a refinement: no run's evaluation has the same, so that noise is independent."""
AIMS = (0.8, 0.9, 0.98)
"""Probabilities of feasibility at which the calibration of the surrogates is judged."""
BETTER = -0.01
"""Loss in percent below which the best known optimum counts as improved."""


@dataclass(frozen=True)
class Line:
    """What one run's answers of one kind are worth."""

    problem: str
    seed: int
    settings: str
    answers: str
    evaluations: int
    thresholds: int
    """How many answers were judged."""
    failed: int
    """Evaluations of the run that failed."""
    success: float
    """The mean stated probability, in percent, that the simulator returns; NaN for the surrogates' own answers."""
    seconds: float
    """How long the run took so far, answers not counted; for the other kinds of answers: how long these took."""
    worth: Judgement

    def cells(self) -> list[Any]:
        """Return the values of the columns."""
        *own, worth = (getattr(self, f.name) for f in fields(self))
        return [f"{v:.6g}" if isinstance(v, float) else v for v in (*own, *astuple(worth))]


COLUMNS = [*(f.name for f in fields(Line)[:-1]), *(f.name for f in fields(Judgement))]


@dataclass(frozen=True, eq=False)
class Stated:
    """Answers, and what is stated of them."""

    points: FloatArray
    """n x d, natural units."""
    feasible: FloatArray
    """n, stated probabilities of feasibility."""
    success: FloatArray
    """n, stated probabilities that the simulator returns; NaN where none is stated."""


@dataclass(frozen=True)
class Unit:
    """One run: a problem, a seed and settings."""

    problem: str
    seed: int
    evaluations: tuple[int, ...]
    refinements: tuple[int, ...]
    """Evaluations of refinements."""
    changes: tuple[str, ...]
    only_direct: bool
    models: Path | None
    """Where fitted models are kept."""

    @property
    def last(self) -> str:
        """The kind of answers that is judged last."""
        kinds = [DIRECT] if self.only_direct else [f"refined {count}" for count in (0, *self.refinements)]
        return kinds[-1]

    @property
    def label(self) -> str:
        """The settings as the file states them."""
        return " ".join(sorted(self.changes)) or "default"

    def run(self) -> list[Line]:
        """Run, and judge all answers."""
        with one_thread():
            return list(self._lines())

    def _lines(self) -> Iterator[Line]:
        mine = subject(self.problem)
        study = Study.create(mine.problem, "sqlite://", seed=self.seed, settings=settings_with(self.changes))
        spent, last = 0.0, self.evaluations[-1]
        for budget in self.evaluations:
            began = time.perf_counter()
            study.run(mine.evaluator(self.seed), budget=budget, in_process=True, stop_after_failures=budget)
            model = study.model()
            spent += time.perf_counter() - began
            failed = len(study.evaluations.failed)
            if self.models is not None:
                model.save(self.models / f"{self.problem}-{self.seed}-{budget}.model")
            some = mine.thresholds if budget == last else mine.known.thresholds
            yield self._line(DIRECT, budget, failed, spent, stated_by(model.predict_many(some)))
        for kind, answers in () if self.only_direct else self._others(mine, model):
            began = time.perf_counter()
            found = answers()
            yield self._line(kind, last, failed, time.perf_counter() - began, found)

    def _others(self, mine: Subject, model: Model) -> Iterator[tuple[str, Any]]:
        """Return the kinds of answers that are judged at the end, and functions that compute them."""
        for aim in AIMS:
            yield f"surrogate@{aim:g}", lambda aim=aim: by_surrogate(model, mine.thresholds, aim)
        yield "margin-free", lambda: by_surrogate(model, mine.thresholds, None)
        yield "fast", lambda: stated_by(model.predict_many(mine.thresholds, fast=True))
        yield "refined 0", lambda: stated_by(model.predict_many(mine.known.thresholds[:REFINED]))
        made = [list[Evaluation]() for _ in range(REFINED)]
        for count in self.refinements:
            yield f"refined {count}", lambda count=count: self._refined(mine, model, count, made)

    def _line(self, kind: str, budget: int, failed: int, seconds: float, found: Stated) -> Line:
        worth = subject(self.problem).judged(found.points, found.feasible)
        success = 100.0 * float(np.mean(found.success))
        return Line(
            self.problem, self.seed, self.label, kind, budget, len(found.points), failed, success, seconds, worth
        )

    def _refined(self, mine: Subject, model: Model, count: int, made: Sequence[list[Evaluation]]) -> Stated:
        """Return refined answers; made: the evaluations of each so far, which grow."""
        answers = [self._refined_at(mine, model, row, count, spent) for row, spent in enumerate(made)]
        points = mine.problem.space.array([answer.point for answer in answers])
        chances = [(answer.probability_feasible, answer.probability_success) for answer in answers]
        return Stated(points, *np.array(chances).T)

    def _refined_at(self, mine: Subject, model: Model, row: int, count: int, spent: list[Evaluation]) -> Answer:
        evaluate = mine.evaluator(self.seed)
        before = tuple(spent)

        def measure(point: Point) -> Evaluation:
            number = FIRST_REFINEMENT + MOST_REFINEMENT * row + len(spent)
            outcome = perform(evaluate, point, mine.problem.outputs, number)
            state = "complete" if outcome.complete else "failed"
            spent.append(Evaluation(number, state, "refine", point, outcome.outputs or {}, outcome.failure))  # type: ignore[arg-type]
            return spent[-1]

        query = Query.of(mine.problem.box, mine.known.thresholds[[row]])
        return refine(model, query, measure, count - len(before), made=before)


def settings_with(changes: Sequence[str]) -> MethodSettings:
    """Return the default settings with changes, each as name=value."""
    pairs = [change.partition("=") for change in changes]
    return Settings.from_dict({name: value for name, _, value in pairs})


def stated_by(found: Answers) -> Stated:
    """Return answers with what they state."""
    return Stated(found.points, found.probability_feasible, found.probability_success)


def by_surrogate(model: Model, thresholds: FloatArray, aim: float | None) -> Stated:
    """Return the solver's designs and their stated probabilities, measured designs left out.

    aim: the probability of feasibility asked for; None: without a margin.
    """
    solver, query = model.solver, Query.of(model.problem.box, thresholds)
    x, stated = [], []
    for bound in solver.bound(query.theta):
        found = solver.best(bound) if aim is None else solver.predict(bound, aim)
        x.append(found.x)
        stated.append(solver.probability(bound, found.x))
    return Stated(model.problem.space.natural(np.array(x)), np.array(stated), np.full(len(x), np.nan))


def read(path: Path) -> pd.DataFrame:
    """Return the lines of a file; none if it is not there."""
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=COLUMNS)
    if list(table.columns) != COLUMNS:
        raise SystemExit(f"{path}: expected the columns {', '.join(COLUMNS)}; give another file")
    return table


def append(path: Path, lines: Sequence[Line]) -> None:
    """Append the lines of one run."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        if new:
            table.writerow(COLUMNS)
        table.writerows(line.cells() for line in lines)


def report(table: pd.DataFrame) -> None:
    """Print means and intervals by problem and by group."""
    head = f"{'problem or group':34s} {'answers':14s} {'n':>4s} {'seeds':>5s}"
    print(f"{head} {'feasible %':>25s} {'stated %':>9s} {'loss %':>25s} {'gap %':>8s}")
    for label, part in table.groupby("settings", sort=False):
        print(f"settings: {label}")
        groups = part["problem"].map(group_of)
        for group in dict.fromkeys(groups):
            mine = part[groups == group]
            names = list(dict.fromkeys(mine["problem"]))
            for title, rows in [*((name, mine[mine["problem"] == name]) for name in names), (f"= {group}", mine)]:
                for (kind, n), some in rows.groupby(["answers", "evaluations"], sort=False):
                    feasible, stated, loss, gap = (averaged(some, c) for c in ("feasible", "stated", "loss", "gap"))
                    seeds = some.groupby("problem")["seed"].nunique().min()
                    print(
                        f"{title:34s} {kind:14s} {n:4d} {seeds:5d} {shown(feasible)} {stated.mean:9.1f} {shown(loss)} "
                        f"{gap.mean:8.2f}"
                    )
    for name, lowest in table.groupby("problem", sort=False)["lowest"].min().items():
        if lowest < BETTER:
            print(f"{name}: an answer is better than the best known optimum, by {-lowest:.2g} % of its span")


def averaged(table: pd.DataFrame, column: str) -> Interval:
    """Return the average over problems of the mean over seeds, and its interval."""
    return average_interval([[[v] for v in part[column]] for _, part in table.groupby("problem", sort=False)])


def shown(interval: Interval) -> str:
    """Return a mean with its interval."""
    return f"{interval.mean:8.2f} [{interval.low:6.2f}, {interval.high:6.2f}]"


def main() -> None:
    """Read the command line, run what the file does not have yet, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the CSV file to which results are appended")
    parser.add_argument("--problems", nargs="+", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[40, 60, 100, 200])
    parser.add_argument("--refinements", type=int, nargs="*", default=REFINEMENTS)
    parser.add_argument("--settings", nargs="+", default=[], metavar="NAME=VALUE")
    parser.add_argument("--only-direct", action="store_true", help="judge direct answers only")
    parser.add_argument("--models", type=Path, help="a folder in which fitted models are kept")
    parser.add_argument("--report", action="store_true", help="run nothing")
    given = parser.parse_args()
    settings_with(given.settings)  # Misspelt settings are refused before anything runs.
    names, at = chosen(given.problems), tuple(sorted(given.evaluations))
    refinements = tuple(sorted(given.refinements))
    rest = (at, refinements, tuple(given.settings), given.only_direct, given.models)
    if given.models is not None:
        given.models.mkdir(parents=True, exist_ok=True)
    units = [Unit(name, seed, *rest) for seed in range(given.seeds) for name in names]
    table = read(given.out)
    done = set(
        zip(table["problem"], table["seed"], table["settings"], table["answers"], table["evaluations"], strict=True)
    )
    missing = [u for u in units if (u.problem, u.seed, u.label, u.last, at[-1]) not in done]
    if not given.report:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(given.jobs, mp_context=context) as pool:
            futures = {pool.submit(unit.run): unit for unit in missing}
            for future in as_completed(futures):
                unit, error = futures[future], future.exception()
                if error is None:
                    append(given.out, future.result())
                print(f"{unit.problem}, seed {unit.seed}: {'done' if error is None else repr(error)}", flush=True)
        table = read(given.out)
    report(table[table["problem"].isin(names) & table["seed"].isin(range(given.seeds))])


if __name__ == "__main__":
    main()
