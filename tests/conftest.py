from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cbabo import Problem
from cbabo.storage.database import Database
from simulators import make_beam, simulate_beam

# A shell starts what runs in the background with interrupts ignored, which every process started from here would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one process, where its fixtures and caches are made once; a group that is stated wins."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


@pytest.fixture
def beam() -> Problem:
    return make_beam()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def database(url: str) -> Database:
    return Database.create(url)


@pytest.fixture
def evaluate():
    return simulate_beam
