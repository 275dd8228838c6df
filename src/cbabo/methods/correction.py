"""Improving an answer with the error just seen.

Symbols and shapes, in units of the standardised outputs
    e      q      measured less predicted, at the last design that was measured
    rest   q      what remains of it after the surrogates have been told
    t      r      bounds of the requirements

The surrogates are conditioned on what was measured and solved again in a box around the best design, as if they still erred by
`rest`, with a margin of a third of e: where a prediction has just been wrong it will be wrong again close by, but by less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from cbabo.answering.model import Model
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.space import Point
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import Region
from cbabo.numerics.threads import one_thread
from cbabo.solver.continuous import Solution, Solver
from cbabo.solver.mixed import solver_for

_BOX = 0.15  # half-width, in the unit cube, of the region in which a better design is sought
_WARY = 0.3  # of the last error, kept as a margin
_ROUNDING = 1e-7
_SAME = 1e-9  # distance in the unit cube below which two designs are one


@dataclass(frozen=True, eq=False)
class Corrected:
    """Where to look next."""

    point: Point
    gain: float
    """What is expected to be gained over the best feasible design, as a share of the objective's span; inf if there is none."""


def correct(model: Model, row: FloatArray, centre: Point, made: Sequence[Evaluation]) -> Corrected | None:
    """Return the next design for thresholds (1 x k) after some evaluations around a centre; None if nothing new is found."""
    problem, space = model.problem, model.problem.space
    tried = Evaluations(problem, (*model.evaluations, *made))
    with one_thread(), torch.no_grad():
        solver, error, rest = _told(model, Evaluations(problem, tuple(made)).complete)
        theta = np.clip(problem.box.to_theta(row), 0.0, 1.0)
        output, sign = solver.output, solver.sign
        bound = solver.bound(theta)[0] - sign * rest[output] - _WARY * np.abs(error[output]) - _ROUNDING
        best = solver.incumbent(theta[0])
        around = space.unit(space.array([centre]))[0] if best is None else solver.posterior.surrogates.x[best].numpy()
        found = solver.within(bound, around, Region(np.clip(around - _BOX, 0.0, 1.0), np.clip(around + _BOX, 0.0, 1.0)))
        new = [s for s in found if float(np.abs(tried.x - space.snap(s.x[None])).max(axis=1).min()) > _SAME]
        if not new:
            return None
        solution = new[0]
        gain = np.inf if best is None else _gain(model, solver, best, solution)
    return Corrected(space.points(solution.x[None])[0], gain)


def _told(model: Model, made: Evaluations) -> tuple[Solver, FloatArray, FloatArray]:
    """Return a solver that knows of further evaluations, the last one's error, and what remains of it (q each)."""
    posterior = model.posterior
    nothing = np.zeros(len(model.problem.outputs))
    if not len(made):
        return model.solver, nothing, nothing
    x, y = torch.from_numpy(made.x), torch.from_numpy(made.y)
    seen = y if posterior.warp is None else posterior.warp.forward(y)
    told = replace(
        posterior,
        measured=Evaluations(model.problem, (*posterior.measured, *made)),
        surrogates=posterior.surrogates.with_data(x, seen),
    )
    scale = posterior.surrogates.scale
    before, after = (((seen - s.mean(x)) / scale)[-1].numpy() for s in (posterior.surrogates, told.surrogates))
    return solver_for(told), before, after


def _gain(model: Model, solver: Solver, best: int, solution: Solution) -> float:
    ends = np.repeat([[0.0], [1.0]], len(model.problem.box.names), axis=1)
    strict, relaxed = (model.solver.best(bound).objective for bound in model.solver.bound(ends))
    return float((solver.goal * solver.z[best, 0] - solution.objective) / max(abs(strict - relaxed), _SAME))
