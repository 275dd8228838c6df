"""Improving an answer with the error just measured.

Symbols and shapes, in units of the standardised outputs
    e      q      measured less predicted, at the last design that was measured
    rest   q      what remains of it after the surrogates were conditioned on the measurement
    t      r      bounds of the requirements

The surrogates are conditioned on what was measured, and the constrained problem is solved again in a box around the best design
as if they still erred by `rest`, with a margin of a third of e: close to a design where a prediction was wrong, the next one is
likely to be wrong too, by less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import Region
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import BOUND_SLACK, SAME_DESIGN
from cbabo.solver.continuous import Solution, Solver
from cbabo.solver.mixed import solver_for


@dataclass(frozen=True)
class CorrectionTuning:
    """Numbers that tune the correction."""

    radius: float = 0.15
    """Half-width, in the unit cube, of the box in which a better design is sought: farther away the error says nothing."""
    margin: float = 0.3
    """Share of the last error that is kept as a margin: verified losses after two evaluations were least with it."""
    least_span: float = 1e-9
    """Least span of the objective, by which a gain is divided."""


TUNING = CorrectionTuning()


@dataclass(frozen=True, eq=False)
class Corrected:
    """The next design to measure."""

    point: Point
    gain: float
    """Expected gain over the incumbent, as a share of the objective's span over the box; inf without an incumbent."""


def correct(fitted: Fitted, query: Query, centre: Point, made: Sequence[Evaluation]) -> Corrected | None:
    """Return the next design for one threshold after some evaluations around a centre; None if nothing new is found."""
    problem, space = fitted.problem, fitted.problem.space
    tried = Evaluations(problem, (*fitted.evaluations, *made))
    with one_thread(), torch.no_grad():
        solver, error, rest = _conditioned(fitted, Evaluations(problem, tuple(made)).complete)
        output, sign = solver.output, solver.sign
        margin = TUNING.margin * np.abs(error[output])
        bound = solver.bound(query.theta)[0] - sign * rest[output] - margin - BOUND_SLACK
        best = solver.incumbent(query)
        around = space.unit(space.array([centre]))[0] if best is None else solver.posterior.surrogates.x[best].numpy()
        low, high = (np.clip(around + step, 0.0, 1.0) for step in (-TUNING.radius, TUNING.radius))
        found = solver.within(bound, around, Region(low, high))
        new = [s for s in found if float(np.abs(tried.x - space.snap(s.x[None])).max(axis=1).min()) > SAME_DESIGN]
        if not new:
            return None
        gain = np.inf if best is None else _gain(fitted, solver, best, new[0])
    return Corrected(space.points(new[0].x[None])[0], gain)


def _conditioned(fitted: Fitted, made: Evaluations) -> tuple[Solver, FloatArray, FloatArray]:
    """Return a solver conditioned on further evaluations, the last one's error, and what remains of it (q each)."""
    posterior = fitted.posterior
    nothing = np.zeros(len(fitted.problem.outputs))
    if not len(made):
        return fitted.solver, nothing, nothing
    x, y = torch.from_numpy(made.x), torch.from_numpy(made.y)
    warped = y if posterior.warp is None else posterior.warp.forward(y)
    conditioned = replace(
        posterior,
        measured=Evaluations(fitted.problem, (*posterior.measured, *made)),
        surrogates=posterior.surrogates.with_data(x, warped),
    )
    scale = posterior.surrogates.scale
    before, after = (((warped - s.mean(x)) / scale)[-1].numpy() for s in (posterior.surrogates, conditioned.surrogates))
    return solver_for(conditioned), before, after


def _gain(fitted: Fitted, solver: Solver, best: int, solution: Solution) -> float:
    ends = np.repeat([[0.0], [1.0]], len(fitted.problem.box.names), axis=1)
    strict, relaxed = (fitted.solver.best(bound).objective for bound in fitted.solver.bound(ends))
    return float((solver.goal * solver.z[best, 0] - solution.objective) / max(abs(strict - relaxed), TUNING.least_span))
