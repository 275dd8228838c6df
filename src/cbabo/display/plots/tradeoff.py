"""The best objective over one limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from cbabo.display.numbers import estimated, labelled, measured
from cbabo.display.plots.style import (
    ACROSS,
    BAND,
    GREY,
    HATCH,
    INK,
    LINE,
    SMALL,
    UP,
    axes_for,
    literal,
    plain,
    runs,
    unreachable_patch,
    with_unit,
    wrapped,
)

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer
    from cbabo.decisions.tradeoff import Curve, Placed
    from cbabo.domain.constraints import Constraint
    from cbabo.domain.problem import Problem

_HELD = 3
"""Limits that are held, and named in the title; more would not fit."""
_TITLE = 64
"""Letters in a line of the title."""


def draw_tradeoff(problem: Problem, curve: Curve, designs: Placed, asked: Answer, ax: Axes | None) -> Axes:
    """Draw a curve with its deviations, the measured designs beside it, and the limits that were asked for.

    asked: the fast answer to these limits, which lies on the curve.
    """
    ax = axes_for(ax)
    constraint = next(c for c in problem.box.movable if c.name == curve.name)
    goal, low, high = problem.objective, curve.mean - 2.0 * curve.std, curve.mean + 2.0 * curve.std
    ends = np.array([constraint.strictest, constraint.most_relaxed, asked.thresholds[curve.name]])
    ax.set_xlim(float(ends.min()), float(ends.max()))
    key: list[object] = []
    for i, part in enumerate(runs(curve.reachable)):
        ax.plot(curve.limits[part], curve.mean[part], color=LINE, linewidth=1.6, label=None if i else "best design")
        ax.fill_between(
            curve.limits[part],
            low[part],
            high[part],
            color=BAND,
            linewidth=0,
            label="± 2 standard deviations" if not i else None,
        )
    _set_height(ax, low[curve.reachable], high[curve.reachable], designs.objective)
    for part in runs(~curve.reachable):
        after = min(part.stop, len(curve.limits) - 1)
        before = max(part.start - 1, 0)
        ax.axvspan(
            curve.limits[before],
            curve.limits[after],
            facecolor="white",
            edgecolor=GREY,
            hatch=HATCH,
            linewidth=0,
            zorder=0.5,
        )
        key = [unreachable_patch()]
    if len(designs.objective):
        ax.scatter(
            designs.limits[:, 0], designs.objective, s=9, color=GREY, linewidths=0, alpha=0.7, label="measured designs"
        )
    ax.set_xlabel(wrapped(labelled(f"limit of {curve.name} ({_symbol(constraint)})", constraint.unit), ACROSS))
    ax.set_ylabel(wrapped(labelled(goal.name, goal.unit), UP))
    held = [c for c in problem.box.movable if c is not constraint]
    if 0 < len(held) <= _HELD:
        stated = (f"{c.name} {_symbol(c)} {measured(asked.thresholds[c.name], c.unit)}" for c in held)
        ax.set_title(wrapped("at " + ", ".join(stated), _TITLE), fontsize=SMALL, color=GREY)
    plain(ax)
    handles = [*ax.get_legend_handles_labels()[0], *key, _mark(ax, problem, constraint, asked)]
    ax.legend(handles=handles, fontsize=SMALL, frameon=False)
    return ax


def _mark(ax: Axes, problem: Problem, constraint: Constraint, asked: Answer) -> Line2D:
    """Mark the limit that was asked for, and say what relaxing it gains."""
    goal, price = problem.objective, asked.prices.get(constraint.name)
    met = asked.status != "unreachable"
    if price is not None and price.binds:
        per = literal(f"{goal.unit or goal.name} per {constraint.unit or 'unit'}")
        words = f"binds at {literal(measured(asked.thresholds[constraint.name], constraint.unit))}:\n"
        words += f"{estimated(price.value, price.std)} {per}"
    elif met:
        words = f"{with_unit(asked.objective.mean, asked.objective.std, goal.unit)}, does not bind"
    else:
        words = "asked for: cannot be met"
    at = asked.thresholds[constraint.name]
    ax.axvline(at, color=INK, linewidth=0.7, linestyle=":")
    if not met:
        return Line2D([], [], marker="x", color=INK, linestyle="none", label=words)
    shape = "D" if price is not None and price.binds else "o"
    value = asked.objective.mean
    return ax.plot([at], [value], marker=shape, color=INK, markersize=5.5, linestyle="none", label=words, zorder=4)[0]


def _set_height(ax: Axes, low: np.ndarray, high: np.ndarray, designs: np.ndarray) -> None:
    """Show the whole band, and measured designs that are not far from it."""
    if not len(low):
        return
    bottom, top = float(low.min()), float(high.max())
    span = (top - bottom) or abs(top) or 1.0
    near = designs[(designs > bottom - 0.5 * span) & (designs < top + 0.5 * span)]
    bottom, top = min([bottom, *near]), max([top, *near])
    ax.set_ylim(bottom - 0.05 * span, top + 0.05 * span)


def _symbol(constraint: Constraint) -> str:
    return "≤" if constraint.sense == "<=" else "≥"
