"""Batches for the whole box: answers, discoveries, and nothing twice."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, pdist

from cbabo import Constraint, Discrete, Objective, Problem, Real, Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.query import Query
from cbabo.methods.batch import choose_batch
from cbabo.methods.default import DefaultMethod
from cbabo.methods.learner import Learner
from cbabo.methods.step import step
from cbabo.numerics.arrays import FloatArray
from cbabo.solver.categorical import solver_for
from cbabo.solver.continuous import Solution, Solver, SolverAnswer
from cbabo.surrogate.posterior import Posterior, calibrated
from learned import Simulate, asked, evaluated, posterior_of
from simulators import lattice, simulate_lattice, simulate_valley, valley

DEFAULT = Settings.default().replace(initial_evaluations=30)
"""Forms of outputs are chosen after 30 evaluations only, so that surrogates of fewer have errors worth correcting."""
NOTHING = torch.empty(0, 2, dtype=torch.float64)
THETA = np.random.default_rng(3).random((8, 2))


def chosen(
    posterior: Posterior,
    theta: FloatArray = THETA,
    answers: int = 3,
    size: int = 5,
    taken: torch.Tensor = NOTHING,
    seed: int = 0,
) -> FloatArray:
    return choose_batch(
        posterior, asked(posterior.problem, theta), answers, size, taken, 0.98, np.random.default_rng(seed)
    ).numpy()


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return posterior_of(evaluated(valley(), simulate_valley, 20), DEFAULT)


def best_valley(theta: FloatArray) -> tuple[float, FloatArray]:
    """The true optimum at theta (2), by brute force: objective and design in the unit cube."""
    a, b = np.meshgrid(np.linspace(-1, 1, 401), np.linspace(10, 30, 401), indexing="ij")
    y = simulate_valley({"a": a, "b": b})  # type: ignore[dict-item]
    c, g = valley().box.from_theta(theta[None])[0]
    f = np.where((y["c"] <= c) & (y["g"] >= g) & (y["g"] <= 2.5), y["f"], np.inf)
    at = np.unravel_index(np.argmin(f), f.shape)
    return float(f[at]), np.array([at[0], at[1]]) / 400.0


def half_explored() -> tuple[Problem, Evaluations]:
    """One variable and two valleys, one of which was measured well, the other hardly at all."""
    problem = Problem("two", [Real("a", 0.0, 1.0)], Objective("f"), [Constraint("c", "<=", low=0.0, high=2.0)])

    def simulate(point: dict[str, float]) -> dict[str, float]:
        a = point["a"]
        return {"f": float(np.sin(9.0 * a) + 0.1 * np.cos(40.0 * a)), "c": a}

    points = [{"a": float(a)} for a in (*np.linspace(0.0, 0.55, 14), 1.0)]
    rows = tuple(Evaluation(i + 1, "complete", "run", p, simulate(p)) for i, p in enumerate(points))
    return problem, Evaluations(problem, rows)


# ---- answers and discoveries


@pytest.mark.parametrize(("answers", "size"), [(3, 5), (0, 4), (5, 5), (1, 1), (0, 1), (2, 12)])
def test_so_many_designs_in_the_cube_and_none_twice(posterior: Posterior, answers: int, size: int) -> None:
    x = chosen(posterior, answers=answers, size=size)
    assert x.shape == (size, 2)
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert cdist(x, posterior.surrogates.x.numpy()).min() > 1e-4
    if size > 1:
        assert pdist(x).min() > 5e-4


def test_answers_come_first_and_are_optima_of_their_thresholds(posterior: Posterior) -> None:
    theta = np.array([[0.5, 0.5], [0.9, 0.9], [0.2, 0.6]])
    x = chosen(posterior, theta, answers=3)
    for row, found in zip(theta, x, strict=False):
        assert found == pytest.approx(best_valley(row)[1], abs=0.02)


def test_two_thresholds_with_one_answer_are_answered_once(posterior: Posterior) -> None:
    """Relaxed limits do not bind, so that the same design is best for both: the second is left to a discovery."""
    x = chosen(posterior, np.array([[1.0, 1.0], [0.99, 1.0]]), answers=2, size=2)
    assert x[0] == pytest.approx([0.8, 0.3], abs=0.01)
    assert np.abs(x[1] - x[0]).max() > 5e-4


def test_one_answer_keeps_its_margin_where_that_leads_far_from_all_that_is_known() -> None:
    """Nothing was measured between 0.2 and 0.94: surrogates that were wrong before ask for margins that lead far into the gap."""
    problem = Problem(
        "gap", [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)], Objective("f"), [Constraint("c", "<=", low=-0.5, high=0.5)]
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        a, b = point["a"], point["b"]
        return {"f": a + (b - 0.5) ** 2, "c": 1.0 - 2.0 * a + 0.1 * float(np.sin(14.0 * a))}

    points = [{"a": float(a), "b": b} for a in (*np.linspace(0, 0.2, 6), 0.94, 0.97, 1.0) for b in (0.0, 1.0, 0.2)]
    rows = tuple(Evaluation(i + 1, "complete", "run", p, simulate(p)) for i, p in enumerate(points))
    sure = posterior_of(Evaluations(problem, rows), DEFAULT)
    wide = calibrated(sure.surrogates, torch.full((2,), 16.0, dtype=torch.float64))
    doubting = replace(sure, surrogates=wide)
    theta = np.array([[0.5], [0.6], [0.7]])
    plain = chosen(sure, theta)
    assert plain[:3, 0] == pytest.approx([0.41, 0.37, 0.33], abs=0.02)
    x, solver = chosen(doubting, theta), solver_for(doubting)
    assert cdist(x[:1], np.vstack([plain[:3], sure.surrogates.x.numpy()]), "chebyshev").min() > 0.2
    assert solver.probability(solver.bound(theta)[0], x[0]) > 0.97
    assert x[1:3] == pytest.approx(plain[:2], abs=1e-3)
    assert chosen(doubting, theta, answers=1, size=1)[0] == pytest.approx(plain[0], abs=1e-3)


def test_discoveries_are_apart_from_each_other(posterior: Posterior) -> None:
    assert pdist(chosen(posterior, answers=0, size=6)).min() > 0.05


def test_a_discovery_is_worth_the_most_for_one_threshold() -> None:
    """At a threshold that allows both valleys the one hardly measured is looked at."""
    posterior = posterior_of(half_explored()[1], DEFAULT)
    x = choose_batch(
        posterior, asked(posterior.problem, np.array([[1.0]])), 0, 2, NOTHING[:, :1], 0.98, np.random.default_rng(0)
    ).numpy()
    assert (x > 0.56).all()
    low = choose_batch(
        posterior, asked(posterior.problem, np.array([[0.25]])), 0, 2, NOTHING[:, :1], 0.98, np.random.default_rng(0)
    ).numpy()
    assert (low < 0.6).all()  # nothing beyond obeys that one


def test_the_same_random_numbers_give_the_same_batch(posterior: Posterior) -> None:
    assert np.array_equal(chosen(posterior), chosen(posterior))
    assert not np.array_equal(chosen(posterior), chosen(posterior, seed=1))


# ---- nothing twice


def test_what_was_taken_is_not_proposed_again(posterior: Posterior) -> None:
    first = chosen(posterior)
    second = chosen(posterior, taken=torch.from_numpy(first))
    assert cdist(first, second).min() > 1e-4


def test_failed_and_pending_designs_are_left_alone() -> None:
    evaluations = evaluated(valley(), simulate_valley, 30)
    state = Learner(1).to_bytes()
    first, _ = step(evaluations, evaluations.running, state, DEFAULT, 0)
    failed = tuple(Evaluation(50 + i, "failed", "run", p, {}, failure="no") for i, p in enumerate(first[:2]))
    running = tuple(Evaluation(60 + i, "running", "run", p, {}) for i, p in enumerate(first[2:]))
    known = Evaluations(valley(), (*evaluations, *failed))
    second, _ = step(known, Evaluations(valley(), running), state, DEFAULT, 0)
    space = valley().space
    assert len(second) == 5
    assert cdist(space.unit(space.array(second)), space.unit(space.array(first))).min() > 1e-4


def test_what_is_under_way_moves_the_others_away() -> None:
    """Designs under way count as predicted, so that no improvement is sought beside them."""
    problem, evaluations = half_explored()
    state = Learner(1).to_bytes()
    settings = DEFAULT.replace(initial_evaluations=15, answers_per_batch=0, batch_size=2, noise="none")
    focus = Focus.of(problem.box, np.array([[2.0]]))
    first, _ = step(evaluations, evaluations.running, state, settings, 0, focus)
    running = Evaluations(problem, tuple(Evaluation(60 + i, "running", "run", p, {}) for i, p in enumerate(first)))
    second, _ = step(evaluations, running, state, settings, 0, focus)
    assert min(abs(p["a"] - q["a"]) for p in first for q in second) > 0.02
    assert step(evaluations, running, state, settings, 0, focus)[0] == second


def test_a_run_measures_no_design_twice_but_one() -> None:
    """The first design of which it is not known whether its outputs are noisy."""
    evaluations = evaluated(valley(), simulate_valley, 30)
    state: bytes | None = Learner(1).to_bytes()
    for _ in range(4):
        batch, state = step(evaluations, evaluations.running, state, DEFAULT, 0)
        rows = [
            Evaluation(len(evaluations) + 1 + i, "complete", "run", p, simulate_valley(p)) for i, p in enumerate(batch)
        ]
        evaluations = Evaluations(valley(), (*evaluations, *rows))
    assert len(evaluations) == 50
    distances = np.sort(pdist(evaluations.x))
    assert distances[0] == 0.0
    assert distances[1] > 1e-4


# ---- a small lattice


def all_of_the_lattice(without: int = 0) -> Evaluations:
    points = [{"i": i, "g": g} for i, g in itertools.product(range(4), (0.1, 0.2, 0.8))]
    points = [p for n, p in enumerate(points) if n not in (4, 9)[:without]]
    rows = tuple(Evaluation(n + 1, "complete", "run", p, simulate_lattice(p)) for n, p in enumerate(points))
    return Evaluations(lattice(), rows)


@pytest.mark.parametrize("left", [1, 2])
def test_what_is_left_of_a_lattice_comes_first(left: int) -> None:
    posterior = posterior_of(all_of_the_lattice(left), DEFAULT)
    x = choose_batch(
        posterior,
        asked(posterior.problem, np.random.default_rng(0).random((6, 1))),
        1,
        4,
        NOTHING,
        0.98,
        np.random.default_rng(0),
    ).numpy()
    points = lattice().space.points(x)
    missing = [{"i": 1, "g": 0.2}, {"i": 3, "g": 0.1}][:left]
    assert all(p in points[:left] for p in missing)
    assert len(points) == 4


def test_a_lattice_that_is_used_up_still_gives_legal_designs() -> None:
    posterior = posterior_of(all_of_the_lattice(), DEFAULT)
    x = choose_batch(
        posterior,
        asked(posterior.problem, np.random.default_rng(0).random((6, 1))),
        3,
        5,
        NOTHING,
        0.98,
        np.random.default_rng(0),
    ).numpy()
    points = lattice().space.points(x)
    assert len({tuple(p.values()) for p in points}) == 5
    assert all(lattice().space.check(p) == p for p in points)


def test_a_batch_larger_than_a_lattice_is_still_filled() -> None:
    posterior = posterior_of(all_of_the_lattice(2), DEFAULT)
    x = choose_batch(
        posterior, asked(posterior.problem, np.array([[0.5]])), 3, 14, NOTHING, 0.98, np.random.default_rng(0)
    ).numpy()
    assert len(x) == 14
    assert len(np.unique(x, axis=0)) == 12


def test_a_batch_larger_than_everything_there_is() -> None:
    problem = Problem("two", [Discrete("g", [1.0, 2.0])], Objective("f"), [Constraint("c", "<=", low=0.0, high=4.0)])

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": point["g"], "c": 3.0 - point["g"]}

    points = [{"g": 1.0}, {"g": 2.0}]
    rows = tuple(Evaluation(n + 1, "complete", "run", p, simulate(p)) for n, p in enumerate(points))
    batch, _ = step(Evaluations(problem, rows), Evaluations(problem, ()), Learner(1).to_bytes(), DEFAULT, 0)
    assert len(batch) == 5
    assert {p["g"] for p in batch} == {1.0, 2.0}


# ---- nothing is feasible yet


def hidden() -> tuple[Problem, Simulate]:
    """Limits are obeyed close to one corner only, where the objective is worst."""
    problem = Problem(
        "hidden",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0), Real("c", 0.0, 1.0)],
        Objective("f"),
        [Constraint("far", "<=", low=0.05, high=0.15)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        x = np.array([point["a"], point["b"], point["c"]])
        return {"f": float(-x.sum()), "far": float(np.linalg.norm(x) * (1.0 + 0.3 * np.sin(5.0 * x[0])))}

    return problem, simulate


def test_it_looks_for_feasibility_when_nothing_is_feasible() -> None:
    problem, simulate = hidden()
    rows = [e for e in evaluated(problem, simulate, 40) if e.outputs["far"] > 0.6][:30]
    evaluations = Evaluations(problem, tuple(rows))
    assert len(rows) == 30
    state: bytes | None = Learner(1).to_bytes()
    least = min(e.outputs["far"] for e in evaluations)
    for _ in range(3):
        batch, state = step(evaluations, evaluations.running, state, DEFAULT, 0)
        new = [Evaluation(len(evaluations) + 1 + i, "complete", "run", p, simulate(p)) for i, p in enumerate(batch)]
        assert np.median([e.outputs["far"] for e in new]) < least  # most of them are better than everything before
        evaluations = Evaluations(problem, (*evaluations, *new))
    assert min(e.outputs["far"] for e in evaluations) <= 0.15
    assert problem.box.feasible(evaluations.y, np.full((len(evaluations), 1), 0.15)).any()


def test_discoveries_alone_look_for_feasibility_too() -> None:
    problem, simulate = hidden()
    rows = [e for e in evaluated(problem, simulate, 40) if e.outputs["far"] > 0.6][:30]
    posterior = posterior_of(Evaluations(problem, tuple(rows)), DEFAULT)
    taken = torch.empty(0, 3, dtype=torch.float64)
    x = choose_batch(
        posterior, asked(posterior.problem, np.array([[0.2], [0.8]])), 0, 3, taken, 0.98, np.random.default_rng(0)
    ).numpy()
    assert np.linalg.norm(x, axis=1).max() < 0.6


# ---- the focus


def test_a_focus_moves_the_answers_to_its_thresholds() -> None:
    evaluations = evaluated(valley(), simulate_valley, 30)
    state = Learner(1).to_bytes()
    space = valley().space
    for theta in (np.array([0.2, 0.6]), np.array([0.9, 0.9])):
        at = valley().box.from_theta(theta[None])
        focus = Focus.of(valley().box, at)
        batch, _ = step(evaluations, evaluations.running, state, DEFAULT, 0, focus)
        distance = np.abs(space.unit(space.array(batch)) - best_valley(theta)[1]).max(1)
        assert distance.min() < 0.02
        other, _ = step(evaluations, evaluations.running, state, DEFAULT, 0)
        assert np.median(distance) < np.median(np.abs(space.unit(space.array(other)) - best_valley(theta)[1]).max(1))


def test_a_heavy_threshold_has_its_answer_first() -> None:
    evaluations = evaluated(valley(), simulate_valley, 30)
    thetas = np.array([[0.2, 0.6], [0.9, 0.9]])
    rows = valley().box.from_theta(thetas)
    for heavy in range(2):
        weights = [1e-9, 1e-9]
        weights[heavy] = 1.0
        focus = Focus(tuple(map(tuple, rows.tolist())), tuple(w / sum(weights) for w in weights))
        batch, _ = step(evaluations, evaluations.running, Learner(1).to_bytes(), DEFAULT, 0, focus)
        space = valley().space
        x = space.unit(space.array(batch))
        assert x[0] == pytest.approx(best_valley(thetas[heavy])[1], abs=0.02)
        assert np.abs(x - best_valley(thetas[1 - heavy])[1]).max(1).min() > 0.02


@pytest.mark.parametrize(("size", "per_batch", "share"), [(1, 3, 0.6), (5, 3, 0.6), (5, 0, 0.0), (4, 4, 1.0)])
def test_answers_and_discoveries_take_turns(
    monkeypatch: pytest.MonkeyPatch, size: int, per_batch: int, share: float
) -> None:
    """Over many iterations their shares are as the settings say, in batches of one as well."""
    seen: list[int] = []

    def spy(posterior: Posterior, query: Query, answers: int, *rest: object) -> torch.Tensor:
        seen.append(answers)
        return torch.zeros(size, 2, dtype=torch.float64)

    monkeypatch.setattr("cbabo.methods.default.choose_batch", spy)
    evaluations = evaluated(valley(), simulate_valley, 6)
    settings = DEFAULT.replace(batch_size=size, answers_per_batch=per_batch, noise="none")
    for iteration in range(1, 11):
        step(evaluations, evaluations.running, Learner(iteration).to_bytes(), settings, 0)
    assert sum(seen) == pytest.approx(10 * size * share, abs=1)
    assert all(0 <= n <= size for n in seen)


@pytest.mark.parametrize(
    ("size", "ends"), [(1, {9: 0.0, 19: 1.0}), (5, {1: 0.0, 3: 1.0, 5: 0.0}), (20, {0: 0.0, 1: 1.0, 2: 0.0})]
)
def test_an_end_of_the_box_is_answered_for_every_ten_designs(
    monkeypatch: pytest.MonkeyPatch, size: int, ends: dict[int, float]
) -> None:
    found: dict[int, float] = {}
    iteration = 0

    def spy(posterior: Posterior, query: Query, answers: int, *rest: object) -> torch.Tensor:
        first = query.theta[0]
        if set(first) <= {0.0, 1.0}:
            assert answers > 0
            found[iteration] = float(first[0])
        return torch.zeros(size, 2, dtype=torch.float64)

    monkeypatch.setattr("cbabo.methods.default.choose_batch", spy)
    evaluations = evaluated(valley(), simulate_valley, 6)
    settings = DEFAULT.replace(batch_size=size, answers_per_batch=3, noise="none")
    for iteration in range(max(ends) + 1):
        DefaultMethod(settings).propose(evaluations, evaluations.running, Learner(iteration), 0, size, None)
    assert found == ends


# ---- risky regions


def test_designs_that_are_too_risky_come_last() -> None:
    evaluations = evaluated(valley(), simulate_valley, 60)
    rows = tuple(
        Evaluation(e.id, "failed", "run", e.point, {}, failure="mesh") if e.point["a"] > 0.2 else e for e in evaluations
    )
    posterior = posterior_of(Evaluations(valley(), rows), DEFAULT)
    assert posterior.failure_model is not None
    x = chosen(posterior, np.array([[1.0, 1.0], [0.9, 0.9], [0.5, 0.5]]), answers=2, size=6)
    assert (x[:, 0] < 0.68).all()  # the optimum without failures lies at 0.8


def test_answers_with_a_margin_aim_at_the_probability_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    aims: set[float] = set()
    solved = Solver.with_margin

    def spy(solver: Solver, bound: FloatArray, solution: Solution, probability: float) -> SolverAnswer:
        aims.add(probability)
        return solved(solver, bound, solution, probability)

    monkeypatch.setattr(Solver, "with_margin", spy)
    evaluations = evaluated(valley(), simulate_valley, 12)
    step(evaluations, evaluations.running, Learner(1).to_bytes(), DEFAULT.replace(probability=0.9), 0)
    assert aims == {0.9}
