"""Known relations through a whole study: every design that is proposed or answered obeys them exactly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from cbabo import Constraint, Discrete, Integer, Model, Objective, Problem, Real, Settings, Study
from cbabo.errors import InputError

RELATIONS = ["2*x1 + x2 <= 1.5", "x1*x2 >= 0.02"]


def _evaluate(point: Mapping[str, float]) -> dict[str, float]:
    x1, x2, n = point["x1"], point["x2"], point.get("n", 3)
    return {"volume": 2.8 * x1 + x2 + 0.1 * n, "stress": 1 / (x1 + 0.1) + 1 / (x2 + 0.2) / n}


def _obeys(point: Mapping[str, float]) -> bool:
    fits = point["n"] <= 8 * point["x2"] + 1 if "n" in point else True
    return bool(2 * point["x1"] + point["x2"] <= 1.5 and point["x1"] * point["x2"] >= 0.02 and fits)


def _study(kind: str) -> Study:
    variables: list[Real | Integer | Discrete] = [Real("x1", 0.1, 1.0), Real("x2", 0.1, 1.0)]
    relations = list(RELATIONS)
    if kind == "mixed":
        variables.append(Integer("n", 1, 9))
        relations.append("n <= 8*x2 + 1")
    problem = Problem(
        "plate", variables, Objective("volume"), [Constraint("stress", low=2.5, high=6.0)], relations=relations
    )
    settings = Settings.paper().replace(candidates=100) if kind == "paper" else Settings.default().replace(library=8)
    study = Study.create(problem, "sqlite://", settings=settings, focus=[{"stress": 3.0}] if kind == "focus" else None)
    study.run(_evaluate, budget=33 if kind == "paper" else 21, in_process=True)
    return study


@pytest.fixture(scope="module", params=["real", "mixed", "paper", "focus"])
def study(request: pytest.FixtureRequest) -> Study:
    return _study(request.param)


def test_every_design_obeys(study: Study) -> None:
    assert len(study.evaluations.complete) >= 21
    assert all(_obeys(row.point) for row in study.evaluations)


def test_every_answer_obeys(study: Study, tmp_path_factory: pytest.TempPathFactory) -> None:
    model = study.model()
    table = pd.DataFrame({"stress": np.linspace(2.0, 7.0, 9)})  # Also outside the box, and unreachable.
    for fast in (False, True):
        found = model.predict_many(table, fast=fast)
        assert all(_obeys(found.answer(i).point) for i in range(len(table)))
    if model.settings.method == "paper":
        assert all(_obeys(p) for p in model.problem.space.points(model.predict_many(table, method="pcm").x.numpy()))
    else:
        assert _obeys(model.recommend({"stress": 3.0}, {"stress": "loosen"}).answer.point)
    path = tmp_path_factory.mktemp("model") / "m.cbabo"
    model.save(path)
    again = Model.load(path).predict({"stress": 3.5})
    assert again.point == model.predict({"stress": 3.5}).point


def test_a_refinement_obeys(study: Study) -> None:
    before = len(study.evaluations)
    answer = study.refine({"stress": 3.2}, _evaluate, evaluations=3, in_process=True)
    assert _obeys(answer.point)
    assert all(_obeys(row.point) for row in study.evaluations[before:])
    with pytest.raises(InputError, match=r"breaks '2\*x1 \+ x2 <= 1.5'"):
        study.refine({"stress": 3.2}, _evaluate, start={**answer.point, "x1": 1.0, "x2": 0.9})


def test_the_relation_is_what_stops_the_answer() -> None:
    study = _study("real")
    free = Problem("free", study.problem.variables, study.problem.objective, study.problem.constraints)
    answer = study.model().predict({"stress": 2.6})
    x1 = np.linspace(0.1, 1.0, 2001)
    x2 = 1 / (3 * (2.6 - 1 / (x1 + 0.1))) - 0.2  # On the limit.
    x2 = np.where((x2 >= 0.1) & (x2 <= 1.0), x2, np.inf)
    value = np.where(2 * x1 + x2 <= 1.5, 2.8 * x1 + x2 + 0.3, np.inf)
    assert free.region is None
    assert answer.objective.mean == pytest.approx(float(value.min()), rel=0.01)


def test_an_old_design_that_breaks_a_relation_is_data_but_no_answer() -> None:
    study = _study("real")
    old = {"x1": 0.5, "x2": 0.6}  # 2*x1 + x2 = 1.6, and better than anything allowed by what is told of it.
    study.add(pd.DataFrame([{**old, "volume": 0.1, "stress": 0.1}]))
    assert len(study.evaluations.complete) == 22
    best = study.evaluations.best({"stress": 3.0})
    assert best is not None
    assert _obeys(best.point)
    assert _obeys(study.model().predict({"stress": 3.0}).point)


def test_a_space_with_finitely_many_designs_is_used_up_without_breaking_a_relation() -> None:
    problem = Problem(
        "grid",
        [Integer("a", 0, 5), Discrete("b", [0.5, 1.0, 2.5])],
        Objective("f"),
        [Constraint("g", low=0.0, high=9.0)],
        relations=["a <= 2*b + 1"],
    )
    study = Study.create(problem, "sqlite://", settings=Settings.default().replace(library=4))
    study.run(lambda p: {"f": p["a"] - p["b"] ** 2, "g": p["a"] + p["b"]}, budget=30, in_process=True)
    points = {tuple(row.point.values()) for row in study.evaluations}
    assert points == {(a, b) for a in range(6) for b in (0.5, 1.0, 2.5) if a <= 2 * b + 1}
