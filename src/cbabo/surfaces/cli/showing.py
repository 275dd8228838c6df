"""Printing answers and recommendations: names, units, and the room and price of every limit."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cbabo.answering.answers import Answer, Recommendation
from cbabo.domain.problem import Problem
from cbabo.surfaces.cli.options import Format
from cbabo.surfaces.cli.printing import print_facts, print_frame, print_json
from cbabo.surfaces.explaining import rounded
from cbabo.surfaces.records import answer_record, limit_rows, recommendation_record


def show_answer(problem: Problem, answer: Answer, form: Format) -> None:
    """Print an answer; as a table or CSV with the room and the price of every limit, if these are the study's own."""
    record = answer_record(answer)
    if form == "json" or set(answer.thresholds) != set(problem.box.names):
        show_record(record, form)
        return
    rows = limit_rows(problem, answer)
    if form == "csv":
        record |= {what: {row["limit"]: row[what] for row in rows} for what in ("predicted", "std", "room", "price")}
        show_record(record, form)
        return
    saved = f"price [{problem.objective.unit} per unit]" if problem.objective.unit else "price"
    shown = [
        {
            "limit": row["limit"],
            "asked": row["asked"],
            **{name: short(row[name], row["std"]) for name in ("predicted", "std", "room")},
            saved: short(row["price"], row["price_std"]),
            "unit": row["unit"],
        }
        for row in rows
    ]
    limited = {row["limit"] for row in rows}
    others = [row for row in record["outputs"] if row["output"] not in limited | {problem.objective.name}]
    name = f"{problem.objective.name} [{problem.objective.unit}]" if problem.objective.unit else problem.objective.name
    mean, std = answer.objective.mean, answer.objective.std
    head = {"status": answer.status, name: short(mean, std), "std": short(std, std)}
    kept = {
        n: v
        for n, v in record.items()
        if n not in ("status", "objective", "objective_std", "limits", "outputs", "design")
    }
    show_record(
        {**head, **kept, "limits": shown, "design": _design_rows(problem, answer), "other outputs": others}, form
    )


def short(value: float | None, std: float | None) -> float | None:
    """Return a number with the digits that its deviation leaves; a deviation itself with two."""
    if value is None or std is None:
        return value
    return float(f"{value:.2g}") if value == std else float(rounded(value, std))


def show_record(record: dict[str, Any], form: Format) -> None:
    """Print an answer: single values as lines, the rest as tables; as CSV the single values only."""
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


def show_recommendation(problem: Problem, found: Recommendation, form: Format) -> None:
    """Print a recommendation; as a table or CSV with the price of every limit before, and its room afterwards."""
    record = recommendation_record(found)
    if form == "json":
        print_json(record)
        return
    rows = limit_rows(problem, found.answer)
    if form == "csv":
        kept = ("objective_before", "objective_after", "improvement", "probability_feasible")
        flat = {
            "status": found.answer.status,
            **{name: record[name] for name in kept},
            "limits": dict(found.thresholds),
        }
        flat |= {"price": {name: price.value for name, price in found.base.prices.items()}}
        flat |= {"room": {row["limit"]: row["room"] for row in rows}, "design": record["design"]}
        show_record(flat, form)
        return
    unit, name = problem.objective.unit, problem.objective.name
    of_objective, per_unit = (f" [{unit}]", f"price [{unit} per unit]") if unit else ("", "price")
    after = {row["limit"]: row for row in rows}
    units = {c.name: c.unit for c in problem.constraints}
    changes = []
    for row in record["changes"]:
        price = found.base.prices.get(row["limit"])
        room = after[row["limit"]]
        changes.append(
            {
                **row,
                per_unit: None if price is None else short(price.value, price.std),
                "room after": short(room["room"], room["std"]),
                "unit": units[row["limit"]],
            }
        )
    alternatives = [
        {
            f"{name}{of_objective}": row["objective_after"],
            "improvement": row["improvement"],
            "probability feasible": row["probability_feasible"],
            **{f"limit {limit}": value for limit, value in row["limits"].items()},
        }
        for row in record["alternatives"]
    ]
    shown = {
        f"{name} before{of_objective}": record["objective_before"],
        f"{name} after{of_objective}": record["objective_after"],
        f"improvement{of_objective}": record["improvement"],
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
