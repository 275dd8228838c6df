from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from cbabo import Settings
from cbabo.errors import InputError, StudyError
from cbabo.evaluators.command import CommandEvaluator
from cbabo.methods.settings import PRESETS
from cbabo.surfaces.cli.examples import STUDY
from cbabo.surfaces.studyfile import StudyFile, json_schema, lasting_url

CONTENT: dict[str, Any] = {
    "problem": {
        "name": "beam",
        "variables": [{"name": "x", "type": "real", "low": 0, "high": 1}],
        "objective": "minimize f",
        "constraints": ["c <= [0..10]", "d >= [0..10]", "e <= 3"],
    }
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "study.yaml")


def write(path: Path, **sections: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(CONTENT | sections))
    return path


def refusal(path: Path, *changes: str) -> str:
    with pytest.raises(InputError) as error:
        StudyFile.read(path, changes)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_only_a_problem_is_needed(path: Path) -> None:
    file = StudyFile.read(str(path))
    assert file.name == "beam"
    assert file.storage == f"sqlite:///{path.parent}/beam.db"
    assert (file.study.seed, file.settings, file.evaluator) == (0, Settings.default(), None)
    assert file.create().seed == 0
    assert (path.parent / "beam.db").exists()


def test_everything_stated(tmp_path: Path) -> None:
    study = {
        "storage": "sqlite:///data/b.db",
        "name": "b",
        "seed": 7,
        "settings": {"preset": "paper", "batch_size": 4},
        "focus": [{"c": 1, "d": 2, "weight": 3}, {"c": 4, "d": 5}],
    }
    (tmp_path / "data").mkdir()
    file = StudyFile.read(write(tmp_path / "study.yaml", study=study, evaluator={"command": "solve {x}"}))
    assert file.settings == Settings.paper().replace(batch_size=4)
    made = file.create()
    assert (made.name, made.seed, made.settings) == ("b", 7, file.settings)
    assert made.focused is not None
    assert made.focused.thresholds == ((1.0, 2.0), (4.0, 5.0))
    assert made.focused.weights == (0.75, 0.25), "a row without a weight has 1"
    assert isinstance(file.simulator().evaluate, CommandEvaluator)
    assert file.open().name == "b"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:///b.db", "sqlite:///{here}/b.db"),
        ("sqlite:///../b.db", "sqlite:///{here}/../b.db"),
        ("sqlite+pysqlite:///b.db", "sqlite+pysqlite:///{here}/b.db"),
        ("sqlite:////abs/b.db", "sqlite:////abs/b.db"),
        ("sqlite:///b.db?timeout=9", "sqlite:///{here}/b.db?timeout=9"),
        ("postgresql://me:secret@host/name", "postgresql://me:secret@host/name"),
    ],
)
def test_a_relative_database_lies_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, expected: str
) -> None:
    here = tmp_path / "sub"
    write(here / "study.yaml", study={"storage": url})
    assert StudyFile.read(here / "study.yaml").storage == expected.format(here=here)
    monkeypatch.chdir(tmp_path)
    assert StudyFile.read("sub/study.yaml").storage == expected.format(here=here), "wherever it is called from"


def test_odd_folders_and_names(tmp_path: Path) -> None:
    path = write(tmp_path / "50% of #1? ok" / "study.yaml", study={"name": "stage 1/2: what?"})
    made = StudyFile.read(path).create()
    assert made.name == "stage 1/2: what?"
    assert [file.name for file in path.parent.glob("*.db")] == ["stage_1_2_what_.db"]
    assert StudyFile.read(path).open().name == made.name


def test_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    path = write(tmp_path / "study.yaml", study={"storage": "sqlite:///~/b.db"})
    assert StudyFile.read(path).storage == "sqlite:////home/me/b.db"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("b.db", "expected a URL such as"),
        ("", "expected a URL such as"),
        ("oracle://h/n", "only sqlite and postgresql are supported"),
        ("sqlite://b.db", "sqlite takes three slashes"),
        ("sqlite://", "a database in memory that would be lost"),
        ("sqlite:///", "a database in memory that would be lost"),
        ("sqlite:///:memory:", "a database in memory that would be lost"),
    ],
)
def test_a_url_that_would_lose_the_study_is_refused(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        lasting_url(url)


def test_changes(path: Path) -> None:
    changes = [
        "study.seed=3",
        "study.settings.batch_size=4",
        "problem.variables.0.high=1e1",
        "problem.constraints.1=d >= [1..2] mm",
        "evaluator={command: [solve, 1.5]}",
        "study.name = two words ",
    ]
    file = StudyFile.read(path, changes)
    assert (file.study.seed, file.settings.batch_size, file.name) == (3, 4, "two words")
    assert file.problem.variables[0].high == 10.0
    assert file.problem.constraints[1].unit == "mm"
    assert file.evaluator is not None
    assert file.evaluator.words() == ("solve", "1.5")
    assert StudyFile.read(path).study.seed == 0, "the file is left as it is"


def test_unknown_keys_are_named(path: Path) -> None:
    assert refusal(path, "stduy.seed=1") == f"{path}: stduy: unknown key; check its spelling or remove it"
    assert "study.sead: unknown key" in refusal(path, "study.sead=1")
    assert "evaluator.comand: unknown key" in refusal(path, "evaluator.comand=ls")
    assert "settings: bach_size: unknown key" in refusal(path, "study.settings.bach_size=1")
    path.write_text(path.read_text() + "\n1: x\n")
    assert refusal(path).startswith(f"{path}: ")


def test_sections_of_another_kind(path: Path) -> None:
    assert "study: expected a mapping" in refusal(path, "study=3")
    assert "evaluator: expected a mapping" in refusal(path, "evaluator=python")
    assert "study.settings: expected a mapping" in refusal(path, "study.settings=[1]")
    assert "study.seed: input should be a valid integer" in refusal(path, "study.seed=x")
    assert "study.seed: expected a whole number" in refusal(path, "study.seed=yes")
    assert "study.name: expected text, got 3; put it in quotes" in refusal(path, "study.name=3")
    assert "study.focus" in refusal(path, "study.focus=3")
    assert "study.name: expected a text of 1 to 255" in refusal(path, f"study.name={'x' * 256}")
    assert "study.name: expected a text of 1 to 255" in refusal(path, "problem.name='a::b'")


def test_focus_is_checked_when_the_file_is_read(path: Path) -> None:
    assert "study.focus.1: thresholds: 'd' is missing" in refusal(path, "study.focus=[{c: 1, d: 2}, {c: 1}]")
    assert "study.focus.0: thresholds: unknown constraint 'q'" in refusal(path, "study.focus=[{c: 1, d: 2, q: 3}]")
    assert "the limit of 'e' is fixed" in refusal(path, "study.focus=[{c: 1, d: 2, e: 3}]")
    assert "study.focus.0: d must lie between 0.0 and 10.0" in refusal(path, "study.focus=[{c: 1, d: 11}]")
    assert "study.focus.0: weights must be positive" in refusal(path, "study.focus=[{c: 1, d: 1, weight: -1}]")


def test_focus_stays_until_it_is_taken_back(path: Path) -> None:
    StudyFile.read(path, ["study.focus=[{c: 1, d: 2}]"]).create()
    kept = StudyFile.read(path).create().focused
    assert kept is not None
    assert kept.thresholds == ((1.0, 2.0),)
    assert StudyFile.read(path, ["study.focus=[]"]).create().focused is None
    assert StudyFile.read(path, ["study.focus=[]"]).create().focused is None


def test_a_study_that_was_not_started(path: Path) -> None:
    file = StudyFile.read(path)
    with pytest.raises(InputError, match="was not started yet; start it by: cbabo run"):
        file.open()
    assert not (path.parent / "beam.db").exists()
    file.create()
    with pytest.raises(InputError, match="was not started yet"):
        StudyFile.read(path, ["study.name=other", "study.storage=sqlite:///beam.db"]).open()


def test_a_file_that_has_changed_since(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    StudyFile.read(path).create()
    for change, what in (
        ("study.seed=1", "seed"),
        ("study.settings.batch_size=1", "settings"),
        ("problem.variables.0.high=2", "problem"),
    ):
        changed = StudyFile.read(path, [change])
        with pytest.raises(StudyError, match=f"exists with (a )?different {what}"):
            changed.create()
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert changed.open().name == "beam"
        assert f"states another {what} than the study was created with" in caplog.text
    caplog.clear()
    StudyFile.read(path).open()
    assert caplog.text == ""


def test_the_evaluator(path: Path) -> None:
    with pytest.raises(InputError, match="expected an 'evaluator:' section with python or command; add it"):
        StudyFile.read(path).simulator()
    (path.parent / "studyfile_simulator.py").write_text("def evaluate(point):\n    return {'f': point['x']}\n")
    file = StudyFile.read(path, ["evaluator.python=studyfile_simulator:evaluate"])
    assert file.simulator().evaluate({"x": 0.5}) == {"f": 0.5}
    with pytest.raises(InputError, match=r"study.yaml: evaluator: the template .*nosuch is not there"):
        StudyFile.read(path, ["evaluator={command: ls, templates: {a: nosuch}}"]).simulator()


def test_the_schema_knows_the_settings() -> None:
    schema = json_schema()
    json.dumps(schema)
    for method, kind in PRESETS.items():
        settings = schema["$defs"][kind.__name__]
        assert set(kind.model_fields) | {"preset"} == set(settings["properties"])
        assert settings["properties"]["preset"]["const"] == method
        assert settings["additionalProperties"] is False
        assert all("description" in field for field in settings["properties"].values())
    assert schema["$defs"]["PaperSettings"]["required"] == ["preset"]
    assert schema["required"] == ["problem"]


def obeys(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """As much of JSON Schema as ours uses."""
    if "$ref" in schema:
        return obeys(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
    kind = schema.get("type")
    numeric = kind == "number" and isinstance(value, int | float) and not isinstance(value, bool)
    further = schema.get("additionalProperties", True)
    tests = [
        kind is None or numeric or (kind in kinds and isinstance(value, kinds[kind])),
        "enum" not in schema or value in schema["enum"],
        "const" not in schema or value == schema["const"],
        "minimum" not in schema or value >= schema["minimum"],
        "anyOf" not in schema or any(obeys(value, option, root) for option in schema["anyOf"]),
        "oneOf" not in schema or sum(obeys(value, option, root) for option in schema["oneOf"]) == 1,
    ]
    if isinstance(value, list) and "items" in schema:
        tests += [obeys(item, schema["items"], root) for item in value]
    if isinstance(value, dict) and kind == "object":
        properties = schema.get("properties", {})
        tests += [name in value for name in schema.get("required", [])]
        for name, item in value.items():
            inner = properties.get(name, further)
            tests.append(inner if isinstance(inner, bool) else obeys(item, inner, root))
    return all(tests)


def test_the_schema_accepts_what_is_right_and_nothing_else() -> None:
    schema = json_schema()
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")
    shown = guide.partition('```yaml title="study.yaml"\n')[2].partition("```")[0]
    settings = {"preset": "paper", "batch_size": 3}
    for right in (
        yaml.safe_load(STUDY),
        yaml.safe_load(shown),
        CONTENT,
        CONTENT | {"study": None, "evaluator": None},
        CONTENT | {"study": {"seed": 3, "settings": settings, "focus": [{"c": 1, "d": 2, "weight": 3}]}},
    ):
        assert obeys(right, schema, schema), right
    for wrong in (
        {},
        CONTENT | {"stduy": {}},
        CONTENT | {"study": {"sead": 3}},
        CONTENT | {"study": {"seed": -1}},
        CONTENT | {"study": {"settings": {"bach_size": 3}}},
        CONTENT | {"study": {"settings": {"preset": "papper"}}},
        CONTENT | {"evaluator": {"comand": "ls"}},
        {"problem": CONTENT["problem"] | {"variables": [{"name": "x", "type": "categorical"}]}},
    ):
        assert not obeys(wrong, schema, schema), wrong
