"""The constrained problem on the surrogates: the best design for given thresholds, with a margin for their uncertainty.

Symbols and shapes, in units of the standardised outputs
    x      d       a design, unit cube
    z      q       posterior means of the outputs; J  q x d  their derivatives; s  q  their standard deviations
    t      r       bounds of the requirements: sign * z[output] <= t
    lam    r       multipliers: what the objective gains per unit of t
    beta   r       margins in standard deviations: sign * z[output] + beta s[output] <= t

Margins are constants while a problem is solved and are computed again at its solution, two or three times: standard deviations
inside the solver would make a dip, and so a false optimum, at every measured design. The margin of a requirement balances its
cost against the probability that it gains: with price L of an infeasible answer, lam s = L p(beta), p being the density of the
distribution of which `limits` states probabilities. L is the price below, or larger where the stated probability demands it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from cbabo.domain.query import Query
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import ACCURACY, CUBE, Region, minimise
from cbabo.numerics.tolerances import BOUND_SLACK, PROBABILITY_SLACK, SAME_DESIGN
from cbabo.solver.known import KnownRelations
from cbabo.surrogate.limits import student_margin, student_probability, student_quantile
from cbabo.surrogate.posterior import Posterior


@dataclass(frozen=True)
class SolverTuning:
    """Numbers that tune the solver."""

    starts: int = 3
    """Measured designs from which a problem is solved: further ones seldom find a better optimum."""
    margins: int = 3
    """How often margins are computed: after three they have settled on all shipped problems."""
    raises: int = 3
    """How often a higher probability is aimed at where margins have settled just short of the one asked for."""
    raised: float = 0.6
    """Factor of the probability of an infeasible answer each time."""
    failure_unit: float = 0.05
    """Unit of the failure probability where violations are compared with each other."""
    settled: float = 1e-5
    """Change of the margins, in standardised units, below which they are not computed again."""
    feasible: float = 1e-5
    """Violation below which a solution obeys its bounds: SLSQP may stop within its accuracy of them."""
    apart: float = 0.15
    """Least distance between starts in the unit cube, so that they lie in different regions."""
    among: int = 60
    """How many of the best measured designs are considered as starts."""
    violation: float = 10.0
    """What a unit of violation weighs against a unit of the objective in the ranking of starts."""
    widest: float = 8.0
    """Largest margin in standard deviations: beyond, two answers in ten thousand are infeasible, and wider margins of limits that
    do not bind would make them bind."""
    least_price: float = 1e-3
    """Least price of an infeasible answer, in standard deviations of the objective."""
    theta_step: float = 1e-6
    """Step of the central differences by theta, along which bounds are smooth."""
    least_multiplier: float = 1e-12
    """Least multiplier in the balance of a margin, so that its logarithm is finite."""
    price_span: float = 60.0
    """Width of the interval of log prices, above the price itself, in which the one that the probability demands is sought."""
    price_halvings: int = 40
    """How often that interval is halved."""


TUNING = SolverTuning()


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
        return self.excess <= TUNING.feasible

    @property
    def rank(self) -> tuple[float, float]:
        """Its place among others: by objective where it obeys the bounds, after these by violation."""
        return max(self.excess, TUNING.feasible), self.objective


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
    closest: FloatArray | None = None
    """k, the nearest thresholds that can be met where these cannot; None where that was not looked for."""


class Solver:
    """Answers thresholds by solving the constrained problem on the surrogates."""

    discrete = False
    """Whether some variables are not continuous."""

    def __init__(self, posterior: Posterior) -> None:
        limits, s = posterior.limits, posterior.predictor
        self.posterior = posterior
        self.pointwise = posterior.pointwise
        self.failure_model = posterior.failure_model
        self.region, self.known = posterior.problem.region, KnownRelations(posterior.problem.region)
        self.z, self.z_std = posterior.z.numpy(), posterior.z_std.numpy()
        self.output, self.sign, self.goal = limits.output.numpy(), limits.sign.numpy(), limits.goal
        self._centre, self._scale = s.centre.numpy()[self.output], s.scale.numpy()[self.output]
        space = posterior.problem.space
        self._moving = space.of_numbers if space.categories else None
        f = self.goal * self.z[:, 0]
        self.price = max(float(np.median(f) - f.min()), TUNING.least_price)

    def bound(self, theta: FloatArray) -> FloatArray:
        """Return t (b x r) at theta (b x k)."""
        t = self.posterior.limits.bound(torch.from_numpy(theta)).numpy()
        return np.asarray((t - self.sign * self._centre) / self._scale)

    def best(self, bound: FloatArray, starts: int = TUNING.starts) -> Solution:
        """Return the best solution from several measured designs, or the least violating one."""
        return self.best_from(bound, self.starts(bound, starts))

    def best_from(self, bound: FloatArray, designs: Sequence[FloatArray]) -> Solution:
        """Return the best solution from some designs, or the least violating one."""
        best = min((self.solve(bound, x) for x in designs), key=lambda s: s.rank)
        return best if best.feasible else self.nearest(bound, best.x, np.ones_like(bound))

    def alternatives(self, bound: FloatArray, starts: int = TUNING.starts) -> list[Solution]:
        """Return the best solution, and others of which one may be taken instead."""
        return [self.best(bound, starts)]

    def answers(self, query: Query, probability: float) -> tuple[SolverAnswer, ...]:
        """Return the answers (b) to a query: with at least this probability, if any design has it.

        The incumbent is taken unless the solver's design is as probable as asked for, has the smaller expected loss and is not
        a measured, exact one.
        """
        found = []
        for bound, incumbent in zip(self.bound(query.theta), self.incumbents(query, probability), strict=True):
            answer = self.predict(bound, probability)
            short = answer.probability < probability - PROBABILITY_SLACK
            if incumbent is not None and (
                short or self.loss(incumbent) <= self.loss(answer) or bool(self.is_measured(answer.x[None])[0])
            ):
                answer = incumbent
            found.append(
                answer if answer.measured is not None else replace(answer, measured=self.measured_row(answer.x))
            )
        return tuple(found)

    def loss(self, answer: SolverAnswer) -> float:
        """Return the expected loss: the objective, and the price of an infeasible answer times its probability."""
        return answer.objective + self.price * (1.0 - answer.probability)

    def within(self, bound: FloatArray, start: FloatArray, region: Region) -> list[Solution]:
        """Return solutions close to a start, within a region, the best first."""
        found = self.solve(bound, start, region)
        return [found if found.feasible else self.nearest(bound, found.x, np.ones_like(bound))]

    def predict(self, bound: FloatArray, probability: float) -> SolverAnswer:
        """Return the answer by the surrogates alone."""
        return self._with_margin(bound, self.best(bound), probability, TUNING.raises)

    def predict_from(self, bound: FloatArray, start: FloatArray, probability: float) -> SolverAnswer:
        """Return the answer by the surrogates alone that is found from one start."""
        return self._with_margin(bound, self.solve(bound, start), probability, TUNING.raises)

    def with_margin(self, bound: FloatArray, solution: Solution, probability: float) -> SolverAnswer:
        """Solve again with a margin, so that the solution has the probability asked for; or return the most probable design."""
        return self._with_margin(bound, solution, probability, 0)

    def _with_margin(self, bound: FloatArray, solution: Solution, probability: float, raises: int) -> SolverAnswer:
        """Do the same; raises: how often a higher probability is aimed at where margins settle short of the one asked for."""
        solution = self.solve_with_margins(bound, solution, probability)
        chance, aim = self.probability(bound, solution.x), probability
        for _ in range(raises):
            if chance >= probability - PROBABILITY_SLACK or not solution.feasible:
                break
            aim = 1.0 - TUNING.raised * (1.0 - aim)
            further = self.solve_with_margins(bound, solution, aim)
            better = self.probability(bound, further.x)
            if better > chance:
                solution, chance = further, better
        if chance < probability - PROBABILITY_SLACK:
            safest = self.nearest(bound, solution.x, self.pointwise.std(solution.x)[self.output])
            better = self.probability(bound, safest.x)
            if better > chance:
                solution, chance = safest, better
        return SolverAnswer(solution.x, solution.objective, chance, multipliers=solution.multipliers)

    def solve_with_margins(
        self, bound: FloatArray, solution: Solution, probability: float, region: Region = CUBE
    ) -> Solution:
        """Solve again with the margins that this probability asks for, from a solution that obeys its bounds."""
        if not solution.feasible:
            return solution
        last: FloatArray | None = None
        for _ in range(TUNING.margins):
            std = self.pointwise.std(solution.x)[self.output]
            margin = std * self.deviations(std, solution.multipliers, probability)
            if last is not None:
                if float(np.max(np.abs(margin - last))) <= TUNING.settled:
                    break
                margin = 0.5 * (margin + last)  # Undamped margins overshoot where standard deviations vary.
            last = margin
            inside = self.solve(bound - margin - BOUND_SLACK, solution.x, region)
            if not inside.feasible:
                break
            solution = inside
        return solution

    def solve(self, bound: FloatArray, start: FloatArray, region: Region = CUBE) -> Solution:
        """Minimise the objective within bounds (r) from one start."""
        at_design = PosteriorAtDesign(self)
        found = minimise(
            lambda x: self.goal * float(at_design(x)[0][0]),
            lambda x: self.goal * at_design(x)[1][0],
            lambda x: -at_design.excess(x, bound),
            lambda x: -at_design.slope(x),
            start,
            region,
            moving=self._moves(),
            also=self.known.constraints(len(start)),
        )
        return self.at(bound, self.known.obeying(found.v, region), found.multipliers[: len(bound)])

    def nearest(self, bound: FloatArray, start: FloatArray, scale: FloatArray, region: Region = CUBE) -> Solution:
        """Return the design whose largest violation, in units of scale (r), is least."""
        at_design, d = PosteriorAtDesign(self), len(start)
        low, high = region.ends(d)
        start = np.clip(start, low, high)
        unit = scale if self.failure_model is None else np.append(scale, TUNING.failure_unit)
        worst = float(np.max(at_design.excess(start, bound) / unit))
        away = np.eye(d + 1)[-1]
        found = minimise(
            lambda v: float(v[-1]),
            lambda v: away,
            lambda v: v[-1] - at_design.excess(v[:d], bound) / unit,
            lambda v: np.column_stack([-at_design.slope(v[:d]) / unit[:, None], np.ones(len(unit))]),
            np.append(start, worst),
            Region(np.append(low, -TUNING.widest), np.append(high, max(worst, 0.0) + TUNING.widest)),
            moving=self._moves(d),
            also=self.known.constraints(d),
        )
        return self.at(bound, self.known.obeying(found.v[:d], region))

    def closest(self, theta: FloatArray, probability: float, start: FloatArray | None = None) -> FloatArray | None:
        """Return the thresholds nearest to theta (k) that can be met with this probability; None if none can.

        start: where the search begins; the best solution unless given.
        """
        found = self.meet(theta, probability, self.best(self.bound(theta[None])[0]).x if start is None else start)
        return None if found is None else found[1]

    def meet(
        self, theta: FloatArray, probability: float, start: FloatArray, region: Region = CUBE
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return a design, and the thresholds nearest to theta (k) that it meets with this probability; None if none."""
        x, relaxed = start, theta
        for _ in range(TUNING.margins):
            std = self.pointwise.std(x)[self.output]
            margin = student_quantile(probability ** (1.0 / len(std))) * std + BOUND_SLACK
            found = self.relaxed(theta, x, margin, region)
            if found is None:
                return None
            x, relaxed = found[: len(x)], theta + found[len(x) :]
        return x, np.asarray(np.maximum(theta, np.minimum(relaxed, 1.0)))

    def relaxed(
        self, theta: FloatArray, start: FloatArray, margin: FloatArray, region: Region = CUBE
    ) -> FloatArray | None:
        """Return a design and the least relaxation (d + k) with which it keeps the margins (r)."""
        at_design, step = PosteriorAtDesign(self), TUNING.theta_step
        d, k = len(start), len(theta)
        threshold, span = self.posterior.limits.threshold.numpy(), self.posterior.limits.span.numpy() != 0
        rows = np.nonzero(span)[0]

        def slack(v: FloatArray) -> FloatArray:
            return -at_design.excess(v[:d], self.bound((theta + v[d:])[None])[0] - margin)

        def slope(v: FloatArray) -> FloatArray:
            at = (theta + v[d:])[None]
            rise = (self.bound(at + step) - self.bound(at - step))[0] / (2.0 * step)
            by_x = -at_design.slope(v[:d])
            by_theta = np.zeros((len(by_x), k))
            by_theta[rows, threshold[rows]] = rise[rows]
            return np.column_stack([by_x, by_theta])

        (low, high), most, weight = region.ends(d), np.clip(1.0 - theta, 0.0, None), np.append(np.zeros(d), np.ones(k))
        found = minimise(
            lambda v: float((weight * v**2).sum()),
            lambda v: 2.0 * weight * v,
            slack,
            slope,
            np.append(start, most),
            Region(np.append(low, np.zeros(k)), np.append(high, most)),
            accuracy=ACCURACY**2,  # The value is a sum of squares.
            moving=self._moves(*range(d, d + k)),
            also=self.known.constraints(d),
        )
        v = np.append(self.known.obeying(found.v[:d], region), found.v[d:])
        return v if max(-float(slack(v).min()), self.known.violation(v[:d])) <= TUNING.feasible else None

    def probability(self, bound: FloatArray, x: FloatArray) -> float:
        """Return the probability that a design obeys its bounds (r)."""
        z, s = self.pointwise.mean_and_jacobian(x)[0], self.pointwise.std(x)
        return float(self.joint(bound[None], z[None], s[None])[0])

    def joint(self, bound: FloatArray, z: FloatArray, s: FloatArray) -> FloatArray:
        """Return the probability (b) that designs with means z and standard deviations s (b x q) obey their bounds (b x r)."""
        slack = (bound - self.sign * z[:, self.output]) / s[:, self.output]
        return np.asarray(self.posterior.limits.log_probability_of_slack(torch.from_numpy(slack)).exp().numpy())

    def starts(self, bound: FloatArray, count: int) -> Sequence[FloatArray]:
        """Return measured designs that are good for these bounds (r), apart from each other."""
        violation = np.clip(self.sign * self.z[:, self.output] - bound, 0.0, None).sum(1)
        x = self.posterior.surrogates.x.numpy()
        outside: NDArray[np.bool_] = np.any((x < 0.0) | (x > 1.0), axis=1)  # Of amended bounds; these come last.
        order = np.argsort(self.goal * self.z[:, 0] + TUNING.violation * violation, kind="stable")
        if outside.any():
            order = order[np.argsort(outside[order], kind="stable")]
        return apart(x, order, count)

    def deviations(self, std: FloatArray, multipliers: FloatArray, probability: float) -> FloatArray:
        """Return beta (r); or for many designs at once, all being b x r."""
        cost = np.maximum(np.abs(multipliers), TUNING.least_multiplier) * std

        def at(log_price: FloatArray) -> FloatArray:
            return np.minimum(student_margin(cost / np.exp(log_price)[..., None]), TUNING.widest)

        least = low = np.full(cost.shape[:-1], np.log(self.price))
        high = np.where(np.prod(student_probability(at(low)), -1) >= probability, low, low + TUNING.price_span)
        if (high == least).all():
            return at(least)
        for _ in range(TUNING.price_halvings):
            middle = 0.5 * (low + high)
            enough = np.prod(student_probability(at(middle)), -1) >= probability
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return at(high)

    def incumbent(self, query: Query, probability: float) -> SolverAnswer | None:
        """Return the best measured design for a query with one row; None if none has the probability asked for."""
        return self.incumbents(query, probability)[0]

    def incumbents(self, query: Query, probability: float) -> list[SolverAnswer | None]:
        """Return for each threshold (b) the best measured design, by its expected loss, that has the probability asked for.

        The probability of a measured design is 1 or 0 where all outputs are exact, otherwise its posterior probability.
        """
        n = len(self.posterior.measured)
        if not n:
            return [None] * len(query)
        x, value = self.posterior.surrogates.x.numpy(), self.goal * self.z[:n, 0]
        chance = self.posterior.measured_probability(query)
        enough = chance >= probability - PROBABILITY_SLACK
        rows = np.where(enough, value + self.price * (1.0 - chance), np.inf).argmin(1)
        return [
            SolverAnswer(x[i], float(value[i]), float(chance[b, i]), int(i)) if enough[b, i] else None
            for b, i in enumerate(rows.tolist())
        ]

    def is_measured(self, x: FloatArray) -> NDArray[np.bool_]:
        """Tell which designs (b x d) are measured ones with exact outputs, as happens where variables are discrete."""
        if not self.discrete or not self.posterior.all_exact:
            return np.zeros(len(x), dtype=np.bool_)
        return np.array([self.measured_row(row) is not None for row in x], dtype=np.bool_)

    def measured_row(self, x: FloatArray) -> int | None:
        """Return which measured design a design (d) is, as happens where variables are discrete; None if it was not measured."""
        if not self.discrete:
            return None
        distance = np.abs(self.posterior.measured.x - x).max(1)
        return int(distance.argmin()) if len(distance) and distance.min() <= SAME_DESIGN else None

    def _moves(self, *more: int) -> NDArray[np.int64] | None:
        """Return which variables of a minimisation move, those after the design included; categories stay as they are."""
        return None if self._moving is None else np.append(self._moving, np.array(more, dtype=np.int64))

    def at(self, bound: FloatArray, x: FloatArray, multipliers: FloatArray | None = None) -> Solution:
        """Return a design as a solution."""
        at_design = PosteriorAtDesign(self)
        multipliers = np.zeros(len(bound)) if multipliers is None else multipliers
        excess = max(float(np.max(at_design.excess(x, bound))), self.known.violation(x))
        return Solution(x, float(self.goal * at_design(x)[0][0]), excess, multipliers)


def apart(x: FloatArray, order: NDArray[np.int64], count: int) -> list[FloatArray]:
    """Return the first designs of x (n x d) in this order that are apart from each other, so many at most."""
    kept = [x[order[0]]]
    for i in order[1 : TUNING.among]:
        if len(kept) >= count:
            break
        if min(float(np.linalg.norm(x[i] - other)) for other in kept) > TUNING.apart:
            kept.append(x[i])
    return kept


class PosteriorAtDesign:
    """The posterior at the last design, kept because SLSQP asks for values and derivatives one by one."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._x: FloatArray | None = None
        self._failure: tuple[float, FloatArray] | None = None

    def __call__(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z and J."""
        if self._x is None or (self._x != x).any():
            self._x = x.copy()
            self._found = self._solver.pointwise.mean_and_jacobian(x)
            if self._solver.failure_model is not None:
                self._failure = self._solver.failure_model.excess(x)
        return self._found

    def excess(self, x: FloatArray, bound: FloatArray) -> FloatArray:
        """Return by how much each bound is exceeded (r), and the tolerable failure probability where it is modelled (r + 1)."""
        over = self._solver.sign * self(x)[0][self._solver.output] - bound
        return over if self._failure is None else np.append(over, self._failure[0])

    def slope(self, x: FloatArray) -> FloatArray:
        """Return the derivatives of the same by x."""
        slope = self._solver.sign[:, None] * self(x)[1][self._solver.output]
        return slope if self._failure is None else np.vstack([slope, self._failure[1]])
