"""The generator of gest-api, driven as its users drive one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from cbabo import Settings, Study

pytest.importorskip("gest_api")

from gest_api.generator import Generator
from gest_api.vocs import VOCS

from cbabo.adapters.gest import CbaboGenerator

RANGES = {"stress": (1.0, 9.0)}


def vocs(**changes: Any) -> VOCS:
    stated: dict[str, Any] = {
        "variables": {"width": [0.1, 3.0], "gauge": {0.5, 1.0, 2.0}, "material": {"steel", "wood"}},
        "objectives": {"mass": "MINIMIZE"},
        "constraints": {
            "stress": ["LESS_THAN", 4.0],
            "stiffness": ["GREATER_THAN", 0.2],
            "size": ["BOUNDS", 0.0, 20.0],
        },
        "constants": {"load": 3.0},
        "observables": ["colour"],
    }
    return VOCS(**(stated | changes))


def simulate(point: dict[str, Any]) -> dict[str, float]:
    strength = 2.0 if point["material"] == "steel" else 1.0
    section = point["width"] * point["gauge"]
    stress = point["load"] / (strength * section)
    return {"mass": strength * section, "stress": stress, "stiffness": section, "size": section, "colour": 1.0}


def test_a_driver_gets_designs_and_the_study_answers_limits(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    generator = CbaboGenerator(vocs(), RANGES, storage=storage, settings=Settings.default().replace(library=16))
    assert isinstance(generator, Generator)
    for _ in range(5):
        points = generator.suggest(5)
        assert len(points) == 5
        assert set(points[0]) == {"width", "gauge", "material", "load", "_id"}
        generator.ingest([{**point, **simulate(point)} for point in points])
    study = Study.open(storage, "generator")
    assert len(study.evaluations.complete) == 25
    assert study.evaluations[0].outputs["colour"] == 1.0
    assert study.problem.box.nominal == {"stress": 4.0}
    answer = study.model().predict({"stress": 4.0})
    assert simulate({**answer.point, "load": 3.0})["stress"] <= 4.0 * 1.001
    again = CbaboGenerator(vocs(), RANGES, storage=storage, settings=Settings.default().replace(library=16))
    assert len(again.study.evaluations) == 25


def test_without_a_number_a_batch_is_suggested() -> None:
    assert len(CbaboGenerator(vocs(), RANGES, batch=3).suggest()) == 3


def test_failures_and_old_runs_are_stored() -> None:
    generator = CbaboGenerator(vocs(), RANGES)
    [point] = generator.suggest(1)
    generator.ingest([{**point, **simulate(point), "stress": math.nan}])
    assert generator.study.evaluations[0].failure == "the output 'stress' is nan"
    known = {"width": 1.0, "gauge": 0.5, "material": "wood", "load": 3.0}
    generator.ingest([{**known, **simulate(known)}])
    assert generator.study.evaluations[1].kind == "import"


def test_what_is_not_known_is_refused_as_the_interface_asks() -> None:
    generator = CbaboGenerator(vocs(), RANGES)
    [point] = generator.suggest(1)
    with pytest.raises(ValueError, match="77"):
        generator.ingest([{**point, **simulate(point), "_id": 77}])
    outside = {"width": 9.0, "gauge": 0.5, "material": "wood", "load": 3.0}
    with pytest.raises(ValueError, match=r"result 1: width .*; 1 results were left out"):
        generator.ingest([{**outside, **simulate(outside)}])


@pytest.mark.parametrize(
    ("changes", "ranges", "sentence"),
    [
        ({"objectives": {"mass": "MINIMIZE", "cost": "MINIMIZE"}}, RANGES, "expected one objective, got 2"),
        ({"objectives": {"mass": "EXPLORE"}}, RANGES, "minimize or maximize, got ExploreObjective"),
        ({"variables": {"width": "CONTEXTUAL"}}, RANGES, "'width': ContextualVariable is not supported"),
        ({}, {}, "expected at least one constraint"),
        ({}, {"mass": (0.0, 1.0)}, "'mass' is no constraint; expected some of stress, stiffness, size"),
        ({}, {"size": (0.0, 1.0)}, "'size' is bounded on both sides"),
        ({}, {"stress": (9.0, 1.0)}, "stress"),
    ],
)
def test_what_no_study_can_be_made_of_is_refused(changes: Any, ranges: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CbaboGenerator(vocs(**changes), ranges)
