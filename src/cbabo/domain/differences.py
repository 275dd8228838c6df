"""How one statement of a problem differs from another, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cbabo.domain.problem import Problem
from cbabo.errors import shown


def differences(old: Problem, new: Problem) -> list[str]:
    """Return every difference of two problems, such as "constraint 'stress': high 10 -> 12"; none if they are equal.

    Examples:
        >>> from cbabo import Constraint, Objective, Problem, Real
        >>> old, new = (
        ...     Problem("bar", [Real("width", 1, 3)], Objective("mass"), [Constraint("stress", low=1, high=high)])
        ...     for high in (10, 12)
        ... )
        >>> differences(old, new)
        ["constraint 'stress': high 10 -> 12"]
    """
    if old == new:
        return []
    before, after = old.to_dict(), new.to_dict()
    found = []
    for kind, key in (("variable", "variables"), ("constraint", "constraints")):
        found += _listed(kind, before.pop(key), after.pop(key))
    found += [f"objective: {text}" for text in _fields(before.pop("objective"), after.pop("objective"))]
    return found + [f"problem: {text}" for text in _fields(before, after)]


def changes_labels_only(old: Problem, new: Problem) -> bool:
    """Tell whether two problems differ in names of the problem, units and nominal limits at most: nothing is learned anew."""
    return _without_labels(old) == _without_labels(new)


def same_space(old: Problem, new: Problem) -> bool:
    """Tell whether two problems have the same designs in the same order."""
    return bool(_without_labels(old)["variables"] == _without_labels(new)["variables"])


def _without_labels(problem: Problem) -> dict[str, Any]:
    stated = problem.to_dict()
    del stated["name"]
    items: list[dict[str, Any]] = [*stated["variables"], *stated["constraints"], stated["objective"]]
    for item in items:
        item.pop("unit", None)
        item.pop("nominal", None)
    return stated


def _listed(kind: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """Compare variables or constraints, each of which has a name."""
    old, new = ({str(item["name"]): item for item in items} for items in (before, after))
    found = [f"{kind} {name!r} removed" for name in old if name not in new]
    found += [f"{kind} {name!r} added" for name in new if name not in old]
    for name in old:
        if name in new:
            found += [f"{kind} {name!r}: {text}" for text in _fields(old[name], new[name])]
    if not found and list(old) != list(new):
        found.append(f"{kind}s: in another order")
    return found


def _fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys([*before, *after])
    return [
        f"{name} {_value(before.get(name))} -> {_value(after.get(name))}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.12g}" if isinstance(value, float) else shown(value)
