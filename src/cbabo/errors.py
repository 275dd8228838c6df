"""Every exception this package raises on purpose.

A message is one sentence: what was expected, what came, and what to do about it.
"""

from __future__ import annotations

import reprlib
from typing import Literal

Cause = Literal["design", "set-up"]
"""What a failed evaluation is due to: the simulator fails at this design, or something that says nothing about the design."""


class CbaboError(Exception):
    """The common ancestor: catch this to catch everything that the package raises on purpose."""


class InputError(CbaboError, ValueError):
    """Something the user stated (a problem, a file, a threshold, a point) is not acceptable."""


class MissingExtraError(CbaboError, ImportError):
    """An optional part of the package was used, and what it needs is not installed."""


class StorageError(CbaboError):
    """The database cannot be used: missing, damaged, or of another version."""


class OutageError(StorageError):
    """The database does not answer at the moment, but may do so again: it is locked, restarted, or out of reach."""


class ConflictError(StorageError):
    """The database refuses a row, because there is one like it or because it is incomplete."""


class StudyError(CbaboError):
    """A study refuses an operation: a wrong trial, a finished trial, a contradiction with what is stored."""


class StudyLockedError(StudyError):
    """Another process is optimising this study."""


class SurrogateError(CbaboError):
    """Surrogates cannot be fitted to the data, or were given data of another shape than theirs."""


class ModelError(CbaboError):
    """A model cannot be made or read: too few evaluations, or a file that is damaged, foreign or newer."""


class EvaluationError(CbaboError):
    """One evaluation failed; evaluators raise it to give the reason, the log and whether trying again may help.

    cause: "set-up" if the failure says nothing about the design (no licence, a full disk), so that nothing is learned from it.

    Examples:
        >>> raise EvaluationError("the mesh is too coarse", retryable=True)
        Traceback (most recent call last):
            ...
        cbabo.errors.EvaluationError: the mesh is too coarse
    """

    def __init__(self, reason: str, *, log: str = "", retryable: bool = False, cause: Cause = "design") -> None:
        super().__init__(reason)
        self.reason = reason
        self.log = log
        self.retryable = retryable
        self.cause = cause

    def __reduce__(self) -> tuple[object, ...]:
        return (_evaluation_error, (self.reason, self.log, self.retryable, self.cause))


def _evaluation_error(reason: str, log: str, retryable: bool, cause: Cause = "design") -> EvaluationError:
    return EvaluationError(reason, log=log, retryable=retryable, cause=cause)


class RunStoppedError(CbaboError):
    """A run ended early for a stated cause: too many failures, or a broken executor."""


def shown(value: object) -> str:
    """Write what came into a message: short and on one line, whatever it is."""
    try:
        text = _SHORT.repr(value)
    except Exception:  # a foreign __repr__, or an int with more digits than Python agrees to print
        text = f"<{type(value).__name__}>"
    text = " ".join(line.strip() for line in text.splitlines())
    return text if len(text) <= 120 else f"{text[:80]}...{text[-37:]}"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlong = 40
