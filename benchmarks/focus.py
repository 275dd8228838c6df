"""One limit vector: the regret of a focused study after 50, 100 and 200 evaluations, and of other optimisers.

python benchmarks/focus.py run --table focus.csv [--methods cbabo ...] [--problems ...] [--rows 0 1] [--seeds 3] [--budget 200]
python benchmarks/focus.py show --table focus.csv

Regret is that of the best measured design that obeys the limits, in percent of how far the optimum moves from the strictest to
the most relaxed limits, at most 100; 100 where none obeys them. Baselines start with the Latin hypercube that a focused study of
the same seed starts with. Rows of the table are appended as they are computed and never computed twice. Intervals are of two
standard errors over runs, seconds of processor time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from cbabo import Study, problems
from cbabo.bench.baselines import BASELINES
from cbabo.bench.baselines.sequential import Data, Task, search
from cbabo.bench.truth import truth
from cbabo.methods.designs import latin_hypercube
from cbabo.methods.settings import Settings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.threads import one_thread

SMOOTH = (
    "car_active",
    "speed_reducer_active",
    "pressure_vessel_active",
    "g07",
    "g04_active",
    "gkxwc2_active",
    "three_truss",
)
ROUGH = ("ackley6_active", "ackley10_active", "c13", "keane18_bounded")
OURS = "cbabo"
METHODS = (OURS, "LogcEI", "BoTorch LogcEI", "SCBO", "Optuna")
AFTER = (50, 100, 200)
KEY = ["problem", "row", "seed", "budget", "method"]


def regrets(name: str, row: int, y: FloatArray) -> list[float]:
    """Return the regret after 50, 100 and 200 evaluations with outputs y (n x q, NaN where failed); NaN where n is less."""
    known, box = truth(name), problems.get(name).problem.box
    feasible = box.feasible(y, np.broadcast_to(known.thresholds[row], (len(y), len(known.thresholds[row]))))
    f = np.where(feasible, y[:, 0], np.inf)
    regret = np.minimum.accumulate(np.clip(100.0 * (f - known.f[row]) / known.span, -100.0, 100.0))
    return [float(regret[n - 1]) if n <= len(y) else np.nan for n in AFTER]


def ours(name: str, row: int, seed: int, budget: int) -> FloatArray:
    """Return the outputs of a focused study in the order of its evaluations."""
    shipped = problems.get(name)
    limits = shipped.problem.box.named(truth(name).thresholds[row])
    study = Study.create(shipped.problem, "sqlite://", seed=seed, focus=[limits])
    study.run(shipped.evaluate, budget=budget, in_process=True)
    names = shipped.problem.outputs
    return np.array([[e.outputs.get(n, np.nan) for n in names] for e in study.evaluations])


def baseline(name: str, row: int, seed: int, budget: int, method: str) -> FloatArray:
    """Return the outputs of a baseline in the order of its evaluations."""
    shipped = problems.get(name)
    space = shipped.problem.space
    y: list[FloatArray] = []

    class Recorded(Task):
        def evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = super().evaluate(x)
            y.extend(found[1])
            return found

    task = Recorded(shipped, truth(name).thresholds[row], child_seed(seed, "baseline", row))
    count = Settings.default().first_batch(space.dimension, focused=True)
    x = space.unit(space.array(latin_hypercube(space, count, seed, 0)))
    data = Data.of(*task.evaluate(x))
    search(task, data, budget - len(x), BASELINES[method])
    return np.array(y)


def run(arguments: argparse.Namespace) -> None:
    """Compute what the table lacks."""
    table: Path = arguments.table
    for seed in range(arguments.seeds):
        for row in arguments.rows:
            for name in arguments.problems:
                for method in arguments.methods:
                    key = (name, row, seed, arguments.budget)
                    if table.exists() and (pd.read_csv(table)[KEY] == [*key, method]).all(axis=1).any():
                        continue
                    began = time.process_time()
                    with one_thread():
                        y = ours(*key) if method == OURS else baseline(*key, method)
                    seconds = time.process_time() - began
                    values = [*key, method, *regrets(name, row, y), seconds]
                    line = pd.DataFrame([values], columns=[*KEY, *(f"regret@{n}" for n in AFTER), "seconds"])
                    line.to_csv(table, mode="a", header=not table.exists(), index=False)
                    print(*(f"{v:.4g}" if isinstance(v, float) else v for v in values), flush=True)


def show(arguments: argparse.Namespace) -> None:
    """Print means of the runs that all methods have, with intervals, for smooth and rough problems and for each."""
    found = pd.read_csv(arguments.table)
    found = found[found["method"].isin(arguments.methods)]
    shared = found.groupby(KEY[:-1])["method"].transform("nunique") == found["method"].nunique()
    found = found[shared]
    found["kind"] = np.where(found["problem"].isin(SMOOTH), "smooth", "rough")
    for by in (["kind"], ["kind", "problem"]):
        for where, group in found.groupby(["budget", *by]):
            print(*where)
            for method in arguments.methods:
                rows = group[group["method"] == method]
                if len(rows):
                    cells = [_interval(rows[f"regret@{n}"]) for n in AFTER]
                    print(f"  {method:16}", *cells, f"{rows['seconds'].mean():6.0f} s  ({len(rows)})")


def _interval(values: pd.Series[float]) -> str:
    error = 2.0 * values.std() / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():8.3f} +- {error:6.3f}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "show"))
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--problems", nargs="+", default=(*SMOOTH, *ROUGH))
    parser.add_argument("--rows", nargs="+", type=int, default=(0,))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=max(AFTER))
    arguments = parser.parse_args()
    (run if arguments.command == "run" else show)(arguments)


if __name__ == "__main__":
    main()
