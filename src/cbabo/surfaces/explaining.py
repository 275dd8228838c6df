"""Decisions in plain values and in sentences: the JSON and the words that command line, web server and report share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cbabo.answering.answers import Answer, Price
from cbabo.display.numbers import rounded_like
from cbabo.domain.constraints import Constraint
from cbabo.domain.problem import Problem
from cbabo.surfaces.records import json_value

if TYPE_CHECKING:  # Commands that only read import this module, and torch is slow to import.
    from cbabo.decisions.atlas import Atlas
    from cbabo.decisions.explain import Explanation

GIVEN_AWAY = 0.01
"""Of the range: by how much stricter a limit must be able to become for nothing so that it is worth saying."""


def explanation_record(problem: Problem, found: Explanation) -> dict[str, Any]:
    """State an explanation."""
    answer, conflict = found.answer, found.conflict
    return {
        "status": answer.status,
        "objective": answer.objective.mean,
        "objective_std": answer.objective.std,
        "probability_feasible": answer.probability_feasible,
        "limits": dict(answer.thresholds),
        "binding": list(found.binding),
        "sentences": [{"sentence": text} for text in sentences(problem, found)],
        "prices": [_price_record(c, found) for c in problem.box.movable],
        "conflict": None
        if conflict is None
        else {"limits": list(conflict.limits), "probability": conflict.probability},
        "ways_out": [
            {
                "moved": list(way.moved),
                "cost": way.cost,
                "objective": way.answer.objective.mean,
                "probability_feasible": way.answer.probability_feasible,
                "limits": dict(way.thresholds),
                "design": dict(way.answer.point),
            }
            for way in found.ways_out
        ],
        "warnings": [{"warning": text} for text in answer.warnings],
    }


def atlas_record(found: Atlas) -> dict[str, Any]:
    """State an atlas."""
    shown = found.map
    return {
        "limits": dict(found.thresholds),
        "shares": [{"limits": list(names), "share": share} for names, share in found.shares.items()],
        "unreachable": found.unreachable,
        "binds": dict(found.binds),
        "free": dict(found.free),
        "most_important": list(found.most_important),
        "map": None
        if shown is None
        else {
            "names": list(shown.names),
            "limits": [values.tolist() for values in shown.limits],
            "sets": [list(names) for names in shown.sets],
            "binding": shown.binding.tolist(),
            "objective": shown.mean.tolist(),
        },
    }


def sentences(problem: Problem, found: Explanation) -> list[str]:
    """Say what binds, what each limit costs and how far it could go; or what conflicts, and the cheapest ways out."""
    if found.conflict is not None:
        return _conflict_sentences(problem, found)
    said = [f"{', '.join(found.binding)} {'binds' if len(found.binding) == 1 else 'bind'}" if found.binding else ""]
    said = [said[0] or "no limit binds: relaxing any of them gains nothing"]
    return said + [_limit_sentence(problem, c, found) for c in problem.box.movable]


def price_sentence(problem: Problem, constraint: Constraint, price: Price) -> str:
    """Say what relaxing a limit by one unit gains, and where."""
    saved = "saves" if problem.objective.direction == "minimize" else "gains"
    unit = _unit(constraint.unit)
    if not price.binds:
        return f"relaxing {constraint.name} gains nothing, from {price.low:.5g} to {price.high:.5g}{unit}"
    gain = f"{rounded_like(price.value, price.value, price.std)} +- {price.std:.2g}{_unit(problem.objective.unit)}"
    return f"relaxing {constraint.name} by 1{unit} {saved} {gain}, from {price.low:.5g} to {price.high:.5g}{unit}"


def summary(problem: Problem, found: Explanation, measured: Answer) -> str:
    """Say in a paragraph what these limits cost: the best objective, what decides, what can be given away, what was measured.

    measured: the answer to the same limits after evaluations were spent on it.
    """
    objective, unit = problem.objective, _unit(problem.objective.unit)
    if found.conflict is not None:
        return ". ".join(capitalised(text) for text in _conflict_sentences(problem, found)) + "."
    limits = [_limit_text(c, found.answer.thresholds[c.name]) for c in problem.box.movable]
    extreme = "lowest" if objective.direction == "minimize" else "highest"
    predicted = found.answer.objective
    best = rounded_like(predicted.mean, predicted.mean, predicted.std)
    said = [f"With {joined_words(limits)}, the {extreme} {objective.name} is {best}{unit}, as predicted"]
    decisive = [c for c in problem.box.movable if found.answer.prices[c.name].binds]
    said += [price_sentence(problem, c, found.answer.prices[c.name]) for c in decisive]
    free = [text for c in problem.box.movable if c not in decisive and (text := _given_away(c, found))]
    if free:
        said.append(f"{joined_words(free, 'or')} would cost nothing")
    spent = "One more simulation" if measured.measurements <= 1 else f"{measured.measurements} simulations"
    value = f"{rounded_like(measured.objective.mean, predicted.mean, predicted.std)}{unit}"
    verdict = "and obeys all limits" if measured.status == "verified" else "but does not obey all limits"
    said.append(f"{spent} of this design measured {value} {verdict}")
    return ". ".join(capitalised(text) for text in said) + "."


def joined_words(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def capitalised(text: str) -> str:
    """Return a sentence with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def _limit_text(constraint: Constraint, value: float) -> str:
    return f"{constraint.name} {constraint.sense} {value:.5g}{_unit(constraint.unit)}"


def _given_away(constraint: Constraint, found: Explanation) -> str:
    """Say how strict a limit that does not bind could be for nothing; empty where that is hardly stricter than it is."""
    limit, until = found.answer.thresholds[constraint.name], found.reach["gains_until"].to_dict()[constraint.name]
    size = 10.0 ** (math.floor(math.log10(abs(until))) - 2) if until else 1.0
    until = constraint.sign * math.ceil(constraint.sign * until / size) * size  # No stricter than it may be.
    if constraint.sign * (limit - until) < GIVEN_AWAY * constraint.scale:
        return ""
    return f"{_limit_text(constraint, until)} instead of {limit:.5g}{_unit(constraint.unit)}"


def _limit_sentence(problem: Problem, constraint: Constraint, found: Explanation) -> str:
    row, unit = found.reach.loc[constraint.name], _unit(constraint.unit)
    said = price_sentence(problem, constraint, found.answer.prices[constraint.name])
    said += f"; it could be as strict as {row['strictest']:.5g}{unit}"
    if row["gains_at_end"]:
        return f"{said}, and relaxing it gains up to the end of its range at {row['gains_until']:.5g}{unit}"
    return f"{said}, and relaxing it beyond {row['gains_until']:.5g}{unit} gains nothing"


def _conflict_sentences(problem: Problem, found: Explanation) -> list[str]:
    conflict = found.conflict
    assert conflict is not None
    by_name = {c.name: c for c in problem.constraints}
    if not conflict.limits:
        return ["even the most relaxed limits cannot be met beside those that the problem fixes"]
    named = [
        f"{name} {by_name[name].sense} {conflict.thresholds[name]:.5g}{_unit(by_name[name].unit)}"
        for name in conflict.limits
    ]
    together = f"{' and '.join(named)} cannot {'hold together' if len(named) > 1 else 'be met'}"
    said = [f"{together}: the most probable design obeys {'them' if len(named) > 1 else 'it'} with a probability of "]
    said[0] += f"{conflict.probability:.2g}"
    for way in found.ways_out:
        moves = [
            f"{name} from {conflict.thresholds[name]:.5g} to {way.thresholds[name]:.5g}{_unit(by_name[name].unit)}"
            for name in way.moved
        ]
        objective = f"{problem.objective.name} {way.answer.objective.mean:.5g}{_unit(problem.objective.unit)}"
        said.append(f"a way out at a cost of {way.cost:.3g}: relax {' and '.join(moves)}; {objective}")
    return said


def _price_record(constraint: Constraint, found: Explanation) -> dict[str, Any]:
    price = found.answer.prices.get(constraint.name)
    row = found.reach.loc[constraint.name].to_dict()
    return {
        "limit": constraint.name,
        "unit": constraint.unit,
        "at": found.answer.thresholds[constraint.name],
        "price": None if price is None else price.value,
        "std": None if price is None else price.std,
        "low": None if price is None else price.low,
        "high": None if price is None else price.high,
        "strictest": json_value(float(row["strictest"])),
        "gains_until": json_value(float(row["gains_until"])),
        "gains_at_end": bool(row["gains_at_end"]),
    }


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
