"""Nobody else calls: hosts, origins, sizes, the token; and nothing malformed breaks a route."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from cbabo import Study
from cbabo.surfaces.web.safety import LARGEST, Safety, is_token
from simulators import simulate_beam
from web.conftest import ALLOWED, AT, PORT, TOKEN, client_of

SPENDING = [
    ("/api/refine", {"thresholds": AT}),
    ("/api/hand-outs", {"thresholds": AT}),
    ("/api/evaluations/1", {"failed": "x"}),
]


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "", f"127.0.0.1.evil.example:{PORT}"]
)
def test_other_hosts_are_refused(client: TestClient, host: str) -> None:
    for path in ("/", "/api/status"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert "own address only" in answer.json()["error"]


@pytest.mark.parametrize("host", [f"localhost:{PORT}", f"127.0.0.1:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_the_own_names_are_answered(client: TestClient, host: str) -> None:
    headers = {"Host": host, "Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/status", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://127.0.0.1:{PORT}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/api/status"), ("POST", "/api/predict"), ("OPTIONS", "/api/refine")):
        assert client.request(method, path, headers=headers).status_code == 403


def test_a_link_from_elsewhere_opens_the_page(client: TestClient) -> None:
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


@pytest.mark.parametrize(("path", "body"), SPENDING)
@pytest.mark.parametrize("given", [None, "Bearer ", "Bearer wrong", TOKEN, f"bearer {TOKEN}", f"Bearer {TOKEN} "])
def test_what_changes_or_spends_needs_the_token(
    client: TestClient, study: Study, path: str, body: object, given: str | None
) -> None:
    answer = client.post(path, json=body, headers={} if given is None else {"Authorization": given})
    assert answer.status_code == 401
    assert "send the token that the server printed" in answer.json()["error"]
    assert len(study.evaluations) == 32


def test_the_token_is_compared_whole() -> None:
    assert is_token("Bearer abc", "abc")
    for other in (None, "", "abc", "Bearer ab", "Bearer abcd", "Bearer é"):
        assert not is_token(other, "abc")


def test_large_requests_are_refused(client: TestClient) -> None:
    body = b'{"thresholds": "' + b"x" * LARGEST + b'"}'

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    headers = {"Content-Type": "application/json"}
    for content in (body, pieces()):
        answer = client.post("/api/predict", content=content, headers=headers)
        assert answer.status_code == 413
        assert "larger than 1,000,000 bytes" in answer.json()["error"]
    rows = {"thresholds": [{}] * 10_001}
    assert client.post("/api/predict-many", json=rows).status_code == 422


def test_every_answer_has_the_headers_that_protect_it(client: TestClient) -> None:
    for path in ("/", "/main.js", "/api/status", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(("raised", "code"), [(RuntimeError("secret"), 500), (asyncio.CancelledError(), 503)])
def test_what_fails_below_the_application_is_answered_with_the_headers(raised: BaseException, code: int) -> None:
    async def broken(*_: object) -> None:
        raise raised

    client = TestClient(Safety(broken, PORT), base_url=f"http://127.0.0.1:{PORT}")
    answer = client.get("/")
    assert answer.status_code == code
    assert list(answer.json()) == ["error"]
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["stress", "frequency", "cost", "mass", "thresholds", "\ud800", "<script>", ""])
LIMITS = st.dictionaries(NAMES, st.floats() | st.integers() | JSON, max_size=4)
BODIES = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {"thresholds": st.one_of(LIMITS, st.just(AT), st.lists(LIMITS, max_size=3))},
        optional={
            "intents": st.dictionaries(NAMES, st.sampled_from(["tighten", "<", "sideways"]), max_size=3),
            "alternatives": st.integers() | JSON,
            "evaluations": st.integers() | JSON,
        },
    ),
    st.fixed_dictionaries({}, optional={"outputs": LIMITS, "failed": st.text(max_size=20) | JSON}),
)
IDS = st.one_of(st.integers(-5, 40), st.integers(), st.text(max_size=8), st.floats())
PATHS = st.one_of(
    st.sampled_from(
        ["/", "/main.js", "/api/status", "/api/follow", "/api/document", "/api/evaluations", "/api/predict",
         "/api/predict-many", "/api/recommend", "/api/refine", "/api/hand-outs", "/api/openapi.json", "/api"]
    ),
    IDS.map(lambda id: f"/api/jobs/{id}"),
    IDS.map(lambda id: f"/api/evaluations/{id}"),
)  # fmt: skip


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    method=st.sampled_from(["GET", "POST", "POST", "POST", "PUT", "DELETE", "HEAD", "PATCH"]),
    path=PATHS,
    body=st.one_of(BODIES.map(lambda value: json.dumps(value).encode("ascii")), st.binary(max_size=60)),
    kind=st.sampled_from(["application/json", "text/plain", "application/x-www-form-urlencoded", "é"]),
    query=st.text(max_size=10),
)
def test_no_request_breaks_a_route(
    malformed: TestClient, method: str, path: str, body: bytes, kind: str, query: str
) -> None:
    headers = {**ALLOWED, "Content-Type": kind.encode("latin-1")}
    url = f"{quote(path, errors='replace')}?{quote(query, errors='replace')}"
    answer = malformed.request(method, url, content=body, headers=headers)
    assert answer.status_code < 500 or answer.status_code == 503, (method, path, body, answer.text)
    if answer.status_code >= 400 and method != "HEAD":
        assert list(answer.json()) == ["error"]
        assert "Traceback" not in answer.text


@pytest.fixture(scope="module")
def malformed(learned_file: Path, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    folder = tmp_path_factory.mktemp("malformed")
    for file in learned_file.parent.iterdir():
        shutil.copy(file, folder / file.name)
    return client_of(Study.open(f"sqlite:///{folder}/beam.db", "beam"), simulate_beam)
