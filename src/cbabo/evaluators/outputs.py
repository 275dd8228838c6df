"""What counts as an output: one rule for what simulators return, what a person tells, and imported rows."""

from __future__ import annotations

from typing import Any

from cbabo.errors import InputError, shown


def output_number(name: str, value: Any) -> float:
    """Return a real scalar (Python's, NumPy's, a 0-d array or tensor) as a float; refuse everything else.

    A bool and a text are no numbers. NaN and infinity pass: they are what a simulator says when it fails.
    """
    number = value
    try:
        if hasattr(value, "item") and hasattr(value, "shape"):
            if tuple(value.shape) != ():
                raise TypeError
            number = value.item()
        if isinstance(number, bool) or not (hasattr(number, "__float__") or hasattr(number, "__index__")):
            raise TypeError
        return float(number)
    except OverflowError:
        raise InputError(
            f"the output {name!r} must be a finite number, but is too large for one: {shown(value)}"
        ) from None
    except Exception:
        raise InputError(
            f"the output {name!r} must be one number, but is {shown(value)} (of type {type(value).__name__})"
        ) from None


def not_finite(name: str, number: float) -> str:
    """Say why an evaluation with such an output is a failure."""
    return f"the output {name!r} must be a finite number, but is {number}"
