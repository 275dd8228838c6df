"""Robust answers and tolerances, against sampling of the true functions."""

from __future__ import annotations

import numpy as np
import pytest

from cbabo import Constraint, Integer, Model, Objective, Problem, Real, Settings
from cbabo.decisions.scatter import Made, Scatter
from cbabo.errors import InputError
from learned import QUICK, model_of

SMALL = Settings.default().replace(library=16, initial_evaluations=20)
BAR = Problem(
    "bar",
    [Real("x1", 0.0, 1.0), Real("x2", 0.0, 1.0)],
    Objective("f"),
    [Constraint("c1", low=0.5, high=2.0), Constraint("c2", ">=", low=0.0, high=0.8)],
)
AT = {"c1": 1.0, "c2": 0.3}


def simulate(point: dict[str, float]) -> dict[str, float]:
    """Both limits bind: the second one at x1 = 0.3 or so, the first one at x2 = 0.5."""
    a, b = point["x1"], point["x2"]
    return {"f": 3.0 * a + b + 0.2 * a * b, "c1": 1.0 / (0.2 + a + b), "c2": a + 0.1 * a * b}


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(BAR, simulate, 40, SMALL)


def share(point: dict[str, float], deviations: np.ndarray, limits: dict[str, float]) -> float:
    """The share of designs that truly obey the limits."""
    a, b = np.clip(np.array([point["x1"], point["x2"]]) + deviations, 0.0, 1.0).T
    found = simulate({"x1": a, "x2": b})  # type: ignore[dict-item]
    return float(np.mean((found["c1"] <= limits["c1"]) & (found["c2"] >= limits["c2"])))


@pytest.mark.parametrize("probability", [0.98, 0.9])
def test_the_stated_probability_is_that_of_the_true_functions(model: Model, probability: float) -> None:
    normal = np.random.default_rng(0).normal(size=(20_000, 2))
    scatter = {"x1": 0.02, "x2": 0.04}
    answer = model.predict(AT, scatter=scatter, probability=probability)
    assert answer.status == "predicted"
    assert answer.scatter == scatter
    assert answer.probability_feasible == pytest.approx(probability, abs=0.02)
    found = share(answer.point, normal * [0.02, 0.04], AT)
    assert found == pytest.approx(answer.probability_feasible, abs=0.03)
    plain = model.predict(AT, probability=probability)
    assert share(plain.point, normal * [0.02, 0.04], AT) < found - 0.1  # The answer without scatter lies on its limits.
    assert answer.objective.mean > plain.objective.mean
    assert answer.outputs["c1"].std > plain.outputs["c1"].std


def test_tolerances_are_uniform(model: Model) -> None:
    answer = model.predict(AT, tolerance={"x1": 0.03, "x2": 0.03}, probability=0.95)
    uniform = np.random.default_rng(0).uniform(-0.03, 0.03, size=(20_000, 2))
    assert share(answer.point, uniform, AT) == pytest.approx(answer.probability_feasible, abs=0.03)
    assert answer.tolerance == {"x1": 0.03, "x2": 0.03}


def test_without_scatter_the_answer_is_the_solvers(model: Model) -> None:
    exact = model.predict(AT, scatter={})
    assert exact.objective.mean == pytest.approx(model.predict(AT).objective.mean, rel=0.02)
    tiny = model.predict(AT, scatter={"x1": 1e-9})
    assert tiny.objective.mean == pytest.approx(exact.objective.mean, rel=1e-3)


def test_too_much_scatter_is_unreachable(model: Model) -> None:
    answer = model.predict({"c1": 0.5, "c2": 0.8}, scatter={"x1": 0.5, "x2": 0.5})
    assert answer.status == "unreachable"
    assert answer.probability_feasible < 0.9


def test_what_is_made_stays_within_the_bounds(model: Model) -> None:
    scatter = Scatter.of(model.problem, 0, {"x1": 0.5}, None)
    made = scatter.around(np.array([0.9, 0.4]))
    assert made.min() >= 0.0
    assert made.max() == 1.0
    assert (made[:, 1] == 0.4).all()
    again = Scatter.of(model.problem, 0, {"x1": 0.5}, None)
    assert (again.deviations == scatter.deviations).all()
    assert abs(float(scatter.deviations[:, 0].mean())) < 0.01
    assert float(scatter.deviations[:, 0].std()) == pytest.approx(0.5, rel=0.02)


def test_margins_are_quantiles_of_what_is_made(model: Model) -> None:
    solver, x = model.solver, np.array([0.5, 0.4])
    made = Made.of(model, Scatter.of(model.problem, 0, {"x1": 0.02, "x2": 0.02}, None), x)
    for level in (0.5, 0.9, 0.99):
        margin = made.margins(solver, x, level)
        nominal = solver.sign * solver.pointwise.mean_and_jacobian(x)[0][solver.output]
        for r in range(len(margin)):
            bound = np.full(len(margin), 1e6)
            bound[r] = nominal[r] + margin[r]
            assert made.probability(bound) == pytest.approx(level, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"scatter": {"x9": 0.1}}, "unknown variable 'x9'"),
        ({"scatter": {"x1": -0.1}}, "x1 must be a number from 0 on"),
        ({"tolerance": {"x1": "wide"}}, "x1 must be a number from 0 on"),
        ({"scatter": 0.1}, "expected scatter as a mapping"),
        ({"scatter": {"x1": 0.1}, "tolerance": {"x1": 0.1}}, "a scatter and a tolerance"),
        ({"scatter": {"x1": 0.1}, "method": "pcm"}, "leave method out"),
        ({"scatter": {"x1": 0.1}, "probability": 1.0}, "probability must be"),
    ],
)
def test_wrong_input_gets_a_sentence(model: Model, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        model.predict(AT, **arguments)  # type: ignore[arg-type]


def test_whole_numbers_have_no_scatter() -> None:
    problem = Problem(
        "whole", [Integer("n", 1, 5), Real("a", 0.0, 1.0)], Objective("f"), [Constraint("c", low=0.1, high=2.0)]
    )
    mixed = model_of(problem, lambda p: {"f": p["n"] * (1 + p["a"]), "c": 2.0 - p["a"] - 0.1 * p["n"]}, 20, SMALL)
    with pytest.raises(InputError, match="'n' is a whole number"):
        mixed.predict({"c": 1.0}, scatter={"n": 1.0})
    answer = mixed.predict({"c": 1.0}, scatter={"a": 0.02}, probability=0.9)
    assert answer.point["n"] == 1
    assert answer.point["a"] == pytest.approx(0.9 + 1.28 * 0.02, abs=0.02)
    assert list(mixed.tolerances({"c": 1.0}, give=0.1).widths) == ["a"]


def test_the_papers_method_has_it_too() -> None:
    paper = model_of(BAR, simulate, 20, QUICK)
    assert paper.predict(AT, scatter={"x1": 0.01}).scatter == {"x1": 0.01}


def test_the_largest_box_keeps_the_probability(model: Model) -> None:
    found = model.tolerances(AT, give=0.05, probability=0.95)
    assert found.shares["x1"] == pytest.approx(found.shares["x2"])
    assert 0.0 < found.cost <= 0.051
    assert found.answer.tolerance == found.widths
    half = np.array([found.widths["x1"], found.widths["x2"]])
    uniform = np.random.default_rng(0).uniform(-1.0, 1.0, size=(20_000, 2))
    assert share(found.answer.point, uniform * half, AT) == pytest.approx(found.answer.probability_feasible, abs=0.03)
    assert share(found.answer.point, 3.0 * uniform * half, AT) < 0.9
    assert all(found.alone[name] >= 0.99 * found.widths[name] for name in found.widths)
    assert found.to_frame()["variable"].tolist() == ["x1", "x2"]


def test_boxes_end_at_the_bounds_of_the_variables(model: Model) -> None:
    """The answer to these limits has x1 at its lower bound."""
    at = {"c1": 1.5, "c2": 0.0}
    found = model.tolerances(at, give=0.2, probability=0.95)
    frame = found.to_frame().set_index("variable")
    assert (frame["low"] >= 0.0).all()
    assert (frame["high"] <= 1.0).all()
    assert frame.loc["x1", "low"] == 0.0
    assert frame.loc["x1", "value"] - frame.loc["x1", "tolerance"] < 0.0
    uniform = np.random.default_rng(0).uniform(frame["low"], frame["high"], size=(20_000, 2))
    point = np.array([found.answer.point["x1"], found.answer.point["x2"]])
    assert share(found.answer.point, uniform - point, at) == pytest.approx(found.answer.probability_feasible, abs=0.02)


ROOTED = Problem(
    "rooted",
    [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
    Objective("f"),
    [Constraint("c", low=0.0, high=1.0), Constraint("root", low=0.2, high=1.3)],
    derived={"f": "sqrt(a - 0.2) + (1 - b)**2", "root": "sqrt(a - 0.2) + b"},
)


@pytest.mark.parametrize("made", [{"scatter": {"a": 0.02}}, {"tolerance": {"a": 0.05}}])
def test_a_design_of_which_a_formula_has_no_value_obeys_nothing(made: dict[str, dict[str, float]]) -> None:
    model = model_of(ROOTED, lambda p: {"c": 1.0 - p["a"] * p["b"]}, 40, SMALL)
    limits = {"c": 0.9, "root": 1.0}
    assert model.predict(limits).point["a"] < 0.25
    answer = model.predict(limits, **made)  # type: ignore[arg-type]
    random = np.random.default_rng(0)
    by = random.normal(size=20_000) * 0.02 if "scatter" in made else random.uniform(-0.05, 0.05, size=20_000)
    a, b = answer.point["a"] + by, answer.point["b"]
    with np.errstate(invalid="ignore"):
        root = np.sqrt(a - 0.2) + b
        found = float(np.mean((1.0 - a * b <= limits["c"]) & (root <= limits["root"])))
    assert answer.status == "predicted"
    assert found == pytest.approx(answer.probability_feasible, abs=0.01)
    assert answer.outputs["root"].mean == pytest.approx(float(np.nanmean(root)), abs=0.01)
    assert answer.objective.mean == pytest.approx(float(np.nanmean(root)) - b + (1.0 - b) ** 2, abs=0.01)


def test_costly_variables_get_wider_tolerances(model: Model) -> None:
    found = model.tolerances(AT, {"x2": 3.0}, give=0.05)
    assert found.shares["x2"] == pytest.approx(3.0 * found.shares["x1"])
    assert list(model.tolerances(AT, {"x2": 0.0}, give=0.05).widths) == ["x1"]


def test_more_given_away_makes_a_larger_box(model: Model) -> None:
    sizes = [model.tolerances(AT, give=give).shares["x1"] for give in (0.01, 0.1)]
    assert sizes[0] < sizes[1]


def test_a_box_around_a_given_design_does_not_move_it(model: Model) -> None:
    point = {"x1": 0.6, "x2": 0.5}
    found = model.tolerances(AT, point=point)
    assert found.answer.point == pytest.approx(point)
    assert found.widths["x1"] > 0.01
    broken = model.tolerances({"c1": 0.5, "c2": 0.8}, point={"x1": 0.1, "x2": 0.1})
    assert broken.widths["x1"] == 0.0
    assert broken.answer.status == "unreachable"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"weights": {"x9": 1.0}}, "unknown variable 'x9'"),
        ({"weights": {"x1": -1.0}}, "weight of x1 must be"),
        ({"weights": {"x1": 0.0, "x2": 0.0}}, "a weight above 0"),
        ({"weights": 3.0}, "expected weights as a mapping"),
        ({"give": -0.1}, "give must be"),
        ({"point": {"x1": 0.5}}, "x2"),
    ],
)
def test_wrong_tolerances_get_a_sentence(model: Model, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        model.tolerances(AT, **arguments)  # type: ignore[arg-type]
