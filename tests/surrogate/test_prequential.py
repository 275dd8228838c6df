"""Predictions of proposed designs are compared with their measurements once, in the units of the prediction."""

from __future__ import annotations

import pytest
import torch

from cbabo import Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.methods.step import step
from cbabo.surrogate import Warp
from cbabo.surrogate.prequential import PrequentialErrors, recent_mean
from learned import evaluated
from simulators import simulate_valley, valley

NO_WARP = Warp.none(torch.ones(2, dtype=torch.float64))


def doubles(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_errors_are_in_standard_deviations_and_counted_once() -> None:
    record = PrequentialErrors.none(1, 2).with_predictions(
        doubles([0.2], [0.7]), doubles([1.0, 5.0], [2.0, 5.0]), doubles([0.5, 1.0], [0.5, 1.0])
    )
    after = record.measured(doubles([0.9], [0.2]), doubles([9.0, 9.0], [2.0, 4.0]), NO_WARP)
    assert after.errors.tolist() == [[2.0, -1.0]]
    assert after.x.tolist() == [[0.7]]  # This design is not yet measured.
    again = after.measured(doubles([0.9], [0.2]), doubles([9.0, 9.0], [2.0, 4.0]), NO_WARP)
    assert again.errors.tolist() == [[2.0, -1.0]]


def test_few_errors_are_ignored_and_many_give_their_root_mean_square() -> None:
    x = torch.linspace(0.0, 1.0, 8, dtype=torch.float64).unsqueeze(1)
    zero, one = torch.zeros(8, 1, dtype=torch.float64), torch.ones(8, 1, dtype=torch.float64)
    warp = Warp.none(torch.ones(1, dtype=torch.float64))
    record = PrequentialErrors.none(1, 1).with_predictions(x, zero, one)
    assert record.measured(x[:4], 3.0 * one[:4], warp).kappa.tolist() == [0.0]
    assert record.measured(x, 3.0 * one, warp).kappa.tolist() == [3.0]


def test_one_large_error_is_clipped_and_old_ones_are_dropped() -> None:
    warp = Warp.none(torch.ones(1, dtype=torch.float64))
    record = PrequentialErrors.none(1, 1)
    for i in range(40):
        x = doubles([i / 40.0])
        wild = 1e9 if i == 0 else 1.0
        record = record.with_predictions(x, doubles([0.0]), doubles([1.0])).measured(x, doubles([wild]), warp)
        if i == 4:
            assert 10.0 < float(record.kappa[0]) < 20.0
    assert record.kappa.tolist() == [1.0]


def test_new_errors_count_more_than_old_ones() -> None:
    """Of errors that were large once and are small now, the mean is below the plain one; the other way round it is above."""
    falling = torch.tensor([[9.0] * 15 + [1.0] * 15], dtype=torch.float64)
    down, up = float(recent_mean(falling)), float(recent_mean(falling.flip(1)))
    assert 1.0 < down < 5.0 < up < 9.0
    assert down + up == pytest.approx(10.0)
    assert float(recent_mean(torch.ones(1, 7, dtype=torch.float64))) == pytest.approx(1.0)


def test_an_iteration_predicts_its_batch_and_the_next_one_compares_it() -> None:
    problem, settings = valley(), Settings.default().replace(noise="none")
    evaluations = evaluated(problem, simulate_valley, 30)
    batch, state = step(evaluations, Evaluations(problem, ()), None, settings, 0)
    record = Learner.from_bytes(state).fit.prequential
    assert record is not None
    assert len(record.x) == len(batch) == 5
    assert not len(record.errors)
    more = [Evaluation(100 + i, "complete", "run", p, simulate_valley(p), None) for i, p in enumerate(batch)]
    _, state = step(Evaluations(problem, (*evaluations, *more)), Evaluations(problem, ()), state, settings, 0)
    judged = Learner.from_bytes(state).fit.prequential
    assert judged is not None
    assert judged.errors.shape == (5, 3)
    assert bool((judged.errors != 0).any())
