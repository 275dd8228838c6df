"""Variables and the unit cube.

x is n x d in [0, 1]: the designs as the method sees them. A point is one design in natural units, by name; the
values in a point are always legal: inside the bounds, integers whole, discrete values and labels exactly from their list.

A variable is one column of the unit cube, a categorical variable one column for each label, of which a legal design has one at 1
and the others at 0. So d, the number of columns, is larger than the number of variables v where variables are categorical.
Natural values in arrays are n x v, a label being its index.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ConfigDict, Field, PlainValidator

from cbabo.domain.categorical import Categorical, require_type
from cbabo.domain.labels import check_name, check_unit
from cbabo.domain.notation import number
from cbabo.errors import InputError, shown
from cbabo.numerics.arrays import FloatArray, finite, is_number, number_rows

Point = dict[str, Any]
"""A design by variable name: numbers, an int for an integer variable, and labels for categorical variables."""


def _read_numbers(given: Any) -> Any:
    return [number(v) for v in given] if isinstance(given, list | tuple) else given


Number = Annotated[float, PlainValidator(number, json_schema_input_type=float)]
"""A number as a file may state it; the dataclass that holds it judges it."""

_Whole = Annotated[int, PlainValidator(number, json_schema_input_type=int)]
_Numbers = Annotated[tuple[float, ...], PlainValidator(_read_numbers, json_schema_input_type=list[float])]
_STRICT = ConfigDict(extra="forbid", json_schema_extra=require_type, use_attribute_docstrings=True)
_TOLERANCE = 1e-9  # of a variable's range: how far off a legal value an imported number may be


@dataclass(frozen=True)
class Real:
    """A continuous variable; with `log=True` the unit cube is laid out on its logarithm.

    Examples:
        >>> Real("width", 1.0, 3.0, unit="mm")
        Real(name='width', low=1.0, high=3.0, log=False, unit='mm')
    """

    __pydantic_config__ = _STRICT
    name: str
    """Name of the variable."""
    low: Number
    """Lower bound."""
    high: Number
    """Upper bound."""
    log: bool = False
    """Whether the variable is searched on a logarithmic scale; needs a positive lower bound."""
    unit: str = ""
    """Unit of the variable, for display only."""
    type: Literal["real"] = field(default="real", kw_only=True, repr=False)
    """The kind of variable."""

    def __post_init__(self) -> None:
        _check_labels(self, "real")
        _check_bounds(self)
        if not isinstance(self.log, bool | np.bool_):
            raise InputError(f"variable {self.name!r}: log must be True or False, got {shown(self.log)}")
        object.__setattr__(self, "log", bool(self.log))
        if self.log and self.low <= 0:
            raise InputError(f"variable {self.name!r}: log=True needs low > 0, got low={self.low!r}")
        if self.log and math.isinf(self.high / self.low):
            raise InputError(f"variable {self.name!r}: high / low is too large for log=True, raise low={self.low!r}")

    @property
    def values(self) -> None:
        """A continuous variable has no list of values."""

    def to_unit(self, values: FloatArray) -> FloatArray:
        """Map natural values to [0, 1]."""
        if self.log:
            return np.asarray(np.log(values / self.low) / math.log(self.high / self.low))
        return (values - self.low) / (self.high - self.low)

    def from_unit(self, u: FloatArray) -> FloatArray:
        """Map [0, 1] to natural values, never outside the bounds."""
        u = np.clip(u, 0.0, 1.0)
        if self.log:
            values = self.low * np.exp(u * math.log(self.high / self.low))
        else:
            values = self.low + u * (self.high - self.low)
        return np.clip(np.where(u == 1.0, self.high, values), self.low, self.high)

    def spread(self, u: FloatArray) -> FloatArray:
        """Map uniform draws to natural values that fill the unit interval evenly."""
        return self.from_unit(u)


class _Lattice(ABC):
    """What Integer and Discrete share: a sorted list of legal values, placed in the unit interval by value."""

    name: str

    @abstractmethod
    def _legal(self) -> FloatArray:
        """Return the legal values in ascending order."""

    def to_unit(self, values: FloatArray) -> FloatArray:
        """Map natural values to [0, 1]."""
        legal = self._legal()
        return np.asarray((values - legal[0]) / (legal[-1] - legal[0]))

    def from_unit(self, u: FloatArray) -> FloatArray:
        """Map [0, 1] to the nearest legal value."""
        legal = self._legal()
        return legal[_nearest(legal, legal[0] + np.clip(u, 0.0, 1.0) * (legal[-1] - legal[0]))]

    def spread(self, u: FloatArray) -> FloatArray:
        """Map uniform draws to legal values, each with the same share."""
        legal = self._legal()
        return legal[np.clip((u * len(legal)).astype(np.int64), 0, len(legal) - 1)]


@dataclass(frozen=True)
class Integer(_Lattice):
    """A whole number between low and high, both included.

    Examples:
        >>> Integer("teeth", 17, 19).values
        (17, 18, 19)
    """

    __pydantic_config__ = _STRICT
    name: str
    """Name of the variable."""
    low: _Whole
    """Smallest value."""
    high: _Whole
    """Largest value."""
    unit: str = ""
    """Unit of the variable, for display only."""
    type: Literal["integer"] = field(default="integer", kw_only=True, repr=False)
    """The kind of variable."""

    def __post_init__(self) -> None:
        _check_labels(self, "integer")
        _check_bounds(self)
        for bound in ("low", "high"):
            value = getattr(self, bound)
            if value != int(value) or abs(value) > 2**53:
                expected = "whole" if value != int(value) else "between -2**53 and 2**53"
                raise InputError(f"variable {self.name!r}: {bound} of an Integer must be {expected}, got {value!r}")
            object.__setattr__(self, bound, int(value))
        if self.high - self.low > 1_000_000:
            raise InputError(
                f"variable {self.name!r}: an Integer with more than 1,000,000 values is better stated as a Real"
            )

    @property
    def values(self) -> tuple[float, ...]:
        """All legal values, ascending."""
        return tuple(range(self.low, self.high + 1))

    def _legal(self) -> FloatArray:
        return np.arange(self.low, self.high + 1, dtype=np.float64)


@dataclass(frozen=True)
class Discrete(_Lattice):
    """One of a list of numbers, in ascending order.

    Examples:
        >>> Discrete("gauge", [0.345, 0.192]).values
        (0.192, 0.345)
    """

    __pydantic_config__ = _STRICT
    name: str
    """Name of the variable."""
    values: _Numbers
    """Two or more different numbers; kept in ascending order."""
    unit: str = ""
    """Unit of the variable, for display only."""
    type: Literal["discrete"] = field(default="discrete", kw_only=True, repr=False)
    """The kind of variable."""

    def __post_init__(self) -> None:
        _check_labels(self, "discrete")
        given: Any = self.values
        given = given.tolist() if isinstance(given, np.ndarray) else given
        if isinstance(given, str | bytes) or not isinstance(given, Sequence):
            raise InputError(f"variable {self.name!r}: values must be a list of numbers, got {shown(given)}")
        if any(not is_number(v) for v in given):
            raise InputError(
                f"variable {self.name!r}: values must be finite numbers, got {shown(list(given))}; "
                "labels are the values of a Categorical"
            )
        values = sorted(float(v) + 0.0 for v in given)
        if len(set(values)) != len(values) or len(values) < 2:
            raise InputError(
                f"variable {self.name!r}: values must be two or more different numbers, got {shown(values)}"
            )
        object.__setattr__(self, "values", tuple(values))
        _check_range(self)
        if not np.array_equal(self.from_unit(self.to_unit(self._legal())), self._legal()):
            raise InputError(
                f"variable {self.name!r}: some values are too close together to be told apart, got {shown(values)}"
            )

    @property
    def low(self) -> float:
        """The smallest value."""
        return self.values[0]

    @property
    def high(self) -> float:
        """The largest value."""
        return self.values[-1]

    def _legal(self) -> FloatArray:
        return np.asarray(self.values, dtype=np.float64)


Numeric = Real | Integer | Discrete
"""A variable whose values are numbers."""
AnyVariable = Real | Integer | Discrete | Categorical
"""A variable of any kind."""
Variable = Annotated[AnyVariable, Field(discriminator="type")]


@dataclass(frozen=True)
class Space:
    """The variables in order, and the only crossing between points and the unit cube."""

    variables: tuple[AnyVariable, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in order."""
        return tuple(v.name for v in self.variables)

    @cached_property
    def columns(self) -> tuple[int | slice, ...]:
        """For each variable its column of the unit cube; the columns of a categorical one."""
        found: list[int | slice] = []
        start = 0
        for v in self.variables:
            width = len(v.values) if isinstance(v, Categorical) else 1
            found.append(slice(start, start + width) if isinstance(v, Categorical) else start)
            start += width
        return tuple(found)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of the unit cube: "material=steel" for a label."""
        return tuple(
            name
            for v in self.variables
            for name in ([f"{v.name}={label}" for label in v.values] if isinstance(v, Categorical) else [v.name])
        )

    @property
    def dimension(self) -> int:
        """How many columns the unit cube has: one for each variable, and for a categorical one as many as it has labels."""
        return len(self.column_names)

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """Which columns of the unit cube (d) may have any value."""
        mask = np.zeros(self.dimension, dtype=np.bool_)
        for v, at in zip(self.variables, self.columns, strict=True):
            mask[at] = isinstance(v, Real)
        return mask

    @cached_property
    def categories(self) -> tuple[slice, ...]:
        """The columns of each categorical variable."""
        return tuple(at for at in self.columns if isinstance(at, slice))

    @cached_property
    def of_numbers(self) -> NDArray[np.int64]:
        """The columns of the variables that are numbers."""
        return np.array([at for at in self.columns if isinstance(at, int)], dtype=np.int64)

    @property
    def size(self) -> int | None:
        """How many designs there are; None if a variable is continuous."""
        counts = [None if isinstance(v, Real) else len(v.values) for v in self.variables]
        return None if None in counts else math.prod(counts)  # type: ignore[arg-type]

    def designs(self) -> Iterator[Point]:
        """Go through all designs of a space without continuous variables, the first variable slowest."""
        for values in itertools.product(*(v.values for v in self.variables if not isinstance(v, Real))):
            yield dict(zip(self.names, values, strict=True))

    def points(self, x: ArrayLike) -> list[Point]:
        """Turn rows of the unit cube into legal points."""
        return [self._point(row) for row in self.natural(x)]

    def named(self, values: ArrayLike) -> list[Point]:
        """Turn legal natural values, n x v, into points."""
        return [self._point(row) for row in number_rows("designs", values, self.names)]

    def natural(self, x: ArrayLike) -> FloatArray:
        """Turn rows of the unit cube into legal natural values, n x v."""
        x = number_rows("designs", x, self.column_names)
        return np.column_stack([v.from_unit(x[:, at]) for v, at in zip(self.variables, self.columns, strict=True)])

    def snap(self, x: ArrayLike) -> FloatArray:
        """Move rows of the unit cube to the nearest legal designs."""
        return self.unit(self.natural(x))

    def spread(self, u: ArrayLike) -> list[Point]:
        """Turn uniform draws, n x v, into points; every legal value of a lattice, and every label, gets the same share."""
        u = number_rows("designs", u, self.names)
        values = np.column_stack([v.spread(u[:, i]) for i, v in enumerate(self.variables)])
        return [self._point(row) for row in values]

    def unit(self, values: ArrayLike) -> FloatArray:
        """Turn natural values, n x v, into rows of the unit cube."""
        return np.clip(self.unbounded(number_rows("designs", values, self.names)), 0.0, 1.0)

    def unbounded(self, values: FloatArray) -> FloatArray:
        """Turn natural values, n x v, into coordinates of the unit cube, which lie outside it where the values do.

        They are NaN for values that a logarithmic variable cannot have, and for labels that there are not.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.column_stack([v.to_unit(values[:, i]) for i, v in enumerate(self.variables)])

    def array(self, points: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Arrange points as natural values, n x v."""
        rows = [
            [v.index(p[v.name]) if isinstance(v, Categorical) else p[v.name] for v in self.variables] for p in points
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, len(self.variables))

    def inside(self, points: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
        """Tell which points (n) are designs of this space; others are of a problem that was amended."""
        found = np.ones(len(points), dtype=np.bool_)
        for v in self.variables:
            found &= _legal(v, [point[v.name] for point in points])
        return found

    def check(self, point: Mapping[str, Any]) -> Point:
        """Return the point with legal values, or say which value is not legal."""
        if not isinstance(point, Mapping):
            raise InputError(f"point: expected a value for each of {', '.join(self.names)}, got {shown(point)}")
        unknown = [name for name in point if name not in self.names]
        if unknown:
            raise InputError(f"point: unknown variable {shown(unknown[0])}; expected {', '.join(self.names)}")
        return {v.name: _check_value(v, point) for v in self.variables}

    def _point(self, values: FloatArray) -> Point:
        return {v.name: _value(v, value) for v, value in zip(self.variables, values, strict=True)}


def _value(variable: AnyVariable, value: float) -> Any:
    if isinstance(variable, Categorical):
        return variable.label(value)
    return int(value) if isinstance(variable, Integer) else float(value)


def _check_labels(variable: Numeric, kind: str) -> None:
    object.__setattr__(variable, "name", check_name("variable", variable.name))
    object.__setattr__(variable, "unit", check_unit(f"variable {variable.name!r}", variable.unit))
    if variable.type != kind:
        raise InputError(f"variable {variable.name!r}: its type is {kind!r}, got {shown(variable.type)}")


def _check_bounds(variable: Real | Integer) -> None:
    for bound in ("low", "high"):
        value = finite(f"variable {variable.name!r}: {bound}", getattr(variable, bound))
        object.__setattr__(variable, bound, value)
    _check_range(variable)


def _check_range(variable: Numeric) -> None:
    ends = f"low={variable.low!r}, high={variable.high!r}"
    if not variable.low < variable.high:
        raise InputError(f"variable {variable.name!r}: low must be below high, got {ends}")
    if math.isinf(variable.high - variable.low):
        raise InputError(f"variable {variable.name!r}: the range must be smaller than 1e308, got {ends}")


def _legal(variable: AnyVariable, values: Sequence[Any]) -> NDArray[np.bool_]:
    """Tell which values a variable may have; rounding does not matter."""
    if isinstance(variable, Categorical | Discrete):
        legal: set[Any] = set(variable.values)
        return np.array([value in legal for value in values], dtype=np.bool_)
    given = np.asarray(values, dtype=np.float64)
    tolerance = _TOLERANCE * (variable.high - variable.low)
    found = (given >= variable.low - tolerance) & (given <= variable.high + tolerance)
    return found if isinstance(variable, Real) else found & (np.abs(given - np.rint(given)) <= tolerance)


def _check_value(variable: AnyVariable, point: Mapping[str, Any]) -> Any:
    if variable.name not in point:
        raise InputError(f"point: variable {variable.name!r} is missing; give all variables")
    if isinstance(variable, Categorical):
        return variable.check(point[variable.name])
    value = finite(f"point: {variable.name}", point[variable.name])
    tolerance = _TOLERANCE * (variable.high - variable.low)
    below = _TOLERANCE * variable.low if isinstance(variable, Real) and variable.log else tolerance
    if not variable.low - below <= value <= variable.high + tolerance:
        raise InputError(
            f"point: {variable.name} must lie between {variable.low!r} and {variable.high!r}, got {value!r}"
        )
    if isinstance(variable, Real):
        return min(max(value, variable.low), variable.high)
    legal = variable._legal()
    nearest = float(legal[_nearest(legal, np.array([value]))[0]])
    if abs(nearest - value) > min(tolerance, 1e-3 * float(np.diff(legal).min())):
        expected = "a whole number" if isinstance(variable, Integer) else f"one of {shown(list(variable.values))}"
        raise InputError(f"point: {variable.name} must be {expected}, got {value!r}")
    return int(nearest) if isinstance(variable, Integer) else nearest


def _nearest(legal: FloatArray, values: FloatArray) -> NDArray[np.int64]:
    right = np.clip(np.searchsorted(legal, values), 1, len(legal) - 1)
    return np.where(values - legal[right - 1] <= legal[right] - values, right - 1, right)
