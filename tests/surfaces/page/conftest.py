from __future__ import annotations

from pathlib import Path

import pytest

from browser import chromium as chromium
from cbabo import Model
from cbabo.surfaces.document import document
from cbabo.surfaces.page import single_file
from learned import model_of
from simulators import make_beam, simulate_beam


@pytest.fixture(scope="session")
def model() -> Model:
    return model_of(make_beam(), simulate_beam, count=30)


@pytest.fixture(scope="session")
def exported(model: Model, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of an exported explorer."""
    return write(model, tmp_path_factory.mktemp("exported") / "beam.html")


def write(model: Model, path: Path) -> str:
    path.write_text(single_file(document(model, model.problem.name)), encoding="utf-8")
    return path.as_uri()
