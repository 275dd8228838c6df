"""The rough suite's problems with several basins: limits decide which is the best, and the simulator fails for some designs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cbabo.problems import basin_functions as functions
from cbabo.problems.shipped import Function, Piece, ShippedProblem, stated


def _basins(
    name: str,
    bounds: Sequence[tuple[float, float]],
    box: Sequence[tuple[float, float]],
    function: Function,
    piece: Piece,
) -> ShippedProblem:
    notes = f"{function.__doc__} It fails for some designs."
    return ShippedProblem(stated(name, bounds, box), "rough", function, "This package.", notes=notes, pieces=(piece,))


BASINS: Final = (
    _basins(
        "wells4",
        [(0.0, 1.0)] * 4,
        [(0.15, 0.8), (0.15, 0.8)],
        functions.wells4,
        Piece(functions.wells4_everywhere, (0, 1, None, None)),
    ),
    _basins(
        "ripples5",
        [(0.0, 1.0)] * 5,
        [(1.2, 2.6), (0.1, 0.6)],
        functions.ripples5,
        Piece(functions.ripples5_everywhere, (0, 1, None, None)),
    ),
    _basins(
        "absorbers6",
        [(0.5, 8.0), (0.01, 0.3), (2.0, 10.0), (0.01, 0.3), (2.0, 10.0), (0.02, 0.3)],
        [(0.15, 0.8), (0.15, 0.8)],
        functions.absorbers6,
        Piece(functions.absorbers6_everywhere, (0, 1, *(None,) * 4)),
    ),
    _basins(
        "wells8",
        [(0.0, 1.0)] * 8,
        [(0.2, 0.9), (0.2, 0.9)],
        functions.wells8,
        Piece(functions.wells8_everywhere, (0, 1, None, None)),
    ),
)
"""The problems in order."""
