"""Constraints whose limits may move, and the box that those limits span.

thresholds: limits in natural units, by name or as n x k in the order of the movable constraints.
theta: the same in [0, 1], n x k, from strictest (0) to most relaxed (1).
requirement: one output that must obey one limit; a constraint on three outputs makes three of them.
y: raw outputs, n x q, in the order of the problem's outputs.

The flip of ">=" happens here and nowhere else: with sign +1 for "<=" and -1 for ">=", every requirement reads
sign * y <= sign * threshold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ConfigDict, PlainValidator, SkipValidation

from cbabo.domain.labels import check_name, check_unit
from cbabo.domain.notation import number
from cbabo.errors import InputError, shown
from cbabo.numerics.arrays import FloatArray, finite, number_rows

FEASIBILITY_TOLERANCE = 1e-9
"""How far an output may exceed its limit, in units of the limit's range, and still count as feasible."""

_Limit = Annotated[float | None, PlainValidator(number, json_schema_input_type=float | None)]
_Outputs = Annotated[str | tuple[str, ...] | list[str] | None, SkipValidation]

Thresholds = dict[str, float]
ThresholdsLike = (
    Mapping[str, float] | Sequence[Mapping[str, float]] | pd.DataFrame | Sequence[Sequence[float]] | FloatArray
)


@dataclass(frozen=True)
class Constraint:
    """A limit on one or several outputs: movable between low and high, or fixed at `limit`.

    Examples:
        >>> stress = Constraint("stress", "<=", low=100.0, high=200.0, unit="MPa")
        >>> stress.strictest, stress.most_relaxed, stress.movable
        (100.0, 200.0, True)
        >>> Constraint("mass", "<=", limit=12.0).movable
        False
    """

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    name: str
    """Name of the limit, and of the limited output unless `outputs` names others."""
    sense: Literal["<=", ">="] = "<="
    """Whether the limit is an upper or a lower one."""
    low: _Limit = field(default=None, kw_only=True)
    """Lower end of the range of a movable limit."""
    high: _Limit = field(default=None, kw_only=True)
    """Upper end of the range of a movable limit."""
    limit: _Limit = field(default=None, kw_only=True)
    """A fixed limit, instead of low and high."""
    unit: str = field(default="", kw_only=True)
    """Unit of the output, for display only."""
    nominal: _Limit = field(default=None, kw_only=True)
    """The limit that holds where a question states none; the middle of the range if left out."""
    outputs: _Outputs = field(default=None, kw_only=True)
    """The limited output, or a list of outputs that must all obey the limit; the name of the limit if left out."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", check_name("constraint", self.name))
        object.__setattr__(self, "unit", check_unit(f"constraint {self.name!r}", self.unit))
        if not isinstance(self.sense, str) or self.sense not in ("<=", ">="):
            raise InputError(
                f"constraint {self.name!r}: sense must be '<=' or '>=', got {shown(self.sense)}; "
                "equality constraints are not supported: state two limits, one <= and one >="
            )
        self._set_outputs()
        for key in ("low", "high", "limit", "nominal"):
            value = getattr(self, key)
            if value is not None:
                object.__setattr__(self, key, finite(f"constraint {self.name!r}: {key}", value))
        self._check_limits()

    def _set_outputs(self) -> None:
        given: Any = self.outputs
        if given is None or isinstance(given, str):
            given = [self.name if given is None else given]
        if not isinstance(given, list | tuple) or not given:
            raise InputError(f"constraint {self.name!r}: outputs must be a name or a list of names, got {shown(given)}")
        names = tuple(check_name(f"constraint {self.name!r}: outputs", name) for name in given)
        if len(set(names)) != len(names):
            raise InputError(f"constraint {self.name!r}: outputs must be different names, got {shown(names)}")
        object.__setattr__(self, "outputs", names)

    def _check_limits(self) -> None:
        if self.limit is not None:
            extra = [k for k in ("low", "high", "nominal") if getattr(self, k) is not None]
            if extra:
                raise InputError(
                    f"constraint {self.name!r}: a fixed limit excludes {extra[0]}; give limit, or low and high"
                )
            return
        if self.low is None or self.high is None:
            raise InputError(
                f"constraint {self.name!r}: expected low and high (a limit that may move) or limit (a fixed one)"
            )
        ends = f"low={self.low}, high={self.high}"
        if not self.low < self.high:
            raise InputError(f"constraint {self.name!r}: low must be below high, also for >=, got {ends}")
        if math.isinf(self.high - self.low):
            raise InputError(f"constraint {self.name!r}: the range must be smaller than 1e308, got {ends}")
        if self.nominal is not None and not self.low <= self.nominal <= self.high:
            raise InputError(
                f"constraint {self.name!r}: nominal must lie between {self.low} and {self.high}, got {self.nominal}"
            )

    @property
    def movable(self) -> bool:
        """Whether the limit is still being negotiated."""
        return self.limit is None

    @property
    def sign(self) -> float:
        """+1 for <=, -1 for >=."""
        return 1.0 if self.sense == "<=" else -1.0

    @property
    def output_names(self) -> tuple[str, ...]:
        """The outputs that must obey this limit."""
        assert isinstance(self.outputs, tuple)
        return self.outputs

    @property
    def strictest(self) -> float:
        """The end of the range that theta = 0 means (the limit itself where it is fixed)."""
        return self._end(self.low if self.sense == "<=" else self.high)

    @property
    def most_relaxed(self) -> float:
        """The end of the range that theta = 1 means (the limit itself where it is fixed)."""
        return self._end(self.high if self.sense == "<=" else self.low)

    @property
    def middle(self) -> float:
        """The middle of the range (the limit itself where it is fixed)."""
        return self.strictest + 0.5 * (self.most_relaxed - self.strictest)

    @property
    def scale(self) -> float:
        """The unit of tolerances: the range of a movable limit, the size of a fixed one."""
        if self.limit is not None:
            return abs(self.limit) or 1.0
        assert self.low is not None
        assert self.high is not None
        return self.high - self.low

    def _end(self, end: float | None) -> float:
        value = self.limit if end is None else end
        assert value is not None
        return value


@dataclass(frozen=True)
class ThresholdBox:
    """The constraints of a problem and the outputs they refer to; maps thresholds, slacks and feasibility."""

    constraints: tuple[Constraint, ...]
    outputs: tuple[str, ...]

    @property
    def movable(self) -> tuple[Constraint, ...]:
        """The constraints that thresholds and theta refer to, in order."""
        return tuple(c for c in self.constraints if c.movable)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the movable constraints, in order."""
        return tuple(c.name for c in self.movable)

    @property
    def nominal(self) -> Thresholds:
        """The nominal limits; the middle of the range where none is stated."""
        return {c.name: c.middle if c.nominal is None else c.nominal for c in self.movable}

    def complete(self, thresholds: Mapping[str, float]) -> Thresholds:
        """Return a limit for every movable constraint: those given, and the nominal ones where none is given."""
        if not isinstance(thresholds, Mapping):
            raise InputError(f"thresholds: expected a mapping of names to limits, got {shown(thresholds)}")
        return self.named(self._from_mapping("thresholds", {**self.nominal, **thresholds})[0])

    def to_theta(self, thresholds: FloatArray) -> FloatArray:
        """Map thresholds, n x k, to theta; values outside the box go outside [0, 1]."""
        strictest, relaxed = self._ends()
        return (thresholds - strictest) / (relaxed - strictest)

    def from_theta(self, theta: FloatArray) -> FloatArray:
        """Map theta, n x k, to thresholds; [0, 1] never leaves the box, and its ends come out exactly."""
        strictest, relaxed = self._ends()
        return np.where(theta == 1.0, relaxed, strictest + theta * (relaxed - strictest))

    def array(self, thresholds: ThresholdsLike) -> FloatArray:
        """Arrange thresholds, given by name, as a list of such mappings, as a table or as rows, as n x k."""
        if isinstance(thresholds, Mapping):
            return self._from_mapping("thresholds", thresholds)
        if isinstance(thresholds, pd.DataFrame):
            twice = thresholds.columns[thresholds.columns.duplicated()]
            if len(twice):
                raise InputError(f"thresholds: the column {shown(twice[0])} is there twice; remove one")
            return self._from_columns({n: thresholds[n].tolist() for n in thresholds.columns})
        if isinstance(thresholds, list | tuple) and any(isinstance(row, Mapping) for row in thresholds):
            return np.vstack([self._from_mapping(f"thresholds[{i}]", row) for i, row in enumerate(thresholds)])
        return number_rows("thresholds", thresholds, self.names)

    def row(self, thresholds: ThresholdsLike) -> FloatArray:
        """Arrange one limit for each constraint as 1 x k; several rows are refused."""
        rows = self.array(thresholds)
        if len(rows) != 1:
            raise InputError(f"thresholds: expected one limit for each constraint, got {len(rows)} rows")
        return rows

    def named(self, row: FloatArray) -> Thresholds:
        """Name the entries of one row of thresholds."""
        return {name: float(value) for name, value in zip(self.names, row, strict=True)}

    @property
    def scales(self) -> FloatArray:
        """The unit of every requirement's tolerance, r."""
        return np.array([c.scale for c in self.constraints for _ in c.output_names])

    def violations(self, y: FloatArray, thresholds: FloatArray) -> FloatArray:
        """Return sign * (y - limit) of every requirement, n x r: positive where a limit is broken."""
        columns = [
            c.sign * (y[:, self.outputs.index(name)] - limit)
            for c, limit in zip(self.constraints, self.limits(thresholds), strict=True)
            for name in c.output_names
        ]
        return np.column_stack(columns) if columns else np.zeros((len(y), 0))

    def governing(self, y: FloatArray, thresholds: FloatArray, parts: Sequence[int]) -> NDArray[np.int64]:
        """Return for each row (n) which of the parts of an output, columns of y (n x q), is closest to breaking a limit on it."""
        relative = self.violations(y, thresholds) / self.scales
        columns = np.array([self.outputs.index(name) for c in self.constraints for name in c.output_names])
        mine = np.flatnonzero(np.isin(columns, parts))
        if not len(mine):  # Nothing limits it, as happens where only a formula uses it: its largest part is shown.
            return np.asarray(np.array(parts)[y[:, list(parts)].argmax(axis=1)])
        return np.asarray(columns[mine[relative[:, mine].argmax(axis=1)]])

    def feasible(self, y: FloatArray, thresholds: FloatArray) -> NDArray[np.bool_]:
        """Tell for each row whether every requirement is obeyed within the tolerance."""
        obeyed: NDArray[np.bool_] = self.violations(y, thresholds) <= FEASIBILITY_TOLERANCE * self.scales
        return np.asarray(obeyed.all(axis=1))

    def obeyed(self, y: FloatArray, thresholds: FloatArray, unknown: bool = False) -> NDArray[np.bool_]:
        """Tell for every row of thresholds (b x k) which designs' outputs (n x q) obey it within the tolerance, b x n.

        unknown: what outputs that are NaN count as.
        """
        found = np.ones((len(thresholds), len(y)), dtype=np.bool_)
        for c, limit in zip(self.constraints, self.limits(thresholds), strict=True):
            for name in c.output_names:
                beyond = c.sign * (y[:, self.outputs.index(name)] - limit[:, None])
                found &= (beyond <= FEASIBILITY_TOLERANCE * c.scale) | (unknown & np.isnan(beyond))
        return found

    def limits(self, thresholds: FloatArray) -> list[FloatArray]:
        """Return for every constraint its limit in each row, the fixed ones repeated."""
        columns = iter(thresholds.T)
        return [next(columns) if c.limit is None else np.full(len(thresholds), c.limit) for c in self.constraints]

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        return np.array([c.strictest for c in self.movable]), np.array([c.most_relaxed for c in self.movable])

    def _from_mapping(self, where: str, row: object) -> FloatArray:
        if not isinstance(row, Mapping):
            raise InputError(f"{where}: expected a mapping of names to limits as in the other rows, got {shown(row)}")
        return self._from_columns({name: [value] for name, value in row.items()}, where)

    def _from_columns(self, columns: dict[str, list[Any]], where: str = "thresholds") -> FloatArray:
        for name in columns:
            if name not in self.names:
                raise InputError(f"{where}: {self._why_not(name)}; expected {', '.join(self.names)}")
        missing = [name for name in self.names if name not in columns]
        if missing:
            raise InputError(f"{where}: {missing[0]!r} is missing; expected {', '.join(self.names)}")
        for name, values in columns.items():
            columns[name] = [finite(f"{where}: {name}", v) for v in values]
        rows = np.array([columns[name] for name in self.names], dtype=np.float64)
        return rows.T.reshape(-1, len(self.names))

    def _why_not(self, name: object) -> str:
        fixed = any(c.name == name for c in self.constraints)
        return f"the limit of {name!r} is fixed by the problem" if fixed else f"unknown constraint {shown(name)}"
