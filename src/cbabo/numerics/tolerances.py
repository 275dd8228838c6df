"""Tolerances that several parts share."""

from __future__ import annotations

SAME_DESIGN = 1e-9
"""Largest difference of a coordinate in the unit cube below which two designs are the same: rounding makes 1e-15."""

FARTHEST_OUTSIDE = 1.0
"""How far outside the unit cube designs may lie that surrogates learn from, after bounds were narrowed: one range of a variable.
What is farther away says little about the cube, and would set the scale of the outputs."""

PROBABILITY_SLACK = 1e-3
"""By how much a probability may miss the one asked for: margins are found by iteration, and nobody would notice less."""

BOUND_SLACK = 1e-7
"""Kept between a solution and its bounds, in standardised units: a solution on its bound breaks it by rounding."""
