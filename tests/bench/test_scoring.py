from __future__ import annotations

import numpy as np

from cbabo.bench.scoring import (
    monotone_share,
    ordered_pairs,
    random_thresholds,
    score_best_evaluated,
    score_designs,
    score_map,
)
from cbabo.bench.truth import truth
from cbabo.problems import get


def test_random_thresholds_lie_in_the_box_and_belong_to_the_seed() -> None:
    shipped = get("gkxwc2")
    thresholds = random_thresholds(shipped, 0, 50)
    assert thresholds.shape == (50, 1)
    assert (random_thresholds(shipped, 0, 50) == thresholds).all()
    assert (random_thresholds(shipped, 1, 50) != thresholds).all()
    assert ((thresholds >= 0) & (thresholds <= 5)).all()


def test_designs_are_judged_by_the_true_functions() -> None:
    shipped = get("gkxwc2")
    thresholds = random_thresholds(shipped, 0, 50)
    designs = shipped.problem.space.natural(np.random.default_rng(0).random((50, 2)))
    f, c = shipped.evaluate_many(designs)
    objective, feasible, violation = score_designs(shipped, designs, thresholds)
    assert objective == f.tolist()
    assert feasible == (c <= thresholds).all(axis=1).astype(float).tolist()
    np.testing.assert_allclose(violation, np.clip(c - thresholds, 0.0, None).sum(axis=1))


def test_the_true_optima_are_feasible_everywhere_and_reach_the_truth() -> None:
    shipped, known = get("gkxwc2_active"), truth("gkxwc2_active")
    measures = score_map(
        shipped, 0, lambda rows: known.x if len(rows) == 100 else np.repeat(known.x[:1], len(rows), axis=0)
    )
    assert measures["row"] == list(range(100))
    assert np.mean(measures["direct feasible"]) == 1.0
    np.testing.assert_allclose(measures["direct objective"], known.f, rtol=1e-6, atol=1e-6)
    assert 0.0 <= float(measures["direct share"]) <= 1.0  # type: ignore[arg-type]


def test_the_best_evaluated_design_is_feasible_first_then_by_objective_then_by_violation() -> None:
    shipped = get("gkxwc2")
    y = np.array([[5.0, 0.0], [3.0, 1.0], [1.0, 4.0], [2.0, 3.0]])
    objective, feasible, violation = score_best_evaluated(shipped, y, np.array([[-1.0], [0.5], [1.0], [3.5], [5.0]]))
    assert objective == [5.0, 5.0, 3.0, 2.0, 1.0]
    assert feasible == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert violation == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_pairs_are_ordered_in_every_limit() -> None:
    stricter, looser = ordered_pairs(get("car"), 3)
    assert stricter.shape == looser.shape == (10_000, 10)
    assert (stricter < looser).all()


def test_a_rise_is_counted_and_rounding_is_not() -> None:
    stricter = np.array([1.0, 1.0, 1e6, 0.0])
    looser = np.array([0.5, 1.5, 1e6 + 1e-5, 1e-3])
    assert monotone_share(stricter, looser) == 0.5
