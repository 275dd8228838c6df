from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cbabo.errors import InputError
from cbabo.evaluators.command import CommandEvaluator
from cbabo.evaluators.spec import EvaluatorSpec, build


def test_a_line_is_split_into_words(tmp_path: Path) -> None:
    spec = EvaluatorSpec.model_validate({"command": "sim --x={x} 'a b'"})
    evaluator = build(spec, tmp_path)
    assert isinstance(evaluator, CommandEvaluator)
    assert evaluator.command == ("sim", "--x={x}", "a b")
    assert evaluator.workdir == tmp_path / "runs"
    assert evaluator.directory == tmp_path


def test_numbers_from_yaml_are_words_too(tmp_path: Path) -> None:
    spec = EvaluatorSpec.model_validate({"command": ["sim", 3, 0.5], "env": {"OMP_NUM_THREADS": 1}})
    evaluator = build(spec, tmp_path)
    assert isinstance(evaluator, CommandEvaluator)
    assert evaluator.command == ("sim", "3", "0.5")
    assert evaluator.env == {"OMP_NUM_THREADS": "1"}


def test_words_of_a_list_are_the_programs_own() -> None:
    assert EvaluatorSpec.model_validate({"command": ["sim", "a", "|", "b"]}).words() == ("sim", "a", "|", "b")


def test_a_line_for_the_shell_stays_one_word(tmp_path: Path) -> None:
    spec = EvaluatorSpec.model_validate({"command": "sim 'it' | tail -1", "shell": True})
    evaluator = build(spec, tmp_path)
    assert isinstance(evaluator, CommandEvaluator)
    assert evaluator.command == ("sim 'it' | tail -1",)


def test_a_python_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "toy_spec.py").write_text("def evaluate(point): return {'y': 1.0}")
    assert build(EvaluatorSpec(python="toy_spec:evaluate"), tmp_path)({}) == {"y": 1.0}


def test_a_dump_is_accepted_again() -> None:
    for section in ({"python": "sim:evaluate", "timeout": 3}, {"command": ["sim"], "env": {"A": "b"}}):
        spec = EvaluatorSpec.model_validate(section)
        assert EvaluatorSpec.model_validate(spec.model_dump()) == spec
        assert EvaluatorSpec.model_validate_json(spec.model_dump_json()) == spec


def test_every_field_is_described() -> None:
    assert all(field.description for field in EvaluatorSpec.model_fields.values())


def test_a_missing_template_is_found_before_any_evaluation(tmp_path: Path) -> None:
    spec = EvaluatorSpec(command="sim", templates={"a.txt": "nowhere.txt"})
    with pytest.raises(InputError, match=r"nowhere\.txt"):
        build(spec, tmp_path)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, "neither came"),
        ({"python": "a:b", "command": "c"}, "both came"),
        ({"python": "a"}, "module:function"),
        ({"python": "a:"}, "module:function"),
        ({"python": "a:b", "env": {"A": "b"}}, "env goes with command"),
        ({"python": "a:b", "shell": True}, "shell goes with command"),
        ({"command": ""}, "is empty"),
        ({"command": []}, "is empty"),
        ({"command": "sim 'open"}, "cannot be split"),
        ({"command": "mesh {x} && sim"}, "holds '&&', which only a shell understands; set shell: true"),
        ({"command": "sim > log.txt"}, "holds '>', which only a shell understands"),
        ({"command": "sim", "templates": {"../a": "b"}}, "relative to its own directory"),
        ({"command": "sim", "outputs": "/etc/passwd"}, "relative to its own directory"),
        ({"command": "sim", "outputs": ""}, "relative to its own directory"),
        ({"command": "sim", "timeout": 0}, "more than 0 s"),
        ({"command": "sim", "timeout": float("nan")}, "more than 0 s"),
        ({"command": "sim", "retries": -1}, "0 or more"),
        ({"command": "sim", "retry_return_codes": [0]}, "both success and a retry"),
        ({"command": "sim", "keep": "sometimes"}, "'failed', 'always' or 'never'"),
        ({"command": "sim", "comand": "sim"}, "Extra inputs"),
    ],
)
def test_what_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EvaluatorSpec.model_validate(section)
