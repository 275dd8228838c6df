"""The best objective over two limits, with what binds where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cbabo.display.numbers import labelled, number
from cbabo.display.plots.style import (
    ACROSS,
    FILLS,
    GREY,
    HATCH,
    INK,
    LINE,
    SMALL,
    UP,
    axes_for,
    literal,
    unreachable_patch,
    wrapped,
)

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer
    from cbabo.domain.constraints import Constraint
    from cbabo.domain.problem import Problem
    from cbabo.numerics.arrays import FloatArray

_LEVELS = 8
_WIDEST = 26
"""Letters of a line in the legend."""


def draw_map(
    problem: Problem,
    names: tuple[str, str],
    limits: tuple[FloatArray, FloatArray],
    mean: FloatArray,
    binding: np.ndarray,
    sets: Sequence[Sequence[str]],
    asked: Answer,
    ax: Axes | None,
) -> Axes:
    """Draw contours of the objective (n x m, the first limit along the rows), and fill the regions where the same limits bind.

    binding: n x m, which of the sets binds, -1 where limits cannot be met; sets: names of limits, none where that is not known.
    """
    ax = axes_for(ax, 6.4, 3.8)
    by_name = {c.name: c for c in problem.box.movable}
    x, y, met = limits[0], limits[1], binding.T >= 0
    key: list[Patch | Line2D] = []
    if sets:
        number_of, titles = _merged(binding, sets)
        shown = np.ma.masked_where(~met, number_of.T)
        colours = ListedColormap(FILLS[: len(titles)])
        ax.pcolormesh(x, y, shown, cmap=colours, vmin=-0.5, vmax=len(titles) - 0.5, shading="nearest", rasterized=True)
        key += [Patch(facecolor=FILLS[i], label=literal(title)) for i, title in enumerate(titles)]
    if not met.all():
        hatched = ax.contourf(x, y, (~met).astype(float), levels=[0.5, 1.5], colors=["white"], hatches=[HATCH])
        hatched.set_edgecolor(GREY)
        hatched.set_linewidth(0.0)
        key.append(unreachable_patch())
    values = np.ma.masked_where(~met, mean.T)
    if met.any() and np.ptp(values.compressed()) > 0.0:
        lines = ax.contour(x, y, values, levels=_LEVELS, colors=[LINE], linewidths=0.9, linestyles="solid")
        ax.clabel(lines, fmt=number, fontsize=SMALL, colors=[INK])
        goal = problem.objective
        key.insert(0, Line2D([], [], color=LINE, linewidth=0.9, label=wrapped(labelled(goal.name, goal.unit), _WIDEST)))
    at = [asked.thresholds[name] for name in names]
    marker, words = ("X", "asked for: cannot be met") if asked.status == "unreachable" else ("D", "asked for")
    key += ax.plot(
        *([v] for v in at),
        marker=marker,
        markersize=7,
        color=INK,
        markeredgecolor="white",
        linestyle="none",
        label=words,
    )
    (left, right), (bottom, top) = ((min(*v, a), max(*v, a)) for v, a in zip(limits, at, strict=True))
    ax.set_xlim(float(left), float(right))
    ax.set_ylim(float(bottom), float(top))
    across, up = (by_name[name] for name in names)
    ax.set_xlabel(_label(across, ACROSS))
    ax.set_ylabel(_label(up, UP))
    ax.legend(
        handles=key, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0, fontsize=SMALL, frameon=False
    )
    ax.tick_params(color=GREY)
    return ax


def _label(constraint: Constraint, width: int) -> str:
    symbol = "≤" if constraint.sense == "<=" else "≥"
    return wrapped(labelled(f"limit of {constraint.name} ({symbol})", constraint.unit), width)


def _merged(binding: np.ndarray, sets: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[str]]:
    """Number the sets by the size of their regions, the smallest as one where there are more than colours; with their titles."""
    sizes = [int((binding == i).sum()) for i in range(len(sets))]
    order = sorted((i for i in range(len(sets)) if sizes[i]), key=lambda i: -sizes[i])
    most = len(FILLS) if len(order) <= len(FILLS) else len(FILLS) - 1
    place = {i: min(n, most) for n, i in enumerate(order)}
    titles = [_title(sets[i]) for i in order[:most]] + (["other sets bind"] if len(order) > most else [])
    numbers = np.full(binding.shape, -1)
    for i, n in place.items():
        numbers[binding == i] = n
    return numbers, titles


def _title(names: Sequence[str]) -> str:
    """Say which limits bind, in lines of a legend."""
    if not names:
        return "no limit binds"
    lines = [""]
    words = [*(f"{name}," for name in names[:-1]), names[-1], "binds" if len(names) == 1 else "bind"]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) >= _WIDEST:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
