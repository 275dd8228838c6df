"""The description at /api/openapi.json is true: schemathesis asks every route for what it describes, and for what it excludes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.testclient import TestClient

from cbabo import Study
from simulators import simulate_beam
from web.conftest import ALLOWED, AT, PORT, client_of

HERE = {"Host": f"127.0.0.1:{PORT}"}


@pytest.fixture(scope="module")
def described(learned_file: Path, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    folder = tmp_path_factory.mktemp("described")
    for file in learned_file.parent.iterdir():
        shutil.copy(file, folder / file.name)
    return client_of(Study.open(f"sqlite:///{folder}/beam.db", "beam"), simulate_beam)


@pytest.fixture(scope="module")
def api(described: TestClient) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_asgi("/api/openapi.json", app=described.app, headers=HERE)


ROUTES = [
    ("GET", "/api/status"),
    ("GET", "/api/follow"),
    ("GET", "/api/document"),
    ("GET", "/api/evaluations"),
    ("POST", "/api/predict"),
    ("POST", "/api/predict-many"),
    ("POST", "/api/recommend"),
    ("POST", "/api/freeze"),
    ("POST", "/api/common"),
    ("POST", "/api/tolerances"),
    ("POST", "/api/explain"),
    ("POST", "/api/atlas"),
    ("POST", "/api/refine"),
    ("POST", "/api/audit"),
    ("GET", "/api/decisions"),
    ("POST", "/api/decisions"),
    ("GET", "/api/jobs/{id}"),
    ("POST", "/api/hand-outs"),
    ("POST", "/api/evaluations/{id}"),
]
BEYOND_A_SCHEMA = (
    *("/api/recommend", "/api/evaluations/{id}", "/api/decisions", "/api/predict", "/api/freeze", "/api/common"),
    *("/api/tolerances", "/api/explain", "/api/atlas"),
)
"""Routes that refuse what no schema can exclude: intents that move nothing, outputs and a failure at once, a name of blanks,
numbers that were not recorded, variables that there are not, as many weights as rows, the paper method."""


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_answer_is_described(api: schemathesis.BaseSchema, method: str, path: str, mode: GenerationMode) -> None:
    """No 500; status, content type, headers and content as described; what is excluded is refused, the rest is not."""
    excluded = [positive_data_acceptance] if path in BEYOND_A_SCHEMA else []
    operation = api[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.path_parameters):
        return  # Nothing can be wrong about it.

    @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(headers={**HERE, **ALLOWED}, excluded_checks=excluded)

    ask()


def test_all_routes_are_asked(api: schemathesis.BaseSchema) -> None:
    stated = [result.ok() for result in api.get_all_operations()]
    assert {(operation.method.upper(), operation.path) for operation in stated} == set(ROUTES)


def test_the_study_is_named(described: TestClient) -> None:
    stated = described.get("/api/openapi.json").json()
    schemas = stated["components"]["schemas"]
    assert list(schemas["Question"]["properties"]["thresholds"]["properties"]) == list(AT)
    assert schemas["Questions"]["properties"]["thresholds"]["items"]["required"] == list(AT)


def test_every_route_states_its_errors(described: TestClient) -> None:
    stated = described.get("/api/openapi.json").json()
    for path, methods in stated["paths"].items():
        for method, route in methods.items():
            codes = set(route["responses"])
            assert {"400", "403", "405", "408", "413", "421", "500", "503"} <= codes, (method, path)
            assert ("401" in codes) == ("security" in route), (method, path)
            for code, response in route["responses"].items():
                if int(code) >= 400:
                    content = response["content"]["application/json"]["schema"]
                    assert content == {"$ref": "#/components/schemas/Error"}
