"""The loop that the baselines share: budgets, bookkeeping, legality and repeatability."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import replace

import numpy as np
import pytest
import torch

from cbabo import Settings, Study, problems
from cbabo.bench.baselines import BASELINES
from cbabo.bench.baselines.sequential import Data, Task, budget_split, initial_data, measure, search
from cbabo.errors import InputError
from cbabo.numerics.arrays import FloatArray

OWN = sorted(BASELINES.keys() - {"BoTorch LogcEI", "Optuna"})
"""Baselines that are written here; those of other libraries take longer and have tests of their own."""


def task_of(name: str, theta: float = 0.5, seed: int = 0) -> tuple[Task, Data]:
    shipped = problems.get(name)
    box = shipped.problem.box
    limits = box.from_theta(np.full((1, len(box.names)), theta))[0]
    return Task(shipped, limits, seed), initial_data(shipped, seed)


@pytest.mark.parametrize(
    ("total", "n", "expected"),
    [(170, 1, [170]), (170, 5, [34] * 5), (170, 50, [4] * 20 + [3] * 30), (3, 5, [1, 1, 1, 0, 0]), (0, 2, [0, 0])],
)
def test_the_budget_is_split_evenly_and_the_first_get_the_rest(total: int, n: int, expected: list[int]) -> None:
    assert budget_split(total, n) == expected
    assert sum(budget_split(total, n)) == total


def test_a_budget_needs_thresholds() -> None:
    with pytest.raises(InputError, match="at least one threshold"):
        budget_split(170, 0)


def test_the_initial_design_is_the_study_s() -> None:
    shipped = problems.get("car_mixed")
    study = Study.create(shipped.problem, "sqlite://", seed=3, settings=Settings.paper())
    study.run(shipped.evaluate, budget=30, in_process=True)
    data = initial_data(shipped, 3)
    assert np.array_equal(data.x, study.evaluations.x)
    assert np.allclose(data.y, study.evaluations.y, rtol=1e-14)


def test_best_is_feasible_first_then_objective_else_violation() -> None:
    task, _ = task_of("gkxwc1")  # one limit, in the middle of [0, 2]
    y = np.array([[1.0, 0.5], [2.0, 0.2], [-5.0, 1.5], [-9.0, 1.2]])
    assert task.best(y) == 0
    assert task.best(y[1:]) == 0
    assert task.best(y[2:]) == 1
    assert task.incumbent(y) == 1.0
    assert task.incumbent(y[2:]) is None
    assert task.feasible(y).tolist() == [1.0, 1.0, 0.0, 0.0]


def centre_again(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """A strategy that counts what it is sent."""
    for sent in range(100):
        assert len(data.x) == 30 + sent
        data = yield np.full(task.dimension, 0.123)


def test_a_search_evaluates_legal_designs_and_tells_the_strategy_all_of_them() -> None:
    task, data = task_of("pressure_vessel_mixed")
    outcome = search(task, data, 4, centre_again)
    assert outcome.data.x.shape == (34, 4)
    space = task.shipped.problem.space
    assert np.allclose(outcome.data.x[-1], space.snap(np.full((1, 4), 0.123))[0])
    f, c = task.shipped.evaluate_many(space.natural(outcome.data.x))
    assert np.allclose(outcome.data.y, np.column_stack([f, c]), rtol=1e-12)
    assert outcome.best == task.best(outcome.data.y)
    assert outcome.seconds > 0.0


def test_without_a_budget_the_best_initial_design_is_the_answer() -> None:
    task, data = task_of("gkxwc2")
    outcome = search(task, data, 0, centre_again)
    assert outcome.best == task.best(data.y)
    assert outcome.seconds == 0.0


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("problem", ["g04", "pressure_vessel_mixed"])
def test_every_baseline_repeats_itself_and_improves(name: str, problem: str) -> None:
    task, data = task_of(problem, 0.6, seed=1)
    count = 16 if name == "ALBO" else 8  # an augmented Lagrangian comes from the infeasible side
    one, again = (search(task, data, made, BASELINES[name]) for made in (count, 4))
    assert np.array_equal(one.data.x[:34], again.data.x)
    assert one.data.x.shape == (30 + count, task.dimension)
    assert ((one.data.x >= 0) & (one.data.x <= 1)).all()
    assert np.allclose(one.data.x, task.shipped.problem.space.snap(one.data.x), atol=1e-12)
    start = task.incumbent(data.y)
    assert start is not None
    assert one.data.y[one.best, 0] <= start
    if name != "CMA-ES":
        assert one.data.y[one.best, 0] < start
        gaps = np.abs(one.data.x[:, None] - one.data.x).max(-1) + np.eye(30 + count)
        assert gaps.min() > 1e-9  # nothing is evaluated twice


@pytest.mark.parametrize("name", OWN)
def test_every_baseline_goes_on_with_nothing_feasible(name: str) -> None:
    shipped = problems.get("three_truss")
    data = initial_data(shipped, 0)
    task = Task(shipped, data.y[:, 1:].min(axis=0) - 1.0, 0)
    outcome = search(task, data, 5, BASELINES[name])
    assert len(outcome.data.x) == 35
    assert not outcome.feasible


def test_an_exhausted_space_is_no_error() -> None:
    task, data = task_of("gkxwc1")
    everything = Data(data.x, data.y, task.anywhere(data)[None])
    assert not np.array_equal(task.anywhere(everything), everything.failed[0])
    lattice = np.stack(np.meshgrid([0.0, 1.0], [0.0, 1.0]), -1).reshape(-1, 2)
    full = Data(lattice, np.zeros((4, 2)), lattice[:0])
    assert len(task.unseen(torch.from_numpy(lattice), full)) == 0


def corner(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """A strategy that always goes where keane18 has no finite value."""
    while True:
        yield np.zeros(task.dimension)


def test_an_evaluation_without_a_finite_outcome_is_spent_but_not_learned_from() -> None:
    task, data = task_of("keane18", 0.9)
    outcome = search(task, data, 3, corner)
    assert outcome.data.made == 33
    assert len(outcome.data.x) == 30
    assert outcome.data.failed.tolist() == [[0.0] * 18] * 3
    assert np.isfinite(outcome.data.y[outcome.best, 0])
    assert len(task.unseen(torch.zeros(1, 18, dtype=torch.float64), outcome.data)) == 0


@pytest.mark.parametrize("name", OWN)
def test_every_baseline_survives_failures(name: str) -> None:
    """Four of ten evaluations fail; the others must go on from what was measured."""
    shipped = problems.get("gkxwc2")
    calls = itertools.count()

    def function(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        f, c = shipped.function(X)
        return (f if next(calls) % 5 not in (1, 2) else np.full_like(f, -np.inf)), c

    task = replace(task_of("gkxwc2")[0], shipped=replace(shipped, function=function))
    outcome = search(task, initial_data(shipped, 0), 10, BASELINES[name])
    assert outcome.data.made == 40
    assert len(outcome.data.failed) == 4
    assert np.isfinite(outcome.data.y).all()


def test_a_unit_s_measures() -> None:
    shipped = problems.get("gkxwc2")
    thresholds = shipped.problem.box.from_theta(np.linspace(0.1, 0.9, 100)[:, None])
    rows = [98, 99, 0, 1, 2]
    found = measure(shipped, 4, thresholds, rows, BASELINES["CMA-ES"])
    assert list(found) == ["row", "best objective", "best feasible", "best violation", "suggest seconds"]
    assert found["row"] == rows
    assert all(value in (0.0, 1.0) for value in found["best feasible"])
    again = measure(shipped, 4, thresholds, rows, BASELINES["CMA-ES"])
    assert found["best objective"] == again["best objective"]
    assert len(found["best objective"]) == 5
    assert found["suggest seconds"] > 0.0
