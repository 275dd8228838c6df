"""Designs for one or a few limit vectors: one by one, never twice, and close to the optimum soon."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, pdist

from cbabo import Constraint, Objective, Problem, Real, Settings, Study
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.space import Point
from cbabo.methods import batch
from cbabo.methods.focused import choose_focused
from cbabo.methods.step import step
from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate.posterior import Posterior, calibrated
from learned import asked, cornered, evaluated, posterior_of
from simulators import lattice, simulate_lattice, simulate_valley, valley

DEFAULT = Settings.default()
ONE = np.ones(1)


def rippled() -> Problem:
    """Four variables, waves on a bowl, and a limit that cuts off its bottom."""
    reals = [Real(f"x{i}", 0.0, 1.0) for i in range(4)]
    return Problem("rippled", reals, Objective("f"), [Constraint("c", "<=", low=-0.9, high=-0.4)])


def simulate_rippled(point: dict[str, float]) -> dict[str, float]:
    x = np.array(list(point.values()))
    bowl = float(((x - 0.6) ** 2).sum())
    return {"f": 10.0 * bowl + float(np.cos(12.0 * (x - 0.6)).sum()), "c": float(-x[0] - 0.3 * np.sin(6.0 * x[1]))}


def chosen(
    posterior: Posterior,
    theta: FloatArray,
    weights: FloatArray = ONE,
    answers: int = 0,
    size: int = 1,
    taken: FloatArray | None = None,
    seed: int = 0,
) -> FloatArray:
    none = np.empty((0, posterior.problem.space.dimension))
    tried = torch.from_numpy(none if taken is None else taken)
    query = asked(posterior.problem, theta)
    return choose_focused(posterior, query, weights, answers, size, tried, np.random.default_rng(seed)).numpy()


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return posterior_of(evaluated(valley(), simulate_valley, 20), DEFAULT)


def focused_on_one(storage: str, budget: int, settings: Settings = DEFAULT) -> Study:
    """A study focused on one limit vector."""
    study = Study.create(rippled(), storage, settings=settings, focus=[{"c": -0.8}])
    study.run(simulate_rippled, budget=budget, in_process=True)
    return study


# ---- one design


def test_an_answer_comes_first_and_its_turn_is_an_improvements_once_it_was_measured(posterior: Posterior) -> None:
    theta = np.array([[0.5, 0.5]])
    answer = chosen(posterior, theta, answers=1)
    assert np.abs(answer - chosen(posterior, theta, answers=1, seed=1)).max() < 1e-9
    other = chosen(posterior, theta, answers=1, taken=answer)
    assert cdist(answer, other).min() > 1e-6
    assert np.array_equal(other, chosen(posterior, theta, taken=answer))


def test_several_designs_are_apart_and_in_the_cube(posterior: Posterior) -> None:
    x = chosen(posterior, np.array([[0.5, 0.5], [0.9, 0.9]]), np.array([0.5, 0.5]), answers=2, size=5)
    assert x.shape == (5, 2)
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert pdist(x).min() > 1e-6
    assert cdist(x, posterior.surrogates.x.numpy()).min() > 1e-6


def test_designs_that_probably_fail_are_left_alone() -> None:
    posterior = posterior_of(cornered(), DEFAULT)
    model = posterior.failure_model
    assert model is not None
    x = chosen(posterior, np.array([[1.0, 1.0]]), answers=1, size=4)
    assert (model.probability(torch.from_numpy(x)) <= model.limit + 1e-3).all()


@pytest.mark.parametrize("answers", [0, 1])
def test_a_single_failure_is_kept_away_from(posterior: Posterior, answers: int) -> None:
    """It changes neither surrogates nor, being the only one, a failure model: the same design would be chosen again."""
    theta = np.array([[0.5, 0.5]])
    failed = chosen(posterior, theta, answers=answers)
    assert posterior.failure_model is None
    other = chosen(posterior, theta, answers=answers, taken=failed)
    assert cdist(failed, other, "chebyshev").min() > 0.02


def test_calibration_does_not_send_improvements_far_away() -> None:
    """Errors of ten deviations close to the optimum say nothing of designs far from all data."""
    fitted = posterior_of(evaluated(rippled(), simulate_rippled, 15), DEFAULT)
    assert fitted.kappa is not None

    def with_kappa(kappa: float) -> Posterior:
        raised = calibrated(fitted.surrogates, kappa / fitted.kappa)
        return replace(fitted, surrogates=raised, kappa=torch.full((2,), kappa, dtype=torch.float64))

    one, ten = (chosen(with_kappa(kappa), np.full((1, 1), 0.5)) for kappa in (1.0, 10.0))
    assert np.abs(one - ten).max() < 0.01


def test_with_nothing_feasible_feasibility_is_sought() -> None:
    rows = [e for e in evaluated(rippled(), simulate_rippled, 40) if e.outputs["c"] > -0.7]
    evaluations = Evaluations(rippled(), tuple(rows))
    x = chosen(posterior_of(evaluations, DEFAULT), np.zeros((1, 1)))
    found = simulate_rippled(rippled().space.points(x)[0])
    assert found["c"] < min(e.outputs["c"] for e in rows)


def test_a_lattice_is_used_up_before_anything_is_proposed_twice() -> None:
    points = [{"i": i, "g": g} for i, g in itertools.product(range(4), (0.1, 0.2, 0.8))]
    del points[4]
    rows = tuple(Evaluation(n + 1, "complete", "run", p, simulate_lattice(p)) for n, p in enumerate(points))
    posterior = posterior_of(Evaluations(lattice(), rows), DEFAULT)
    x = chosen(posterior, np.array([[0.5]]), size=2)
    legal = lattice().space.points(x)
    assert legal[0] == {"i": 1, "g": 0.2}
    assert all(lattice().space.check(p) == p for p in legal)


# ---- a study


def test_a_focus_begins_with_fewer_designs_and_goes_on_with_as_many_as_are_evaluated_at_once() -> None:
    problem = rippled()
    focus = Focus.of(problem.box, [{"c": -0.8}])
    nothing = Evaluations(problem, ())
    first, state = step(nothing, nothing, None, DEFAULT, 0, focus)
    assert len(first) == 10
    assert len(step(nothing, nothing, None, DEFAULT, 0)[0]) == 10 + len(problem.space.names)
    known = Evaluations(
        problem, tuple(Evaluation(i + 1, "complete", "run", p, simulate_rippled(p)) for i, p in enumerate(first))
    )
    for at_once, size in ((1, 1), (3, 3), (9, 5), (None, 5)):
        assert len(step(known, nothing, state, DEFAULT, 0, focus, at_once)[0]) == size
    assert len(step(known, nothing, state, DEFAULT, 0, None, 1)[0]) == 5


def test_a_focus_beats_the_best_of_a_pool() -> None:
    """On a rippled bowl designs chosen one by one come closer than batches of answers and of the best of a random pool."""
    focused = focused_on_one("sqlite://", 40)
    best = min(e.outputs["f"] for e in focused.evaluations if e.outputs["c"] <= -0.8)
    evaluations = Evaluations(rippled(), focused.evaluations.rows[:10])
    random = np.random.default_rng(0)
    nothing = torch.empty(0, 4, dtype=torch.float64)
    theta = rippled().box.to_theta(np.array([[-0.8]]))
    while len(evaluations) < 40:
        posterior = posterior_of(evaluations, DEFAULT)
        x = batch.choose_batch(posterior, asked(rippled(), theta), 3, 5, nothing, 0.98, random).numpy()
        rows = [
            Evaluation(len(evaluations) + 1 + i, "complete", "run", p, simulate_rippled(p))
            for i, p in enumerate(rippled().space.points(x))
        ]
        evaluations = Evaluations(rippled(), (*evaluations, *rows))
    pooled = min(e.outputs["f"] for e in evaluations if e.outputs["c"] <= -0.8)
    assert best < pooled - 1e-3


def test_a_focused_run_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = focused_on_one("sqlite://", 16)
    url = f"sqlite:///{tmp_path}/study.db"
    for budget in (7, 12, 16):
        parts = focused_on_one(url, budget)
    assert [e.point for e in parts.evaluations] == [e.point for e in whole.evaluations]
    assert len(whole.evaluations) == 16


@pytest.mark.parametrize(
    ("workers", "asynchronous", "sizes"), [(1, False, [10, 1, 1]), (3, False, [10, 3]), (3, True, [10, 1, 1])]
)
def test_batches_of_a_focused_run_are_as_large_as_what_is_evaluated_at_once(
    monkeypatch: pytest.MonkeyPatch, workers: int, asynchronous: bool, sizes: list[int]
) -> None:
    found: list[int] = []

    def spy(*given: object) -> tuple[list[Point], bytes]:
        batch, state = step(*given)  # type: ignore[arg-type]
        found.append(len(batch))
        return batch, state

    monkeypatch.setattr("cbabo.methods.step.step", spy)
    study = Study.create(rippled(), "sqlite://", focus=[{"c": -0.8}])
    with ThreadPoolExecutor(workers) as executor:
        budget = 10 + len(sizes[1:])
        here = workers == 1
        study.run(simulate_rippled, budget, workers, None if here else executor, asynchronous, in_process=here)
    assert found == sizes


def test_asking_by_hand_gives_as_many_as_are_asked_for() -> None:
    study = Study.create(rippled(), "sqlite://", focus=[{"c": -0.8}])
    for trial in study.ask(10):
        study.tell(trial.id, simulate_rippled(trial.point))
    assert [len(study.ask(n)) for n in (2, 1)] == [2, 1]
    assert (
        len({tuple(e.point.values()) for e in study.evaluations}) == 12
    )  # One of the first designs is measured twice.
