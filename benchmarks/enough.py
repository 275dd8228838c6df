"""Whether the convergence that a study states is true: the loss of its answers against the figure by which a run stops.

python benchmarks/enough.py [--problems three_truss car ...] [--seeds 1] [--until 0.5%] [--budget 200] [--out FILE] [--smoke]

Each study runs until it has converged to the share, or to its budget. Its answers at the 100 thresholds of the problem's file
are then judged by the true functions: the loss is the gap to the true optimum in percent of how far the optimum moves over the
box, and 100 for an answer that breaks a limit. Thresholds that the study says cannot be met are left out, as in its figure, and
counted. A line is "kept" if the loss is below twice the figure that the study states;
those that spend their budget state one, too. Lines that --out holds already are not computed again. --smoke: one small problem.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from cbabo import Study, problems
from cbabo.bench.metrics import losses
from cbabo.bench.truth import truth
from cbabo.domain.convergence import Convergence, read_share
from cbabo.model import Model

PROBLEMS = (
    "three_truss",
    "rc_beam",
    "gkxwc2_active",
    "pressure_vessel",
    "pressure_vessel_active",
    "pressure_vessel_mixed",
    "g04_active",
    "speed_reducer_active",
    "ackley6_active",
    "truss10",
    "stop",
    "car_active",
)
FACTOR = 2.0
"""A loss below this many stated figures is as good as stated."""


@dataclass(frozen=True)
class Line:
    """What was found for one study."""

    problem: str
    seed: int
    until: float
    """The share at which it was to stop, in percent."""
    evaluations: int
    stopped: bool
    """Whether it stopped before its budget was spent."""
    moved: float
    gain: float
    risk: float
    figure: float
    """As the study states them, in percent."""
    loss: float
    """Of its answers, by the true functions, in percent."""
    infeasible: int
    """Answers that break a limit."""
    unreachable: int
    """Thresholds, of 100, that are said to be out of reach."""
    kept: bool
    estimating: float
    """Seconds for one estimate, the last."""


def measured(name: str, seed: int, until: float, budget: int) -> Line:
    """Run one study and compare what it states with the truth."""
    shipped = problems.get(name)
    study = Study.create(shipped.problem, "sqlite://", seed=seed)
    estimates: list[Convergence] = []
    study.run(shipped.evaluator(seed), budget=budget, in_process=True, until=until, on_convergence=estimates.append)
    began = time.perf_counter()
    stated = study.convergence()
    seconds = time.perf_counter() - began
    if stated is None:
        raise SystemExit(f"{name}: too few evaluations to say anything; raise --budget")
    loss, infeasible, unreachable = true_loss(name, study.model())
    percent = [100.0 * value for value in (stated.moved, stated.gain, stated.risk, stated.figure)]
    stopped = stated.figure <= until and len(study.evaluations) < budget
    kept = loss < FACTOR * percent[-1]
    count = len(study.evaluations)
    return Line(name, seed, 100.0 * until, count, stopped, *percent, loss, infeasible, unreachable, kept, seconds)


def true_loss(name: str, model: Model) -> tuple[float, int, int]:
    """Return the mean loss of a model's answers in percent, how many of them break a limit, and how many are not counted."""
    shipped, known = problems.get(name), truth(name)
    found = model.predict_many(known.thresholds)
    y = np.column_stack(shipped.evaluate_many(found.points))
    feasible, met = shipped.problem.box.feasible(y, known.thresholds), found.reachable
    loss = losses(y[:, 0], feasible, known.f, known.span)[met]
    return float(np.nanmean(loss)), int((~feasible & met).sum()), int((~met).sum())


def main() -> None:
    """Measure all studies that are not in the file yet, and sum them up."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", nargs="+", default=PROBLEMS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--until", default="0.5%")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    until = read_share("--until", options.until)
    names, budget = (("gkxwc2_active",), 40) if options.smoke else (options.problems, options.budget)
    rows = _read(options.out)
    for seed in range(options.seeds):
        for name in names:
            if not any(row["problem"] == name and row["seed"] == str(seed) for row in rows):
                line = measured(name, seed, until, budget)
                rows.append({f.name: str(value) for f, value in zip(fields(Line), astuple(line), strict=True)})
                _write(options.out, rows)
                print(", ".join(f"{key} {value[:7]}" for key, value in rows[-1].items()), flush=True)
    kept, stopped = (sum(row[key] == "True" for row in rows) for key in ("kept", "stopped"))
    print(
        f"{len(rows)} studies, {stopped} stopped before their budget, {kept} with a loss below {FACTOR:g} stated figures"
    )
    if options.smoke and not rows:
        sys.exit(1)


def _read(path: Path | None) -> list[dict[str, str]]:
    if path is None or not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write(path: Path | None, rows: list[dict[str, str]]) -> None:
    if path is not None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [f.name for f in fields(Line)])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
