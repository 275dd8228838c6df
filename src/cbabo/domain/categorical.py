"""Categorical variables: one of several labels that have no order.

In an array of natural values a label is its index in the list, as a float. In the unit cube a variable with m labels has m
columns, of which a legal design has one at 1 and the others at 0.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, PlainValidator

from cbabo.domain.labels import check_label, check_name
from cbabo.errors import InputError, shown
from cbabo.numerics.arrays import FloatArray

MOST_LABELS = 200
"""Labels of one variable at most: each is a column of the unit cube, and needs evaluations of its own."""


def require_type(schema: dict[str, Any]) -> None:
    """Require the type in a JSON Schema: it has a default in Python, but a file must state it."""
    schema["required"].append("type")


def _as_given(given: Any) -> Any:
    return given


_Labels = Annotated[tuple[str, ...], PlainValidator(_as_given, json_schema_input_type=list[str])]


@dataclass(frozen=True)
class Categorical:
    """One of several labels that have no order, such as a material.

    Examples:
        >>> material = Categorical("material", ["steel", "aluminium", "titanium"])
        >>> material.values
        ('steel', 'aluminium', 'titanium')
        >>> material.to_unit(np.array([1.0])).tolist()
        [[0.0, 1.0, 0.0]]
    """

    __pydantic_config__ = ConfigDict(extra="forbid", json_schema_extra=require_type, use_attribute_docstrings=True)
    name: str
    """Name of the variable."""
    values: _Labels
    """The labels, as text."""
    type: Literal["categorical"] = field(default="categorical", kw_only=True, repr=False)
    """The kind of variable."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", check_name("variable", self.name))
        owner = f"variable {self.name!r}"
        if self.type != "categorical":
            raise InputError(f"{owner}: its type is 'categorical', got {shown(self.type)}")
        given: Any = self.values
        given = given.tolist() if isinstance(given, np.ndarray) else given
        if isinstance(given, str | bytes) or not isinstance(given, Sequence):
            raise InputError(f"{owner}: values must be a list of labels, got {shown(given)}")
        labels = tuple(check_label(owner, label) for label in given)
        if len(set(labels)) != len(labels) or not 2 <= len(labels) <= MOST_LABELS:
            raise InputError(f"{owner}: values must be 2 to {MOST_LABELS} different labels, got {shown(list(labels))}")
        object.__setattr__(self, "values", labels)

    @property
    def unit(self) -> str:
        """A label has no unit."""
        return ""

    @property
    def legal(self) -> FloatArray:
        """The natural values: the indices of the labels."""
        return np.arange(len(self.values), dtype=np.float64)

    def to_unit(self, values: FloatArray) -> FloatArray:
        """Map indices of labels (n) to rows of the unit cube (n x m); NaN to rows of NaN."""
        known = np.isfinite(values)
        found = np.eye(len(self.values))[self._index(np.where(known, values, 0.0))]
        return found if known.all() else np.where(known[:, None], found, np.nan)

    def from_unit(self, u: FloatArray) -> FloatArray:
        """Map rows of the unit cube (n x m) to the indices of the largest columns (n), the first where several are equal."""
        return np.asarray(u.argmax(1), dtype=np.float64)

    def spread(self, u: FloatArray) -> FloatArray:
        """Map uniform draws (n) to indices, each with the same share."""
        return self._index(np.floor(u * len(self.values))).astype(np.float64)

    def label(self, index: float) -> str:
        """Return the label of an index."""
        return self.values[int(index)]

    def index(self, label: str) -> float:
        """Return the index of a label; NaN of one that an amended problem no longer has."""
        return float(self.values.index(label)) if label in self.values else np.nan

    def check(self, label: object) -> str:
        """Return a legal label, or say which ones there are."""
        if isinstance(label, str) and str(label) in self.values:
            return str(label)
        lowered = {known.lower(): known for known in reversed(self.values)}
        near = difflib.get_close_matches(str(label).strip().lower(), lowered, n=1, cutoff=0.6)
        advice = f"; did you mean {lowered[near[0]]!r}?" if near else ""
        raise InputError(f"point: {self.name} must be one of {shown(list(self.values))}, got {shown(label)}{advice}")

    def _index(self, values: FloatArray) -> NDArray[np.int64]:
        return np.clip(values, 0, len(self.values) - 1).astype(np.int64)
