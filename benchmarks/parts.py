"""Parts of an output against their maximum: the run time and the answers of a truss with 36 member stresses.

python benchmarks/parts.py [--evaluations 100] [--seeds 1]

A bridge of seven bays with 36 bars, whose cross sections are eight variables. The stress is returned as the list of all 36
stresses, or as the largest of them. Times are processor seconds of the run, the model and forty answers; the last line is the
ratio of the two. Regrets are in percent of the best objective known at the same limits, over the answers that obey them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from cbabo import Constraint, Objective, Problem, Real, Study
from cbabo.domain.space import Point
from cbabo.numerics.arrays import FloatArray

BAYS = 7
THRESHOLDS = 40
SUPPORTS = [0, 1, 2 * BAYS + 1]
"""Displacements that are zero: both at the left end and the vertical one at the right end."""


def _bars() -> tuple[list[tuple[int, int]], list[int]]:
    """Return the bars as pairs of nodes, bottom nodes first, and the variable that is the cross section of each."""
    top = BAYS + 1
    bars, variable = [], []
    for i in range(BAYS):
        inner = int(2 <= i <= 4)
        bars += [(i, i + 1), (top + i, top + i + 1), (i, top + i + 1), (top + i, i + 1)]
        variable += [inner, 2 + inner, 4 + inner, 4 + inner]
    bars += [(i, top + i) for i in range(BAYS + 1)]
    variable += [6 + int(2 <= i <= 5) for i in range(BAYS + 1)]
    return bars, variable


BARS, VARIABLE = _bars()
PROBLEM = Problem(
    "bridge",
    [Real(f"a{i}", 1.0, 20.0) for i in range(8)],
    Objective("volume"),
    [Constraint("stress", "<=", low=8.0, high=20.0), Constraint("deflection", "<=", low=4.0, high=12.0)],
)


def simulate(x: FloatArray) -> tuple[float, FloatArray, float]:
    """Return the volume, the stresses of all bars and the largest deflection for cross sections x (8)."""
    nodes = np.array([[i, j] for j in (0.0, 1.0) for i in range(BAYS + 1)])
    area = x[VARIABLE]
    strain = np.zeros((len(BARS), 2 * len(nodes)))
    length = np.empty(len(BARS))
    for i, (a, b) in enumerate(BARS):
        along = nodes[b] - nodes[a]
        length[i] = np.linalg.norm(along)
        strain[i, 2 * a : 2 * a + 2], strain[i, 2 * b : 2 * b + 2] = -along / length[i], along / length[i]
    stiffness = (strain.T * (100.0 * area / length)) @ strain
    force = np.zeros(2 * len(nodes))
    force[3 : 2 * BAYS : 2] = -np.linspace(6.0, 14.0, BAYS - 1)
    free = np.setdiff1d(np.arange(2 * len(nodes)), SUPPORTS)
    moved = np.zeros(2 * len(nodes))
    moved[free] = np.linalg.solve(stiffness[np.ix_(free, free)], force[free])
    return float((area * length).sum()), np.abs(100.0 / length * (strain @ moved)), float(-moved.min())


def _design(point: Point) -> FloatArray:
    return np.array([float(point[name]) for name in PROBLEM.space.names])


def as_parts(point: Point) -> dict[str, object]:
    """Return every stress."""
    volume, stress, deflection = simulate(_design(point))
    return {"volume": volume, "stress": stress.tolist(), "deflection": deflection}


def as_maximum(point: Point) -> dict[str, object]:
    """Return the largest stress."""
    volume, stress, deflection = simulate(_design(point))
    return {"volume": volume, "stress": float(stress.max()), "deflection": deflection}


def main() -> None:
    """Read the command line and compare both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    limits = PROBLEM.box.from_theta(np.random.default_rng(0).random((THRESHOLDS, 2)))
    seconds: dict[str, list[float]] = {}
    volumes: dict[str, list[FloatArray]] = {}
    for seed in range(given.seeds):
        for name, evaluate in (("maximum", as_maximum), ("parts", as_parts)):
            study = Study.create(PROBLEM, "sqlite://", name=f"{name} {seed}", seed=seed)
            begun = time.process_time()
            study.run(evaluate, budget=given.evaluations, in_process=True)
            run = time.process_time() - begun
            answers = study.model().predict_many(limits)
            points = [answers.answer(i).point for i in range(THRESHOLDS)]
            seconds.setdefault(name, []).append(time.process_time() - begun)
            truth = [simulate(_design(point)) for point in points]
            broken = np.array(
                [[s.max() - limit[0], d - limit[1]] for (_, s, d), limit in zip(truth, limits, strict=True)]
            )
            feasible = (broken <= 1e-9 * np.array([12.0, 8.0])).all(axis=1)
            volumes.setdefault(name, []).append(np.where(feasible, [v for v, _, _ in truth], np.nan))
            print(
                f"seed {seed}  {name:8s} {seconds[name][-1]:7.1f} s (run {run:.1f} s)  feasible {100 * feasible.mean():.0f} %, "
                f"stated {100 * answers.probability_feasible.mean():.1f} %"
            )
    best = np.nanmin(np.vstack([*volumes["maximum"], *volumes["parts"]]), axis=0)
    for name, found in volumes.items():
        print(f"{name:8s} mean regret {100 * np.nanmean(np.vstack(found) / best - 1.0):.3f} %")
    print(f"ratio of the times: {np.mean(seconds['parts']) / np.mean(seconds['maximum']):.2f}")


if __name__ == "__main__":
    main()
