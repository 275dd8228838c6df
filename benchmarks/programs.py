"""Warm against cold starts of the small quadratic programs: qp.continued against qp.minimise, one thread.

    python benchmarks/programs.py [--batch 512] [--repeats 7]        random programs
    python benchmarks/programs.py --problems car g01 keane18         the programs of real queries

The random programs are like those of the fast map: a convex quadratic objective over the unit cube seen from a design, with r
linear requirements of which some are active, and a penalty of ten times the largest multiplier. A batch is solved once; its
solutions become the origin, and gradients, Jacobians and bounds are perturbed by normal numbers of a given size. The perturbed
batch is then solved by both functions from there, with the effort of a correction (6 guesses, 16 iterations) and with that of a
first program (1 guess, 10 iterations). Times are CPU times per program, the least of several repeats in which both alternate.

With --problems the calls of `continued` are recorded while the fast map of a shipped problem, after a study of 40 evaluations,
answers a batch of random thresholds; there is one row for the first programs and one for each correction.

    ratio       time of continued / time of minimise: below 1 the warm start is faster
    solved      share of the programs that continued solves by active sets alone, without minimise
    difference  median over programs of the largest difference of both solutions in any variable
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from unittest import mock

import numpy as np

from cbabo import Study, problems
from cbabo.numerics import qp
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread

SIZES = ((3, 4), (5, 4), (8, 6), (11, 8), (15, 10), (20, 10))
"""Variables and requirements."""
PERTURBATIONS = (1e-3, 1e-2, 1e-1, 0.5)
EFFORTS = {"correction": (qp.GUESSES, qp.ITERATIONS), "first": (1, 10)}
"""Guesses and iterations."""


def main() -> None:
    """Print one row for each size, effort and perturbation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=512, help="programs in a batch")
    parser.add_argument("--repeats", type=int, default=7, help="repeats, of which the least time counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", nargs="*", default=[], help="shipped problems whose programs are recorded")
    given = parser.parse_args()
    print(f"{'d':>3} {'r':>3} {'effort':>10} {'perturbation':>15} {'minimise us':>11} {'continued us':>12}", end=" ")
    print(f"{'ratio':>6} {'solved':>6} {'difference':>10}")
    with one_thread():
        for name in given.problems:
            for i, (programs, multipliers, guesses, iterations) in enumerate(recorded(name, given.batch, given.seed)):
                _, r, d = programs.A.shape
                effort = f"correct. {i}" if i else "first"
                print_row(d, r, effort, name, programs, multipliers, guesses, iterations, given.repeats)
        for d, r in () if given.problems else SIZES:
            random = np.random.default_rng([given.seed, d, r])
            around, multipliers = solved_batch(random, given.batch, d, r)
            for effort, (guesses, iterations) in EFFORTS.items():
                for size in PERTURBATIONS:
                    programs = perturbed(random, around, size)
                    print_row(d, r, effort, size, programs, multipliers, guesses, iterations, given.repeats)


def recorded(name: str, b: int, seed: int) -> list[tuple[qp.Programs, FloatArray, int, int]]:
    """Return the arguments of `continued` while the fast map of a shipped problem answers b thresholds."""
    shipped = problems.get(name)
    study = Study.create(shipped.problem, "sqlite://", seed=seed)
    study.run(shipped.evaluate, budget=40)
    model, box = study.model(), shipped.problem.box
    rows = box.from_theta(np.random.default_rng(seed).random((b, len(box.names))))
    model.predict_many(rows[:1], fast=True)
    calls: list[tuple[qp.Programs, FloatArray, int, int]] = []
    original = qp.continued

    def recording(
        programs: qp.Programs, multipliers: FloatArray, guesses: int = qp.GUESSES, iterations: int = qp.ITERATIONS
    ) -> qp.Minima:
        calls.append((programs, multipliers, guesses, iterations))
        return original(programs, multipliers, guesses, iterations)

    with mock.patch.object(qp, "continued", recording):
        model.predict_many(rows, fast=True)
    return calls


def solved_batch(random: np.random.Generator, b: int, d: int, r: int) -> tuple[qp.Programs, FloatArray]:
    """Return b random programs seen from their solutions, and the multipliers there."""
    x = random.random((b, d))
    root = random.normal(size=(b, d, d)) / np.sqrt(d)
    A = random.normal(size=(b, r, d))
    programs = qp.Programs(
        g=random.normal(size=(b, d)),
        H=root @ root.transpose(0, 2, 1) + 0.05 * np.eye(d),
        A=A,
        c=0.5 * random.normal(size=(b, r)) + 0.3,
        low=-x,
        high=1.0 - x,
        mu=np.full(b, 1e3),
    )
    found = qp.minimise(programs)
    penalty = 10.0 * np.quantile(found.multipliers.max(1), 0.9)
    p = found.p
    around = programs._replace(
        g=programs.g + np.einsum("bij,bj->bi", programs.H, p),
        c=programs.c - np.einsum("bri,bi->br", A, p),
        low=np.minimum(programs.low - p, 0.0),
        high=np.maximum(programs.high - p, 0.0),
        mu=np.full(b, penalty),
    )
    return around, np.minimum(found.multipliers, penalty)


def perturbed(random: np.random.Generator, programs: qp.Programs, size: float) -> qp.Programs:
    """Return the programs with other gradients, Jacobians and bounds of the requirements."""
    return programs._replace(
        g=programs.g + size * random.normal(size=programs.g.shape),
        A=programs.A + size * random.normal(size=programs.A.shape),
        c=programs.c + size * random.normal(size=programs.c.shape),
    )


def print_row(
    d: int,
    r: int,
    effort: str,
    size: float | str,
    programs: qp.Programs,
    multipliers: FloatArray,
    guesses: int,
    iterations: int,
    repeats: int,
) -> None:
    """Solve one batch by both functions and print the comparison."""
    b = len(programs.g)
    left: list[int] = []

    def counting(rest: qp.Programs, count: int) -> qp.Minima:
        left.append(len(rest.g))
        return cold(rest, count)

    cold = qp.minimise
    with mock.patch.object(qp, "minimise", counting):
        warm = qp.continued(programs, multipliers, guesses, iterations)
    difference = float(np.median(np.abs(warm.p - qp.minimise(programs).p).max(1)))
    times = {"cold": np.inf, "warm": np.inf}
    for _ in range(repeats):
        times["cold"] = min(times["cold"], seconds(lambda: qp.minimise(programs, iterations)))
        times["warm"] = min(times["warm"], seconds(lambda: qp.continued(programs, multipliers, guesses, iterations)))
    a, c = 1e6 * times["cold"] / b, 1e6 * times["warm"] / b
    share = 1.0 - sum(left) / b
    print(
        f"{d:3d} {r:3d} {effort:>10} {size:>15} {a:11.1f} {c:12.1f} {c / a:6.2f} {share:6.2f} {difference:10.1e}",
        flush=True,
    )


def seconds(call: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    main()
