"""Routes that explain limits: prices, reach, conflicts and the atlas, and the form of what they are asked and answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from fastapi import FastAPI, Request
from pydantic import Field
from starlette.responses import Response

from cbabo.surfaces.explaining import atlas_record, explanation_record
from cbabo.surfaces.web.following import Follower
from cbabo.surfaces.web.safety import StrictJSON
from cbabo.surfaces.web.schemas import Body, Design, Limits, Question, Warned, WholeNumber, errors

Costs = dict[str, Annotated[float, Field(gt=0.0)]]
Heavily = Callable[[Request, Callable[[], Response]], Awaitable[Response]]
"""Answers a heavy request."""


class Matter(Question):
    """A request for an explanation."""

    costs: Costs = Field(default_factory=dict)
    """What relaxing a limit by one unit costs; a limit without one costs 1 for its whole range."""
    count: WholeNumber = Field(default=3, ge=1, le=10)
    """Ways out to look for."""


class Place(Question):
    """A request for an atlas."""

    limits: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    """The two limits of the map; those that matter most unless given."""


class Sentence(Body):
    """One thing to know."""

    sentence: str


class PriceRecord(Body):
    """What a limit costs, and how far it could go."""

    limit: str
    unit: str
    at: float
    price: float | None
    """Gain of the objective per unit by which the limit is relaxed; null where the limits cannot be met."""
    std: float | None
    low: float | None
    """The lowest value of the limit up to which the same limits bind."""
    high: float | None
    strictest: float | None
    """The strictest value that can be met, the others held; null where there is none."""
    gains_until: float | None
    """The value from which on relaxing gains nothing."""
    gains_at_end: bool
    """Whether it still gains at the end of its range."""


class ConflictRecord(Body):
    """Limits that cannot hold together."""

    limits: list[str]
    probability: float


class WayOutRecord(Body):
    """A relaxation with which limits can be met."""

    moved: list[str]
    cost: float
    objective: float
    probability_feasible: float
    limits: Limits
    design: Design


class ExplanationRecord(Body):
    """What binds, what each limit costs, how far it could go, and what conflicts."""

    status: Literal["predicted", "measured", "verified", "unreachable"]
    objective: float
    objective_std: float
    probability_feasible: float
    limits: Limits
    binding: list[str]
    sentences: list[Sentence]
    prices: list[PriceRecord]
    conflict: ConflictRecord | None
    ways_out: list[WayOutRecord]
    warnings: list[Warned]


class Share(Body):
    """The part of the box where the same limits bind."""

    limits: list[str]
    share: float


class MapRecord(Body):
    """What binds as two limits move."""

    names: list[str]
    limits: list[list[float]]
    sets: list[list[str]]
    binding: list[list[int]]
    """Which of the sets; -1 where the limits cannot be met."""
    objective: list[list[float]]


class AtlasRecord(Body):
    """Which limits bind where."""

    limits: Limits
    shares: list[Share]
    unreachable: float
    binds: Limits
    free: Limits
    """Limits that do not bind, and the values to which all of them can be tightened together at no cost."""
    most_important: list[str]
    map: MapRecord | None


def add_explaining(app: FastAPI, follower: Follower, heavily: Heavily) -> None:
    """Add what helps to decide on limits."""

    @app.post("/api/explain", response_model=ExplanationRecord, responses=errors(409, 422, 429))
    async def explain(request: Request, matter: Matter) -> Response:
        """What binds, what each limit costs and how far it could go, or what conflicts, with the cheapest ways out."""

        def answer() -> Response:
            with follower.model(heavy=True) as model:
                found = model.explain(matter.thresholds, costs=matter.costs, count=matter.count)
                return StrictJSON(explanation_record(model.problem, found))

        return await heavily(request, answer)

    @app.post("/api/atlas", response_model=AtlasRecord, responses=errors(409, 422, 429))
    async def atlas(request: Request, place: Place) -> Response:
        """Which limits bind where in the box, and which can be given away."""

        def answer() -> Response:
            with follower.model(heavy=True) as model:
                return StrictJSON(atlas_record(model.atlas(place.thresholds, place.limits)))

        return await heavily(request, answer)
