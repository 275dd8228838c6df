"""Audits of models that are right, and of models that are wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cbabo import Model, Settings, Study
from cbabo.decisions.audit import audit_warning, draw_claims, has_learned, judge
from cbabo.domain.evaluations import Evaluation
from cbabo.errors import InputError, StudyError
from learned import model_of
from simulators import simulate_valley, valley

SMALL = Settings.default().replace(library=16, initial_evaluations=15)


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(valley(), simulate_valley, 25, SMALL)


def shifted(point: dict[str, float]) -> dict[str, float]:
    """Limited outputs that are worse than what the model has learned."""
    return {name: value if name == "f" else value + 0.5 for name, value in simulate_valley(point).items()}


def measured(model: Model, simulate: object, count: int = 8) -> tuple:
    claims = draw_claims(model, count, 0)
    made = [
        Evaluation(100 + i, "complete", "audit", a.point, simulate(a.point))  # type: ignore[operator]
        for i, a in enumerate(claims.answers)
    ]
    return judge(model, claims, made), made


def test_claims_are_those_of_answers_and_differ_between_audits(model: Model) -> None:
    first, second = draw_claims(model, 5, 0), draw_claims(model, 5, 1)
    assert [row.claimed for row in first.rows] == [a.probability_feasible for a in first.answers]
    assert first.rows[0].thresholds != second.rows[0].thresholds
    assert first.drawn == 5 + first.verified + first.unreachable
    for row in first.rows:
        assert min(row.claimed_limits.values()) >= row.claimed - 1e-9


def test_a_right_model_is_not_rejected(model: Model) -> None:
    audit, _ = measured(model, simulate_valley)
    assert not audit.rejected
    assert audit.joint.count == 8
    assert audit_warning(model, audit) == ()
    assert audit_warning(model, None) == ()


def test_a_wrong_model_is_rejected_and_warns_until_it_has_learned(model: Model) -> None:
    audit, made = measured(model, shifted)
    assert audit.rejected
    assert any(share.rejected for share in audit.limits)
    assert max(audit.errors[0].deviations.values()) > 2.0
    after = replace(model, **vars(model.conditioned(made)))
    (warning,) = audit_warning(after, replace(audit, number=3))
    assert "entry 3" in warning
    assert "rejects the stated probabilities" in warning
    answer = replace(after, notes=(warning,)).predict()
    assert (warning in answer.warnings) == (answer.status != "verified")
    later = [replace(e, id=e.id + 100, point={**e.point, "a": 0.9 * e.point["a"] + 0.01}) for e in made]
    later = [replace(e, outputs=shifted(dict(e.point))) for e in later]
    assert not has_learned(after, audit)  # Nothing was measured since.
    learned = model_of_rows(model, [*made, *later])
    assert has_learned(learned, audit)
    other = replace(audit, rows=tuple(replace(row, thresholds={"dropped": 1.0}) for row in audit.rows))
    assert not has_learned(learned, other)  # The limits were amended: the claims cannot be tested again.
    moved = replace(audit, rows=tuple(replace(row, point={**row.point, "a": 0.987}) for row in audit.rows))
    assert not has_learned(learned, moved)  # The audited designs are no longer there.


def model_of_rows(model: Model, made: list[Evaluation]) -> Model:
    """A model that was fitted again to the shifted outputs."""
    from cbabo.domain.evaluations import Evaluations
    from cbabo.methods.learner import Learner
    from cbabo.model import make_model

    rows = tuple(replace(e, outputs=shifted(dict(e.point))) for e in model.evaluations)
    return make_model(Evaluations(model.problem, (*rows, *made)), Learner(0), SMALL, 0)


def test_failed_evaluations_are_told_apart(model: Model) -> None:
    claims = draw_claims(model, 3, 0)
    made = [Evaluation(100 + i, "failed", "audit", a.point, {}, failure="mesh") for i, a in enumerate(claims.answers)]
    audit = judge(model, claims, made)
    assert audit.joint.count == 0
    assert audit.success.found == 0
    assert [row.evaluation for row in audit.rows] == [100, 101, 102]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Study:
    place = tmp_path_factory.mktemp("audited")
    study = Study.create(valley(), f"sqlite:///{place}/valley.db", settings=SMALL)
    study.run(simulate_valley, budget=20, in_process=True)
    study.audit(simulate_valley, evaluations=4, in_process=True, by="hk")
    return study


def test_an_audit_enters_the_study_and_not_the_budget(audited: Study) -> None:
    rows = audited.evaluations
    assert [row.kind for row in rows[20:]] == ["audit"] * 4
    assert rows.requested == 20
    assert all(row.thresholds for row in rows[20:])
    (audit,) = audited.audits
    assert [row.evaluation for row in audit.rows] == [21, 22, 23, 24]
    assert audit.number == 1
    assert audit.made
    assert not audit.rejected
    assert len(audited.model().evaluations.complete) == 24
    assert audited.model().notes == ()


def test_a_rejected_audit_is_a_warning_of_the_studys_model(tmp_path) -> None:  # type: ignore[no-untyped-def]
    study = Study.create(valley(), f"sqlite:///{tmp_path}/valley.db", settings=SMALL)
    study.run(simulate_valley, budget=20, in_process=True)
    audit = study.audit(shifted, evaluations=6, workers=2)
    assert audit.rejected
    model = study.model()
    assert len(model.notes) == 1
    path = tmp_path / "valley.cbabo"
    model.save(path)
    assert Model.load(path).notes == model.notes


@pytest.mark.parametrize("arguments", [{"evaluations": 0}, {"evaluations": 1.5}, {"workers": 0}, {"by": "  "}])
def test_wrong_arguments_get_a_sentence(audited: Study, arguments: dict[str, object]) -> None:
    with pytest.raises(InputError):
        audited.audit(simulate_valley, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="audit: evaluate must be a function"):
        audited.audit("simulate")  # type: ignore[arg-type]
    assert len(audited.audits) == 1


def test_where_nothing_can_be_tested_it_says_so(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    from cbabo.answering.predict import Answers

    monkeypatch.setattr(Answers, "status", lambda self, i: "unreachable")
    monkeypatch.setattr(Answers, "_closest", lambda self, i: None)
    with pytest.raises(StudyError, match="no claim is left to test"):
        draw_claims(model, 2, 0)
