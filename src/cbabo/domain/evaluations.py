"""Frozen tables of what was measured.

An evaluation is one expensive call and its outcome. Raw outputs are kept as they came, further numbers of the
simulator included; a failed evaluation keeps its reason and is never used as a measurement.

An output that came as a list is a number for each of its parts here ("stress[0]", "stress[1]", ...). The first measured
evaluation says which outputs have parts, and how many; the table's problem is the one with these parts (`Problem.expanded`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbabo.display.problems import evaluations_html
from cbabo.domain.parts import count_parts
from cbabo.domain.problem import RESERVED, Problem
from cbabo.domain.space import Point
from cbabo.errors import Cause
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.tolerances import FARTHEST_OUTSIDE

State = Literal["complete", "failed", "running"]
Kind = Literal["run", "import", "refine", "retry", "audit"]
Unfinished = Literal["running", "asked", "interrupted", "retry"]
"""What an evaluation without an outcome waits for: a run that is under way, its user, or the next run, which makes it again
because a run was interrupted or because the user asked for another try."""
RETRIED = "evaluated again as evaluation"
"""How the reason begins for which an evaluation is excluded that was evaluated again."""


@dataclass(frozen=True)
class Evaluation:
    """One expensive call."""

    id: int
    """Its number in the study, counted from 1."""
    state: State
    """running: asked for, no outcome yet."""
    kind: Kind
    """run: proposed by the method; import: an old run; refine: spent on one answer; retry: another one made again; audit: spent
    on the test of an answer."""
    point: Mapping[str, Any]
    """The design, in natural units."""
    outputs: Mapping[str, float]
    """Every number that the simulator returned, parts by their own names; empty unless it returned all that it had to."""
    failure: str | None = None
    """Why it failed, in one line."""
    cause: Cause | None = None
    """What a failure is due to. design: the simulator fails there. set-up: it was given up and may well work there, as after a
    lost worker, an interrupted run, or too long a time on an executor. None unless failed."""
    log: str = ""
    """The tail of what a failed simulator printed."""
    started: datetime | None = None
    """When the simulator was started, in UTC."""
    seconds: float | None = None
    """How long it ran."""
    worker: str | None = None
    """Where it ran: host:process."""
    thresholds: Mapping[str, float] | None = None
    """The limits that a refinement, or its retry, or an audit was spent on, where they are known."""
    excluded: str | None = None
    """Why a user has excluded it, so that nothing is learned from it; None unless excluded."""
    sem: Mapping[str, float] = field(default_factory=dict)
    """The standard errors of outputs that the simulator stated."""


@dataclass(frozen=True)
class Evaluations(Sequence[Evaluation]):
    """The evaluations of a study at one moment, in the order of their ids."""

    problem: Problem
    """With the parts of outputs in place of these, once something is measured."""
    rows: tuple[Evaluation, ...]

    def __post_init__(self) -> None:
        measured = (row for row in self.rows if row.state == "complete" and row.excluded is None)
        counts = part_counts(self.problem, next(measured, None))
        problem = self.problem.expanded(counts)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "rows", tuple(judged(problem, counts, row) for row in self.rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.rows)

    @cached_property
    def complete(self) -> Evaluations:
        """Only those with measured outputs that are not excluded, at designs that the problem has."""
        return self._where("complete")

    @cached_property
    def informative(self) -> Evaluations:
        """Those with measured outputs that surrogates learn from: `complete`, and those close outside amended bounds."""
        if self.is_inside.all():
            return self.complete
        with np.errstate(invalid="ignore"):
            near = (np.abs(self.x - 0.5) <= 0.5 + FARTHEST_OUTSIDE).all(axis=1)
        rows = zip(self.rows, near | self.is_inside, strict=True)
        return Evaluations(
            self.problem,
            tuple(row for row, close in rows if close and row.state == "complete" and row.excluded is None),
        )

    @cached_property
    def is_inside(self) -> NDArray[np.bool_]:
        """Which designs (n) the problem has: others were evaluated before its bounds were amended, and are never answers."""
        return self.problem.space.inside([row.point for row in self.rows])

    @cached_property
    def failed(self) -> Evaluations:
        """Only those that failed and are not excluded, at designs that the problem has."""
        return self._where("failed")

    @cached_property
    def failed_designs(self) -> Evaluations:
        """Only those where the design itself failed; what was given up says nothing about its design."""
        return Evaluations(self.problem, tuple(row for row in self.failed if row.cause != "set-up"))

    @cached_property
    def running(self) -> Evaluations:
        """Only those asked for and without an outcome yet."""
        return self._where("running")

    @cached_property
    def excluded(self) -> Evaluations:
        """Only those that a user has excluded; nothing is learned from them."""
        return Evaluations(self.problem, tuple(row for row in self.rows if row.excluded is not None))

    @cached_property
    def breaking(self) -> Evaluations:
        """Only measured ones whose designs break a known relation, as old runs may: data, but never answers."""
        region, measured = self.problem.region, self.complete
        if region is None or not len(measured):
            return Evaluations(self.problem, ())
        holds = region.holds([row.point for row in measured])
        return Evaluations(self.problem, tuple(row for row, ok in zip(measured, holds, strict=True) if not ok))

    @cached_property
    def requested(self) -> int:
        """How many count against the budget: all that `run` and `ask` requested, failed and excluded ones included."""
        return sum(row.kind == "run" for row in self.rows)

    @cached_property
    def x(self) -> FloatArray:
        """The designs in the unit cube, n x d; those that the problem no longer has may lie outside it."""
        space = self.problem.space
        x = space.unbounded(space.array([row.point for row in self.rows]))
        return np.where(self.is_inside[:, None], np.clip(x, 0.0, 1.0), x)

    @cached_property
    def y(self) -> FloatArray:
        """The problem's outputs, n x q, raw and in natural units; NaN where there is no measurement."""
        names = self.problem.outputs
        values = [[row.outputs.get(name, np.nan) for name in names] for row in self.rows]
        return np.array(values, dtype=np.float64).reshape(-1, len(names))

    @cached_property
    def sem(self) -> FloatArray:
        """The standard errors of the problem's outputs, n x q, natural units; NaN where none was stated."""
        names = self.problem.outputs
        values = [[row.sem.get(name, np.nan) for name in names] for row in self.rows]
        return np.array(values, dtype=np.float64).reshape(-1, len(names))

    def best(self, thresholds: Mapping[str, float]) -> Evaluation | None:
        """Return the measured design with the best objective among those that obey these limits and all relations, if any."""
        limits = self.problem.box.row(thresholds)
        measured = self.complete
        objective = self.problem.objective.sign * measured.y[:, 0]
        usable = self.problem.box.feasible(measured.y, np.repeat(limits, len(measured), axis=0))
        usable &= np.isfinite(objective)
        if self.problem.region is not None and len(measured):
            usable &= self.problem.region.holds([row.point for row in measured])
        if not usable.any():
            return None
        return measured.rows[int(np.argmin(np.where(usable, objective, np.inf)))]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per evaluation, failed and excluded ones included.

        Columns: id, state, kind, the variables, the outputs, further numbers of the simulator, "<name> sem" for outputs with
        standard errors, failure, cause, started, seconds, worker, excluded. A further number whose name is taken gets the
        column "output <name>".
        """
        extras = dict.fromkeys(name for row in self.rows for name in row.outputs if name not in self.problem.outputs)
        columns: dict[str, Any] = {name: [getattr(r, name) for r in self.rows] for name in ("id", "state", "kind")}
        for name in self.problem.space.names:
            columns[name] = [r.point[name] for r in self.rows]
        for name in (*self.problem.outputs, *extras):
            values = np.array([r.outputs.get(name, np.nan) for r in self.rows], dtype=np.float64)
            columns[_free_title(name, columns)] = values
        for name in (*self.problem.outputs, *extras):
            if any(name in r.sem for r in self.rows):
                values = np.array([r.sem.get(name, np.nan) for r in self.rows], dtype=np.float64)
                columns[_free_title(sem_column(name), columns)] = values
        for name in ("failure", "cause", "started", "seconds", "worker", "excluded"):
            columns[name] = [getattr(r, name) for r in self.rows]
        return pd.DataFrame(columns).astype({"seconds": np.float64})

    @cached_property
    def outside(self) -> Evaluations:
        """Only those with an outcome, and not excluded, whose designs the problem no longer has: never answers."""
        rows = zip(self.rows, self.is_inside, strict=True)
        return Evaluations(
            self.problem,
            tuple(row for row, inside in rows if not inside and row.excluded is None and row.state != "running"),
        )

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        return evaluations_html(self)

    def _where(self, state: State) -> Evaluations:
        rows = zip(self.rows, self.is_inside, strict=True)
        return Evaluations(
            self.problem, tuple(row for row, inside in rows if inside and row.state == state and row.excluded is None)
        )


def sem_column(name: str) -> str:
    """Return the name of the column with the standard errors of an output."""
    return f"{name} sem"


def _free_title(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken or name in RESERVED:
        name = f"output {name}"
    return name


def part_counts(problem: Problem, first: Evaluation | None) -> dict[str, int | None]:
    """Return how many parts each output has in the first measured evaluation; None for one number."""
    return {} if first is None else {name: count_parts(name, first.outputs) for name in problem.simulated}


def judged(problem: Problem, counts: Mapping[str, int | None], row: Evaluation) -> Evaluation:
    """Return an evaluation as it counts: a complete one as failed at its design if its outputs are not what they must be.

    That is with an output out of the problem's valid range, with other parts than counted in the first measured evaluation, or
    where a derived output has no finite value. Derived outputs are computed here, whatever the simulator says of them.
    """
    reason = None
    if row.state == "complete":
        reason = _other_parts(counts, row.outputs)
        if reason is None and problem.derived:
            outputs, reason = problem.completed(row.point, row.outputs)
            row = replace(row, outputs=outputs)
        reason = reason or problem.invalid(row.outputs)
    return row if reason is None else replace(row, state="failed", failure=reason, cause="design")


def _other_parts(counts: Mapping[str, int | None], outputs: Mapping[str, float]) -> str | None:
    for name, count in counts.items():
        found = count_parts(name, outputs)
        if found != count:
            wanted, came = ("one number" if n is None else f"a list of {n}" for n in (count, found))
            return (
                f"the output {name!r} must be {wanted} as in the first measured evaluation, but is {came}; "
                "return the same parts for every design"
            )
    return None


@dataclass(frozen=True)
class Trial:
    """A design that was asked for and awaits its outcome."""

    id: int
    point: Point
