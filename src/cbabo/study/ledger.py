"""The ledger of a study: what was decided and proposed, by whom, and on what knowledge; and audits of the model's claims."""

from __future__ import annotations

import getpass
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from cbabo.answering.answers import Answer, Estimate, Recommendation
from cbabo.domain.audits import Audit
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.ledger import Entry
from cbabo.domain.space import Point
from cbabo.errors import InputError, shown
from cbabo.numerics.versions import versions

if TYPE_CHECKING:
    from cbabo.model import Model

_DIGITS = 16
"""Of the digest that identifies the data."""
_MOST_CHARACTERS = 10_000
"""Of a note."""


@dataclass(frozen=True)
class Decision:
    """Limits that were agreed on or proposed, with the answer as it was known then.

    Examples:
        >>> from cbabo import Study, problems
        >>> truss = problems.get("three_truss")
        >>> study = Study.create(truss.problem, "sqlite://")
        >>> study.run(truss.evaluate, budget=30)
        >>> decision = study.decide({"c1": 2.5}, note="agreed with supplier", by="hk")
        >>> decision.number, decision.by, decision.thresholds["c1"], len(study.decisions)
        (1, 'hk', 2.5, 1)
    """

    number: int
    """Of its entry in the ledger."""
    kind: Literal["decision", "proposal"]
    made: datetime
    """When, in UTC."""
    by: str
    note: str
    thresholds: Mapping[str, float]
    intents: Mapping[str, str]
    """What was asked of each limit; empty where nothing was stated."""
    point: Point
    """The design."""
    objective_name: str
    objective: Estimate
    outputs: Mapping[str, Estimate]
    probability_feasible: float
    """The stated probability."""
    status: str
    """What the answer was: predicted, measured, verified or unreachable."""
    warnings: tuple[str, ...]
    evaluation: int | None
    """The evaluation that had measured this design; None if it was not measured."""
    measured: Mapping[str, float]
    """What that evaluation measured."""
    evaluations: int
    """How many measured evaluations the model knew."""
    last: int
    """The last id that had been given out."""
    data: str
    """A digest of all evaluations up to then: the same digest means the same data."""


class Decisions(Sequence[Decision]):
    """All decisions and proposals of a study, the oldest first."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._rows = tuple(read_decision(entry) for entry in entries if entry.kind != "audit")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._rows)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each of them."""
        return pd.DataFrame([_row(decision) for decision in self._rows], columns=None if self._rows else list(_COLUMNS))


def read_decision(entry: Entry) -> Decision:
    """Return the decision or proposal of an entry."""
    said = entry.content
    return Decision(
        number=entry.number,
        kind="proposal" if entry.kind == "proposal" else "decision",
        made=entry.made,
        by=entry.by,
        note=said["note"],
        thresholds=said["limits"],
        intents=said["intents"],
        point=said["design"],
        objective_name=said["objective_name"],
        objective=Estimate(*said["objective"]),
        outputs={name: Estimate(*values) for name, values in said["outputs"].items()},
        probability_feasible=said["probability_feasible"],
        status=said["status"],
        warnings=tuple(said["warnings"]),
        evaluation=said["evaluation"],
        measured=said["measured"],
        evaluations=said["evaluations"],
        last=said["last"],
        data=said["data"],
    )


def audits(entries: Sequence[Entry]) -> tuple[Audit, ...]:
    """Return the audits of a ledger, the oldest first."""
    return tuple(
        Audit.from_dict(entry.content, entry.number, entry.made.isoformat(timespec="seconds"))
        for entry in entries
        if entry.kind == "audit"
    )


def decision_content(
    model: Model,
    evaluations: Evaluations,
    wanted: Mapping[str, float] | Answer | Recommendation,
    note: str,
    intents: Mapping[str, str | tuple[str, float]] | None,
) -> dict[str, Any]:
    """Return what an entry says of limits, of an answer to them, or of recommended limits."""
    if not isinstance(note, str) or len(note) > _MOST_CHARACTERS:
        raise InputError(f"decide: note must be a text of at most {_MOST_CHARACTERS:,} characters, got {shown(note)}")
    if isinstance(wanted, Recommendation):
        stated = {name: change.intent for name, change in wanted.changes.items()}
        answer, intents = wanted.answer, {**stated, **(intents or {})}
    else:
        answer = wanted if isinstance(wanted, Answer) else model.predict(wanted)
    unknown = [name for name in intents or {} if name not in answer.thresholds]
    if unknown:
        raise InputError(f"decide: unknown limit {shown(unknown[0])}; expected {', '.join(answer.thresholds)}")
    measured = next((row for row in evaluations.complete if row.point == answer.point), None)
    return {
        "note": note,
        "limits": dict(answer.thresholds),
        "intents": {name: _intent_text(intent) for name, intent in (intents or {}).items()},
        "design": dict(answer.point),
        "objective_name": next(
            (name for name, estimate in answer.outputs.items() if estimate is answer.objective),
            model.problem.objective.name,
        ),
        "objective": [answer.objective.mean, answer.objective.std],
        "outputs": {name: [estimate.mean, estimate.std] for name, estimate in answer.outputs.items()},
        "probability_feasible": answer.probability_feasible,
        "status": answer.status,
        "warnings": list(answer.warnings),
        "evaluation": None if measured is None else measured.id,
        "measured": {} if measured is None else dict(measured.outputs),
        "evaluations": len(evaluations.complete),
        "last": max((row.id for row in evaluations), default=0),
        "data": data_digest(evaluations),
        "versions": versions(),
    }


def data_digest(evaluations: Evaluations) -> str:
    """Return a digest of what was measured and of what is excluded; derived outputs are not measured."""
    derived = evaluations.problem.derived
    rows = [
        [
            row.id,
            row.state,
            row.kind,
            dict(row.point),
            {name: value for name, value in row.outputs.items() if name not in derived},
            dict(row.sem),
            row.excluded,
        ]
        for row in evaluations
    ]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def author(by: str | None) -> str:
    """Return who makes an entry: as stated, or else the user of this machine."""
    if by is None:
        try:
            return getpass.getuser()
        except (OSError, KeyError, ImportError):
            return "unknown"
    if not isinstance(by, str) or not by.strip():
        raise InputError(f"decide: by must be a name, got {shown(by)}")
    return " ".join(by.split())


_COLUMNS = (
    "number",
    "kind",
    "made",
    "by",
    "note",
    "probability feasible",
    "status",
    "evaluation",
    "evaluations",
    "data",
)
"""Columns of a table without rows: those that every decision has, whatever its limits and its design."""


def _row(decision: Decision) -> dict[str, Any]:
    objective = decision.objective_name
    return {
        "number": decision.number,
        "kind": decision.kind,
        "made": decision.made,
        "by": decision.by,
        "note": decision.note,
        **{f"limit {name}": value for name, value in decision.thresholds.items()},
        **{f"intent {name}": value for name, value in decision.intents.items()},
        **decision.point,
        objective: decision.objective.mean,
        f"{objective} std": decision.objective.std,
        "probability feasible": decision.probability_feasible,
        "status": decision.status,
        f"measured {objective}": decision.measured.get(objective),
        "evaluation": decision.evaluation,
        "evaluations": decision.evaluations,
        "data": decision.data,
    }


def _intent_text(intent: str | tuple[str, float]) -> str:
    """Return an intent as a text, with its target where there is one: "loosen to 130"."""
    return str(intent) if isinstance(intent, str) else f"{intent[0]} to {intent[1]:g}"
