"""Routes about decisions, audits, committed and robust designs, and other questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from cbabo.answering.answers import Answer
from cbabo.decisions.other_question import Limit
from cbabo.model import Model
from cbabo.surfaces.deciding_records import common_record, decision_record, freeze_record, tolerances_record
from cbabo.surfaces.web.deciding_schemas import (
    CommonRecord,
    FreezeRecord,
    Freezing,
    Prediction,
    Shared,
    ToleranceRecord,
    Tolerancing,
)
from cbabo.surfaces.web.following import Follower
from cbabo.surfaces.web.safety import StrictJSON
from cbabo.surfaces.web.schemas import Auditing, Deciding, DecisionRecord, JobRecord, errors
from cbabo.surfaces.web.spending import Spending

AnswerRequest = Callable[[Request, Callable[[], Response]], Awaitable[Response]]
"""Makes the response to a request in a thread of its own, when it is its turn."""


def add_ledger(app: FastAPI, follower: Follower, spending: Spending, guarded: Any, answer: AnswerRequest) -> None:
    """Add the ledger and audits; guarded: what asks for the token."""

    @app.get("/api/decisions", response_model=list[DecisionRecord], responses=errors(429))
    async def decisions(request: Request) -> Response:
        """What was decided and proposed, the oldest first."""
        study = follower.study
        return await answer(request, lambda: StrictJSON([decision_record(made) for made in study.decisions]))

    @app.post(
        "/api/decisions",
        status_code=201,
        dependencies=guarded,
        response_model=DecisionRecord,
        responses=errors(401, 409, 422, 429),
    )
    async def decide(request: Request, deciding: Deciding) -> Response:
        """Write limits into the ledger, with their answer and the state of the data."""

        def make() -> Response:
            with follower.model() as model:
                found = model.predict(deciding.thresholds)
            made = follower.study.decide(
                found, deciding.note, deciding.by, deciding.intents, proposal=deciding.proposal, model=model
            )
            return StrictJSON(decision_record(made), 201)

        return await answer(request, make)

    @app.post(
        "/api/audit",
        status_code=202,
        dependencies=guarded,
        response_model=JobRecord,
        responses=errors(401, 409, 422, 429),
    )
    async def audit(request: Request, auditing: Auditing) -> Response:
        """Begin to test the model's claims; the job says when it is done."""
        return await answer(request, lambda: StrictJSON(spending.audit(auditing.evaluations).record(), 202))


def add_committing(app: FastAPI, follower: Follower, answer: AnswerRequest) -> None:
    """Add what tells of committed and robust designs."""

    @app.post("/api/freeze", response_model=FreezeRecord, responses=errors(409, 422, 429))
    async def freeze(request: Request, freezing: Freezing) -> Response:
        """How far each variable moves over the limits, and what fixing it now costs."""

        def make() -> Response:
            with follower.model(heavy=True) as model:
                found = model.freeze(freezing.thresholds, fixed=freezing.fixed)
            return StrictJSON(freeze_record(found))

        return await answer(request, make)

    @app.post("/api/common", response_model=CommonRecord, responses=errors(409, 422, 429))
    async def common(request: Request, shared: Shared) -> Response:
        """One design that obeys all rows of limits, and what it costs against one for each."""

        def make() -> Response:
            with follower.model(heavy=True) as model:
                found = model.common(shared.thresholds, shared.weights)
            return StrictJSON(common_record(found))

        return await answer(request, make)

    @app.post("/api/tolerances", response_model=ToleranceRecord, responses=errors(409, 422, 429))
    async def tolerances(request: Request, asked: Tolerancing) -> Response:
        """The largest box of tolerances that keeps the stated probability."""

        def make() -> Response:
            with follower.model(heavy=True) as model:
                found = model.tolerances(asked.thresholds, asked.weights, give=asked.give, point=asked.point)
            return StrictJSON(tolerances_record(found))

        return await answer(request, make)


def predicted(model: Model, asked: Prediction) -> Answer:
    """Answer a question, the study's own or another one."""
    model.problem.box.complete(asked.thresholds)  # Limits on other numbers are stated as further ones.
    limits: dict[str, Limit] = dict(asked.thresholds)
    for name, further in asked.further.items():
        limits[name] = further.value if further.sense is None else (further.sense, further.value)
    return model.predict(
        limits,
        objective=asked.objective,
        probability=asked.probability,
        scatter=asked.scatter,
        tolerance=asked.tolerance,
    )
