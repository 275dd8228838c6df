"""What a model file may hold: every number and every size is checked before anything is computed with it.

A file comes from somewhere else. Its checksum finds damage; these checks find what a sound model cannot hold, whoever wrote it.
All of them raise ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import get_args

import torch
from torch import Tensor

from cbabo.domain.categorical import Categorical
from cbabo.domain.evaluations import Evaluation, Evaluations, Kind, State
from cbabo.domain.problem import Problem
from cbabo.errors import Cause, shown
from cbabo.methods.settings import MethodSettings
from cbabo.surrogate.data import standardisation
from cbabo.surrogate.warp import Warp

MAX_BYTES = 512 * 2**20
"""Of a model file."""
MAX_EXPANDED = 2 * 2**30
"""Bytes that a model may need in memory: the factors of its surrogates have 8 n^2 bytes for each output."""
MAX_COUNT = 1_000_000
"""Largest number of anything that the settings of a model ask for."""
_CLOSE = 1e-9
"""Relative difference up to which numbers that were computed on another machine are the same."""

Check = Callable[[Tensor], Tensor]


def _finite(t: Tensor) -> Tensor:
    return t.isfinite() & (t.abs() < 1e100)


def _in_cube(t: Tensor) -> Tensor:
    return (t >= -1e-6) & (t <= 1.0 + 1e-6)


def _between(low: float, high: float) -> Check:
    return lambda t: (t >= low) & (t <= high)


_POSITIVE = _between(1e-300, 1e100)
_SURROGATES: Mapping[str, tuple[str, Check, str]] = {
    "x": ("nd", _between(-1.0 - 1e-6, 2.0 + 1e-6), "points of the unit cube, or close outside it"),
    "y": ("nq", _finite, "finite numbers"),
    "centre": ("q", _finite, "finite numbers"),
    "scale": ("q", _POSITIVE, "numbers above 0"),
    "hyperparameters.lengthscales": ("qd", _between(1e-8, 1e8), "numbers from 1e-8 to 1e8"),
    "hyperparameters.noise": ("q", _between(1e-16, 1e4), "numbers from 1e-16 to 1e4"),
    "hyperparameters.constant": ("q", _between(-1e6, 1e6), "numbers from -1e6 to 1e6"),
    "hyperparameters.amplitude": ("q", _between(1e-16, 1e16), "numbers from 1e-16 to 1e16"),
    "hyperparameters.curvature": ("qhh", _finite, "finite numbers"),
    "hyperparameters.value": ("q", _finite, "finite numbers"),
    "hyperparameters.family": ("q", _between(0, 2), "0, 1 or 2"),
    "hyperparameters.stretch": ("qd", _between(0.0, 700.0), "numbers from 0 to 700"),
    "hyperparameters.nugget": ("q", _between(0.0, 1.0), "numbers from 0 to 1"),
    "hyperparameters.noise_kind": ("q", _between(0, 2), "0, 1 or 2"),
    "relative_noise": ("qn", _between(1e-12, 1e6), "numbers from 1e-12 to 1e6"),
}
_OTHERS: Mapping[str, tuple[str, Check, str]] = {
    "warp.orientation": ("q", lambda t: t.abs() == 1.0, "1 or -1"),
    "warp.centre": ("q", _finite, "finite numbers"),
    "warp.width": ("q", lambda t: (t > 0) & ~t.isnan(), "numbers above 0"),
    "kappa": ("q", _between(1e-6, 1e6), "numbers from 1e-6 to 1e6"),
    "exact": ("o", _between(0, 1), "0 or 1"),
    "network.weights": ("w", _between(-1e6, 1e6), "numbers from -1e6 to 1e6"),
    "library.theta": ("mk", _in_cube, "points of the unit cube"),
    "library.x": ("md", _in_cube, "points of the unit cube"),
    "library.mean": ("mr", _between(-1e9, 1e9), "numbers from -1e9 to 1e9"),
    "library.std": ("mo", _between(1e-30, 1e9), "numbers from 1e-30 to 1e9"),
    "library.slope": ("mrd", _between(-1e12, 1e12), "numbers from -1e12 to 1e12"),
    "library.curvature": ("mdd", _between(-1e15, 1e15), "numbers from -1e15 to 1e15"),
    "library.multipliers": ("mc", _between(0.0, 1e6), "numbers from 0 to 1e6"),
    "library.margin": ("mc", _between(-1e9, 1e9), "numbers from -1e9 to 1e9"),
}


def check_tensors(problem: Problem, tensors: Mapping[str, Tensor]) -> None:
    """Check the shape and every element of all tensors, and what they need in memory."""
    d, q, k = problem.space.dimension, len(problem.learned), len(problem.box.names)
    every = len(problem.outputs)
    rules = {f"surrogates.{name}": rule for name, rule in _SURROGATES.items()} | dict(_OTHERS)
    sizes = {"d": d, "q": q, "o": every, "k": k, "h": d + 1, "c": sum(len(c.output_names) for c in problem.constraints)}
    relations = 0 if problem.region is None else len(problem.region.relations.expressions)
    _check(rules, tensors, {**sizes, "r": every + ("failure_model.surrogates.x" in tensors) + relations})
    of_failures = {f"failure_model.surrogates.{name}": rule for name, rule in _SURROGATES.items()}
    _check(of_failures, tensors, {**sizes, "q": 1})
    unknown = sorted(set(tensors) - set(rules) - set(of_failures))
    if unknown:
        raise ValueError(f"expected the tensors of a model, got also {shown(unknown[0])}")
    expanded = sum(
        8 * len(tensors[name]) ** 2 * outputs
        for name, outputs in (("surrogates.x", q), ("failure_model.surrogates.x", 1))
        if name in tensors
    )
    if expanded > MAX_EXPANDED:
        raise ValueError(f"expected a model of at most {MAX_EXPANDED:,} bytes in memory, got one of {expanded:,}")


def _check(rules: Mapping[str, tuple[str, Check, str]], tensors: Mapping[str, Tensor], sizes: dict[str, int]) -> None:
    """Check tensors against rules; a letter of a shape stands for the same size everywhere."""
    for name, (letters, holds, expected) in rules.items():
        if name not in tensors:
            continue
        tensor = tensors[name]
        shape = tuple(tensor.shape)
        if len(shape) != len(letters):
            raise ValueError(f"{name}: expected {len(letters)} dimensions, got {len(shape)}")
        wanted = tuple(sizes.setdefault(letter, size) for letter, size in zip(letters, shape, strict=True))
        if shape != wanted:
            raise ValueError(f"{name}: expected the shape {wanted}, got {shape}")
        wrong = ~holds(tensor)
        if bool(wrong.any()):
            raise ValueError(f"{name}: expected {expected}, got {tensor[wrong][0].item()}")


def check_data(
    evaluations: Evaluations, measured: Evaluations, y: Tensor, warp: Warp | None, tensors: Mapping[str, Tensor]
) -> None:
    """Check that the surrogates' data are those of the evaluations.

    measured: the designs that they were fitted to; y: n x q, the outputs of these.
    """
    expected = {"x": torch.from_numpy(measured.x), "y": y if warp is None else warp.forward(y)}
    _compare(expected, tensors, "surrogates")
    if "failure_model.surrogates.x" in tensors:
        tried = (evaluations.complete, evaluations.failed_designs)
        x = torch.cat([torch.from_numpy(rows.x) for rows in tried])
        labels = torch.cat([torch.full((len(rows), 1), float(i), dtype=torch.float64) for i, rows in enumerate(tried)])
        _compare({"x": x, "y": labels}, tensors, "failure_model.surrogates")


def _compare(expected: dict[str, Tensor], tensors: Mapping[str, Tensor], prefix: str) -> None:
    centre, scale = standardisation(tensors[f"{prefix}.y"])
    for name, known in {**expected, "centre": centre, "scale": scale}.items():
        found = tensors[f"{prefix}.{name}"]
        if found.shape != known.shape or not torch.allclose(found, known, rtol=_CLOSE, atol=_CLOSE * _largest(known)):
            raise ValueError(f"{prefix}.{name}: expected what the evaluations of the file say, got something else")


def _largest(t: Tensor) -> float:
    return float(t.abs().max()) if t.numel() else 0.0


def check_settings(settings: MethodSettings) -> None:
    """Check that the settings of a model ask for nothing that would take for ever."""
    for name, value in settings.model_dump().items():
        if isinstance(value, int) and value > MAX_COUNT:
            raise ValueError(f"settings.{name}: expected at most {MAX_COUNT:,}, got {shown(value)}")


def check_seed(seed: object) -> int:
    """Return the seed, if it is one."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**256:
        raise ValueError(f"seed: expected a whole number from 0 on, got {shown(seed)}")
    return seed


def check_notes(notes: object) -> tuple[str, ...]:
    """Return the warnings that answers carry, if they are texts."""
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise ValueError(f"notes: expected a list of texts, got {shown(notes)}")
    return tuple(notes)


def read_evaluations(problem: Problem, plain: object) -> Evaluations:
    """Return the evaluations that a file states, each of them legal for the problem."""
    if not isinstance(plain, list):
        raise ValueError(f"evaluations: expected a list, got {shown(plain)}")
    return Evaluations(problem, tuple(_evaluation(problem, row) for row in plain))


_FIELDS = {field.name for field in fields(Evaluation)}


def _evaluation(problem: Problem, plain: object) -> Evaluation:
    if not isinstance(plain, dict) or {*plain, "sem"} != _FIELDS:
        raise ValueError(f"evaluations: expected the fields of an evaluation, got {shown(plain)}")
    plain = {"sem": {}, **plain}  # Files of older versions have none.
    row = Evaluation(**{**plain, "started": _time(plain["started"])})
    names = set(problem.simulated) if row.state == "complete" and row.excluded is None else set()
    limits = row.thresholds
    for right, what in (
        (_is_count(row.id), "id"),
        (row.state in get_args(State), "state"),
        (row.kind in get_args(Kind), "kind"),
        (_is_design(problem, row.point), "point"),
        (_are_numbers(row.outputs) and names <= set(row.outputs), "outputs"),
        (_are_numbers(row.sem) and set(row.sem) <= set(row.outputs) and min(row.sem.values(), default=0) >= 0, "sem"),
        (row.failure is None or isinstance(row.failure, str), "failure"),
        (row.cause is None or row.cause in get_args(Cause), "cause"),
        (isinstance(row.log, str), "log"),
        (row.seconds is None or (_is_number(row.seconds) and row.seconds >= 0), "seconds"),
        (row.worker is None or isinstance(row.worker, str), "worker"),
        (row.excluded is None or isinstance(row.excluded, str), "excluded"),
        (limits is None or (_are_numbers(limits) and set(limits) <= set(problem.box.names)), "thresholds"),
    ):
        if not right:
            raise ValueError(f"evaluations: the {what} of {shown(plain.get('id'))} is wrong, got {shown(plain[what])}")
    return row


def _is_design(problem: Problem, point: object) -> bool:
    """Tell whether a point is one that a study may hold: legal as it is, or outside bounds that were amended."""
    space = problem.space
    if not isinstance(point, dict) or set(point) != set(space.names):
        return False
    labelled = {v.name for v in space.variables if isinstance(v, Categorical)}
    if not all(isinstance(v, str) if name in labelled else _is_number(v) for name, v in point.items()):
        return False
    return not space.inside([point])[0] or space.check(point) == point


def _time(text: object) -> datetime | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"evaluations: expected a time, got {shown(text)}")
    return datetime.fromisoformat(text)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**63


def _is_number(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**1023  # Larger ones are no floats.
    return isinstance(value, float) and math.isfinite(value)


def _are_numbers(values: object) -> bool:
    return isinstance(values, dict) and all(map(_is_number, values.values()))
