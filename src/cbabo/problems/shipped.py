"""The type of a shipped problem: problem statement, function, source and known optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cbabo.domain.constraints import Constraint
from cbabo.domain.problem import Objective, Problem
from cbabo.domain.space import Discrete, Integer, Real
from cbabo.errors import InputError
from cbabo.numerics.arrays import FloatArray

Suite = Literal["paper", "variant", "active"]
Function = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Optimum:
    """The best known design where every threshold is zero.

    >>> Optimum(value=-15.0, design=(1.0, 1.0)).value
    -15.0
    """

    value: float
    """The best objective value on record: printed in the literature, or worked out exactly."""

    design: tuple[float, ...]
    """A design, in natural units and the order of the variables, that is feasible and reaches the value
    within 1e-6 of max(1, |value|); other designs may be as good."""


@dataclass(frozen=True)
class ShippedProblem:
    """A benchmark problem that comes with the package; instances are frozen.

    >>> from cbabo import problems
    >>> truss = problems.get("three_truss")
    >>> truss.name, truss.suite, round(truss.optimum.value, 2)
    ('three_truss', 'paper', 263.9)
    """

    problem: Problem
    """Variables x1, x2, ...; objective f, to be minimised; constraints c1, c2, ...: each <= its limit."""

    suite: Suite
    """Where it belongs: the paper's problems, the literature's variants, or boxes in which limits bind."""

    function: Function
    """Maps designs, n x d in natural units, to objective values, n, and constraint values, n x m."""

    source: str
    """The publication or the code that the formulas and bounds come from."""

    optimum: Optimum | None = None
    """The best known at theta = 0; None where none is on record or zero is outside the threshold box."""

    notes: str = ""
    """Remarks on the interpretation of results; may be empty."""

    @property
    def name(self) -> str:
        """The name that `get` knows it by."""
        return self.problem.name

    def evaluate(self, point: Mapping[str, Any]) -> dict[str, float]:
        """Return f, c1, c2, ... of one point; an illegal value raises an error that names it.

        >>> from cbabo import problems
        >>> outputs = problems.get("three_truss").evaluate({"x1": 0.8, "x2": 0.4})
        >>> {name: round(value, 2) for name, value in outputs.items()}
        {'f': 266.27, 'c1': -0.02, 'c2': -1.48, 'c3': -0.54}
        """
        legal = self.problem.space.check(point)
        f, c = self.function(self.problem.space.array([legal]))
        return dict(zip(self.problem.outputs, [*f.tolist(), *c[0].tolist()], strict=True))

    def evaluate_many(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return f (n) and c (n x m) of designs, n x d in natural units; their legality is not checked.

        >>> from cbabo import problems
        >>> f, c = problems.get("three_truss").evaluate_many([[0.8, 0.4], [0.5, 0.5]])
        >>> f.shape, c.shape
        ((2,), (2, 3))
        """
        rows = np.asarray(X, dtype=np.float64)
        d = self.problem.space.dimension
        if rows.ndim != 2 or rows.shape[1] != d:
            raise InputError(
                f"problem {self.name!r}: expected designs as n rows and {d} columns, got shape {rows.shape}; "
                "give one row per design"
            )
        return self.function(rows)


def stated(
    name: str,
    bounds: Sequence[tuple[float, float]],
    box: Sequence[tuple[float, float]],
    *,
    integers: Sequence[str] = (),
    discrete: Mapping[str, Sequence[float]] | None = None,
) -> Problem:
    """State a problem from the bounds of its variables and the ranges of its limits, both in order.

    Variables are continuous unless `integers` names them or `discrete` lists their values.

    >>> problem = stated("beam", bounds=[(0.0, 1.0), (1.0, 9.0)], box=[(0.0, 2.0)], integers=["x2"])
    >>> problem.outputs
    ('f', 'c1')
    """
    variables: list[Real | Integer | Discrete] = []
    for i, (low, high) in enumerate(bounds, start=1):
        variable = f"x{i}"
        if discrete is not None and variable in discrete:
            variables.append(Discrete(variable, tuple(discrete[variable])))
        elif variable in integers:
            variables.append(Integer(variable, int(low), int(high)))
        else:
            variables.append(Real(variable, low, high))
    constraints = [Constraint(f"c{j}", "<=", low=low, high=high) for j, (low, high) in enumerate(box, start=1)]
    return Problem(name, variables, Objective("f"), constraints)
