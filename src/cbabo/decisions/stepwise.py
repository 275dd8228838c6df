"""Recommended limits in round steps: a search over moves that people would say aloud, for the default method.

Symbols and shapes
    base     k        the present thresholds, natural units
    levels   k lists  values that each limit may take, the present one first and then further and further away, natural units
    at       c x k    which level each limit of a candidate has
    score    c        the utility of `recommend.Wish`; -inf where limits cannot be met

A limit moves in multiples of 1, 2 or 5 times a power of ten, to the end of its range, or to the value that was asked for. The
search starts with all limits as far as they may go and with every limit moved alone, so that it is never worse than one limit
alone. It then changes limits one by one and together, by what gains most. Of equally good candidates the one that moves less
counts: limits that buy nothing stay. Alternatives differ in kind: each leaves a limit in place that the best proposal moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from cbabo.decisions.wish import Proposals, Wish
from cbabo.domain.query import Query
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray

_DIGITS = (5.0, 2.0, 1.0)


@dataclass(frozen=True)
class StepTuning:
    """Numbers that tune the search."""

    step: float = 0.125
    """Of r: a step is the largest round number not above this."""
    sweeps: int = 5
    """Rounds of changes at most: further ones hardly gain."""
    later_sweeps: int = 2
    """The same for alternatives, which start close to their best."""
    gain: float = 0.05
    """Of the score: less is not worth a movement."""
    tried: int = 4
    """Levels of a limit that a sweep tries, from the present one to the furthest."""
    movement: float = 1e-3
    """What moving a limit over its whole range costs, in units of the score: it decides between equally good candidates."""


TUNING = StepTuning()


def round_step(largest: float) -> float:
    """Return the largest number of the form 1, 2 or 5 times a power of ten that is not above another.

    Examples:
        >>> round_step(0.25), round_step(7.0), round_step(1000.0)
        (0.2, 5.0, 1000.0)
    """
    power = 10.0 ** math.floor(math.log10(largest) + 1e-9)
    digit = next(d for d in _DIGITS if d * power <= largest * (1.0 + 1e-9))
    return float(f"{digit * power:.12g}")


def propose_steps(fitted: Fitted, row: Query, wish: Wish, targets: FloatArray, count: int) -> Proposals | None:
    """Return up to `count` proposals in round steps that follow all intents, different in kind; None where none is feasible.

    row: the base, a query with one row; targets: k, the values that limits move to at most, NaN where none was stated.
    """
    levels = [_levels(row, wish, targets, j) for j in range(len(wish.base))]
    search = _Search(fitted, wish, levels, row)
    first = search.starts()
    search.judge(first)
    if not search.feasible:
        return None
    best = search.improved([(search.best(), frozenset())], TUNING.sweeps)[0]
    kept = search.different(best, count)
    thresholds = np.array([[levels[j][i] for j, i in enumerate(at)] for at in kept])
    theta = np.where(np.array(kept) == 0, wish.base, np.clip(row.box.to_theta(thresholds), 0.0, 1.0))
    scores = np.array([search.scores[at] for at in kept])
    return Proposals(wish.base, theta, scores, wish.directions, followed=True, thresholds=thresholds)


@dataclass(eq=False)
class _Search:
    """The candidates that were judged so far, by their levels."""

    fitted: Fitted
    wish: Wish
    levels: list[list[float]]
    row: Query
    scores: dict[tuple[int, ...], float] = field(default_factory=dict)
    present: float | None = None
    """The objective at the base."""

    @property
    def feasible(self) -> bool:
        """Whether any candidate can be met."""
        return any(score > -np.inf for score in self.scores.values())

    def starts(self) -> list[tuple[int, ...]]:
        """Return all limits as far as they may go, and each limit alone; what must be tightened is, at least by a step."""
        ends, least = [len(some) - 1 for some in self.levels], self._least()
        loosened = np.flatnonzero(self.wish.directions > 0).tolist()
        found = [tuple(ends), tuple(self._with(least, dict.fromkeys(loosened, -1))), tuple(least)]
        found += [tuple(self._with(least, {j: -1})) for j in range(len(ends))]
        return list(dict.fromkeys(found))

    def changes(self, at: tuple[int, ...], locked: frozenset[int]) -> list[tuple[int, ...]]:
        """Return the candidates that differ from one in a single limit that is not locked."""
        least, found = self._least(), []
        for j, some in enumerate(self.levels):
            if j in locked:
                continue
            tried = np.unique(np.linspace(least[j], len(some) - 1, TUNING.tried).round().astype(int)).tolist()
            near = [i for i in (at[j] - 1, at[j] + 1) if least[j] <= i < len(some)]
            found += [tuple(self._with(list(at), {j: i})) for i in {*tried, *near}]
        return found

    def judge(self, some: list[tuple[int, ...]]) -> None:
        """Compute the scores of candidates that have none."""
        new = [at for at in dict.fromkeys(some) if at not in self.scores]
        if not new:
            return
        limits = np.array([[self.levels[j][i] for j, i in enumerate(at)] for at in new])
        theta = np.where(np.array(new) == 0, self.wish.base, np.clip(self.row.box.to_theta(limits), 0.0, 1.0))
        ranking = self.fitted.method.rank(self.fitted, np.vstack([self.wish.base, theta]))
        now = float(ranking.objective[0]) if self.present is None else self.present
        self.present = now
        score = self.wish.utility(theta, now - ranking.objective[1:])
        score = score - TUNING.movement * np.abs(theta - self.wish.base).sum(axis=1)
        usable = ranking.feasible[1:] & self.wish.follows(theta)
        self.scores |= dict(zip(new, np.where(usable, score, -np.inf).tolist(), strict=True))

    def best(self) -> tuple[int, ...]:
        """Return the best candidate so far, the first of equally good ones."""
        return max(self.scores, key=lambda at: self.scores[at])

    def improved(self, some: list[tuple[tuple[int, ...], frozenset[int]]], sweeps: int) -> list[tuple[int, ...]]:
        """Return the best candidates that are found from some, each by changing limits that are not locked for it.

        All of them are changed at once: a ranking of many costs little more than one of few.
        """
        ends = [at for at, _ in some]
        for _ in range(sweeps):
            changed = [self.changes(at, locked) for at, (_, locked) in zip(ends, some, strict=True)]
            self.judge([at for part in changed for at in part])
            together = [self._together(at, part) for at, part in zip(ends, changed, strict=True)]
            self.judge(together)
            better = [
                max([at, both, *part], key=lambda other: self.scores[other])
                for at, both, part in zip(ends, together, changed, strict=True)
            ]
            if better == ends:
                break
            ends = better
        return ends

    def _together(self, at: tuple[int, ...], changed: list[tuple[int, ...]]) -> tuple[int, ...]:
        """Return all changes of single limits together that are improvements."""
        found = list(at)
        for j in range(len(at)):
            mine = [other for other in changed if other[j] != at[j]]
            best = max(mine, key=lambda other: self.scores[other], default=at)
            found[j] = best[j] if self.scores[best] > self.scores[at] else at[j]
        return tuple(found)

    def different(self, best: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
        """Return the best candidate, and others that leave a limit in place which it moves, or move it clearly less far."""
        found = {_moved(best): best}
        free = [j for j, i in enumerate(best) if i > 0 and self.wish.directions[j] > 0]
        back = {j: tuple(self._with(list(best), {j: 0})) for j in free}
        self.judge(list(back.values()))
        order = sorted((j for j in free if self.scores[back[j]] > -np.inf), key=lambda j: -self.scores[back[j]])
        for other in self.improved([(back[j], frozenset([j])) for j in order[:count]], TUNING.later_sweeps):
            if any(other) and len(found) < count:
                found.setdefault(_moved(other), other)
        kept = sorted(found.values(), key=lambda at: -self.scores[at])
        for at in self._useful() if len(kept) < count else []:
            theta = np.array([self._theta(other) for other in (*kept, at)])
            apart = np.abs(theta[:-1] - theta[-1]).max(axis=1) >= self.wish.apart
            if len(kept) < count and apart.all() and self.scores[at] <= self.scores[kept[0]]:
                kept.append(at)
        return [kept[0], *sorted(kept[1:], key=lambda at: -self.scores[at])]

    def _useful(self) -> list[tuple[int, ...]]:
        """Return the candidates that can be met, best first, without those of which a part of the loosening does the same."""
        ranked = [at for at in sorted(self.scores, key=lambda at: -self.scores[at]) if self.scores[at] > -np.inf]
        levels, loosened = np.array(ranked), self.wish.directions > 0
        scores = np.array([self.scores[at] for at in ranked])
        found = []
        for i, at in enumerate(ranked):
            less = (levels <= levels[i]).all(1) & (levels[:, ~loosened] == levels[i, ~loosened]).all(1)
            less[i] = False
            if any(at) and not (less & (scores >= scores[i] - TUNING.gain)).any():
                found.append(at)
        return found

    def _theta(self, at: tuple[int, ...]) -> FloatArray:
        return np.asarray(self.row.box.to_theta(np.array([[self.levels[j][i] for j, i in enumerate(at)]]))[0])

    def _least(self) -> list[int]:
        """Return the least level of each limit: the first one for what should be tightened, if it can be."""
        tighten = self.wish.directions < 0
        return [min(1, len(some) - 1) if yes else 0 for some, yes in zip(self.levels, tighten, strict=True)]

    def _with(self, at: list[int], changed: dict[int, int]) -> list[int]:
        """Return levels with some changed; -1 is the furthest."""
        return [len(self.levels[j]) - 1 if changed.get(j) == -1 else changed.get(j, i) for j, i in enumerate(at)]


def _moved(at: tuple[int, ...]) -> tuple[bool, ...]:
    """Tell which limits a candidate moves."""
    return tuple(i > 0 for i in at)


def _levels(row: Query, wish: Wish, targets: FloatArray, j: int) -> list[float]:
    """Return the values that a limit may take, the present one first; a value to be tightened to is the only other one."""
    constraint, now, direction = row.box.movable[j], float(row.thresholds[0, j]), float(wish.directions[j])
    if direction == 0.0:
        return [now]
    target, sign = float(targets[j]), constraint.sign * direction
    if direction < 0 and not math.isnan(target):
        return [now, target]
    end = constraint.most_relaxed if direction > 0 else constraint.strictest
    reach = wish.furthest * constraint.scale
    last = target if not math.isnan(target) else end
    step = round_step(TUNING.step * wish.settings.recommend_range * constraint.scale)
    room = sign * (last - now) if not math.isnan(target) else min(sign * (last - now), reach)
    steps = math.floor(room / step + 1e-9)
    found = [now, *(float(f"{now + sign * step * i:.12g}") for i in range(1, steps + 1))]
    ended = sign * (last - found[-1])
    if 1e-9 * constraint.scale < ended and room >= sign * (last - now) - 1e-12 * constraint.scale:
        found.append(last)
    elif abs(ended) <= 1e-9 * constraint.scale and len(found) > 1:
        found[-1] = last
    return found
