"""The real simulators of benchmarks/simulators: one evaluation each, and the recorded optima.

Where a simulator is not installed its tests are skipped, except where CI=true: there they fail.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from types import ModuleType

import numpy as np
import pytest

from benchmark_scripts import script

subjects = script("subjects")
PROGRAMS = {"circuit": "ngspice", "bracket": "ccx"}
RECORDED = sorted(path.stem for path in (subjects.FOLDER / "optima").glob("*.csv"))
TOLERANCE = 1e-4
"""Other versions of a simulator iterate and print otherwise; of the range of a limit, and of how far the optimum moves."""


def load(name: str) -> ModuleType:
    """The simulator's module; skips the test, or fails it where CI=true, if what it needs is missing."""
    program = PROGRAMS.get(name)
    if shutil.which(program) is None if program else importlib.util.find_spec("openaerostruct") is None:
        message = f"{program or 'openaerostruct'} is not installed; `make install system` installs it"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    return subjects.simulator(name)


@pytest.mark.parametrize("name", subjects.SIMULATORS)
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


@pytest.mark.parametrize("name", subjects.SIMULATORS)
def test_outputs_are_the_worst_of_their_parts(name: str) -> None:
    simulator = load(name)
    X = simulator.PROBLEM.space.natural(np.full((1, simulator.PROBLEM.space.dimension), 0.4))
    parts = simulator.evaluate_parts(X)
    assert max(part.shape[1] for part in parts) > 2
    worst = [
        part.min() if name == "swing" else part.max()
        for name, part in zip(simulator.PROBLEM.outputs, parts, strict=True)
    ]
    assert simulator.evaluate_many(X)[0].tolist() == pytest.approx(worst, rel=1e-9)


def test_a_wing_that_diverges_does_not_spoil_the_next() -> None:
    wing = load("wing")
    low, high = (wing.PROBLEM.space.natural(np.full((1, 7), u))[0] for u in (0.0, 1.0))
    soft = np.where([False, False, True, True, True, True, False], low, high)  # The thinnest spar at the largest angle.
    middle = wing.PROBLEM.space.natural(np.full((1, 7), 0.5))[0]
    y = wing.evaluate_many(np.array([middle, soft, middle]))
    assert np.isnan(y[1]).all()
    assert y[2].tolist() == pytest.approx(y[0].tolist(), rel=1e-9)
    with pytest.raises(wing.EvaluationError, match="OpenAeroStruct"):
        wing.evaluate(dict(zip(wing.PROBLEM.space.names, soft.tolist(), strict=True)))


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_optima_are_feasible_and_reach_their_values(name: str) -> None:
    load(name)
    subject = subjects.subject(name)
    known, box = subject.known, subject.problem.box
    rows = [0, 5, 10]
    ends = box.from_theta(np.array([[0.0], [1.0]]) * np.ones(len(box.names)))
    y = subject.exact(np.vstack([known.x[rows], known.strictest.x, known.relaxed.x]))
    f = np.array([*known.f[rows], known.strictest.f, known.relaxed.f])
    assert y[:, 0] == pytest.approx(f, abs=TOLERANCE * known.span)
    broken = box.violations(y, np.vstack([known.thresholds[rows], ends])) / box.scales
    assert (broken <= TOLERANCE).all()


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_optima_move_and_never_worsen_when_limits_are_relaxed(name: str) -> None:
    load(name)
    subject = subjects.subject(name)
    known, box = subject.known, subject.problem.box
    assert len(known.f) == 16
    theta = box.to_theta(known.thresholds)
    assert ((theta >= 0.0) & (theta <= 1.0)).all()
    assert ((known.relaxed.f <= known.f) & (known.f <= known.strictest.f)).all()
    assert known.f.std() > 0.1 * known.span
    relaxed = (theta[:, None] <= theta[None]).all(axis=2)
    assert (known.f[None] - known.f[:, None] <= TOLERANCE * known.span)[relaxed].all()


def test_a_circuit_without_a_cut_off_fails() -> None:
    circuit = load("circuit")
    grid = circuit.PROBLEM.space.natural(np.random.default_rng(0).random((40, circuit.PROBLEM.space.dimension)))
    failing = np.isnan(circuit.evaluate_many(grid)).any(axis=1)
    assert failing.any()
    with pytest.raises(circuit.EvaluationError, match="ngspice found no operating point"):
        circuit.evaluate(dict(zip(circuit.PROBLEM.space.names, grid[failing][0].tolist(), strict=True)))
