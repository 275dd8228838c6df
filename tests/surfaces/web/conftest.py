from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cbabo import Study
from cbabo.evaluators.spec import Simulator
from cbabo.surfaces.web.app import make_app
from learned import QUICK
from simulators import make_beam, simulate_beam

PORT = 8321
TOKEN = "a-token-for-tests"
AT = {"stress": 5.0, "frequency": 3.0}
ALLOWED = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="session")
def learned_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that has learned a little; copied for every test."""
    path = tmp_path_factory.mktemp("learned") / "beam.db"
    study = Study.create(make_beam(), f"sqlite:///{path}", settings=QUICK)
    study.run(simulate_beam, budget=32, in_process=True)
    return path


@pytest.fixture
def study(learned_file: Path, tmp_path: Path) -> Study:
    for file in learned_file.parent.iterdir():
        shutil.copy(file, tmp_path / file.name)
    return Study.open(f"sqlite:///{tmp_path}/beam.db", "beam")


def client_of(study: Study, evaluate: Callable[..., Any] | None = None) -> TestClient:
    app = make_app(study, None if evaluate is None else Simulator(evaluate), TOKEN, PORT)
    return TestClient(app, base_url=f"http://127.0.0.1:{PORT}", raise_server_exceptions=False)


@pytest.fixture
def client(study: Study) -> TestClient:
    return client_of(study)
