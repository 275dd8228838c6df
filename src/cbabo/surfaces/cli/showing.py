"""Printing answers and recommendations: names, units, and the room and price of every limit."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cbabo.answering.answers import Answer, Estimate, Price, Recommendation
from cbabo.answering.standings import limit_standings
from cbabo.display.numbers import labelled, rounded_like, stated
from cbabo.domain.problem import Problem
from cbabo.surfaces.cli.options import Format
from cbabo.surfaces.cli.printing import print_facts, print_frame, print_json
from cbabo.surfaces.records import answer_record, recommendation_record

_SHOWN_OTHERWISE = ("status", "objective", "objective_std", "limits", "outputs", "design")


def show_answer(answer: Answer, form: Format) -> None:
    """Print an answer; as a table or CSV with the room and the price of every limit."""
    record, problem = answer_record(answer), answer.problem
    if form == "json" or problem is None:
        show_record(record, form)
        return
    standings = limit_standings(problem, answer)
    if form == "csv":
        record |= {
            "predicted": {s.title: s.estimate.mean for s in standings},
            "std": {s.title: s.estimate.std for s in standings},
            "room": {s.title: s.room for s in standings},
            "price": {name: price.value for name, price in answer.prices.items()},
        }
        show_record(record, form)
        return
    price = labelled("price", f"{problem.objective.unit} per unit" if problem.objective.unit else "")
    limits = [
        {
            "limit": s.title,
            "asked": f"{s.constraint.sense} {stated(s.limit)}",
            "predicted": short(s.estimate.mean, s.estimate),
            "std": deviation(s.estimate.std),
            "room": short(s.room, s.estimate),
            price: _price(answer, s.constraint.name),
            "unit": s.constraint.unit,
        }
        for s in standings
    ]
    objective = answer.objective
    others = [
        row
        for row in record["outputs"]
        if row["output"] not in {problem.objective.name, *(s.output for s in standings)}
    ]
    shown = {
        "status": answer.status,
        labelled(problem.objective.name, problem.objective.unit): short(objective.mean, objective),
        "std": deviation(objective.std),
        **{n: v for n, v in record.items() if n not in _SHOWN_OTHERWISE},
        "limits": limits,
        "design": _design_rows(problem, answer),
        "other outputs": others,
    }
    show_record(shown, form)


def short(value: float, estimate: Estimate | Price) -> float:
    """Return a number with the digits that the deviation of an estimate or a price leaves."""
    mean = estimate.value if isinstance(estimate, Price) else estimate.mean
    return float(rounded_like(value, mean, estimate.std))


def deviation(std: float) -> float:
    """Return a standard deviation with two digits."""
    return float(f"{std:.2g}")


def _price(answer: Answer, name: str) -> float | None:
    price = answer.prices.get(name)
    return None if price is None else short(price.value, price)


def show_recommendation(problem: Problem, found: Recommendation, form: Format) -> None:
    """Print a recommendation; as a table or CSV with the price of every limit before, and its room afterwards."""
    record = recommendation_record(found)
    if form == "json":
        print_json(record)
        return
    standings = limit_standings(problem, found.answer)
    if form == "csv":
        kept = ("objective_before", "objective_after", "improvement", "probability_feasible")
        flat = {
            "status": found.answer.status,
            **{name: record[name] for name in kept},
            "limits": dict(found.thresholds),
        }
        flat |= {"price": {name: price.value for name, price in found.base.prices.items()}}
        flat |= {"room": {s.title: s.room for s in standings}, "design": record["design"]}
        show_record(flat, form)
        return
    unit, name = problem.objective.unit, problem.objective.name
    price = labelled("price", f"{unit} per unit" if unit else "")
    least = {}
    for s in sorted(
        standings, key=lambda s: s.room, reverse=True
    ):  # Of several outputs with one limit the closest counts.
        least[s.constraint.name] = s
    changes = [
        {
            **row,
            price: _price(found.base, row["limit"]),
            "room after": short(least[row["limit"]].room, least[row["limit"]].estimate),
            "unit": least[row["limit"]].constraint.unit,
        }
        for row in record["changes"]
    ]
    alternatives = [
        {
            labelled(name, unit): row["objective_after"],
            "improvement": row["improvement"],
            "probability feasible": row["probability_feasible"],
            **{f"limit {limit}": value for limit, value in row["limits"].items()},
        }
        for row in record["alternatives"]
    ]
    shown = {
        labelled(f"{name} before", unit): record["objective_before"],
        labelled(f"{name} after", unit): record["objective_after"],
        labelled("improvement", unit): record["improvement"],
        "status": found.answer.status,
        "probability feasible": record["probability_feasible"],
        "warnings": record["warnings"],
        "changes": changes,
        "design": _design_rows(problem, found.answer),
        "alternatives": alternatives,
    }
    show_record(shown, form)


def _design_rows(problem: Problem, answer: Answer) -> list[dict[str, Any]]:
    units = {v.name: v.unit for v in problem.variables}
    return [{"variable": n, "value": v, "unit": units.get(n, "")} for n, v in answer.point.items()]


def show_record(record: dict[str, Any], form: Format) -> None:
    """Print a record: single values as lines, the rest as tables; as CSV the single values and the mappings only."""
    single = {name: value for name, value in record.items() if not isinstance(value, list | dict)}
    if form == "json":
        print_json(record)
    elif form == "csv":
        flat = {
            f"{name}.{key}": v for name, value in record.items() if isinstance(value, dict) for key, v in value.items()
        }
        print_frame(pd.DataFrame([{**single, **flat}]), "csv")
    else:
        print_facts({name.replace("_", " "): value for name, value in single.items()})
        for name, value in record.items():
            if isinstance(value, list | dict) and value:
                print_frame(
                    pd.DataFrame(value if isinstance(value, list) else [value]), "table", name.replace("_", " ")
                )
