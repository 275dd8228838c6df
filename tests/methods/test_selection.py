"""Which thresholds are learned at, and which designs are evaluated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cbabo import Constraint, Objective, Problem, Real
from cbabo.methods.selection import ThresholdSampler, select
from cbabo.numerics.quasirandom import sobol
from cbabo.surrogate.limits import Limits
from learned import unit_points

NOTHING = torch.empty(0, 2, dtype=torch.float64)


def draw(size: int, batches: int = 1, dimension: int = 3, position: int = 0, seed: int = 4) -> Tensor:
    return ThresholdSampler(dimension, seed, position).draw(batches, size, np.random.default_rng(0))[0]


def test_sobol_goes_on_where_it_was() -> None:
    whole = sobol(3, 5, 50)
    pieces = [sobol(3, 5, count, position) for position, count in ((0, 1), (1, 1), (2, 13), (15, 35))]
    assert torch.cat(pieces).equal(whole)
    assert ((whole >= 0) & (whole <= 1)).all()
    assert not sobol(3, 6, 50).equal(whole)
    assert sobol(1, 2**63 - 1, 4).isfinite().all()


def test_sobol_does_not_depend_on_what_the_caller_does_with_torch() -> None:
    before = torch.random.get_rng_state()
    expected = sobol(4, 1, 8)
    assert torch.random.get_rng_state().equal(before)
    torch.set_default_dtype(torch.float64)
    try:
        assert sobol(4, 1, 8).equal(expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_mixture_is_a_quarter_a_quarter_and_a_half() -> None:
    theta = draw(64, batches=2)
    assert theta.shape == (2, 64, 3)
    for batch in theta:
        even, spread, everywhere = batch.split([16, 16, 32])
        assert torch.allclose(even, torch.linspace(0, 1, 16, dtype=torch.float64).unsqueeze(1).expand(-1, 3))
        assert (even[0] == 0).all()
        assert (even[-1] == 1).all()
        assert (spread == spread[:, :1]).all()  # on the diagonal
        assert len(spread.unique()) == 16
        assert not (everywhere == everywhere[:, :1]).all(1).any()  # off it
    assert not theta[0, 16:32].equal(theta[1, 16:32])  # new random ones in every batch
    assert not theta[0, 32:].equal(theta[1, 32:])


def test_the_papers_thousand_candidates() -> None:
    theta = draw(1000, dimension=2)[0]
    on_the_diagonal = (theta[:, 0] == theta[:, 1]).sum()
    assert on_the_diagonal == 500
    quadrants = np.histogram2d(*theta[500:].T.numpy(), bins=4, range=[[0, 1], [0, 1]])[0]
    assert (np.abs(quadrants - 500 / 16) < 3).all()  # evenly everywhere


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 63])
def test_odd_sizes_lose_nothing(size: int) -> None:
    theta = draw(size, batches=3)
    assert theta.shape == (3, size, 3)
    assert theta.isfinite().all()
    assert ((theta >= 0) & (theta <= 1)).all()


def test_a_single_threshold_is_sampled_too() -> None:
    assert draw(16, dimension=1).shape == (1, 16, 1)


def test_the_position_continues_exactly() -> None:
    sampler = ThresholdSampler(3, 4)
    whole, after_whole = sampler.draw(20, 8, np.random.default_rng(0))
    first, middle = sampler.draw(10, 8, np.random.default_rng(0))
    second, after = middle.draw(10, 8, np.random.default_rng(1))
    assert torch.cat([first, second])[:, 4:].equal(whole[:, 4:])
    assert (middle.position, after.position, after_whole.position) == (40, 80, 80)
    assert after == after_whole


# ---- the batch


PROBLEM = Problem("p", [Real("u", 0, 1), Real("v", 0, 1)], Objective("f"), [Constraint("c", "<=", low=0.0, high=1.0)])


class Surface:
    """Surrogates whose outputs are given functions of the design, with a deviation of 0.2."""

    def mean_and_std(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean = torch.stack([x[:, 0] + x[:, 1], 1.2 - x[:, 0]], dim=1)  # the objective, and what must stay below theta
        return mean, torch.full_like(mean, 0.2)


def choose(candidates: Tensor, size: int = 5, taken: Tensor = NOTHING, seed: int = 0, **changes: Any) -> Tensor:
    values = {"beta": 0.5, "similarity": 0.05, **changes}
    return select(
        candidates,
        Surface(),  # type: ignore[arg-type]
        Limits.of(PROBLEM),
        1,
        values["beta"],
        values["similarity"],
        size,
        taken,
        np.random.default_rng(seed),
    )


def is_among(rows: Tensor, candidates: Tensor) -> bool:
    return all(bool((candidates == row).all(1).any()) for row in rows)


def test_the_best_at_both_ends_come_first() -> None:
    candidates = unit_points(200, 2)
    batch = choose(candidates)
    assert batch.shape == (5, 2)
    assert is_among(batch, candidates)
    violation = 1.3 - candidates[:, 0]  # 1.2 - u + 0.5 * 0.2 <= theta
    assert (violation > 0).all()  # nothing obeys the strictest limit: the least violating one is taken
    assert batch[0].equal(candidates[violation.argmin()])
    obeying = candidates[violation <= 1.0]
    assert batch[1].equal(obeying[obeying.sum(1).argmin()])


def test_beta_decides_what_counts_as_feasible() -> None:
    candidates = torch.tensor([[0.25, 0.0], [0.35, 0.9]], dtype=torch.float64)
    assert choose(candidates, size=2, beta=0.0)[1].tolist() == [0.25, 0.0]  # 0.95 <= 1
    assert choose(candidates, size=2, beta=0.5, similarity=0.0)[1].tolist() == [0.35, 0.9]  # 1.05 > 1


def test_all_choices_are_apart_from_each_other_and_from_what_is_under_way() -> None:
    candidates = unit_points(300, 2, 1)
    free = choose(candidates)
    taken = torch.cat([free[:2], unit_points(4, 2, 9)])
    batch = choose(candidates, taken=taken)
    everything = torch.cat([taken, batch])
    distance = torch.cdist(batch, everything) + 9.0 * (torch.cdist(batch, everything) == 0)
    assert distance.min() >= 0.05
    assert not batch[0].equal(free[0])
    assert len(batch) == 5


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
def test_any_size_of_batch(size: int) -> None:
    batch = choose(unit_points(300, 2, 1), size=size)
    assert len(batch) == size
    assert torch.pdist(batch).min() >= 0.05 if size > 1 else True
    assert batch[:1].equal(choose(unit_points(300, 2, 1))[:1])  # the strictest limits' best comes first


def test_the_others_are_drawn_evenly() -> None:
    """With a similarity of 0 the three at random are uniform draws without repetition."""
    candidates = unit_points(20, 2, 3)
    counts = np.zeros(20)
    for seed in range(400):
        batch = choose(candidates, seed=seed, similarity=0.0)
        for row in batch[2:]:
            counts[int((candidates == row).all(1).nonzero()[0])] += 1
    assert counts.sum() == 1200
    assert 30 < counts.min() <= counts.max() < 95  # 60 on average, four deviations of 7.5


def test_the_generator_decides() -> None:
    candidates = unit_points(300, 2, 1)
    assert choose(candidates, seed=1).equal(choose(candidates, seed=1))
    assert not choose(candidates, seed=1)[2:].equal(choose(candidates, seed=2)[2:])
    assert choose(candidates, seed=1)[:2].equal(choose(candidates, seed=2)[:2])


def test_candidates_that_are_all_the_same_still_give_a_batch() -> None:
    same = torch.full((50, 2), 0.5, dtype=torch.float64)
    assert choose(same).equal(same[:5])
    assert choose(same[:1], size=3).equal(same[:3])
    assert choose(same, taken=same[:2]).equal(same[:5])


def test_where_all_are_similar_the_farthest_is_taken() -> None:
    close = 0.5 + 0.01 * unit_points(50, 2)
    batch = choose(close)
    from_first = torch.cdist(close, batch[:1]).squeeze(1)
    assert batch[1].equal(close[from_first.argmax()])
    assert len(batch.unique(dim=0)) == 5


def test_what_is_under_way_is_no_part_of_the_batch() -> None:
    taken = unit_points(7, 2, 5)
    batch = choose(unit_points(100, 2), taken=taken)
    assert not is_among(batch[:1], taken)
    assert len(batch) == 5


def test_selection_asks_the_surrogates_once() -> None:
    calls: list[int] = []
    surface = Surface()
    counting = SimpleNamespace(mean_and_std=lambda x: (calls.append(len(x)), surface.mean_and_std(x))[1])
    candidates = unit_points(30, 2)
    select(candidates, counting, Limits.of(PROBLEM), 1, 0.5, 0.05, 5, NOTHING, np.random.default_rng(0))  # type: ignore[arg-type]
    assert calls == [30]
