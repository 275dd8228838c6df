"""What requests and responses look like: the models behind /api/openapi.json.

Requests are validated by these. Responses are made by `surfaces.records` and only described here; the tests compare them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from cbabo.domain.problem import Problem

MOST_ROWS = 10_000
"""Thresholds that one request may ask about with `fast`."""
MOST_SOLVED = 500
"""Thresholds that one request may ask about without."""
Limits = dict[str, float]
Design = dict[str, float | str]
"""Values by variable name, labels where variables are categorical."""
WholeNumber = Annotated[int, BeforeValidator(lambda v: int(v) if isinstance(v, float) and v.is_integer() else v)]
"""A whole number as JSON has it, where 2.0 is one."""


class Body(BaseModel):
    """A request or a response with nothing but what is described."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Question(Body):
    """A request for one answer."""

    thresholds: Limits
    """Limits by name, natural units; a movable limit that is left out stands at its nominal value."""


class Questions(Body):
    """A request for many answers."""

    thresholds: Annotated[list[Limits], Field(max_length=MOST_ROWS)]
    """Rows of limits, each with all movable limits; at most 500 unless `fast`."""
    fast: bool = False
    """For maps and sliders: answer from solved thresholds instead of solving."""


class Wish(Question):
    """A request for a recommendation."""

    intents: dict[str, Literal["tighten", "lock", "loosen", "<", "=", ">"]] = {}
    """By limit; those left out are locked."""
    targets: Limits = {}
    """Values that limits with an intent move to: tightened ones exactly if that can be met, loosened ones at most."""
    alternatives: WholeNumber = Field(default=3, ge=0, le=20)
    """Other proposals to return."""

    @property
    def with_targets(self) -> dict[str, Any]:
        """The intents as a model takes them."""
        stated = {name: (self.intents.get(name, "lock"), value) for name, value in self.targets.items()}
        return {**self.intents, **stated}


class Refinement(Question):
    """The evaluations of a refinement."""

    evaluations: WholeNumber = Field(default=2, ge=1, le=10)
    """1 verifies, every further one looks for a better design."""


class Measurement(Body):
    """A number with its standard error."""

    value: float
    sem: Annotated[float, Field(ge=0.0)]
    """Standard error of the value."""


def _kind(reading: object) -> str:
    """Return the tag of a reading; brackets keep tags out of messages."""
    if isinstance(reading, dict | Measurement):
        return "[measurement]"
    return "[parts]" if isinstance(reading, list) else "[number]"


_Measured = Annotated[
    Annotated[float, Tag("[number]")] | Annotated[Measurement, Tag("[measurement]")], Discriminator(_kind)
]
_Reading = Annotated[
    Annotated[float, Tag("[number]")]
    | Annotated[Measurement, Tag("[measurement]")]
    | Annotated[list[_Measured], Tag("[parts]")],
    Discriminator(_kind),
]


class Auditing(Body):
    """The evaluations of an audit."""

    evaluations: WholeNumber = Field(default=20, ge=1, le=100)
    """One for each fresh threshold."""


class Deciding(Question):
    """Limits that were agreed on or proposed."""

    note: Annotated[str, Field(max_length=10_000)] = ""
    by: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """Who; the user of the server's machine unless given."""
    intents: dict[str, Literal["tighten", "lock", "loosen", "<", "=", ">"]] = {}
    proposal: bool = False


class Told(Body):
    """What a design measured, or why it failed; one of the two."""

    outputs: dict[str, _Reading] | None = None
    """Raw outputs by name: a number, a number with its standard error, or a list of either, one for each part."""
    failed: Annotated[str, Field(max_length=10_000)] | None = None
    """The reason."""


class Error(Body):
    """Why there is no answer."""

    error: str
    """One sentence: what was expected, what came, what to do."""


class Warned(Body):
    """A warning about an answer."""

    warning: str


class OutputEstimate(Body):
    """A predicted or measured output."""

    output: str
    mean: float
    std: float
    """0 where it was measured without noise."""


class OutputNoise(Body):
    """The noise of an output."""

    output: str
    std: float
    """Standard deviation of one measurement."""


class AnswerRecord(Body):
    """The design for some limits."""

    status: Literal["predicted", "measured", "verified", "unreachable"]
    objective: float
    objective_std: float
    probability_feasible: float
    probability_success: float
    """That the simulator returns at all."""
    approximate: bool
    """Whether it is a fast answer where neighbouring solutions differ, so that a full one may be another design."""
    warnings: list[Warned]
    limits: Limits
    closest_limits: Limits
    """The closest limits that can be met, where the limits asked for cannot; else empty."""
    design: Design
    outputs: list[OutputEstimate]
    noise: list[OutputNoise]
    """Of every output whose repeated measurements differ."""
    measurements: int
    """How often this design was measured."""
    scatter: dict[str, float]
    """Standard deviations of variables that the probability contains."""
    tolerance: dict[str, float]
    """Half widths of variables, uniformly distributed, that the probability contains."""


class Change(Body):
    """What a recommendation does to one limit."""

    limit: str
    intent: str
    before: float
    after: float
    effect: float
    """Of this change alone on the objective."""


class Alternative(Body):
    """Another proposal."""

    objective_after: float
    improvement: float
    probability_feasible: float
    limits: Limits


class RecommendationRecord(Body):
    """Proposed limits."""

    objective_before: float
    objective_after: float
    improvement: float
    probability_feasible: float
    warnings: list[Warned]
    changes: list[Change]
    design: Design
    alternatives: list[Alternative]


class Pending(Body):
    """A design that awaits its outputs."""

    id: int
    point: Design


class Unfinished(Pending):
    """An evaluation without an outcome, and what it waits for."""

    standing: str


class Failure(Body):
    """A failed evaluation."""

    id: int
    started: str | None
    worker: str | None
    failure: str | None
    log: str


class Exclusion(Body):
    """An evaluation that was excluded."""

    id: int
    reason: str


class DamageRecord(Body):
    """A damaged row."""

    id: int | None
    """The evaluation; null if the damage is elsewhere."""
    damage: str


class ConvergenceRecord(Body):
    """How far the answers still move, in shares of the span."""

    evaluations: int
    window: int
    thresholds: int
    moved: float
    gain: float
    risk: float
    figure: float
    text: str


class AmendmentRecord(Body):
    """A change of the problem."""

    amended: str
    after_evaluation: int
    """The last evaluation that was requested before it."""
    changes: list[str]


class StatusRecord(Body):
    """How far a study is."""

    study: str
    requested: int
    complete: int
    failed: int
    running: int
    imported: int
    excluded: int
    damaged: int
    optimiser: str
    """Who runs the study; "none" if nobody does."""
    seconds_per_evaluation: float | None
    to_run_again: int
    """Evaluations that the next run makes again: those of a run that was interrupted, and those that were retried."""
    effort: str | None
    """That the run chooses designs with less effort, because choosing takes long; null otherwise."""
    convergence: ConvergenceRecord | None
    """How far the answers still move; null if it was not estimated since the last evaluation."""
    outside_bounds: int
    """Evaluations at designs that the amended problem no longer has: never answers."""
    nominal_limits: Limits
    last_audit: str | None
    """What the last audit found, and when; null if there was none."""
    best_objective: float | None
    best_evaluation: int | None
    best_design: Design
    best_outputs: dict[str, float]
    pending: list[Unfinished]
    failures: list[Failure]
    exclusions: list[Exclusion]
    damages: list[DamageRecord]
    amendments: list[AmendmentRecord]


class EvaluationRecord(Body):
    """One evaluation."""

    id: int
    state: Literal["complete", "failed", "running"]
    kind: Literal["run", "import", "refine", "retry", "audit"]
    point: Design
    outputs: dict[str, float]
    sem: dict[str, float]
    """Standard errors of outputs, where they were stated."""
    failure: str | None
    cause: Literal["design", "set-up"] | None
    started: str | None
    seconds: float | None
    worker: str | None
    excluded: str | None
    """Why the evaluation was excluded; null if it was not."""


class ToldRecord(EvaluationRecord):
    """An evaluation that was told, and the answer that it belongs to."""

    answer: AnswerRecord | None


class DecisionRecord(Body):
    """An entry of the ledger."""

    number: int
    kind: Literal["decision", "proposal"]
    made: str
    by: str
    note: str
    limits: Limits
    intents: dict[str, str]
    design: Design
    objective: float
    objective_std: float
    probability_feasible: float
    """As it was stated then."""
    status: Literal["predicted", "measured", "verified", "unreachable"]
    measured_objective: float | None
    evaluation: int | None
    """The evaluation that had measured the design; null if it was not measured."""
    evaluations: int
    """How many measured evaluations the model knew."""
    data: str
    """A digest of all evaluations up to then."""
    warnings: list[Warned]


class ShareRecord(Body):
    """A claimed share and the one that was found."""

    of: str
    claimed: float
    found: int
    count: int
    low: float
    """Of the 95 % interval of the found share."""
    high: float
    rejected: bool


class Where(Body):
    """Where the model errs."""

    where: str


class AuditRecord(Body):
    """Claims of the model, and what measuring its answers found."""

    number: int
    made: str
    rejected: bool
    """Whether the claim that answers obey all limits is rejected at 95 %."""
    conclusion: str
    drawn: int
    verified: int
    unreachable: int
    shares: list[ShareRecord]
    errors: list[dict[str, float | int | str | None]]
    """Where answers broke a limit."""
    where: list[Where]


class FollowRecord(Body):
    """What the page polls."""

    convergence: str | None
    """How far the answers still move, in words; null if it was not estimated since the last evaluation."""

    complete: int
    failed: int
    running: int
    optimiser: str
    evaluator: bool
    """Whether the server can evaluate."""
    learning: bool
    """Whether a newer model is being made."""
    revision: str
    """Another one means that there is another document."""
    problem: str | None
    """Why there is no model."""
    verified: list[AnswerRecord]


class JobRecord(Body):
    """A refinement or an audit, under way or ended."""

    id: int
    state: Literal["running", "failed", "done"]
    limits: Limits
    evaluations: int
    spent: int
    seconds: float
    answer: AnswerRecord | None
    audit: AuditRecord | None
    """What an audit has found; null of a refinement."""
    error: str | None


DocumentRecord = dict[str, Any]
"""The document of the page; `surfaces.document` says what is in it."""
TableRow = dict[str, bool | float | str | None]
"""A row of a table: limits, variables, mean and standard deviation of every output, probability of feasibility."""

_SAID = {
    400: "The request is not valid HTTP, or states something that this study does not know.",
    401: "The token is missing or wrong.",
    403: "The request comes from a page of another site.",
    404: "There is nothing under this number.",
    405: "The method is not allowed here.",
    408: "The request did not arrive in time.",
    409: "The study refuses: there is no model yet, another process runs it, or another job is under way.",
    413: "The request is larger than a megabyte.",
    421: "The request names another host.",
    422: "The request does not have the form that is described here.",
    429: "Too many requests are under way; Retry-After says when to ask again.",
    500: "The server failed; what it printed says why.",
    503: "The database or the server is busy; ask again.",
}
_ALWAYS = (400, 403, 405, 408, 413, 421, 500, 503)


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors that a route may answer with, beside those of every route, as FastAPI takes them."""
    return {code: _response(code) for code in sorted({*_ALWAYS, *codes})}


def _response(code: int) -> dict[str, Any]:
    stated: dict[str, Any] = {"model": Error, "description": _SAID[code]}
    if code == 429:
        stated["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    return stated


def name_limits(stated: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """Name the study's limits and outputs in an OpenAPI description, instead of "an object of numbers"."""
    limits: dict[str, Any] = {name: {"type": "number"} for name in problem.box.names}
    schemas: Mapping[str, Any] = stated["components"]["schemas"]
    for owner in ("Question", "Wish", "Refinement", "Deciding", "Prediction", "Tolerancing", "Matter", "Place"):
        _name(schemas[owner]["properties"]["thresholds"], limits, [])
    for owner in ("Questions", "Shared"):
        _name(schemas[owner]["properties"]["thresholds"]["items"], limits, list(limits))
    _name(schemas["Freezing"]["properties"]["thresholds"]["anyOf"][0]["items"], limits, list(limits))
    _name(schemas["Wish"]["properties"]["targets"], limits, [])
    costs: dict[str, Any] = {name: {"type": "number", "exclusiveMinimum": 0} for name in limits}
    _name(schemas["Matter"]["properties"]["costs"], costs, [])
    for owner in ("Wish", "Deciding"):
        intents = schemas[owner]["properties"]["intents"]
        _name(intents, dict.fromkeys(limits, intents["additionalProperties"]), [])
    return stated


def _name(schema: dict[str, Any], properties: dict[str, Any], required: list[str]) -> None:
    schema |= {"properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
