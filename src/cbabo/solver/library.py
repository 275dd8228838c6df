"""Fast answers: thresholds solved beforehand, and answers to all others by a few small quadratic programs from the nearest.

Symbols and shapes, in units of the standardised outputs, as in `continuous`; m entries, b thresholds to be answered
    theta   m x k        thresholds that were solved
    x       m x d        their designs, unit cube, legal
    z, s    m x q        means and standard deviations of the outputs there; J  m x q x d  derivatives of the means
    H       m x d x d    second derivatives of the Lagrangian, made positive definite
    lam     m x r        multipliers; margin  m x r  what was kept between the means and their bounds t

How thresholds are answered, all at once:
1. One program is solved from the nearest entry, and one from the best entry whose design obeys these bounds too: the Lagrangian
   quadratic, outputs linear, bounds less margins. The better result, by the posterior means, goes on. Where variables are
   categorical, two more are solved for each combination of categories, from such entries of its own, and the best results of a
   few combinations go on; which of them is the answer is decided after step 2.
2. It is corrected a few times, with means and derivatives at its own design, margins as they are needed there, and the entry's H.
   A growing multiple of the unit matrix is added to H: the first corrections improve the objective, the last ones only remove the
   violations that the linearised outputs left, which are large in standard deviations.
3. The least expected loss, f + price (1 - P), decides between this design, the best entry whose own design obeys these bounds,
   and the incumbent; a design that is not probable enough comes last. The standard deviation of f is added to f: the best of many
   predicted values is mostly an underestimate, and a measured value is not.

Programs have no rows for requirements that come near their bounds in no entry, and outputs that only these ask for are not
evaluated before step 3. Standard deviations are computed where a requirement comes close to its bound, and are the entry's
elsewhere; the objective's is computed in step 3. Discrete variables and categories stay as the entry has them. The failure
probability is one output more, with a bound of its own and no margin, and so is each known relation between variables; a design
that still breaks one after the corrections is moved onto it, or towards its entry, which obeys all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cbabo.domain.query import Query
from cbabo.numerics import qp
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.tolerances import BOUND_SLACK, PROBABILITY_SLACK
from cbabo.solver.batched import BatchedPosterior
from cbabo.solver.combinations import Combinations
from cbabo.solver.continuous import Solver, SolverAnswer


@dataclass(frozen=True)
class FastMapTuning:
    """Numbers that tune fast answers. The explorer's page follows the same steps and reads these from its document."""

    solved: int = 64
    """Entries that are solved one by one (twice as many where variables are discrete); the others are answered from these."""
    diagonal: tuple[float, ...] = (0.0, 1.0, 0.5, 0.25, 0.75)
    """Thresholds that every library has, from strictest to most relaxed: people ask for the ends first."""
    rough_guesses: int = 1
    """Guesses of the active set in the first programs, of which only one result goes on."""
    rough_iterations: int = 10
    """Interior-point iterations of the first programs."""
    corrections: tuple[float, ...] = (1.0, 3.0, 1e4)
    """What is added to the diagonal of H in each correction; the first is damped because objectives may be flat."""
    margin_corrections: int = 2
    """Corrections in which margins are computed again."""
    entry_corrections: tuple[float, ...] = (0.0, 0.0, 3.0, 3.0, 1e4, 1e4)
    """The corrections of new entries, which are made once and used often."""
    restoring: float = 1e3
    """From this addition on a correction only removes violations, and its multipliers are not kept."""
    flattest: float = 1e-3
    """Least curvature in any direction, as a share of the largest."""
    least_curvature: float = 1e-8
    """Least curvature in any case."""
    largest_multiplier: float = 1e4
    """Multipliers are clipped here: beyond, an output hardly moves, and its multiplier is no guide."""
    far: float = 20.0
    """Requirements whose slack is more than this many margins in all entries are left out of the programs."""
    wide: float = 0.1
    """Slack within which standard deviations are computed in any case."""
    sure: float = 16.0
    """Slack within which they are computed, in the largest standard deviations of the entries: an entry on a measured design has
    next to none itself."""
    equal: float = 1e-7
    """Difference below which two results are equally good, so that rounding does not decide between them."""
    active: float = 1e-4
    """Slack below which a requirement is active."""
    edge: float = 1e-6
    """Distance to an end of a variable below which that end is active."""
    reviews: int = 2
    """How often entries are compared with answers from the other entries: better ones spread to their neighbours."""
    gain: float = 1e-4
    """Least gain of the objective, in standardised units, for which an entry is replaced."""
    combinations: int = 8
    """Combinations of categories at most from whose entries programs are solved: the most frequent ones of the library."""
    kept_combinations: int = 3
    """Combinations whose results are corrected: first programs from far entries say little about more."""
    kept_margin: float = 0.5
    """Share of its margins that a corrected result must keep to be compared by its objective alone."""
    penalty: float = 10.0
    """What a unit of violation costs in a program, in the largest multiplier plus one."""


TUNING = FastMapTuning()


@dataclass(frozen=True, eq=False)
class Library:
    """Solved thresholds; all arrays."""

    theta: FloatArray
    x: FloatArray
    mean: FloatArray
    """m x q: z; with one column more where there is a risk of failures, and one for each known relation."""
    std: FloatArray
    """m x q: s."""
    slope: FloatArray
    """m x q x d: J; as the means."""
    curvature: FloatArray
    """m x d x d: H."""
    multipliers: FloatArray
    margin: FloatArray

    def taken(self, which: slice | NDArray[np.intp]) -> Library:
        """Return these entries alone."""
        return Library(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    def fits(self, k: int, d: int) -> bool:
        """Tell whether all parts are about the same thresholds, of k limits, and designs of d variables."""
        m, q = self.mean.shape
        parts = self.theta, self.x, self.slope, self.curvature
        return [p.shape for p in parts] == [(m, k), (m, d), (m, q, d), (m, d, d)] and (
            self.multipliers.shape == self.margin.shape and len(self.std) == len(self.margin) == m
        )


class FastMap:
    """Answers thresholds from a library of solved ones."""

    def __init__(self, solver: Solver, library: Library, whole: FastMap | None = None) -> None:
        """whole: the map of a library of which this one is a part."""
        self.solver = solver
        self.library = library
        self.batched = BatchedPosterior(solver)
        self.near: NDArray[np.int64] = _near(solver, library) if whole is None else whole.near
        self._slack: FloatArray = (
            np.maximum(TUNING.wide, TUNING.sure * library.std.max(0)) if whole is None else whole._slack
        )
        self._narrow = BatchedPosterior(solver, self.near)
        self.goal = solver.goal
        self._penalty = TUNING.penalty * (1.0 + float(library.multipliers.max()))
        space = solver.posterior.problem.space
        self.free = space.continuous.astype(np.float64)
        self.combinations = Combinations.of(space, library.x, TUNING.combinations)

    @cached_property
    def entry_probability(self) -> FloatArray:
        """The probability (m) with which the entries' designs obey their own limits; inf for those that were measured exactly."""
        solver, library = self.solver, self.library
        chance = solver.joint(solver.bound(library.theta), library.mean, library.std)
        return np.where(solver.is_measured(library.x), np.inf, chance)

    def answers(self, query: Query, probability: float) -> tuple[SolverAnswer, ...]:
        """Return the answers (b) to a query."""
        if not len(query):
            return ()
        solver, library = self.solver, self.library
        bound = solver.bound(query.theta)
        x, _, start = self.solve(query.theta, probability, TUNING.corrections)
        z = self.batched.mean(x)
        asked = self._close(self.batched, bound, z)
        asked[:, 0] = True
        s = self.batched.updated_std(library.std[start], x, asked)
        entry = self._entries(bound)
        incumbents = solver.incumbents(query, probability)
        none = SolverAnswer(x[0], np.inf, 0.0)
        best_measured = [none if found is None else found for found in incumbents]
        row = np.array([-1 if found.measured is None else found.measured for found in best_measured])
        value = np.stack(
            [
                solver.goal * z[:, 0],
                np.where(entry < 0, np.inf, solver.goal * library.mean[entry, 0]),
                np.array([found.objective for found in best_measured]),
            ]
        )
        deviation = np.stack([s[:, 0], library.std[entry, 0], solver.z_std[row, 0]])
        chance = np.stack(
            [
                np.where(solver.is_measured(x), 0.0, solver.joint(bound, z, s)),
                np.where(
                    (entry < 0) | solver.is_measured(library.x[entry]),
                    0.0,
                    solver.joint(bound, library.mean[entry], library.std[entry]),
                ),
                np.array([found.probability for found in best_measured]),
            ]
        )  # A predicted design that was measured exactly is left to the incumbent.
        enough = chance >= probability - PROBABILITY_SLACK
        loss = np.where(enough | ~enough.any(0), value + deviation + solver.price * (1.0 - chance), np.inf)
        # Where they are equal, the incumbent comes first, then an entry.
        best = np.argmax((loss <= loss.min(0) + TUNING.equal)[::-1], axis=0)
        designs = np.stack([x, library.x[entry]])
        return tuple(
            best_measured[i]
            if b == 0
            else SolverAnswer(
                designs[2 - b, i],
                float(value[2 - b, i]),
                float(chance[2 - b, i]),
                solver.measured_row(designs[2 - b, i]),
            )
            for i, b in enumerate(best.tolist())
        )

    def entries(
        self, theta: FloatArray, probability: float, corrections: tuple[float, ...] = TUNING.corrections
    ) -> Library:
        """Return these thresholds (b x k), answered by the surrogates alone, as a library of its own."""
        x, multipliers, _ = self.solve(theta, probability, corrections)
        return as_library(self.batched, theta, x, multipliers, probability)

    def values(self, entries: Library, probability: float) -> FloatArray:
        """Return the objectives of entries (m), less being better; inf where they are not as probable as they should be."""
        solver = self.solver
        reached = (
            solver.joint(solver.bound(entries.theta), entries.mean, entries.std) >= probability - PROBABILITY_SLACK
        )
        if solver.failure_model is not None:
            q, r = len(self.batched.outputs), len(self.batched.requirements)
            reached &= entries.mean[:, q] <= self.batched.bound(entries.theta)[:, r] + TUNING.active
        return np.where(reached, solver.goal * entries.mean[:, 0], np.inf)

    def merit(self, bound: FloatArray, mean: FloatArray) -> FloatArray:
        """Return the objective (b) of designs with these means (b x q), less being better, and a penalty for broken bounds."""
        return self._merit(self.batched, bound, mean)

    def few(self, count: int) -> FastMap:
        """Return the same with the first entries of the library alone."""
        return FastMap(self.solver, self.library.taken(slice(count)), self)

    def solve(
        self,
        theta: FloatArray,
        probability: float,
        corrections: tuple[float, ...],
        without: NDArray[np.int64] | None = None,
    ) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Return designs (b x d) and multipliers (b x r) by the surrogates alone, and the entries (b) from which they come.

        without: for each threshold an entry (b) from which it is not answered.
        """
        library, solver, batched, r = self.library, self.solver, self._narrow, len(self.near)
        bound = batched.bound(theta)
        margin = np.zeros((len(library.theta), len(batched.output)))
        margin[:, :r] = library.margin[:, self.near]
        mean, slope = library.mean[:, batched.columns], library.slope[:, batched.columns]
        near = self._starts(theta, without)
        at, rows = near.ravel(), np.repeat(np.arange(len(theta)), near.shape[1])
        goal = bound[rows] - margin[at]
        held = np.zeros_like(goal)
        held[:, :r] = library.multipliers[at][:, self.near]
        x, lam = self._program(
            library.x[at],
            mean[at],
            slope[at],
            library.curvature[at],
            goal,
            held,
            (TUNING.rough_guesses, TUNING.rough_iterations),
        )
        merit = self._merit(batched, goal, batched.mean(x)).reshape(near.shape)
        best = self.combinations.kept(near, merit, TUNING.kept_combinations, TUNING.equal)
        each, bound = best.shape[1], np.repeat(bound, best.shape[1], axis=0)
        best = (best + np.arange(len(theta))[:, None] * near.shape[1]).ravel()
        x, lam, start = x[best], lam[best], at[best]
        H, margin, std = library.curvature[start], margin[start], library.std[start][:, batched.outputs]
        kept = lam
        eye = np.eye(x.shape[1])
        for i, more in enumerate(corrections):
            z, J = batched.mean_and_slope(x)
            if i < TUNING.margin_corrections:
                std = batched.updated_std(std, x, self._close(batched, bound, z))
                margin[:, :r] = margin_of(solver, std[:, batched.output[:r]], lam[:, :r], probability)
            x, lam = self._program(x, z, J, H + more * eye, bound - margin, lam)
            if more < TUNING.restoring:
                kept = lam
        if each > 1:
            corrected = self._merit(batched, bound - TUNING.kept_margin * margin, batched.mean(x)).reshape(-1, each)
            chosen = corrected.argmin(1) + np.arange(len(theta)) * each
            x, kept, start = x[chosen], kept[chosen], start[chosen]
        if solver.region is not None:  # Entries obey all relations, and have the same discrete values.
            x = solver.region.repaired(x, library.x[start])
        multipliers = np.zeros((len(x), library.margin.shape[1]))
        multipliers[:, self.near] = kept[:, :r]
        return x, multipliers, start

    def _starts(self, theta: FloatArray, without: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Return the entries (b x starts) from which thresholds are answered; without: as in `solve`."""
        distance = cdist(theta, self.library.theta, "sqeuclidean")
        if without is not None:
            distance[np.arange(len(theta)), without] = np.inf
        nearest = distance.argmin(1)
        good = self._entries(self.solver.bound(theta), without)
        starts = [nearest, np.where(good < 0, nearest, good)]
        for entries in self.combinations.groups:
            own = entries[distance[:, entries].argmin(1)]
            own = np.where(np.isfinite(distance[np.arange(len(theta)), own]), own, nearest)
            good = self._entries(self.solver.bound(theta), without, entries)
            starts += [own, np.where(good < 0, own, good)]
        return np.column_stack(starts)

    def _program(
        self,
        x: FloatArray,
        z: FloatArray,
        J: FloatArray,
        H: FloatArray,
        bound: FloatArray,
        lam: FloatArray,
        effort: tuple[int, int] = (qp.GUESSES, qp.ITERATIONS),
    ) -> tuple[FloatArray, FloatArray]:
        """Solve one program at each design; return the new designs (b x d) and the multipliers (b x r).

        lam: multipliers of a program whose solution was this design, to guess from; effort: guesses and iterations.
        """
        free = self.free
        programs = linearised(self._narrow, x, z, J, H, bound, free, self._penalty)
        found = qp.continued(programs, lam, *effort)
        return np.clip(np.where(free, x + found.p, x), 0.0, 1.0), found.multipliers

    def _close(self, batched: BatchedPosterior, bound: FloatArray, z: FloatArray) -> NDArray[np.bool_]:
        """Tell where outputs (b x q) come so close to a bound (b x r) that their standard deviations matter."""
        close = np.zeros((len(z), len(batched.outputs)), dtype=np.bool_)
        for j, output in enumerate(batched.output[: len(batched.requirements)]):
            close[:, output] |= bound[:, j] - batched.sign[j] * z[:, output] < self._slack[batched.outputs[output]]
        return close

    def _merit(self, batched: BatchedPosterior, bound: FloatArray, mean: FloatArray) -> FloatArray:
        over = batched.sign * mean[:, batched.output] - bound
        return np.asarray(self.goal * mean[:, 0] + self._penalty * np.clip(over, 0.0, None).sum(1))

    def _entries(
        self, bound: FloatArray, without: NDArray[np.int64] | None = None, among: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Return the best entry whose design keeps its margins within these bounds (b x r), b; -1 where none does.

        without: for each of them an entry (b) that is left out; among: the only entries that count, all unless given.
        """
        library, solver = self.library, self.solver
        needed = solver.sign * library.mean[:, solver.output] + library.margin
        obeyed = np.ones((len(bound), len(needed)), dtype=np.bool_)
        for j in range(bound.shape[1]):
            obeyed &= needed[:, j] <= bound[:, j : j + 1]
        if without is not None:
            obeyed[np.arange(len(bound)), without] = False
        if among is not None:
            obeyed[:, np.setdiff1d(np.arange(len(needed)), among)] = False
        value = np.where(obeyed, solver.goal * library.mean[:, 0], np.inf)
        return np.where(obeyed.any(1), value.argmin(1), -1)


def linearised(
    batched: BatchedPosterior,
    x: FloatArray,
    z: FloatArray,
    J: FloatArray,
    H: FloatArray,
    bound: FloatArray,
    free: FloatArray,
    penalty: float,
) -> qp.Programs:
    """Return the quadratic program of a step from each design (b x d); variables that are not free (d: 1 or 0) stay."""
    sign, output = batched.sign, batched.output
    return qp.Programs(
        batched.solver.goal * J[:, 0] * free,
        H * free * free[:, None] + np.diag(1.0 - free),
        sign[:, None] * J[:, output] * free,
        bound - sign * z[:, output],
        np.where(free, -x, -1.0),
        np.where(free, 1.0 - x, 1.0),
        np.full(len(x), penalty),
    )


def as_library(
    batched: BatchedPosterior, theta: FloatArray, x: FloatArray, multipliers: FloatArray, probability: float
) -> Library:
    """Return a library of these thresholds."""
    solver = batched.solver
    multipliers = np.minimum(multipliers, TUNING.largest_multiplier)
    mean, slope = batched.mean_and_slope(x)
    std = batched.std(x)
    weights = np.zeros_like(std)
    weights[:, 0] = solver.goal
    for j, (output, sign) in enumerate(zip(solver.output, solver.sign, strict=True)):
        weights[:, output] += sign * multipliers[:, j]
    curvature = np.array([solver.pointwise.hessian(*pair) for pair in zip(x, weights, strict=True)])
    margin = margin_of(solver, std[:, solver.output], multipliers, probability)
    parts = theta, x, mean, std, slope, convex(curvature), multipliers, margin
    return Library(*(np.ascontiguousarray(part) for part in parts))


def _near(solver: Solver, library: Library) -> NDArray[np.int64]:
    """Return the requirements that come near their bounds in some entry, one at least; all where entries are too few to tell."""
    room = solver.bound(library.theta) - solver.sign * library.mean[:, solver.output]
    near = np.flatnonzero(((room < TUNING.far * library.margin) | (library.multipliers > 0.0)).any(0))
    if len(library.theta) < TUNING.solved:
        return np.arange(len(solver.output))
    return near if len(near) else np.zeros(1, dtype=np.int64)


def margin_of(solver: Solver, std: FloatArray, multipliers: FloatArray, probability: float) -> FloatArray:
    """Return the margins of requirements with these deviations and multipliers, all b x r."""
    return std * solver.deviations(std, multipliers, probability) + BOUND_SLACK


def convex(H: FloatArray) -> FloatArray:
    """Raise the curvature in every direction to a share of the largest."""
    values, vectors = np.linalg.eigh(H)
    least = np.maximum(TUNING.flattest * np.abs(values).max(-1, keepdims=True), TUNING.least_curvature)
    return np.asarray((vectors * np.maximum(values, least)[:, None, :]) @ vectors.transpose(0, 2, 1))
