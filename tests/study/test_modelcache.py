"""Models kept beside their study: used for the same data and code only, and never trusted when damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cbabo import Model, Problem, Settings, Study
from cbabo.answering import quality
from cbabo.study import modelcache
from cbabo.study.modelcache import cached_model, keep_model, kept_advice, study_key
from simulators import simulate_beam

AT = {"stress": 5.0, "frequency": 3.0}
SMALL = Settings.default().replace(initial_evaluations=12, library=16)


@pytest.fixture
def study(beam: Problem, url: str) -> Study:
    study = Study.create(beam, url, settings=SMALL)
    study.run(simulate_beam, budget=14, in_process=True)
    return study


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many evaluations each model was fitted to."""
    made: list[int] = []
    fit = Study.model

    def counted(study: Study) -> Model:
        made.append(len(study.evaluations))
        return fit(study)

    monkeypatch.setattr(Study, "model", counted)
    return made


def kept_files(study: Study) -> list[Path]:
    assert study.storage_file is not None
    return sorted(study.storage_file.parent.glob("*.model-*"))


def test_the_second_call_fits_nothing_and_answers_the_same(study: Study, fits: list[int]) -> None:
    one, two = cached_model(study), cached_model(Study.open(f"sqlite:///{study.storage_file}", study.name))
    assert fits == [14]
    assert two.predict(AT) == one.predict(AT)
    table = np.array([[5.0, 3.0], [3.0, 4.0]])
    assert two.predict_many(table, fast=True).to_frame().equals(one.predict_many(table, fast=True).to_frame())
    assert len(kept_files(study)) == 1


def test_new_evaluations_make_a_new_model(study: Study, fits: list[int]) -> None:
    cached_model(study)
    study.run(simulate_beam, budget=16, in_process=True)
    model = cached_model(study)
    assert fits == [14, 16]
    assert len(model.evaluations) == 16
    cached_model(study)
    assert fits == [14, 16]


def test_other_code_makes_a_new_model(study: Study, fits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    cached_model(study)
    monkeypatch.setattr(modelcache, "_code", lambda: "changed")
    cached_model(study)
    assert fits == [14, 14]


def test_what_was_solved_since_is_kept_too(study: Study, fits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    model = cached_model(study)
    assert cached_model(study).library is None
    answers = model.predict_many(AT, fast=True).to_frame()
    keep_model(study, model)
    monkeypatch.setattr("cbabo.methods.method.build_library", None)
    again = cached_model(study)
    assert again.predict_many(AT, fast=True).to_frame().equals(answers)
    assert fits == [14]
    before = kept_files(study)[0].stat().st_mtime_ns
    keep_model(study, again)  # Nothing is new.
    assert kept_files(study)[0].stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "foreign", "only the key"])
def test_a_damaged_file_is_made_again(study: Study, fits: list[int], damage: str) -> None:
    expected = cached_model(study).predict(AT)
    (file,) = kept_files(study)
    content = file.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    damaged = {
        "flipped": bytes(flipped),
        "truncated": content[:-100],
        "empty": b"",
        "foreign": b"SQLite format 3\0" * 10,
        "only the key": content[:32],
    }
    file.write_bytes(damaged[damage])
    assert cached_model(study).predict(AT) == expected
    assert fits == [14, 14]
    assert file.read_bytes() == content
    cached_model(study)
    assert fits == [14, 14]


def test_a_folder_that_cannot_be_written_does_no_harm(
    study: Study, fits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert cached_model(study).predict(AT).feasible
    assert kept_files(study) == []
    assert fits == [14]


def test_a_study_in_memory_keeps_nothing(beam: Problem, fits: list[int]) -> None:
    study = Study.create(beam, "sqlite://", settings=SMALL)
    study.run(simulate_beam, budget=12, in_process=True)
    cached_model(study)
    cached_model(study)
    assert fits == [12, 12]


def test_the_model_of_a_study_writes_nothing(study: Study) -> None:
    study.model()
    assert kept_files(study) == []


def test_every_part_of_the_data_counts(study: Study) -> None:
    key = study_key(study)
    assert key == study_key(study)
    trial = study.ask()[0]
    pending = study_key(study)
    study.tell(trial.id, failed="mesh")
    assert len({key, pending, study_key(study)}) == 3


def test_advice_is_kept_with_the_model(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept_advice(study) == ()
    monkeypatch.setattr(
        quality, "TUNING", quality.QualityTuning(evaluations=5, evaluations_per_variable=1, error=0.0, noise=2.0)
    )
    cached_model(study)
    (advice,) = kept_advice(study)
    assert advice.startswith("stress, frequency and cost behave like")
    assert cached_model(study).predict(AT) == study.model().predict(AT)
    (file,) = kept_files(study)
    content = file.read_bytes()
    for damaged in (content[:33], content[:50].replace(b"[", b"{") + content[50:], content[:10]):
        file.write_bytes(damaged)
        assert kept_advice(study) == ()
    file.write_bytes(content)
    study.tell(study.ask()[0].id, failed="no mesh")
    assert kept_advice(study) == (), "it is of other data"
