"""Best known optima of the simulators at 16 limit vectors.

python benchmarks/simulators/reference.py circuit [--pool 2048] [--starts 3] [--rounds 2]

Every simulated design counts for every limit vector. After a pool of Sobol designs, SLSQP with forward differences starts from
the best ranked designs for each limit vector that are apart from each other, in several rounds: later ones start from all that
was found before. The best feasible designs are written to optima/NAME.csv: theta (0 strictest, 1 most relaxed), limits,
objective, design. The first two vectors are the middle of the box and its most relaxed end; the others are a Sobol sequence.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import fmin_slsqp
from scipy.stats import qmc

from cbabo import Problem
from cbabo.numerics.arrays import FloatArray

VECTORS = 16
STEP = 1e-3
"""Step of differences in the unit cube: simulators print few digits and iterate to a tolerance."""
APART = 0.2
"""Least distance of starts from each other in the unit cube."""
MARGIN = 1e-6
"""Share of a limit's range that a descent keeps from it."""
HERE = Path(__file__).parent

_slsqp: Callable[..., Any] = fmin_slsqp


class Archive:
    """Every design that was simulated, and its outputs."""

    def __init__(self, problem: Problem, evaluate_many: Callable[[FloatArray], FloatArray]) -> None:
        self.problem = problem
        self._evaluate_many = evaluate_many
        self.u = np.zeros((0, problem.space.dimension))
        self.y = np.zeros((0, len(problem.outputs)))

    def simulate(self, u: FloatArray) -> FloatArray:
        """Simulate designs, n x d in the unit cube, and keep their outputs, n x q."""
        y = self._evaluate_many(self.problem.space.natural(u))
        self.u, self.y = np.vstack([self.u, u]), np.vstack([self.y, y])
        return y

    def slack(self, y: FloatArray, limits: FloatArray) -> FloatArray:
        """Return by how much limits are obeyed, n x r, in their ranges."""
        box = self.problem.box
        return np.asarray(-box.violations(y, np.broadcast_to(limits, (len(y), len(limits)))) / box.scales)

    def best(self, limits: FloatArray) -> int | None:
        """Return the best design that obeys limits; None if none does."""
        value = self.problem.objective.sign * self.y[:, 0]
        value = np.where((self.slack(self.y, limits) >= 0.0).all(axis=1) & np.isfinite(value), value, np.inf)
        return int(value.argmin()) if np.isfinite(value).any() else None

    def starts(self, limits: FloatArray, count: int) -> list[FloatArray]:
        """Return the best ranked designs that are apart from each other."""
        f = self.problem.objective.sign * self.y[:, 0]
        spread = float(np.nanquantile(f, 0.75) - np.nanquantile(f, 0.25))
        merit = f / spread + 3.0 * np.maximum(-self.slack(self.y, limits), 0.0).sum(axis=1)
        kept: list[FloatArray] = []
        for i in np.argsort(np.where(np.isnan(merit), np.inf, merit)):
            if len(kept) == count or not np.isfinite(merit[i]):
                break
            if all(np.linalg.norm(self.u[i] - other) > APART for other in kept):
                kept.append(self.u[i])
        return kept

    def descend(self, limits: FloatArray, start: FloatArray) -> None:
        """Run SLSQP from one start; designs that fail end the run."""
        scale = abs(float(self.simulate(start[None])[0, 0])) or 1.0
        known: dict[bytes, tuple[FloatArray, FloatArray]] = {}

        def at(u: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Values (objective first, then slacks) and their slopes."""
            key = u.tobytes()
            if key not in known:
                steps = np.where(u > 0.5, -STEP, STEP)
                y = self.simulate(np.vstack([u, u + np.diag(steps)]))
                if not np.isfinite(y).all():
                    raise FloatingPointError
                values = np.column_stack(
                    [self.problem.objective.sign * y[:, 0] / scale, self.slack(y, limits) - MARGIN]
                )
                known[key] = values[0], ((values[1:] - values[0]) / steps[:, None]).T
            return known[key]

        with suppress(FloatingPointError):
            _slsqp(
                lambda u: float(at(u)[0][0]),
                start,
                fprime=lambda u: at(u)[1][0],
                f_ieqcons=lambda u: at(u)[0][1:],
                fprime_ieqcons=lambda u: at(u)[1][1:],
                bounds=[(0.0, 1.0)] * len(start),
                iter=40,
                acc=1e-7,
                iprint=0,
            )


def main() -> None:
    """Read the command line, search, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simulator")
    parser.add_argument("--pool", type=int, default=2048, help="a power of two")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    sys.path.insert(0, str(HERE))
    simulator = importlib.import_module(given.simulator)
    problem: Problem = simulator.PROBLEM
    box, d = problem.box, problem.space.dimension
    k = len(box.names)
    theta = np.vstack([np.full((1, k), 0.5), np.ones((1, k)), qmc.Sobol(k, rng=0).random(VECTORS)[: VECTORS - 2]])
    archive = Archive(problem, simulator.evaluate_many)
    pool = qmc.Sobol(d, rng=0).random(given.pool)
    for first in range(0, len(pool), 250):
        archive.simulate(pool[first : first + 250])
    thresholds = box.from_theta(theta)
    for number in range(given.rounds):
        for limits in thresholds:
            for start in archive.starts(limits, given.starts):
                archive.descend(limits, start)
        rows = [archive.best(limits) for limits in thresholds]
        found = [float("nan") if row is None else float(archive.y[row, 0]) for row in rows]
        print(f"round {number + 1}: {len(archive.u)} evaluations, {np.round(found, 5).tolist()}", flush=True)
        write(HERE / "optima" / f"{given.simulator}.csv", problem, theta, thresholds, archive, rows)


def write(
    path: Path, problem: Problem, theta: FloatArray, thresholds: FloatArray, archive: Archive, rows: list[int | None]
) -> None:
    """Write the table; limit vectors for which nothing feasible was found have no objective and no design."""
    path.parent.mkdir(exist_ok=True)
    names, space = problem.box.names, problem.space
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*(f"theta_{n}" for n in names), *names, f"best_{problem.objective.name}", *space.names])
        for at, limits, row in zip(theta, thresholds, rows, strict=True):
            empty = ["", *[""] * space.dimension]
            best = empty if row is None else [archive.y[row, 0], *space.natural(archive.u[[row]])[0].tolist()]
            table.writerow([*at.tolist(), *limits.tolist(), *best])


if __name__ == "__main__":
    main()
