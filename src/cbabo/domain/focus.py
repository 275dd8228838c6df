"""The thresholds under discussion, with weights: where a study should be good when not everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cbabo.domain.constraints import ThresholdBox, ThresholdsLike
from cbabo.errors import InputError, shown
from cbabo.numerics.arrays import FloatArray, is_number


@dataclass(frozen=True)
class Focus:
    """Thresholds that matter, one row each, and how much each matters."""

    thresholds: tuple[tuple[float, ...], ...]
    """Natural units, n x k, in the order of the movable constraints."""
    weights: tuple[float, ...]
    """Positive, one per row, adding up to 1."""

    @classmethod
    def of(cls, box: ThresholdBox, given: ThresholdsLike) -> Focus:
        """Read thresholds with an optional "weight" in each row (unless a movable constraint bears that name)."""
        given, weights = _apart(box, given)
        try:
            rows = box.array(given)
        except InputError as error:
            raise InputError(f"focus: {error}") from error
        if not len(rows):
            raise InputError("focus: expected at least one row of thresholds, got none; pass None for the whole box")
        _refuse_outside(box, rows)
        weights = [1.0] * len(rows) if weights is None else weights
        wrong = [w for w in weights if not is_number(w) or w <= 0]
        if wrong:
            raise InputError(f"focus: weights must be positive numbers, got {shown(wrong[0])}")
        largest = max(float(w) for w in weights)
        shares = [float(w) / largest for w in weights]  # so that the sum is finite
        total = math.fsum(shares)
        return cls(tuple(tuple(map(float, row)) for row in rows), tuple(share / total for share in shares))

    @property
    def array(self) -> FloatArray:
        """The thresholds, n x k."""
        return np.array(self.thresholds, dtype=np.float64)


def _apart(box: ThresholdBox, given: Any) -> tuple[Any, list[Any] | None]:
    """Take the weights out of what was given."""
    if "weight" in box.names:
        return given, None
    if isinstance(given, pd.DataFrame) and list(given.columns).count("weight") == 1:
        return given.drop(columns="weight"), given["weight"].tolist()
    if isinstance(given, Mapping) and "weight" in given:
        return _without_weight(given), [given["weight"]]
    if isinstance(given, list | tuple) and any(isinstance(row, Mapping) for row in given):
        weights = [row.get("weight", 1.0) if isinstance(row, Mapping) else 1.0 for row in given]
        return [_without_weight(row) if isinstance(row, Mapping) else row for row in given], weights
    return given, None


def _without_weight(row: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: value for name, value in row.items() if name != "weight"}


def _refuse_outside(box: ThresholdBox, rows: FloatArray) -> None:
    for constraint, column in zip(box.movable, rows.T, strict=True):
        low, high = sorted((constraint.strictest, constraint.most_relaxed))
        outside = column[(column < low) | (column > high)]
        if len(outside):
            raise InputError(f"focus: {constraint.name} must lie between {low} and {high}, got {float(outside[0])}")
