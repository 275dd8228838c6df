"""The rough suite's problems with kinks: limits on the largest of many values, on members that buckle, and behind a stop.

Each structure comes twice: with the largest of its members' values as one output, and, ending in "_members", with a limit on the
values of all members. Both have the same optima.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cbabo.domain.constraints import Constraint
from cbabo.domain.problem import Objective, Problem
from cbabo.domain.space import Real
from cbabo.problems import kinked_functions as functions
from cbabo.problems.shipped import Function, Piece, ShippedProblem, stated

_SOURCE = "This package: steel structures by the finite element method, in linear elasticity."

Range = tuple[float, float]


def _both(
    name: str,
    bounds: Sequence[Range],
    box: Sequence[Range],
    largest: Function,
    each: Function,
    members: int,
    parts: Piece | None = None,
) -> tuple[ShippedProblem, ShippedProblem]:
    """State a problem with the largest of its members' values, and the same with all members."""
    problem = stated(name, bounds, box)
    first, *others = problem.constraints
    outputs = [f"c1_{i}" for i in range(1, members + 1)]
    constraints = [Constraint("c1", "<=", low=first.low, high=first.high, outputs=outputs), *others]
    variables = [Real(f"x{i}", *ends) for i, ends in enumerate(bounds, start=1)]
    all_members = ShippedProblem(
        Problem(f"{name}_members", variables, Objective("f"), constraints),
        "rough",
        each,
        _SOURCE,
        notes=f"{each.__doc__}",
        pieces=() if parts is None else (parts,),
    )
    maximum = replace(
        all_members,
        problem=problem,
        function=largest,
        notes=f"{largest.__doc__}",
        optima_of=all_members.name,
        pieces=(),
    )
    return maximum, all_members


_STOP_LIMITS = (*(0,) * 12, 1, 2, None)

KINKED: Final = (
    *_both(
        "truss10", [(2.0, 60.0)] * 10, [(80.0, 200.0), (8.0, 20.0)], functions.truss10, functions.truss10_members, 10
    ),
    *_both(
        "bridge21",
        [*[(5.0, 120.0)] * 7, (2.0, 6.0)],
        [(80.0, 200.0), (12.0, 40.0)],
        functions.bridge21,
        functions.bridge21_members,
        21,
        Piece(functions.bridge21_parts, (*(0,) * 42, *(1,) * 6)),
    ),
    *_both(
        "tower40",
        [*[(4.0, 60.0)] * 4, *[(1.0, 20.0)] * 4, (1.0, 4.0)],
        [(0.5, 1.1), (20.0, 80.0)],
        functions.tower40,
        functions.tower40_members,
        40,
        Piece(functions.tower40_parts, (*(0,) * 160, 1)),
    ),
    *_both(
        "frame21",
        [(12.0, 60.0)] * 6,
        [(80.0, 220.0), (8.0, 30.0)],
        functions.frame21,
        functions.frame21_members,
        21,
        Piece(functions.frame21_parts, (*(0,) * 84, 1)),
    ),
    *_both(
        "cantilever10",
        [*[(2.0, 12.0)] * 5, *[(10.0, 60.0)] * 5],
        [(80.0, 200.0), (15.0, 60.0)],
        functions.cantilever,
        functions.cantilever_members,
        5,
    ),
    *_both(
        "cantilever20",
        [*[(2.0, 12.0)] * 10, *[(10.0, 60.0)] * 10],
        [(80.0, 200.0), (15.0, 60.0)],
        functions.cantilever,
        functions.cantilever_members,
        10,
    ),
    ShippedProblem(
        stated("stop", [*[(6.0, 50.0)] * 3, (1.0, 30.0), (0.1, 20.0)], [(90.0, 200.0), (8.0, 40.0), (-12.0, -3.0)]),
        "rough",
        functions.stop,
        _SOURCE,
        notes=f"{functions.stop.__doc__}",
        pieces=(Piece(functions.stop_open_parts, _STOP_LIMITS), Piece(functions.stop_closed_parts, _STOP_LIMITS)),
    ),
)
"""The problems in order."""
