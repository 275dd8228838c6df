"""The routes: the page's files, and under /api the commands of the command line with the same JSON and error messages."""

from __future__ import annotations

import mimetypes
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
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
from cbabo.surfaces.web.following import Follower
from cbabo.surfaces.web.safety import Safety, StrictJSON, is_token
from cbabo.surfaces.web.spending import Spending

MOST_ROWS = 10_000
"""Thresholds that one request may ask about with `fast`."""
MOST_SOLVED = 500
"""Thresholds that one request may ask about without."""
_Id = Annotated[int, Path(ge=1, le=2**31)]
_Limits = dict[str, float]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Question(_Body):
    """A request for one answer."""

    thresholds: _Limits
    """A limit for every movable constraint, natural units."""


class Questions(_Body):
    """A request for many answers."""

    thresholds: Annotated[list[_Limits], Field(max_length=MOST_ROWS)]
    """Rows of limits."""
    fast: bool = False
    """For maps and sliders: answer from solved thresholds instead of solving."""


class Wish(Question):
    """A request for a recommendation."""

    intents: dict[str, Literal["tighten", "lock", "loosen", "<", "=", ">"]] = {}
    """By limit; those left out are locked."""
    alternatives: int = Field(default=3, ge=0, le=20)
    """Other proposals to return."""


class Refinement(Question):
    """The evaluations of a refinement."""

    evaluations: int = Field(default=2, ge=1, le=10)
    """1 verifies, every further one looks for a better design."""


class Told(_Body):
    """What a design measured, or why it failed."""

    outputs: dict[str, float] | None = None
    """Raw outputs by name."""
    failed: Annotated[str, Field(max_length=10_000)] | None = None
    """The reason."""


def make_app(study: Study, simulator: Simulator | None, token: str, port: int) -> Safety:
    """Return the application for one study, as it is to be served on this port."""
    app = FastAPI(
        title="cbabo",
        summary="The best design for any limits, from one run of a simulator.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        default_response_class=StrictJSON,
    )
    follower = Follower(study)
    _add_errors(app)
    _add_page(app)
    _add_reading(app, follower, Spending(follower, simulator), simulator is not None, token)
    return Safety(app, port)


def _add_reading(app: FastAPI, follower: Follower, spending: Spending, evaluator: bool, token: str) -> None:
    study = follower.study

    def needs_token(request: Request) -> None:
        if not is_token(request.headers.get("authorization"), token):
            raise HTTPException(
                401, "this changes the study or spends evaluations; send the token that the server printed"
            )

    guarded: Any = [Depends(needs_token), Depends(HTTPBearer(auto_error=False))]

    @app.get("/api/status")
    def status() -> dict[str, Any]:
        """Progress of the study."""
        return status_record(study, follower.evaluations())

    @app.get("/api/follow")
    def follow() -> dict[str, Any]:
        """What the page polls: counts, and whether the model or the answers have changed."""
        rows = follower.evaluations()
        reading = follower.reading
        return {
            "complete": len(rows.complete),
            "failed": len(rows.failed),
            "running": len(rows.running),
            "optimiser": study.optimiser or "none",
            "evaluator": evaluator,
            "learning": follower.learning,
            "revision": reading.revision,
            "problem": reading.problem,
            "verified": [answer_record(answer) for answer in spending.verified()],
        }

    @app.get("/api/document")
    def document() -> Response:
        """The document from which the page computes its answers."""
        return Response(follower.reading.document, media_type="application/json")

    @app.get("/api/evaluations")
    def evaluations() -> list[dict[str, Any]]:
        """All evaluations, failed ones included."""
        return [evaluation_record(row) for row in follower.evaluations()]

    @app.post("/api/predict")
    def predict(question: Question) -> dict[str, Any]:
        """The design for these limits."""
        with follower.model() as model:
            return answer_record(model.predict(question.thresholds))

    @app.post("/api/predict-many")
    def predict_many(questions: Questions) -> list[dict[str, Any]]:
        """The designs for many limits, as a table."""
        if len(questions.thresholds) > MOST_SOLVED and not questions.fast:
            raise InputError(
                f"predict-many: expected at most {MOST_SOLVED} rows, got {len(questions.thresholds)}; "
                "ask with fast, or in smaller parts"
            )
        with follower.model() as model:
            rows = [model.problem.box.row(row)[0] for row in questions.thresholds]
            return table_rows(model.predict_many(rows, fast=questions.fast).to_frame()) if rows else []

    @app.post("/api/recommend")
    def recommend(wish: Wish) -> dict[str, Any]:
        """Limits that follow the intents and improve the objective."""
        with follower.model() as model:
            found = model.recommend(wish.thresholds, wish.intents, alternatives=wish.alternatives)
            return recommendation_record(found)

    @app.post("/api/refine", status_code=202, dependencies=guarded)
    def refine(refinement: Refinement) -> dict[str, Any]:
        """Begin to verify or improve an answer; the job says when it is done."""
        return spending.refine(refinement.thresholds, refinement.evaluations).record()

    @app.get("/api/jobs/{id}")
    def job(id: _Id) -> dict[str, Any]:
        """Progress of a refinement."""
        return spending.job(id).record()

    @app.post("/api/hand-outs", status_code=201, dependencies=guarded)
    def hand_out(question: Question) -> dict[str, Any]:
        """Hand out the design for these limits, to be measured by hand."""
        trial = spending.hand_out(question.thresholds)
        return {"id": trial.id, "point": trial.point}

    @app.post("/api/evaluations/{id}", dependencies=guarded)
    def tell(id: _Id, told: Told) -> dict[str, Any]:
        """Store what a pending design measured, or why it failed."""
        row, answer = spending.tell(id, told.outputs, told.failed)
        return {**evaluation_record(row), "answer": None if answer is None else answer_record(answer)}


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def index() -> Response:
        return Response(files()["index.html"], media_type="text/html")

    @app.get("/{name}", include_in_schema=False)
    def file(name: str) -> Response:
        if name not in files():
            raise HTTPException(404)
        return Response(files()[name], media_type=mimetypes.guess_type(name)[0])


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(CbaboError)
    def refused(_: Request, error: CbaboError) -> Response:
        code = 400 if isinstance(error, InputError) else 503 if isinstance(error, StorageError) else 409
        return StrictJSON({"error": " ".join(str(error).split())}, code)

    @app.exception_handler(RequestValidationError)
    def malformed(_: Request, error: RequestValidationError) -> Response:
        return StrictJSON({"error": finding(error.errors()[0])}, 422)

    @app.exception_handler(Exception)
    def failed(_: Request, __: Exception) -> Response:
        return StrictJSON({"error": "the server failed; what it printed says why"}, 500)

    @app.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> Response:
        said = {404: f"there is nothing at {request.url.path}; /api/openapi.json says what there is"}
        return StrictJSON({"error": said.get(error.status_code, error.detail)}, error.status_code, error.headers)
