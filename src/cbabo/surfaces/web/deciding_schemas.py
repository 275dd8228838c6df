"""What requests and responses about committed and robust designs look like."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from cbabo.surfaces.web.schemas import AnswerRecord, Body, Design, Limits, Question

MOST = 100
"""Rows of limits that one request may have."""


class FurtherLimit(Body):
    """A limit on a recorded number that the study does not limit."""

    value: float
    sense: Literal["<=", ">="] | None = None
    """An upper limit unless stated; on the old objective as its direction says."""


class Prediction(Question):
    """A request for one answer, also of another question."""

    objective: str | None = None
    """A recorded number to optimise instead, as "stress" or "maximize stress"."""
    further: dict[str, FurtherLimit] = Field(default={})
    """Limits on the old objective, or on any number that all measured evaluations have."""
    probability: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Of feasibility to aim at; the settings' unless given."""
    scatter: dict[str, float] | None = None
    """Standard deviations by variable."""
    tolerance: dict[str, float] | None = None
    """Half widths by variable."""


class Freezing(Body):
    """A request for what fixing variables costs."""

    thresholds: Annotated[list[Limits], Field(min_length=1, max_length=MOST)] | None = None
    """Rows of limits; the whole box unless given."""
    fixed: Design = Field(default={})
    """Variables that are fixed already."""


class FrozenVariable(Body):
    """What fixing a variable costs."""

    variable: str
    unit: str
    low: float | None
    """Its least value in the answers; null for labels."""
    high: float | None
    moves: float
    """Share of its range over which it moves; of labels, the share of answers without the most frequent one."""
    value: float | str
    """The best value to fix."""
    cost: float | None
    """Mean loss of the objective."""
    worst: float | None
    std: float | None
    lost: float
    """Share of the thresholds that can no longer be met."""


class FreezeRecord(Body):
    """What fixing each variable costs, the cheapest first."""

    variables: list[FrozenVariable]


class Shared(Body):
    """A request for one design that obeys many limits."""

    thresholds: Annotated[list[Limits], Field(min_length=1, max_length=MOST)]
    weights: list[float] | None = None


class CommonRecord(Body):
    """One design for many limits."""

    cost: float
    cost_std: float
    worst: float
    answer: AnswerRecord
    rows: list[dict[str, float]]


class Tolerancing(Question):
    """A request for the largest box of tolerances."""

    weights: dict[str, float] | None = None
    give: Annotated[float, Field(ge=0.0)] = 0.02
    """By which share of it the objective may be worse."""
    point: Design | None = None
    """A design that does not move."""


class ToleranceRecord(Body):
    """The largest box of tolerances."""

    probability_feasible: float
    cost: float
    variables: list[dict[str, Any]]
    answer: AnswerRecord
