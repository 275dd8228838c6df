"""How a study grows: processor time and memory of a batch, a model and its answers, with up to thousands of evaluations.

python benchmarks/growing.py                  the table: car, 60 variables and 60 outputs at several sizes, with fitted exponents
python benchmarks/growing.py --everything     the same with hyperparameters fitted to all evaluations, as if there were few
python benchmarks/growing.py run              the last 20 of 2,000 evaluations of car, through a study in a file
python benchmarks/growing.py effort           a study of car whose evaluations take no time: when its effort is lowered

Evaluations are made up without a run: a quarter is spread over the cube, the others lie around the best of these, closer and
closer, as those of a run do. Every line is measured in a process of its own. Seconds are processor time of one thread. --smoke
makes everything small, to see that it works.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pandas as pd

from cbabo import Constraint, Objective, Problem, Real, Settings, Study, problems
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.space import Point
from cbabo.methods.learner import Learner
from cbabo.methods.step import step
from cbabo.model import make_model
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.surrogate import large

Simulate = Callable[[Point], Mapping[str, float]]
SUBJECTS: Mapping[str, tuple[int, ...]] = {
    "car": (200, 500, 1000, 2000),
    "60 variables": (200, 500, 1000, 2000),
    "60 outputs": (200, 500, 1000, 2000),
}
SMOKE: Mapping[str, tuple[int, ...]] = {"car": (60, 90), "60 variables": (80,), "60 outputs": (60,)}
MEASURED = ("first batch", "batch", "model", "library", "one answer", "1,000 fast")
SPREAD = 0.25
"""Share of the evaluations that lie anywhere."""
STEPS = (0.1, 0.05, 0.02)
"""Distances of the others from the best ones, round by round."""
ANSWERS = 1000
SEED = 0


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="table", choices=["table", "run", "effort", "cell"])
    parser.add_argument("subject", nargs="*", help="of one cell: its subject and number of evaluations")
    parser.add_argument("--everything", action="store_true", help="fit hyperparameters to all evaluations")
    parser.add_argument("--subjects", nargs="+", choices=list(SUBJECTS), default=list(SUBJECTS))
    parser.add_argument("--sizes", nargs="+", type=int, help="evaluations, the same for all subjects")
    parser.add_argument("--smoke", action="store_true", help="a small measurement only")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    if given.part == "cell":
        name, n = given.subject
        tuning = replace(large.TUNING, fitted=10**6, pair_elements=10**12) if given.everything else large.TUNING
        with patch.object(large, "TUNING", tuning):
            print(json.dumps(measure(name, int(n))))
    elif given.part == "run":
        last_evaluations(*((60, 70) if given.smoke else (1980, 2000)))
    elif given.part == "effort":
        lowered_effort(100 if given.smoke else 1500)
    else:
        sizes = SMOKE if given.smoke else {name: given.sizes or SUBJECTS[name] for name in given.subjects}
        table(sizes, everything=given.everything)
        if given.smoke:
            last_evaluations(60, 70)


def table(subjects: Mapping[str, Sequence[int]], *, everything: bool) -> None:
    """Measure and print all lines, and the exponents by which the seconds grow from the second size on."""
    print(f"| problem | evaluations | {' | '.join(f'{name}, s' for name in MEASURED)} | peak memory, GiB |")
    print(f"|---|---|{'---|' * (len(MEASURED) + 1)}")
    for name, sizes in subjects.items():
        lines = []
        for n in sizes:
            command = [sys.executable, __file__, "cell", name, str(n), *(["--everything"] if everything else [])]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            lines.append([found[part] for part in MEASURED])
            print(
                f"| {name} | {n:,} | {' | '.join(f'{s:.2f}' for s in lines[-1])} | {found['memory']:.2f} |", flush=True
            )
        if len(sizes) > 2:
            at = np.log(np.array(sizes[1:]))
            slopes = [np.polyfit(at, np.log(np.maximum(s, 1e-3)), 1)[0] for s in np.array(lines)[1:].T]
            print(f"| {name} | exponent | {' | '.join(f'{slope:.1f}' for slope in slopes)} | |", flush=True)


def measure(name: str, n: int) -> dict[str, float]:
    """Measure one line."""
    problem, simulate = subject(name)
    rows, nothing, state, found = evaluations(problem, simulate, n), Evaluations(problem, ()), None, {}
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        batch, state = step(Evaluations(problem, rows), nothing, state, Settings.default(), SEED)
        seconds.append(time.process_time() - begun)
        rows = (*rows, *measured(simulate, batch, len(rows)))
    found["first batch"], found["batch"] = seconds[0], float(np.mean(seconds[1:]))
    begun = time.process_time()
    model = make_model(Evaluations(problem, rows), Learner.from_bytes(state), Settings.default(), SEED)
    found["model"] = _lap(begun)
    begun = time.process_time()
    assert model.fast_map.library is not None
    found["library"] = _lap(begun)
    begun = time.process_time()
    model.predict(problem.box.nominal)
    found["one answer"] = _lap(begun)
    theta = sobol(len(problem.box.names), SEED, ANSWERS).numpy()
    frame = pd.DataFrame(problem.box.from_theta(theta), columns=list(problem.box.names))
    begun = time.process_time()
    model.predict_many(frame, fast=True)
    found["1,000 fast"] = _lap(begun)
    return {**found, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def _lap(begun: float) -> float:
    return time.process_time() - begun


def last_evaluations(imported: int, budget: int) -> None:
    """Import old runs of car into a study in a file and run the rest; print what each batch took."""
    problem, simulate = subject("car")
    rows = evaluations(problem, simulate, imported)
    frame = pd.DataFrame([{**row.point, **row.outputs} for row in rows])
    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(problem, f"sqlite:///{folder}/growing.db", seed=SEED)
        study.add(frame)
        spent, waits = [(time.process_time(), time.monotonic())], []

        def timed(point: Point) -> Mapping[str, float]:
            outputs = simulate(point)
            spent.append((time.process_time(), time.monotonic()))
            waits.append(tuple(b - a for a, b in zip(spent[-2], spent[-1], strict=True)))
            return outputs

        study.run(timed, budget=budget - imported, in_process=True)
        batch = study.settings.batch_size
        for i, (processor, wall) in enumerate(waits[::batch]):
            print(f"batch {i + 1}: {processor:.1f} s of processor time, {wall:.1f} s")
        begun = time.process_time()
        answer = study.model().predict(problem.box.nominal)
        print(f"{len(study.evaluations)} evaluations; a model and an answer: {_lap(begun):.1f} s, {answer.status}")
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def lowered_effort(imported: int) -> None:
    """Run car with many old runs and a simulator that takes no time, as if batches of more than 2 s were too costly."""
    from cbabo.methods import effort

    problem, simulate = subject("car")
    frame = pd.DataFrame([{**row.point, **row.outputs} for row in evaluations(problem, simulate, imported)])
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(effort, "TUNING", replace(effort.TUNING, least_seconds=2)),
    ):
        study = Study.create(problem, f"sqlite:///{folder}/growing.db", seed=SEED)
        study.add(frame)
        for budget in range(5, 60, 5):
            begun = time.process_time()
            study.run(simulate, budget=budget, in_process=True)
            print(
                f"{budget} evaluations: {_lap(begun):.1f} s of processor time, effort lowered {study.effort.level} times"
            )


def subject(name: str) -> tuple[Problem, Simulate]:
    """Return a problem of the table and its simulator."""
    if name == "car":
        shipped = problems.get("car_active")
        return shipped.problem, shipped.evaluate
    return smooth(60, 5) if name == "60 variables" else smooth(10, 59)


def smooth(d: int, q: int) -> tuple[Problem, Simulate]:
    """Return a smooth problem with so many variables and limited outputs: no output depends on single variables only."""
    random = np.random.default_rng(1)
    slopes, centre = random.normal(size=(q, d)) / np.sqrt(d), random.uniform(0.2, 0.8, d)
    weights, names = random.uniform(0.2, 1.0, d), [f"x{i}" for i in range(d)]

    def simulate(point: Point) -> dict[str, float]:
        x = np.array([float(point[name]) for name in names])
        t = slopes @ (x - 0.5)
        g = t + 0.5 * t * t + 0.3 * np.sin(3.0 * x[np.arange(q) % d] + t)
        return {"f": float(weights @ np.square(x - centre)), **{f"g{j}": float(v) for j, v in enumerate(g)}}

    limits = [Constraint(f"g{j}", "<=", low=0.1, high=1.0) for j in range(q)]
    return Problem("smooth", [Real(n, 0.0, 1.0) for n in names], Objective("f"), limits), simulate


def evaluations(problem: Problem, simulate: Simulate, n: int) -> tuple[Evaluation, ...]:
    """Return so many evaluations as a run might have made them."""
    space, random = problem.space, np.random.default_rng(SEED)
    rows = measured(simulate, space.points(sobol(space.dimension, SEED, max(8, int(SPREAD * n))).numpy()), 0)
    for i, distance in enumerate(STEPS):
        best = best_of(Evaluations(problem, rows))
        count = (n - len(rows)) // (len(STEPS) - i)
        steps = distance * random.normal(size=(count, space.dimension))
        steps *= random.random(steps.shape) < max(0.3, 2.0 / space.dimension)
        x = np.clip(best[random.integers(len(best), size=count)] + steps, 0.0, 1.0)
        rows = (*rows, *measured(simulate, space.points(x), len(rows)))
    return rows


def best_of(rows: Evaluations) -> FloatArray:
    """Return the best designs for 64 thresholds of the box; those of the smallest objective where none obeys any."""
    box = rows.problem.box
    limits = box.from_theta(sobol(len(box.names), SEED, 64).numpy())
    value = rows.problem.objective.sign * rows.y[:, 0]
    obeyed = box.obeyed(rows.y, limits)
    best = np.where(obeyed, value, np.inf).argmin(1)[obeyed.any(1)]
    return rows.x[np.unique(best) if len(best) else np.argsort(value)[:8]]


def measured(simulate: Simulate, points: list[Point], before: int) -> tuple[Evaluation, ...]:
    """Evaluate designs."""
    return tuple(
        Evaluation(before + i + 1, "complete", "run", point, dict(simulate(point))) for i, point in enumerate(points)
    )


if __name__ == "__main__":
    main()
