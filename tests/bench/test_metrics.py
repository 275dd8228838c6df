from __future__ import annotations

import numpy as np
import pytest

from cbabo.bench.metrics import (
    Interval,
    Tally,
    average_interval,
    calibration,
    gaps,
    losses,
    mean_interval,
    outcomes,
    tally,
)
from cbabo.errors import InputError

NAN = float("nan")


def test_gaps_are_in_spans() -> None:
    assert gaps([3.0, 1.0, 0.0], [1.0, 1.0, 1.0], 4.0).tolist() == [0.5, 0.0, -0.25]


def test_a_gap_to_an_unbounded_optimum_is_unknown() -> None:
    assert np.isnan(gaps([3.0, 1.0], [-np.inf, 1.0], 4.0)).tolist() == [True, False]


@pytest.mark.parametrize("span", [0.0, -1.0, NAN, np.inf])
def test_a_span_is_positive(span: float) -> None:
    with pytest.raises(InputError, match="span: expected a positive number"):
        gaps([1.0], [0.0], span)


def test_losses_are_clipped_and_an_infeasible_answer_loses_everything() -> None:
    f = [3.0, 0.5, 99.0, 1.0, 1.0]
    feasible = [True, True, True, False, True]
    optima = [1.0, 1.0, 1.0, 1.0, -np.inf]
    assert losses(f, feasible, optima, 4.0).tolist()[:4] == [50.0, 0.0, 100.0, 100.0]
    assert np.isnan(losses(f, feasible, optima, 4.0)[4])


def test_an_infeasible_answer_without_an_objective_loses_everything() -> None:
    assert losses([NAN], [0], [1.0], 1.0).tolist() == [100.0]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match=r"feasible: expected one entry for each of f \(2,\), got \(1,\)"):
        losses([1.0, 2.0], [1], [0.0, 0.0], 1.0)


@pytest.mark.parametrize(
    ("mine", "theirs", "result"),
    [
        ((1.0, 1), (2.0, 1), 1.0),
        ((2.0, 1), (1.0, 1), 0.0),
        ((1.0, 1), (1.0 + 1e-7, 1), 0.5),
        ((1.0, 1), (1.0 + 2e-6, 1), 1.0),
        ((5000.0, 1), (5000.004, 1), 0.5),
        ((5000.0, 1), (5000.006, 1), 1.0),
        ((9.0, 1), (1.0, 0), 1.0),
        ((1.0, 0), (9.0, 1), 0.0),
        ((1.0, 0), (9.0, 0), 0.5),
        ((NAN, 0), (NAN, 0), 0.5),
        ((-np.inf, 1), (-np.inf, 1), 0.5),
        ((-np.inf, 1), (1.0, 1), 1.0),
    ],
)
def test_feasible_first_then_the_objective(mine: tuple[float, int], theirs: tuple[float, int], result: float) -> None:
    one, other = ([[f], [feasible], [np.nan]] for f, feasible in (mine, theirs))
    assert outcomes(one, other).tolist() == [result]
    assert outcomes(other, one).tolist() == [1.0 - result]


def test_of_two_infeasible_answers_the_lower_violation_wins() -> None:
    mine, theirs = ([[1.0, 1.0, 1.0], [0, 0, 0], v] for v in ([0.5, 2.0, 1.0], [1.0, 1.0, 1.0]))
    assert outcomes(mine, theirs).tolist() == [1.0, 0.0, 0.5]


def test_ties_count_one_half() -> None:
    counts = tally([1.0, 1.0, 0.5, 0.0])
    assert counts == Tally(wins=2, ties=1, losses=1)
    assert counts.rate == 62.5
    assert np.isnan(tally([]).rate)


def test_calibration_compares_what_was_stated_with_what_came() -> None:
    bins = calibration([0.05, 0.92, 0.98, 1.0, 0.9], [0, 1, 1, 1, 0])
    assert [(b.low, b.high, b.count) for b in bins] == [(0.0, 0.1, 1), (0.9, 1.0, 4)]
    assert bins[0].stated == 0.05
    assert bins[0].feasible == 0.0
    assert bins[1].stated == pytest.approx(0.95)
    assert bins[1].feasible == 0.75


def test_calibration_takes_edges_and_leaves_out_what_was_not_stated() -> None:
    bins = calibration([0.3, 0.7, NAN], [1, 0, 1], edges=[0.0, 0.5, 1.0])
    assert [(b.low, b.count, b.feasible) for b in bins] == [(0.0, 1, 1.0), (0.5, 1, 0.0)]


def test_percent_are_not_probabilities() -> None:
    with pytest.raises(InputError, match="not percent"):
        calibration([95.0], [1])


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert mean_interval([[2.0, 2.0], [2.0, NAN, 2.0]]) == Interval(2.0, 2.0, 2.0)


def test_an_interval_is_reproducible_and_changes_with_its_seed() -> None:
    samples = np.random.default_rng(0).normal(size=(5, 20))
    assert mean_interval(samples, seed=1) == mean_interval(samples, seed=1)
    assert mean_interval(samples, seed=1) != mean_interval(samples, seed=2)


def test_the_interval_of_one_seed_is_that_of_its_thresholds() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, size=400)
    interval = mean_interval([values])
    error = 1.96 * values.std() / 20
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - error, abs=0.03)
    assert interval.high == pytest.approx(values.mean() + error, abs=0.03)


def test_seeds_that_differ_widen_the_interval() -> None:
    generator = np.random.default_rng(0)
    seeds = [generator.normal(shift, 0.01, size=50) for shift in (0.0, 1.0, 2.0, 3.0)]
    interval = mean_interval(seeds)
    assert interval.low < 0.8
    assert interval.high > 2.2


def test_every_problem_counts_the_same() -> None:
    assert average_interval([[[0.0]], [[1.0, 1.0, 1.0]]]) == Interval(0.5, 0.5, 0.5)


def test_nothing_known_has_no_interval() -> None:
    interval = average_interval([[[NAN]], [[]]])
    assert np.isnan([interval.mean, interval.low, interval.high]).all()
