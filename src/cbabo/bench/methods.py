"""What a campaign can compute, by name: every method maps a problem, a seed and a number of thresholds to named numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from cbabo import problems
from cbabo.bench import ours, pareto, rivals, straight, strong
from cbabo.bench.baselines import BASELINES, Strategy
from cbabo.bench.baselines import measure as spend
from cbabo.bench.judging import Measures, queries
from cbabo.bench.ours import learned
from cbabo.bench.truth import truth
from cbabo.bench.versions import version
from cbabo.decisions import recommend
from cbabo.methods.settings import MethodSettings, Settings
from cbabo.network import distillation
from cbabo.numerics.threads import one_thread
from cbabo.problems import ShippedProblem
from cbabo.solver import library

__all__ = ["ALL_ROWS", "METHODS", "Measures", "Method", "learned", "measure", "queries", "rows_of"]

ALL_ROWS = 100
"""The threshold rows of a problem; also the N of a method that answers all of them at once."""

SOLVING = tuple(
    f"cbabo.{name}"
    for name in (
        "methods.batch",
        "methods.correction",
        "surrogate.prequential",
        "surrogate.failures",
        "solver.lattice",
        "solver.mixed",
        "solver.continuous",
        "numerics.slsqp",
        "surrogate.forms",
        "surrogate.pointwise",
        "surrogate.warp",
    )
)
"""What runs only where answers are solved."""

Compute = Callable[[ShippedProblem, int, int], Measures]


@dataclass(frozen=True)
class Method:
    """One way to answer thresholds, as a campaign computes it."""

    compute: Compute
    """(problem, seed, N) -> measures."""
    iterations: int
    """How often it proposes evaluations in one unit of work."""
    modules: tuple[str, ...]
    """Whose code, with all that it imports, computes it."""
    per_threshold: bool = False
    """Whether it spends its budget on N thresholds, one by one; otherwise it answers all rows and N is 100."""
    stated: str = ""
    """What else decides its results, such as settings."""
    apart: tuple[str, ...] = ()
    """Modules that are imported but never run by it."""

    @property
    def code(self) -> str:
        """The version of the code that computes it."""
        return version((*self.modules, problems.__name__), self.stated, self.apart)


def measure(problem: str, method: str, seed: int, n: int) -> Measures:
    """Compute one unit of work, on one thread."""
    with one_thread():
        return METHODS[method].compute(problems.get(problem), seed, n)


def rows_of(seed: int, n: int) -> list[int]:
    """Return the threshold rows of a unit."""
    return [(seed * n + i) % ALL_ROWS for i in range(n)]


def _learned(settings: MethodSettings, *, whole: bool = False) -> Method:
    compute, stated = ours.Map(settings, whole), f"{settings!r} {whole}"
    if settings.method == "paper":
        return Method(compute, 34, (ours.__name__,), stated=stated, apart=SOLVING)
    return Method(compute, 34, (ours.__name__, library.__name__, distillation.__name__), stated=stated)


def _single(compute: Compute, iterations: int = 0) -> Method:
    return Method(compute, iterations, (compute.__module__,), stated=compute.__name__)


def _spent(strategy: Strategy, shipped: ShippedProblem, seed: int, n: int) -> Measures:
    return spend(shipped, seed, truth(shipped.name).thresholds, rows_of(seed, n), strategy)


def _focused(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    return ours.focused(shipped, seed, rows_of(seed, n))


def _baseline(strategy: Strategy) -> Method:
    modules = (strategy.__module__, spend.__module__)
    return Method(partial(_spent, strategy), 170, modules, per_threshold=True, stated=strategy.__name__)


_PAPER = Settings.paper()

METHODS: dict[str, Method] = {
    "paper": _learned(_PAPER, whole=True),
    "default": _learned(Settings.default(), whole=True),
    "default focused": Method(_focused, 170, (ours.__name__,), per_threshold=True),
    "all random": _learned(_PAPER.replace(candidate_source="random")),
    "no monotonic": _learned(_PAPER.replace(alpha=0.0)),
    **{f"beta {beta}": _learned(_PAPER.replace(beta=beta)) for beta in (0.01, 1.0, 2.0)},
    **{f"alpha {alpha}": _learned(_PAPER.replace(alpha=alpha)) for alpha in (0.01, 0.5, 1.0)},
    **{f"inner {steps}": _learned(_PAPER.replace(inner_steps=steps)) for steps in (20, 100, 200)},
    **{name: _baseline(strategy) for name, strategy in BASELINES.items()},
    "lhs plain": _single(rivals.lhs_plain),
    "lhs strong": _single(strong.lhs_strong),
    "constant strictest": _single(rivals.constant_strictest),
    "constant relaxed": _single(rivals.constant_relaxed),
    "qLogNEHVI": _single(pareto.pareto_front, 34),
    "plain": _single(straight.paper_on_botorch, 34),
    "case study": replace(_single(ours.case_study, 34), modules=(ours.__name__, recommend.__name__), apart=SOLVING),
}
"""What a campaign can compute, by name."""
