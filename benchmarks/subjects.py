"""What the rough suite's script runs: shipped problems and simulators, each with its known optima and how answers are judged."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from scipy.stats import qmc

from cbabo import Problem, problems
from cbabo.bench.metrics import gaps
from cbabo.bench.truth import Truth, parsed, truth
from cbabo.evaluators.function import Evaluate
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.problems.rough import GROUPS

SIMULATORS = ("circuit", "bracket", "wing")
"""The modules of benchmarks/simulators that are problems."""
FOLDER = Path(__file__).parent / "simulators"
LEAST_THRESHOLDS = 200
"""Thresholds at which feasibility is judged at least; no optimum has to be known for that."""
MEMBERS: Mapping[str, tuple[str, ...]] = {
    **{group: tuple(shipped.name for shipped in some) for group, some in GROUPS.items()},
    "simulators": SIMULATORS,
}
"""The names of the problems of each group."""


@dataclass(frozen=True)
class Judgement:
    """What answers are worth, all in percent."""

    feasible: float
    """The share of answers that truly obey their limits."""
    stated: float
    """The mean stated probability."""
    loss: float
    """The mean loss where an optimum is known: the gap, at most 100, and 100 where the answer is infeasible."""
    gap: float
    """The mean of how far objectives are above the optimum, of its span, at most 100 either way, whether feasible or not;
    100 where the simulator fails."""
    lowest: float
    """The lowest loss of a single answer; below zero where it is better than the best known optimum."""
    returned: float
    """The share of answers for which the simulator returns."""


@dataclass(frozen=True)
class Subject:
    """A problem whose optima are known, and its simulator."""

    problem: Problem
    known: Truth
    evaluator: Callable[[int], Evaluate]
    """Returns the simulator with the noise of a seed."""
    exact: Callable[[FloatArray], FloatArray]
    """Maps designs, n x d in natural units, to outputs without noise, n x q; NaN where the simulator fails."""

    @property
    def thresholds(self) -> FloatArray:
        """Those with a known optimum, and after them a Sobol sequence of others."""
        box, more = self.problem.box, max(LEAST_THRESHOLDS - len(self.known.thresholds), 0)
        sobol = qmc.Sobol(len(box.names), rng=child(0, "further thresholds", self.problem.name))
        theta = sobol.random_base2(int(np.ceil(np.log2(max(more, 1)))))[:more]
        return np.vstack([self.known.thresholds, box.from_theta(theta)])

    def judged(self, points: FloatArray, stated: FloatArray) -> Judgement:
        """Judge answers, n x d in natural units, to the first n thresholds, and their stated probabilities (n)."""
        y = self.exact(points)
        with np.errstate(invalid="ignore"):
            feasible = self.problem.box.feasible(y, self.thresholds[: len(points)])
        best = self.known.f[: len(points)]
        gap = np.clip(gaps(np.nan_to_num(y[: len(best), 0], nan=np.inf), best, self.known.span), -1.0, 1.0)
        lost = np.where(np.isnan(gap) | feasible[: len(best)], gap, 1.0)
        values = (feasible.mean(), stated.mean(), np.nanmean(lost), np.nanmean(gap), np.nanmin(lost))
        returned = np.isfinite(y).all(1).mean()
        return Judgement(*(100.0 * float(value) for value in (*values, returned)))


@cache
def subject(name: str) -> Subject:
    """Return a simulator or a shipped problem by its name."""
    if name in SIMULATORS:
        module = simulator(name)
        text = (FOLDER / "optima" / f"{name}.csv").read_text(encoding="utf-8")
        return Subject(module.PROBLEM, parsed(module.PROBLEM, text), lambda seed: module.evaluate, module.evaluate_many)
    shipped = problems.get(name)
    return Subject(shipped.problem, truth(name), shipped.evaluator, lambda X: np.column_stack(shipped.evaluate_many(X)))


def simulator(name: str) -> ModuleType:
    """Import a module of benchmarks/simulators."""
    full = f"benchmarks_simulators_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full]


def group_of(name: str) -> str:
    """Return the group that a problem belongs to; "other" if it is not of the rough suite."""
    return next((group for group, members in MEMBERS.items() if name in members), "other")


def chosen(words: Sequence[str]) -> list[str]:
    """Return the problems that names and groups stand for; all groups if there are none."""
    found = [name for word in words or MEMBERS for name in MEMBERS.get(word, (word,))]
    return list(dict.fromkeys(name if name in SIMULATORS else problems.get(name).name for name in found))
