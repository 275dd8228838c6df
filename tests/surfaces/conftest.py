from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cbabo import Study
from learned import QUICK
from simulators import make_beam, simulate_beam


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
