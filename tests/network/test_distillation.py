"""The network distilled from the fast map: it meets limits, keeps to branches, and is reproducible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from cbabo import Constraint, Model, Objective, Problem, Real, Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from cbabo.network import distillation
from cbabo.network.distillation import TUNING, distil
from cbabo.numerics.threads import one_thread
from cbabo.solver.library import FastMap
from learned import evaluated, model_of
from simulators import (
    lattice,
    mirrored,
    simulate_lattice,
    simulate_mirrored,
    simulate_valley,
    simulate_wavy,
    valley,
    wavy,
)

DEFAULT = Settings.default().replace(library=64, hidden_width=96)
SHORT = replace(TUNING, samples=512, steps=500, first_relinearisation=200)
"""A shorter training, for where the network may be less accurate."""
THETA = np.random.default_rng(3).random((2000, 2))


def jumping() -> Problem:
    """Two basins of a: the better one, at 0.8, must be given up when c gets strict."""
    constraints = [Constraint("c", "<=", low=0.3, high=1.0), Constraint("g", ">=", low=0.0, high=1.0)]
    return Problem("jumping", [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)], Objective("f"), constraints)


def simulate_jumping(point: dict[str, float]) -> dict[str, float]:
    a, b = point["a"], point["b"]
    basins = np.exp(-(((a - 0.2) / 0.15) ** 2)) + 1.5 * np.exp(-(((a - 0.8) / 0.15) ** 2))
    return {"f": 0.3 * (b - 0.3) ** 2 - basins, "c": a + 0.1 * b, "g": b + 0.2 * a}


def judged(model: Model, simulate: object, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the true objectives of the network's designs, and which obey their limits."""
    box, space = model.problem.box, model.problem.space
    thresholds = box.from_theta(theta)
    found = model.predict_many(thresholds, method="pcm")
    rows = [simulate(p) for p in space.points(found.x.numpy())]  # type: ignore[operator]
    y = np.array([[row[name] for name in model.problem.outputs] for row in rows])
    return y[:, 0], box.feasible(y, thresholds)


def trained(model: Model) -> Model:
    """The model with its network, which is otherwise made when it is first asked for, perhaps by a shorter training."""
    assert model.pcm.sizes[-1] == model.problem.space.dimension
    return model


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distillation, "TUNING", SHORT)


@pytest.fixture(scope="module")
def jump() -> Model:
    return trained(model_of(jumping(), simulate_jumping, 100, DEFAULT))


@pytest.fixture(scope="module")
def model() -> Model:
    return trained(model_of(valley(), simulate_valley, 60, DEFAULT))


@pytest.fixture(scope="module")
def uncertain() -> Model:
    return trained(model_of(wavy(), simulate_wavy, 80, DEFAULT))


def test_few_answers_lie_between_two_branches(jump: Model) -> None:
    thresholds = jump.problem.box.from_theta(THETA)
    solved = jump.predict_many(thresholds, fast=True).points[:, 0]
    low, high = solved[solved < 0.5].max(), solved[solved > 0.5].min()
    assert low < 0.26
    assert high > 0.64
    found = jump.predict_many(thresholds, method="pcm").points[:, 0]
    assert np.mean((found > low + 0.02) & (found < high - 0.02)) <= 0.05
    assert 0.2 < np.mean(found > 0.5) < 0.8


def test_samples_come_from_few_entries_where_these_lose_little_and_from_all_elsewhere(
    jump: Model, model: Model
) -> None:
    theta = THETA[:300]
    (few,) = distillation._solve_samples(model.fast_map, theta, 0.98)
    np.testing.assert_array_equal(few.x, model.fast_map.few(8).entries(theta, 0.98).x)
    whole = jump.fast_map.library
    order = np.argsort(whole.x[:, 0])  # The first entries are then all on one branch.
    assert whole.x[order[31], 0] < 0.5
    found = distillation._solve_samples(FastMap(jump.solver, whole.taken(order)), theta, 0.98)
    assert len(found) == 2
    assert (found[1].x[:, 0] > 0.5).mean() > (found[0].x[:, 0] > 0.5).mean() + 0.2


def test_limits_are_obeyed_with_a_margin_for_the_networks_errors(jump: Model, model: Model) -> None:
    assert judged(jump, simulate_jumping, THETA)[1].mean() > 0.97
    reachable = model.predict_many(model.problem.box.from_theta(THETA), fast=True).probability_feasible > 0.9
    assert reachable.mean() > 0.8
    assert judged(model, simulate_valley, THETA[reachable])[1].mean() > 0.9


def test_little_is_lost_to_what_the_library_answers(model: Model) -> None:
    thresholds = model.problem.box.from_theta(THETA)
    best = model.predict_many(thresholds, fast=True).moments[0][:, 0]
    assert np.mean(judged(model, simulate_valley, THETA)[0] - best) < 0.1 * np.ptp(best)


def test_it_is_the_paper_s_network(jump: Model) -> None:
    stated = Settings.default()
    assert (stated.hidden_layers, stated.hidden_width) == (3, 256)
    assert jump.pcm.sizes == (2, 96, 96, 96, 2)
    assert jump.pcm.weights.dtype == torch.float64


@pytest.mark.usefixtures("short")
def test_the_same_every_time_and_another_one_for_another_seed(model: Model) -> None:
    sizes = (2, 16, 2)
    with one_thread():
        a, b, c = (distil(model.fast_map, sizes, 0.9, seed).weights for seed in (1, 1, 2))
    assert a.equal(b)
    assert not a.equal(c)


def test_a_problem_restated_has_the_same_network(model: Model) -> None:
    again = model_of(mirrored(), simulate_mirrored, 60, DEFAULT)
    theta = torch.from_numpy(THETA)
    assert (again.pcm.designs(theta) - model.pcm.designs(theta)).abs().max() < 0.05


def test_measured_designs_are_used_where_the_objective_is_uncertain(model: Model, uncertain: Model) -> None:
    x = uncertain.pcm.designs(torch.from_numpy(THETA)).numpy()
    distance = cdist(x, uncertain.evaluations.complete.x, "chebyshev").min(1)
    assert np.mean(distance < 0.1) > 0.7
    f, feasible = judged(uncertain, simulate_wavy, THETA)
    assert feasible.mean() > 0.9
    distilled = distillation._train_on_answers(
        uncertain.fast_map, uncertain.fast_map.entries(THETA, 0.98), uncertain.pcm.sizes, 0
    )
    rows = [simulate_wavy(p) for p in wavy().space.points(distilled.designs(torch.from_numpy(THETA)).numpy())]
    assert f.mean() < np.mean([row["f"] for row in rows])  # The surrogates are wrong there.
    sure = model.pcm.designs(torch.from_numpy(THETA)).numpy()
    assert np.mean(cdist(sure, model.evaluations.complete.x, "chebyshev").min(1) < 0.02) < 0.5


def test_few_measured_designs_are_used_each_where_it_is_feasible_and_the_best_of_them(uncertain: Model) -> None:
    found = distillation._best_measured_designs(uncertain.solver, THETA, 0.98)
    assert found is not None
    theta, x = found
    few, which = np.unique(x, axis=0, return_inverse=True)
    assert 4 < len(few) <= 16
    rows = [simulate_wavy(p) for p in wavy().space.points(few)]
    y = np.array([[row[name] for name in wavy().outputs] for row in rows])
    obeyed = wavy().box.obeyed(y, wavy().box.from_theta(theta))
    assert obeyed[np.arange(len(theta)), which].all()
    stricter = wavy().box.obeyed(y, wavy().box.from_theta(np.clip(theta - 0.5 * 2000**-0.5, 0.0, 1.0)))
    best = np.where(stricter, y[:, 0], np.inf).min(1)
    assert y[which, 0] == pytest.approx(best)


@pytest.mark.usefixtures("short")
def test_a_network_is_made_where_no_measured_design_obeys_anything() -> None:
    problem = Problem("never", wavy().space.variables, Objective("f"), [Constraint("c", "<=", low=-2.0, high=-1.0)])

    def simulate(point: dict[str, float]) -> dict[str, float]:
        row = simulate_wavy(point)
        return {"f": row["f"], "c": row["c"]}

    model = model_of(problem, simulate, 20, DEFAULT.replace(library=8))
    assert distillation._best_measured_designs(model.solver, THETA[:, :1], 0.98) is None
    assert model.pcm.designs(torch.from_numpy(THETA[:, :1])).isfinite().all()


def test_limits_are_obeyed_far_along_a_valley() -> None:
    """A coil spring's weight hardly changes along a curved valley: a sample's linear model is wrong at the network's design."""
    reals = [Real("d", 0.05, 0.2), Real("coil", 0.25, 1.3), Real("turns", 2.0, 15.0)]
    limits = [("deflection", -0.5, 0.5), ("shear", -0.4, 0.2), ("surge", -5.0, 0.0)]
    constraints = [Constraint(name, "<=", low=low, high=high) for name, low, high in limits]
    spring = Problem("spring", reals, Objective("f"), constraints)

    def simulate(point: dict[str, float]) -> dict[str, float]:
        d, coil, turns = point["d"], point["coil"], point["turns"]
        return {
            "f": (turns + 2.0) * coil * d**2,
            "deflection": 1.0 - coil**3 * turns / (71785.0 * d**4),
            "shear": (4.0 * coil**2 - d * coil) / (12566.0 * (coil * d**3 - d**4)) + 1.0 / (5108.0 * d**2) - 1.0,
            "surge": 1.0 - 140.45 * d / (coil**2 * turns),
        }

    model = model_of(spring, simulate, 80, DEFAULT)
    theta = np.random.default_rng(3).random((500, 3))
    reached = model.predict_many(spring.box.from_theta(theta), fast=True).probability_feasible > 0.9
    assert 0.5 < reached.mean() < 0.9
    assert judged(model, simulate, theta[reached])[1].mean() > 0.95


@pytest.mark.usefixtures("short")
def test_nothing_continuous_is_learned_as_it_is() -> None:
    model = model_of(lattice(), simulate_lattice, 20, DEFAULT)
    theta = THETA[:300, :1]
    assert judged(model, simulate_lattice, theta)[1].mean() > 0.9


@pytest.mark.usefixtures("short")
def test_designs_stay_where_the_simulator_does_not_fail() -> None:
    problem = valley()
    rows = evaluated(problem, simulate_valley, 90).rows
    recorded = tuple(
        Evaluation(r.id, "failed", "run", r.point, {}, "no mesh") if r.point["a"] > 0.3 else r for r in rows
    )
    model = make_model(Evaluations(problem, recorded), Learner(0), DEFAULT, 0)
    assert model.posterior.failure_model is not None
    found = model.predict_many(problem.box.from_theta(THETA), method="pcm").points[:, 0]
    assert np.mean(found > 0.4) < 0.05


@pytest.mark.usefixtures("short")
def test_failures_hold_designs_back_where_no_limit_does() -> None:
    whole = valley()
    problem = Problem("free", whole.variables, whole.objective, [Constraint("c", "<=", low=5.0, high=9.0)])
    rows = evaluated(problem, simulate_valley, 80).rows
    recorded = tuple(
        Evaluation(r.id, "failed", "run", r.point, {}, "no mesh") if r.point["a"] > 0.3 else r for r in rows
    )
    model = make_model(Evaluations(problem, recorded), Learner(0), DEFAULT, 0)
    found = model.predict_many(problem.box.from_theta(THETA[:, :1]), method="pcm").points[:, 0]
    assert np.mean(found > 0.4) < 0.05
    assert np.mean(found) > 0.0  # The optimum, at 0.6, is on the other side.


@pytest.mark.usefixtures("short")
def test_thresholds_that_nothing_meets_do_no_harm() -> None:
    strict = Problem(
        "strict",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("f"),
        [Constraint("c", "<=", low=-1.0, high=1.0), Constraint("g", "<=", low=0.0, high=2.0)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        a, b = point["a"], point["b"]
        return {"f": -a - b, "c": a**2 + 0.1 * b, "g": a + 2.0 * b}

    model = model_of(strict, simulate, 40, DEFAULT)
    reachable = THETA[THETA[:, 0] > 0.55]
    assert judged(model, simulate, reachable)[1].mean() > 0.9
    a = model.predict_many(strict.box.from_theta(THETA[THETA[:, 0] < 0.4]), method="pcm").points[:, 0]
    assert np.quantile(a, 0.9) < 0.1
