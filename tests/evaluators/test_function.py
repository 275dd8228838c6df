from __future__ import annotations

import logging
import math
import os
import pickle
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbabo.domain.current import current_evaluation
from cbabo.errors import EvaluationError, InputError
from cbabo.evaluators.function import Outcome, failed, load_function, perform


def outcome_of(value: Any) -> Outcome:
    return perform(lambda point: {"y": value}, {"x": 1.0}, ("y",), 1)


def test_a_complete_outcome() -> None:
    outcome = perform(lambda point: {"y": point["x"] ** 2, "extra": 3}, {"x": 2.0}, ("y",), 7)
    assert outcome.complete
    assert outcome.outputs == {"y": 4.0, "extra": 3.0}
    assert outcome.failure is None
    assert outcome.worker.endswith(f":{os.getpid()}")
    assert outcome.seconds >= 0
    assert pickle.loads(pickle.dumps(outcome)) == outcome


def test_the_number_is_published_for_the_time_of_the_call() -> None:
    seen = []
    perform(lambda point: seen.append(current_evaluation.get()) or {}, {}, (), 31)
    assert seen == [31]
    assert current_evaluation.get() is None


def test_the_point_is_a_copy() -> None:
    point = {"x": 1.0}
    perform(lambda given: given.clear() or {}, point, (), 1)
    assert point == {"x": 1.0}


@pytest.mark.parametrize(
    "value",
    [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), np.longdouble(2), Decimal(2), Fraction(2)],
    ids=lambda value: type(value).__name__,
)
def test_numbers_of_many_kinds(value: object) -> None:
    assert outcome_of(value).outputs == {"y": 2.0}


def test_a_torch_scalar_is_a_number_even_with_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    assert outcome_of(torch.tensor(2.0, requires_grad=True)).outputs == {"y": 2.0}
    assert "must be one number" in outcome_of(torch.tensor(True)).failure


@pytest.mark.parametrize(
    "value",
    [True, np.bool_(True), np.array(True), "2", b"2", None, 1j, np.array(1j), [2.0], np.array([2.0]), np.array("2")],
    ids=repr,
)
def test_what_is_not_a_number(value: object) -> None:
    outcome = outcome_of(value)
    assert not outcome.complete
    assert "'y' must be one number" in outcome.failure


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, np.array(np.nan)], ids=lambda v: str(v)[:9])
def test_what_is_not_finite(value: object) -> None:
    assert "'y' must be a finite number" in outcome_of(value).failure


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_passes_unchanged(value: float) -> None:
    assert outcome_of(value).outputs == {"y": value}


def test_useless_extras_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "cbabo"):
        outcome = perform(lambda point: {"y": 1.0, "note": "ok", "nan": math.nan, 3: 4.0}, {}, ("y",), 1)
    assert outcome.outputs == {"y": 1.0}
    assert len(caplog.records) == 3


def test_a_missing_output_is_named() -> None:
    outcome = perform(lambda point: {"z": 1.0}, {}, ("y",), 1)
    assert outcome.failure is not None
    assert "'y'" in outcome.failure
    assert "'z'" in outcome.failure


def test_a_return_value_that_is_no_mapping() -> None:
    outcome = perform(lambda point: [1.0], {}, ("y",), 1)
    assert outcome.failure is not None
    assert "[1.0] (of type list)" in outcome.failure


def test_an_exception_becomes_a_reason_and_a_traceback() -> None:
    def broken(point: dict[str, float]) -> dict[str, float]:
        raise ValueError("mesh is\n  tangled")

    outcome = perform(broken, {}, ("y",), 1)
    assert outcome.failure == "ValueError: mesh is tangled"
    assert "in broken" in outcome.log
    assert "in perform" not in outcome.log
    assert not outcome.retryable


def test_an_exception_that_cannot_be_shown() -> None:
    class Awkward(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError

    def broken(point: dict[str, float]) -> dict[str, float]:
        raise Awkward

    assert perform(broken, {}, (), 1).failure == "Awkward: (its message cannot be shown)"


def test_exit_is_a_failure() -> None:
    assert perform(lambda point: sys.exit(3), {}, (), 1).failure == "SystemExit: 3"


def test_an_evaluation_error_keeps_what_it_says() -> None:
    def busy(point: dict[str, float]) -> dict[str, float]:
        raise EvaluationError("no licence", log="x" * 9000 + "end", retryable=True)

    outcome = perform(busy, {}, ("y",), 1)
    assert (outcome.failure, outcome.retryable) == ("no licence", True)
    assert outcome.log.endswith("end")
    assert len(outcome.log) == 4000


def test_ctrl_c_passes_through() -> None:
    def interrupted(point: dict[str, float]) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform(interrupted, {}, (), 1)
    assert current_evaluation.get() is None


def test_a_failure_seen_from_outside() -> None:
    outcome = failed("the worker\ndied", log="tail", retryable=True, seconds=2.0)
    assert not outcome.complete
    assert outcome.failure == "the worker died"
    assert outcome.log == "tail"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.startswith("toy_simulator")]:
        del sys.modules[name]
    return tmp_path


def test_a_function_is_loaded_from_the_folder(folder: Path) -> None:
    (folder / "toy_simulator.py").write_text("def evaluate(point): return {'y': point['x'] + 1}")
    assert load_function("toy_simulator:evaluate", folder)({"x": 1.0}) == {"y": 2.0}
    assert sys.path[0] == str(folder.resolve())


def test_a_namesake_from_another_folder_is_not_taken(folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "toy_simulator.py").write_text(f"def evaluate(point): return {{'{name}': 1.0}}")
    one = load_function("toy_simulator:evaluate", folder / "one")
    two = load_function("toy_simulator:evaluate", folder / "two")
    assert (one({}), two({})) == ({"one": 1.0}, {"two": 1.0})
    assert load_function("toy_simulator:evaluate", folder / "two") is two


@pytest.mark.parametrize(
    ("spec", "source", "message"),
    [
        ("toy_simulator", "", "module:function"),
        ("toy_simulator:", "", "module:function"),
        (":evaluate", "", "module:function"),
        ("toy_simulator_missing:evaluate", "", "no module 'toy_simulator_missing'"),
        ("toy_simulator.part:evaluate", "", "no module 'toy_simulator.part'"),
        ("toy_simulator:evaluate", "import no_such_package_at_all", "importing the module 'toy_simulator' failed"),
        ("toy_simulator:evaluate", "1 / 0", "ZeroDivisionError"),
        ("toy_simulator:evaluate", "def evaluate(", "SyntaxError"),
        ("toy_simulator:evaluate", "import sys; sys.exit(1)", "SystemExit: 1"),
        ("toy_simulator:evaluate", "", "has no function 'evaluate'"),
        ("toy_simulator:evaluate", "evaluate = 3", "must be a function"),
    ],
)
def test_each_way_to_name_it_wrongly(folder: Path, spec: str, source: str, message: str) -> None:
    (folder / "toy_simulator.py").write_text(source)
    with pytest.raises(InputError, match=message):
        load_function(spec, folder)
