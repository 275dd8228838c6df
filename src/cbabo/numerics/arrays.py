"""The array type of the package, and validation of numbers that a user passes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from cbabo.errors import InputError, shown

FloatArray = NDArray[np.float64]
"""A NumPy array in double precision."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite real number; a bool is not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # The value is an int beyond the largest float.
        return False


def finite(where: str, value: object) -> float:
    """Return a finite number as a float; -0.0 becomes 0.0, because both are equal but print differently."""
    if not is_number(value):
        raise InputError(f"{where} must be a finite number, got {shown(value)}")
    return float(value) + 0.0


def number_rows(where: str, rows: object, columns: Sequence[str]) -> FloatArray:
    """Return rows of finite numbers as an array (n x number of columns); raise InputError for anything else."""
    expected = f"{where}: expected n rows and {len(columns)} columns ({', '.join(columns)})"
    try:
        array = np.asarray(rows)
        if array.dtype.kind not in "fiuO":
            raise TypeError(array.dtype)
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{expected} of numbers, got {shown(rows)}") from error
    if array.ndim != 2 or array.shape[1] != len(columns):
        raise InputError(f"{expected}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{where}: expected finite numbers, got NaN or infinity")
    return array
