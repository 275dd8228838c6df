"""CMA-ES: silent, within the budget, and able to solve what is easy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cbabo import problems
from cbabo.bench.baselines.evolution import cma_es
from cbabo.bench.baselines.sequential import Data, Task, initial_data, search


def test_it_finds_a_limited_optimum_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = problems.get("three_truss")
    task = Task(shipped, np.zeros(3), 0)
    state = np.random.get_state()[1].copy()  # type: ignore[union-attr]
    outcome = search(task, initial_data(shipped, 0), 170, cma_es)
    assert outcome.feasible
    assert outcome.data.x.shape == (200, 2)
    assert shipped.optimum is not None
    assert outcome.data.y[outcome.best, 0] < 1.03 * shipped.optimum.value
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())
    assert np.array_equal(state, np.random.get_state()[1])


def test_it_looks_for_a_feasible_design_first() -> None:
    shipped = problems.get("pressure_vessel_active")
    data = initial_data(shipped, 0)
    box = shipped.problem.box
    task = Task(shipped, box.from_theta(np.full((1, 4), 0.3))[0], 0)
    keep = ~task.feasible(data.y)
    assert search(task, Data.of(data.x[keep], data.y[keep]), 100, cma_es).feasible


def test_it_goes_on_when_its_own_criteria_stop_it() -> None:
    """With one variable the step size collapses long before the budget is spent."""
    shipped = problems.get("gkxwc2")
    outcome = search(Task(shipped, np.array([5.0]), 0), initial_data(shipped, 0), 1500, cma_es)
    assert len(outcome.data.x) == 1530
    assert outcome.data.y[outcome.best, 0] == pytest.approx(-1.0, abs=1e-6)
