"""Tolerances that several modules share."""

from __future__ import annotations

SAME_DESIGN = 1e-9
"""Largest difference in any coordinate of the unit cube at which two designs count as the same design.

A conversion to natural units and back changes the last digits of a design, which are far below this number; designs that
differ on purpose are much farther apart.
"""
