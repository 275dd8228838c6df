"""What can be fixed before limits are agreed: against brute force on a problem whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cbabo import Constraint, Model, Objective, Problem, Real, Settings
from cbabo.decisions.freezing import _lowest_of_parabola
from cbabo.errors import InputError
from cbabo.numerics.arrays import FloatArray
from cbabo.solver.continuous import Solver, SolverAnswer
from learned import QUICK, model_of

SMALL = Settings.default().replace(library=16, initial_evaluations=15)


def simulate(point: dict[str, float]) -> dict[str, float]:
    """The best a is 0.2 at every limit; b follows the limit c: b = 1 - c."""
    a, b = point["a"], point["b"]
    return {"f": 2.0 * b + (a - 0.2) ** 2, "c": 1.0 - b}


def problem(direction: str = "minimize") -> Problem:
    return Problem(
        "plain",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0, unit="mm")],
        Objective("f", direction=direction),  # type: ignore[arg-type]
        [Constraint("c", low=0.1, high=0.9)],
    )


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(problem(), simulate, 25, SMALL)


def test_a_variable_that_does_not_move_costs_nothing(model: Model) -> None:
    found = model.freeze().set_index("variable")
    assert list(found.index) == ["a", "b"]  # The cheapest first.
    assert found.loc["a", "moves"] < 0.05
    assert found.loc["a", "value"] == pytest.approx(0.2, abs=0.02)
    assert found.loc["a", "cost"] < 1e-3
    assert found.loc["b", "unit"] == "mm"
    assert found.loc["b", "moves"] == pytest.approx(0.8, abs=0.1)
    # b must be the largest that is ever needed; at the mean that costs 2 (0.9 - 0.5), at worst 2 (0.9 - 0.1).
    assert found.loc["b", "value"] == pytest.approx(0.9, abs=0.05)
    assert found.loc["b", "cost"] == pytest.approx(0.8, abs=0.1)
    assert found.loc["b", "worst"] == pytest.approx(1.6, abs=0.15)
    assert (found["lost"] == 0.0).all()


def test_costs_have_the_users_direction() -> None:
    def negative(point: dict[str, float]) -> dict[str, float]:
        outputs = simulate(point)
        return {"f": -outputs["f"], "c": outputs["c"]}

    mirrored = model_of(problem("maximize"), negative, 25, SMALL).freeze([{"c": 0.3}, {"c": 0.7}])
    assert (mirrored["cost"] >= 0.0).all()
    assert mirrored.set_index("variable").loc["b", "cost"] == pytest.approx(0.4, abs=0.05)


def test_given_thresholds_and_fixed_variables(model: Model) -> None:
    found = model.freeze([{"c": 0.5}])
    assert found["cost"].max() == pytest.approx(0.0, abs=1e-3)
    assert found["moves"].max() == 0.0
    one = model.freeze([{"c": 0.3}, {"c": 0.7}], fixed={"a": 0.6})
    assert list(one["variable"]) == ["b"]
    assert one["cost"][0] == pytest.approx(0.4, abs=0.05)


def test_wrong_input_gets_a_sentence(model: Model) -> None:
    for arguments, said in (
        ({"fixed": {"z": 1.0}}, "unknown variable 'z'"),
        ({"fixed": {"a": 7.0}}, "a must"),
        ({"probability": 2.0}, "probability must be"),
        ({"frame": np.zeros((0, 1))}, "1 to 500 rows"),
        ({"frame": [{"c": -5.0}]}, "none of these thresholds can be met"),
    ):
        with pytest.raises(InputError, match=said):
            model.freeze(**arguments)  # type: ignore[arg-type]


def test_the_papers_method_has_it_too() -> None:
    assert len(model_of(problem(), simulate, 15, QUICK).freeze([{"c": 0.3}, {"c": 0.7}])) == 2


def test_one_design_for_many_thresholds_is_that_of_the_strictest(model: Model) -> None:
    shared = model.common([{"c": 0.3}, {"c": 0.7}, {"c": 0.5}], [1.0, 1.0, 2.0])
    assert shared.answer.thresholds == {"c": 0.3}
    assert shared.costs == pytest.approx([0.0, 0.8, 0.4], abs=0.02)
    assert shared.cost == pytest.approx(0.4, abs=0.02)
    assert shared.worst == pytest.approx(0.8, abs=0.02)
    assert shared.saved == pytest.approx([0.4, 0.0, 0.0], abs=0.02)  # Without the strictest row the next one counts.
    assert shared.to_frame().columns.tolist() == ["limit c", "weight", "own objective", "cost", "saved"]
    assert model.common([{"c": 0.5}]).cost == 0.0


def test_wrong_weights_get_a_sentence(model: Model) -> None:
    rows = [{"c": 0.3}, {"c": 0.7}]
    for weights in ([1.0], [1.0, -1.0], [0.0, 0.0], [1.0, "x"], [1.0, np.nan]):
        with pytest.raises(InputError, match="weights must be 2 numbers"):
            model.common(rows, weights)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 to 500 rows"):
        model.common(np.zeros((0, 1)))


def test_discrete_variables_are_fixed_at_legal_values() -> None:
    from cbabo import Discrete, Integer

    mixed = Problem(
        "mixed",
        [Discrete("a", [0.0, 0.3, 1.0]), Integer("b", 0, 10)],
        Objective("f"),
        [Constraint("c", low=0.1, high=0.9)],
    )

    def steps(point: dict[str, float]) -> dict[str, float]:
        return simulate({"a": point["a"], "b": 0.1 * point["b"]})

    found = model_of(mixed, steps, 20, SMALL).freeze([{"c": 0.35}, {"c": 0.75}]).set_index("variable")
    assert found.loc["a", "value"] in (0.0, 0.3, 1.0)
    assert found.loc["b", "value"] == 7.0


def test_limits_that_the_solver_alone_does_not_meet_are_not_lost(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full answers are also measured designs, and designs that were solved for other limits."""
    limits = [{"c": 0.3}, {"c": 0.7}]
    expected = model.freeze(limits)

    def failing(self: Solver, bound: FloatArray, probability: float) -> SolverAnswer:
        return SolverAnswer(np.array([0.9, 0.0]), 0.0, 0.0)

    monkeypatch.setattr(Solver, "predict", failing)
    found = model.freeze(limits)
    assert (found["lost"] == 0.0).all()
    assert found["cost"].tolist() == pytest.approx(expected["cost"].tolist(), abs=0.1)


@pytest.mark.parametrize("width", [1.0, 1e-9])
def test_the_lowest_point_of_a_parabola(width: float) -> None:
    x = [0.3 - width, 0.3, 0.3 + 2 * width]
    y = [(v - 0.3 - 0.5 * width) ** 2 / width**2 for v in x]
    assert _lowest_of_parabola(x, y) == pytest.approx(0.3 + 0.5 * width, abs=1e-6 * width)
    assert _lowest_of_parabola(x, [-v for v in y]) is None
    assert _lowest_of_parabola(x, [math.inf, 1.0, 2.0]) is None
    assert _lowest_of_parabola(x, [1.0, 2.0, 4.0]) is None


def test_the_representation_of_a_common_design_leaves_out_arrays(model: Model) -> None:
    assert "array" not in repr(
        model.common(
            [model.problem.box.named(model.problem.box.from_theta(np.full(len(model.problem.box.names), 0.7)))]
        )
    )
