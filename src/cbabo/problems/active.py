"""The active suite: 10 of the paper's problems with threshold boxes in which the constraints bind.

Functions and bounds are the paper suite's; only the boxes differ. Results here show whether answers follow
the limits. Some boxes leave out the classical limits, so that theta = 0 is not among their thresholds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cbabo.domain.constraints import Constraint
from cbabo.domain.problem import Problem
from cbabo.problems import paper
from cbabo.problems.shipped import ShippedProblem

_NOTES = "The functions of {name}, with a threshold box of this package in which the constraints bind."


def _active(origin: ShippedProblem, box: list[tuple[float, float]]) -> ShippedProblem:
    """Put a problem of the paper suite into another box; its optimum at zero stays if zero is in there."""
    stated = origin.problem
    constraints = [
        Constraint(c.name, c.sense, low=low, high=high) for c, (low, high) in zip(stated.constraints, box, strict=True)
    ]
    return replace(
        origin,
        problem=Problem(f"{stated.name}_active", stated.variables, stated.objective, constraints),
        suite="active",
        optimum=origin.optimum if all(low <= 0.0 <= high for low, high in box) else None,
        notes=_NOTES.format(name=stated.name),
    )


ACTIVE: Final = (
    _active(paper.G04, [(0.0, 2.0)] * 6),
    _active(paper.G10, [(0.0, 0.2), (0.0, 0.2), (0.0, 0.5), (0.0, 30000.0), (0.0, 60000.0), (0.0, 150000.0)]),
    _active(paper.ACKLEY2, [(-1.0, 0.5), (-4.2221825406947975, -3.585786437626905)]),
    _active(paper.ACKLEY6, [(-3.0, 1.5), (-3.652780641469252, -2.550510257216822)]),
    _active(paper.ACKLEY10, [(-5.0, 2.5), (-3.260747286907391, -1.8377223398316205)]),
    _active(paper.GKXWC1, [(-1.4, 0.5)]),
    _active(paper.GKXWC2, [(0.0, 1.2)]),
    _active(paper.PRESSURE_VESSEL, [(0.0, 0.8), (0.0, 0.4), (0.0, 800000.0), (-120.0, -20.0)]),
    _active(
        paper.SPEED_REDUCER,
        [
            *[(0.0, 0.3), (0.0, 0.1), (-0.4, -0.1), (-0.92, -0.89), (-0.65, -0.48)],
            *[(0.0, 0.2), (-0.7, -0.6), (0.0, 0.4), (-0.58, -0.5)],
        ],
    ),
    _active(
        paper.CAR,
        [
            *[(-0.4, -0.25), (-0.68, -0.64), (-0.69, -0.66), (-0.21, -0.17), (-4.0, -2.5)],
            *[(-4.5, -2.5), (1.0, 7.0), (0.0, 0.35), (-1.0, -0.5), (-0.5, 0.0)],
        ],
    ),
)
"""The suite in order."""
