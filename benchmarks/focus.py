"""One limit vector: the regret of a focused study after 50, 100 and 200 evaluations, and of other optimisers.

python benchmarks/focus.py run --table focus.csv [--methods cbabo ...] [--problems smooth rough c13 ...] [--runs 5] [--budget 200]
python benchmarks/focus.py show --table focus.csv

Run i of a problem has seed i and the i-th of the problem's known limit vectors. Regret is that of the best measured design that
obeys the limits, in percent of how far the optimum moves from the strictest to the most relaxed limits, at most 100; 100 where
none obeys them. Baselines start with the Latin hypercube that a focused study of the same seed starts with. Lines of the table
are appended as they are computed and never computed twice.

Each method is compared with ours on the runs that both have: its mean regret, ours, and the mean of the paired differences, ours
minus its own, which is negative where we are ahead. A mean weighs problems alike; intervals hold 95 %, by bootstrap over the runs
of each problem. Seconds are of the processor, for one run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cbabo import Study, problems
from cbabo.bench.baselines import BASELINES
from cbabo.bench.baselines.sequential import Data, Task, search
from cbabo.bench.metrics import Interval, average_interval
from cbabo.bench.truth import truth
from cbabo.methods.designs import latin_hypercube
from cbabo.methods.settings import Settings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.threads import one_thread

SUITES = {
    "smooth": (
        "car_active",
        "speed_reducer_active",
        "pressure_vessel_active",
        "g04_active",
        "g07",
        "g10_active",
        "gkxwc1_active",
        "ackley6_active",
        "c13",
    ),
    "rough": ("truss10", "bridge21", "cantilever10", "stop", "wells4", "ripples5", "absorbers6", "wells8"),
    "others": (
        "gkxwc2_active",
        "three_truss",
        "speed_reducer11",
        "ackley10_active",
        "cantilever20",
        "bridge21_members",
    ),
}
"""Problems by suite; the last are for a check of what was chosen by looking at the others."""
OURS = "cbabo"
METHODS = (OURS, "LogcEI", "LogcEI exact", "BoTorch LogcEI", "SCBO", "Optuna")
AFTER = (50, 100, 200)
COLUMNS = [f"regret@{n}" for n in AFTER]
KEY = ["problem", "run", "budget", "method"]


def regrets(name: str, row: int, y: FloatArray) -> list[float]:
    """Return the regret after 50, 100 and 200 evaluations with outputs y (n x q, NaN where failed); NaN where n is less."""
    known, box = truth(name), problems.get(name).problem.box
    feasible = box.feasible(y, np.broadcast_to(known.thresholds[row], (len(y), len(known.thresholds[row]))))
    f = np.where(feasible, y[:, 0], np.inf)
    regret = np.minimum.accumulate(np.clip(100.0 * (f - known.f[row]) / known.span, -100.0, 100.0))
    return [float(regret[n - 1]) if n <= len(y) else np.nan for n in AFTER]


def ours(name: str, number: int, budget: int) -> FloatArray:
    """Return the outputs of a focused study in the order of its evaluations."""
    shipped = problems.get(name)
    limits = shipped.problem.box.named(truth(name).thresholds[number])
    study = Study.create(shipped.problem, "sqlite://", seed=number, focus=[limits])
    study.run(shipped.evaluate, budget=budget, in_process=True)
    names = shipped.problem.outputs
    return np.array([[e.outputs.get(n, np.nan) for n in names] for e in study.evaluations])


def baseline(name: str, number: int, budget: int, method: str) -> FloatArray:
    """Return the outputs of a baseline in the order of its evaluations."""
    shipped = problems.get(name)
    space = shipped.problem.space
    y: list[FloatArray] = []

    class Recorded(Task):
        def evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = super().evaluate(x)
            y.extend(found[1])
            return found

    task = Recorded(shipped, truth(name).thresholds[number], child_seed(number, "baseline", number))
    count = Settings.default().first_batch(len(space.variables), focused=True)
    x = space.unit(space.array(latin_hypercube(space, count, number, 0)))
    data = Data.of(*task.evaluate(x))
    search(task, data, budget - len(x), BASELINES[method])
    return np.array(y)


def run(arguments: argparse.Namespace) -> None:
    """Compute what the table lacks."""
    table: Path = arguments.table
    for number in range(arguments.runs):
        for name in named(arguments.problems):
            for method in arguments.methods:
                key = (name, number, arguments.budget)
                if table.exists() and (pd.read_csv(table)[KEY] == [*key, method]).all(axis=1).any():
                    continue
                began = time.process_time()
                with one_thread():
                    y = ours(*key) if method == OURS else baseline(*key, method)
                values = [*key, method, *regrets(name, number, y), time.process_time() - began]
                line = pd.DataFrame([values], columns=[*KEY, *COLUMNS, "seconds"])
                line.to_csv(table, mode="a", header=not table.exists(), index=False)
                print(*(f"{v:.4g}" if isinstance(v, float) else v for v in values), flush=True)


def named(given: Sequence[str]) -> list[str]:
    """Return the problems that names and suites stand for."""
    return [name for word in given for name in SUITES.get(word, (word,))]


def show(arguments: argparse.Namespace) -> None:
    """Print each method beside ours, for every suite and for every problem."""
    table = pd.read_csv(arguments.table)
    for suite, names in SUITES.items():
        for title, members in [(suite, names), *((name, (name,)) for name in names)]:
            part = table[table["problem"].isin(members)]
            if len(part):
                print(title)
                _show_part(part, arguments.methods)


def _show_part(part: pd.DataFrame, methods: Sequence[str]) -> None:
    mine = part[part["method"] == OURS]
    for method in methods:
        pairs = mine.merge(part[part["method"] == method], on=KEY[:-1], suffixes=("", " of other"))
        if method == OURS or not len(pairs):
            continue
        cells = []
        for column in COLUMNS:
            our, other = pairs[column], pairs[f"{column} of other"]
            theirs, we, gap = (_averaged(pairs["problem"], v) for v in (other, our, our - other))
            cells.append(f"{theirs.mean:6.2f} {we.mean:6.2f} {gap.mean:7.2f} [{gap.low:6.2f}, {gap.high:6.2f}]")
        seconds = f"{pairs['seconds of other'].mean():5.0f} s, ours {pairs['seconds'].mean():3.0f} s"
        print(f"  {method:16}", " | ".join(cells), f"| {seconds} ({len(pairs)} runs)")


def _averaged(names: pd.Series[str], values: pd.Series[float]) -> Interval:
    """Return the average over problems of the mean over their runs."""
    return average_interval([[[v] for v in part] for _, part in values.groupby(names, sort=False)])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "show"))
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--problems", nargs="+", default=("smooth", "rough"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--budget", type=int, default=max(AFTER))
    arguments = parser.parse_args()
    (run if arguments.command == "run" else show)(arguments)


if __name__ == "__main__":
    main()
