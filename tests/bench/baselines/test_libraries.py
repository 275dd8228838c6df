"""BoTorch's LogcEI and Optuna's GPSampler as baselines: what they are told, and that they improve."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from cbabo import problems
from cbabo.bench.baselines.improvement import log_cei
from cbabo.bench.baselines.libraries import botorch_log_cei, optuna_gp
from cbabo.bench.baselines.sequential import Data, Strategy, Task, search
from cbabo.methods.designs import latin_hypercube
from cbabo.numerics.arrays import FloatArray

pytestmark = pytest.mark.filterwarnings("ignore")
BOTH = pytest.mark.parametrize("strategy", [botorch_log_cei, optuna_gp])


def begun(task: Task, count: int = 12) -> Data:
    space = task.shipped.problem.space
    return Data.of(*task.evaluate(space.unit(space.array(latin_hypercube(space, count, 0, 0)))))


@BOTH
def test_a_few_evaluations_improve_on_the_initial_ones(strategy: Strategy) -> None:
    task = Task(problems.get("gkxwc1"), np.array([0.5]), 0)
    data = begun(task)
    outcome = search(task, data, 4, strategy)
    assert outcome.feasible
    assert outcome.data.made == 16
    assert outcome.data.y[outcome.best, 0] < task.incumbent(data.y)


@BOTH
def test_the_same_seed_asks_for_the_same_designs(strategy: Strategy) -> None:
    task = Task(problems.get("gkxwc1"), np.array([0.5]), 3)
    one, two = (next(strategy(task, begun(task))) for _ in range(2))
    assert np.array_equal(one, two)


@BOTH
def test_discrete_variables_have_legal_values(strategy: Strategy) -> None:
    shipped = problems.get("pressure_vessel_mixed")
    task = Task(shipped, shipped.problem.box.from_theta(np.full((1, len(shipped.problem.box.names)), 0.5))[0], 0)
    x = next(strategy(task, begun(task)))
    assert shipped.problem.space.snap(x[None])[0] == pytest.approx(x, abs=1e-12)


class Failing(Task):
    """Every design whose first coordinate exceeds a half fails."""

    def evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        x, y = super().evaluate(x)
        y[x[:, 0] > 0.5] = np.nan
        return x, y


@BOTH
def test_failed_designs_are_spent_and_teach_no_outputs(strategy: Strategy) -> None:
    task = Failing(problems.get("gkxwc1"), np.array([0.5]), 0)
    data = begun(task, 24)
    assert len(data.failed) == 12
    outcome = search(task, data, 2, strategy)
    assert outcome.data.made == 26
    assert np.isfinite(outcome.data.y).all()


@pytest.mark.parametrize("strategy", [log_cei, botorch_log_cei])
def test_a_failing_design_is_not_suggested_again(strategy: Strategy) -> None:
    task = Task(problems.get("gkxwc1"), np.array([0.5]), 0)
    data = begun(task)
    attractive = next(strategy(task, data))

    class FailingThere(Task):
        def evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
            x, y = super().evaluate(x)
            y[np.abs(x - attractive).max(1) < 0.05] = np.nan
            return x, y

    there = FailingThere(task.shipped, task.limits, task.seed)
    found = search(there, data, 4, strategy).data
    assert len(found.failed) >= 1
    assert pdist(np.vstack([found.failed, found.x[len(data.x) :]])).min() > 0.01


@BOTH
def test_with_nothing_feasible_they_look_for_feasibility(strategy: Strategy) -> None:
    shipped = problems.get("three_truss")
    task = Task(shipped, shipped.problem.box.from_theta(np.zeros((1, len(shipped.problem.box.names))))[0], 0)
    every = begun(task, 40)
    kept = ~task.feasible(every.y)
    data = Data.of(every.x[kept][:12], every.y[kept][:12])
    assert task.incumbent(data.y) is None
    found = search(task, data, 3, strategy).data.y[12:]
    assert task.violations(found).max(1).max() < 0.5 * np.median(task.violations(data.y).max(1))
