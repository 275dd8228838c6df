"""Problems with a choice of materials: loss of the answers, and how often they have the right material.

python benchmarks/categorical.py [--problems car_material welded_beam_material] [--seeds 1] [--evaluations 60 100 200]
                                 [--models FOLDER]
python benchmarks/categorical.py --many [--evaluations 60]

Full and fast answers after each number of evaluations, at the thresholds whose true optimum is known by enumeration over the
materials (`python -m cbabo.bench.truth`). The loss is the gap to the true optimum in percent of how far the optimum moves over
the box, and 100 where the answer is infeasible. Asked for: after 200 evaluations a mean loss of at most 1 and the right material
for at least 98 % of the thresholds. --models keeps the models of the last number of evaluations.

--many: five categorical variables with 20 labels each, 3.2 million combinations, and three real ones; the answer to the nominal
limits, the best measured design, and the best that coordinate descent over labels finds with a grid for the real variables.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from subjects import subject

from cbabo import Categorical, Constraint, Objective, Problem, Real, Study, problems
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.model import Model
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread


def main() -> None:
    """Run every problem with every seed, and print what the answers are worth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=problems.names("categorical"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--evaluations", type=int, nargs="+", default=[60, 100, 200])
    parser.add_argument("--models", type=Path, help="folder for the models of the last number of evaluations")
    parser.add_argument("--many", action="store_true", help="one problem with many combinations instead")
    given = parser.parse_args()
    if given.many:
        with one_thread():
            run_many(max(given.evaluations))
        return
    head = f"{'problem':24s} {'seed':>4s} {'n':>4s} {'answers':8s}"
    print(f"{head} {'loss %':>8s} {'gap %':>8s} {'feasible %':>10s} {'material %':>10s}")
    for name in given.problems:
        for seed in given.seeds:
            with one_thread():
                model = run(name, seed, sorted(given.evaluations))
            if given.models is not None:
                given.models.mkdir(parents=True, exist_ok=True)
                model.save(given.models / f"{name}-{seed}.cbabo")


def run_many(budget: int) -> None:
    """Run a problem with many combinations of labels, and print what its answer at the nominal limits is worth."""
    random = np.random.default_rng(0)
    variables, labels = 5, [f"l{i}" for i in range(20)]
    price = random.uniform(0.5, 1.5, (variables, len(labels)))
    soft = 0.5 * random.uniform(0.3, 1.0, price.shape) + 0.5 * (1.6 - price)  # Expensive labels are stiffer.
    problem = Problem(
        "many",
        [
            *(Categorical(f"m{k}", tuple(labels)) for k in range(variables)),
            *(Real(f"x{i}", 0.0, 1.0) for i in range(3)),
        ],
        Objective("f"),
        [Constraint("c", low=0.9, high=3.0), Constraint("g", low=0.5, high=2.0)],
    )
    limits = problem.box.nominal

    def outputs(chosen: list[int], x: FloatArray) -> FloatArray:
        at, s = (range(variables), chosen), 0.4 + 0.6 * x[:, 0]
        f = price[at].sum() * s + x[:, 1] + 0.5 * x[:, 2]
        c = soft[at].sum() * (1.3 - s) * (1.2 - 0.5 * x[:, 1])
        return np.column_stack([f, c, 2.2 - 1.2 * x[:, 2] + 0.3 * soft[0, chosen[0]] - 0.4 * s])

    def evaluate(point: Point) -> dict[str, float]:
        chosen = [labels.index(point[f"m{k}"]) for k in range(variables)]
        y = outputs(chosen, np.array([[point[f"x{i}"] for i in range(3)]]))[0]
        return dict(zip(problem.outputs, y.tolist(), strict=True))

    grid = np.array(np.meshgrid(*[np.linspace(0.0, 1.0, 15)] * 3)).reshape(3, -1).T

    def best_of(chosen: list[int]) -> float:
        y = outputs(chosen, grid)
        return float(np.where((y[:, 1:] <= list(limits.values())).all(axis=1), y[:, 0], np.inf).min())

    def descended(chosen: list[int]) -> float:
        while True:
            changes = [[*chosen[:k], i, *chosen[k + 1 :]] for k in range(variables) for i in range(len(labels))]
            better = min(changes, key=best_of)
            if best_of(better) >= best_of(chosen):
                return best_of(chosen)
            chosen = better

    began = time.perf_counter()
    study = Study.create(problem, "sqlite://", seed=0)
    study.run(evaluate, budget=budget, in_process=True)
    seconds = time.perf_counter() - began
    model = study.model()
    solved = model.solver.answers(Query.of(problem.box, limits), 0.98)[0]
    answer, measured = evaluate(problem.space.points(solved.x[None])[0]), study.evaluations.best(limits)
    known = min(descended(random.integers(len(labels), size=variables).tolist()) for _ in range(5))
    print(
        f"{budget} evaluations in {seconds:.0f} s; f of the answer {answer['f']:.3f}, c {answer['c']:.3f}, g {answer['g']:.3f}"
    )
    found = "none" if measured is None else f"{measured.outputs['f']:.3f}"
    print(f"limits {limits}; best measured {found}; best known {known:.3f}")


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
