"""The methods that campaigns compute, by name: each maps a problem, a seed and a number of thresholds to measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cbabo import problems
from cbabo.bench import botorch_reference, cbabo_runs, nonadaptive_baselines, pareto_baseline
from cbabo.bench.baselines import BASELINES, Strategy
from cbabo.bench.baselines import measure as spend
from cbabo.bench.cbabo_runs import CbaboRun, finished_study
from cbabo.bench.revisions import REVISIONS
from cbabo.bench.scoring import Measures, random_thresholds
from cbabo.bench.truth import truth
from cbabo.methods.settings import Settings
from cbabo.numerics.threads import one_thread
from cbabo.problems import ShippedProblem

__all__ = ["ALL_ROWS", "METHODS", "Measures", "Method", "finished_study", "measure", "random_thresholds", "rows_of"]

ALL_ROWS = 100
"""The threshold rows of a problem; also the N of a method that answers all of them at once."""

ITERATIONS = 34
"""Iterations of a run of 200 evaluations, 30 of them initial, with batches of 5."""

Compute = Callable[[ShippedProblem, int, int], Measures]


@dataclass(frozen=True)
class Method:
    """One way to answer thresholds, as a campaign computes it."""

    compute: Compute
    """(problem, seed, N) -> measures."""
    family: str
    """Methods whose results change together, as `revisions` lists them."""
    iterations: int = 0
    """How often it proposes evaluations in one unit of work."""
    per_threshold: bool = False
    """Whether it spends its budget on N thresholds, one by one; otherwise it answers all rows and N is 100."""

    @property
    def code(self) -> str:
        """The revision of its results, which keys its rows."""
        return REVISIONS[self.family].code


def measure(problem: str, method: str, seed: int, n: int) -> Measures:
    """Compute one unit of work, on one thread."""
    with one_thread():
        return METHODS[method].compute(problems.get(problem), seed, n)


def rows_of(seed: int, n: int) -> list[int]:
    """Return the threshold rows of a unit."""
    return [(seed * n + i) % ALL_ROWS for i in range(n)]


def _variant(**changes: float) -> Method:
    """Return the paper's method with some settings changed, as its ablations have it."""
    return Method(CbaboRun(_PAPER.replace(**changes), full=False), "paper", ITERATIONS)


def _spent(strategy: Strategy, shipped: ShippedProblem, seed: int, n: int) -> Measures:
    return spend(shipped, seed, truth(shipped.name).thresholds, rows_of(seed, n), strategy)


def _focused(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    return cbabo_runs.focused_run(shipped, seed, rows_of(seed, n))


_PAPER = Settings.paper()

METHODS: dict[str, Method] = {
    "paper": Method(CbaboRun(_PAPER), "paper", ITERATIONS),
    "default": Method(CbaboRun(Settings.default()), "default", ITERATIONS),
    "default focused": Method(_focused, "default focused", 170, per_threshold=True),
    "all random": Method(CbaboRun(_PAPER.replace(candidate_source="random"), full=False), "all random", ITERATIONS),
    "no monotonic": _variant(alpha=0.0),
    **{f"beta {beta}": _variant(beta=beta) for beta in (0.01, 1.0, 2.0)},
    **{f"alpha {alpha}": _variant(alpha=alpha) for alpha in (0.01, 0.5, 1.0)},
    **{f"inner {steps}": _variant(inner_steps=steps) for steps in (20, 100, 200)},
    **{name: Method(partial(_spent, strategy), name, 170, per_threshold=True) for name, strategy in BASELINES.items()},
    "lhs plain": Method(nonadaptive_baselines.lhs_plain, "lhs plain"),
    "lhs strong": Method(nonadaptive_baselines.lhs_strong, "lhs strong"),
    "constant strictest": Method(nonadaptive_baselines.constant_strictest, "constant strictest"),
    "constant relaxed": Method(nonadaptive_baselines.constant_relaxed, "constant relaxed"),
    "qLogNEHVI": Method(pareto_baseline.pareto_front, "qLogNEHVI", ITERATIONS),
    "plain": Method(botorch_reference.measure, "plain", ITERATIONS),
    "case study": Method(cbabo_runs.case_study, "case study", ITERATIONS),
}
"""All methods by name."""
