"""Figures: the paper's heat map and its two figures of problems with two variables, and our own.

A figure is a function of a campaign's rows, of the file to write and of the method that is "ours". It needs matplotlib, which is
imported with this package and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from cbabo.bench.campaign import Row
from cbabo.bench.figures import charts, planes

__all__ = ["FIGURES", "Drawing"]


class Drawing(Protocol):
    """Draws one figure."""

    def __call__(self, rows: Sequence[Row], path: Path, ours: str = "paper") -> None:
        """Write the figure of these rows to a PNG, SVG or PDF file."""
        ...


FIGURES: Mapping[str, Drawing] = MappingProxyType(
    {
        "win_rates": charts.win_rates,
        "distributions": planes.distributions,
        "refinements": planes.refinements,
        "loss": charts.loss,
        "budget": charts.budget,
        "calibration": charts.calibration,
    }
)
"""Every figure by its name."""
