"""The constrained problem with discrete and integer variables: every answer is a legal design.

Symbols and shapes as in `continuous`; c candidates are legal designs around a relaxed solution (see `lattice`).

A candidate is estimated by the Lagrangian of the solution from which it was reached, f + lam (sign z - t): to first order that is
what solving for the continuous variables again would give, because a bound is then kept at the price of its multiplier. Where no
variable is continuous there is nothing to solve, and violations cannot be removed. Margins, in standard deviations, are those of
the relaxed solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import CUBE, Region
from cbabo.numerics.tolerances import BOUND_SLACK, PROBABILITY_SLACK
from cbabo.solver.continuous import TUNING as SOLVER
from cbabo.solver.continuous import Solution, Solver, SolverAnswer
from cbabo.solver.lattice import Lattice, search
from cbabo.surrogate.posterior import Posterior

_VIOLATION = 1e3
"""What a unit of violation weighs against a unit of the objective where no continuous variable can remove it."""


@dataclass(frozen=True, eq=False)
class _Met:
    """A design and the thresholds that it meets."""

    x: FloatArray
    theta: FloatArray | None
    """k; None: none in the box."""

    def rank(self, asked: FloatArray) -> tuple[float]:
        """Return how far they are from those asked for."""
        return (np.inf if self.theta is None else float(np.linalg.norm(self.theta - asked)),)


class MixedSolver(Solver):
    """Answers thresholds by legal designs."""

    discrete = True

    def __init__(self, posterior: Posterior, lattice: Lattice) -> None:
        super().__init__(posterior)
        self.lattice = lattice
        self._free = Solver(posterior)

    def best(self, bound: FloatArray, starts: int = SOLVER.starts) -> Solution:
        """Return the best legal solution, or the least violating one."""
        return self.alternatives(bound, starts)[0]

    def alternatives(self, bound: FloatArray, starts: int = SOLVER.starts) -> list[Solution]:
        """Return legal solutions, the best first."""
        return self.legal(bound, self._free.best(bound, starts))

    def predict(self, bound: FloatArray, probability: float) -> SolverAnswer:
        """Return the answer by the surrogates alone."""
        return self.with_margin(bound, self._free.best(bound), probability)

    def legal(self, bound: FloatArray, relaxed: Solution, region: Region = CUBE) -> list[Solution]:
        """Return legal solutions around a relaxed one, within a region, the best first."""
        if relaxed.feasible:
            found = search(
                self.lattice,
                relaxed,
                lambda centre, x: self._estimate(bound, centre, x),
                lambda x: self._held(bound, x, region),
                lambda s: s.rank,
                region,
            )
            if found[0].feasible:
                return found
        return self._least_violating(bound, relaxed, np.ones_like(bound))

    def within(self, bound: FloatArray, start: FloatArray, region: Region) -> list[Solution]:
        """Return legal solutions close to a start, within a region, the best first."""
        return self.legal(bound, self._free.within(bound, start, region)[0], region)

    def nearest(self, bound: FloatArray, start: FloatArray, scale: FloatArray, region: Region = CUBE) -> Solution:
        """Return the legal design whose largest violation, in units of scale (r), is least."""
        return self._least_violating(bound, self._free.nearest(bound, start, scale, region), scale)[0]

    def with_margin(self, bound: FloatArray, solution: Solution, probability: float) -> SolverAnswer:
        """Return the best legal design around a relaxed solution that has the probability asked for, or the most probable one."""
        relaxed = self.solve_with_margins(bound, solution, probability)
        std = self.pointwise.std(relaxed.x)[self.output]
        best: SolverAnswer | None = None
        if relaxed.feasible:
            beta = self.deviations(std, relaxed.multipliers, probability)
            for found in self._with_margins(bound, relaxed, std, beta):
                worse = best is not None and not (found.feasible and found.objective < best.objective)
                if best is not None and best.probability >= probability - PROBABILITY_SLACK and worse:
                    break
                best = better_answer(best, self._with_own_margins(bound, found, probability), probability)
        if best is None or best.probability < probability - PROBABILITY_SLACK:
            best = better_answer(best, self._as_answer(bound, self.nearest(bound, relaxed.x, std)), probability)
        return best

    def closest(self, theta: FloatArray, probability: float, start: FloatArray | None = None) -> FloatArray | None:
        """Return the thresholds nearest to theta (k) that a legal design meets with this probability; None if none does."""
        bound = self.bound(theta[None])[0]
        start = self._free.best(bound).x if start is None else start
        relaxed = self._free.meet(theta, probability, start)
        free = _Met(start, theta) if relaxed is None else _Met(*relaxed)
        rise = (self.bound((theta + SOLVER.theta_step)[None])[0] - bound) / SOLVER.theta_step

        def estimate(centre: _Met, x: FloatArray) -> FloatArray:
            over = np.clip(self._excess(bound, x), 0.0, None)
            return np.asarray(np.square(over / np.maximum(np.abs(rise), SOLVER.theta_step)).sum(1))

        def solve(x: FloatArray) -> _Met:
            found = self.meet(theta, probability, x, self.lattice.held(x))
            return _Met(x, None) if found is None else _Met(*found)

        best = search(self.lattice, free, estimate, solve, lambda m: m.rank(theta))[0]
        return best.theta

    def _with_margins(self, bound: FloatArray, relaxed: Solution, std: FloatArray, beta: FloatArray) -> list[Solution]:
        """Return legal solutions whose margins are beta (r) of their own deviations, the best first."""
        return search(
            self.lattice,
            relaxed,
            lambda centre, x: self._estimate(bound - std * beta, centre, x),
            lambda x: self._held(bound - self.pointwise.std(x)[self.output] * beta - BOUND_SLACK, x),
            lambda s: s.rank,
        )

    def _held(self, bound: FloatArray, x: FloatArray, region: Region = CUBE) -> Solution:
        """Solve for the continuous variables at the discrete ones of x."""
        if self.lattice.complete:
            return self.at(bound, x)
        return self.solve(bound, x, self._within(x, region))

    def _least_violating(self, bound: FloatArray, relaxed: Solution, scale: FloatArray) -> list[Solution]:
        """Return legal designs around a relaxed one, the largest violation in units of scale (r) being least first."""

        def solve(x: FloatArray) -> Solution:
            complete = self.lattice.complete
            return self.at(bound, x) if complete else self._free.nearest(bound, x, scale, self.lattice.held(x))

        def worst(x: FloatArray) -> FloatArray:
            return np.asarray(
                np.maximum((self._excess(bound, x) / scale).max(1), self._failure_excess(x) / SOLVER.failure_unit)
            )

        def rank(solution: Solution) -> tuple[float, ...]:
            return self.known.violation(solution.x), float(worst(solution.x[None])[0])

        return search(self.lattice, relaxed, lambda _, x: worst(x), solve, rank)

    def _within(self, x: FloatArray, region: Region) -> Region:
        """Return the region that holds the discrete variables of x and keeps the continuous ones within another."""
        low, high = self.lattice.held(x).ends(len(x))
        free = low < high
        return Region(np.where(free, region.lower, low), np.where(free, region.upper, high))

    def _estimate(self, bound: FloatArray, centre: Solution, x: FloatArray) -> FloatArray:
        """Return what solving is expected to give at candidates (c x d) near a solution."""
        z = self._means(x)
        over = self.sign * z[:, self.output] - bound
        worth = self.goal * z[:, 0]
        if self.lattice.complete:
            worth = worth + _VIOLATION * np.clip(over, 0.0, None).sum(1)
        else:
            price = np.abs(centre.multipliers)
            unpriced = max(1.0, float(price.max())) * (price == 0.0)
            worth = worth + over @ price + np.clip(over, 0.0, None) @ unpriced
        if self.region is not None and self.lattice.complete:
            worth = worth + _VIOLATION * np.clip(self.region.relations.values(x), 0.0, None).sum(1)
        return np.asarray(worth if self.failure_model is None else worth + _VIOLATION * self._failure_excess(x))

    def _excess(self, bound: FloatArray, x: FloatArray) -> FloatArray:
        """Return by how much designs (c x d) exceed their bounds (c x r)."""
        return np.asarray(self.sign * self._means(x)[:, self.output] - bound)

    def _means(self, x: FloatArray) -> FloatArray:
        """Return z (c x q) of designs (c x d)."""
        s = self.posterior.predictor
        with torch.no_grad():
            return np.asarray(((s.mean(torch.from_numpy(x)) - s.centre) / s.scale).numpy())

    def _failure_excess(self, x: FloatArray) -> FloatArray:
        """Return by how much the failure probability exceeds what is tolerable (c)."""
        if self.failure_model is None:
            return np.zeros(len(x))
        return np.clip(
            self.failure_model.probability(torch.from_numpy(x)).numpy() - self.failure_model.limit, 0.0, None
        )

    def _with_own_margins(self, bound: FloatArray, found: Solution, probability: float) -> SolverAnswer:
        """Solve a legal solution again with margins of its own, and compute its probability."""
        if not self.lattice.complete:
            found = self.solve_with_margins(bound, found, probability, self.lattice.held(found.x))
        return self._as_answer(bound, found)

    def _as_answer(self, bound: FloatArray, solution: Solution) -> SolverAnswer:
        chance = self.probability(bound, solution.x)
        return SolverAnswer(solution.x, solution.objective, chance, multipliers=solution.multipliers)


def better_answer(a: SolverAnswer | None, b: SolverAnswer, probability: float) -> SolverAnswer:
    """Return the better one: by objective if both are probable enough, else by probability."""
    if a is None:
        return b
    enough = min(a.probability, b.probability) >= probability - PROBABILITY_SLACK
    return min((a, b), key=lambda p: p.objective if enough else -p.probability)
