from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbabo.errors import InputError
from cbabo.evaluators.command import CommandEvaluator
from cbabo.evaluators.function import Outcome, perform
from cbabo.evaluators.outputs import output_reading

DECLARED = ("f", "s")


def outcome_of(**outputs: Any) -> Outcome:
    return perform(lambda point: outputs, {"x": 1.0}, DECLARED, 1)


@pytest.mark.parametrize(
    ("value", "reading"),
    [
        ({"value": 2, "sem": np.float32(0.5)}, {"value": 2.0, "sem": 0.5}),
        ({"value": 2.0, "sem": 0}, {"value": 2.0, "sem": 0.0}),
        ([1, 2.5], [1.0, 2.5]),
        ((1, 2.5), [1.0, 2.5]),
        (np.array([1.0, 2.5]), [1.0, 2.5]),
        ([7], [7.0]),
        ([1.0, {"value": 2.0, "sem": 0.1}], [1.0, {"value": 2.0, "sem": 0.1}]),
    ],
)
def test_readings(value: object, reading: object) -> None:
    assert outcome_of(f=1.0, s=value).outputs == {"f": 1.0, "s": reading}


def test_a_tensor_with_one_dimension_has_parts() -> None:
    torch = pytest.importorskip("torch")
    assert output_reading("s", torch.tensor([1.0, 2.0], dtype=torch.float64)) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "empty list"),
        (np.zeros(0), "empty list"),
        ([[1.0, 2.0]], "'s[0]' must be one number"),
        (np.zeros((2, 2)), "'s' must be one number"),
        ([1.0, "2"], "'s[1]' must be one number"),
        ([1.0, None], "'s[1]' must be one number"),
        ([1.0, True], "'s[1]' must be one number"),
        ({"value": 1.0}, '"sem"'),
        ({"value": 1.0, "sem": 0.1, "unit": "MPa"}, '"sem"'),
        ({"value": 1.0, "sem": -0.1}, "from 0 on, but is -0.1"),
        ({"value": 1.0, "sem": math.nan}, "from 0 on, but is nan"),
        ({"value": 1.0, "sem": math.inf}, "from 0 on, but is inf"),
        ({"value": 1.0, "sem": "0.1"}, "'s sem' must be one number"),
        ({"value": [1.0, 2.0], "sem": 0.1}, "must be one number"),
    ],
)
def test_what_is_no_reading(value: object, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        output_reading("s", value)
    assert reason in str(caught.value)
    outcome = outcome_of(f=1.0, s=value)
    assert outcome.outputs is None
    assert outcome.failure == str(caught.value)
    assert outcome.cause == "design"


@pytest.mark.parametrize(
    "value", [[1.0, math.nan], [1.0, {"value": math.inf, "sem": 0.1}], {"value": math.nan, "sem": 0.1}]
)
def test_a_part_that_is_not_finite_is_a_failure(value: object) -> None:
    assert "must be a finite number" in str(outcome_of(f=1.0, s=value).failure)


def test_a_list_for_the_objective_is_a_failure() -> None:
    assert outcome_of(f=[1.0, 2.0], s=1.0).failure == (
        "the objective 'f' must be one number, but is a list of 2; return the number to be optimised"
    )
    assert "'f' is declared" in str(outcome_of(**{"f[0]": 1.0, "s": 1.0}).failure)


def test_parts_may_come_by_their_own_names() -> None:
    assert outcome_of(**{"f": 1.0, "s[0]": 2.0, "s[1]": 3.0}).outputs == {"f": 1.0, "s[0]": 2.0, "s[1]": 3.0}
    assert "'s[1]' must be a finite number" in str(outcome_of(**{"f": 1.0, "s[0]": 2.0, "s[1]": math.nan}).failure)
    assert "'s' is declared" in str(outcome_of(**{"f": 1.0, "s[1]": 2.0}).failure)


def test_further_outputs_may_have_parts_and_errors_too() -> None:
    outcome = outcome_of(f=1.0, s=2.0, members=[1.0, 2.0], mesh=[], broken=[math.nan], time={"value": 3.0, "sem": 0.1})
    assert outcome.outputs == {"f": 1.0, "s": 2.0, "members": [1.0, 2.0], "time": {"value": 3.0, "sem": 0.1}}
    assert outcome_of(**{"f": 1.0, "s": 2.0, "s[0]": math.nan}).complete, "of a single number no parts are needed"


def run_command(folder: Path, script: str, outputs: str) -> Outcome:
    (folder / "simulate.py").write_text(script, encoding="utf-8")
    command = CommandEvaluator((sys.executable, "{here}/simulate.py"), folder / "work", folder, outputs=outputs)
    return perform(command, {"x": 1.0}, DECLARED, 1)


@pytest.mark.parametrize(
    "outputs", [{"f": {"value": 1.0, "sem": 0.1}, "s": [1.0, 2.0]}, {"f": 1.0, "s": [{"value": 1.0, "sem": 0.0}]}]
)
def test_a_command_writes_readings_as_json(tmp_path: Path, outputs: dict[str, Any]) -> None:
    script = f"open('out.json', 'w').write({json.dumps(outputs)!r})"
    assert run_command(tmp_path, script, "out.json").outputs == outputs


def test_a_command_prints_parts_as_lines(tmp_path: Path) -> None:
    outcome = run_command(tmp_path, "print('f = 1', 's[0] = 2', 's[1] = 3', sep=chr(10))", "stdout")
    assert outcome.outputs == {"f": 1.0, "s[0]": 2.0, "s[1]": 3.0}


def test_a_command_whose_standard_error_is_negative_fails(tmp_path: Path) -> None:
    script = """open('out.json', 'w').write('{"f": 1.0, "s": {"value": 1.0, "sem": -1.0}}')"""
    assert "from 0 on" in str(run_command(tmp_path, script, "out.json").failure)
