"""Solving the surrogates' problem: the best design for given thresholds as they see it, with a margin for their errors.

Symbols and shapes, in units of the standardised outputs
    x      d       a design, unit cube
    z      q       means of the outputs; J  q x d  their derivatives; s  their deviations
    t      r       bounds of the requirements: sign * z[output] <= t
    lam    r       multipliers: what the objective gains per unit of t
    beta   r       margins in deviations: sign * z[output] + beta s[output] <= t

Margins are constants while a problem is solved, and found anew at its solution, two or three times: deviations inside the solver
would make a dip, and so a false optimum, at every measured design. What a margin of requirement r is worth: with price L of an
infeasible answer, losing lam s per deviation is balanced by the probability gained, L phi(beta) = lam s. L is the price below, or
as much more as the stated probability demands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import ACCURACY, CUBE, Region, minimise
from cbabo.surrogate.posterior import Posterior

STARTS = 3
"""Measured designs from which a solver starts."""
MARGINS = 3
"""How often margins are found anew."""
ROUNDING = 1e-7
"""Kept between a solution and its bounds."""
NEARLY = 1e-3
"""By how much a probability may miss the one asked for."""
RISK = 0.05
"""Unit of the probability of a failure where violations are weighed against each other."""

_SETTLED = 1e-5  # change of the margins below which they are not found anew
_FEASIBLE = 1e-5  # excess below which a solution obeys its bounds: the solver may stop within its accuracy of them
_SAME = 1e-9  # distance in the unit cube below which two designs are one
_APART = 0.15  # their least distance in the unit cube
_AMONG = 60  # how many of the best measured designs are looked at for them
_VIOLATION = 10.0  # what a unit of violation weighs against a unit of the objective in their ranking
_WIDEST = 5.0  # margin in deviations beyond which nothing is gained


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the solver ended."""

    x: FloatArray
    objective: float
    """The mean of the objective, to be minimised."""
    excess: float
    """The largest violation of the bounds; not above zero where all are obeyed."""
    multipliers: FloatArray
    """r."""

    @property
    def feasible(self) -> bool:
        """Whether it obeys the bounds."""
        return self.excess <= _FEASIBLE

    @property
    def rank(self) -> tuple[float, float]:
        """Its place among others: by objective where it obeys the bounds, after these by violation."""
        return max(self.excess, _FEASIBLE), self.objective


@dataclass(frozen=True, eq=False)
class SolverAnswer:
    """The answer to one threshold."""

    x: FloatArray
    objective: float
    probability: float
    """That all limits are obeyed."""
    measured: int | None = None
    """The number of the evaluation, if the answer is a measured design."""
    multipliers: FloatArray | None = None
    """r, of the solution; None where it was not solved for the objective."""


class Solver:
    """Answers thresholds by the surrogates of a posterior."""

    discrete = False
    """Whether some variables are not continuous."""

    def __init__(self, posterior: Posterior) -> None:
        limits, s = posterior.limits, posterior.surrogates
        self.posterior = posterior
        self.pointwise = posterior.pointwise
        self.failure_model = posterior.failure_model
        self.z = posterior.z.numpy()
        self.output, self.sign, self.goal = limits.output.numpy(), limits.sign.numpy(), limits.goal
        self._centre, self._scale = s.centre.numpy()[self.output], s.scale.numpy()[self.output]
        f = self.goal * self.z[:, 0]
        self.price = max(float(np.median(f) - f.min()), 1e-3)

    def bound(self, theta: FloatArray) -> FloatArray:
        """Return t (b x r) at theta (b x k)."""
        t = self.posterior.limits.bound(torch.from_numpy(theta)).numpy()
        return np.asarray((t - self.sign * self._centre) / self._scale)

    def best(self, bound: FloatArray, starts: int = STARTS) -> Solution:
        """Return the best solution from several measured designs, or the least violating one."""
        best = min((self.solve(bound, x) for x in self.starts(bound, starts)), key=lambda s: s.rank)
        return best if best.feasible else self.nearest(bound, best.x, np.ones_like(bound))

    def alternatives(self, bound: FloatArray, starts: int = STARTS) -> list[Solution]:
        """Return the best solution, and others of which one may be taken instead."""
        return [self.best(bound, starts)]

    def answers(self, theta: FloatArray, probability: float) -> tuple[SolverAnswer, ...]:
        """Return the answers (b) at theta (b x k): with at least this probability, if any design has it.

        The best measured design that obeys the limits is returned unless the solver's is worth more, and is not measured itself.
        """
        found = []
        for bound, incumbent in zip(self.bound(theta), self.incumbents(theta), strict=True):
            answer = self.predict(bound, probability)
            if incumbent >= 0:
                value = self.goal * float(self.z[incumbent, 0])
                worth = answer.objective + self.price * (1.0 - answer.probability)
                if value <= worth or bool(self.known(answer.x[None])[0]):
                    answer = SolverAnswer(self.posterior.surrogates.x[incumbent].numpy(), value, 1.0, int(incumbent))
            found.append(answer)
        return tuple(found)

    def within(self, bound: FloatArray, start: FloatArray, region: Region) -> list[Solution]:
        """Return solutions close to a start, within a region, the best first."""
        found = self.solve(bound, start, region)
        return [found if found.feasible else self.nearest(bound, found.x, np.ones_like(bound))]

    def predict(self, bound: FloatArray, probability: float) -> SolverAnswer:
        """Return the answer by the surrogates alone."""
        return self.safe(bound, self.best(bound), probability)

    def safe(self, bound: FloatArray, solution: Solution, probability: float) -> SolverAnswer:
        """Move a solution inside its bounds until its probability is the one asked for."""
        solution = self.inside(bound, solution, probability)
        chance = self.probability(bound, solution.x)
        if chance < probability - NEARLY:
            std = self.pointwise.std(solution.x)[self.output]
            safest = self.nearest(bound, solution.x, std)
            better = self.probability(bound, safest.x)
            if better > chance:
                solution, chance = safest, better
        return SolverAnswer(solution.x, solution.objective, chance, multipliers=solution.multipliers)

    def inside(self, bound: FloatArray, solution: Solution, probability: float, region: Region = CUBE) -> Solution:
        """Solve again with the margins that this probability asks for, from a solution that obeys its bounds."""
        if not solution.feasible:
            return solution
        last: FloatArray | None = None
        for _ in range(MARGINS):
            std = self.pointwise.std(solution.x)[self.output]
            margin = std * self.deviations(std, solution.multipliers, probability)
            if last is not None:
                if float(np.max(np.abs(margin - last))) <= _SETTLED:
                    break
                margin = 0.5 * (margin + last)  # alone they overshoot where deviations differ from place to place
            last = margin
            inside = self.solve(bound - margin - ROUNDING, solution.x, region)
            if not inside.feasible:
                break
            solution = inside
        return solution

    def solve(self, bound: FloatArray, start: FloatArray, region: Region = CUBE) -> Solution:
        """Minimise the objective within bounds (r) from one start."""
        seen = _Seen(self)
        found = minimise(
            lambda x: self.goal * float(seen(x)[0][0]),
            lambda x: self.goal * seen(x)[1][0],
            lambda x: -seen.excess(x, bound),
            lambda x: -seen.slope(x),
            start,
            region,
        )
        return self.at(bound, found.v, found.multipliers[: len(bound)])

    def nearest(self, bound: FloatArray, start: FloatArray, scale: FloatArray, region: Region = CUBE) -> Solution:
        """Return the design whose largest violation, in units of scale (r), is least."""
        seen = _Seen(self)
        d = len(start)
        low, high = region.ends(d)
        start = np.clip(start, low, high)
        unit = scale if self.failure_model is None else np.append(scale, RISK)
        worst = float(np.max(seen.excess(start, bound) / unit))
        away = np.eye(d + 1)[-1]
        found = minimise(
            lambda v: float(v[-1]),
            lambda v: away,
            lambda v: v[-1] - seen.excess(v[:d], bound) / unit,
            lambda v: np.column_stack([-seen.slope(v[:d]) / unit[:, None], np.ones(len(unit))]),
            np.append(start, worst),
            Region(np.append(low, -_WIDEST), np.append(high, max(worst, 0.0) + _WIDEST)),
        )
        return self.at(bound, found.v[:d])

    def closest(self, theta: FloatArray, probability: float) -> FloatArray | None:
        """Return the thresholds nearest to theta (k) that are believed to be met with this probability; None if none are."""
        found = self.meet(theta, probability, self.best(self.bound(theta[None])[0]).x)
        return None if found is None else found[1]

    def meet(
        self, theta: FloatArray, probability: float, start: FloatArray, region: Region = CUBE
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return a design, and the thresholds nearest to theta (k) that it is believed to meet; None if there are none."""
        x, relaxed = start, theta
        for _ in range(MARGINS):
            std = self.pointwise.std(x)[self.output]
            margin = ndtri(probability ** (1.0 / len(std))) * std + ROUNDING
            found = self.relaxed(theta, x, margin, region)
            if found is None:
                return None
            x, relaxed = found[: len(x)], theta + found[len(x) :]
        return x, np.asarray(np.minimum(relaxed, 1.0))

    def relaxed(
        self, theta: FloatArray, start: FloatArray, margin: FloatArray, region: Region = CUBE
    ) -> FloatArray | None:
        """Return a design and the least relaxation (d + k) with which it keeps the margins (r)."""
        seen = _Seen(self)
        d, k = len(start), len(theta)
        step = 1e-6
        threshold, span = self.posterior.limits.threshold.numpy(), self.posterior.limits.span.numpy() != 0
        rows = np.nonzero(span)[0]

        def room(v: FloatArray) -> FloatArray:
            return -seen.excess(v[:d], self.bound((theta + v[d:])[None])[0] - margin)

        def slope(v: FloatArray) -> FloatArray:
            at = (theta + v[d:])[None]
            rise = (self.bound(at + step) - self.bound(at - step))[0] / (2.0 * step)
            by_x = -seen.slope(v[:d])
            by_theta = np.zeros((len(by_x), k))
            by_theta[rows, threshold[rows]] = rise[rows]
            return np.column_stack([by_x, by_theta])

        (low, high), most = region.ends(d), np.clip(1.0 - theta, 0.0, None)
        weight = np.append(np.zeros(d), np.ones(k))
        found = minimise(
            lambda v: float((weight * v**2).sum()),
            lambda v: 2.0 * weight * v,
            room,
            slope,
            np.append(start, most),
            Region(np.append(low, np.zeros(k)), np.append(high, most)),
            accuracy=ACCURACY**2,  # of squares
        )
        return found.v if float(room(found.v).min()) >= -_FEASIBLE else None

    def probability(self, bound: FloatArray, x: FloatArray) -> float:
        """Return the probability that a design obeys its bounds (r)."""
        z, s = self.pointwise.mean_and_jacobian(x)[0], self.pointwise.std(x)
        return float(self.joint(bound[None], z[None], s[None])[0])

    def joint(self, bound: FloatArray, z: FloatArray, s: FloatArray) -> FloatArray:
        """Return the probability (b) that designs with means z and deviations s (b x q) obey their bounds (b x r).

        Outputs are taken as independent.
        """
        room = (bound - self.sign * z[:, self.output]) / s[:, self.output]
        above, below = np.full(s.shape, np.inf), np.full(s.shape, np.inf)
        for j, (output, sign) in enumerate(zip(self.output, self.sign, strict=True)):
            side = above if sign > 0 else below
            side[:, output] = np.minimum(side[:, output], room[:, j])
        return np.asarray(np.prod(np.maximum(ndtr(above) - ndtr(-below), 0.0), axis=1))

    def starts(self, bound: FloatArray, count: int) -> Sequence[FloatArray]:
        """Return measured designs that are good for these bounds (r), apart from each other."""
        violation = np.clip(self.sign * self.z[:, self.output] - bound, 0.0, None).sum(1)
        order = np.argsort(self.goal * self.z[:, 0] + _VIOLATION * violation, kind="stable")
        x = self.posterior.surrogates.x.numpy()
        kept = [x[order[0]]]
        for i in order[1:_AMONG]:
            if len(kept) >= count:
                break
            if min(float(np.linalg.norm(x[i] - other)) for other in kept) > _APART:
                kept.append(x[i])
        return kept

    def deviations(self, std: FloatArray, multipliers: FloatArray, probability: float) -> FloatArray:
        """Return beta (r); or for many designs at once, all being b x r."""
        cost = np.log(np.sqrt(2.0 * np.pi) * np.maximum(np.abs(multipliers), 1e-12) * std)

        def at(log_price: FloatArray) -> FloatArray:
            return np.asarray(np.sqrt(2.0 * np.clip(log_price[..., None] - cost, 0.0, 0.5 * _WIDEST**2)))

        least = low = np.full(cost.shape[:-1], np.log(self.price))
        high = np.where(np.prod(ndtr(at(low)), -1) >= probability, low, low + 60.0)
        if (high == least).all():
            return at(least)
        for _ in range(40):
            middle = 0.5 * (low + high)
            enough = np.prod(ndtr(at(middle)), -1) >= probability
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return at(high)

    def incumbent(self, theta: FloatArray) -> int | None:
        """Return the row of the best measured design that truly obeys the limits at theta (k)."""
        row = int(self.incumbents(theta[None])[0])
        return None if row < 0 else row

    def incumbents(self, theta: FloatArray) -> NDArray[np.int64]:
        """Return the same for many thresholds (b x k), b; -1 where no measured design obeys them."""
        box, measured = self.posterior.problem.box, self.posterior.measured
        obeyed = box.obeyed(measured.y, box.from_theta(theta))
        value = np.where(obeyed, self.goal * self.z[: len(measured), 0], np.inf)
        return np.where(obeyed.any(1), value.argmin(1), -1)

    def known(self, x: FloatArray) -> NDArray[np.bool_]:
        """Tell which designs (b x d) are measured ones, as happens where variables are discrete."""
        if not self.discrete:
            return np.zeros(len(x), dtype=np.bool_)
        measured = self.posterior.measured.x
        return np.array([bool((np.abs(measured - row).max(1) <= _SAME).any()) for row in x], dtype=np.bool_)

    def at(self, bound: FloatArray, x: FloatArray, multipliers: FloatArray | None = None) -> Solution:
        """Return a design as a solution."""
        seen = _Seen(self)
        multipliers = np.zeros(len(bound)) if multipliers is None else multipliers
        return Solution(x, float(self.goal * seen(x)[0][0]), float(np.max(seen.excess(x, bound))), multipliers)


class _Seen:
    """What is believed at the last design, which SLSQP asks for bit by bit."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._x: FloatArray | None = None
        self._risk: tuple[float, FloatArray] | None = None

    def __call__(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z and J."""
        if self._x is None or (self._x != x).any():
            self._x = x.copy()
            self._found = self._solver.pointwise.mean_and_jacobian(x)
            if self._solver.failure_model is not None:
                self._risk = self._solver.failure_model.excess(x)
        return self._found

    def excess(self, x: FloatArray, bound: FloatArray) -> FloatArray:
        """Return by how much each bound is exceeded (r), and the tolerable risk of a failure where there is one (r + 1)."""
        z = self(x)[0]
        over = self._solver.sign * z[self._solver.output] - bound
        return over if self._risk is None else np.append(over, self._risk[0])

    def slope(self, x: FloatArray) -> FloatArray:
        """Return the derivatives of the same by x."""
        slope = self._solver.sign[:, None] * self(x)[1][self._solver.output]
        return slope if self._risk is None else np.vstack([slope, self._risk[1]])
