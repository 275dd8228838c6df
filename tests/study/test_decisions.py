"""Decisions: who, when, limits, intents, answer, probability, measured value and note, with the state of the data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from cbabo import Problem, Study
from cbabo.errors import InputError, ModelError
from cbabo.study.ledger import data_digest
from learned import QUICK
from simulators import make_beam, simulate_beam


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/beam.db"
    study = Study.create(make_beam(), url, settings=QUICK)
    study.run(simulate_beam, budget=32, in_process=True)
    return study


def test_a_decision_says_who_when_what_and_on_which_data(study: Study) -> None:
    before = len(study.decisions)
    made = study.decide({"stress": 4.0}, note="agreed with supplier", by="hk")
    assert (made.kind, made.by, made.note) == ("decision", "hk", "agreed with supplier")
    assert made.thresholds == {**study.problem.box.nominal, "stress": 4.0}
    answer = study.model().predict({"stress": 4.0})
    assert (made.point, made.probability_feasible) == (answer.point, answer.probability_feasible)
    assert (made.evaluations, made.last) == (32, 32)
    assert made.data == data_digest(study.evaluations)
    assert made.objective_name == "mass"
    again = Study.open(study.storage_label, study.name).decisions
    assert len(again) == before + 1
    assert asdict(again[-1]) == asdict(made)


def test_recommendations_answers_and_intents_may_be_decided(study: Study) -> None:
    model = study.model()
    found = model.recommend({"stress": 4.0}, {"stress": "loosen", "frequency": "loosen"})
    made = study.decide(found, by="hk", proposal=True, model=model)
    assert made.kind == "proposal"
    assert made.intents["stress"] == "loosen"
    assert made.thresholds == found.thresholds
    answer = model.predict({"stress": 6.0})
    made = study.decide(answer, intents={"stress": "lock"})
    assert made.by
    assert (made.thresholds["stress"], made.intents) == (6.0, {"stress": "lock"})
    frame = study.decisions.to_frame()
    assert {"by", "note", "limit stress", "intent stress", "probability feasible", "measured mass", "data"} <= set(
        frame
    )


def test_a_measured_design_is_stated_with_what_it_measured(tmp_path: Path) -> None:
    study = Study.create(make_beam(), f"sqlite:///{tmp_path}/beam.db", settings=QUICK)
    study.run(simulate_beam, budget=32, in_process=True)
    answer = study.refine({"stress": 5.0, "frequency": 3.0}, simulate_beam, evaluations=1, in_process=True)
    made = study.decide(answer, by="hk")
    assert made.evaluation == 33
    assert made.measured == study.evaluations[32].outputs
    assert made.status == answer.status
    digest = made.data
    study.forget([3])
    assert study.decide(answer, by="hk").data != digest


def test_another_formula_is_not_other_data(tmp_path: Path) -> None:
    beam = make_beam()
    parts = beam.variables, beam.objective, beam.constraints
    derived = [Problem(beam.name, *parts, derived={"slack": f"{factor}*stress"}) for factor in (1, 2)]
    study = Study.create(derived[0], f"sqlite:///{tmp_path}/beam.db", settings=QUICK)
    study.run(simulate_beam, budget=3, in_process=True)
    before, value = data_digest(study.evaluations), study.evaluations[0].outputs["slack"]
    study.amend(derived[1])
    assert study.evaluations[0].outputs["slack"] == 2.0 * value
    assert data_digest(study.evaluations) == before


def test_a_table_without_decisions_has_columns(tmp_path: Path) -> None:
    frame = Study.create(make_beam(), f"sqlite:///{tmp_path}/beam.db").decisions.to_frame()
    assert len(frame) == 0
    assert {"number", "kind", "made", "by", "note", "status", "data"} <= set(frame)


def test_wrong_input_gets_a_sentence_and_no_entry(study: Study, tmp_path: Path) -> None:
    before = len(study.decisions)
    for arguments, said in (
        ({"thresholds": {"strain": 1.0}}, "unknown constraint 'strain'"),
        ({"thresholds": {}, "by": ""}, "by must be a name"),
        ({"thresholds": {}, "note": 3}, "note must be a text"),
        ({"thresholds": {}, "intents": {"strain": "lock"}}, "unknown limit 'strain'"),
    ):
        with pytest.raises(InputError, match=said):
            study.decide(**arguments)  # type: ignore[arg-type]
    assert len(study.decisions) == before
    empty = Study.create(make_beam(), f"sqlite:///{tmp_path}/empty.db")
    with pytest.raises(ModelError):
        empty.decide({})
    assert len(empty.decisions) == 0
    assert empty.decisions.to_frame().empty
