"""A study with a categorical variable, from the initial design to the model file, and on all surfaces."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from cbabo import Categorical, Constraint, Model, Objective, Problem, Real, Settings, Study
from cbabo.domain.space import Space
from cbabo.errors import InputError
from cbabo.methods.designs import latin_hypercube, snapped, with_categories_redrawn
from cbabo.surfaces.document import document
from cbabo.surfaces.records import answer_record
from cbabo.surfaces.report import report
from cbabo.surfaces.web import schemas
from learned import QUICK
from simulators import MATERIALS, bar, simulate_bar

STRICT, LOOSE = {"stress": 0.25}, {"stress": 1.2}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    place = tmp_path_factory.mktemp("study") / "bar.db"
    made = Study.create(bar(), f"sqlite:///{place}", name="bar", settings=Settings.default().replace(library=24))
    made.run(simulate_bar, budget=22, in_process=True)
    return made


@pytest.fixture(scope="module")
def model(study: Study) -> Model:
    return study.model()


def test_the_initial_design_is_balanced() -> None:
    space = Space((Real("a", 0.0, 1.0), Categorical("m", ("a", "b", "c")), Categorical("n", tuple("pqrst"))))
    for seed in range(5):
        points = latin_hypercube(space, 15, seed, 0)
        assert set(Counter(p["m"] for p in points).values()) == {5}
        assert set(Counter(p["n"] for p in points).values()) == {3}


def test_random_candidates_are_balanced_over_labels() -> None:
    space, random = bar().space, np.random.default_rng(0)
    x = snapped(space, torch.from_numpy(random.random((3000, space.dimension)))).numpy()
    shares = x[:, space.categories[0]].mean(0)
    assert shares == pytest.approx([1 / 3] * 3, abs=0.04)
    moved = with_categories_redrawn(space, x, 0.3, random)
    assert np.array_equal(moved[:, space.continuous], x[:, space.continuous])
    changed = (moved != x).any(1).mean()
    assert changed == pytest.approx(0.3 * 2 / 3, abs=0.04)
    assert np.array_equal(moved[:, space.categories[0]].sum(1), np.ones(len(x)))


def test_every_evaluation_has_a_label_and_is_stored_as_it_is(study: Study) -> None:
    frame = study.evaluations.to_frame()
    assert set(frame["material"]) == set(MATERIALS)
    assert frame["material"].value_counts().min() >= 3
    assert study.evaluations.x.shape == (22, 5)


def test_answers_have_the_right_material(model: Model) -> None:
    strict, loose = model.predict(STRICT), model.predict(LOOSE)
    assert (strict.point["material"], loose.point["material"]) == ("titanium", "aluminium")
    for answer, limits in ((strict, STRICT), (loose, LOOSE)):
        assert simulate_bar(answer.point)["stress"] <= limits["stress"] + 1e-3
    many = model.predict_many([STRICT, LOOSE], fast=True)
    assert many.to_frame()["material"].tolist() == ["titanium", "aluminium"]
    assert many.points[:, 1].tolist() == [2.0, 1.0]
    assert "3 variables" in repr(model)


def test_the_network_gives_legal_labels(model: Model) -> None:
    frame = model.predict_many(model.problem.box.from_theta(np.linspace(0, 1, 9)[:, None]), method="pcm").to_frame()
    assert set(frame["material"]) <= set(MATERIALS)


def test_a_model_file_keeps_labels(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "bar.cbabo")
    loaded = Model.load(tmp_path / "bar.cbabo")
    assert loaded.problem == model.problem
    assert loaded.predict(STRICT).point == model.predict(STRICT).point


def test_refinements_and_recommendations_keep_legal_labels(study: Study, model: Model) -> None:
    refined = study.refine(STRICT, simulate_bar, evaluations=2)
    assert refined.point["material"] == "titanium"
    assert simulate_bar(refined.point)["stress"] <= STRICT["stress"] + 1e-9
    recommended = model.recommend({"stress": 0.6}, {"stress": "tighten"})
    assert recommended.answer.point["material"] in MATERIALS


def test_surfaces_show_labels(study: Study, model: Model) -> None:
    record = answer_record(model.predict(STRICT))
    assert record["design"]["material"] == "titanium"
    assert schemas.AnswerRecord.model_validate(record).design["material"] == "titanium"
    stated = document(model, "bar")
    json.dumps(stated, allow_nan=False)
    assert stated["problem"]["variables"][1] | {"unit": ""} == {
        "name": "material",
        "unit": "",
        "type": "categorical",
        "low": None,
        "high": None,
        "log": False,
        "values": list(MATERIALS),
    }
    assert "titanium" in report(study, [STRICT])


def test_ask_and_tell_with_labels(tmp_path: Path) -> None:
    study = Study.create(bar(), f"sqlite:///{tmp_path}/ask.db", name="ask")
    trial = study.ask(1)[0]
    assert trial.point["material"] in MATERIALS
    study.tell(trial.id, simulate_bar(trial.point))
    assert study.evaluations[0].point == trial.point
    with pytest.raises(InputError, match="did you mean 'steel'"):
        study.ask_at({"a": 0.5, "b": 0.5, "material": "steal"})


def test_the_papers_method_proposes_legal_labels(tmp_path: Path) -> None:
    study = Study.create(bar(), f"sqlite:///{tmp_path}/paper.db", settings=QUICK.replace(initial_evaluations=8))
    study.run(simulate_bar, budget=14, in_process=True)
    assert {row.point["material"] for row in study.evaluations} <= set(MATERIALS)
    assert study.model().predict(LOOSE).point["material"] in MATERIALS


def test_designs_of_a_focus_have_legal_labels(tmp_path: Path) -> None:
    study = Study.create(bar(), f"sqlite:///{tmp_path}/focus.db", focus=[STRICT])
    study.run(simulate_bar, budget=15, in_process=True)
    best = study.evaluations.best(STRICT)
    assert best is not None
    assert best.point["material"] == "titanium"


def test_a_study_of_labels_alone_evaluates_all_designs_once(tmp_path: Path) -> None:
    ranks = {"a": 0.0, "b": 1.0, "c": 2.5}
    problem = Problem(
        "choice",
        [Categorical("first", tuple(ranks)), Categorical("second", tuple(ranks))],
        Objective("f"),
        [Constraint("c", low=1.0, high=4.0)],
    )

    def simulate(point: dict[str, str]) -> dict[str, float]:
        first, second = ranks[point["first"]], ranks[point["second"]]
        return {"f": first + 0.4 * second, "c": 5.0 - first - second}

    settings = Settings.default().replace(initial_evaluations=5, library=8, noise="none")
    study = Study.create(problem, f"sqlite:///{tmp_path}/choice.db", settings=settings)
    study.run(simulate, budget=9, in_process=True)
    assert len({tuple(row.point.values()) for row in study.evaluations}) == 9
    assert study.model().predict({"c": 3.0}).point == {"first": "a", "second": "c"}
