"""The routes: the page's files, and under /api the commands of the command line with the same JSON and error messages."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from cbabo.domain.notation import finding
from cbabo.errors import CbaboError, InputError, StorageError
from cbabo.evaluators.spec import Simulator
from cbabo.study.study import Study
from cbabo.surfaces.page import files
from cbabo.surfaces.records import (
    answer_record,
    evaluation_record,
    recommendation_record,
    status_record,
    table_rows,
)
from cbabo.surfaces.web.deciding import add_committing, add_ledger, predicted
from cbabo.surfaces.web.deciding_schemas import Prediction
from cbabo.surfaces.web.explaining import add_explaining
from cbabo.surfaces.web.following import Follower
from cbabo.surfaces.web.safety import Safety, StrictJSON, is_token
from cbabo.surfaces.web.schemas import (
    MOST_SOLVED,
    AnswerRecord,
    DocumentRecord,
    EvaluationRecord,
    FollowRecord,
    JobRecord,
    Pending,
    Question,
    Questions,
    RecommendationRecord,
    Refinement,
    StatusRecord,
    TableRow,
    Told,
    ToldRecord,
    Wish,
    errors,
    name_limits,
)
from cbabo.surfaces.web.spending import Spending
from cbabo.surfaces.web.turns import Client, Places

_SLICE = 250
"""Rows of one slice of a heavy request that is answered with `fast`; where rows are solved, a slice is one row."""
_Id = Annotated[int, Path(ge=1, le=2**31 - 1)]


def make_app(study: Study, simulator: Simulator | None, token: str, port: int) -> Safety:
    """Return the application for one study, as it is to be served on this port."""
    return Safety(_application(study, simulator, token), port)


def openapi(study: Study) -> dict[str, Any]:
    """Return the OpenAPI description of all routes, with the limits of this study."""
    return _application(study, None, "").openapi()


def _application(study: Study, simulator: Simulator | None, token: str) -> FastAPI:
    app = FastAPI(
        title="cbabo",
        summary="The best design for any limits, from one run of a simulator.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
    )
    follower = Follower(study)
    routes = _Routes(follower, Spending(follower, simulator), simulator is not None, token)
    _add_errors(app)
    _add_page(app)
    routes.add_reading(app)
    routes.add_answering(app)
    routes.add_spending(app)
    described = name_limits(app.openapi(), study.problem)
    app.openapi = lambda: described  # type: ignore[method-assign]
    return app


class _Routes:
    """The routes under /api.

    A response is written in the thread that made its content: writing a long one must not hold up the others.
    """

    def __init__(self, follower: Follower, spending: Spending, evaluator: bool, token: str) -> None:
        self._follower = follower
        self._spending = spending
        self._evaluator = evaluator
        self._token = token
        self._light = Places("light")
        self._heavy = Places("heavy")

    def add_reading(self, app: FastAPI) -> None:
        """Add what reads the study."""
        follower, spending = self._follower, self._spending

        @app.get("/api/status", response_model=StatusRecord, responses=errors(429))
        async def status(request: Request) -> Response:
            """Progress of the study."""
            return await self._answer(
                request, lambda: StrictJSON(status_record(follower.study, follower.evaluations()))
            )

        @app.get("/api/follow", response_model=FollowRecord, responses=errors())
        def follow() -> Response:
            """What the page polls: counts, and whether the model or the answers have changed."""
            rows = follower.evaluations()
            reading = follower.reading
            content = {
                "complete": len(rows.complete),
                "failed": len(rows.failed),
                "running": len(rows.running),
                "optimiser": follower.study.optimiser or "none",
                "evaluator": self._evaluator,
                "learning": follower.learning,
                "revision": reading.revision,
                "problem": reading.problem,
                "convergence": None if reading.convergence is None else str(reading.convergence),
                "verified": [answer_record(answer) for answer in spending.verified()],
            }
            return StrictJSON(content)

        @app.get("/api/document", response_model=DocumentRecord, responses=errors())
        async def document() -> Response:
            """The document from which the page computes its answers."""
            return Response(follower.reading.document, media_type="application/json")

        @app.get("/api/evaluations", response_model=list[EvaluationRecord], responses=errors(429))
        async def evaluations(request: Request) -> Response:
            """All evaluations, failed ones included."""
            return await self._answer(
                request, lambda: StrictJSON([evaluation_record(row) for row in follower.evaluations()])
            )

    def add_answering(self, app: FastAPI) -> None:
        """Add what asks the model."""
        follower = self._follower

        @app.post("/api/predict", response_model=AnswerRecord, responses=errors(409, 422, 429))
        async def predict(request: Request, question: Prediction) -> Response:
            """The design for these limits, or the answer to another question."""

            def answer() -> Response:
                with follower.model() as model:
                    found = predicted(model, question)
                return StrictJSON(answer_record(found))

            return await self._answer(request, answer)

        @app.post("/api/predict-many", response_model=list[TableRow], responses=errors(409, 422, 429))
        async def predict_many(request: Request, questions: Questions) -> Response:
            """The designs for many limits, as a table."""
            if len(questions.thresholds) > MOST_SOLVED and not questions.fast:
                raise InputError(
                    f"predict-many: expected at most {MOST_SOLVED} rows, got {len(questions.thresholds)}; "
                    "ask with fast, or in smaller parts"
                )
            with self._heavy.place(self._client(request)):
                return await self._answer_many(request, questions)

        @app.post("/api/recommend", response_model=RecommendationRecord, responses=errors(409, 422, 429))
        async def recommend(request: Request, wish: Wish) -> Response:
            """Limits that follow the intents and improve the objective."""

            def answer() -> Response:
                with follower.model(heavy=True) as model:
                    found = model.recommend(wish.thresholds, wish.with_targets, alternatives=wish.alternatives)
                return StrictJSON(recommendation_record(found))

            return await self._answer_heavily(request, answer)

        add_committing(app, follower, self._answer_heavily)
        add_explaining(app, follower, self._answer_heavily)

    def add_spending(self, app: FastAPI) -> None:
        """Add what changes the study or spends evaluations, with the token only."""
        spending = self._spending

        async def needs_token(request: Request) -> None:
            if self._client(request) != "owner":
                raise HTTPException(
                    401,
                    "this changes the study or spends evaluations; send the token that the server printed",
                    {"WWW-Authenticate": "Bearer"},
                )

        guarded: Any = [Depends(needs_token), Depends(HTTPBearer(auto_error=False))]

        @app.post(
            "/api/refine",
            status_code=202,
            dependencies=guarded,
            response_model=JobRecord,
            responses=errors(401, 409, 422, 429),
        )
        async def refine(request: Request, refinement: Refinement) -> Response:
            """Begin to verify or improve an answer; the job says when it is done."""
            return await self._answer(
                request,
                lambda: StrictJSON(spending.refine(refinement.thresholds, refinement.evaluations).record(), 202),
            )

        add_ledger(app, self._follower, spending, guarded, self._answer)

        @app.get("/api/jobs/{id}", response_model=JobRecord, responses=errors(404, 422))
        async def job(id: _Id) -> Response:
            """Progress of a refinement or an audit."""
            found = spending.job(id)
            if found is None:
                raise HTTPException(404, f"there is no job {id}; refine and audit begin one")
            return StrictJSON(found.record())

        @app.post(
            "/api/hand-outs",
            status_code=201,
            dependencies=guarded,
            response_model=Pending,
            responses=errors(401, 409, 422, 429),
        )
        async def hand_out(request: Request, question: Question) -> Response:
            """Hand out the design for these limits, to be measured by hand."""

            def answer() -> Response:
                trial = spending.hand_out(question.thresholds)
                return StrictJSON({"id": trial.id, "point": trial.point}, 201)

            return await self._answer(request, answer)

        @app.post(
            "/api/evaluations/{id}",
            dependencies=guarded,
            response_model=ToldRecord,
            responses=errors(401, 409, 422, 429),
        )
        async def tell(request: Request, id: _Id, told: Told) -> Response:
            """Store what a pending design measured, or why it failed."""

            def answer() -> Response:
                row, found = spending.tell(id, told.model_dump()["outputs"], told.failed)
                return StrictJSON({**evaluation_record(row), "answer": None if found is None else answer_record(found)})

            return await self._answer(request, answer)

    async def _answer(self, request: Request, make: Callable[[], Response]) -> Response:
        """Answer a light request."""
        with self._light.place(self._client(request)):
            return await run_in_threadpool(make)

    async def _answer_heavily(self, request: Request, make: Callable[[], Response]) -> Response:
        """Answer a heavy request that cannot be sliced."""
        with self._heavy.place(self._client(request)):
            return await run_in_threadpool(make)

    async def _answer_many(self, request: Request, questions: Questions) -> Response:
        """Answer a heavy request in slices, all by the same model, until it is done or nobody waits for it any more."""
        follower = self._follower
        model = follower.latest()
        box = model.problem.box
        rows = await run_in_threadpool(lambda: [box.row(row)[0] for row in questions.thresholds])
        size = _SLICE if questions.fast else 1
        found: list[dict[str, Any]] = []

        def answer(part: list[Any]) -> None:
            with follower.turns.turn(heavy=True):
                found.extend(table_rows(model.predict_many(part, fast=questions.fast).to_frame()))

        for start in range(0, len(rows), size):
            if await request.is_disconnected():
                return Response()
            await run_in_threadpool(answer, rows[start : start + size])
        return await run_in_threadpool(StrictJSON, found)

    def _client(self, request: Request) -> Client:
        return "owner" if is_token(request.headers.get("authorization"), self._token) else "anyone"


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return Response(files()["index.html"], media_type="text/html")

    @app.get("/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        if name not in files():
            raise HTTPException(404)
        return Response(files()[name], media_type=mimetypes.guess_type(name)[0])


def _add_errors(app: FastAPI) -> None:
    """Add handlers of errors; none of them needs a thread, so that a busy server refuses at once."""

    @app.exception_handler(CbaboError)
    async def refused(_: Request, error: CbaboError) -> Response:
        code = 400 if isinstance(error, InputError) else 503 if isinstance(error, StorageError) else 409
        return StrictJSON({"error": " ".join(str(error).split())}, code)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        return StrictJSON({"error": finding(error.errors()[0])}, 422)

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> Response:
        return StrictJSON({"error": "the server failed; what it printed says why"}, 500)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        said = error.detail
        if error.status_code == 404 and said == "Not Found":
            said = f"there is nothing at {request.url.path}; /api/openapi.json says what there is"
        elif error.status_code == 405:
            said = f"{request.method} is not allowed at {request.url.path}; /api/openapi.json says what is"
        return StrictJSON({"error": said}, error.status_code, error.headers)
