"""Choosing a batch for the whole box of thresholds: answers, whose measurement corrects the surrogates, and improvements.

Symbols and shapes
    theta   b x k    thresholds that matter: fresh Sobol points of the box, or the study's focus
    x       c x d    candidates for an improvement, unit cube
    best    b        the incumbent at each threshold: the better of the best measured objective and the answer's

Answers are taken without a margin: their measurement removes the surrogates' error exactly where the solver relies on it. Where a
margin leads to a quite different design, far from everything measured, one of several answers keeps it: otherwise nobody would
find out whether that design is as good as predicted.

An improvement maximises the mean over thresholds of EI_theta(x) P(x obeys theta). For one threshold that is LogcEI; over all of
them it is the expected gain of the whole map. A threshold that nothing is predicted to satisfy counts by the probability alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.query import Query
from cbabo.methods.acquisition import log_improvement
from cbabo.methods.designs import legal_designs, with_categories_redrawn
from cbabo.numerics.arrays import FloatArray
from cbabo.solver.categorical import solver_for
from cbabo.solver.continuous import Solution, Solver
from cbabo.solver.lattice import Lattice
from cbabo.surrogate.posterior import Posterior


@dataclass(frozen=True)
class BatchTuning:
    """Numbers that tune the choice of a batch."""

    pool: int = 1000
    """Candidates anywhere in the cube, and as many around good designs: enough for about ten variables, and cheap."""
    steps: tuple[float, ...] = (0.02, 0.1, 0.3)
    """Standard deviations of the latter, in the unit cube: from a local correction to a change of region."""
    good: int = 20
    """Measured designs of best objective around which they lie."""
    least_moved: float = 0.3
    """Least share of the variables that a candidate around a good design changes."""
    known: float = 1e-4
    """Distance to measured designs below which nothing would be learned."""
    new: float = 1e-3
    """Least distance to designs of the same batch."""
    apart: float = 0.05
    """Least distance between improvements, where candidates allow it: two close ones would teach the same."""
    far: float = 0.2
    """Distance of an answer with its margin, to all that was measured and to itself without the margin, from which on it is
    measured too."""
    incumbent: float = 0.5
    """Probability of feasibility from which on a measured design is an incumbent: more likely feasible than not."""


TUNING = BatchTuning()


def choose_batch(
    posterior: Posterior,
    query: Query,
    answers: int,
    size: int,
    taken: Tensor,
    probability: float,
    random: np.random.Generator,
    level: int = 0,
) -> Tensor:
    """Return `size` designs: up to so many answers to the query, in its order, the others improvements.

    taken: p x d, designs that were tried without an outcome, or are being evaluated; probability: of feasibility that answers
    with a margin aim at; level: how often effort was lowered, each time to half the candidates.
    """
    solver = solver_for(posterior)
    bounds = solver.bound(query.theta)
    found = [solver.alternatives(bound, 2 if i < 2 * answers else 1) for i, bound in enumerate(bounds)]
    solutions = [alternatives[0] for alternatives in found]
    known = np.vstack([posterior.surrogates.x.numpy(), taken.numpy()])
    chosen = _far_with_margin(solver, bounds[:answers], solutions, known, probability) if answers > 1 else []
    for alternatives in found:
        new = [s.x for s in alternatives if _apart(s.x, known, TUNING.known) and _apart(s.x, chosen, TUNING.new)]
        if new and len(chosen) < answers:
            chosen.append(new[0])
    pool = _candidates(posterior, np.array([s.x for s in solutions]), random, TUNING.pool >> level)
    value = _expected_gain(posterior, solver, query, solutions, pool)
    if posterior.failure_model is not None:
        p = posterior.failure_model.probability(torch.from_numpy(pool)).numpy()
        # Designs whose failure is too probable come last.
        value = np.where(p > posterior.failure_model.limit, -np.inf, value + np.log1p(-p))
    pool = pool[np.argsort(-value, kind="stable")]
    for others, least in ((known, TUNING.apart), (known, TUNING.new), ([], TUNING.new)):
        for x in pool:
            if len(chosen) == size:
                break
            if _apart(x, others, TUNING.known) and _apart(x, chosen, least, euclidean=True):
                chosen.append(x)
    while len(chosen) < size:  # A small lattice may be used up.
        chosen.append(pool[len(chosen) % len(pool)])
    return torch.from_numpy(np.array(chosen).reshape(-1, known.shape[1]))


def _far_with_margin(
    solver: Solver, bounds: FloatArray, solutions: Sequence[Solution], known: FloatArray, probability: float
) -> list[FloatArray]:
    """Return the first answer with its margin that is far from everything, if there is one."""
    for bound, solution in zip(bounds, solutions, strict=False):
        x = solver.with_margin(bound, solution, probability).x
        if _apart(x, known, TUNING.far) and _apart(x, [solution.x], TUNING.far):
            return [x]
    return []


def _expected_gain(
    posterior: Posterior, solver: Solver, query: Query, solutions: Sequence[Solution], pool: FloatArray
) -> FloatArray:
    """Return the logarithm of the criterion (c) at the candidates."""
    s = posterior.predictor
    mean, std = s.mean_and_std(torch.from_numpy(pool))
    f, deviation = (solver.goal * mean[:, :1]), std[:, :1]
    scale, centre = float(s.scale[0]), solver.goal * float(s.centre[0])
    best = torch.tensor(_incumbents(solver, query, solutions))
    some = best.isfinite()
    gain = log_improvement((torch.where(some, best * scale + centre, 0.0) - f) / deviation) + (deviation / scale).log()
    theta = torch.from_numpy(query.theta)
    chances = [posterior.limits.log_normal_probability(mean, std, t.expand(len(pool), -1)) for t in theta]
    value = torch.stack(chances, dim=1) + torch.where(some, gain, 0.0)
    return torch.logsumexp(value, 1).numpy()


def _incumbents(solver: Solver, query: Query, solutions: Sequence[Solution]) -> list[float]:
    """Return the standardised objective (b) that is measured or predicted to be possible; inf where nothing is."""
    measured = [np.inf if found is None else found.objective for found in solver.incumbents(query, TUNING.incumbent)]
    predicted = [s.objective if s.feasible else np.inf for s in solutions]
    return [min(pair) for pair in zip(measured, predicted, strict=True)]


def _candidates(posterior: Posterior, answers: FloatArray, random: np.random.Generator, pool: int) -> FloatArray:
    x = posterior.surrogates.x.numpy()
    d = x.shape[1]
    order = np.argsort(posterior.limits.goal * posterior.z[:, 0].numpy(), kind="stable")[: TUNING.good]
    around = np.vstack([answers, x[order]])
    steps = random.normal(size=(pool, d)) * random.choice(TUNING.steps, size=(pool, 1))
    share = max(TUNING.least_moved, 2.0 / d)
    moved = random.random((pool, d)) < share
    near = around[random.integers(len(around), size=pool)] + steps * moved
    anywhere = np.vstack([random.random((pool, d)), np.clip(near, 0.0, 1.0)])
    space, region = posterior.problem.space, posterior.problem.region
    if space.categories:
        anywhere[pool:] = with_categories_redrawn(space, anywhere[pool:], share, random)
    if region is not None:
        anywhere = np.vstack([region.sample(pool, random), region.repaired(anywhere[pool:])])
    lattice = Lattice.of(space, region)
    if lattice is None:
        return anywhere
    if lattice.complete and lattice.size <= pool:
        return lattice.around(anywhere[0], 1)
    return np.unique(legal_designs(posterior.problem, torch.from_numpy(anywhere)).numpy(), axis=0)


def _apart(x: FloatArray, others: FloatArray | list[FloatArray], least: float, euclidean: bool = False) -> bool:
    if not len(others):
        return True
    difference = np.asarray(others) - x
    distance = np.linalg.norm(difference, axis=1) if euclidean else np.abs(difference).max(1)
    return bool(distance.min() > least)
