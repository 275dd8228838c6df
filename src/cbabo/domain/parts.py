"""Outputs with several parts, and outputs with a standard error: how they are written, and how they are taken apart.

reading: what a simulator says about one output: a number, a number with its standard error as {"value": 2.1, "sem": 0.05}, or a
list of either, one for each part of the output.

A list "stress" of p parts stands for the outputs "stress[0]" to "stress[p-1]". Studies store readings as they came; what is read
from them are plain numbers by these names, so that nothing else has to know about parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

Measured = float | Mapping[str, float]
"""A number, or {"value": ..., "sem": ...}."""
Reading = Measured | list[Measured]

_PART = re.compile(r"(?P<whole>.+)\[(?:0|[1-9][0-9]*)\]")


class Required(tuple[str, ...]):
    """The names of outputs that a simulator must return, and which of them is the objective, that must be one number."""

    objective: str | None

    def __new__(cls, names: Iterable[str], objective: str | None) -> Required:
        """Make it of names; objective: None where it is a formula."""
        made = super().__new__(cls, names)
        made.objective = objective
        return made

    def __getnewargs__(self) -> tuple[tuple[str, ...], str | None]:
        """Return what a copy in another process is made of."""
        return tuple(self), self.objective


def single_outputs(declared: Sequence[str]) -> tuple[str, ...]:
    """Return the declared outputs that must be one number: the objective, which is the first one unless stated otherwise."""
    if isinstance(declared, Required):
        return () if declared.objective is None else (declared.objective,)
    return tuple(declared[:1])


def part_name(whole: str, i: int) -> str:
    """Return the name of the i-th part of an output."""
    return f"{whole}[{i}]"


def whole_name(name: str) -> str | None:
    """Return the output that a name is a part of; None if it is no part's name.

    Examples:
        >>> whole_name("stress[3]"), whole_name("stress")
        ('stress', None)
    """
    match = _PART.fullmatch(name)
    return None if match is None else match["whole"]


def count_parts(whole: str, names: Iterable[str]) -> int | None:
    """Return how many parts of an output are among the names; None if it is there as one number, or not at all."""
    held = names if isinstance(names, Mapping) else set(names)
    if whole in held or part_name(whole, 0) not in held:
        return None
    count = 1
    while part_name(whole, count) in held:
        count += 1
    return count


def taken_apart(readings: Mapping[str, Reading]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the numbers of readings by the names of outputs and parts, and the standard errors that were stated.

    Examples:
        >>> taken_apart({"mass": {"value": 2.1, "sem": 0.05}, "stress": [180.0, 95.0]})
        ({'mass': 2.1, 'stress[0]': 180.0, 'stress[1]': 95.0}, {'mass': 0.05})
    """
    single: dict[str, Measured] = {}
    for name, reading in readings.items():
        if isinstance(reading, list):
            single |= {part_name(name, i): part for i, part in enumerate(reading)}
        else:
            single[name] = reading
    values, sem = {}, {}
    for name, measured in single.items():
        if isinstance(measured, Mapping):
            values[name], sem[name] = measured["value"], measured["sem"]
        else:
            values[name] = measured
    return values, sem
