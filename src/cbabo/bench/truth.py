"""The true optimum f*(theta), x*(theta) of every shipped problem, at 100 fixed thresholds and at the box's two ends.

The numbers are in `truths/NAME.csv`: row (0 to 99, "strictest" or "relaxed"), theta1.., f_star, x1... They were computed by
`python -m cbabo.bench.truth [NAME...]`, which keeps the thresholds, or draws them for a problem without a file, and searches for
the optima again (see `optima`). Problems that share their optima, with noise or without, share a file.
keane18 has no optimum where it is unbounded: there f is minus infinity and x is NaN.
"""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

import numpy as np
from scipy.stats import qmc

from cbabo import problems
from cbabo.bench.optima import Optimum, solve_all
from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.problem import Problem
from cbabo.errors import InputError
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.problems import ShippedProblem

ROWS = 100
"""Thresholds of a problem: a Sobol sequence where its file does not state others."""
ENDS = ("strictest", "relaxed")
"""Labels of the rows for the two ends of the threshold box."""
TYPICAL_DESIGNS = 10_000
"""Sobol designs whose median objective defines the span where the optimum does not move."""
ROUNDING = 1e-9
"""Optima of the two ends agree if they differ by less than this share of max(1, |f|)."""


@dataclass(frozen=True)
class Truth:
    """The known optima of one problem: row i of every array belongs to threshold row i."""

    name: str
    """The problem's name."""

    thresholds: FloatArray
    """The fixed thresholds, n x m in natural units; n is 100 for shipped problems."""

    f: FloatArray
    """The best objective value at each, n; minus infinity where the problem is unbounded."""

    x: FloatArray
    """A best design at each, n x d in natural units; others may be as good; NaN where f is infinite."""

    strictest: Optimum
    """The optimum where every limit is at its strictest."""

    relaxed: Optimum
    """The optimum where every limit is at its most relaxed."""

    @cached_property
    def span(self) -> float:
        """The unit of regret: how far the optimal objective moves over the threshold box.

        If it does not move, the distance from the optimum to the median of 10,000 Sobol designs. If the relaxed end
        is unbounded, the lowest finite optimum of the rows replaces it.
        """
        relaxed = self.relaxed.f if np.isfinite(self.relaxed.f) else float(self.f[np.isfinite(self.f)].min())
        moved = self.strictest.f - relaxed
        if moved > ROUNDING * max(1.0, abs(relaxed)):
            return moved
        shipped = problems.get(self.name)
        space = shipped.problem.space
        cube = qmc.Sobol(space.dimension, rng=0).random_base2(int(np.ceil(np.log2(TYPICAL_DESIGNS))))[:TYPICAL_DESIGNS]
        return float(np.median(shipped.evaluate_many(space.natural(cube))[0])) - relaxed


def truth(name: str) -> Truth:
    """Return the known optima of a shipped problem, read once from its file."""
    return _read(problems.get(name))


def solve(shipped: ShippedProblem, thresholds: ThresholdsLike) -> Optimum:
    """Find the optimum at one limit for each constraint, given by name or as one row; it takes a second or a few."""
    row = shipped.problem.box.row(thresholds if not isinstance(thresholds, np.ndarray) else np.atleast_2d(thresholds))
    return solve_all(shipped, row)[0]


def write(name: str, directory: Path) -> Path:
    """Search for the optima of one problem again, at the thresholds of its file, and write them."""
    shipped = problems.get(problems.get(name).optima_of or name)
    box = shipped.problem.box
    ends = box.from_theta(np.array([[0.0], [1.0]]) * np.ones(len(box.names)))
    thresholds = np.vstack([_thresholds(shipped), ends])
    path = directory / f"{shipped.name}.csv"
    path.write_text(written(shipped.problem, thresholds, solve_all(shipped, thresholds)), encoding="utf-8")
    _read.cache_clear()
    return path


def written(problem: Problem, thresholds: FloatArray, found: Sequence[Optimum]) -> str:
    """Return the text of a file: thresholds, the last two being the strictest and the most relaxed ones, and their optima."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_header(problem))
    labels = [*range(len(found) - len(ENDS)), *ENDS]
    for label, limits, optimum in zip(labels, thresholds, found, strict=True):
        table.writerow([label, *limits.tolist(), optimum.f, *optimum.x.tolist()])
    return text.getvalue()


def parsed(problem: Problem, text: str) -> Truth:
    """Return the optima that the text of a problem's file states."""
    header, *rows = csv.reader(text.splitlines())
    if header != _header(problem) or tuple(row[0] for row in rows[-2:]) != ENDS:
        raise InputError(
            f"truth of {problem.name!r}: expected the columns {', '.join(_header(problem))} and last the rows "
            f"{' and '.join(ENDS)}, got {', '.join(header)}; restore the file from the package"
        )
    table = np.array([row[1:] for row in rows], dtype=np.float64)
    table.flags.writeable = False
    m = len(problem.constraints)
    ends = [Optimum(float(row[m]), row[m + 1 :]) for row in table[-2:]]
    return Truth(problem.name, table[:-2, :m], table[:-2, m], table[:-2, m + 1 :], *ends)


def main(names: Sequence[str]) -> None:
    """Write the files of these problems, or of all."""
    with resources.as_file(resources.files("cbabo.bench") / "truths") as directory:
        for name in names or [n for n in problems.names() if not problems.get(n).optima_of]:
            began = time.perf_counter()
            path = write(name, directory)
            sys.stdout.write(f"{path.name}: {time.perf_counter() - began:.0f} s\n")
            sys.stdout.flush()


def _thresholds(shipped: ShippedProblem) -> FloatArray:
    if (resources.files("cbabo.bench") / "truths" / f"{shipped.name}.csv").is_file():
        return _read(shipped).thresholds
    box = shipped.problem.box
    theta = qmc.Sobol(len(box.names), rng=child(0, "truth thresholds", shipped.name)).random_base2(7)[:ROWS]
    return box.from_theta(theta)


@cache
def _read(shipped: ShippedProblem) -> Truth:
    file = resources.files("cbabo.bench") / "truths" / f"{shipped.optima_of or shipped.name}.csv"
    return parsed(shipped.problem, file.read_text(encoding="utf-8"))


def _header(problem: Problem) -> list[str]:
    thetas = [f"theta{j}" for j, _ in enumerate(problem.constraints, start=1)]
    return ["row", *thetas, "f_star", *problem.space.names]


if __name__ == "__main__":
    main(sys.argv[1:])
