"""Recommending limits: many thresholds around the present ones, ranked by the method, the most useful kept.

Symbols and shapes
    base     k        the present thresholds, normalised: 0 strictest, 1 most relaxed
    a        k        intents: -1 tighten, 0 lock, +1 loosen
    delta    c x k    what a candidate changes, after clipping to the box; 0 for a locked limit
    r                 reach, a setting

Guided candidates move every limit as its intent says (half-normal steps of deviation 0.5 r); the others explore with deviation
0.4 r. Where there are rounds, half of the candidates are spent in them: each looks around the best so far, with shorter steps,
and in the end useless moves are undone. Kept are candidates whose answers obey their own thresholds. The score of a
candidate: w_f times the gain of the objective, plus lambda_r for every unit tightened as asked, less lambda_h for every unit by
which a limit is relaxed that should be tightened, less lambda_r times the square of loosening beyond the allowance.

Under the default method limits move in round steps instead of at random (see `stepwise`); candidates at random are a fallback for
intents that cannot all be followed. Under the paper method "obey" is said of the surrogates' means, and the objective counts in
its own unit. Under the default method it is said of the probability asked for, and the objective counts in units in which it was
learned: those of the problem do not matter. With large gains w_f would outweigh the barrier, which is meant to be hard:
candidates that move a limit against its intent are passed over as long as one that follows all intents is feasible. The paper
also lets locked limits move a little; here locked means equal. An intent may state a value, as ("loosen", 130): the limit then
moves to it at most, and one that is to be tightened moves exactly there if that can be met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbabo.answering.answers import LimitChange, Recommendation
from cbabo.answering.predict import Answers, predict_many
from cbabo.decisions.stepwise import propose_steps
from cbabo.decisions.wish import Proposals, Wish
from cbabo.domain.constraints import FEASIBILITY_TOLERANCE
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.methods.settings import DefaultSettings, MethodSettings
from cbabo.numerics.arrays import FloatArray, is_number
from cbabo.numerics.seeding import child

Direction = Literal["tighten", "lock", "loosen", "<", "=", ">"]
Intent = Direction | tuple[Direction, float]
"""A direction, or a direction and the value to which the limit moves at most."""
_DIRECTIONS = {"tighten": -1, "<": -1, "lock": 0, "=": 0, "loosen": 1, ">": 1}
_NAMES = {-1: "tighten", 0: "lock", 1: "loosen"}
_DONE = {-1: "tightened", 1: "loosened"}
_NOT_FOLLOWED = "no limits that follow all intents are predicted to be feasible; these move some of them the other way"


def recommend(
    fitted: Fitted, base: Mapping[str, float], intents: Mapping[str, Intent], alternatives: int
) -> Recommendation:
    """Propose limits; the arguments are those of `Model.recommend`."""
    if not isinstance(alternatives, int) or isinstance(alternatives, bool) or alternatives < 0:
        raise InputError(f"recommend: alternatives must be a whole number from 0 on, got {alternatives!r}")
    problem = fitted.problem
    row = _base(problem, base)
    directions, targets = _directions(problem, intents), _targets(fitted, row, intents)
    notes = _check_movable(problem, row, directions)
    found = _found(fitted, row, directions, targets, 1 + alternatives)
    thresholds = problem.box.from_theta(found.theta) if found.thresholds is None else found.thresholds
    thresholds = np.where(found.theta == found.base, row.thresholds, thresholds)  # To the last bit where nothing moved.
    answers = predict_many(
        fitted,
        Query(problem.box, np.vstack([row.thresholds, thresholds]), np.vstack([row.theta, found.theta])),
    )
    notes += _missed(problem, directions, targets, thresholds[0])
    proposals = tuple(_proposal(found, answers, i, notes) for i in range(len(found.theta)))
    return replace(proposals[0], alternatives=proposals[1:])


def _found(fitted: Fitted, row: Query, directions: FloatArray, targets: FloatArray, count: int) -> Proposals:
    """Return proposals in round steps under the default method, if limits that follow all intents can be met."""
    base = row.nearest_in_box[0]
    if isinstance(fitted.settings, DefaultSettings):
        wish, tighten = Wish(base, directions, fitted.settings), directions < 0
        found = propose_steps(fitted, row, wish, targets, count)
        if found is None and (tighten & ~np.isnan(targets)).any():  # Not so far, then.
            found = propose_steps(fitted, row, wish, np.where(tighten, np.nan, targets), count)
        if found is not None:
            return found
    return propose(fitted, base, directions, count)


def propose(fitted: Fitted, base: FloatArray, directions: FloatArray, count: int) -> Proposals:
    """Return up to `count` thresholds that follow the intents, clearly different from each other.

    Only if no candidate that follows them is feasible, the others are returned.
    """
    settings, method = fitted.settings, fitted.method
    random = child(fitted.seed, "recommend")
    wish = Wish(base, directions, settings)
    first, *later = _sizes(settings)
    theta = wish.candidates(first, random)
    both = np.vstack([wish.base, theta])
    ranking = method.rank(fitted, both)
    if not ranking.feasible[1:].any():
        raise InputError(_nothing_feasible(fitted.problem, method.nearest_reachable(fitted, wish.base, both)))
    now = ranking.objective[0]

    def score(theta: FloatArray, objective: FloatArray, feasible: NDArray[np.bool_]) -> FloatArray:
        return np.where(feasible, wish.utility(theta, now - objective), -np.inf)

    def ranked_score(theta: FloatArray) -> FloatArray:
        ranking = method.rank(fitted, theta)
        return score(theta, ranking.objective, ranking.feasible)

    scores = score(theta, ranking.objective[1:], ranking.feasible[1:])
    for i, size in enumerate(later, start=1):
        new = wish.around(theta, wish.preferred(theta, scores), i, size, random)
        theta, scores = np.vstack([theta, new]), np.append(scores, ranked_score(new))
    scores = wish.preferred(theta, scores)
    kept = wish.different(theta, wish.ranked(theta, scores), count)
    chosen, utility = theta[kept], scores[kept]
    if later:
        chosen, utility = _undo_useless(wish, chosen, utility, ranked_score, wish.equal(scores))
    return Proposals(wish.base, chosen, utility, wish.directions, bool(wish.follows(chosen).all()))


def _proposal(found: Proposals, answers: Answers, i: int, notes: tuple[str, ...]) -> Recommendation:
    """Put together one proposal: what it changes, and what each change alone would do."""
    fitted, query, base = answers.fitted, answers.query, answers.answer(0)
    moved = np.flatnonzero(query.thresholds[1 + i] != query.thresholds[0])
    only = np.eye(len(found.base), dtype=bool)[moved]
    singly = Query(
        query.box,
        np.where(only, query.thresholds[1 + i], query.thresholds[0]),
        np.where(only, query.theta[1 + i], query.theta[0]),
    )
    alone = np.full(len(found.base), base.objective.mean)
    alone[moved] = predict_many(fitted, singly, fast=i > 0 and found.thresholds is not None).moments[0][:, 0]
    goal = fitted.problem.objective.sign
    answer = answers.answer(1 + i)
    warnings = (*answer.warnings, *notes, *(() if found.followed else (_NOT_FOLLOWED,)))
    answer = replace(answer, warnings=warnings)
    changes = {
        name: LimitChange(
            _NAMES[int(found.directions[j])],
            base.thresholds[name],
            answer.thresholds[name],
            goal * (base.objective.mean - float(alone[j])),
        )
        for j, name in enumerate(query.box.names)
    }
    improvement = goal * (base.objective.mean - answer.objective.mean)
    return Recommendation(answer.thresholds, answer, base, improvement, float(found.utility[i]), changes)


def _sizes(settings: MethodSettings) -> list[int]:
    """Return how many candidates are tried at first and in each further round."""
    total, rounds = settings.recommend_candidates, settings.recommend_rounds
    later = total // 2 // rounds if rounds else 0
    return [total - rounds * later] + [later] * rounds * (later > 0)


def _undo_useless(
    wish: Wish, theta: FloatArray, scores: FloatArray, score: Callable[[FloatArray], FloatArray], equal: float
) -> tuple[FloatArray, FloatArray]:
    """Return proposals (p x k) without movements that gain nothing, and their scores (p)."""
    for j, value in enumerate(wish.base):
        back = theta.copy()
        back[:, j] = value
        found = np.where(wish.follows(back) | ~wish.follows(theta), score(back), -np.inf)
        kept = found < scores - equal
        theta, scores = np.where(kept[:, None], theta, back), np.where(kept, scores, found)
    return theta, scores


def _base(problem: Problem, base: Mapping[str, float]) -> Query:
    query = Query.of(problem.box, problem.box.complete(base))
    for constraint, value in zip(problem.box.movable, query.thresholds[0], strict=True):
        low, high = sorted((constraint.strictest, constraint.most_relaxed))
        tolerance = FEASIBILITY_TOLERANCE * constraint.scale
        if not low - tolerance <= value <= high + tolerance:
            raise InputError(
                f"recommend: the base of {constraint.name} must lie between {low:g} and {high:g}, got {value:g}; "
                "start from limits inside the box"
            )
    return query


def _directions(problem: Problem, intents: Mapping[str, Intent]) -> FloatArray:
    names = problem.box.names
    if not isinstance(intents, Mapping):
        raise InputError(
            f"recommend: expected intents as a mapping of limits to tighten, lock or loosen, got {shown(intents)}"
        )
    for name, intent in intents.items():
        if name not in names:
            fixed = any(c.name == name for c in problem.constraints)
            why = f"the limit of {name!r} is fixed by the problem" if fixed else f"unknown limit {shown(name)}"
            raise InputError(f"recommend: {why}; expected one of {', '.join(names)}")
        direction = _direction(intent)
        if not isinstance(direction, str) or direction not in _DIRECTIONS:
            raise InputError(f"recommend: the intent of {name} must be tighten, lock or loosen, got {shown(intent)}")
    return np.array([_DIRECTIONS[_direction(intents.get(name, "lock"))] for name in names], dtype=np.float64)


def _direction(intent: Intent) -> Direction:
    return intent[0] if isinstance(intent, tuple) and len(intent) == 2 else intent


def _targets(fitted: Fitted, row: Query, intents: Mapping[str, Intent]) -> FloatArray:
    """Return the values (k) that intents state; NaN where there is none."""
    found = np.full(len(row.box.names), np.nan)
    for j, (c, now) in enumerate(zip(row.box.movable, row.thresholds[0].tolist(), strict=True)):
        intent = intents.get(c.name)
        if not isinstance(intent, tuple):
            continue
        direction, value = _DIRECTIONS[intent[0]], intent[1]
        if not isinstance(fitted.settings, DefaultSettings):
            raise InputError(
                f"recommend: the paper method moves limits by directions alone, got {shown(intent)} for {c.name}; leave the "
                "value out"
            )
        if not direction or not is_number(value):
            raise InputError(
                f'recommend: the intent of {c.name} with a value must be ("tighten", number) or ("loosen", number), got '
                f"{shown(intent)}"
            )
        low, high = sorted((now, c.most_relaxed if direction > 0 else c.strictest))
        if not low <= value <= high:
            raise InputError(
                f"recommend: {c.name} at {now:g} can be {_DONE[direction]} to a value between {low:g} and {high:g}, got {value:g}"
            )
        found[j] = value
    return found


def _missed(problem: Problem, directions: FloatArray, targets: FloatArray, found: FloatArray) -> tuple[str, ...]:
    """Say which limits could not be tightened to the value asked for."""
    return tuple(
        f"{c.name} is tightened to {after:g} and not to {target:g}, which is predicted to be unreachable"
        for c, direction, target, after in zip(problem.box.movable, directions, targets, found, strict=True)
        if direction < 0 and not np.isnan(target) and after != target
    )


def _check_movable(problem: Problem, base: Query, directions: FloatArray) -> tuple[str, ...]:
    """Refuse intents that leave nothing to move; say which limits are at the end of their range already."""
    theta = base.nearest_in_box[0]
    ends = {-1: ("strictest", "tightened", 0.0), 1: ("loosest", "loosened", 1.0)}
    notes = []
    stuck = 0
    for name, value, direction in zip(problem.box.names, theta, directions, strict=True):
        if direction != 0 and value == ends[int(direction)][2]:
            end, done, _ = ends[int(direction)]
            notes.append(f"{name} is at its {end} already and cannot be {done} further")
            stuck += 1
    if stuck == int(np.count_nonzero(directions)):
        why = "; ".join(notes) if notes else "every limit is locked"
        raise InputError(
            f"recommend: there is nothing to move ({why}); let at least one limit be tightened or loosened"
        )
    return tuple(notes)


def _nothing_feasible(problem: Problem, nearest: FloatArray | None) -> str:
    """Say which limits near the base can be met."""
    if nearest is None:
        return "recommend: no limits near the base can be met, as the model predicts; start from more relaxed limits"
    named = problem.box.named(problem.box.from_theta(nearest[None])[0])
    stated = ", ".join(f"{name} = {value:.6g}" for name, value in named.items())
    return f"recommend: no candidate near the base obeys its limits; the nearest that can be met: {stated}"
