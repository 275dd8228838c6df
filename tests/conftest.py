from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cbabo import Problem
from cbabo.storage.database import Database
from simulators import make_beam, simulate_beam

# A shell starts what runs in the background with interrupts ignored, which every process started from here would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Where compiled modules are not kept, every process that a test starts would compile all of cbabo again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Matrices are small here, and the cores are shared: several threads mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


FIRST = (
    "test_dask.py",
    "test_runner.py",
    "test_postgres.py",
    "test_units.py",
    "test_distillation.py",
    "test_study.py",
    "test_offline.py",
    "test_stress.py",
    "test_guide.py",
    "test_server.py",
    "test_noisy_answers.py",
    "test_revisions.py",
    "test_sequential.py",
)
"""Files that take longest: they are begun first, so that no process is left with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: FIRST.index(item.path.name) if item.path.name in FIRST else len(FIRST))


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
