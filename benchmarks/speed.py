"""How fast the method is: whole runs, answers, and how one iteration grows with the problem.

python benchmarks/speed.py run          a run of 200 evaluations on g01 and on car, beside the reference implementation on BoTorch
python benchmarks/speed.py predict      the network's answers on g01: many at once, and a single one
python benchmarks/speed.py recommend    a recommendation among 50,000 thresholds on car
python benchmarks/speed.py refine       what a refinement on car costs beside its two evaluations
python benchmarks/speed.py growth       seconds and memory of one iteration, by evaluations, constraints and variables

--smoke makes any of them small, to see that it works; `run --evaluations 60 --problems g01` cuts the comparison short. Answers
are timed as the least of several repeats; look at the load average before trusting a figure.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar
from unittest.mock import patch

import numpy as np
import torch

import cbabo.methods.step
from cbabo import Constraint, Objective, Problem, Real, Settings, Study, problems
from cbabo.answering.refine import refine
from cbabo.decisions.recommend import Intent
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.model import Model
from cbabo.problems import ShippedProblem

P = ParamSpec("P")
R = TypeVar("R")
SEED = 0


def main() -> None:
    """Read the command line and measure one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name in ("run", "predict", "recommend", "refine", "growth"):
        part = parts.add_parser(name)
        part.add_argument("--smoke", action="store_true", help="a small measurement only")
        if name != "growth":
            part.add_argument("--evaluations", type=int, default=200, help="of the runs")
    parts.choices["run"].add_argument("--problems", nargs="+", default=["g01", "car"])
    parts.choices["run"].add_argument("--ours-only", action="store_true", help="leave BoTorch out")
    parts.choices["run"].add_argument("--threads", type=int, default=1, help="of torch for BoTorch")
    parts.choices["growth"].add_argument("--n", nargs="+", type=int, default=[200, 500, 1000])
    parts.choices["growth"].add_argument("--m", nargs="+", type=int, default=[1, 10, 30])
    parts.choices["growth"].add_argument("--d", nargs="+", type=int, default=[2, 20, 50])
    cell = parts.add_parser("cell")  # one cell of the growth table, in a process of its own
    cell.add_argument("sizes", nargs=3, type=int)
    given = parser.parse_args()
    if given.part == "cell":
        print(json.dumps(measure_cell(*given.sizes)))
        return
    print_machine()
    {"run": runs, "predict": predictions, "recommend": recommendation, "refine": refinement, "growth": growth}[
        given.part
    ](given)


def print_machine() -> None:
    """Print what the figures depend on."""
    load = " ".join(f"{v:.1f}" for v in os.getloadavg())
    print(f"cores {os.cpu_count()}, torch threads {torch.get_num_threads()}, load average {load}")
    rate = matrix_rate(5)
    print(f"torch.mm of 2,048-square matrices in double precision: {rate / 1e9:.1f} GFLOP/s")


def matrix_rate(repeats: int) -> float:
    """Return the FLOP rate of a 2,048-square matrix product, the best of several."""
    a, b = torch.rand(2, 2048, 2048, dtype=torch.float64)
    return 2 * 2048**3 / least(lambda: torch.mm(a, b), repeats)


def least(action: Callable[[], object], repeats: int) -> float:
    """Return the least seconds of several repeats."""
    return min(timed(action) for _ in range(repeats))


def timed(action: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


class Clock(Generic[P, R]):
    """A function that adds up the seconds spent in it."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.seconds = 0.0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        began = time.perf_counter()
        try:
            return self.function(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - began


def runs(given: argparse.Namespace) -> None:
    """Compare whole runs with the paper written down on BoTorch."""
    evaluations = 40 if given.smoke else given.evaluations
    for name in ["three_truss"] if given.smoke else given.problems:
        shipped = problems.get(name)
        ours = run_ours(shipped, evaluations)
        if not given.ours_only:
            run_reference(shipped, evaluations, ours, given.threads)


def run_ours(shipped: ShippedProblem, evaluations: int) -> tuple[float, float]:
    """Run our method as a user does, and print where the time goes; return seconds by the wall and of the processors."""
    study = Study.create(shipped.problem, "sqlite://", seed=SEED, settings=Settings.paper())
    step, evaluate = Clock(cbabo.methods.step.step), Clock(shipped.evaluate)
    processors = time.process_time()
    with patch.object(cbabo.methods.step, "step", step):
        seconds = timed(lambda: study.run(evaluate, budget=evaluations))
    processors = time.process_time() - processors
    rest = seconds - step.seconds - evaluate.seconds
    print(f"{shipped.name}, {evaluations} evaluations")
    print(
        f"  ours    {seconds:8.2f} s, processors {processors:8.2f} s   iterations {step.seconds:.2f} s, storage {rest:.2f} s"
    )
    return seconds, processors


def run_reference(shipped: ShippedProblem, evaluations: int, ours: tuple[float, float], threads: int) -> None:
    """Run the paper on BoTorch, and print how many times longer it takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its optimiser, and of torch about its dependencies
        from cbabo.bench import botorch_reference

        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        processors = time.process_time()
        result = botorch_reference.run(shipped, SEED, Settings.paper(), evaluations)
        processors = time.process_time() - processors
        torch.set_num_threads(before)
    shares = f"fitting {result.fitting:.2f} s, training {result.training:.2f} s"
    print(f"  BoTorch {result.seconds:8.2f} s, processors {processors:8.2f} s   {shares}")
    load = f"load average {os.getloadavg()[0]:.1f}"
    ratios = f"{result.seconds / ours[0]:8.1f}  , processors {processors / ours[1]:8.1f}  "
    print(f"  ratio   {ratios}   (limit 10, aim 25; {load})", flush=True)


def studied(name: str, given: argparse.Namespace) -> tuple[ShippedProblem, Study, Model]:
    """Return a shipped problem with a finished study of it and its model."""
    shipped = problems.get(name)
    study = Study.create(shipped.problem, "sqlite://", seed=SEED, settings=Settings.paper())
    study.run(shipped.evaluate, budget=40 if given.smoke else given.evaluations)
    return shipped, study, study.model()


def predictions(given: argparse.Namespace) -> None:
    """Time many answers and a single one, on g01."""
    shipped, _, model = studied("g01", given)
    count, repeats = (2_000, 3) if given.smoke else (20_000, 40)
    box = shipped.problem.box
    thresholds = box.from_theta(np.random.default_rng(SEED).random((count, len(box.names))))
    work = 2 * count * sum(w * h for w, h in zip(model.pcm.sizes, model.pcm.sizes[1:], strict=False))
    seconds, rate = math.inf, 0.0
    for _ in range(repeats):  # in turn, so that both meet the same load
        rate = max(rate, matrix_rate(1))
        seconds = min(seconds, timed(lambda: model.predict_many(thresholds, method="pcm").points))
    share = work / seconds / rate
    print(f"{count} answers {seconds:.3f} s: {work / seconds / 1e9:.1f} GFLOP/s, torch.mm {rate / 1e9:.1f} GFLOP/s")
    print(f"share of torch.mm's rate            {share:.2f}   (limit 0.5)")
    singles = [timed(partial(one_answer, model, box.named(row))) for row in thresholds[:200]]
    print(
        f"one answer with its uncertainty     {1000 * min(singles):.2f} ms, median {1000 * statistics.median(singles):.2f}"
    )
    print(f"                                    after {len(model.evaluations)} evaluations   (limit 5 ms)")


def one_answer(model: Model, thresholds: Mapping[str, float]) -> tuple[float, float]:
    """Ask for one answer, its deviation and its probability."""
    answer = model.predict(thresholds, method="pcm")
    return answer.objective.std, answer.probability_feasible


def recommendation(given: argparse.Namespace) -> None:
    """Time a recommendation, on car."""
    shipped, _, model = studied("car", given)
    names = shipped.problem.box.names
    kinds: list[Intent] = ["tighten", "lock", "loosen"]
    intents = {name: kinds[i % 3] for i, name in enumerate(names)}
    base = shipped.problem.box.named(shipped.problem.box.from_theta(np.full((1, len(names)), 0.5))[0])
    seconds = least(lambda: model.recommend(base, intents), 2 if given.smoke else 5)
    print(f"recommendation, {model.settings.recommend_candidates} candidates   {seconds:.2f} s   (limit 2 s)")


def refinement(given: argparse.Namespace) -> None:
    """Time refinements beside their evaluations, on car."""
    shipped, study, model = studied("car", given)
    box = shipped.problem.box
    thetas = np.random.default_rng(SEED).uniform(0.3, 0.8, (2 if given.smoke else 8, len(box.names)))
    whole, method = [], []
    for row in box.from_theta(thetas):
        evaluate = Clock(shipped.evaluate)
        seconds = timed(partial(study.refine, box.named(row), evaluate))
        whole.append(seconds - evaluate.seconds)
        method.append(timed(partial(refine, model, box.named(row), measured_by(shipped))))
    print(
        f"refinement without its evaluations  {min(whole):.2f} s, median {statistics.median(whole):.2f}   (limit 1 s)"
    )
    print(f"  of it with a model at hand        {min(method):.2f} s, median {statistics.median(method):.2f}")


def measured_by(shipped: ShippedProblem) -> Callable[[Mapping[str, float]], Evaluation]:
    """Return a function that measures a design and stores nothing."""
    return lambda point: Evaluation(0, "complete", "refine", point, shipped.evaluate(point))


def growth(given: argparse.Namespace) -> None:
    """Print seconds and memory of one iteration for every combination of sizes, each measured in a process of its own."""
    sizes = ([40, 60], [1, 2], [2]) if given.smoke else (given.n, given.m, given.d)
    print(
        "one iteration from the last fit's hyperparameters; in brackets: one that also fits from scratch; peak memory in GiB"
    )
    print(f"{'m':>3} {'d':>3}" + "".join(f"{f'n = {n}':>28}" for n in sizes[0]) + f"{'exponent':>10}")
    for m in sizes[1]:
        for d in sizes[2]:
            cells = []
            print(f"{m:3d} {d:3d}", end="", flush=True)
            for n in sizes[0]:
                cells.append(cell_in_a_process(n, m, d))
                warm, cold, memory = cells[-1]
                print(f"{f'{warm:.2f} s ({cold:.2f} s) {memory:.2f}':>28}", end="", flush=True)
            slope = np.polyfit(np.log(sizes[0]), np.log([c[0] for c in cells]), 1)[0] if len(cells) > 1 else math.nan
            print(f"{slope:10.2f}", flush=True)
    print("limits for n = 1000, m = 10, d = 20: 60 s and 4 GiB")


def cell_in_a_process(n: int, m: int, d: int) -> tuple[float, float, float]:
    """Measure one cell apart, so that its peak memory is its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "cell", str(n), str(m), str(d)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"n = {n}, m = {m}, d = {d} failed: {done.stderr}")
    warm, cold, memory = json.loads(done.stdout.splitlines()[-1])
    return warm, cold, memory


def measure_cell(n: int, m: int, d: int) -> tuple[float, float, float]:
    """Return seconds of an iteration after another one, of one from nothing, and the peak memory in GiB."""
    settings = Settings.paper().replace(horizon=2)  # monotonic guidance acts in the second iteration
    problem, rows = smooth(n, m, d)
    none = Evaluations(problem, ())
    earlier, now = Evaluations(problem, rows[:-5]), Evaluations(problem, rows)
    states = []
    cold = timed(lambda: states.append(cbabo.methods.step.step(earlier, none, None, settings, SEED)[1]))
    warm = timed(lambda: cbabo.methods.step.step(now, none, states[0], settings, SEED))
    unit = 1 if sys.platform == "darwin" else 1024
    return warm, cold, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def smooth(n: int, m: int, d: int) -> tuple[Problem, tuple[Evaluation, ...]]:
    """Return a smooth problem with m constraints and d variables, and n random evaluations of it."""
    random = np.random.default_rng([n, m, d])
    x = random.random((n, d))
    centres, weights = random.random((1 + m, 1, d)), random.random((1 + m, d, 1)) / d
    bends = random.normal(size=(d, 1 + m)) / math.sqrt(d)
    y = (np.square(x - centres) @ weights)[..., 0].T + 0.1 * np.sin(2 * math.pi * x @ bends)
    limits = [
        Constraint(f"c{j}", "<=", low=float(np.quantile(y[:, j], 0.3)), high=float(y[:, j].max()))
        for j in range(1, m + 1)
    ]
    problem = Problem("smooth", [Real(f"x{i + 1}", 0.0, 1.0) for i in range(d)], Objective("f"), limits)
    rows = (
        Evaluation(
            i + 1,
            "complete",
            "run",
            dict(zip(problem.space.names, x[i].tolist(), strict=True)),
            dict(zip(problem.outputs, y[i].tolist(), strict=True)),
        )
        for i in range(n)
    )
    return problem, tuple(rows)


if __name__ == "__main__":
    main()
