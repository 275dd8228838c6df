"""Known formulas of a problem: quantities that are computed from variables, from outputs of the simulator, or from both.

A formula may use other formulas; these are put in its place, so that a compiled formula depends on variables and on what the
simulator returns alone. A name that is neither a variable nor a formula is an output that the simulator must return.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cbabo.domain.derivatives import values
from cbabo.domain.expression import Expression, names_in, parse, quoted, renamed
from cbabo.domain.labels import check_name
from cbabo.domain.notation import listed
from cbabo.domain.parts import part_name
from cbabo.errors import InputError, shown

_DIGITS = re.compile(r"\d+")


def read_derived(given: Any) -> dict[str, str]:
    """Read formulas by name, as a file or a caller states them."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"derived: expected formulas by name, as {{mass: 2*width*height}}, got {shown(given)}")
    found = {}
    for name, text in given.items():
        if isinstance(text, int | float) and not isinstance(text, bool):
            text = repr(text)
        if not isinstance(text, str):
            raise InputError(f"derived: the formula of {shown(name)} must be text, got {shown(text)}")
        found[check_name("derived", name)] = " ".join(text.split())
    return found


def read_relations(value: Any) -> Any:
    """Read relations as a list of texts."""
    if value is None:
        return ()
    for text in listed("relations", value):
        if not isinstance(text, str):
            raise InputError(f"relations: expected text such as 'inner <= outer - 2', got {shown(text)}")
    return tuple(" ".join(text.split()) for text in value)


def compile_derived(
    derived: Mapping[str, str], variables: Sequence[str], labelled: Sequence[str] = ()
) -> dict[str, Expression]:
    """Return the formulas in an order in which each uses only those before it; InputError names a circle or a wrong name.

    labelled: the variables that have labels, of which no formula can be.
    """
    for name in derived:
        if name in variables:
            raise InputError(f"derived: {name!r} is a variable already; give the formula another name")
    uses = {name: names_in(f"derived: {name}", text) for name, text in derived.items()}
    for name, used in uses.items():
        for label in set(used) & set(labelled):
            raise InputError(
                f"derived: the formula of {name!r} uses {label!r}, which has labels, not numbers; let the simulator return what "
                "depends on it"
            )
    found: dict[str, Expression] = {}
    for name in _in_order(uses):
        outputs = [n for n in uses[name] if n not in variables and n not in derived]
        for output in outputs:
            _refuse_misspelt(name, output, [*variables, *derived])
        found[name] = parse(f"derived: {name}", derived[name], [*variables, *outputs], found)
    return {name: found[name] for name in derived}


def _in_order(uses: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names so that each stands after those that it uses."""
    done: list[str] = []
    left = list(uses)
    while left:
        ready = [name for name in left if all(n not in left for n in uses[name])]
        if not ready:
            chain = [left[0]]
            while chain.count(chain[-1]) < 2:
                chain.append(next(n for n in uses[chain[-1]] if n in left))
            circle = chain[chain.index(chain[-1]) :]
            raise InputError(
                f"derived: {' uses '.join(map(repr, circle))}, which is a circle; state one of them by others"
            )
        done += ready
        left = [name for name in left if name not in ready]
    return done


def _refuse_misspelt(formula: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that is most likely a misspelt one: other names are outputs, which nothing else has to state."""
    for other in known:
        same_letters = sorted(name) == sorted(other) and _DIGITS.sub("", name) != _DIGITS.sub("", other)
        shorter, longer = sorted((name, other), key=len)
        one_more = len(longer) == len(shorter) + 1 >= 5 and any(
            longer[:i] + longer[i + 1 :] == shorter and longer[i].isalpha() for i in range(len(longer))
        )
        if name.lower() == other.lower() or same_letters or one_more:
            raise InputError(
                f"derived: the formula of {formula!r} names {name!r}, which nothing else states; did you mean {quoted(other)}? "
                "An output of the simulator needs a name that differs more"
            )


def compute(
    formulas: Mapping[str, Expression], point: Mapping[str, float], outputs: Mapping[str, float]
) -> tuple[dict[str, float], str | None]:
    """Return the values of the formulas at one measured design, and a sentence if one of them has none."""
    known = {**outputs, **point}
    found: dict[str, float] = {}
    for name, formula in formulas.items():
        absent = next((n for n in formula.names if n not in known), None)
        if absent is not None:
            return found, f"the formula of {name!r} needs {absent!r} as one number, which is not there"
        value = float(values(formula, np.array([[known[n] for n in formula.names]], dtype=np.float64))[0])
        if not math.isfinite(value):
            at = ", ".join(f"{n}={known[n]:g}" for n in formula.names[:6])
            return found, f"the formula of {name!r} has no finite value here, but {value}, at {at}"
        found[name] = value
    return found, None


def expanded_derived(
    derived: Mapping[str, str], parts: Mapping[str, Sequence[str]], whole: Sequence[str]
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the formulas where some outputs have parts, and the parts of formulas.

    A formula of outputs with parts has as many parts itself, each of one part of these. parts: the parts' names of outputs;
    whole: names that have none, such as the objective.
    """
    counts = {name: len(names) for name, names in parts.items()}
    uses = {name: names_in(f"derived: {name}", text) for name, text in derived.items()}
    found: dict[str, list[str]] = {}
    for name in _in_order(uses):
        sizes = {counts[n] for n in uses[name] if n in counts}
        if len(sizes) == 1 and name not in whole:
            counts[name] = sizes.pop()
            found[name] = [part_name(name, i) for i in range(counts[name])]
    texts: dict[str, str] = {}
    for name, text in derived.items():
        if name not in found:
            texts[name] = text
            continue
        for i, part in enumerate(found[name]):
            texts[part] = renamed(text, {n: part_name(n, i) for n in uses[name] if n in counts})
    return texts, found
