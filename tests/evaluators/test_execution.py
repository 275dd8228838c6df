from __future__ import annotations

import asyncio
import os
import signal
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from cbabo.errors import EvaluationError, InputError
from cbabo.evaluators.execution import Execution
from cbabo.evaluators.function import Evaluate, Outcome

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes")


def outcome(evaluate: Evaluate, execution: Execution | None = None) -> Outcome:
    execution = execution or Execution()
    with execution.executor(evaluate) as executor:
        return execution.evaluate(executor, evaluate, {"x": 1.0}, ("y",), 1)


def test_an_evaluation_runs_in_another_process_unless_this_one_is_asked_for() -> None:
    def where(point: dict[str, float]) -> dict[str, float]:
        return {"y": float(os.getpid())}

    apart, here = outcome(where), outcome(where, Execution(in_process=True))
    assert apart.outputs is not None
    assert apart.outputs["y"] != os.getpid()
    assert here.outputs == {"y": os.getpid()}


@posix
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_design_that_ends_two_processes_has_failed(number: signal.Signals, tmp_path: Path) -> None:
    def crash(point: dict[str, float]) -> dict[str, float]:
        (tmp_path / str(os.getpid())).touch()
        os.kill(os.getpid(), number)
        time.sleep(60)
        return {"y": 1.0}

    came = outcome(crash, Execution(retries=5))
    assert not came.complete
    assert came.cause == "design"
    assert number.name in str(came.failure)
    assert "ended 2 processes" in str(came.failure)
    assert len(list(tmp_path.iterdir())) == 2


@posix
def test_a_process_that_dies_once_costs_nothing(tmp_path: Path) -> None:
    def crash_once(point: dict[str, float]) -> dict[str, float]:
        if not (tmp_path / "crashed").exists():
            (tmp_path / "crashed").touch()
            os.abort()
        return {"y": 2.0}

    assert outcome(crash_once).outputs == {"y": 2.0}


@pytest.mark.parametrize("in_process", [True, False])
@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), CancelledError("gone"), GeneratorExit(), SystemExit(3), BaseException("panic")]
)
def test_whatever_a_simulator_raises_is_a_failure(error: BaseException, in_process: bool) -> None:
    def give_up(point: dict[str, float]) -> dict[str, float]:
        raise error

    came = outcome(give_up, Execution(in_process=in_process))
    assert came.cause == "design"
    assert type(error).__name__ in str(came.failure)


def test_an_interrupt_ends_what_runs_in_this_process() -> None:
    def interrupt(point: dict[str, float]) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcome(interrupt, Execution(in_process=True))


@posix
@pytest.mark.parametrize("in_process", [True, False])
def test_a_forked_copy_of_the_simulator_does_not_come_back(in_process: bool) -> None:
    def fork(point: dict[str, float]) -> dict[str, float]:
        child = os.fork()
        if child == 0:
            return {"y": -1.0}
        _, status = os.waitpid(child, 0)
        return {"y": float(os.waitstatus_to_exitcode(status))}

    assert outcome(fork, Execution(in_process=in_process)).outputs == {"y": 0.0}


def test_retries_and_time_limits_hold(tmp_path: Path) -> None:
    def licence(point: dict[str, float]) -> dict[str, float]:
        (tmp_path / str(time.monotonic_ns())).touch()
        raise EvaluationError("no licence", retryable=True)

    assert outcome(licence, Execution(retries=2)).failure == "no licence"
    assert len(list(tmp_path.iterdir())) == 3
    slow = outcome(lambda point: time.sleep(60) or {"y": 1.0}, Execution(timeout=0.5))
    assert "no answer within 0.5 s" in str(slow.failure)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"workers": 0}, "workers must be a whole number from 1 on, got 0"),
        ({"retries": -1}, "retries must be a whole number from 0 on, got -1"),
        ({"timeout": 0.0}, "timeout must be a positive number of seconds, got 0.0"),
        ({"in_process": True, "workers": 2}, "in_process takes one worker, got 2"),
        ({"in_process": True, "timeout": 2.0}, "in_process has no time limit"),
    ],
)
def test_what_cannot_be_is_refused(stated: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Execution(**stated)  # type: ignore[arg-type]
