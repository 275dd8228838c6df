"""Optuna studies, read and written through Optuna itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cbabo import Categorical, Constraint, Discrete, Integer, Objective, Problem, Real, Study
from cbabo.adapters.optuna import read_optuna, write_optuna
from cbabo.errors import InputError

optuna = pytest.importorskip("optuna")


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def problem() -> Problem:
    return Problem(
        "beam",
        [
            Real("width", 0.1, 3.0, log=True),
            Integer("ribs", 0, 4),
            Discrete("gauge", [0.5, 1.0]),
            Categorical("material", ["steel", "wood"]),
        ],
        Objective("mass", unit="kg"),
        [Constraint("stress", "<=", low=1.0, high=9.0, nominal=4.0), "stiffness >= 0.5"],
    )


def simulate(point: dict[str, Any]) -> dict[str, float]:
    strength = 2.0 if point["material"] == "steel" else 1.0
    section = point["width"] * point["gauge"] + 0.1 * point["ribs"]
    return {"mass": strength * section, "stress": 3.0 / (strength * section), "stiffness": section}


def searched(url: str, trials: int = 6) -> Any:
    """An Optuna search whose raw outputs are user attributes, with one failed trial."""
    study = optuna.create_study(study_name="old", storage=url, sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial: Any) -> float:
        point = {
            "width": trial.suggest_float("width", 0.1, 3.0, log=True),
            "ribs": trial.suggest_int("ribs", 0, 4),
            "gauge": trial.suggest_categorical("gauge", [0.5, 1.0]),
            "material": trial.suggest_categorical("material", ["steel", "wood"]),
        }
        if trial.number == 2:
            raise ValueError("no mesh")
        y = simulate(point)
        trial.set_user_attr("stress", y["stress"])
        trial.set_user_attr("stiffness", y["stiffness"])
        trial.set_user_attr("remark", "not a number")
        trial.set_constraint("too soft", 0.5 - y["stiffness"])
        return y["mass"]

    study.optimize(objective, n_trials=trials, catch=(ValueError,))
    return study


def test_complete_trials_become_evaluations(problem: Problem, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    old = searched(url)
    table, others = read_optuna(f"optuna://{url}::old", problem)
    assert others == 1
    assert "remark" not in table
    assert table["constraint too soft"].tolist() == pytest.approx((0.5 - table["stiffness"]).tolist())
    study = Study.create(problem, "sqlite://")
    report = study.add(table)
    assert len(report.added) == 5
    assert report.problems == ()
    assert [row.outputs["mass"] for row in study.evaluations] == [t.value for t in old.trials if t.value is not None]
    assert study.evaluations[0].point == old.trials[0].params


def test_the_only_study_of_a_storage_needs_no_name(problem: Problem, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    searched(url, 2)
    assert len(read_optuna(f"optuna://{url}", problem)[0]) == 2
    optuna.create_study(study_name="second", storage=url)
    with pytest.raises(InputError, match="expected the name of a study after '::', got ''; there are: 'old', 'second'"):
        read_optuna(f"optuna://{url}", problem)


def test_a_journal_file_is_read_too(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    searched(optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path))), 2)
    assert len(read_optuna(f"optuna://{path}::old", problem)[0]) == 2


def test_what_is_written_is_read_again(problem: Problem, tmp_path: Path) -> None:
    study = Study.create(problem, "sqlite://", name="beam")
    study.run(
        lambda point: simulate(point) if point["ribs"] != 3 else {"mass": float("nan")}, budget=12, in_process=True
    )
    address = f"optuna://sqlite:///{tmp_path}/made.db::exported"
    assert write_optuna(study, address, {"stress": 5.0}) == 12
    trials = optuna.load_study(study_name="exported", storage=f"sqlite:///{tmp_path}/made.db").trials
    complete = [trial for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
    assert len(complete) == len(study.evaluations.complete)
    assert len(trials) == 12
    first = complete[0]
    assert first.constraints["stress"] == pytest.approx(first.user_attrs["stress"] - 5.0)
    assert first.constraints["stiffness"] == pytest.approx(0.5 - first.user_attrs["stiffness"])
    again = Study.create(problem, "sqlite://", name="again")
    again.add(read_optuna(address, problem)[0])
    names = ["width", "ribs", "gauge", "material", "mass", "stress", "stiffness"]
    pd.testing.assert_frame_equal(
        again.evaluations.to_frame()[names], study.evaluations.complete.to_frame()[names].reset_index(drop=True)
    )
    with pytest.raises(InputError, match="there is a study 'exported' already; choose another name"):
        write_optuna(study, address)


def test_optuna_goes_on_from_what_was_written(problem: Problem, tmp_path: Path) -> None:
    study = Study.create(problem, "sqlite://", name="beam")
    study.run(simulate, budget=8, in_process=True)
    write_optuna(study, f"optuna://sqlite:///{tmp_path}/made.db")
    sampler = optuna.samplers.TPESampler(seed=0)
    made = optuna.load_study(study_name="beam", storage=f"sqlite:///{tmp_path}/made.db", sampler=sampler)
    best = made.best_value
    made.optimize(lambda t: t.suggest_float("width", 0.1, 3.0, log=True), n_trials=2)
    assert len(made.trials) == 10
    assert made.best_value <= best


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("optuna://", "expected optuna://STORAGE::NAME"),
        ("optuna://sqlite:///nowhere.db::old", "there is no file nowhere.db; check the path"),
        ("optuna://nowhere.log", "there is no file nowhere.log; check the path"),
    ],
)
def test_a_wrong_address_gets_one_sentence(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=sentence):
        read_optuna(address, problem)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_gets_one_sentence(problem: Problem, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database" * 100)
    with pytest.raises(InputError, match="the storage cannot be used"):
        read_optuna(f"optuna://sqlite:///{tmp_path}/text.db", problem)


def test_a_study_with_two_objectives_is_refused(problem: Problem, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    optuna.create_study(study_name="two", storage=url, directions=["minimize", "maximize"])
    with pytest.raises(InputError, match="the study has 2 objectives; store all but one of them as user attributes"):
        read_optuna(f"optuna://{url}::two", problem)
