"""Best known optima of the simulators at 16 limit vectors and at the two ends of the box.

python benchmarks/simulators/reference.py circuit [--pool 256] [--studies 2] [--starts 2] [--minutes 20] [--archive FILE]
python benchmarks/simulators/reference.py circuit --check 0 7 strictest [--evaluations 2000]

Every simulated design counts for every limit vector. After a pool of Sobol designs and some studies of 200 evaluations, whose
answers are refined at every limit vector, linear programs with forward differences and a trust region are solved from the best
ranked designs for each limit vector that are apart from each other, and SLSQP polishes what they find, in rounds: later ones
start from all that was found before, also for other vectors. Maxima and minima are resolved into their parts. The search ends
when a round improves nothing, or after so many minutes of processor time. The best feasible designs are written to
optima/NAME.csv, in the format of `cbabo.bench.truth`; the 16 vectors are a Sobol sequence. Simulated designs are kept in the
archive: a search that was stopped goes on where it was, and one that ended can be made longer.

--check searches at some vectors by CMA-ES with a penalty, from the middle of the cube and without the archive, and prints how far
it ends from the recorded optimum.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import cma
import numpy as np
from scipy.optimize import fmin_slsqp, linprog
from scipy.stats import qmc

from cbabo import Problem, Study
from cbabo.bench.optima import Optimum
from cbabo.bench.truth import ENDS, parsed, written
from cbabo.numerics.arrays import FloatArray

VECTORS = 16
STEP = 1e-3
"""Step of differences in the unit cube: simulators print few digits and iterate to a tolerance."""
APART = 0.2
"""Least distance of starts from each other in the unit cube."""
MARGIN = 1e-6
"""Share of a limit's range that a descent keeps from it."""
RADIUS = 0.1
"""First radius of the trust region in the unit cube."""
SMALLEST = 3e-4
"""Radius at which a descent ends: differences are no finer."""
ITERATIONS = 20
"""Most steps of a descent, taken or not; one that is not at its end goes on in the next round."""
ACCURACY = 1e-4
"""Expected gain at which a descent ends, in tenths of the objective at its start."""
PENALTY = 100.0
"""What a violation of the range of a limit counts, in tenths of the objective at the start; above all multipliers."""
REPAIRS = 4
"""Most steps back to the limits after a descent."""
GAIN = 1e-4
"""Improvement, as a share of how far the optimum moves, below which a round has improved nothing."""
BLOCK = 64
"""Designs of the pool that are simulated at once."""
BUDGET = 200
"""Evaluations of a study."""
REFINED = 5
"""Evaluations by which a study's answer to each limit vector is refined."""
POLISH = 0.03
"""How far SLSQP goes from its start: farther, its first steps lead into designs that fail."""
FAILED = 100.0
"""What values of a failing design count as."""
HERE = Path(__file__).parent
SPENT = ("user", "system", "children_user", "children_system")

_slsqp: Callable[..., Any] = fmin_slsqp


class Search:
    """Every design that was simulated, its outputs, and the starts that were tried."""

    def __init__(self, simulator: ModuleType, path: Path) -> None:
        self.problem: Problem = simulator.PROBLEM
        self.path = path
        self._simulator = simulator
        box, kept = self.problem.box, np.load(path) if path.exists() else {}
        self.studies = int(kept.get("studies", 0))
        """How many studies have given their designs."""
        self.u = np.asarray(kept.get("u", np.zeros((0, self.problem.space.dimension))))
        self.y = np.asarray(kept.get("y", np.zeros((0, len(self.problem.outputs)))))
        theta = qmc.Sobol(len(box.names), rng=0).random(VECTORS)
        self.thresholds = box.from_theta(np.vstack([theta, np.zeros(len(box.names)), np.ones(len(box.names))]))
        tried = kept.get("tried", []) if np.array_equal(kept.get("thresholds", []), self.thresholds) else []
        self.tried = {(int(vector), int(row)) for vector, row in tried}
        """The number of a vector and the row of a start; forgotten when the box of limits has changed."""
        columns = [box.outputs.index(name) for c in box.constraints for name in c.output_names]
        self._signs = np.ones(len(box.outputs))
        """Of each output: -1 where it is the least of its parts, which have to be above a limit."""
        self._signs[columns] = [c.sign for c in box.constraints]
        self._requirements = list(zip(columns, np.array([c.sign for c in box.constraints]), box.scales, strict=True))

    def save(self) -> None:
        """Write the archive; one that is being written never takes the place of the last."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new.npz")
        tried = np.array(sorted(self.tried)).reshape(-1, 2)
        np.savez_compressed(new, u=self.u, y=self.y, tried=tried, thresholds=self.thresholds, studies=self.studies)
        new.replace(self.path)

    def simulate(self, u: FloatArray) -> list[FloatArray]:
        """Simulate designs, n x d in the unit cube, and keep their outputs; return the parts of each output, n x parts."""
        X = self.problem.space.natural(u)
        parts: list[FloatArray] = self._simulator.evaluate_parts(X)
        outputs = [sign * (sign * part).max(axis=1) for sign, part in zip(self._signs, parts, strict=True)]
        self.u, self.y = np.vstack([self.u, u]), np.vstack([self.y, np.column_stack(outputs)])
        return parts

    def slack(self, parts: Sequence[FloatArray], limits: FloatArray) -> FloatArray:
        """Return by how much every part obeys its limit, n x parts of all limited outputs, in the limits' ranges."""
        return np.column_stack(
            [
                sign * (limit - parts[column]) / scale
                for (column, sign, scale), limit in zip(self._requirements, limits, strict=True)
            ]
        )

    def slacks(self, limits: FloatArray) -> FloatArray:
        """Return by how much the outputs of the archive obey limits, n x limits."""
        return self.slack([column[:, None] for column in self.y.T], limits)

    def best(self, limits: FloatArray) -> int | None:
        """Return the best design that obeys limits; None if none does."""
        value = np.where((self.slacks(limits) >= 0.0).all(axis=1), self.problem.objective.sign * self.y[:, 0], np.inf)
        return int(value.argmin()) if np.isfinite(value).any() else None

    def values(self) -> FloatArray:
        """Return the best objective at every limit vector; infinity where nothing obeys the limits."""
        rows = [self.best(limits) for limits in self.thresholds]
        return np.array([np.inf if row is None else self.y[row, 0] for row in rows])

    def study(self) -> None:
        """Add the designs of one more study, and of its answers to all limit vectors, refined."""
        study = Study.create(self.problem, "sqlite://", seed=self.studies)
        study.run(self._simulator.evaluate, budget=BUDGET, in_process=True)
        for limits in self.thresholds:
            study.refine(self.problem.box.named(limits), self._simulator.evaluate, REFINED, in_process=True)
        self.simulate(study.evaluations.complete.x)
        self.studies += 1

    def starts(self, vector: int, count: int) -> list[int]:
        """Return the best ranked designs that are apart from each other, without those that were tried."""
        limits = self.thresholds[vector]
        f = self.problem.objective.sign * self.y[:, 0]
        spread = float(np.nanquantile(f, 0.75) - np.nanquantile(f, 0.25))
        merit = f / spread + 3.0 * np.maximum(-self.slacks(limits), 0.0).sum(axis=1)
        best = self.best(limits)
        order = np.argsort(np.where(np.isnan(merit), np.inf, merit), kind="stable")
        kept: list[int] = []
        for i in [*([] if best is None else [best]), *order.tolist()]:
            if len(kept) == count or not np.isfinite(merit[i]):
                break
            if all(np.linalg.norm(self.u[i] - self.u[other]) > APART for other in kept):
                kept.append(i)
        return [i for i in kept if (vector, i) not in self.tried]

    def descend(self, vector: int, row: int) -> None:
        """Search from one design of the archive: linear programs within a trust region, then SLSQP close by."""
        self.tried.add((vector, row))
        function = Scaled(self, self.thresholds[vector], 0.1 * abs(float(self.y[row, 0])) or 1.0)
        with suppress(FloatingPointError):
            function.repair(function.polish(function.programs(self.u[row])))

    def write(self, path: Path) -> None:
        """Write the table of optima; where nothing feasible was found the objective is infinite."""
        found = []
        for limits in self.thresholds:
            row, d = self.best(limits), self.problem.space.dimension
            x = np.full(d, np.nan) if row is None else self.problem.space.natural(self.u[[row]])[0]
            found.append(Optimum(np.inf if row is None else float(self.y[row, 0]), x))
        path.parent.mkdir(exist_ok=True)
        path.write_text(written(self.problem, self.thresholds, found), encoding="utf-8")


class Scaled:
    """The objective in tenths of its value at the start, and slacks in ranges of limits: values by design, and their slopes."""

    def __init__(self, archive: Search, limits: FloatArray, scale: float) -> None:
        self._archive, self._limits, self._scale = archive, limits, scale
        self._known: dict[bytes, FloatArray] = {}

    def values(self, u: FloatArray) -> FloatArray:
        """Return the objective, then slacks; where the simulation fails all are so bad that a step is made shorter."""
        if u.tobytes() not in self._known:
            found = self._simulated(u[None])[0]
            failed = np.append(FAILED, np.full(len(found) - 1, -FAILED))
            self._known[u.tobytes()] = found if np.isfinite(found).all() else failed
        return self._known[u.tobytes()]

    def slopes(self, u: FloatArray) -> FloatArray:
        """Return the derivatives of the same, values x d; a design that fails raises an error."""
        key = u.tobytes() + b"slopes"
        if key not in self._known:
            steps = np.where(u > 0.5, -STEP, STEP)
            self._known[key] = ((self._simulated(u + np.diag(steps)) - self.values(u)) / steps[:, None]).T
            if not np.isfinite(self._known[key]).all():
                raise FloatingPointError
        return self._known[key]

    def merit(self, u: FloatArray) -> float:
        """Return the objective and a penalty for the largest violation."""
        values = self.values(u)
        return float(values[0] + PENALTY * max(-values[1:].min(), 0.0))

    def programs(self, u: FloatArray) -> FloatArray:
        """Solve linear programs within a trust region, from u; return the best design."""
        radius = RADIUS
        for _ in range(ITERATIONS):
            step, expected = self._program(u, np.maximum(-u, -radius), np.minimum(1.0 - u, radius))
            gain = self.merit(u) - expected
            if gain < ACCURACY or radius < SMALLEST:
                break
            trial = np.clip(u + step, 0.0, 1.0)
            share = (self.merit(u) - self.merit(trial)) / gain
            radius *= 2.0 if share > 0.7 else 1.0 if share > 0.3 else 0.4
            u = trial if share > 0.05 else u
        return u

    def polish(self, u: FloatArray) -> FloatArray:
        """Return what SLSQP finds close by: it learns curvature, for optima with fewer active limits than variables."""
        found = _slsqp(
            lambda v: float(self.values(v)[0]),
            u,
            fprime=lambda v: self.slopes(v)[0],
            f_ieqcons=lambda v: self.values(v)[1:],
            fprime_ieqcons=lambda v: self.slopes(v)[1:],
            bounds=[(max(v - POLISH, 0.0), min(v + POLISH, 1.0)) for v in u.tolist()],
            iter=ITERATIONS // 2,
            acc=ACCURACY,
            iprint=0,
        )
        return np.clip(found, 0.0, 1.0)

    def repair(self, u: FloatArray) -> None:
        """Go back behind the limits that a search has ended just beyond."""
        for _ in range(REPAIRS):
            broken = 1 + np.flatnonzero(self.values(u)[1:] < -MARGIN)
            if not len(broken) or len(broken) == len(self.values(u)) - 1:
                break
            back = np.linalg.lstsq(self.slopes(u)[broken], MARGIN - self.values(u)[broken], rcond=None)[0]
            u = np.clip(u + back, 0.0, 1.0)

    def _program(self, u: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, float]:
        """Minimise the linear model of the merit between bounds; return the step and the model's value there."""
        values, slopes = self.values(u), self.slopes(u)
        rows = np.column_stack([-slopes[1:], np.full(len(slopes) - 1, -1.0)])
        bounds = [*zip(low.tolist(), high.tolist(), strict=True), (0.0, None)]
        found = linprog(np.append(slopes[0], PENALTY), A_ub=rows, b_ub=values[1:], bounds=bounds)
        return (np.zeros(len(low)), np.inf) if found.x is None else (found.x[:-1], float(values[0] + found.fun))

    def _simulated(self, designs: FloatArray) -> FloatArray:
        """Return the values of designs, n x d; not finite where the simulation fails."""
        parts = self._archive.simulate(designs)
        objective = self._archive.problem.objective.sign * parts[0] / self._scale
        return np.column_stack([objective, self._archive.slack(parts, self._limits) - MARGIN])


def search(
    simulator: ModuleType, path: Path, table: Path, pool: int, studies: int, starts: int, minutes: float
) -> None:
    """Search until a round improves nothing, or the time is over."""
    found = Search(simulator, path)
    designs = qmc.Sobol(found.problem.space.dimension, rng=0).random(pool)
    for first in range(len(found.u), len(designs), BLOCK):
        found.simulate(designs[first : first + BLOCK])
        found.save()
    while found.studies < studies:
        found.study()
        found.save()
    relaxed = found.problem.box.to_theta(found.thresholds).sum(axis=1)
    for number in range(1, 100):
        before = found.values()
        for vector in np.argsort(-relaxed).tolist():
            for row in found.starts(vector, starts) if _minutes() < minutes else ():
                found.descend(vector, row)
                found.save()
        after = found.values()
        found.write(table)
        reached = np.isfinite(after)
        gained = float((before[reached] - after[reached]).max() / np.ptp(after[reached]))
        shown = f"best {np.round(after, 5).tolist()}, gained {gained:.2g} of the span"
        print(f"round {number}: {len(found.u)} designs, {_minutes():.1f} minutes, {shown}", flush=True)
        if gained < GAIN or _minutes() > minutes:
            break
    for vector, limits in enumerate(found.thresholds):
        best = found.best(limits)
        if best is not None:
            label = [*range(VECTORS), *ENDS][vector]
            print(label, found.slacks(limits)[best].round(5).tolist(), found.u[best].round(3).tolist())


def check(simulator: ModuleType, table: Path, labels: Sequence[str], evaluations: int) -> None:
    """Search at some limit vectors by CMA-ES and compare with the table."""
    problem: Problem = simulator.PROBLEM
    known = parsed(problem, table.read_text(encoding="utf-8"))
    box, sign = problem.box, problem.objective.sign
    optima = np.array([*known.f, known.strictest.f, known.relaxed.f])
    ends = box.from_theta(np.array([[0.0], [1.0]]) * np.ones(len(box.names)))
    thresholds = np.vstack([known.thresholds, ends])
    for label in labels:
        row = [*map(str, range(VECTORS)), *ENDS].index(label)
        best, spent = np.inf, 0
        options = {"bounds": [0.0, 1.0], "maxfevals": evaluations, "seed": 1, "verbose": -9, "popsize": 16}
        strategy = cma.CMAEvolutionStrategy(np.full(problem.space.dimension, 0.5), 0.25, options)
        while not strategy.stop():
            u = strategy.ask()
            y = simulator.evaluate_many(problem.space.natural(np.array(u)))
            spent += len(u)
            limits = np.broadcast_to(thresholds[row], (len(u), len(box.names)))
            excess = np.maximum(box.violations(y, limits) / box.scales, 0.0).sum(axis=1)
            worth = sign * y[:, 0] + 3.0 * known.span * excess
            best = min(best, *np.where(excess == 0.0, worth, np.inf).tolist())
            strategy.tell(u, np.where(np.isfinite(worth), worth, 1e9).tolist())
        gap = 100.0 * (best - sign * optima[row]) / known.span
        print(
            f"{label}: {spent} designs, best {best:.6g}, recorded {optima[row]:.6g}, {gap:+.3f} % of the span",
            flush=True,
        )


def _minutes() -> float:
    """Return the processor time of this process and of the simulators that it started."""
    return sum(getattr(os.times(), name) for name in SPENT) / 60.0


def main() -> None:
    """Read the command line, and search or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simulator")
    parser.add_argument("--pool", type=int, default=256, help="a power of two")
    parser.add_argument("--studies", type=int, default=2)
    parser.add_argument("--starts", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--archive", type=Path, help="build/simulators/NAME.npz unless given")
    parser.add_argument("--check", nargs="+", default=[], metavar="VECTOR")
    parser.add_argument("--evaluations", type=int, default=2000)
    given = parser.parse_args()
    simulator = importlib.import_module(given.simulator)
    table = HERE / "optima" / f"{given.simulator}.csv"
    archive = given.archive or Path("build", "simulators", f"{given.simulator}.npz")
    if given.check:
        check(simulator, table, given.check, given.evaluations)
    else:
        search(simulator, archive, table, given.pool, given.studies, given.starts, given.minutes)


if __name__ == "__main__":
    main()
