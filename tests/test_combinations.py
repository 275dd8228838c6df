"""One problem with labels, whole numbers, relations and formulas at once, asked every question that a study answers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbabo import Categorical, Constraint, Integer, Model, Objective, Problem, Real, Settings, Study

YOUNG = {"steel": 210e3, "aluminium": 70e3, "titanium": 115e3}
DENSITY = {"steel": 7.85, "aluminium": 2.7, "titanium": 4.5}
AT = {"stress": 50.0, "deflection": 0.12, "slenderness": 12.0}


def simulate(point: dict[str, Any]) -> dict[str, float]:
    b, h, t, ribs = point["width"], point["height"], point["wall"], point["ribs"]
    inertia = (b * h**3 - (b - 2 * t) * (h - 2 * t) ** 3) / 12.0
    return {
        "stress": 0.5e6 * h / inertia * (1.0 + 0.2 / ribs),
        "deflection": 5e10 / (YOUNG[point["material"]] * inertia * ribs),
        "density": DENSITY[point["material"]],
    }


def box_beam(labels: tuple[str, ...] = ("steel", "aluminium", "titanium"), *more: Constraint) -> Problem:
    return Problem(
        "box beam",
        [
            Real("width", 20.0, 80.0, unit="mm"),
            Real("height", 40.0, 200.0, unit="mm"),
            Real("wall", 1.0, 8.0, unit="mm"),
            Integer("ribs", 1, 4),
            Categorical("material", list(labels)),
        ],
        Objective("mass", unit="kg"),
        [
            Constraint("stress", "<=", low=20.0, high=80.0, unit="MPa"),
            Constraint("deflection", "<=", low=0.02, high=0.3, unit="mm"),
            Constraint("slenderness", "<=", low=5.0, high=20.0),
            Constraint("safety", ">=", limit=2.0),
            *more,
        ],
        relations=["height <= 4*width", "2*wall <= width - 10"],
        derived={
            "area": "width*height - (width - 2*wall)*(height - 2*wall)",
            "mass": "area*density*1e-3 + 0.05*ribs",
            "slenderness": "height/wall/4",
            "safety": "400/stress",
        },
    )


def is_legal(point: dict[str, Any]) -> bool:
    return (
        point["height"] <= 4 * point["width"]
        and 2 * point["wall"] <= point["width"] - 10
        and point["ribs"] in (1, 2, 3, 4)
        and point["material"] in YOUNG
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    place = tmp_path_factory.mktemp("combined") / "beam.db"
    settings = Settings.default().replace(library=8, hidden_width=16)
    study = Study.create(box_beam(), f"sqlite:///{place}", settings=settings)
    study.run(simulate, budget=25, in_process=True)
    return study


@pytest.fixture(scope="module")
def model(study: Study) -> Model:
    return study.model()


def test_every_design_is_legal(study: Study) -> None:
    assert all(is_legal(row.point) for row in study.evaluations)
    assert {row.point["material"] for row in study.evaluations} == set(YOUNG)


def test_answers_are_legal_and_what_is_known_is_exact(model: Model) -> None:
    for answer in (model.predict(AT), model.predict_many([AT], fast=True).answer(0)):
        point = answer.point
        assert is_legal(point)
        assert answer.outputs["slenderness"].mean == pytest.approx(point["height"] / point["wall"] / 4, rel=1e-9)
        assert answer.outputs["slenderness"].std == pytest.approx(0.0, abs=1e-9)
        area = point["width"] * point["height"] - (point["width"] - 2 * point["wall"]) * (
            point["height"] - 2 * point["wall"]
        )
        assert answer.outputs["area"].mean == pytest.approx(area, rel=1e-9)
        assert all(price.value >= 0.0 for price in answer.prices.values())


def test_decision_tools_answer(model: Model) -> None:
    reach = model.reach(AT)
    assert set(reach.index) == set(AT)
    found = model.recommend(AT, {"stress": "loosen"})
    assert {name: found.thresholds[name] for name in ("deflection", "slenderness")} == {
        name: AT[name] for name in ("deflection", "slenderness")
    }
    assert is_legal(found.answer.point)
    impossible = {"stress": 20.0, "deflection": 0.001, "slenderness": 5.0}
    conflict = model.conflict(impossible)
    assert conflict is not None
    assert "deflection" in conflict.limits
    assert all(is_legal(way.answer.point) for way in model.ways_out(impossible))


def test_robust_and_common_designs_are_legal(model: Model) -> None:
    assert is_legal(model.predict(AT, scatter={"wall": 0.02}).point)
    assert is_legal(model.common([AT, {**AT, "stress": 45.0}]).answer.point)
    table = model.freeze([AT, {**AT, "deflection": 0.2}]).set_index("variable")
    assert table.loc["material", "value"] in YOUNG
    assert set(table.index) == set(box_beam().space.names)
    assert np.isfinite(float(table.loc["ribs", "cost"]))


def test_another_objective_keeps_relations_and_formulas(model: Model) -> None:
    answer = model.predict({"mass": 3.0, "deflection": 0.2}, objective="stress")
    assert is_legal(answer.point)
    assert answer.objective.mean == pytest.approx(answer.outputs["stress"].mean)


def test_a_model_file_answers_alike(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "beam.cbabo")
    again = Model.load(tmp_path / "beam.cbabo").predict(AT)
    mine = model.predict(AT)
    assert again.point["material"] == mine.point["material"]
    assert again.objective.mean == pytest.approx(mine.objective.mean, rel=1e-6)


def test_it_is_audited_refined_decided_and_amended(study: Study) -> None:
    audit = study.audit(simulate, evaluations=2, in_process=True)
    assert len(audit.measured) <= 2
    refined = study.refine(AT, simulate, evaluations=1, in_process=True)
    assert is_legal(refined.point)
    study.decide(AT, note="agreed", by="me")
    assert study.decisions.to_frame()["by"].tolist() == ["me"]
    before = len(study.evaluations)
    fewer = box_beam(("steel", "aluminium"), Constraint("density", "<=", low=2.0, high=8.0))
    study.amend(fewer)
    assert len(study.evaluations) == before
    assert study.model().predict(AT).point["material"] in ("steel", "aluminium")
    assert dataclasses.asdict(study.amendments[-1])
