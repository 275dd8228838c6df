"""How far limits can go: against what predict says, and against the simulator itself."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from cbabo import Constraint, Model, Objective, Problem, Real, Settings, Study
from cbabo.errors import InputError
from learned import QUICK, model_of
from simulators import simulate_valley, valley

AT = {"c": 1.0, "g": 0.0}


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(valley(), simulate_valley, 40, Settings.default().replace(library=32))


def true_grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = np.meshgrid(np.linspace(-1.0, 1.0, 1001), np.linspace(10.0, 30.0, 1001))
    outputs = simulate_valley({"a": a, "b": b})  # type: ignore[dict-item]
    return tuple(np.asarray(outputs[name]) for name in ("f", "c", "g"))  # type: ignore[return-value]


def test_the_reach_is_that_of_the_true_functions(model: Model) -> None:
    found = model.reach(AT)
    f, c, g = true_grid()
    assert list(found.index) == ["c", "g"]
    assert found["limit"].tolist() == [1.0, 0.0]
    others = (g >= 0.0) & (g <= 2.5)
    assert found.loc["c", "strictest"] == pytest.approx(max(c[others].min(), 0.0), abs=0.02)
    assert found.loc["c", "gains_until"] == pytest.approx(c[others][f[others].argmin()], abs=0.02)
    others = c <= 1.0
    assert found.loc["g", "strictest"] == pytest.approx(min(g[others].max(), 1.0), abs=0.02)
    assert found.loc["g", "gains_until"] == pytest.approx(g[others][f[others].argmin()], abs=0.02)
    assert not found["gains_at_end"].any()


def test_the_reach_agrees_with_predict(model: Model) -> None:
    for limits in (AT, {"c": 0.4, "g": 0.6}, {"c": 1.5, "g": -0.5}):
        found = model.reach(limits)
        for name, constraint in zip(model.problem.box.names, model.problem.box.movable, strict=True):
            strictest, until = float(found.loc[name, "strictest"]), float(found.loc[name, "gains_until"])  # type: ignore[arg-type]
            assert model.predict({**limits, name: strictest}).status != "unreachable"
            if strictest != constraint.strictest:
                stricter = strictest - 0.02 * constraint.sign
                assert model.predict({**limits, name: stricter}).status == "unreachable"
            ends = (until, constraint.most_relaxed)
            at, end = (model.predict({**limits, name: v}).objective for v in ends)
            assert at.mean == pytest.approx(end.mean, abs=0.003)


def test_a_measured_design_that_is_the_answer_does_not_decide_how_far_limits_gain() -> None:
    """The output h does not touch the objective, so that its limit gains nothing; measured optima have any value of it."""
    problem = Problem(
        "idle",
        [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)],
        Objective("f"),
        [Constraint("g", ">=", low=0.2, high=0.8), Constraint("h", "<=", low=0.1, high=1.0)],
    )
    study = Study.create(problem, "sqlite://", settings=Settings.default().replace(library=32))
    designs = [(a, b) for a in np.linspace(0.0, 1.0, 5) for b in (0.0, 0.4, 1.0)] + [(0.5, 0.9)]
    rows = [{"a": a, "b": b, "f": math.exp(a), "g": math.log1p(3.0 * a) / math.log(4.0), "h": b} for a, b in designs]
    study.add(pd.DataFrame(rows))
    model, limits = study.model(), {"g": math.log(2.5) / math.log(4.0), "h": 1.0}
    assert model.predict(limits).status == "verified"
    found = model.reach({**limits, "h": 0.6})
    assert found.loc["h", "gains_until"] == pytest.approx(0.1, abs=0.02)


def test_where_no_value_of_a_limit_helps_there_is_none(model: Model) -> None:
    found = model.reach({"c": 0.0, "g": 1.0})
    assert not found["strictest"].isna().all()  # One limit alone makes the other reachable.
    beyond = model.reach({"c": -3.0, "g": 1.0})
    assert np.isnan(beyond.loc["g", "strictest"])
    assert np.isnan(beyond.loc["g", "gains_until"])


def test_limits_left_out_are_nominal(model: Model) -> None:
    assert model.reach().equals(model.reach(model.problem.box.nominal))


def test_the_papers_method_is_refused() -> None:
    model = model_of(valley(), simulate_valley, 20, QUICK)
    for ask in (model.reach, model.conflict, model.ways_out, model.atlas):
        with pytest.raises(InputError, match=r"^\w+: the paper method aims at no probability.*; make the study with "):
            ask()  # type: ignore[operator]


def test_a_wrong_limit_gets_one_sentence(model: Model) -> None:
    with pytest.raises(InputError, match="unknown constraint 'd'"):
        model.reach({"d": 1.0})
