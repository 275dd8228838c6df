"""One iteration: a pure function of what was measured."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from cbabo import Constraint, Discrete, Integer, Objective, Problem, Real, Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.space import Point
from cbabo.methods.designs import snapped
from cbabo.methods.learner import Learner
from cbabo.methods.paper import PaperMethod
from cbabo.methods.step import step
from learned import QUICK, evaluated, posterior_of, unit_points
from simulators import lattice, simulate_beam, simulate_lattice, simulate_valley, valley


def table(problem: Problem, count: int, state: str = "complete") -> Evaluations:
    outputs = dict.fromkeys(problem.outputs, 1.0) if state == "complete" else {}
    rows = [
        Evaluation(i + 1, state, "import", problem.space.points([[i / count, 0.5]])[0], outputs)  # type: ignore[arg-type]
        for i in range(count)
    ]
    return Evaluations(problem, tuple(rows))


def propose(
    evaluations: Evaluations, state: bytes | None = None, seed: int = 0, settings: Settings = QUICK
) -> tuple[list[Point], bytes]:
    return step(evaluations, evaluations.running, state, settings, seed)


def started(iteration: int = 1) -> bytes:
    """The state after so many Latin hypercubes."""
    return Learner(iteration).to_bytes()


def test_the_first_batch_is_a_latin_hypercube_of_thirty(beam: Problem) -> None:
    batch, _ = propose(table(beam, 0), settings=Settings.paper())
    assert len(batch) == 30
    width = np.sort([(point["width"] - 1.0) / 2.0 for point in batch])
    assert (np.floor(width * 30) == np.arange(30)).all()  # one in each of thirty slices
    counts = np.bincount([int(point["ribs"]) for point in batch], minlength=5)
    assert (counts == 6).all()  # every whole number has the same share


@pytest.mark.parametrize(("imported", "size"), [(1, 29), (29, 1), (30, 5), (100, 5)])
def test_imported_rows_are_topped_up(beam: Problem, imported: int, size: int) -> None:
    assert len(propose(table(beam, imported))[0]) == size


def test_failed_rows_do_not_count_as_imported(beam: Problem) -> None:
    assert len(propose(table(beam, 10, "failed"))[0]) == 30


def test_later_batches_have_five_and_depend_on_seed_and_state_only(beam: Problem) -> None:
    evaluations = evaluated(beam, simulate_beam, 30)
    first, state = propose(evaluations)
    second, later = propose(evaluations, state)
    assert len(second) == 5
    assert second != first
    assert propose(evaluations, state) == (second, later)
    assert propose(evaluations, state, seed=1)[0] != second


def test_an_iteration_learns() -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    _, state = propose(evaluations, started())
    learner = Learner.from_bytes(state)
    assert learner.iteration == 2
    assert learner.trainee is not None
    assert learner.trainee.adam.steps == 5
    assert learner.sobol_position == 5 * 16 + 40  # half of the thresholds of each step, and half of the candidates
    assert learner.fit.hyperparameters is not None
    assert learner.fit.hyperparameters.lengthscales.shape == (3, 2)
    assert learner.fit.hyperparameters.explored == 12
    _, state = propose(evaluations, state)
    again = Learner.from_bytes(state)
    assert again.trainee is not None
    assert (again.iteration, again.trainee.adam.steps, again.sobol_position) == (3, 10, 240)


def test_the_papers_numbers() -> None:
    _, state = propose(evaluated(valley(), simulate_valley, 30), settings=Settings.paper())
    learner = Learner.from_bytes(state)
    assert learner.trainee is not None
    assert learner.trainee.adam.steps == 50
    assert learner.trainee.pcm.sizes == (2, 256, 256, 256, 2)
    assert learner.sobol_position == 50 * 32 + 500


@pytest.mark.parametrize("measured", [0, 1])
def test_too_few_measured_designs_are_met_with_a_latin_hypercube(beam: Problem, measured: int) -> None:
    rows = (*table(beam, measured), *table(beam, 30, "failed"))
    batch, state = propose(Evaluations(beam, rows), started())
    assert len(batch) == 5
    assert len({round(point["width"], 9) for point in batch}) == 5
    assert Learner.from_bytes(state).iteration == 2
    assert Learner.from_bytes(state).trainee is None
    assert propose(Evaluations(beam, rows), state)[0] != batch  # another one each time


def test_two_measured_designs_are_enough(beam: Problem) -> None:
    batch, state = propose(evaluated(beam, simulate_beam, 2), started())
    assert len(batch) == 5
    assert Learner.from_bytes(state).trainee is not None


def test_the_defaults_carry_what_the_next_iteration_needs() -> None:
    evaluations = evaluated(valley(), simulate_valley, 32)
    _, state = propose(evaluations, started(), settings=Settings.default())
    learner = Learner.from_bytes(state)
    assert learner.iteration == 2
    assert learner.trainee is None  # no network is trained on the way
    assert learner.sobol_position == Settings.default().batch_thresholds
    assert learner.fit.forms is not None
    assert learner.fit.formed == 32
    assert learner.to_bytes() == state
    again = Learner.from_bytes(propose(evaluations, state, settings=Settings.default())[1])
    assert (again.iteration, again.sobol_position) == (3, 2 * Settings.default().batch_thresholds)


def test_failures_are_ignored() -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    failed = [Evaluation(100 + i, "failed", "run", r.point, {}, failure="no") for i, r in enumerate(evaluations)]
    mixed = Evaluations(valley(), tuple(row for pair in zip(evaluations, failed, strict=True) for row in pair))
    assert propose(mixed, started()) == propose(evaluations, started())


def test_further_numbers_of_the_simulator_are_ignored() -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    rows = tuple(replace(row, outputs={"zzz": 1e300, **row.outputs, "more": float(row.id)}) for row in evaluations)
    assert propose(Evaluations(valley(), rows), started()) == propose(evaluations, started())


def test_what_is_under_way_is_not_proposed_again() -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    batch, _ = propose(evaluations, started())
    running = tuple(Evaluation(50 + i, "running", "run", point, {}) for i, point in enumerate(batch[:2]))
    asked = Evaluations(valley(), (*evaluations, *running))
    again, _ = propose(asked, started())
    space = valley().space
    x, taken = space.unit(space.array(again)), space.unit(space.array(batch[:2]))
    distance = np.linalg.norm(x[:, None] - taken[None], axis=2).min()
    assert distance >= 0.05 or len({tuple(row) for row in np.vstack([x, taken])}) == 7
    assert not any(point in batch[:2] for point in again)


@pytest.mark.parametrize("size", [1, 7])
def test_batches_of_any_size(size: int) -> None:
    batch, _ = propose(evaluated(valley(), simulate_valley, 12), started(), settings=QUICK.replace(batch_size=size))
    assert len(batch) == size


def test_all_random_candidates_are_an_ablation_that_still_trains() -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    posterior = posterior_of(evaluations)
    settings = QUICK.replace(candidate_source="random", candidates=400)
    learner, candidates = PaperMethod(settings).train_for_one_iteration(posterior, Learner(1), 0)
    assert learner.trainee is not None
    assert learner.trainee.adam.steps == 5
    histogram = np.histogramdd(candidates.numpy(), bins=4, range=[[0, 1], [0, 1]])[0]
    assert histogram.min() > 5  # 25 on average
    network, _ = PaperMethod(QUICK.replace(candidates=400)).train_for_one_iteration(posterior, Learner(1), 0)
    assert network.trainee is not None
    assert network.trainee.pcm.weights.equal(learner.trainee.pcm.weights)


def test_points_are_legal_whatever_the_variables() -> None:
    values = [0.192, 0.345, 7.0]
    variables = [Real("r", -1e-9, 1e12), Real("l", 1e-6, 1e6, log=True), Integer("i", -3, 40), Discrete("d", values)]
    problem = Problem("legal", variables, Objective("f"), [Constraint("c", "<=", low=0.0, high=1.0)])

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": np.log(point["l"]) * 1e-3 + point["i"], "c": point["d"] * point["r"] / 1e12}

    batch, state = propose(Evaluations(problem, ()))
    learned, _ = propose(evaluated(problem, simulate, 12), state)
    assert len(learned) == 5
    for point in (*batch, *learned):
        assert problem.space.check(point) == point
        assert -1e-9 <= point["r"] <= 1e12
        assert 1e-6 <= point["l"] <= 1e6
        assert isinstance(point["i"], int)
        assert -3 <= point["i"] <= 40
        assert point["d"] in values


def test_a_lattice_without_any_continuous_variable() -> None:
    batch, state = propose(evaluated(lattice(), simulate_lattice, 12), started())
    assert len(batch) == 5
    assert all(lattice().space.check(point) == point for point in batch)
    assert len(propose(evaluated(lattice(), simulate_lattice, 40), state)[0]) == 5


def test_snapping_moves_only_what_is_not_continuous() -> None:
    x = unit_points(20, 2)
    assert snapped(valley().space, x) is x
    mixed = Problem("m", [Real("a", 0.1, 0.7), Integer("i", 0, 4)], Objective("f"), [Constraint("c", low=0, high=1)])
    legal = snapped(mixed.space, x)
    assert legal[:, 0].equal(x[:, 0])
    assert torch.isin(legal[:, 1], torch.arange(5, dtype=torch.float64) / 4).all()
    assert ((legal[:, 1] - x[:, 1]).abs() <= 0.125).all()


# ---- nothing around it matters


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


METHODS = pytest.mark.parametrize("settings", [QUICK, Settings.default()], ids=["paper", "default"])


@METHODS
@pytest.mark.usefixtures("threads")
def test_the_callers_threads_are_given_back_and_do_not_matter(settings: Settings) -> None:
    evaluations = evaluated(valley(), simulate_valley, 32)
    torch.set_num_threads(1)
    expected = propose(evaluations, started(), settings=settings)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(2)
    assert propose(evaluations, started(), settings=settings) == expected
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("threads")
def test_the_callers_threads_are_given_back_after_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)

    def fail(*_: object, **__: object) -> None:
        assert torch.get_num_threads() == 1
        raise RuntimeError("no")

    monkeypatch.setattr("cbabo.methods.paper.fit_plain", fail)
    with pytest.raises(RuntimeError, match="no"):
        propose(evaluated(valley(), simulate_valley, 12), started())
    assert torch.get_num_threads() == 2


@METHODS
def test_the_global_generators_are_left_alone_and_do_not_matter(settings: Settings) -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    states = torch.random.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index,union-attr]
    expected = propose(evaluations, started(), settings=settings)
    assert torch.random.get_rng_state().equal(states[0])
    assert np.random.get_state()[1].tolist() == states[1]  # type: ignore[index,union-attr]
    assert random.getstate() == states[2]
    torch.manual_seed(77)
    assert propose(evaluations, started(), settings=settings) == expected


@METHODS
def test_the_callers_precision_and_grad_mode_do_not_matter(settings: Settings) -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    expected = propose(evaluations, started(), settings=settings)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            assert propose(evaluations, started(), settings=settings) == expected
            assert not torch.is_grad_enabled()
    finally:
        torch.set_default_dtype(torch.float32)


@METHODS
def test_what_it_is_given_is_left_alone(settings: Settings) -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    state = started()
    before = [(dict(r.point), dict(r.outputs)) for r in evaluations], bytes(state)
    propose(evaluations, state, settings=settings)
    assert ([(dict(r.point), dict(r.outputs)) for r in evaluations], state) == before
