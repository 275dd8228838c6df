"""What a limit costs: the best objective as one limit moves, or two, with the others held.

Symbols and shapes
    limits        n        values of the limit that moves, natural units, from strictest to most relaxed
    mean, std     n        objective of the answers along a curve; n x m on a map, the first limit along the rows
    probability   as mean  that the answers obey all limits
    reachable     as mean  whether they have the probability asked for
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbabo.answering.predict import Answers, predict_many
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray

UNLIKELY = 0.05
"""Probability of feasibility below which a network's limits count as unreachable."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Answers along one limit."""

    name: str
    """The limit that moves."""
    limits: FloatArray = field(repr=False)
    mean: FloatArray = field(repr=False)
    std: FloatArray = field(repr=False)
    probability: FloatArray = field(repr=False)
    reachable: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Map:
    """Answers over two limits."""

    names: tuple[str, str]
    """The limits that move."""
    limits: tuple[FloatArray, FloatArray] = field(repr=False)
    mean: FloatArray = field(repr=False)
    std: FloatArray = field(repr=False)
    probability: FloatArray = field(repr=False)
    reachable: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Placed:
    """Measured designs on a curve or a map: each at the strictest limits that it obeys."""

    ids: NDArray[np.int64] = field(repr=False)
    """p."""
    limits: FloatArray = field(repr=False)
    """p x 1 or p x 2, natural units; never stricter than the range of the limit."""
    objective: FloatArray = field(repr=False)
    """p."""


def along(fitted: Fitted, thresholds: Mapping[str, float], name: str, count: int = 41) -> Curve:
    """Return the answers as one limit moves over its range, the others held."""
    base = fitted.problem.box.row(thresholds)
    at, limits = limit_values(fitted, name, count)
    rows = np.repeat(base, count, axis=0)
    rows[:, at] = limits
    answers = predict_many(fitted, Query.of(fitted.problem.box, rows), fast=True)
    mean, std = (part[:, 0] for part in answers.moments)
    return Curve(name, limits, mean, std, answers.probability_feasible, reachable(answers))


def across(fitted: Fitted, thresholds: Mapping[str, float], names: tuple[str, str], count: int = 21) -> Map:
    """Return the answers as two limits move over their ranges, the others held."""
    if names[0] == names[1]:
        raise InputError(f"trade-off: expected two different limits, got {shown(names[0])} twice; choose another")
    base = fitted.problem.box.row(thresholds)
    (first, down), (second, across) = (limit_values(fitted, name, count) for name in names)
    rows = np.repeat(base, count * count, axis=0)
    rows[:, first], rows[:, second] = np.repeat(down, count), np.tile(across, count)
    answers = predict_many(fitted, Query.of(fitted.problem.box, rows), fast=True)
    shape = (count, count)
    mean, std = (part[:, 0].reshape(shape) for part in answers.moments)
    chance = answers.probability_feasible.reshape(shape)
    return Map(names, (down, across), mean, std, chance, reachable(answers).reshape(shape))


def placed(evaluations: Evaluations, thresholds: Mapping[str, float], names: tuple[str, ...]) -> Placed:
    """Return the measured designs that obey all limits but the named ones, which they obey somewhere in their range."""
    problem, measured = evaluations.problem, evaluations.complete
    box = problem.box
    rows = np.repeat(box.row(thresholds), len(measured), axis=0)
    for at in (_index(box.names, name) for name in names):
        rows[:, at] = box.movable[at].most_relaxed
    kept = box.feasible(measured.y, rows)
    limits = np.column_stack([_strictest(measured, name) for name in names])
    ids = np.array([row.id for row in measured], dtype=np.int64)
    return Placed(ids[kept], limits[kept], measured.y[kept, 0])


def reachable(answers: Answers) -> NDArray[np.bool_]:
    """Tell for each answer (n) whether limits can be met: a network, which aims at no probability, with a fair chance."""
    if answers.designs.aim is None:
        return answers.probability_feasible >= UNLIKELY
    return answers.reachable


def _strictest(measured: Evaluations, name: str) -> FloatArray:
    """Return for each design (n) the strictest limit that its outputs obey, within the limit's range."""
    constraint = next(c for c in measured.problem.constraints if c.name == name)
    columns = [measured.problem.outputs.index(output) for output in constraint.output_names]
    needed = (constraint.sign * measured.y[:, columns]).max(axis=1)
    return np.asarray(constraint.sign * np.maximum(needed, constraint.sign * constraint.strictest))


def limit_values(fitted: Fitted, name: str, count: int) -> tuple[int, FloatArray]:
    """Return which threshold moves, and its values from strictest to most relaxed."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 2:
        raise InputError(f"trade-off: expected a whole number of limits from 2 on, got {shown(count)}")
    at = _index(fitted.problem.box.names, name)
    constraint = fitted.problem.box.movable[at]
    return at, np.linspace(constraint.strictest, constraint.most_relaxed, count)


def _index(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise InputError(f"trade-off: unknown limit {shown(name)}; expected one of {', '.join(names)}")
    return names.index(name)
