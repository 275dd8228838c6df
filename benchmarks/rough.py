"""The default settings on the rough suite: feasible share, stated probability and loss of answers, judged without noise.

python benchmarks/rough.py --out results.csv [--problems noise5 car_active_noise1 ...] [--seeds 3] [--jobs 1]
                           [--evaluations 40 60 100 200] [--settings probability=0.9 ...] [--report]

--problems takes names of problems and of groups (noise1, noise5, noise20, multiplicative2, student5, partly5, kinks, basins);
any other shipped problem may be named too. A run is one problem and one seed; its lines are appended to the file when it ends,
and runs whose lines are there are not repeated. --report only prints what the file has.

Answers: "direct" after each number of evaluations; after the last also "surrogate", the solver's design even where a measured
one would be returned; "fast"; "refined 1" and "refined 2", by one and two evaluations, at 16 thresholds. The loss is the gap to
the true optimum in percent of how far the optimum moves over the box, and 100 where the answer is infeasible. Intervals hold
95 %, by bootstrap over seeds; a group's average weighs its problems alike.
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

import numpy as np
import pandas as pd

from cbabo import Settings, Study, problems
from cbabo.answering.refine import refine
from cbabo.bench.metrics import Interval, average_interval, losses
from cbabo.bench.truth import truth
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.evaluators.function import perform
from cbabo.methods.settings import MethodSettings
from cbabo.model import Model
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread
from cbabo.problems.rough import GROUPS
from cbabo.problems.shipped import ShippedProblem

REFINED = 16
"""Thresholds of which the answers are refined: the first of the known optima."""
REFINEMENTS = (1, 2)
"""Evaluations of a refinement."""
FIRST_REFINEMENT = 100_000
"""Number of the first evaluation of a refinement: no run's evaluation has the same, so that noise is independent."""


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
    feasible: float
    """The share of answers that truly obey their limits, in percent."""
    stated: float
    """The mean stated probability, in percent."""
    loss: float
    """The mean loss, in percent."""
    failed: int
    """Evaluations of the run that failed."""
    seconds: float
    """How long the run took so far, answers not counted; for fast and refined answers: how long these took."""


@dataclass(frozen=True)
class Unit:
    """One run: a problem, a seed and settings."""

    problem: str
    seed: int
    evaluations: tuple[int, ...]
    changes: tuple[str, ...]

    @property
    def label(self) -> str:
        """The settings as the file states them."""
        return " ".join(sorted(self.changes)) or "default"

    def run(self) -> list[Line]:
        """Run, and judge all answers."""
        with one_thread():
            return list(self._lines())

    def _lines(self) -> Iterator[Line]:
        shipped, known = problems.get(self.problem), truth(self.problem)
        evaluate = shipped.evaluator(self.seed)
        study = Study.create(shipped.problem, "sqlite://", seed=self.seed, settings=settings_with(self.changes))
        seconds = 0.0
        for budget in self.evaluations:
            began = time.perf_counter()
            study.run(evaluate, budget=budget, in_process=True)
            model = study.model()
            seconds += time.perf_counter() - began
            failed = len(study.evaluations.failed)

            def line(
                kind: str,
                points: FloatArray,
                stated: FloatArray,
                seconds: float,
                budget: int = budget,
                failed: int = failed,
            ) -> Line:
                shares = judged(shipped, points, stated)
                return Line(self.problem, self.seed, self.label, kind, budget, len(points), *shares, failed, seconds)

            found = model.predict_many(known.thresholds)
            yield line("direct", found.points, found.probability_feasible, seconds)
        yield line("surrogate", *by_surrogate(model, known.thresholds), seconds)
        began = time.perf_counter()
        found = model.predict_many(known.thresholds, fast=True)
        yield line("fast", found.points, found.probability_feasible, time.perf_counter() - began)
        for count in REFINEMENTS:
            began = time.perf_counter()
            refined = [self._refined(model, i, count) for i in range(REFINED)]
            points, stated = (np.array(part) for part in zip(*refined, strict=True))
            yield line(f"refined {count}", points, stated, time.perf_counter() - began)

    def _refined(self, model: Model, row: int, count: int) -> tuple[list[float], float]:
        """Return a refined design, and its stated probability."""
        shipped = problems.get(self.problem)
        evaluate, spent = shipped.evaluator(self.seed), 0

        def measure(point: Point) -> Evaluation:
            nonlocal spent
            number = FIRST_REFINEMENT + 10 * row + spent
            spent += 1
            outcome = perform(evaluate, point, shipped.problem.outputs, number)
            state = "complete" if outcome.complete else "failed"
            return Evaluation(number, state, "refine", point, outcome.outputs or {}, outcome.failure)  # type: ignore[arg-type]

        limits = truth(self.problem).thresholds[row]
        answer = refine(model, Query.of(shipped.problem.box, limits[None]), measure, count)
        return [float(answer.point[name]) for name in shipped.problem.space.names], answer.probability_feasible


def settings_with(changes: Sequence[str]) -> MethodSettings:
    """Return the default settings with changes, each as name=value."""
    pairs = [change.partition("=") for change in changes]
    return Settings.from_dict({name: value for name, _, value in pairs})


def by_surrogate(model: Model, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the solver's designs (n x d, natural units) and their stated probabilities (n), measured designs left out."""
    solver, query = model.solver, Query.of(model.problem.box, thresholds)
    aim = getattr(model.settings, "probability", 0.5)
    found = [solver.predict(bound, aim) for bound in solver.bound(query.theta)]
    points = model.problem.space.natural(np.array([answer.x for answer in found]))
    return points, np.array([answer.probability for answer in found])


def judged(shipped: ShippedProblem, points: FloatArray, stated: FloatArray) -> tuple[float, float, float]:
    """Return the feasible share, the mean stated probability and the mean loss of answers to the first thresholds, in percent."""
    known = truth(shipped.name)
    thresholds, best = known.thresholds[: len(points)], known.f[: len(points)]
    f, c = shipped.evaluate_many(points)
    feasible = shipped.problem.box.feasible(np.column_stack([f, c]), thresholds)
    lost = losses(np.where(feasible, f, np.inf), feasible, best, known.span)
    return 100.0 * float(feasible.mean()), 100.0 * float(stated.mean()), float(lost.mean())


def group_of(problem: str) -> str:
    """Return the group that a problem belongs to; "other" if it is not of the rough suite."""
    return next((group for group, members in GROUPS.items() if any(s.name == problem for s in members)), "other")


def chosen(given: Sequence[str]) -> list[str]:
    """Return the problems that names and groups stand for."""
    found = (
        [s.name for word in given for s in GROUPS.get(word, ())]
        if given
        else [s.name for g in GROUPS.values() for s in g]
    )
    return list(dict.fromkeys([*found, *(problems.get(word).name for word in given if word not in GROUPS)]))


def read(path: Path) -> pd.DataFrame:
    """Return the lines of a file; none if it is not there."""
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=[f.name for f in fields(Line)])


def append(path: Path, lines: Sequence[Line]) -> None:
    """Append the lines of one run."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        if new:
            table.writerow([f.name for f in fields(Line)])
        table.writerows([f"{v:.6g}" if isinstance(v, float) else v for v in astuple(line)] for line in lines)


def report(table: pd.DataFrame) -> None:
    """Print means and intervals by problem and by group."""
    head = f"{'problem or group':34s} {'answers':10s} {'n':>4s} {'seeds':>5s}"
    print(f"{head} {'feasible %':>25s} {'stated %':>9s} {'loss %':>25s}")
    for label, part in table.groupby("settings", sort=False):
        print(f"settings: {label}")
        groups = part["problem"].map(group_of)
        for group in dict.fromkeys(groups):
            mine = part[groups == group]
            names = list(dict.fromkeys(mine["problem"]))
            for title, rows in [*((name, mine[mine["problem"] == name]) for name in names), (f"= {group}", mine)]:
                for (kind, n), some in rows.groupby(["answers", "evaluations"], sort=False):
                    feasible, stated, loss = (averaged(some, column) for column in ("feasible", "stated", "loss"))
                    seeds = some.groupby("problem")["seed"].nunique().min()
                    print(
                        f"{title:34s} {kind:10s} {n:4d} {seeds:5d} {shown(feasible)} {stated.mean:9.1f} {shown(loss)}"
                    )


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
    parser.add_argument("--settings", nargs="+", default=[], metavar="NAME=VALUE")
    parser.add_argument("--report", action="store_true", help="run nothing")
    given = parser.parse_args()
    settings_with(given.settings)  # Misspelt settings are refused before anything runs.
    names, at = chosen(given.problems), tuple(sorted(given.evaluations))
    units = [Unit(name, seed, at, tuple(given.settings)) for seed in range(given.seeds) for name in names]
    table = read(given.out)
    done = set(
        zip(table["problem"], table["seed"], table["settings"], table["answers"], table["evaluations"], strict=True)
    )
    last = f"refined {REFINEMENTS[-1]}"
    missing = [u for u in units if (u.problem, u.seed, u.label, last, at[-1]) not in done]
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
