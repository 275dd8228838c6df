"""Evaluations spent on answers: in the background with an evaluator, by hand without."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cbabo import Study
from cbabo.evaluators.spec import Simulator
from cbabo.surfaces.web.app import make_app
from cbabo.surfaces.web.following import Follower
from cbabo.surfaces.web.spending import Spending
from simulators import simulate_beam
from web.conftest import ALLOWED, AT, PORT, TOKEN, client_of

QUESTION = {"thresholds": AT}


def ended(client: TestClient, job: dict[str, Any]) -> dict[str, Any]:
    for _ in range(600):
        if job["state"] != "running":
            return job
        time.sleep(0.05)
        job = client.get(f"/api/jobs/{job['id']}").json()
    raise AssertionError(job)


def spend(client: TestClient, evaluations: int) -> dict[str, Any]:
    begun = client.post("/api/refine", json={**QUESTION, "evaluations": evaluations}, headers=ALLOWED)
    assert begun.status_code == 202, begun.text
    return ended(client, begun.json())


def test_verify_then_improve_spend_one_evaluation_each(study: Study) -> None:
    client = client_of(study, simulate_beam)
    assert client.get("/api/follow").json()["evaluator"] is True
    job = spend(client, 1)
    assert (job["state"], job["spent"], job["error"]) == ("done", 1, None)
    assert job["answer"]["status"] == "verified"
    assert job["limits"] == AT
    assert [row.kind for row in study.evaluations[32:]] == ["refine"]
    assert client.get("/api/follow").json()["verified"] == [job["answer"]]
    first = dict(study.evaluations[-1].point)
    job = spend(client, 1)
    assert job["spent"] == 1
    assert dict(study.evaluations[-1].point) != first  # The verified design is not measured again.
    assert job["answer"]["status"] == "verified"
    assert len(study.evaluations) == 32 + 1 + job["spent"]
    assert len(client.get("/api/follow").json()["verified"]) == 1


def test_one_job_at_a_time(study: Study, tmp_path: Path) -> None:
    go = tmp_path / "go"

    def slow(point: dict[str, float]) -> dict[str, float]:
        while not go.exists():
            time.sleep(0.01)
        return simulate_beam(point)

    client = client_of(study, slow)
    first = client.post("/api/refine", json={**QUESTION, "evaluations": 1}, headers=ALLOWED).json()
    assert first["state"] == "running"
    second = client.post("/api/refine", json=QUESTION, headers=ALLOWED)
    assert second.status_code == 409
    assert "another evaluation is under way" in second.json()["error"]
    assert client.get("/api/status").status_code == 200  # everything else goes on
    go.touch()
    assert ended(client, first)["state"] == "done"


def test_failures_are_told(study: Study) -> None:
    def broken(point: dict[str, float]) -> dict[str, float]:
        raise ValueError("no convergence")

    client = client_of(study, broken)
    job = spend(client, 1)
    assert job["state"] == "done"
    assert job["answer"]["status"] == "predicted"
    assert any("no convergence" in w["warning"] for w in job["answer"]["warnings"])
    assert client.get("/api/follow").json()["verified"] == []
    assert study.evaluations[-1].state == "failed"


def test_without_an_evaluator_refine_says_what_to_do(client: TestClient) -> None:
    answer = client.post("/api/refine", json=QUESTION, headers=ALLOWED)
    assert answer.status_code == 409
    assert "measure the point by hand" in answer.json()["error"]
    missing = client.get("/api/jobs/7")
    assert missing.status_code == 404
    assert missing.json() == {"error": "there is no job 7; refine and audit begin one"}


def test_a_point_is_handed_out_and_its_outputs_are_taken(client: TestClient, study: Study) -> None:
    predicted = client.post("/api/predict", json=QUESTION).json()
    handed = client.post("/api/hand-outs", json=QUESTION, headers=ALLOWED)
    assert handed.status_code == 201
    assert handed.json() == {"id": 33, "point": predicted["design"]}
    assert study.evaluations[-1].state == "running"
    assert study.evaluations.requested == 32  # it does not count against the budget
    wrong = client.post("/api/evaluations/33", json={"outputs": {"mass": 1.0}}, headers=ALLOWED)
    assert wrong.status_code == 400
    assert "the output 'stress' is missing" in wrong.json()["error"]
    outputs = simulate_beam(handed.json()["point"])
    told = client.post("/api/evaluations/33", json={"outputs": outputs}, headers=ALLOWED).json()
    assert (told["state"], told["kind"]) == ("complete", "refine")
    assert told["answer"]["status"] == "verified"
    assert told["answer"]["objective"] == outputs["mass"]
    assert client.get("/api/follow").json()["verified"] == [told["answer"]]
    again = client.post("/api/evaluations/33", json={"outputs": outputs}, headers=ALLOWED)
    assert again.status_code == 409
    assert "already complete" in again.json()["error"]


def test_outputs_may_state_their_standard_errors(client: TestClient, study: Study) -> None:
    handed = client.post("/api/hand-outs", json=QUESTION, headers=ALLOWED).json()
    outputs = simulate_beam(handed["point"])
    stated = {**outputs, "stress": {"value": outputs["stress"], "sem": 0.03}}
    told = client.post(f"/api/evaluations/{handed['id']}", json={"outputs": stated}, headers=ALLOWED).json()
    assert told["sem"] == {"stress": 0.03}
    assert study.evaluations[-1].sem == {"stress": 0.03}


@pytest.mark.parametrize(
    ("stress", "words"),
    [
        ("high", "outputs.stress: input should be a valid number, got 'high'"),
        ({"value": 1.0}, "outputs.stress.sem: missing; add it"),
        ({"value": 1.0, "sem": -1.0}, "outputs.stress.sem: input should be greater than or equal to 0, got -1.0"),
        ([1.0, None], "outputs.stress.1: input should be a valid number, got None"),
    ],
)
def test_a_wrong_reading_gets_one_sentence(client: TestClient, study: Study, stress: object, words: str) -> None:
    handed = client.post("/api/hand-outs", json=QUESTION, headers=ALLOWED).json()
    outputs = {**simulate_beam(handed["point"]), "stress": stress}
    refused = client.post(f"/api/evaluations/{handed['id']}", json={"outputs": outputs}, headers=ALLOWED)
    assert (refused.status_code, refused.json()["error"].removeprefix("body.")) == (422, words)
    assert study.evaluations[-1].state == "running"


def test_a_point_that_breaks_a_limit_is_measured_and_not_verified(client: TestClient) -> None:
    handed = client.post("/api/hand-outs", json=QUESTION, headers=ALLOWED).json()
    outputs = {**simulate_beam(handed["point"]), "stress": AT["stress"] + 1.0}
    told = client.post(f"/api/evaluations/{handed['id']}", json={"outputs": outputs}, headers=ALLOWED).json()
    assert told["answer"]["status"] == "measured"
    assert "the measured design breaks stress <= " in told["answer"]["warnings"][0]["warning"]
    assert client.get("/api/follow").json()["verified"] == []


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"failed": "the mesh broke"}, 200, ""),
        ({"failed": "  "}, 400, "the reason as a text"),
        ({}, 400, "either outputs or failed"),
        ({"outputs": {}, "failed": "x"}, 400, "either outputs or failed"),
    ],
)
def test_a_failure_by_hand(client: TestClient, study: Study, body: dict[str, object], code: int, said: str) -> None:
    id = client.post("/api/hand-outs", json=QUESTION, headers=ALLOWED).json()["id"]
    told = client.post(f"/api/evaluations/{id}", json=body, headers=ALLOWED)
    assert told.status_code == code
    assert said in told.json().get("error", "")
    assert study.evaluations[-1].state == ("failed" if code == 200 else "running")


def test_what_was_asked_for_elsewhere_is_taken_too(client: TestClient, study: Study) -> None:
    trial = study.ask()[0]
    told = client.post(f"/api/evaluations/{trial.id}", json={"outputs": simulate_beam(trial.point)}, headers=ALLOWED)
    assert told.json()["state"] == "complete"
    assert told.json()["answer"] is None


def test_the_time_limit_of_the_simulator_holds(study: Study) -> None:
    def hanging(point: dict[str, float]) -> dict[str, float]:
        time.sleep(60)
        return simulate_beam(point)

    app = make_app(study, Simulator(hanging, timeout=0.5), TOKEN, PORT)
    job = spend(TestClient(app, base_url=f"http://127.0.0.1:{PORT}"), 1)
    assert job["state"] == "done"
    assert "no answer within 0.5 s" in str(study.evaluations[-1].failure)


def test_a_model_that_was_made_while_the_design_was_pending_does_not_know_it(study: Study) -> None:
    """A newer model may be learned between handing a design out and telling its outputs."""
    follower = Follower(study)
    spending = Spending(follower, None)
    trial = spending.hand_out(AT)
    follower.reading = follower._read(study.evaluations)
    told, answer = spending.tell(trial.id, simulate_beam(dict(trial.point)), None)
    assert (told.id, told.state) == (trial.id, "complete")
    assert answer is not None
    assert answer.point == trial.point
