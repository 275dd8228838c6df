"""Noise on the outputs of shipped problems: its size, its reproducibility, and the noise-free truth beside it."""

import pickle

import cloudpickle
import numpy as np
import pytest

from cbabo import problems
from cbabo.bench.truth import truth
from cbabo.domain.current import current_evaluation
from cbabo.errors import InputError
from cbabo.problems.noise import Noise
from cbabo.problems.noisy import NOISES, NOISY, SPANS

POINT = {"x1": 0.8, "x2": 0.4}


def evaluated(evaluate, number):
    """Outputs of POINT as of an evaluation of this number."""
    token = current_evaluation.set(number)
    try:
        return evaluate(POINT)
    finally:
        current_evaluation.reset(token)


@pytest.mark.parametrize("kind", NOISES)
def test_noise_has_the_stated_deviation_and_no_bias(kind):
    noise = problems.get(f"three_truss_{kind}").noise
    y, generator = np.array([200.0, -3.0, 4.0, 5.0]), np.random.default_rng(0)
    errors = np.array([noise.measured(y, generator) for _ in range(20_000)]) - y
    expected = np.array(noise.deviations) * (np.abs(y) if kind == "multiplicative2" else 1.0)
    assert errors.mean(axis=0) == pytest.approx(np.zeros(4), abs=0.05 * max(expected))
    assert errors.std(axis=0) == pytest.approx(expected, rel=0.2 if kind == "student5" else 0.03)
    assert (errors[:, expected == 0.0] == 0.0).all()


def test_student_noise_has_heavy_tails():
    generator = np.random.default_rng(0)
    beyond = [
        np.mean([abs(noise.measured(np.zeros(1), generator)[0]) > 4.0 for _ in range(20_000)])
        for noise in (Noise("additive", (1.0,)), Noise("additive", (1.0,), "student"))
    ]
    assert beyond[0] < 0.001
    assert beyond[1] > 0.004


@pytest.mark.parametrize("wrong", [(), (-1.0,), (float("nan"),), (0.1, float("inf"))])
def test_impossible_deviations_are_refused(wrong):
    with pytest.raises(InputError, match="noise: expected a standard deviation of zero or more"):
        Noise("additive", wrong)


@pytest.mark.parametrize("name", SPANS)
def test_deviations_are_shares_of_the_boxs_ranges_and_of_how_far_the_optimum_moves(name):
    shipped = problems.get(f"{name}_noise5")
    ranges = [c.high - c.low for c in shipped.problem.constraints]
    assert shipped.noise.deviations == pytest.approx([0.05 * truth(name).span, *(0.05 * r for r in ranges)], rel=1e-6)
    partly = problems.get(f"{name}_partly5").noise.deviations
    assert partly[0::2] == (0.0,) * len(partly[0::2])
    assert partly[1::2] == shipped.noise.deviations[1::2]


def test_every_noisy_problem_has_the_truth_and_the_functions_of_its_original():
    for ending, group in NOISY.items():
        for shipped in group:
            origin = problems.get(shipped.name.removesuffix(f"_{ending}"))
            assert problems.get(shipped.name) is shipped
            assert shipped.function is origin.function
            assert shipped.problem.constraints == origin.problem.constraints
            assert np.array_equal(truth(shipped.name).f, truth(origin.name).f)
            assert truth(shipped.name).span == truth(origin.name).span


def test_an_evaluation_of_a_study_has_the_noise_of_its_number_in_every_process():
    evaluate = problems.get("three_truss_noise5").evaluator(3)
    first = evaluated(evaluate, 7)
    copy = cloudpickle.loads(cloudpickle.dumps(evaluate))
    assert evaluated(evaluate, 8) != first
    assert evaluated(copy, 7) == evaluated(evaluate, 7) == first
    assert evaluated(problems.get("three_truss_noise5").evaluator(4), 7) != first
    assert evaluated(problems.get("three_truss_student5").evaluator(3), 7) != first


def test_repeats_outside_of_a_study_differ_and_are_reproducible():
    one, other = (problems.get("three_truss_noise5").evaluator(0) for _ in range(2))
    found = [one(POINT) for _ in range(5)]
    assert len({row["f"] for row in found}) == 5
    assert [other(POINT) for _ in range(5)] == found


def test_evaluate_has_noise_and_evaluate_many_has_none():
    noisy, exact = problems.get("three_truss_noise1"), problems.get("three_truss")
    noisy.evaluate(POINT)
    assert noisy.evaluate(POINT)["f"] != exact.evaluate(POINT)["f"]
    assert noisy.evaluate_many([[0.8, 0.4]])[0] == exact.evaluate_many([[0.8, 0.4]])[0]
    assert pickle.loads(pickle.dumps(noisy)) == noisy
