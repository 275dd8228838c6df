"""Awkward outputs and awkward data with the default settings: everything works, and every number is one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from cbabo import Constraint, Model, Objective, Problem, Real, Settings, problems
from cbabo.answering.answers import Answer
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.methods.step import step
from cbabo.model import make_model
from cbabo.numerics.arrays import FloatArray
from learned import Simulate, evaluated, refine
from simulators import simulate_valley, valley

SETTINGS = Settings.default().replace(library=24)


def check_works(evaluations: Evaluations, batches: int = 1) -> Model:
    """Propose, answer and answer quickly: legal designs, finite numbers, statuses that fit them."""
    problem = evaluations.problem
    state: bytes | None = Learner(1).to_bytes()
    for _ in range(batches):
        batch, state = step(evaluations, evaluations.running, state, SETTINGS, 0)
        assert len(batch) == 5
        for point in batch:
            assert problem.space.check(point) == point
    model = make_model(evaluations, Learner.from_bytes(state), SETTINGS, 0)
    k = len(problem.box.names)
    rows = problem.box.from_theta(np.vstack([np.zeros((1, k)), np.full((1, k), 0.5), np.ones((1, k))]))
    for fast in (False, True):
        many = model.predict_many(rows, fast=fast)
        assert np.isfinite(many.to_frame().to_numpy(dtype=float)).all()
        for i in range(3):
            check_answer(many.answer(i), problem)
    return model


def check_answer(answer: Answer, problem: Problem) -> None:
    assert problem.space.check(answer.point) == answer.point
    assert 0.0 <= answer.probability_feasible <= 1.0
    assert all(math.isfinite(e.mean) and e.std >= 0.0 for e in answer.outputs.values())
    if answer.status == "verified":
        assert answer.probability_feasible == 1.0
    elif answer.status == "predicted":
        assert answer.probability_feasible >= 0.98 - 2e-3
        assert answer.closest_thresholds is None
    else:
        assert answer.probability_feasible < 0.98
        closest = answer.closest_thresholds
        assert closest is None or all(math.isfinite(v) for v in closest.values())


def share_feasible(model: Model, simulate: Simulate, count: int = 12) -> float:
    """Of answers that are not called unreachable, how many truly are feasible."""
    box = model.problem.box
    rows = box.from_theta(np.random.default_rng(0).random((count, len(box.names))))
    many = model.predict_many(rows)
    reached = [i for i in range(count) if many.status(i) != "unreachable"]
    if not reached:
        return 1.0
    points = model.problem.space.points(many.x.numpy()[reached])
    y = np.array([[simulate(p)[name] for name in model.problem.outputs] for p in points])
    return float(box.feasible(y, rows[reached]).mean())


# ---- outputs


def test_a_pole_in_a_corner() -> None:
    """three_truss: stresses go to infinity where the bars vanish."""
    shipped = problems.get("three_truss")
    evaluations = evaluated(shipped.problem, shipped.evaluate, 60)
    low = [v.low for v in shipped.problem.variables]
    tiny = {v.name: low[i] + 1e-9 * (v.high - v.low) for i, v in enumerate(shipped.problem.variables)}
    made = Evaluation(99, "complete", "run", tiny, shipped.evaluate(tiny))
    assert max(abs(v) for v in made.outputs.values()) > 1e5
    model = check_works(Evaluations(shipped.problem, (*evaluations, made)))
    assert share_feasible(model, shipped.evaluate) >= 0.75


@pytest.mark.parametrize(("name", "output", "decades"), [("keane18", "c1", 5), ("pressure_vessel", "c3", 3)])
def test_outputs_over_many_decades(name: str, output: str, decades: float) -> None:
    shipped = problems.get(name)
    evaluations = evaluated(shipped.problem, shipped.evaluate, 60)
    sizes = np.abs([e.outputs[output] for e in evaluations])
    assert np.log10(sizes.max() / np.median(sizes) + 1) + np.log10(np.median(sizes) / sizes.min() + 1) > decades - 2
    model = check_works(evaluations)
    assert share_feasible(model, shipped.evaluate) >= 0.6


@pytest.mark.parametrize("value", [0.0, 1.0, -3e8, 1e-12])
def test_a_constant_output(value: float) -> None:
    """One that never binds, and one that always does."""
    model = check_works(evaluated(valley(), lambda p: {**simulate_valley(p), "c": value}, 32))
    answer = model.predict({"c": 1.5, "g": 0.0})
    assert answer.outputs["c"].mean == pytest.approx(value, rel=1e-6, abs=1e-9)
    assert answer.status == "predicted"
    assert (model.predict({"c": 0.5, "g": 0.0}).status == "unreachable") == (value == 1.0)


def test_everything_constant() -> None:
    model = check_works(evaluated(valley(), lambda p: {"f": 3.0, "c": 1.0, "g": 0.5}, 32))
    assert model.predict({"c": 1.5, "g": 0.0}).objective.mean == pytest.approx(3.0)


def test_limits_that_never_bind() -> None:
    problem = Problem(
        "free",
        [Real("a", -1.0, 1.0), Real("b", 10.0, 30.0)],
        Objective("f"),
        [Constraint("c", "<=", low=50.0, high=60.0), Constraint("g", ">=", low=-90.0, high=-80.0)],
    )
    model = check_works(evaluated(problem, simulate_valley, 32))
    answer = model.predict({"c": 55.0, "g": -85.0})
    assert answer.point == pytest.approx({"a": 0.6, "b": 16.0}, abs=0.05)
    assert answer.probability_feasible > 0.999


def test_limits_that_nothing_can_meet() -> None:
    problem = Problem(
        "never",
        [Real("a", -1.0, 1.0), Real("b", 10.0, 30.0)],
        Objective("f"),
        [Constraint("c", "<=", low=-60.0, high=-50.0), Constraint("g", ">=", low=80.0, high=90.0)],
    )
    model = check_works(evaluated(problem, simulate_valley, 32))
    answer = model.predict({"c": -55.0, "g": 85.0})
    assert answer.status == "unreachable"
    assert answer.closest_thresholds is None
    assert not refine(
        model, {"c": -55.0, "g": 85.0}, lambda p: Evaluation(99, "complete", "refine", p, simulate_valley(p))
    ).feasible


def test_a_maximum_over_many_stresses() -> None:
    """Kinks everywhere: probabilities are lower or answers more careful, but the stated probabilities hold."""
    random = np.random.default_rng(5)
    weights, offsets = random.normal(size=(12, 4)), random.random(12)
    problem = Problem(
        "members",
        [Real(f"x{i}", 0.0, 1.0) for i in range(4)],
        Objective("f"),
        [Constraint("stress", "<=", low=0.6, high=2.0)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        x = np.array(list(point.values()))
        return {"f": float(((x - 0.8) ** 2).sum()), "stress": float((weights @ x + offsets).max())}

    model = check_works(evaluated(problem, simulate, 60))
    assert share_feasible(model, simulate, 20) >= 0.8


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.03])
def test_small_noise(noise: float) -> None:
    random = np.random.default_rng(1)

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {name: v + noise * float(random.normal()) for name, v in simulate_valley(point).items()}

    model = check_works(evaluated(valley(), simulate, 50))
    answer = model.predict({"c": 1.0, "g": 0.0})
    truth = simulate_valley(answer.point)
    for name, estimate in answer.outputs.items():
        assert abs(estimate.mean - truth[name]) <= 3.0 * noise + 5.0 * estimate.std + 1e-3
    assert truth["f"] < 0.6  # the best is 0.44


@pytest.mark.parametrize("scale", [1e-30, 1e30, 1e100])
def test_very_small_and_very_large_numbers(scale: float) -> None:
    problem = Problem(
        "scaled",
        [Real("a", -1.0, 1.0), Real("b", 10.0, 30.0)],
        Objective("f"),
        [
            Constraint("c", "<=", low=0.0, high=2.0 * scale),
            Constraint("g", ">=", low=-1.0 * scale, high=1.0 * scale),
        ],
    )
    model = check_works(evaluated(problem, lambda p: {n: scale * v for n, v in simulate_valley(p).items()}, 32))
    expected = check_works(evaluated(valley(), simulate_valley, 32)).predict({"c": 1.0, "g": 0.0})
    answer = model.predict({"c": scale, "g": 0.0})
    assert answer.point == pytest.approx(expected.point, abs=1e-3)


def test_one_output_that_hardly_moves_on_a_large_offset() -> None:
    """A constraint of 1e9 that varies by 1: eight digits are spent on the offset, and eight are left."""
    problem = Problem(
        "offset",
        [Real("a", -1.0, 1.0), Real("b", 10.0, 30.0)],
        Objective("f"),
        [Constraint("c", "<=", low=1e9, high=1e9 + 2.0), Constraint("g", ">=", low=-1.0, high=1.0)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        y = simulate_valley(point)
        return {**y, "c": 1e9 + y["c"]}

    model = check_works(evaluated(problem, simulate, 32))
    assert share_feasible(model, simulate) >= 0.9


def test_a_variable_that_hardly_moves_on_a_large_offset() -> None:
    """A range of 1e-3 at 1e6 has a handful of digits left; the prediction of a proposed design is still matched."""
    problem = Problem(
        "offset",
        [Real("a", 1e6, 1e6 + 1e-3), Real("b", 10.0, 30.0)],
        Objective("f"),
        [Constraint("c", "<=", low=0.0, high=2.0), Constraint("g", ">=", low=-1.0, high=1.0)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return simulate_valley({"a": 2e3 * (point["a"] - 1e6) - 1.0, "b": point["b"]})

    evaluations = evaluated(problem, simulate, 32)
    state: bytes | None = Learner(1).to_bytes()
    settings = SETTINGS.replace(noise="none")
    for _ in range(3):
        batch, state = step(evaluations, evaluations.running, state, settings, 0)
        new = [Evaluation(len(evaluations) + 1 + i, "complete", "run", p, simulate(p)) for i, p in enumerate(batch)]
        evaluations = Evaluations(problem, (*evaluations, *new))
    prequential = Learner.from_bytes(state).fit.prequential
    assert prequential is not None
    assert len(prequential.errors) == 10
    assert len(prequential.x) == 5
    assert share_feasible(make_model(evaluations, Learner.from_bytes(state), SETTINGS, 0), simulate) >= 0.9


# ---- data


def test_duplicated_designs() -> None:
    once = evaluated(valley(), simulate_valley, 20)
    rows = (*once, *once, *once[:3])
    twice = Evaluations(
        valley(), tuple(Evaluation(i + 1, "complete", "run", e.point, e.outputs) for i, e in enumerate(rows))
    )
    model = check_works(twice)
    assert share_feasible(model, simulate_valley) >= 0.9
    same = Evaluations(valley(), (twice[0], twice[20]))
    assert (same[0].point, same[0].outputs) == (same[1].point, same[1].outputs)
    check_works(same)  # nothing but one design, twice


def test_one_design_with_two_outcomes() -> None:
    """A simulator that does not repeat itself exactly."""
    rows = list(evaluated(valley(), simulate_valley, 30))
    again = [
        Evaluation(50 + i, "complete", "run", e.point, {n: v + 1e-4 for n, v in e.outputs.items()})
        for i, e in enumerate(rows[:5])
    ]
    check_works(Evaluations(valley(), (*rows, *again)))


def test_designs_that_are_almost_the_same() -> None:
    rows = list(evaluated(valley(), simulate_valley, 30))
    for i, distance in enumerate((1e-12, 1e-9, 1e-7, 1e-5)):
        point = {**rows[0].point, "a": rows[0].point["a"] + distance}
        rows.append(Evaluation(60 + i, "complete", "run", point, simulate_valley(point)))
    model = check_works(Evaluations(valley(), tuple(rows)))
    assert share_feasible(model, simulate_valley) >= 0.9


def test_no_feasible_design_in_the_data() -> None:
    """The limits can be met, but nothing measured does so at any threshold."""
    everything = evaluated(valley(), simulate_valley, 120)
    rows = [e for e in everything if e.outputs["c"] > 0.9]
    problem = Problem(
        "strict",
        [Real("a", -1.0, 1.0), Real("b", 10.0, 30.0)],
        Objective("f"),
        [Constraint("c", "<=", low=0.3, high=0.85)],
    )
    evaluations = Evaluations(problem, tuple(rows))
    assert not problem.box.feasible(evaluations.y, np.full((len(rows), 1), 0.85)).any()
    model = check_works(evaluations)
    answer = model.predict({"c": 0.8})
    assert answer.status in ("predicted", "unreachable")
    assert simulate_valley(answer.point)["c"] < 0.95


@pytest.mark.parametrize("count", [2, 3, 5])
def test_very_few_measured_designs(count: int) -> None:
    check_works(evaluated(valley(), simulate_valley, count))


def test_all_evaluations_failed_but_a_few() -> None:
    rows = list(evaluated(valley(), simulate_valley, 40))
    for i in range(3, 40):
        rows[i] = Evaluation(rows[i].id, "failed", "run", rows[i].point, {}, failure="licence")
    check_works(Evaluations(valley(), tuple(rows)))


def test_all_designs_on_a_line() -> None:
    """Nothing was varied but one variable."""
    points: list[dict[str, float]] = [{"a": float(a), "b": 20.0} for a in np.linspace(-1.0, 1.0, 12)]
    rows = tuple(Evaluation(i + 1, "complete", "run", p, simulate_valley(p)) for i, p in enumerate(points))
    check_works(Evaluations(valley(), rows))


# ---- sizes


@pytest.mark.parametrize("d", [20, 30])
def test_many_variables(d: int) -> None:
    problem = Problem(
        "many",
        [Real(f"x{i}", 0.0, 1.0) for i in range(d)],
        Objective("f"),
        [Constraint("c", "<=", low=0.2 * d, high=0.5 * d), Constraint("g", "<=", low=0.1, high=2.0)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        x = np.array(list(point.values()))
        return {"f": float(((x - 0.7) ** 2).sum()), "c": float(x.sum()), "g": float(x[0] ** 2 + math.sin(3 * x[1]))}

    model = check_works(evaluated(problem, simulate, 60))
    assert share_feasible(model, simulate) >= 0.8


def test_one_variable_and_one_constraint() -> None:
    problem = Problem("one", [Real("a", 0.0, 1.0)], Objective("f"), [Constraint("c", ">=", low=0.1, high=0.9)])

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": point["a"] ** 2, "c": point["a"]}

    model = check_works(evaluated(problem, simulate, 10))
    assert model.predict({"c": 0.5}).point["a"] == pytest.approx(0.5, abs=1e-3)


def many_limits(k: int) -> tuple[Problem, Callable[[dict[str, float]], dict[str, float]]]:
    problem = Problem(
        "limits",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("f"),
        [Constraint(f"c{i}", "<=", low=0.0, high=2.0) for i in range(k)],
    )
    angles = np.linspace(0.0, 0.5 * np.pi, k)

    def simulate(point: dict[str, float]) -> dict[str, float]:
        a, b = point["a"], point["b"]
        limited: FloatArray = a * np.cos(angles) + b * np.sin(angles)
        return {"f": -a - 2.0 * b, **{f"c{i}": float(v) for i, v in enumerate(limited)}}

    return problem, simulate


def test_many_limits() -> None:
    """Fifteen: the probability is one of all of them together."""
    problem, simulate = many_limits(15)
    model = check_works(evaluated(problem, simulate, 40))
    assert share_feasible(model, simulate) >= 0.9


def test_an_objective_that_is_limited_too() -> None:
    problem = Problem(
        "both",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("f"),
        [Constraint("floor", ">=", low=0.1, high=0.5, outputs="f"), Constraint("c", "<=", low=0.2, high=1.5)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": point["a"] + point["b"] ** 2, "c": point["a"] + 0.5 * point["b"]}

    model = check_works(evaluated(problem, simulate, 30))
    answer = model.predict({"floor": 0.3, "c": 1.0})
    assert answer.objective.mean == pytest.approx(0.3, abs=5e-3)


def test_one_limit_on_several_outputs() -> None:
    problem = Problem(
        "members",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("f"),
        [Constraint("stress", "<=", low=0.2, high=1.0, outputs=["s1", "s2", "s3"])],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        a, b = point["a"], point["b"]
        return {"f": -a - b, "s1": a, "s2": b, "s3": 0.7 * (a + b)}

    model = check_works(evaluated(problem, simulate, 25))
    answer = model.predict({"stress": 0.6})
    assert sum(answer.point.values()) == pytest.approx(0.6 / 0.7, abs=5e-3)
