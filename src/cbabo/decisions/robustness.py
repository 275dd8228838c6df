"""Robust answers: designs that obey their limits with the stated probability although variables scatter.

Margins are constants while the constrained problem is solved, and are computed again at its solution from the samples of
`scatter`: what each requirement must keep from its bound to be obeyed with a common level. The level is raised or lowered until
the probability of all requirements together is the one asked for. A measured design is no answer here: that it was measured says
nothing about the designs around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from cbabo.answering.answers import Answer
from cbabo.answering.predict import Answers
from cbabo.decisions.aims import aimed_probability
from cbabo.decisions.scatter import Made, Scatter
from cbabo.domain.query import Query
from cbabo.methods.designs import legal_designs
from cbabo.methods.method import Designs, Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import Region
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import BOUND_SLACK


@dataclass(frozen=True)
class RobustTuning:
    """Numbers of the search for a robust answer."""

    rounds: int = 10
    """How often margins are computed at most."""
    settled: float = 5e-4
    """Of the probability: closer to what is asked for, and not below, the search ends."""
    levels: tuple[float, float] = (1e-4, 1.0 - 1e-6)
    """Least and largest level of one requirement."""
    retreat: float = 4.0
    """How far a design moves away from designs that formulas give no value, as a multiple of the distance between the mean of
    those that have one and the mean of all."""
    share_of_move: float = 0.1
    """Of the largest component of that movement: smaller ones are chance."""
    slack: float = 2e-3
    """By how much the probability may miss what was asked for and still count as reached: the error of the sampling."""


TUNING = RobustTuning()


@dataclass(frozen=True, eq=False)
class RobustDesign:
    """A design, and what is made of it."""

    x: FloatArray
    made: Made
    value: float
    """Mean of the objective, to be minimised, standardised."""
    probability: float


def robust_answer(
    fitted: Fitted,
    query: Query,
    scatter: Mapping[str, float] | None,
    tolerance: Mapping[str, float] | None,
    probability: float | None,
) -> Answer:
    """Answer one row of limits with scatter; the arguments are those of `Model.predict`."""
    aim = aimed_probability(fitted, probability, "predict")
    read = Scatter.of(fitted.problem, fitted.seed, scatter, tolerance)
    with one_thread():
        found = robust_design(fitted, query, read, aim)
    return as_answer(fitted, query, read, found, aim)


def robust_design(
    fitted: Fitted, query: Query, scatter: Scatter, aim: float, start: FloatArray | None = None
) -> RobustDesign:
    """Find the best design that has the probability asked for, or the most probable one.

    start: where to begin; unless given, with the solver's answer and, because margins may have led that into another region, with
    its solution without margins.
    """
    solver = fitted.solver
    bound = solver.bound(query.theta)[0]
    starts = [solver.predict(bound, aim).x, solver.best(bound).x] if start is None else [start]
    best: RobustDesign | None = None
    for x in starts:
        found = _search(fitted, scatter, bound, x, aim)
        best = found if best is None else _better(best, found, aim)
    assert best is not None
    return best


def _search(fitted: Fitted, scatter: Scatter, bound: FloatArray, start: FloatArray, aim: float) -> RobustDesign:
    """Solve with margins from one start, until the probability is the one asked for."""
    solver = fitted.solver
    best = last = design_at(fitted, scatter, bound, start)
    level, low, high = aim, np.zeros_like(start), np.ones_like(start)
    for _ in range(TUNING.rounds):
        before, x = last.probability, last.x
        if last.made.valid.mean() < 1.0 - 0.5 * (
            1.0 - aim
        ):  # No margin keeps a distance from where formulas have no value.
            away = last.made.away(x)
            clear = np.abs(away) > TUNING.share_of_move * np.abs(away).max(initial=0.0)
            x = np.clip(x + TUNING.retreat * away, 0.0, 1.0)
            low, high = np.where(clear & (away > 0), x, low), np.where(clear & (away < 0), x, high)
        margin = last.made.margins(solver, last.x, level) + BOUND_SLACK
        region = Region(low, high)
        solved = solver.within(bound - margin, x, region)[0]
        if not solved.feasible and (low.any() or (high < 1.0).any()):  # The least violating design may lie outside.
            solved = solver.nearest(bound - margin, x, np.ones_like(bound), region)
        last = design_at(fitted, scatter, bound, snapped_design(fitted, solved.x))
        best = _better(best, last, aim)
        if solved.feasible and abs(last.probability - aim) <= TUNING.settled:
            break
        if not solved.feasible and abs(last.probability - before) <= TUNING.settled and last.made.valid.mean() >= aim:
            break  # Margins can no longer be kept, and more of the same does not help.
        more = _logit(aim + 0.5 * TUNING.settled) - _logit(last.probability)
        level = float(np.clip(_expit(_logit(level) + more), *TUNING.levels))
    return best


def design_at(fitted: Fitted, scatter: Scatter, bound: FloatArray, x: FloatArray) -> RobustDesign:
    """Return a design (d) with what is made of it."""
    made = Made.of(fitted, scatter, x)
    return RobustDesign(x, made, fitted.solver.goal * made.objective, made.probability(bound))


def as_answer(fitted: Fitted, query: Query, scatter: Scatter, found: RobustDesign, aim: float) -> Answer:
    """Return a robust design as an answer."""
    answers = Answers(fitted, query, Designs(torch.from_numpy(found.x[None]), {}, None))
    plain = answers.answer(0)
    estimates = found.made.estimates()
    outputs = {name: estimates.get(name, estimate) for name, estimate in plain.outputs.items()}
    return replace(
        plain,
        objective=outputs[fitted.problem.objective.name],
        outputs=outputs,
        probability_feasible=found.probability,
        status="predicted" if found.probability >= aim - TUNING.slack else "unreachable",
        scatter=dict(scatter.normal),
        tolerance=dict(scatter.uniform),
    )


def snapped_design(fitted: Fitted, x: FloatArray) -> FloatArray:
    """Return the legal design (d) at x (d)."""
    return np.asarray(legal_designs(fitted.problem, torch.from_numpy(x[None])).numpy()[0])


def _better(a: RobustDesign, b: RobustDesign, aim: float) -> RobustDesign:
    """Return the better one: by objective if both are probable enough, else by probability."""
    enough = min(a.probability, b.probability) >= aim - TUNING.settled
    return min((a, b), key=lambda d: d.value if enough else -d.probability)


def _logit(p: float) -> float:
    p = min(max(p, 1e-9), 1.0 - 1e-9)
    return float(np.log(p / (1.0 - p)))


def _expit(t: float) -> float:
    return float(1.0 / (1.0 + np.exp(-t)))
