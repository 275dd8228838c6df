"""The real simulators of benchmarks/simulators: one evaluation each, and the recorded optima.

Where a simulator is not installed its tests are skipped, except where CI=true: there those of ngspice and CalculiX fail.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "simulators"
PROGRAMS = {"circuit": "ngspice", "bracket": "ccx"}


def load(name: str) -> ModuleType:
    """The simulator's module; skips the test if what it needs is missing."""
    if name == "wing":
        pytest.importorskip("openaerostruct")
    elif shutil.which(PROGRAMS[name]) is None:
        message = f"{PROGRAMS[name]} is not installed; scripts/system-packages.sh installs it"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["circuit", "bracket", "wing"])
def test_one_design_and_many_agree_and_are_reproducible(name: str) -> None:
    simulator = load(name)
    u = np.full((2, simulator.PROBLEM.space.dimension), 0.5)
    u[1] = 0.6
    y = simulator.evaluate_many(simulator.PROBLEM.space.natural(u))
    assert y.shape == (2, len(simulator.PROBLEM.outputs))
    assert np.isfinite(y).all()
    found = simulator.evaluate(simulator.PROBLEM.space.points(u)[1])
    assert tuple(found) == simulator.PROBLEM.outputs
    assert list(found.values()) == pytest.approx(y[1].tolist(), rel=1e-6)


@pytest.mark.parametrize("path", sorted((FOLDER / "optima").glob("*.csv")), ids=lambda path: path.stem)
def test_a_recorded_optimum_is_feasible_and_reaches_its_value(path: Path) -> None:
    problem = (simulator := load(path.stem)).PROBLEM
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    row = rows[0]
    outputs = simulator.evaluate({name: float(row[name]) for name in problem.space.names})
    limits = np.array([[float(row[name]) for name in problem.box.names]])
    y = np.array([[outputs[name] for name in problem.outputs]])
    best = f"best_{problem.objective.name}"
    assert y[0, 0] == pytest.approx(float(row[best]), rel=1e-4)
    assert (problem.box.violations(y, limits) <= 1e-4 * problem.box.scales).all()


def test_a_circuit_without_a_cut_off_fails() -> None:
    circuit = load("circuit")
    grid = circuit.PROBLEM.space.natural(np.random.default_rng(0).random((40, circuit.PROBLEM.space.dimension)))
    failing = np.isnan(circuit.evaluate_many(grid)).any(axis=1)
    assert failing.any()
    with pytest.raises(circuit.EvaluationError, match="ngspice found no operating point"):
        circuit.evaluate(dict(zip(circuit.PROBLEM.space.names, grid[failing][0].tolist(), strict=True)))
