"""The style of all figures: one palette and one font size; figures are drawn without a display."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cbabo.errors import InputError

INK = "#333333"
PALE = "#c8ccd0"
PALETTE = ("#1f5a8c", "#c8642b", "#4c8c5a", "#8a5a9e", "#b08a1e", "#6b7780")
"""Dark enough for printing in grey; the first colour is that of our method."""
FEASIBLE, INFEASIBLE, REFINED, OPTIMUM = "#4c8c5a", "#c0392b", "#1f5a8c", "#e0a800"
FORMATS = (".png", ".svg", ".pdf")

_STYLE: Any = {  # The stubs of matplotlib list every key.
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "svg.hashsalt": "cbabo",
}


@contextmanager
def drawing(path: Path, rows: int, columns: int, size: tuple[float, float]) -> Iterator[NDArray[np.object_]]:
    """Hand out the axes, rows x columns, of a figure of this size in inches, and write it to the path at the end."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"figure: expected a file name that ends in {', '.join(FORMATS)}, got {path.name!r}")
    if not path.parent.is_dir():
        raise InputError(f"figure: the folder {path.parent} does not exist; make it first")
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure.subplots(rows, columns, squeeze=False)
        stamp = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        figure.savefig(path, dpi=200, metadata=stamp[path.suffix.lower()])


def bare(axes: Axes) -> None:
    """Remove the frame, for panels that are filled to their edges."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
