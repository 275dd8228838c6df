"""Prices of limits: natural units, the user's direction, difference quotients for discrete variables, computed when looked at."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict

import pytest
from scipy.optimize import minimize

from cbabo import Constraint, Integer, Model, Objective, Price, Problem, Real, Settings
from cbabo.answering import predict as predicting
from cbabo.answering.prices import Prices
from learned import QUICK, model_of
from simulators import (
    bar,
    lattice,
    mirrored,
    simulate_bar,
    simulate_lattice,
    simulate_mirrored,
    simulate_valley,
    valley,
)

SOLVER = Settings.default().replace(library=32)
BOTH, ONE = {"c": 1.0, "g": 0.0}, {"c": 1.0, "g": -1.0}


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(valley(), simulate_valley, 40, SOLVER)


def true_optimum(limits: dict[str, float]) -> float:
    """The valley's best objective, by SciPy on the simulator itself."""

    def outputs(v: list[float]) -> dict[str, float]:
        return simulate_valley({"a": v[0], "b": v[1]})

    found = minimize(
        lambda v: outputs(v)["f"],
        [0.0, 16.0],
        bounds=[(-1.0, 1.0), (10.0, 30.0)],
        constraints=[
            {"type": "ineq", "fun": lambda v: limits["c"] - outputs(v)["c"]},
            {"type": "ineq", "fun": lambda v: outputs(v)["g"] - limits["g"]},
        ],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 300},
    )
    return float(found.fun)


@pytest.mark.parametrize("limits", [BOTH, ONE])
def test_prices_are_those_of_the_true_functions(model: Model, limits: dict[str, float]) -> None:
    prices = model.predict(limits).prices
    for name, relaxing in (("c", 1.0), ("g", -1.0)):
        stricter, looser = ({**limits, name: limits[name] + way * relaxing * 1e-3} for way in (-1, 1))
        true = (true_optimum(stricter) - true_optimum(looser)) / 2e-3
        assert prices[name].value == pytest.approx(true, rel=0.02, abs=1e-4)
        assert abs(prices[name].value - true) <= 3.0 * prices[name].std + 1e-4
        assert prices[name].low <= limits[name] <= prices[name].high


def test_a_limit_that_does_not_bind_costs_nothing(model: Model) -> None:
    prices = model.predict(ONE).prices
    assert prices["c"].binds
    assert prices["g"] == Price(0.0, prices["g"].std, low=-1.0, high=prices["g"].high)
    assert not prices["g"].binds
    tightened = (
        model.predict({**ONE, "g": prices["g"].high - 0.02}),
        model.predict({**ONE, "g": prices["g"].high + 0.05}),
    )
    assert tightened[0].objective.mean == pytest.approx(model.predict(ONE).objective.mean, abs=1e-3)
    assert tightened[1].prices["g"].value > 0.0


def test_prices_do_not_depend_on_how_the_problem_is_stated(model: Model) -> None:
    mirror = model_of(mirrored(), simulate_mirrored, 40, SOLVER)
    prices, restated = model.predict(BOTH).prices, mirror.predict({"c": -1.0, "g": 0.0}).prices
    for name in BOTH:
        assert restated[name].value == pytest.approx(prices[name].value, rel=1e-4)
        assert (restated[name].low, restated[name].high) == pytest.approx(
            (-prices[name].high, -prices[name].low), abs=0.02
        )


def test_fast_and_measured_answers_have_the_same_prices(model: Model) -> None:
    full, fast = (model.predict_many([BOTH], fast=quick).answer(0) for quick in (False, True))
    for name, price in full.prices.items():
        assert fast.prices[name].value == pytest.approx(price.value, rel=1e-3)


def test_prices_are_of_the_limits_alone_and_not_of_the_fixed_ones(model: Model) -> None:
    assert list(model.predict(BOTH).prices) == ["c", "g"]


def test_limits_that_cannot_be_met_have_no_price(model: Model) -> None:
    answer = model.predict({"c": 0.0, "g": 1.0})
    assert answer.status == "unreachable"
    assert dict(answer.prices) == {}


def test_without_continuous_variables_prices_are_quotients_to_the_next_change() -> None:
    model = model_of(lattice(), simulate_lattice, 12, SOLVER)
    answer = model.predict({"c": 1.0})
    price = answer.prices["c"]
    assert price.low == pytest.approx(answer.outputs["c"].mean, abs=1e-3)  # Stricter, another design is best.
    before, after = (model.predict({"c": price.high + off}).objective.mean for off in (-0.03, 0.03))
    assert before == pytest.approx(answer.objective.mean)
    assert after < before
    assert price.value == pytest.approx((before - after) / (price.high - 1.0), rel=0.01)
    assert model.predict({"c": 4.0}).prices["c"].value == 0.0


@pytest.fixture(scope="module")
def stepped() -> Model:
    """A width, and a whole number whose price the second limit is: each step costs half a unit less."""
    problem = Problem(
        "stepped",
        [Real("w", 0.0, 1.0), Integer("n", 0, 3)],
        Objective("cost"),
        [Constraint("stress", low=0.6, high=1.5), Constraint("noise", low=0.0, high=3.0)],
    )
    return model_of(problem, simulate_stepped, 40, SOLVER)


def simulate_stepped(point: dict[str, float]) -> dict[str, float]:
    w, n = point["w"], point["n"]
    return {"cost": 2.5 + w + 0.2 * w**2 - 0.5 * n, "stress": 1.5 - w + 0.1 * w**2, "noise": n + 0.1 * w}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("stress", "noise"), [(0.9, 1.4), (1.2, 0.6), (1.0, 1.9)])
def test_where_a_whole_number_jumps_a_price_is_the_quotient_to_the_jump(
    stepped: Model, stress: float, noise: float, fast: bool
) -> None:
    answer = stepped.predict_many([{"stress": stress, "noise": noise}], fast=fast).answer(0)
    n, w = answer.point["n"], answer.point["w"]
    price = answer.prices["noise"]
    assert price.high == pytest.approx(n + 1 + 0.1 * w, abs=2e-3)
    assert price.value == pytest.approx(0.5 / (price.high - noise), rel=0.01)
    assert price.low == pytest.approx(n + 0.1 * w, abs=0.02)


def test_prices_end_where_another_label_is_best() -> None:
    model = model_of(bar(), simulate_bar, 40, SOLVER)
    before, after = (model.predict({"stress": limit}) for limit in (0.9, 1.1))
    assert (before.point["material"], after.point["material"]) == ("titanium", "aluminium")
    # Titanium holds nothing back here, and aluminium draws level without a jump: relaxing gains nothing up to there.
    assert before.prices["stress"].value == 0.0
    change = before.prices["stress"].high
    assert after.prices["stress"].low == pytest.approx(change, abs=2e-3)
    labels = [model.predict({"stress": change + off}).point["material"] for off in (-0.01, 0.01)]
    assert labels == ["titanium", "aluminium"]


def test_no_price_holds_beyond_what_can_be_met(model: Model) -> None:
    for limits in (BOTH, {"c": 0.05, "g": -0.7}, {"c": 0.05, "g": 0.3}, {"c": -0.1, "g": 0.0}):
        prices, reach = model.predict(limits).prices, model.reach(limits)
        assert prices["c"].low >= reach.loc["c", "strictest"] - 1e-9
        assert prices["g"].high <= reach.loc["g", "strictest"] + 1e-9


def test_the_papers_method_has_prices_too() -> None:
    model = model_of(valley(), simulate_valley, 30, QUICK.replace(inner_steps=60))
    answer = model.predict({"c": 1.6, "g": -0.8})
    assert answer.feasible
    assert set(answer.prices) == {"c", "g"}
    assert all(price.value >= 0.0 for price in answer.prices.values())


def test_prices_are_computed_when_they_are_looked_at(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(*given: object) -> dict[str, Price]:
        asked.append(given)
        return dict.fromkeys(("c", "g"), Price(1.0, 0.1, 0.0, 2.0))

    monkeypatch.setattr(predicting, "price_limits", counted)
    answer = model.predict(BOTH)
    assert answer == model.predict(BOTH)
    assert "c" in answer.prices
    assert len(answer.prices) == 2
    assert not asked
    assert answer.prices["c"].value == 1.0
    assert answer.prices.get("x") is None
    assert len(asked) == 1


def made() -> Prices:
    return Prices(["c"], lambda: {"c": Price(1.0, 0.1, 0.0, 2.0)})


def test_prices_are_a_plain_record() -> None:
    plain = {"c": Price(1.0, 0.1, 0.0, 2.0)}
    assert made() == plain
    assert dict(made()) == {**made()} == plain
    assert list(made().values()) == list(plain.values())
    assert repr(made()) == repr(plain)
    for copied in (copy.deepcopy(made()), pickle.loads(pickle.dumps(made()))):
        assert type(copied) is dict
        assert copied == plain
    with pytest.raises(KeyError):
        made()["d"]


def test_an_answer_with_prices_can_be_written_as_json(model: Model) -> None:
    record = json.loads(json.dumps(asdict(model.predict(BOTH))))
    assert record["prices"]["c"]["value"] > 0.0
    assert set(record["prices"]["g"]) == {"value", "std", "low", "high"}
