"""The type of a shipped problem: problem statement, function, source and known optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cbabo.domain.constraints import Constraint
from cbabo.domain.current import current_evaluation
from cbabo.domain.problem import Objective, Problem
from cbabo.domain.space import Discrete, Integer, Real
from cbabo.errors import InputError
from cbabo.numerics import seeding
from cbabo.numerics.arrays import FloatArray
from cbabo.problems.noise import Noise

Suite = Literal["paper", "variant", "active", "rough", "categorical"]
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
class Piece:
    """A smooth function that equals the function of a problem, with maxima resolved into what they are the largest of.

    A problem with a switch has a piece for each state of it; one that fails somewhere has a piece without failures.
    """

    function: Function
    """Maps designs, n x d in natural units, to objective values, n, and values, n x p; finite everywhere."""

    limited_by: tuple[int | None, ...]
    """For each value the index of the constraint whose limit it has to obey; None: the piece holds where it is at most zero."""


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
    """Where it belongs: the paper's problems, the literature's variants, boxes in which limits bind, rough functions, or a choice
    of materials."""

    function: Function
    """Maps designs, n x v in natural units, to objective values, n, and the other outputs, n x (q - 1), without noise; NaN
    where the simulator fails. A label is its index."""

    source: str
    """The publication or the code that the formulas and bounds come from."""

    optimum: Optimum | None = None
    """The best known at theta = 0; None where none is on record or zero is outside the threshold box."""

    notes: str = ""
    """Remarks on the interpretation of results; may be empty."""

    noise: Noise | None = None
    """What `evaluate` adds to the values of the function; None if it is deterministic."""

    optima_of: str = ""
    """The name of the shipped problem whose true optima are also this one's; empty if it has its own."""

    pieces: tuple[Piece, ...] = ()
    """Smooth functions of which the function consists; empty if it is smooth itself where its optima lie."""

    @property
    def name(self) -> str:
        """The name that `get` knows it by."""
        return self.problem.name

    def evaluator(self, seed: int) -> Evaluator:
        """Return the problem as a simulator whose noise is that of this seed.

        >>> from cbabo import problems
        >>> noisy = problems.get("three_truss_noise5")
        >>> point = {"x1": 0.8, "x2": 0.4}
        >>> noisy.evaluator(1)(point) == noisy.evaluator(1)(point) != noisy.evaluator(2)(point)
        True
        """
        return Evaluator(self, seed)

    @cached_property
    def _evaluator(self) -> Evaluator:
        return self.evaluator(0)

    @property
    def whole(self) -> Piece:
        """The function itself as a piece."""
        return Piece(self.function, tuple(j for j, c in enumerate(self.problem.constraints) for _ in c.output_names))

    def evaluate(self, point: Mapping[str, Any]) -> dict[str, float]:
        """Return f, c1, c2, ... of one point, with the noise of seed 0; an illegal value raises an error that names it.

        >>> from cbabo import problems
        >>> outputs = problems.get("three_truss").evaluate({"x1": 0.8, "x2": 0.4})
        >>> {name: round(value, 2) for name, value in outputs.items()}
        {'f': 266.27, 'c1': -0.02, 'c2': -1.48, 'c3': -0.54}
        """
        return self._evaluator(point)

    def evaluate_many(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return f (n) and c (n x (q - 1)), without noise, of designs, n x v in natural units; their legality is not checked.

        A label is its index in the list of its variable.

        >>> from cbabo import problems
        >>> f, c = problems.get("three_truss").evaluate_many([[0.8, 0.4], [0.5, 0.5]])
        >>> f.shape, c.shape
        ((2,), (2, 3))
        """
        rows = np.asarray(X, dtype=np.float64)
        d = len(self.problem.variables)
        if rows.ndim != 2 or rows.shape[1] != d:
            raise InputError(
                f"problem {self.name!r}: expected designs as n rows and {d} columns, got shape {rows.shape}; "
                "give one row per design"
            )
        return self.function(rows)


class Evaluator:
    """A shipped problem as a simulator with the noise of one seed.

    Within an evaluation of a study the noise depends on the seed and the evaluation's number only, so that a run is reproducible
    in any process. Elsewhere it depends on the seed, the design and the number of calls of this object before.
    """

    def __init__(self, shipped: ShippedProblem, seed: int) -> None:
        self.shipped = shipped
        self.seed = seed
        self._calls = 0

    def __call__(self, point: Mapping[str, Any]) -> dict[str, float]:
        """Return f, c1, c2, ... of one point; an illegal value raises an error that names it."""
        problem = self.shipped.problem
        x = problem.space.array([problem.space.check(point)])
        f, c = self.shipped.function(x)
        y = np.append(f, c[0])
        if self.shipped.noise is not None:
            y = self.shipped.noise.measured(y, self._generator(x))
        return dict(zip(problem.outputs, y.tolist(), strict=True))

    def _generator(self, x: FloatArray) -> np.random.Generator:
        number = current_evaluation.get()
        if number is not None:
            return seeding.child(self.seed, "noise", self.shipped.name, "evaluation", number)
        self._calls += 1
        return seeding.child(self.seed, "noise", self.shipped.name, "call", self._calls, x.tobytes().hex())


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
