"""Problems with a choice of materials: loss of the answers, and how often they have the right material.

python benchmarks/categorical.py [--problems car_material welded_beam_material] [--seeds 1] [--evaluations 60 100 200]
                                 [--models FOLDER]

Full and fast answers after each number of evaluations, at the thresholds whose true optimum is known by enumeration over the
materials (`python -m cbabo.bench.truth`). The loss is the gap to the true optimum in percent of how far the optimum moves over
the box, and 100 where the answer is infeasible. Asked for: after 200 evaluations a mean loss of at most 1 and the right material
for at least 98 % of the thresholds. --models keeps the models of the last number of evaluations.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from subjects import subject

from cbabo import Study, problems
from cbabo.domain.categorical import Categorical
from cbabo.model import Model
from cbabo.numerics.threads import one_thread


def main() -> None:
    """Run every problem with every seed, and print what the answers are worth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=problems.names("categorical"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--evaluations", type=int, nargs="+", default=[60, 100, 200])
    parser.add_argument("--models", type=Path, help="folder for the models of the last number of evaluations")
    given = parser.parse_args()
    head = f"{'problem':24s} {'seed':>4s} {'n':>4s} {'answers':8s}"
    print(f"{head} {'loss %':>8s} {'gap %':>8s} {'feasible %':>10s} {'material %':>10s}")
    for name in given.problems:
        for seed in given.seeds:
            with one_thread():
                model = run(name, seed, sorted(given.evaluations))
            if given.models is not None:
                given.models.mkdir(parents=True, exist_ok=True)
                model.save(given.models / f"{name}-{seed}.cbabo")


def run(name: str, seed: int, evaluations: list[int]) -> Model:
    """Run one problem to these numbers of evaluations, and judge the answers after each; return the last model."""
    mine = subject(name)
    study = Study.create(mine.problem, "sqlite://", seed=seed)
    began = time.perf_counter()
    for budget in evaluations:
        study.run(mine.evaluator(seed), budget=budget, in_process=True)
        model = study.model()
        judge(name, seed, budget, model)
    print(f"{name}, seed {seed}: {time.perf_counter() - began:.0f} s", flush=True)
    return model


def judge(name: str, seed: int, budget: int, model: Model) -> None:
    """Print what full and fast answers of a model are worth."""
    mine = subject(name)
    categorical = [i for i, v in enumerate(mine.problem.variables) if isinstance(v, Categorical)]
    for kind in ("full", "fast"):
        found = model.predict_many(mine.known.thresholds, fast=kind == "fast")
        worth = mine.judged(found.points, found.probability_feasible)
        right = 100.0 * np.mean((found.points[:, categorical] == mine.known.x[:, categorical]).all(axis=1))
        print(
            f"{name:24s} {seed:4d} {budget:4d} {kind:8s} {worth.loss:8.2f} {worth.gap:8.2f} {worth.feasible:10.1f} {right:10.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
