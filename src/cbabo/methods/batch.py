"""Choosing a batch for the whole box of thresholds: answers to be corrected, and discoveries.

Symbols and shapes
    theta   b x k    thresholds that matter: fresh Sobol points of the box, or the study's focus
    x       c x d    candidates for a discovery, unit cube
    best    b        what is known to be possible at each threshold: the better of the best measured objective and the answer's

Answers without a margin remove the surrogates' error exactly where the solver trusts it. Where a margin leads to quite another
design, far from all that was measured, one of several answers keeps it: or nobody would look whether what it promises is true.

A discovery has the largest mean over thresholds of EI_theta(x) P(x obeys theta): for one threshold that is LogcEI, over all of
them the expected gain of the whole map. A threshold that nothing is believed to satisfy counts by the probability alone.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cbabo.methods.acquisition import log_improvement
from cbabo.methods.designs import snapped
from cbabo.numerics.arrays import FloatArray
from cbabo.solver.continuous import Solution, Solver
from cbabo.solver.lattice import Lattice
from cbabo.solver.mixed import solver_for
from cbabo.surrogate.posterior import Posterior

_POOL = 1000  # candidates anywhere, and as many around good designs
_STEPS = (0.02, 0.1, 0.3)  # deviations of the latter
_GOOD = 20  # measured designs around which they lie
_SAME = 1e-4  # distance to measured designs below which nothing would be learned
_NEW = 1e-3  # and to designs of the same batch
_APART = 0.05  # and between discoveries
_PROMISED = 0.98  # probability that an answer with a margin aims at
_FAR = 0.2  # its distance to all that is known, and to itself without the margin, from which on it is measured


def choose_batch(
    posterior: Posterior, theta: FloatArray, answers: int, size: int, taken: Tensor, random: np.random.Generator
) -> Tensor:
    """Return `size` designs: up to so many answers at theta (b x k, in the order of their turn), the others discoveries.

    taken: p x d, designs that were tried without an outcome, or are being evaluated.
    """
    solver = solver_for(posterior)
    found = [solver.alternatives(bound, 2 if i < 2 * answers else 1) for i, bound in enumerate(solver.bound(theta))]
    solutions = [alternatives[0] for alternatives in found]
    known = np.vstack([posterior.surrogates.x.numpy(), taken.numpy()])
    chosen = _promised(solver, solver.bound(theta[:answers]), solutions, known) if answers > 1 else []
    for alternatives in found:
        new = [s.x for s in alternatives if _apart(s.x, known, _SAME) and _apart(s.x, chosen, _NEW)]
        if new and len(chosen) < answers:
            chosen.append(new[0])
    pool = _pool(posterior, np.array([s.x for s in solutions]), random)
    worth = _worth(posterior, solver, theta, solutions, pool)
    if posterior.failure_model is not None:
        p = posterior.failure_model.probability(torch.from_numpy(pool)).numpy()
        worth = np.where(p > posterior.failure_model.limit, -np.inf, worth + np.log1p(-p))  # those too risky come last
    pool = pool[np.argsort(-worth, kind="stable")]
    for others, least in ((known, _APART), (known, _NEW), ([], _NEW)):
        for x in pool:
            if len(chosen) == size:
                break
            if _apart(x, others, _SAME) and _apart(x, chosen, least, euclidean=True):
                chosen.append(x)
    while len(chosen) < size:  # a small lattice may be used up
        chosen.append(pool[len(chosen) % len(pool)])
    return torch.from_numpy(np.array(chosen))


def _promised(solver: Solver, bounds: FloatArray, solutions: list[Solution], known: FloatArray) -> list[FloatArray]:
    """Return the first answer with its margin that is far from everything, if there is one."""
    for bound, solution in zip(bounds, solutions, strict=False):
        x = solver.safe(bound, solution, _PROMISED).x
        if _apart(x, known, _FAR) and _apart(x, [solution.x], _FAR):
            return [x]
    return []


def _worth(
    posterior: Posterior, solver: Solver, theta: FloatArray, solutions: list[Solution], pool: FloatArray
) -> FloatArray:
    """Return the logarithm of the criterion (c) at the candidates."""
    s = posterior.surrogates
    mean, std = s.mean_and_std(torch.from_numpy(pool))
    f, deviation = (solver.goal * mean[:, :1]), std[:, :1]
    scale, centre = float(s.scale[0]), solver.goal * float(s.centre[0])
    best = torch.tensor([_possible(solver, t, solution) for t, solution in zip(theta, solutions, strict=True)])
    some = best.isfinite()
    gain = log_improvement((torch.where(some, best * scale + centre, 0.0) - f) / deviation) + (deviation / scale).log()
    chances = [posterior.limits.log_probability(mean, std, t.expand(len(pool), -1)) for t in torch.from_numpy(theta)]
    worth = torch.stack(chances, dim=1) + torch.where(some, gain, 0.0)
    return torch.logsumexp(worth, 1).numpy()


def _possible(solver: Solver, theta: FloatArray, solution: Solution) -> float:
    """Return the objective, standardised, that is known to be possible at theta (k); inf if nothing is."""
    incumbent = solver.incumbent(theta)
    measured = np.inf if incumbent is None else float(solver.goal * solver.z[incumbent, 0])
    return min(measured, solution.objective if solution.feasible else np.inf)


def _pool(posterior: Posterior, answers: FloatArray, random: np.random.Generator) -> FloatArray:
    x = posterior.surrogates.x.numpy()
    d = x.shape[1]
    order = np.argsort(posterior.limits.goal * posterior.z[:, 0].numpy(), kind="stable")[:_GOOD]
    around = np.vstack([answers, x[order]])
    steps = random.normal(size=(_POOL, d)) * random.choice(_STEPS, size=(_POOL, 1))
    moved = random.random((_POOL, d)) < max(0.3, 2.0 / d)
    near = around[random.integers(len(around), size=_POOL)] + steps * moved
    anywhere = np.vstack([random.random((_POOL, d)), np.clip(near, 0.0, 1.0)])
    lattice = Lattice.of(posterior.problem.space)
    if lattice is None:
        return anywhere
    if lattice.complete and lattice.size <= _POOL:
        return lattice.around(anywhere[0], 1)
    return np.unique(snapped(posterior.problem.space, torch.from_numpy(anywhere)).numpy(), axis=0)


def _apart(x: FloatArray, others: FloatArray | list[FloatArray], least: float, euclidean: bool = False) -> bool:
    if not len(others):
        return True
    difference = np.asarray(others) - x
    distance = np.linalg.norm(difference, axis=1) if euclidean else np.abs(difference).max(1)
    return bool(distance.min() > least)
