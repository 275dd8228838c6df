"""The verbs over HTTP: the command line's JSON, the command line's sentences."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cbabo import Settings, Study
from cbabo.surfaces.explaining import atlas_record, explanation_record
from cbabo.surfaces.records import answer_record, evaluation_record, recommendation_record, status_record
from learned import QUICK
from simulators import make_beam, simulate_beam
from web.conftest import AT, client_of


def test_answers_are_those_of_the_model(client: TestClient, study: Study) -> None:
    model = study.model()
    answer = client.post("/api/predict", json={"thresholds": AT})
    assert answer.status_code == 200
    assert answer.json() == answer_record(model.predict(AT))
    rows = [AT, {"stress": 1.0, "frequency": 6.0}]
    many = client.post("/api/predict-many", json={"thresholds": rows}).json()
    table = model.predict_many([[5.0, 3.0], [1.0, 6.0]]).to_frame()
    assert [list(row) for row in many] == [list(table.columns)] * 2
    assert [row["mass"] for row in many] == pytest.approx(table["mass"].tolist())
    assert client.post("/api/predict-many", json={"thresholds": []}).json() == []
    more = client.post("/api/predict-many", json={"thresholds": [AT] * 501})
    assert more.status_code == 400
    assert "at most 500 rows, got 501; ask with fast" in more.json()["error"]
    assert len(client.post("/api/predict-many", json={"thresholds": [AT] * 501, "fast": True}).json()) == 501
    found = client.post("/api/recommend", json={"thresholds": AT, "intents": {"stress": "tighten"}}).json()
    assert found == recommendation_record(model.recommend(AT, {"stress": "tighten"}))
    assert len(found["alternatives"]) <= 3


@pytest.fixture(scope="module")
def solving() -> Study:
    """A study of the default method."""
    study = Study.create(make_beam(), "sqlite://", settings=Settings.default().replace(library=16))
    study.run(simulate_beam, budget=30, in_process=True)
    return study


def test_decisions_are_those_of_the_model(solving: Study) -> None:
    client, model = client_of(solving), solving.model()
    to_a_value = {"thresholds": AT, "intents": {"stress": "loosen"}, "targets": {"stress": 6.0}}
    limited = client.post("/api/recommend", json=to_a_value).json()
    assert limited == recommendation_record(model.recommend(AT, {"stress": ("loosen", 6.0)}))
    explained = client.post("/api/explain", json={"thresholds": AT, "costs": {"stress": 2.0}, "count": 2}).json()
    assert explained == explanation_record(model.problem, model.explain(AT, costs={"stress": 2.0}, count=2))
    assert [row["limit"] for row in explained["prices"]] == ["stress", "frequency"]
    unmet = client.post("/api/explain", json={"thresholds": {**AT, "stress": 1.0}}).json()
    assert unmet["status"] == "unreachable"
    assert unmet["conflict"]["limits"]
    assert all(row["price"] is None for row in unmet["prices"])
    atlas = client.post("/api/atlas", json={"thresholds": AT}).json()
    assert atlas == atlas_record(model.atlas(AT))
    refused = client.post("/api/atlas", json={"thresholds": AT, "limits": ["stress", "x"]})
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("atlas: unknown limit 'x'; expected ")
    assert client.post("/api/explain", json={"thresholds": AT, "costs": {"stress": 0.0}}).status_code == 422


def test_what_the_papers_method_cannot_say_is_refused(client: TestClient) -> None:
    for route in ("explain", "atlas"):
        answer = client.post(f"/api/{route}", json={"thresholds": AT})
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(f"{route}: the paper method aims at no probability")


def test_the_study_is_read(client: TestClient, study: Study) -> None:
    assert client.get("/api/status").json() == status_record(study, study.evaluations)
    assert client.get("/api/evaluations").json() == [evaluation_record(row) for row in study.evaluations]
    followed = client.get("/api/follow").json()
    assert (followed["complete"], followed["failed"], followed["running"]) == (32, 0, 0)
    assert followed["optimiser"] == "none"
    assert followed["evaluator"] is False
    assert followed["problem"] is None
    document = client.get("/api/document").json()
    assert document["revision"] == followed["revision"]
    assert document["study"]["name"] == "beam"


def test_the_interface_describes_itself(client: TestClient) -> None:
    stated = client.get("/api/openapi.json").json()
    assert set(stated["paths"]) == {
        "/api/status", "/api/follow", "/api/document", "/api/evaluations", "/api/predict", "/api/predict-many",
        "/api/recommend", "/api/explain", "/api/atlas", "/api/freeze", "/api/common", "/api/tolerances",
        "/api/decisions", "/api/audit", "/api/refine", "/api/jobs/{id}", "/api/hand-outs", "/api/evaluations/{id}",
    }  # fmt: skip
    assert stated["paths"]["/api/refine"]["post"]["security"]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"thresholds": {**AT, "mass": 1.0}}, 400, "thresholds: unknown constraint 'mass'"),
        ({"thresholds": {**AT, "cost": 1.0}}, 400, "the limit of 'cost' is fixed by the problem"),
        ({"thresholds": {**AT, "stress": "5"}}, 422, "body.thresholds.stress: input should be a valid number"),
        ({"thresholds": 5}, 422, "thresholds"),
        ({}, 422, "body.thresholds: missing"),
        ({"thresholds": AT, "more": 1}, 422, "body.more: unknown key"),
        (None, 422, "body"),
    ],
)
def test_a_wrong_question_gets_one_sentence(client: TestClient, body: object, code: int, said: str) -> None:
    answer = client.post("/api/predict", json=body)
    assert answer.status_code == code
    assert set(answer.json()) == {"error"}
    assert said in answer.json()["error"]


def test_what_is_no_json_is_refused(client: TestClient) -> None:
    for content in (b"{", b"\xff\xfe", b"[" * 100_000, b'{"thresholds": {"stress": NaN, "frequency": 1e999}}'):
        answer = client.post("/api/predict", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422), content[:20]
        assert "error" in answer.json()


def test_a_study_without_a_model_is_served_and_says_why(tmp_path: Path) -> None:
    study = Study.create(make_beam(), f"sqlite:///{tmp_path}/new.db", settings=QUICK)
    client = client_of(study)
    assert "at least 2 measured designs" in client.get("/api/follow").json()["problem"]
    assert "map" not in client.get("/api/document").json()
    answer = client.post("/api/predict", json={"thresholds": AT})
    assert answer.status_code == 409
    assert "run more evaluations first" in answer.json()["error"]


def test_new_evaluations_are_followed(client: TestClient, study: Study) -> None:
    before = client.get("/api/follow").json()["revision"]
    study.run(simulate_beam, budget=34, in_process=True)
    for _ in range(200):
        followed = client.get("/api/follow").json()
        if followed["revision"] != before and not followed["learning"]:
            break
        time.sleep(0.05)
    assert followed["complete"] == 34
    assert followed["revision"] != before
    assert len(client.get("/api/document").json()["evaluations"]) == 34


def test_the_page_and_its_files_are_served(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert b"main.js" in page.content
    script = client.get("/main.js")
    assert "javascript" in script.headers["content-type"]
    assert client.get("/style.css").headers["content-type"].startswith("text/css")
    for path in ("/nothing.js", "/__init__.py", "/..%2fmodel.py", "/page/main.js", "/api/nothing"):
        missing = client.get(path)
        assert missing.status_code == 404
        assert "there is nothing at" in missing.json()["error"]


def test_a_failure_inside_shows_nothing_of_the_inside(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("cbabo.surfaces.web.app.answer_record", broken)
    answer = client.post("/api/predict", json={"thresholds": AT})
    assert answer.status_code == 500
    assert answer.json() == {"error": "the server failed; what it printed says why"}
