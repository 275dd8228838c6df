"""Units, origins and directions do not matter to the default settings: the same evaluated designs give the same answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from cbabo import Model, Settings, problems
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.methods.step import step
from cbabo.model import make_model
from cbabo.numerics.arrays import FloatArray
from learned import evaluated, refine
from restated import Restatement, range_of
from simulators import make_beam, simulate_beam, simulate_valley, valley

SETTINGS = Settings.default().replace(library=20)
CASES = ("valley", "beam", "three_truss", "car")
ALL = 1024.0


@cache
def data(case: str) -> Evaluations:
    if case == "valley":
        return evaluated(valley(), simulate_valley, 32)
    if case == "beam":
        return evaluated(make_beam(), simulate_beam, 32)
    shipped = problems.get(case)
    return evaluated(shipped.problem, shipped.evaluate, 40)


@cache
def as_stated(case: str) -> dict[str, FloatArray]:
    return everything(data(case))


def thetas(k: int) -> FloatArray:
    inner = np.random.default_rng(0).random((3, k))
    return np.vstack([inner, np.zeros((1, k)), np.ones((1, k))])


def everything(evaluations: Evaluations) -> dict[str, FloatArray]:
    """Designs (unit cube) and probabilities of answers, quick answers and two batches."""
    return answers(evaluations) | batches(evaluations)


def answers(evaluations: Evaluations) -> dict[str, FloatArray]:
    model = make_model(evaluations, Learner(0), SETTINGS, 0)
    box = evaluations.problem.box
    rows = box.from_theta(thetas(len(box.names)))
    full, fast = model.predict_many(rows), model.predict_many(rows, fast=True)
    return {
        "answers": full.x.numpy(),
        "probabilities": full.probability_feasible,
        "quick answers": fast.x.numpy(),
    }


def batches(evaluations: Evaluations) -> dict[str, FloatArray]:
    space = evaluations.problem.space
    batch, state = step(evaluations, evaluations.running, Learner(1).to_bytes(), SETTINGS, 0)
    told = [Evaluation(900 + i, "complete", "run", p, dict(evaluations[i].outputs)) for i, p in enumerate(batch)]
    surprised = Evaluations(
        evaluations.problem, (*evaluations, *told)
    )  # by outcomes that no model would have predicted
    next_batch, _ = step(surprised, evaluations.running, state, SETTINGS, 0)
    return {"batches": space.unit(space.array([*batch, *next_batch]))}


def check_same(
    case: str,
    restatement: Restatement,
    tolerance: float,
    what: Callable[[Evaluations], dict[str, FloatArray]] = everything,
) -> None:
    for name, found in what(restatement.evaluations(data(case))).items():
        assert np.abs(found - as_stated(case)[name]).max() <= tolerance, name


# One of each kind: an objective, an output with movable limits and one with a fixed limit; a real and an integer variable.
SINGLE_OUTPUTS = [("valley", "f"), ("valley", "c"), ("beam", "cost")]
SINGLE_VARIABLES = [("valley", "a"), ("beam", "ribs")]


@pytest.mark.parametrize(("case", "output"), SINGLE_OUTPUTS)
def test_the_unit_of_an_output_does_not_matter(case: str, output: str) -> None:
    check_same(case, Restatement({output: ALL}), 1e-6)


@pytest.mark.parametrize(("case", "variable"), SINGLE_VARIABLES)
def test_the_unit_of_a_variable_does_not_matter(case: str, variable: str) -> None:
    check_same(case, Restatement({variable: ALL}), 1e-6)


@pytest.mark.parametrize("case", CASES)
def test_all_units_at_once_do_not_matter(case: str) -> None:
    problem = data(case).problem
    powers = dict(zip(problem.outputs, (2.0**-30, 2.0**20, 2.0**-10, 2.0**40) * 4, strict=False))
    check_same(case, Restatement(powers), 1e-6)


def test_units_that_round_do_not_matter_either() -> None:
    """A factor that is no power of two changes the last digit of every number.

    Where hardly anything is left to discover, such digits decide between designs of no worth: batches may differ.
    """
    check_same("valley", Restatement(dict.fromkeys(data("valley").problem.outputs, 25.4)), 1e-4, answers)


def other_origins(case: str) -> dict[str, float]:
    return {name: range_of(data(case), name) for name in data(case).problem.outputs}


def test_the_origins_of_outputs_do_not_matter() -> None:
    check_same("valley", Restatement(shifts=other_origins("valley")), 1e-4, answers)


@pytest.mark.parametrize("case", CASES[1:])
def test_units_that_round_together_with_other_origins_do_not_matter(case: str) -> None:
    factors = dict.fromkeys(data(case).problem.outputs, 25.4)
    shifts = {name: 25.4 * shift for name, shift in other_origins(case).items()}
    check_same(case, Restatement(factors, shifts), 1e-4, answers)


@pytest.mark.parametrize("case", CASES)
def test_restating_with_the_other_direction_does_not_matter(case: str) -> None:
    problem = data(case).problem
    check_same(case, Restatement(dict.fromkeys(problem.outputs, -1.0)), 0.0)


def test_restating_a_part_with_the_other_direction_does_not_matter() -> None:
    outputs = data("valley").problem.outputs
    check_same("valley", Restatement({outputs[0]: -1.0, outputs[-1]: -1.0}), 0.0)


# ---- refinement


@cache
def model_in_other_units(case: str, changed: tuple[str, ...]) -> Model:
    return make_model(Restatement(dict.fromkeys(changed, ALL)).evaluations(data(case)), Learner(0), SETTINGS, 0)


def refined(case: str, changed: tuple[str, ...], theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What was measured, and what was returned, in the unit cube of the original problem; changed: outputs in another unit."""
    model, restatement = model_in_other_units(case, changed), Restatement(dict.fromkeys(changed, ALL))
    simulate = {"valley": simulate_valley, "beam": simulate_beam}[case]
    back = Restatement({name: 1.0 / factor for name, factor in restatement.factors.items()})
    made: list[Evaluation] = []

    def measure(point: dict[str, float]) -> Evaluation:
        y = simulate(back.point(point))
        told = {name: restatement.value(name, v) for name, v in y.items()}
        made.append(Evaluation(100 + len(made), "complete", "refine", point, told))
        return made[-1]

    box = model.problem.box
    answer = refine(model, box.named(box.from_theta(theta[None])[0]), measure, 4)
    space = model.problem.space
    return space.unit(space.array([e.point for e in made])), space.unit(space.array([answer.point]))


@pytest.mark.parametrize("theta", [(0.5, 0.4), (0.0, 0.0), (-2.0, -2.0)])
@pytest.mark.parametrize("case", ["valley", "beam"])
def test_refinement_does_not_care_for_units(case: str, theta: tuple[float, float]) -> None:
    """Also where no limits can be met, and the least violation decides."""
    outputs = data(case).problem.outputs
    expected = refined(case, (), np.array(theta))
    for changed in (outputs[1:2], outputs[2:3], outputs):
        found = refined(case, tuple(changed), np.array(theta))
        for a, b in zip(found, expected, strict=True):
            assert a.shape == b.shape
            assert np.abs(a - b).max() <= 1e-6


# ---- recommendations


@pytest.mark.parametrize("case", ["valley", "beam", "three_truss"])
def test_recommendations_do_not_care_for_units(case: str) -> None:
    """In units that differ by powers of ten: limits move in steps that are round numbers in the unit of the problem."""
    tens = 1e6
    evaluations = data(case)
    problem = evaluations.problem
    intents = dict(zip(problem.box.names, ("tighten", "loosen", "lock"), strict=False))

    def proposed(restatement: Restatement) -> FloatArray:
        model = make_model(restatement.evaluations(evaluations), Learner(0), SETTINGS, 0)
        box = model.problem.box
        base = box.named(box.from_theta(np.full((1, len(box.names)), 0.6))[0])
        found = model.recommend(base, intents)  # type: ignore[arg-type]
        rows = [box.array(dict(r.thresholds))[0] for r in (found, *found.alternatives)]
        return box.to_theta(np.array(rows))

    expected = proposed(Restatement())
    outputs, shifts = problem.outputs, other_origins(case)
    if case == "valley":
        assert proposed(Restatement(dict.fromkeys(outputs, tens))) == pytest.approx(expected, abs=1e-6)
        assert proposed(Restatement(dict.fromkeys(outputs, -1.0))) == pytest.approx(expected, abs=1e-9)
        assert proposed(Restatement(shifts=shifts)) == pytest.approx(expected, abs=1e-4)
    else:  # All of this at once.
        shifts = {name: tens * shift for name, shift in shifts.items()}
        assert proposed(Restatement(dict.fromkeys(outputs, -tens), shifts)) == pytest.approx(expected, abs=1e-4)
