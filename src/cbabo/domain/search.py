"""Whether any design obeys all known relations: by linear programming where these are linear, else by a search.

Symbols and shapes as in `relations`; t is the least slack of all relations, in units of their ranges.

With discrete variables a linear problem is one with 0-1 variables, one for each legal value. A region without volume, as that of
"a <= b" with "b <= a", counts as empty where variables are continuous: a number that is computed lies on one side of it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from cbabo.domain.relations import Relations
from cbabo.domain.space import Discrete, Integer, Real
from cbabo.errors import shown
from cbabo.numerics.arrays import FloatArray


@dataclass(frozen=True)
class SearchTuning:
    """Numbers that tune the search."""

    starts: int = 20
    """Designs of least violation from which it is minimised."""
    enumerated: int = 100_000
    """Designs up to which a space without continuous variables is searched completely."""
    binaries: int = 2_000
    """Legal values of discrete variables up to which a linear problem is solved as one with 0-1 variables."""
    room: float = 1e-8
    """Least slack of a design that counts as inside, where all variables are continuous."""
    seconds: float = 10.0
    """Of the solver of 0-1 problems."""


TUNING = SearchTuning()


def seed_designs(relations: Relations, drawn: FloatArray) -> FloatArray:
    """Return designs (s x d) that probably obey all relations, where few or none of those drawn (b x d) do."""
    size = relations.space.size
    found = [_linear(relations)]
    if size is not None and size <= TUNING.enumerated:
        every = np.array([list(point.values()) for point in relations.space.designs()], dtype=np.float64)
        found.append(
            relations.space.unit(every[relations.obeyed(every)]) if len(every) else np.empty((0, drawn.shape[1]))
        )
    elif not len(found[0]) and not (_all_continuous(relations) and relations.linear[2].all()):
        found.append(_least_violating(relations, drawn))
    return np.vstack(found)


def _all_continuous(relations: Relations) -> bool:
    return all(isinstance(v, Real) for v in relations.space.variables)


def no_design(relations: Relations, texts: tuple[str, ...]) -> str:
    """Say that no design obeys the relations, and how sure that is."""
    size = relations.space.size
    listed = "; ".join(texts) if texts else "that the formulas of variables are finite"
    listed = listed if len(listed) <= 300 else f"{listed[:300]}..."
    certain = bool(relations.linear[2].all()) and (not relations.finite or not len(_linear(relations)))
    if certain or (size is not None and size <= TUNING.enumerated):
        return (
            f"relations: no design obeys them all{' with room to spare' if size is None else ''}: {shown(listed)}; correct "
            "them or the ranges of the variables, and state an equality by leaving out the variable that it determines"
        )
    return (
        f"relations: no design was found that obeys them all by a search from many designs: {shown(listed)}; correct them or the "
        "ranges of the variables"
    )


def _linear(relations: Relations) -> FloatArray:
    """Return the design (1 x d) of largest slack by linear programming; none (0 x d) if there is none, or not all are linear."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    A, c, which = relations.linear
    d = A.shape[1]
    nothing = np.empty((0, d))
    lattice, places = _lattice(relations)
    binaries = sum(len(p) for p in places)
    if not which.all() or binaries > TUNING.binaries:
        return nothing
    # Variables: x, t, and for each legal value of a discrete variable whether it is taken.
    n = d + 1 + binaries
    length = np.linalg.norm(A, axis=1)
    rows = [
        LinearConstraint(np.column_stack([A, np.where(length > 0, length, 1.0), np.zeros((len(A), binaries))]), ub=-c)
    ]
    at = d + 1
    for i, p in zip(lattice, places, strict=True):
        chosen, value = np.zeros((1, n)), np.zeros((1, n))
        chosen[0, at : at + len(p)] = 1.0
        value[0, at : at + len(p)], value[0, i] = p, -1.0
        rows += [LinearConstraint(chosen, 1.0, 1.0), LinearConstraint(value, 0.0, 0.0)]
        at += len(p)
    low, high = np.zeros(n), np.ones(n)
    low[d] = 0.0
    goal, whole = np.zeros(n), np.zeros(n)
    goal[d], whole[d + 1 :] = -1.0, 1.0
    ends = Bounds(low, high)
    solved = milp(goal, integrality=whole, bounds=ends, constraints=rows, options={"time_limit": TUNING.seconds})
    if solved.x is None or (not lattice and solved.x[d] <= TUNING.room):
        return nothing
    return np.clip(solved.x[None, :d], 0.0, 1.0)


def _lattice(relations: Relations) -> tuple[list[int], list[FloatArray]]:
    """Return the columns of the variables with a list of numbers, and where their values are; no relation is about labels."""
    space = relations.space
    some = [
        (int(at), v.to_unit(np.asarray(v.values, dtype=np.float64)))
        for v, at in zip(space.variables, relations.scaling.column, strict=True)
        if isinstance(v, Integer | Discrete)
    ]
    return [at for at, _ in some], [places for _, places in some]


def _least_violating(relations: Relations, drawn: FloatArray) -> FloatArray:
    """Return designs in which the largest violation is least, from the best of those drawn, and their rounded neighbours."""
    from cbabo.numerics.slsqp import Region, minimise

    d = drawn.shape[1]
    order = np.argsort(relations.values(drawn).max(1, initial=-1.0), kind="stable")[: TUNING.starts]
    away = np.eye(d + 1)[-1]
    found = []

    def slack(v: FloatArray) -> FloatArray:
        return np.asarray(v[-1] - relations.values(v[None, :d])[0])

    def slope(v: FloatArray) -> FloatArray:
        J = relations.values_and_slopes(v[None, :d])[1][0]
        return np.column_stack([-J, np.ones(len(J))])

    for x in drawn[order]:
        worst = float(relations.values(x[None])[0].max(initial=0.0))
        ends = Region(np.append(np.zeros(d), -1.0), np.append(np.ones(d), max(worst, 0.0) + 1.0))
        solved = minimise(lambda v: float(v[-1]), lambda v: away, slack, slope, np.append(x, worst), ends)
        found.append(solved.v[:d])
    return _with_rounded(relations, np.array(found).reshape(-1, d))


def _with_rounded(relations: Relations, x: FloatArray) -> FloatArray:
    """Add to relaxed designs those with each discrete variable at the legal value below or above, where these are few."""
    lattice, places = _lattice(relations)
    if not lattice or len(lattice) > 10:
        return x
    found = [x]
    for design in x:
        sides = []
        for i, legal in zip(lattice, places, strict=True):
            right = int(np.clip(np.searchsorted(legal, design[i]), 1, len(legal) - 1))
            sides.append((legal[right - 1], legal[right]))
        for combination in itertools.product(*sides):
            rounded = design.copy()
            rounded[lattice] = combination
            found.append(rounded[None])
    return np.vstack(found)
