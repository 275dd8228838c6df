"""Colours, sizes and axes that all figures share: dark enough for print in grey, and told apart by shape as well."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from cbabo.display.numbers import estimated
from cbabo.errors import InputError, shown

INK, GREY, PALE = "#1b2430", "#6b7780", "#e3e7eb"
LINE, BAND, BROKEN = "#1f5a8c", "#c7daf0", "#c0392b"
FILLS = ("#cfe0f1", "#f6dcc6", "#d3e8d3", "#e6d8ee", "#f3e9bf", "#d5e9ea", "#f2d3dc", "#dedede")
"""Pale fills of regions, on which lines and labels stay readable."""
HATCH = "////"
SMALL = 8.0
"""Size of letters in points, for everything but the labels of axes."""
ACROSS, UP = 44, 30
"""Letters in a line of the label of an axis."""


def axes_for(ax: Axes | None, width: float = 5.2, height: float = 3.4) -> Axes:
    """Return the axes to draw on: those given, or new ones of this size in inches."""
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise InputError(f"plot: expected matplotlib Axes as ax, got {shown(ax)}; plt.subplots() makes some")
    return ax


def plain(ax: Axes) -> None:
    """Leave out the frame's upper and right sides."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def literal(text: str) -> str:
    """Return a text that matplotlib shows as it is: between two dollar signs it would read mathematics."""
    return text.replace("$", r"\$")


def wrapped(text: str, width: int) -> str:
    """Return a text in lines of at most so many letters, as it is."""
    return literal("\n".join(textwrap.wrap(text, width)))


def with_unit(mean: float, std: float, unit: str) -> str:
    """Write a number with its deviation and its unit."""
    return f"{estimated(mean, std)} {literal(unit)}".rstrip()


def unreachable_patch() -> Patch:
    """Return the sign for limits that cannot be met, for a legend."""
    return Patch(facecolor="white", edgecolor=GREY, hatch=HATCH, linewidth=0.5, label="cannot be met")


def runs(mask: NDArray[np.bool_]) -> list[slice]:
    """Return the stretches of neighbours that are true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
