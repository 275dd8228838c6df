from __future__ import annotations

from starlette.testclient import TestClient

from cbabo.surfaces.web.deciding_schemas import CommonRecord, FreezeRecord, ToleranceRecord
from cbabo.surfaces.web.schemas import AnswerRecord
from web.conftest import AT

ROWS = [AT, {"stress": 7.0, "frequency": 2.5}]


def test_committed_and_robust_designs(client: TestClient) -> None:
    frozen = client.post("/api/freeze", json={"thresholds": ROWS, "fixed": {"ribs": 2}})
    assert frozen.status_code == 200, frozen.text
    FreezeRecord.model_validate(frozen.json())
    shared = client.post("/api/common", json={"thresholds": ROWS, "weights": [1.0, 2.0]})
    assert shared.status_code == 200, shared.text
    CommonRecord.model_validate(shared.json())
    box = client.post("/api/tolerances", json={"thresholds": AT, "give": 0.1})
    assert box.status_code == 200, box.text
    ToleranceRecord.model_validate(box.json())
    for path, body in (
        ("freeze", {"fixed": {"depth": 1.0}}),
        ("common", {"thresholds": ROWS, "weights": [1.0]}),
        ("tolerances", {"thresholds": AT, "weights": {"depth": 1.0}}),
    ):
        refused = client.post(f"/api/{path}", json=body)
        assert refused.status_code == 400, refused.text


def test_other_questions(client: TestClient) -> None:
    body = {"thresholds": {"frequency": 3.0}, "further": {"mass": {"value": 6.0}}, "objective": "stress"}
    swapped = client.post("/api/predict", json=body)
    assert swapped.status_code == 200, swapped.text
    AnswerRecord.model_validate(swapped.json())
    assert swapped.json()["limits"]["mass"] == 6.0
    scattered = client.post("/api/predict", json={"thresholds": AT, "scatter": {"width": 0.01}, "probability": 0.9})
    assert scattered.json()["scatter"] == {"width": 0.01}
    refused = client.post("/api/predict", json={**body, "objective": "strain"})
    assert refused.status_code == 400
