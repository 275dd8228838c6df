"""Improving an answer with the error just measured.

Symbols and shapes, in units of the standardised outputs
    e      q      measured less predicted, at the last design that was measured
    rest   q      what remains of it after the surrogates were conditioned on the measurement
    t      r      bounds of the requirements

The surrogates are conditioned on what was measured, and the constrained problem is solved again in a box around the best design
as if they still erred by `rest`, with a margin of a third of e: close to a design where a prediction was wrong, the next one is
likely to be wrong too, by less. Where outputs are noisy, e says little, and the conditioned posterior is solved with its own
margins.

A smooth output is predicted almost exactly after two measurements. Where it is not, because of a kink or another basin, further
corrections keep missing by about as much. From the third evaluation on, the design of the largest expected gain anywhere is
measured instead (see `focused`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.methods.designs import designs_of, legal_designs
from cbabo.methods.focused import largest_gain
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.numerics.slsqp import Region
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import BOUND_SLACK, SAME_DESIGN
from cbabo.surrogate.posterior import Posterior


@dataclass(frozen=True)
class CorrectionTuning:
    """Numbers that tune the correction."""

    radius: float = 0.15
    """Half-width, in the unit cube, of the box in which a better design is sought: farther away the error says nothing."""
    margin: float = 0.3
    """Share of the last error that is kept as a margin: verified losses after two evaluations were least with it."""
    corrections: int = 2
    """Evaluations after which the expected gain is maximised instead."""
    least_span: float = 1e-9
    """Least span of the objective, by which a gain is divided."""


TUNING = CorrectionTuning()


@dataclass(frozen=True, eq=False)
class Corrected:
    """The next design to measure."""

    point: Point
    gain: float
    """Expected gain over the incumbent, as a share of the objective's span over the box; inf without an incumbent."""


def next_design(
    fitted: Fitted, query: Query, centre: Point, made: Sequence[Evaluation], aim: float
) -> Corrected | None:
    """Return the next design for one threshold after some evaluations around a centre; None if nothing new is found.

    fitted: before these evaluations; aim: the probability of feasibility that an answer should have.
    """
    if len(made) >= TUNING.corrections and fitted.posterior.all_exact:
        return _largest_gain(fitted, query, made, aim)
    return _correct(fitted, query, centre, made, aim)


def _largest_gain(fitted: Fitted, query: Query, made: Sequence[Evaluation], aim: float) -> Corrected:
    """Return the design of the largest expected gain over the incumbent."""
    with one_thread(), torch.no_grad():
        after = fitted.conditioned(made)
        failed = Evaluations(fitted.problem, (*fitted.evaluations, *made)).failed
        random = child(fitted.seed, "refinement", len(made))
        x, log_gain = largest_gain(after.posterior, query, designs_of(fitted.problem, failed), random)
        some = after.solver.incumbent(query, aim) is not None
        gain = relative_gain(fitted, float(np.exp(log_gain)), 0.0) if some else np.inf
    return Corrected(fitted.problem.space.points(x[None])[0], gain)


def _correct(fitted: Fitted, query: Query, centre: Point, made: Sequence[Evaluation], aim: float) -> Corrected | None:
    """Return the solution close by with the error just measured; None if it was tried before."""
    problem, space = fitted.problem, fitted.problem.space
    tried = Evaluations(problem, (*fitted.evaluations, *made))
    with one_thread(), torch.no_grad():
        solver = fitted.conditioned(made).solver
        bound = solver.bound(query.theta)[0]
        best = solver.incumbent(query, aim)
        if not solver.posterior.all_exact:
            # The posterior weighs what was measured against its noise, so that its own margins are the right ones.
            found = solver.predict(bound, aim)
            gain = np.inf if best is None else relative_gain(fitted, best.objective, found.objective)
            return Corrected(_point(problem, found.x), gain)
        error, rest = _errors(fitted.posterior, solver.posterior, Evaluations(problem, tuple(made)).complete)
        output, sign = solver.output, solver.sign
        bound = bound - sign * rest[output] - TUNING.margin * np.abs(error[output]) - BOUND_SLACK
        around = space.unit(space.array([centre]))[0] if best is None else best.x
        low, high = (np.clip(around + step, 0.0, 1.0) for step in (-TUNING.radius, TUNING.radius))
        solutions = solver.within(bound, around, Region(low, high))
        if problem.region is not None:
            solutions = [s for s in solutions if s.feasible or len(solutions) == 1]
        new = [s for s in solutions if float(np.abs(tried.x - space.snap(s.x[None])).max(axis=1).min()) > SAME_DESIGN]
        if not new:
            return None
        gain = np.inf if best is None else relative_gain(fitted, best.objective, new[0].objective)
    return Corrected(_point(problem, new[0].x), gain)


def _point(problem: Problem, x: FloatArray) -> Point:
    """Return a design (d) as a legal point."""
    return problem.space.points(legal_designs(problem, torch.from_numpy(x[None])).numpy())[0]


def _errors(before: Posterior, after: Posterior, made: Evaluations) -> tuple[FloatArray, FloatArray]:
    """Return the last evaluation's error, and what remains of it after conditioning (q each)."""
    if not len(made):
        nothing = np.zeros(len(before.problem.outputs))
        return nothing, nothing
    x, y = torch.from_numpy(made.x[-1:]), torch.from_numpy(made.y[-1:])
    warped = y if before.output_warp is None else before.output_warp.forward(y)
    scale = before.predictor.scale
    error, rest = (((warped - p.predictor.mean(x)) / scale)[0].numpy() for p in (before, after))
    return error, rest


def largest_error(before: Posterior, made: Evaluation) -> float:
    """Return the largest error, in standard deviations of a measurement, of what was predicted of an evaluation."""
    table = Evaluations(before.problem, (made,))
    x, y = torch.from_numpy(table.x), torch.from_numpy(table.y)
    with torch.no_grad():
        mean, std = before.predictor.mean_and_std(x)
        warped = y if before.output_warp is None else before.output_warp.forward(y)
        error = ((warped - mean) / before.predictor.observation_std(std)).abs()
        error[:, list(before.problem.exact)] = 0.0
        return float(error.max())


def relative_gain(fitted: Fitted, best: float, found: float) -> float:
    """Return the gain from one standardised objective to another, as a share of its span over the box."""
    ends = np.repeat([[0.0], [1.0]], len(fitted.problem.box.names), axis=1)
    strict, relaxed = (fitted.solver.best(bound).objective for bound in fitted.solver.bound(ends))
    return (best - found) / max(abs(strict - relaxed), TUNING.least_span)
