"""Which limits can be met: the least movement of some limits with which a design has the stated probability.

Symbols and shapes, in units of the standardised outputs, as in `continuous`; p designs of a pool, m limits that may move
    x, z, s   p x d, p x q, p x q    the pool: measured designs and entries of the library, with means and standard deviations
    v         k        movement of the thresholds: theta + v; 0 for limits that are held
    cost      k        what a unit of movement costs; v lies between low and high (k each)

The least cost is found by SLSQP over a design and the movement together, from several designs of the pool, with margins that are
computed again from the multipliers, as an answer's are. Last, the movement is made exact: the least at which the design found has
the stated probability. A solver from one start may end in a design that breaks a limit although another design obeys it; designs
of the pool that lie apart are therefore tried before anything is called unreachable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import ACCURACY, CUBE, Region, minimise
from cbabo.numerics.tolerances import BOUND_SLACK, PROBABILITY_SLACK
from cbabo.solver.continuous import TUNING as SOLVER
from cbabo.solver.continuous import PosteriorAtDesign, Solver
from cbabo.solver.library import Library


@dataclass(frozen=True)
class ReachingTuning:
    """Numbers that tune the search for limits that can be met."""

    starts: int = 3
    """Designs of the pool from which a search starts."""
    margins: int = 3
    """How often margins are computed."""
    close: float = 0.5
    """Probability from which on a last search with unequal margins is tried."""
    hopeless: float = 1e-6
    """Probability below which a design is not improved any further."""
    least_share: float = 0.1
    """Of the typical standard deviation: what it is taken as at least, because there is next to none at a measured design."""
    least_std: float = 1e-9
    """Standard deviation, in standardised units, that stands for none."""
    typical: float = 2.0
    """Margins, in standard deviations, with which designs of the pool are compared."""
    violation: float = 1e3
    """What a violation that no movement removes weighs in that comparison, per unit of theta."""
    demanding: float = 1e8
    """Factor of the multipliers where margins are allotted: only the probability counts then, not the price of a failure."""
    correction: float = 0.1
    """Largest movement, of the range, by which the exact probability is restored."""
    halvings: int = 30
    """How often that interval is halved."""
    rounding: float = 1e-9
    """Of the range: what a limit is looser than what a measured design needs, so that rounding does not break it."""
    room: float = 1e-4
    """Of the range: how much looser the closest limits are than where the search ends, so that asking for them finds a design."""
    steepest: float = 1e6
    """Largest theta that a design may need, which stands for all that is far away."""


TUNING = ReachingTuning()


@dataclass(frozen=True, eq=False)
class Met:
    """A design and thresholds that it meets with the stated probability."""

    x: FloatArray
    theta: FloatArray
    """k."""
    cost: float


def held_region(solver: Solver, x: FloatArray) -> Region:
    """Return where a search may go from a design (d): discrete variables and categories keep their values."""
    free = solver.posterior.problem.space.continuous
    return CUBE if free.all() else Region(np.where(free, 0.0, x), np.where(free, 1.0, x))


class Reaching:
    """Looks for limits that can be met."""

    def __init__(self, solver: Solver, library: Library | None, probability: float) -> None:
        self.solver, self.probability = solver, probability
        n, q = len(solver.posterior.measured), len(solver.posterior.predictor.scale)
        parts = [(solver.posterior.surrogates.x.numpy()[:n], solver.z[:n], solver.z_std[:n])]
        if library is not None:
            parts.append((library.x, library.mean[:, :q], library.std))
        self.x, self.z, std = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        self.s = np.maximum(std, TUNING.least_std)
        limits = solver.posterior.limits
        self.threshold, self.moves = limits.threshold.numpy(), limits.span.numpy() != 0
        self._typical = np.median(std[std.max(1) > 0], axis=0) if (std > 0).any() else np.full(q, TUNING.least_std)

    def design(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return the most probable design that is found for thresholds (k), and its probability."""
        solver, bound = self.solver, self.solver.bound(theta[None])
        chance = solver.joint(np.repeat(bound, len(self.x), axis=0), self.z, self.s)
        best = int(chance.argmax())
        x, most = self.x[best], float(chance[best])
        nothing = np.zeros_like(theta)
        for start in [] if most >= self.aim else self._starts(theta, nothing, nothing, nothing):
            for _ in range(2):  # The second time with standard deviations of the first design found.
                std = np.maximum(solver.pointwise.std(start), TUNING.least_share * self._typical)[solver.output]
                start = solver.nearest(bound[0], start, std).x
                found = solver.probability(bound[0], start)
                if found > most:
                    x, most = start, found
                if found < TUNING.hopeless:
                    break
            if most >= self.aim:
                break
        if TUNING.close <= most < self.aim:  # Unequal margins may do what equal ones, in standard deviations, cannot.
            for squared in (False, True):
                met = self.least(
                    theta, nothing + 1.0, nothing, np.clip(1.0 - theta, 0.0, None), squared=squared, near=x
                )
                found = 0.0 if met is None else solver.probability(bound[0], met.x)
                if met is not None and found > most:
                    x, most = met.x, found
                if most >= self.aim:
                    break
        return x, most

    @property
    def aim(self) -> float:
        """The probability from which on limits count as met."""
        return self.probability - PROBABILITY_SLACK

    def least(
        self,
        theta: FloatArray,
        cost: FloatArray,
        low: FloatArray,
        high: FloatArray,
        *,
        objective: float = np.inf,
        squared: bool = False,
        near: FloatArray | None = None,
    ) -> Met | None:
        """Return the cheapest movement of thresholds (k) between low and high (k each); None if there is none.

        objective: the largest one allowed, standardised and to be minimised. squared: the cost is of the movement's square. near:
        a design (d) from which the search starts, besides the best one of the pool.
        """
        least = float(cost @ (np.square(low) if squared else low))
        known = self._known(theta + low, objective)
        if known is not None:
            return Met(known, theta + low, least)
        best = self._measured(theta, cost, low, high, objective=objective, squared=squared)
        starts = self._starts(theta, cost, low, high)
        for start in starts if near is None else [near, starts[0]]:
            found = self._search(theta, cost, (low, high), start, objective, squared)
            if found is not None and (best is None or found.cost < best.cost):
                best = found
            if best is not None and best.cost <= least:
                break
        return best

    def closest(self, theta: FloatArray) -> Met | None:
        """Return the thresholds nearest to theta (k) that can be met, if any, and a design that meets them."""
        found = self.least(
            theta, np.ones_like(theta), np.zeros_like(theta), np.clip(1.0 - theta, 0.0, None), squared=True
        )
        other = self.solver.closest(theta, self.probability)
        if other is not None and (found is None or np.square(other - theta).sum() < found.cost):
            x, chance = self.design(other)
            if found is None or chance >= self.aim:
                found = Met(x, other, float(np.square(other - theta).sum()))
        if found is None:
            return None
        room = np.where(found.theta > theta, TUNING.room, 0.0)
        return replace(found, theta=np.minimum(found.theta + room, np.maximum(found.theta, 1.0)))

    def strictest_alone(self, theta: FloatArray, j: int) -> Met | None:
        """Return the strictest value of one threshold in its range, or as asked for, that can be met; None if there is none.

        The others are held.
        """
        cost, low, high = np.zeros((3, len(theta)))
        cost[j], low[j], high[j] = 1.0, -max(theta[j], 0.0), 1.0 - theta[j]
        return self.least(theta, cost, low, high)

    def needed(self, bound: FloatArray) -> FloatArray:
        """Return the thresholds (p x r) that have these bounds (p x r), of requirements whose limits move."""
        limits, s = self.solver.posterior.limits, self.solver.posterior.predictor
        raw = torch.from_numpy(bound * s.scale.numpy()[self.solver.output]) + limits.sign * s.centre[limits.output]
        if limits.warp is not None:
            raw = limits.sign * limits.warp.orientation * limits.warp.inverse(limits.sign * raw)
        span = torch.where(limits.span != 0, limits.span, 1.0)
        return np.asarray(np.clip(((raw - limits.base) / span).numpy(), -TUNING.steepest, TUNING.steepest))

    def strictest(self, bound: FloatArray) -> FloatArray:
        """Return the strictest thresholds (p x k) that requirements with these bounds (p x r) allow."""
        needed = self.needed(bound)
        k = len(self.solver.posterior.problem.box.names)
        found = np.full((len(bound), k), -np.inf)
        for r in np.flatnonzero(self.moves):
            found[:, self.threshold[r]] = np.maximum(found[:, self.threshold[r]], needed[:, r])
        return found

    def _known(self, theta: FloatArray, objective: float = np.inf) -> FloatArray | None:
        """Return the design of the pool that obeys thresholds (k) most probably, if that is probable enough."""
        bound = np.repeat(self.solver.bound(theta[None]), len(self.x), axis=0)
        chance = self.solver.joint(bound, self.z, self.s)
        chance = np.where(self.solver.goal * self.z[:, 0] <= objective, chance, 0.0)
        best = int(chance.argmax())
        return self.x[best] if chance[best] >= self.aim else None

    def _measured(
        self, theta: FloatArray, cost: FloatArray, low: FloatArray, high: FloatArray, *, objective: float, squared: bool
    ) -> Met | None:
        """Return the cheapest movement after which a measured design obeys all limits, if outputs are exact."""
        solver, n = self.solver, len(self.solver.posterior.measured)
        if not n or not solver.posterior.all_exact:
            return None
        z = self.z[:n]
        y = solver.sign * z[:, solver.output]
        v = np.clip(self.strictest(y) - theta + TUNING.rounding, low, None)
        obeyed = (y <= solver.bound(theta[None]))[:, ~self.moves].all(1) & (v <= high).all(1)
        spent = (np.square(v) if squared else v) @ cost
        value = np.where(obeyed & (solver.goal * z[:, 0] <= objective), spent, np.inf)
        best = int(value.argmin())
        return Met(self.x[best], theta + v[best], float(value[best])) if np.isfinite(value[best]) else None

    def _starts(self, theta: FloatArray, cost: FloatArray, low: FloatArray, high: FloatArray) -> list[FloatArray]:
        """Return designs of the pool that need cheap movements, apart from each other."""
        solver = self.solver
        pushed = solver.sign * self.z[:, solver.output] + TUNING.typical * self.s[:, solver.output]
        v = self.strictest(pushed) - theta
        over = np.clip(pushed - solver.bound(theta[None]), 0.0, None)[:, ~self.moves].sum(1)
        spent = np.clip(v, low, high) @ cost + TUNING.violation * (np.clip(v - high, 0.0, None).sum(1) + over)
        order = np.lexsort((solver.goal * self.z[:, 0], spent))
        kept = [self.x[order[0]]]
        for i in order[1:]:
            if len(kept) >= TUNING.starts:
                break
            if min(float(np.linalg.norm(self.x[i] - other)) for other in kept) > SOLVER.apart:
                kept.append(self.x[i])
        return kept

    def _search(
        self,
        theta: FloatArray,
        cost: FloatArray,
        ends: tuple[FloatArray, FloatArray],
        start: FloatArray,
        objective: float,
        squared: bool,
    ) -> Met | None:
        """Return the cheapest movement that is found from one start."""
        solver, x, v = self.solver, start, ends[1]
        lam = np.ones(len(solver.output))
        for _ in range(TUNING.margins):
            std = np.maximum(solver.pointwise.std(x), TUNING.least_std)[solver.output]
            margin = (
                std * solver.deviations(std, TUNING.demanding * np.maximum(lam, 0.0), self.probability) + BOUND_SLACK
            )
            found = self._solve(theta, cost, ends, (x, v), margin, objective, squared)
            if found is None:
                return None
            x, v, lam = found
        met = self._exact(theta, x, v, ends)
        if met is None:
            return None
        return Met(x, theta + met, float(cost @ (np.square(met) if squared else met)))

    def _solve(
        self,
        theta: FloatArray,
        cost: FloatArray,
        ends: tuple[FloatArray, FloatArray],
        start: tuple[FloatArray, FloatArray],
        margin: FloatArray,
        objective: float,
        squared: bool,
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the design, the movement and the multipliers of one problem with fixed margins (r)."""
        solver, d, step = self.solver, len(start[0]), SOLVER.theta_step
        at_design = PosteriorAtDesign(solver)
        moving = np.flatnonzero(ends[1] > ends[0])
        capped, none = np.isfinite(objective), np.zeros(len(moving))

        def moved(u: FloatArray) -> FloatArray:
            at = theta + np.clip(np.zeros_like(theta), *ends)
            at[moving] = theta[moving] + u[d:]
            return at[None]

        def slack(u: FloatArray) -> FloatArray:
            found = -at_design.excess(u[:d], solver.bound(moved(u))[0] - margin)
            return np.append(found, objective - solver.goal * at_design(u[:d])[0][0]) if capped else found

        def slope(u: FloatArray) -> FloatArray:
            by_x = -at_design.slope(u[:d])
            by_v = np.zeros((len(by_x), len(moving)))
            rise = (solver.bound(moved(u) + step) - solver.bound(moved(u) - step))[0] / (2.0 * step)
            for column, j in enumerate(moving.tolist()):
                rows = np.flatnonzero(self.moves & (self.threshold == j))
                by_v[rows, column] = rise[rows]
            both = np.column_stack([by_x, by_v])
            if not capped:
                return both
            return np.vstack([both, np.append(-solver.goal * at_design(u[:d])[1][0], none)])

        price = np.append(np.zeros(d), cost[moving])
        low, high = held_region(solver, start[0]).ends(d)
        found = minimise(
            lambda u: float(price @ (np.square(u) if squared else u)),
            lambda u: 2.0 * price * u if squared else price,
            slack,
            slope,
            np.append(*(start[0], start[1][moving])),
            Region(np.append(low, ends[0][moving]), np.append(high, ends[1][moving])),
            accuracy=ACCURACY**2 if squared else ACCURACY,
            also=solver.known.constraints(d),
        )
        u = np.append(solver.known.obeying(found.v[:d], Region(low, high)), found.v[d:])
        if float(slack(u).min()) < -10.0 * SOLVER.feasible or solver.known.violation(u[:d]) > 0.0:
            return None
        return u[:d], (moved(u)[0] - theta), found.multipliers[: len(margin)]

    def alone(self, theta: FloatArray, j: int, x: FloatArray) -> Met | None:
        """Return the strictest value of one threshold in its range that a design (d) meets, the others held; None if none."""
        v, low, high = np.zeros((3, len(theta)))
        v[j], low[j], high[j] = 1.0 - theta[j], -theta[j], 1.0 - theta[j]
        found = self._exact(theta, x, v, (low, high), correction=1.0)
        return None if found is None else Met(x, theta + found, float(found[j]))

    def _exact(
        self,
        theta: FloatArray,
        x: FloatArray,
        v: FloatArray,
        ends: tuple[FloatArray, FloatArray],
        correction: float = TUNING.correction,
    ) -> FloatArray | None:
        """Return the least movement (k) like v at which a design has the stated probability; None if there is none close by."""
        z, s = self.solver.pointwise.mean_and_jacobian(x)[0], self.solver.pointwise.std(x)
        moved = (ends[1] > ends[0]) & (v > ends[0] + ACCURACY)
        moved = moved if moved.any() else ends[1] > ends[0]

        def at(shift: float) -> FloatArray:
            return np.clip(np.where(moved, v + shift, v), *ends)

        def enough(shift: float) -> bool:
            bound = self.solver.bound((theta + at(shift))[None])
            return float(self.solver.joint(bound, z[None], s[None])[0]) >= 0.5 * (self.aim + self.probability)

        low, high = -correction, correction
        if not enough(high):
            return None
        if enough(low):
            return at(low)
        for _ in range(TUNING.halvings):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return at(high)
