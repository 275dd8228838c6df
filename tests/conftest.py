from __future__ import annotations

from pathlib import Path

import pytest

from cbabo import Constraint, Integer, Objective, Problem, Real
from cbabo.storage.database import Database
from simulators import simulate_beam


@pytest.fixture
def beam() -> Problem:
    """A small problem with a real and an integer variable, a >= limit and a fixed one."""
    return Problem(
        "beam",
        [Real("width", 1.0, 3.0), Integer("ribs", 0, 4)],
        Objective("mass", unit="kg"),
        [
            Constraint("stress", "<=", low=1.0, high=9.0, nominal=5.0),
            Constraint("frequency", ">=", low=2.0, high=6.0),
            Constraint("cost", "<=", limit=40.0),
        ],
    )


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def database(url: str) -> Database:
    return Database.create(url)


@pytest.fixture
def evaluate():
    return simulate_beam
