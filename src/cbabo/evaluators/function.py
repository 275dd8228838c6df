"""One evaluation of a Python function, and the outcome that every kind of evaluator ends in.

Whatever a simulator does short of killing its process becomes an `Outcome`: a failure is a result.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import logging
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from cbabo.domain.current import current_evaluation
from cbabo.domain.parts import Reading, whole_name
from cbabo.errors import Cause, EvaluationError, InputError
from cbabo.evaluators.logs import joined, printed_tail, tail
from cbabo.evaluators.outputs import check_objective, missing, not_finite, output_reading

logger = logging.getLogger(__name__)

Evaluate = Callable[[dict[str, float]], Mapping[str, Any]]
"""A simulator: takes a point by variable name (an int for an integer variable), returns outputs by name: each a number, a
number with its standard error as {"value": 2.1, "sem": 0.05}, or a list of these, one for each part of the output."""

declared_outputs: ContextVar[tuple[str, ...]] = ContextVar("declared_outputs", default=())
"""The outputs that the evaluation being performed has to return."""

_REASON_CHARACTERS = 500


@dataclass(frozen=True)
class Outcome:
    """What came of one evaluation."""

    outputs: dict[str, Reading] | None
    """Every finite output that the simulator returned; None when the evaluation failed."""
    failure: str | None
    """Why it failed, in one line; None when it is complete."""
    log: str
    """The end of what there is to read about a failure, at most 4,000 characters."""
    retryable: bool
    """Whether trying the same point again may help."""
    started: float
    """When it began, in unix time."""
    seconds: float
    """How long it took."""
    worker: str
    """Where it ran, as host:pid."""
    cause: Cause | None = None
    """What a failure is due to, the design or the set-up; None when it is complete."""
    killed_worker: bool = False
    """Whether the worker process died during it."""
    printed: str = ""
    """The end of what the simulator printed in a worker process."""

    @property
    def complete(self) -> bool:
        """Whether all declared outputs were returned."""
        return self.outputs is not None


def perform(evaluate: Evaluate, point: Mapping[str, Any], outputs: tuple[str, ...], number: int) -> Outcome:
    """Run one evaluation and turn everything that goes wrong in it, except Ctrl-C, into a failed outcome.

    A process that the simulator forks and that returns from it ends here: only the process that was asked answers.
    """
    process = os.getpid()
    number_token, outputs_token = current_evaluation.set(number), declared_outputs.set(outputs)
    started, clock = time.time(), time.perf_counter()
    cause: Cause
    try:
        values = finite_outputs(_only_in(process, evaluate, point), outputs)
    except EvaluationError as error:
        printed = printed_tail()
        log = joined(("log", error.log), ("printed", printed)) if printed else error.log
        reason, retryable, cause = error.reason, error.retryable, error.cause
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Also what asyncio, generators and compiled extensions raise to end their caller.
        log = joined(("traceback", _traceback(error)), ("printed", printed_tail()))
        reason, retryable, cause = describe(error), False, "design"
    else:
        seconds = time.perf_counter() - clock
        return Outcome(values, None, "", False, started, seconds, _here(), printed=printed_tail())
    finally:
        current_evaluation.reset(number_token)
        declared_outputs.reset(outputs_token)
    seconds = time.perf_counter() - clock
    found = failed(reason, log=log, retryable=retryable, cause=cause, started=started, seconds=seconds, worker=_here())
    return replace(found, printed=printed_tail())


def _only_in(process: int, evaluate: Evaluate, point: Mapping[str, Any]) -> object:
    """Call the simulator; a forked copy of this process does not come back."""
    code = 1
    try:
        returned = evaluate(dict(point))
        code = 0
        return returned
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise
    finally:
        if os.getpid() != process:
            os._exit(code)


def failed(
    reason: str,
    *,
    log: str = "",
    retryable: bool = False,
    cause: Cause = "design",
    started: float | None = None,
    seconds: float = 0.0,
    worker: str = "",
    killed_worker: bool = False,
) -> Outcome:
    """Return the outcome of an evaluation that failed, also for failures that are only seen from outside."""
    begun = time.time() - seconds if started is None else started
    return Outcome(None, _one_line(reason), tail(log), retryable, begun, seconds, worker, cause, killed_worker)


def finite_outputs(returned: object, declared: tuple[str, ...]) -> dict[str, Reading]:
    """Return every finite output that a simulator returned; raise if a declared one is not among them.

    declared: the outputs that have to be there, the objective first.
    """
    if not isinstance(returned, Mapping):
        raise EvaluationError(
            "the simulator must return a dict of numbers by output name, but returned "
            f"{_shown(returned)}; return such a dict"
        )
    absent = missing(returned, declared)
    if absent is not None:
        present = ", ".join(repr(str(key)) for key in returned) or "nothing"
        raise EvaluationError(f"the output {absent!r} is declared, but the simulator returned {present}; return it too")
    readings: dict[str, Reading] = {}
    for key, value in returned.items():
        whole = whole_name(str(key))
        is_declared = key in declared or (whole in declared and whole not in returned)
        try:
            reading = output_reading(str(key), value)
            bad = not_finite(str(key), reading)
        except InputError as error:
            bad = str(error)
        if bad is None and isinstance(key, str):
            readings[key] = reading
        elif is_declared:
            raise EvaluationError(str(bad))
        else:
            logger.debug("The undeclared output %r is not a finite number and is dropped.", key)
    try:
        check_objective(declared, readings)
    except InputError as error:
        raise EvaluationError(str(error)) from None
    return readings


def load_function(spec: str, directory: Path) -> Evaluate:
    """Import the function that "module:function" names, looking in the directory first.

    The directory stays first on sys.path, so that worker processes, which get our sys.path, find it too.
    """
    module_name, colon, name = (part.strip() for part in spec.partition(":"))
    if not colon or not module_name or not name:
        raise InputError(
            f"the simulator must be named as module:function, but {spec!r} came; "
            "write for example simulator:evaluate for the function evaluate in simulator.py"
        )
    module = _import(module_name, directory.resolve())
    if not hasattr(module, name):
        raise InputError(
            f"the module {module_name!r} ({getattr(module, '__file__', None)}) has no function {name!r}; "
            "define it there or correct the name"
        )
    function = getattr(module, name)
    if not callable(function):
        raise InputError(f"{spec!r} must be a function of one point, but is {_shown(function)}; name a function")
    loaded: Evaluate = function
    return loaded


def describe(error: BaseException) -> str:
    """Return one line such as "ValueError: message" about an exception."""
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be shown)"
    return _one_line(f"{type(error).__name__}: {message}" if message else type(error).__name__)


def _import(name: str, directory: Path) -> ModuleType:
    sys.path[:] = [str(directory), *(entry for entry in sys.path if entry != str(directory))]
    importlib.invalidate_caches()
    _forget_namesake(name.partition(".")[0], directory)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise InputError(
                f"there is no module {name!r} in {directory} or among the installed packages; "
                "correct the name or put the file there"
            ) from error
        raise InputError(
            f"importing the module {name!r} failed with {describe(error)}; make it importable on its own"
        ) from error


def _forget_namesake(top: str, directory: Path) -> None:
    """Drop an imported module of the same name but another folder, which would be taken for this one's."""
    loaded = sys.modules.get(top)
    spec = importlib.machinery.PathFinder.find_spec(top, [str(directory)])
    if loaded is None or spec is None or spec.origin is None or getattr(loaded, "__file__", None) == spec.origin:
        return
    for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
        del sys.modules[name]


def _shown(value: object) -> str:
    try:
        text = _one_line(repr(value))
    except Exception:
        text = "something that cannot be shown"
    return f"{text if len(text) <= 80 else text[:77] + '...'} (of type {type(value).__name__})"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _REASON_CHARACTERS else line[: _REASON_CHARACTERS - 3] + "..."


def _traceback(error: BaseException) -> str:
    inner = error.__traceback__.tb_next if error.__traceback__ else None
    return "".join(traceback.format_exception(type(error), error, inner))


def _here() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
