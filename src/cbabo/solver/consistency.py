"""Answers that agree with each other: none is worse than the answer to stricter limits.

Symbols and shapes, in units of the standardised outputs, as in `continuous`; b answers, p designs of a pool
    x      p x d    the pool: designs of the library's entries and of the answers themselves, measured ones left out
    z, s   p x q    their means and standard deviations
    own    p        the probability with which each obeys the limits that it was solved for

A solver may end in a worse optimum for one threshold than for its neighbour. A design that was solved for stricter limits obeys
looser ones at least as probably, so that it may answer them too: an answer is replaced by the best design of the pool that is
better, is probable enough, and is at least as probable for these limits as for its own. Limits that the solver cannot meet are
searched for once more from designs that lie apart (see `reaching`). Where that finds none, the answer is the most probable design
if it is more likely than not to obey them, else a design for the closest limits that can be met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cbabo.domain.query import Query
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.tolerances import PROBABILITY_SLACK, SAME_DESIGN
from cbabo.solver.continuous import Solver, SolverAnswer
from cbabo.solver.library import FastMap
from cbabo.solver.reaching import Reaching


@dataclass(frozen=True)
class ConsistencyTuning:
    """Numbers of the comparison between answers."""

    gain: float = 1e-6
    """Least gain of the objective, in standardised units, for which an answer is replaced: less is rounding."""
    rows: int = 256
    """Answers that are compared with the pool at a time, which bounds the memory."""
    likely: float = 0.5
    """Probability from which on a design that has less than asked for stays the answer: it is likely to obey the limits."""


TUNING = ConsistencyTuning()


def full_answers(fast_map: FastMap, query: Query, probability: float) -> tuple[SolverAnswer, ...]:
    """Return the solver's answers to a query; where fast answers or others are better, what the solver finds from these."""
    solver = fast_map.solver
    own = solver.answers(query, probability)
    found = list(consistent(fast_map, query, own, probability, fast_map.answers(query, probability)))
    replaced = [i for i, answer in enumerate(found) if answer is not own[i] and answer.measured is None]
    for i, bound in zip(replaced, solver.bound(query.theta[replaced]), strict=True):
        better = solver.predict_from(bound, found[i].x, probability)
        enough = better.probability >= probability - PROBABILITY_SLACK and not solver.is_measured(better.x[None])[0]
        if enough and better.objective < found[i].objective - TUNING.gain:
            found[i] = replace(better, measured=solver.measured_row(better.x))
    replaced += _met_otherwise(fast_map, query, found, probability)
    found = list(consistent(fast_map, query, found, probability)) if replaced else found
    _bring_close(fast_map, query, found, probability)
    return tuple(found)


def _met_otherwise(fast_map: FastMap, query: Query, found: list[SolverAnswer], probability: float) -> list[int]:
    """Replace answers that do not have the probability where a further search finds designs that do; return which."""
    solver, replaced = fast_map.solver, []
    search = Reaching(solver, fast_map.library, probability)
    for i, (bound, answer) in enumerate(zip(solver.bound(query.theta), found, strict=True)):
        if answer.probability >= search.aim:
            continue
        x, chance = search.design(query.theta[i])
        if chance < search.aim or solver.is_measured(x[None])[0]:
            continue
        better = solver.predict_from(bound, x, probability)
        if better.probability < search.aim or solver.is_measured(better.x[None])[0]:
            better = SolverAnswer(x, solver.at(bound, x).objective, chance)
        found[i] = replace(better, measured=solver.measured_row(better.x))
        replaced.append(i)
    return replaced


def _bring_close(fast_map: FastMap, query: Query, found: list[SolverAnswer], probability: float) -> None:
    """Replace designs that break limits which cannot be met by designs for the closest ones that can, and state these."""
    solver = fast_map.solver
    for i, (bound, answer) in enumerate(zip(solver.bound(query.theta), found, strict=True)):
        if answer.probability >= TUNING.likely or answer.probability >= probability - PROBABILITY_SLACK:
            continue
        met = Reaching(solver, fast_map.library, probability).closest(query.theta[i])
        if met is not None:
            near = SolverAnswer(met.x, solver.at(bound, met.x).objective, solver.probability(bound, met.x))
            same = np.flatnonzero(np.abs(solver.posterior.measured.x - met.x).max(1) <= SAME_DESIGN)
            found[i] = replace(near, measured=int(same[0]) if len(same) else None, closest=met.theta)


def consistent(
    fast_map: FastMap,
    query: Query,
    answers: Sequence[SolverAnswer],
    probability: float,
    others: Sequence[SolverAnswer] = (),
) -> tuple[SolverAnswer, ...]:
    """Return the answers to a query, each replaced where the pool has a better one; others: more answers for the pool."""
    pool = _pool(fast_map, [*answers, *others])
    bound, found = fast_map.solver.bound(query.theta), list(answers)
    for first in range(0, len(found), TUNING.rows):
        rows = slice(first, first + TUNING.rows)
        found[rows] = pool.better(bound[rows], found[rows], probability)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Pool:
    """Designs that were solved for some limits."""

    solver: Solver
    x: FloatArray
    z: FloatArray
    s: FloatArray
    own: FloatArray

    def better(self, bound: FloatArray, answers: Sequence[SolverAnswer], probability: float) -> list[SolverAnswer]:
        """Return for each answer, with these bounds (b x r), itself or a better design of the pool."""
        solver = self.solver
        value = solver.goal * self.z[:, 0]
        aim = probability - PROBABILITY_SLACK
        reached = np.array([a.probability >= aim for a in answers])
        own = np.array([a.objective for a in answers])
        gains = (value < own[:, None] - TUNING.gain) | ~reached[:, None]
        obeyed = gains & (solver.sign * self.z[:, solver.output] <= bound[:, None]).all(-1)
        rows, columns = np.nonzero(obeyed)
        chance = solver.joint(bound[rows], self.z[columns], self.s[columns])
        enough = (chance >= aim) & (chance >= self.own[columns] - PROBABILITY_SLACK)
        best: dict[int, SolverAnswer] = {}
        for i, j, p in zip(rows[enough].tolist(), columns[enough].tolist(), chance[enough].tolist(), strict=True):
            candidate = SolverAnswer(self.x[j], float(value[j]), p, solver.measured_row(self.x[j]))
            if i not in best or candidate.objective < best[i].objective:
                best[i] = candidate
        return [self._chosen(answer, best.get(i), aim) for i, answer in enumerate(answers)]

    def _chosen(self, answer: SolverAnswer, other: SolverAnswer | None, aim: float) -> SolverAnswer:
        """Return the better one; a measured design is left only for a smaller expected loss."""
        if other is None or (
            answer.measured is not None
            and answer.probability >= aim
            and self.solver.loss(other) >= self.solver.loss(answer)
        ):
            return answer
        return other


def _pool(fast_map: FastMap, answers: Sequence[SolverAnswer]) -> _Pool:
    """Return the pool of some answers."""
    solver, library, q = fast_map.solver, fast_map.library, len(fast_map.solver.posterior.problem.outputs)
    parts = [(library.x, library.mean[:, :q], library.std, fast_map.entry_probability)]
    solved = [a for a in answers if a.measured is None]
    if len(answers) > 1 and solved:  # A single answer has nothing to be compared with but the entries.
        x = np.array([a.x for a in solved])
        own = np.array([a.probability for a in solved])
        parts.append((x, fast_map.batched.mean(x)[:, :q], fast_map.batched.std(x), own))
    return _Pool(solver, *(np.concatenate(columns) for columns in zip(*parts, strict=True)))
