"""Recommending limits: many thresholds around the present ones, ranked by the method, the most useful kept.

Symbols and shapes
    base     k        the present thresholds, normalised: 0 strictest, 1 most relaxed
    a        k        intents: -1 tighten, 0 lock, +1 loosen
    delta    c x k    what a candidate changes, after clipping to the box; 0 for a locked limit
    r                 reach, a setting

Guided candidates move every limit as its intent says (half-normal steps of deviation 0.5 r); the others explore with deviation
0.4 r. Where there are rounds, half of the candidates are spent in them: each looks around the best so far, with shorter steps,
and in the end limits go back that moved for nothing. Kept are candidates whose answers obey their own thresholds. The score of a
candidate: w_f times the gain of the objective, plus lambda_r for every unit tightened as asked, less lambda_h for every unit by
which a limit is relaxed that should be tightened, less lambda_r times the square of loosening beyond the allowance.

Under the paper method "obey" is said of the surrogates' means, and the objective counts in its own unit. Under the default
method it is said of the probability asked for, and the objective counts in units in which it was learned: those of the problem
do not matter. With large gains w_f would outweigh the barrier, which is meant to be hard: candidates that move a limit against
its intent are passed over as long as one that follows all intents is feasible. The paper also lets locked limits move a little;
here locked means equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbabo.answering.answers import LimitChange, Recommendation
from cbabo.answering.predict import Answers, predict_many
from cbabo.domain.constraints import FEASIBILITY_TOLERANCE
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.methods.settings import MethodSettings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child

Intent = Literal["tighten", "lock", "loosen", "<", "=", ">"]
_DIRECTIONS = {"tighten": -1, "<": -1, "lock": 0, "=": 0, "loosen": 1, ">": 1}
_NAMES = {-1: "tighten", 0: "lock", 1: "loosen"}
_NOT_FOLLOWED = "no limits that follow all intents are predicted to be feasible; these move some of them the other way"


@dataclass(frozen=True)
class RecommendTuning:
    """Numbers that tune a recommendation. The explorer's page follows the same steps and reads these from its document."""

    least_tightening: float = 0.025
    """Of r: how much tighter a limit must become that should be tightened; less would not be noticed in a negotiation."""
    different: float = 0.25
    """Of r: how far two proposals must differ in some limit."""
    parents: int = 8
    """Best candidates so far, around which a further round looks."""
    narrower: float = 0.8
    """Factor by which steps shrink from round to round: after 16 rounds they are 3 % of the first."""
    moved: float = 0.5
    """Share of the limits that a step of a round moves."""
    equal: float = 1e-5
    """Of the range of scores: closer ones are equally good, so that rounding does not decide between them."""
    furthest: float = 2.0
    """Of r: how far rounds may lead from the base."""
    allowance: float = 1.0
    """Loosening, in normalised thresholds, that costs nothing; at least this much, and the share below of the base."""
    allowance_share: float = 0.05


TUNING = RecommendTuning()


def recommend(
    fitted: Fitted, base: Mapping[str, float], intents: Mapping[str, Intent], alternatives: int
) -> Recommendation:
    """Propose limits; the arguments are those of `Model.recommend`."""
    if not isinstance(alternatives, int) or isinstance(alternatives, bool) or alternatives < 0:
        raise InputError(f"recommend: alternatives must be a whole number from 0 on, got {alternatives!r}")
    problem = fitted.problem
    row = _base(problem, base)
    directions = _directions(problem, intents)
    notes = _check_movable(problem, row, directions)
    found = propose(fitted, row.nearest_in_box[0], directions, 1 + alternatives)
    thresholds = problem.box.from_theta(found.theta)
    thresholds = np.where(found.theta == found.base, row.thresholds, thresholds)  # To the last bit where nothing moved.
    answers = predict_many(
        fitted,
        Query(problem.box, np.vstack([row.thresholds, thresholds]), np.vstack([row.theta, found.theta])),
    )
    proposals = tuple(_proposal(found, answers, i, notes) for i in range(len(found.theta)))
    return replace(proposals[0], alternatives=proposals[1:])


@dataclass(frozen=True, eq=False)
class Proposals:
    """What a recommendation found, best first."""

    base: FloatArray
    """k."""
    theta: FloatArray
    """p x k."""
    utility: FloatArray
    """p."""
    directions: FloatArray
    """k, a."""
    followed: bool
    """Whether every proposal follows the intents; else no candidate that does so is predicted to be feasible."""


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


@dataclass(frozen=True, eq=False)
class Wish:
    """What is asked for, and what candidates theta (c x k) are to it."""

    base: FloatArray
    """k."""
    directions: FloatArray
    """k, a."""
    settings: MethodSettings

    def candidates(self, total: int, random: np.random.Generator) -> FloatArray:
        """Return candidates around the base (total x k), guided and exploring ones; locked limits do not move."""
        r, k = self.settings.recommend_range, len(self.base)
        guided = round(self.settings.recommend_guided * total)
        follow = self.directions * np.abs(random.normal(0.0, 0.5 * r, (guided, k)))
        explore = np.where(self.directions == 0, 0.0, random.normal(0.0, 0.4 * r, (total - guided, k)))
        return np.asarray(np.clip(self.base + np.vstack([follow, explore]), 0.0, 1.0))

    def around(
        self, theta: FloatArray, scores: FloatArray, i: int, size: int, random: np.random.Generator
    ) -> FloatArray:
        """Return the candidates (size x k) of round i, around the best so far; where these follow the intents, so do they."""
        r, k = self.settings.recommend_range, len(self.base)
        best = theta[self.ranked(theta, scores)[: TUNING.parents]]
        steps = random.normal(0.0, 0.5 * r * TUNING.narrower**i, (size, k))
        moved = random.random((size, k)) < max(TUNING.moved, 1.0 / k)
        new = best[np.arange(size) % len(best)] + np.where(moved, steps, 0.0)
        less = more = np.where(self.directions == 0, 0.0, TUNING.furthest * r)
        if self.follows(best).all():
            least = (1.0 + 1e-9) * TUNING.least_tightening * r  # Rounding must not lead below the least tightening.
            less = np.where(self.directions > 0, 0.0, less)
            more = np.where(self.directions < 0, -least, more)
        return np.asarray(np.clip(np.clip(new, self.base - less, self.base + more), 0.0, 1.0))

    def utility(self, theta: FloatArray, gain: FloatArray) -> FloatArray:
        """Return the scores (c) of candidates whose answers gain this (c)."""
        s, delta = self.settings, theta - self.base
        allowance = np.maximum(TUNING.allowance_share * np.abs(self.base), TUNING.allowance)
        tightened = np.where(self.directions == -1, np.clip(-delta, 0.0, None), 0.0).sum(axis=1)
        relaxed = np.where(self.directions <= 0, np.clip(delta, 0.0, None), 0.0).sum(axis=1)
        excessive = np.where(self.directions == 1, np.clip(delta - allowance, 0.0, None) ** 2, 0.0).sum(axis=1)
        reward = s.reward_weight * (tightened - excessive)
        return np.asarray(s.objective_weight * gain + reward - s.barrier_weight * relaxed)

    def follows(self, theta: FloatArray) -> NDArray[np.bool_]:
        """Tell for each candidate (c) whether it follows all intents.

        Locked limits are equal; those to be tightened become tighter by more than a little, if they can; those that may be
        loosened do not become tighter.
        """
        delta, least = theta - self.base, TUNING.least_tightening * self.settings.recommend_range
        needed = np.where(self.directions < 0, np.minimum(least, self.base), 0.0)
        moved = (self.directions != 0) & (self.directions * delta >= needed)
        return np.asarray((moved | ((self.directions == 0) & (delta == 0.0))).all(axis=1))

    def preferred(self, theta: FloatArray, scores: FloatArray) -> FloatArray:
        """Return the scores (c), -inf for candidates that do not follow the intents if any does."""
        following = np.where(self.follows(theta), scores, -np.inf)
        return following if following.max() > -np.inf else scores

    def equal(self, scores: FloatArray) -> float:
        """Return by how much scores may differ and count as equal."""
        return TUNING.equal * max(float(np.ptp(scores[scores > -np.inf])), 1.0)

    def ranked(self, theta: FloatArray, scores: FloatArray) -> NDArray[np.int64]:
        """Return the candidates with a score, best first; of equally good ones that which changes less."""
        some = np.flatnonzero(scores > -np.inf)
        changed = np.abs(theta[some] - self.base).sum(axis=1)
        return np.asarray(some[np.lexsort((changed, -np.round(scores[some] / self.equal(scores))))])

    def different(self, theta: FloatArray, ranked: NDArray[np.int64], count: int) -> list[int]:
        """Return the first, then the next that differs from it, and so on."""
        kept: list[int] = []
        while len(kept) < count and len(ranked):
            kept.append(int(ranked[0]))
            least = TUNING.different * self.settings.recommend_range
            ranked = ranked[np.abs(theta[ranked] - theta[kept[-1]]).max(axis=1) >= least]
        return kept


def _proposal(found: Proposals, answers: Answers, i: int, notes: tuple[str, ...]) -> Recommendation:
    """Put together one proposal: what it changes, and what each change alone would do."""
    fitted, query, base = answers.fitted, answers.query, answers.answer(0)
    only = np.eye(len(found.base), dtype=bool)
    singly = Query(
        query.box,
        np.where(only, query.thresholds[1 + i], query.thresholds[0]),
        np.where(only, query.theta[1 + i], query.theta[0]),
    )
    alone = predict_many(fitted, singly).moments[0][:, 0]
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
        if not isinstance(intent, str) or intent not in _DIRECTIONS:
            raise InputError(f"recommend: the intent of {name} must be tighten, lock or loosen, got {shown(intent)}")
    return np.array([_DIRECTIONS[intents.get(name, "lock")] for name in names], dtype=np.float64)


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
