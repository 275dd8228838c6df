from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from cbabo import Study
from cbabo.evaluators.spec import Simulator
from cbabo.surfaces.web.app import make_app

PORT = 8321
TOKEN = "a-token-for-tests"
AT = {"stress": 5.0, "frequency": 3.0}
ALLOWED = {"Authorization": f"Bearer {TOKEN}"}


def client_of(study: Study, evaluate: Callable[..., Any] | None = None) -> TestClient:
    app = make_app(study, None if evaluate is None else Simulator(evaluate), TOKEN, PORT)
    return TestClient(app, base_url=f"http://127.0.0.1:{PORT}", raise_server_exceptions=False)


@pytest.fixture
def client(study: Study) -> TestClient:
    return client_of(study)
