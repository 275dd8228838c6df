"""The constrained problem with categorical variables: solved for combinations of categories, of which the best one is taken.

Symbols and shapes as in `continuous`; g combinations of categories, n measured designs.

A mixture of categories means nothing, so that categories are not relaxed: a solver keeps the categories of its start (see
`Solver`), and solutions of several combinations are compared. Where combinations are few, all are solved: each from measured
designs that are good with these categories by the posterior means, whatever categories they were measured with. Where they are
more, the most promising ones are solved until several in a row are no better; where they are many, a local search goes on from
the categories of the best measured designs, with changes of one and two variables. Margins are computed for one combination after
the other, best first, as long as its solution without a margin is better than the best answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import CUBE, Region
from cbabo.numerics.tolerances import PROBABILITY_SLACK
from cbabo.solver.continuous import TUNING as SOLVER
from cbabo.solver.continuous import Solution, Solver, SolverAnswer, apart
from cbabo.solver.lattice import Lattice, search
from cbabo.solver.mixed import MixedSolver, better_answer
from cbabo.surrogate.posterior import Posterior


@dataclass(frozen=True)
class CategoricalTuning:
    """Numbers that tune the choice of combinations."""

    all_solved: int = 8
    """Combinations up to which all are solved."""
    enumerated: int = 64
    """Combinations up to which all are estimated from measured designs; more are searched."""
    in_vain: int = 4
    """Combinations in a row, in the order of their estimates, after which the others are left out."""
    searched: int = 8
    """Combinations of one neighbourhood that are solved at most in a search: it goes on from the best of them."""
    searched_in_vain: int = 3
    """Solves of a search without a gain, one after the other, after which a neighbourhood is left."""
    carried: int = 200
    """Measured designs, the latest, that are tried with every combination: late ones lie where answers are."""
    plausible: float = 2.0
    """Standard deviations of the objective by which a solution of another combination may be worse than the best one and still is
    worth measuring."""


TUNING = CategoricalTuning()


def solver_for(posterior: Posterior) -> Solver:
    """Return the solver for a posterior's problem."""
    space, region = posterior.problem.space, posterior.problem.region
    numbers, categories = Lattice.of_numbers(space, region), Lattice.of_categories(space, region)
    inner = Solver(posterior) if numbers is None else MixedSolver(posterior, numbers)
    return inner if categories is None else CategoricalSolver(posterior, categories, inner)


class CategoricalSolver(MixedSolver):
    """Answers thresholds by designs with the best combination of categories."""

    def __init__(self, posterior: Posterior, categories: Lattice, inner: Solver) -> None:
        """inner: the solver for the other variables, which keeps the categories of its starts."""
        super().__init__(posterior, categories)
        self._inner = inner

    def best(self, bound: FloatArray, starts: int = SOLVER.starts) -> Solution:
        """Return the best legal solution, or the least violating one."""
        return self.alternatives(bound, starts)[0]

    def alternatives(self, bound: FloatArray, starts: int = SOLVER.starts) -> list[Solution]:
        """Return legal solutions that may be the best ones by what is known, of one or more combinations, the best first."""
        found: list[Solution] = []
        for solution in self._solutions(bound, starts):
            if found and solution.rank >= min(s.rank for s in found) and not self._plausible(solution, found):
                break
            found += self._legalised(bound, solution)
        return sorted(found, key=lambda s: s.rank)

    def predict(self, bound: FloatArray, probability: float) -> SolverAnswer:
        """Return the answer by the surrogates alone."""
        return self._best_with_margin(bound, self._solutions(bound, SOLVER.starts), probability)

    def predict_from(self, bound: FloatArray, start: FloatArray, probability: float) -> SolverAnswer:
        """Return the answer by the surrogates alone that is found from one start, with its categories."""
        return self._inner.predict_from(bound, start, probability)

    def with_margin(self, bound: FloatArray, solution: Solution, probability: float) -> SolverAnswer:
        """Return the best answer of all combinations with the probability asked for, a solution of one of them being known."""
        own = self._key(solution.x)
        others = [s for s in self._solutions(bound, 1) if self._key(s.x) != own]
        return self._best_with_margin(bound, sorted([solution, *others], key=lambda s: s.rank), probability)

    def within(self, bound: FloatArray, start: FloatArray, region: Region) -> list[Solution]:
        """Return legal solutions close to a start, within a region, with its categories, the best first."""
        return self._inner.within(bound, start, region)

    def nearest(self, bound: FloatArray, start: FloatArray, scale: FloatArray, region: Region = CUBE) -> Solution:
        """Return the legal design with the categories of a start whose largest violation, in units of scale (r), is least."""
        return self._inner.nearest(bound, start, scale, region)

    def closest(self, theta: FloatArray, probability: float, start: FloatArray | None = None) -> FloatArray | None:
        """Return the thresholds nearest to theta (k) that a legal design meets with this probability; None if none does."""
        if start is not None:
            return self._inner.closest(theta, probability, start)
        solutions = self._solutions(self.bound(theta[None])[0], 1)[: TUNING.all_solved]
        found = [self._inner.closest(theta, probability, s.x) for s in solutions]
        met = [t for t in found if t is not None]
        return min(met, key=lambda t: float(np.linalg.norm(t - theta))) if met else None

    def _best_with_margin(self, bound: FloatArray, solutions: Sequence[Solution], probability: float) -> SolverAnswer:
        """Return the best answer of some combinations, whose solutions without a margin are given, the best first."""
        best: SolverAnswer | None = None
        for solution in solutions:
            enough = best is not None and best.probability >= probability - PROBABILITY_SLACK
            if enough and best is not None and (not solution.feasible or solution.objective >= best.objective):
                break
            best = better_answer(best, self._inner.with_margin(bound, solution, probability), probability)
        assert best is not None
        return best

    def _solutions(self, bound: FloatArray, starts: int) -> list[Solution]:
        """Return the best solution of every combination that is considered, numbers being relaxed, the best first."""
        if self.lattice.size > TUNING.enumerated:
            return self._searched(bound, starts)
        x, z = self._carried
        violation = np.clip(self.sign * z[:, :, self.output] - bound, 0.0, None).sum(-1)
        merit = self.goal * z[:, :, 0] + SOLVER.violation * violation
        found: list[Solution] = []
        in_vain = 0
        for g in np.argsort(merit.min(1), kind="stable").tolist():
            solution = self._free.best_from(bound, apart(x[g], np.argsort(merit[g], kind="stable"), starts))
            gained = not found or solution.rank < min(s.rank for s in found)
            in_vain = 0 if gained else in_vain + 1
            found.append(solution)
            if len(x) > TUNING.all_solved and in_vain == TUNING.in_vain:
                break
        return sorted(found, key=lambda s: s.rank)

    def _searched(self, bound: FloatArray, starts: int) -> list[Solution]:
        """Return solutions of combinations around those of the best measured designs, the best first."""
        found: dict[bytes, Solution] = {}
        for x in self.starts(bound, starts):
            start = self._free.best_from(bound, [x])
            near = search(
                self.lattice,
                start,
                lambda centre, designs: self._estimate(bound, centre, designs),
                lambda design: self._held(bound, design),
                lambda s: s.rank,
                solved_at_most=TUNING.searched,
                in_vain_at_most=TUNING.searched_in_vain,
            )
            for solution in (start, *near):
                found.setdefault(self._key(solution.x), solution)
        return sorted(found.values(), key=lambda s: s.rank)

    def _legalised(self, bound: FloatArray, solution: Solution) -> list[Solution]:
        """Return legal solutions around one whose numbers are relaxed, the best first."""
        return self._inner.legal(bound, solution) if isinstance(self._inner, MixedSolver) else [solution]

    def _plausible(self, solution: Solution, found: Sequence[Solution]) -> bool:
        """Tell whether a solution may be better than those found, by the standard deviation of its objective."""
        best = min(found, key=lambda s: s.rank)
        if not (best.feasible and solution.feasible):
            return False
        return solution.objective - TUNING.plausible * float(self.pointwise.std(solution.x)[0]) < best.objective

    def _key(self, x: FloatArray) -> bytes:
        """Return what tells combinations apart."""
        return bytes(x[self.lattice.at].round().astype(np.int8))

    def _held(self, bound: FloatArray, x: FloatArray, region: Region = CUBE) -> Solution:
        """Solve for all other variables at the categories of x."""
        return self._free.solve(bound, x, region)

    @cached_property
    def _carried(self) -> tuple[FloatArray, FloatArray]:
        """Measured designs with every combination of categories (g x n x d), and the means there (g x n x q)."""
        x, combinations = self.posterior.surrogates.x.numpy()[-TUNING.carried :], self.lattice.combinations()
        designs = np.tile(x, (len(combinations), 1, 1))
        designs[:, :, self.lattice.at] = combinations[:, None]
        z = np.stack([self._means(part) for part in designs])
        return designs, z
