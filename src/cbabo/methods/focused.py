"""Choosing designs for a focus, one after the other: answers to its thresholds, and designs of the largest expected gain.

Symbols and shapes
    theta   b x k    the focus, or some of its thresholds; w  b  how much each matters
    x       c x d    candidates, unit cube
    rows    b        the incumbent of each threshold among the surrogates' data; -1 where nothing obeys it

An answer is the solver's design without a margin: its measurement removes the surrogates' error where the optimum is predicted.
Once it was measured, its turn goes to an improvement. An improvement maximises the expected gain over the best measured designs
(see `improvement`): ascents start from the best of designs anywhere, from the best around the incumbents, and from the solver's
answers with several margins, which lie where a gain is most probable. Designs that are under way or chosen before count as
measured at their posterior means. Improvements are judged by deviations that calibration has not raised: it makes them as large
as errors close to the data were, up to 20 times, and then everything far from the data would look as promising as not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from torch import Tensor

from cbabo.domain.query import Query
from cbabo.domain.space import Space
from cbabo.methods.designs import legal_designs, with_categories_redrawn
from cbabo.methods.improvement import ExpectedGain
from cbabo.numerics.arrays import FloatArray
from cbabo.solver.categorical import solver_for
from cbabo.solver.continuous import Solver
from cbabo.solver.lattice import Lattice
from cbabo.surrogate.posterior import Posterior


@dataclass(frozen=True)
class FocusedTuning:
    """Numbers that tune the choice of a design."""

    answered: int = 3
    """Thresholds that are solved for one design at most, drawn by weight: each costs as much as a fit."""
    anywhere: int = 1000
    """Candidates anywhere in the cube."""
    near: int = 64
    """Candidates around each incumbent, for each of the scales and for those with some variables redrawn."""
    scales: tuple[float, ...] = (0.2, 0.05, 0.01, 0.002)
    """Standard deviations of the former, in the unit cube: from a change of region to the last digits of convergence."""
    redrawn: float = 2.0
    """Variables that the latter draw anew, on average."""
    starts: int = 4
    """Ascents from the best candidates anywhere, and as many from the best around incumbents."""
    margins: tuple[float, ...] = (0.5, 0.9)
    """Probabilities of feasibility of answers from which ascents start."""
    known: float = 1e-4
    """Distance to measured designs below which an answer would teach nothing."""
    same: float = 1e-6
    """The same of an improvement, which is measured for its own sake."""
    failed: float = 0.02
    """Distance to failed designs below which nothing is chosen while there is no failure model: a failure changes no surrogate,
    so that the same design would be chosen again, and further off each failure tells more about where designs fail."""
    incumbent: float = 0.5
    """Probability of feasibility from which on a measured design is an incumbent: more likely feasible than not."""


TUNING = FocusedTuning()


def choose_focused(
    posterior: Posterior,
    query: Query,
    weights: FloatArray,
    answers: int,
    size: int,
    taken: Tensor,
    random: np.random.Generator,
) -> Tensor:
    """Return `size` designs for the thresholds of a query: up to so many answers, the others improvements.

    weights: b, adding up to 1; taken: p x d, designs that were tried without an outcome, or are being evaluated.
    """
    chosen: list[FloatArray] = []
    for i in range(size):
        design = _choose(posterior, query, weights, i < answers, taken.numpy(), random)
        chosen.append(design)
        row = torch.from_numpy(design).unsqueeze(0)
        taken = torch.cat([taken, row])
        if i + 1 < size:
            posterior = posterior.fantasize(row)
    return torch.from_numpy(np.array(chosen).reshape(-1, taken.shape[1]))


def largest_gain(
    posterior: Posterior, query: Query, taken: Tensor, random: np.random.Generator
) -> tuple[FloatArray, float]:
    """Return the design (d) of the largest expected gain for a query with one row, and the logarithm of that gain.

    The gain is in standard deviations of the measured objectives (see `improvement`). taken: as `choose_focused` takes it.
    """
    solver = solver_for(posterior)
    bound = solver.bound(query.theta)[0]
    solution = solver.best(bound)
    answers = np.array([solution.x, *(solver.with_margin(bound, solution, p).x for p in TUNING.margins)])
    known = np.vstack([posterior.surrogates.x.numpy(), taken.numpy()])
    failed = _without_outcome(posterior, taken.numpy())
    return _improvement(posterior, solver, query, np.ones(1), answers, known, failed, random)


def _choose(
    posterior: Posterior,
    query: Query,
    weights: FloatArray,
    answer: bool,
    taken: FloatArray,
    random: np.random.Generator,
) -> FloatArray:
    """Return the next design (d), an answer where one is wanted and new."""
    solver = solver_for(posterior)
    known = np.vstack([posterior.surrogates.x.numpy(), taken])
    failed = _without_outcome(posterior, taken)
    bounds = solver.bound(query.theta)
    drawn = dict.fromkeys(random.choice(len(weights), size=TUNING.answered, p=weights).tolist())
    solutions = [solver.best(bounds[i]) for i in drawn]
    if answer:
        for solution in solutions:
            at = solution.x[None]
            if _distance(at, known)[0] > TUNING.known and _distance(at, failed)[0] > TUNING.failed:
                return solution.x
    answers = [
        x
        for i, solution in zip(drawn, solutions, strict=True)
        for x in (solution.x, *(solver.with_margin(bounds[i], solution, p).x for p in TUNING.margins))
    ]
    return _improvement(posterior, solver, query, weights, np.array(answers), known, failed, random)[0]


def _improvement(
    posterior: Posterior,
    solver: Solver,
    query: Query,
    weights: FloatArray,
    answers: FloatArray,
    known: FloatArray,
    failed: FloatArray,
    random: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Return the design (d) of the largest expected gain that was not tried, and the logarithm of its gain.

    answers: further designs from which to start; failed: designs that are kept away from, as long as there are others.
    """
    s = posterior.predictor
    x, f = s.x.numpy(), solver.z[:, 0] * float(s.scale[0]) + float(s.centre[0])
    rows = _incumbents(posterior, solver, query)
    best = np.where(rows < 0, np.inf, solver.goal * f[rows])
    gain = ExpectedGain(posterior.not_raised(), *(torch.from_numpy(a) for a in (query.theta, best, weights)))
    centres = np.unique(x[rows[rows >= 0]], axis=0) if (rows >= 0).any() else answers
    anywhere, region = random.random((TUNING.anywhere, x.shape[1])), posterior.problem.region
    if region is not None:
        anywhere = region.sample(TUNING.anywhere, random)
    near = np.vstack([_around(posterior.problem.space, centre, random) for centre in centres])
    pool = _legal(posterior, np.vstack([anywhere, near]))
    values = gain.values(pool)
    order = np.argsort(-values, kind="stable")
    far = order < len(anywhere)
    starts = np.concatenate([order[far][: TUNING.starts], order[~far][: TUNING.starts]])
    answers = _legal(posterior, answers)
    ends = np.vstack([gain.ascend(np.vstack([pool[starts], answers])), answers])
    ends = ends if region is None else _legal(posterior, ends)
    lattice = Lattice.of(posterior.problem.space, region)
    if lattice is not None and lattice.complete:
        ends = np.vstack([ends, *(lattice.around(centre, 1) for centre in centres)])
    candidates, values = np.vstack([ends, pool]), np.concatenate([gain.values(ends), values])
    new = _distance(candidates, known) > TUNING.same
    away = new & (_distance(candidates, failed) > TUNING.failed)
    for kept in (away, new):  # A small lattice may be used up.
        if kept.any():
            candidates, values = candidates[kept], values[kept]
            break
    first = int(values.argmax())
    return np.asarray(candidates[first]), float(values[first])


def _incumbents(posterior: Posterior, solver: Solver, query: Query) -> NDArray[np.int64]:
    """Return the rows: the best measured designs, or designs under way that are predicted to be better."""
    found = solver.incumbents(query, TUNING.incumbent)
    rows = np.array([-1 if f is None or f.measured is None else f.measured for f in found])
    count = len(posterior.measured)
    under_way = solver.z[count:]
    if not len(under_way):
        return rows
    f = solver.goal * solver.z[:, 0]
    for i, bound in enumerate(solver.bound(query.theta)):
        obeyed = (solver.sign * under_way[:, solver.output] <= bound).all(1)
        value = np.where(obeyed, f[count:], np.inf)
        if obeyed.any() and (rows[i] < 0 or value.min() < f[rows[i]]):
            rows[i] = count + value.argmin()
    return rows


def _around(space: Space, centre: FloatArray, random: np.random.Generator) -> FloatArray:
    """Return candidates around a design (d) at several scales, and with a few variables drawn anew."""
    shape = (TUNING.near, len(centre))
    moved = [centre + scale * random.standard_normal(shape) for scale in TUNING.scales]
    share = min(1.0, TUNING.redrawn / len(centre))
    redrawn = random.random(shape) < share
    anew = np.where(redrawn, random.random(shape), centre)
    if space.categories:
        for at in space.categories:
            anew[:, at] = centre[at]
        anew = with_categories_redrawn(space, anew, min(1.0, TUNING.redrawn / len(space.variables)), random)
    return np.asarray(np.clip(np.vstack([*moved, anew]), 0.0, 1.0))


def _legal(posterior: Posterior, x: FloatArray) -> FloatArray:
    return np.asarray(legal_designs(posterior.problem, torch.from_numpy(x)).numpy())


def _without_outcome(posterior: Posterior, taken: FloatArray) -> FloatArray:
    """Return the taken designs (p x d) that neither the surrogates nor a failure model know of: those that failed."""
    if posterior.failure_model is not None:
        return taken[:0]
    return taken[_distance(taken, posterior.surrogates.x.numpy()) > TUNING.same]


def _distance(x: FloatArray, known: FloatArray) -> FloatArray:
    """Return the largest difference of a coordinate (c) to the nearest known design (n x d); inf if there is none."""
    if not len(known):
        return np.full(len(x), np.inf)
    return np.asarray(cdist(x, known, "chebyshev").min(1))
