from __future__ import annotations

from pathlib import Path

import pytest

from browser import chromium as chromium
from cbabo import Model, Settings
from cbabo.surfaces.document import document
from cbabo.surfaces.page import single_file
from learned import model_of
from page.ten import simulate_ten, ten_limits
from simulators import make_beam, simulate_beam

SOLVED = Settings.default().replace(library=16)


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


@pytest.fixture(scope="session")
def ten(tmp_path_factory: pytest.TempPathFactory) -> str:
    model = model_of(ten_limits(), simulate_ten, count=60, settings=SOLVED)
    return write(model, tmp_path_factory.mktemp("ten") / "ten.html")


@pytest.fixture(scope="session")
def beam_model() -> Model:
    return model_of(make_beam(), simulate_beam, count=30, settings=SOLVED)


@pytest.fixture(scope="session")
def solved(beam_model: Model, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(beam_model, tmp_path_factory.mktemp("solved") / "beam.html")
