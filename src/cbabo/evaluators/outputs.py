"""What counts as an output: one rule for what simulators return, what a person tells, and imported rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cbabo.domain.parts import Measured, Reading, part_name, single_outputs, taken_apart
from cbabo.errors import InputError, shown


def output_reading(name: str, value: Any) -> Reading:
    """Return an output as a number, as a number with its standard error, or as a list of parts that are either.

    Values that are not finite pass: they are what a simulator says when it fails (see `not_finite`). A standard error must be a
    finite number from 0 on.
    """
    parts = _parts(value)
    if parts is None:
        return _measured(name, value)
    if not parts:
        raise InputError(f"the output {name!r} must be a number or a list of numbers, but is an empty list")
    return [_measured(part_name(name, i), part) for i, part in enumerate(parts)]


def output_number(name: str, value: Any) -> float:
    """Return a real scalar (Python's, NumPy's, a 0-d array or tensor) as a float; refuse everything else.

    A bool and a text are no numbers. NaN and infinity pass: they are what a simulator says when it fails.
    """
    number = value
    try:
        if hasattr(value, "item") and hasattr(value, "shape"):
            if tuple(value.shape) != ():
                raise TypeError
            number = value.item()
        if isinstance(number, bool) or not (hasattr(number, "__float__") or hasattr(number, "__index__")):
            raise TypeError
        return float(number)
    except OverflowError:
        raise InputError(
            f"the output {name!r} must be a finite number, but is too large for one: {shown(value)}"
        ) from None
    except Exception:
        raise InputError(
            f"the output {name!r} must be one number, but is {shown(value)} (of type {type(value).__name__})"
        ) from None


def not_finite(name: str, reading: Reading) -> str | None:
    """Say why an evaluation with such an output is a failure; None if it is none."""
    for part, number in taken_apart({name: reading})[0].items():
        if not math.isfinite(number):
            return f"the output {part!r} must be a finite number, but is {number}"
    return None


def missing(names: Mapping[str, Any], declared: Sequence[str]) -> str | None:
    """Return the first declared output that is there neither by its name nor by its parts' names; None if none is missing."""
    single = single_outputs(declared)
    for name in declared:
        if name not in names and (name in single or part_name(name, 0) not in names):
            return name
    return None


def check_objective(declared: Sequence[str], readings: Mapping[str, Reading]) -> None:
    """Refuse an objective that is a list: only limits apply to each part of an output."""
    for name in single_outputs(declared):
        reading = readings.get(name)
        if isinstance(reading, list):
            raise InputError(
                f"the objective {name!r} must be one number, but is a list of {len(reading)}; return the number to be optimised"
            )


def _measured(name: str, value: Any) -> Measured:
    if not isinstance(value, Mapping):
        return output_number(name, value)
    if set(value) != {"value", "sem"}:
        raise InputError(
            f'the output {name!r} must be a number or {{"value": ..., "sem": ...}}, but is {shown(dict(value))}'
        )
    sem = output_number(f"{name} sem", value["sem"])
    return {"value": output_number(name, value["value"]), "sem": checked_sem(name, sem)}


def checked_sem(name: str, sem: float) -> float:
    """Return a standard error; refuse one that is negative or not finite."""
    if not (math.isfinite(sem) and sem >= 0.0):
        raise InputError(f"the standard error of the output {name!r} must be a finite number from 0 on, but is {sem}")
    return sem


def _parts(value: Any) -> list[Any] | None:
    """Return the elements of a list, a tuple, or an array or tensor with one dimension; None for anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    if hasattr(value, "tolist") and len(getattr(value, "shape", ())) == 1:
        return list(value.tolist())
    return None
