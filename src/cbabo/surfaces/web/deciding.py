"""Routes about what was decided, and whether to trust the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from cbabo.surfaces.deciding_records import decision_record
from cbabo.surfaces.web.following import Follower
from cbabo.surfaces.web.safety import StrictJSON
from cbabo.surfaces.web.schemas import Auditing, Deciding, DecisionRecord, JobRecord, errors
from cbabo.surfaces.web.spending import Spending

AnswerRequest = Callable[[Request, Callable[[], Response]], Awaitable[Response]]
"""Makes the response to a light request in a thread of its own."""


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
