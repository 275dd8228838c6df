from __future__ import annotations

from starlette.testclient import TestClient

from cbabo import Study
from cbabo.surfaces.web.schemas import AuditRecord, DecisionRecord
from simulators import simulate_beam
from web.conftest import ALLOWED, AT, client_of
from web.test_spending import ended


def test_decisions_are_written_with_the_token_and_read_by_anyone(client: TestClient, study: Study) -> None:
    body = {"thresholds": AT, "note": "agreed", "by": "hk", "intents": {"stress": "loosen"}}
    assert client.post("/api/decisions", json=body).status_code == 401
    made = client.post("/api/decisions", json=body, headers=ALLOWED)
    assert made.status_code == 201, made.text
    DecisionRecord.model_validate(made.json())
    assert made.json()["by"] == "hk"
    assert client.get("/api/decisions").json() == [made.json()]
    assert study.decisions[0].note == "agreed"
    wrong = client.post("/api/decisions", json={"thresholds": {"strain": 1.0}}, headers=ALLOWED)
    assert wrong.status_code == 400
    assert "unknown constraint" in wrong.json()["error"]


def test_an_audit_is_a_job(study: Study) -> None:
    client = client_of(study, simulate_beam)
    assert client.post("/api/audit", json={"evaluations": 2}).status_code == 401
    begun = client.post("/api/audit", json={"evaluations": 2}, headers=ALLOWED)
    assert begun.status_code == 202, begun.text
    job = ended(client, begun.json())
    assert (job["state"], job["spent"], job["answer"]) == ("done", 2, None)
    AuditRecord.model_validate(job["audit"])
    assert [row.kind for row in study.evaluations[32:]] == ["audit"] * 2
    assert client.get("/api/evaluations").json()[-1]["kind"] == "audit"
    assert "answers obey all limits" in client.get("/api/status").json()["last_audit"]


def test_without_an_evaluator_there_is_no_audit(client: TestClient) -> None:
    refused = client.post("/api/audit", json={}, headers=ALLOWED)
    assert refused.status_code == 409
    assert "without an evaluator" in refused.json()["error"]
