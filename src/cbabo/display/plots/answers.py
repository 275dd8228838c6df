"""An answer: the design in its ranges, and the outputs against their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes

from cbabo.display.answers import summary
from cbabo.display.numbers import estimated, labelled, measured, stated
from cbabo.display.plots.style import BAND, BROKEN, GREY, INK, LINE, PALE, SMALL, axes_for, literal
from cbabo.display.problems import value_of

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer, Price
    from cbabo.answering.standings import LimitStanding
    from cbabo.domain.problem import Problem
    from cbabo.domain.space import AnyVariable

_ROW = 0.37
"""Inches of a row."""
_MARKS = {"slack": "o", "active": "D", "violated": "X"}
_HEIGHT = 0.16
"""Half the height of a bar, in rows."""


def draw_answer(problem: Problem, answer: Answer, standings: Sequence[LimitStanding], ax: Axes | None) -> Axes:
    """Draw one row for each variable and each limited output."""
    rows = len(problem.variables) + len(standings) + 1
    ax = axes_for(ax, 6.4, _ROW * rows + 0.5)
    labels: list[tuple[float, str]] = []
    y = 0.0
    for v in problem.variables:
        _draw_variable(ax, y, v, answer.point[v.name])
        labels.append((y, literal(labelled(v.name, v.unit))))
        y -= 1.0
    y -= 0.6
    for s in standings:
        _draw_limit(ax, y, problem, s, answer.prices.get(s.constraint.name))
        labels.append((y, literal(labelled(s.title, s.constraint.unit))))
        y -= 1.0
    ax.set_title(literal(f"{answer.status}: {summary(answer)}"), fontsize=SMALL + 1, color=INK, loc="left")
    ax.set_yticks([at for at, _ in labels], [text for _, text in labels], fontsize=SMALL)
    ax.set_ylim(y + 0.3, 0.6)
    ax.set_xlim(0.0, 1.0)
    ax.set_xticks([])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _draw_variable(ax: Axes, y: float, variable: AnyVariable, value: Any) -> None:
    """Draw where a variable lies in its range."""
    words = f"{value_of(variable, value)} {variable.unit}".rstrip()
    _write(ax, y, words)
    if variable.type == "categorical":
        listed = list(variable.values or ())
        share = (listed.index(value) + 0.5) / len(listed)
        ends = ("", "")
    else:
        low, high = float(variable.low), float(variable.high)
        log = bool(getattr(variable, "log", False))
        ends = (stated(low), stated(high))
        a, b, v = (math.log(n) if log else n for n in (low, high, float(value)))
        share = (v - a) / (b - a) if b > a else 0.5
    ax.plot([0.0, 1.0], [y, y], color=PALE, linewidth=3.0, solid_capstyle="round", zorder=1, clip_on=False)
    ax.plot([share], [y], marker="o", color=LINE, markersize=6, zorder=3, clip_on=False)
    _write_ends(ax, y, ends)


def _draw_limit(ax: Axes, y: float, problem: Problem, s: LimitStanding, price: Price | None) -> None:
    """Draw an output with its deviation against its limit; the side beyond the limit is red."""
    c, mean, std = s.constraint, s.estimate.mean, s.estimate.std
    if c.limit is None:
        low, high = sorted((c.strictest, c.most_relaxed, s.limit))[::2]
    else:
        reach = max(1.5 * abs(mean - c.limit), 4.0 * std, 0.02 * c.scale)
        low, high = c.limit - reach, c.limit + reach
    at, here, left, right = ((v - low) / (high - low) for v in (s.limit, mean, mean - 2.0 * std, mean + 2.0 * std))
    allowed = (0.0, at) if c.sense == "<=" else (at, 1.0)
    beyond = (at, 1.0) if c.sense == "<=" else (0.0, at)
    for (a, b), colour in ((allowed, BAND), (beyond, "#f3d0cb")):
        ax.fill_between([a, b], y - _HEIGHT, y + _HEIGHT, color=colour, linewidth=0, zorder=1, clip_on=False)
    ax.plot([at, at], [y - 1.7 * _HEIGHT, y + 1.7 * _HEIGHT], color=INK, linewidth=1.6, zorder=2, clip_on=False)
    bounds = [min(max(v, 0.0), 1.0) for v in (left, right)]
    colour = BROKEN if s.standing == "violated" else LINE
    ax.plot(bounds, [y, y], color=colour, linewidth=1.4, zorder=3, clip_on=False)
    binds = price is not None and price.binds
    mark = "D" if binds and s.standing == "slack" else _MARKS[s.standing]
    if not 0.0 <= here <= 1.0:
        mark = "<" if here < 0.0 else ">"
    ax.plot([min(max(here, 0.0), 1.0)], [y], marker=mark, color=colour, markersize=6, zorder=4, clip_on=False)
    words = f"{estimated(mean, std)} {'≤' if c.sense == '<=' else '≥'} {measured(s.limit, c.unit)}"
    if price is not None and price.binds:
        goal = problem.objective
        words += f"\nbinds: {estimated(price.value, price.std)} {goal.unit or goal.name} per {c.unit or 'unit'}"
    _write(ax, y, words)
    _write_ends(ax, y, (stated(float(f"{low:.4g}")), stated(float(f"{high:.4g}"))))


def _write(ax: Axes, y: float, words: str) -> None:
    ax.text(1.04, y, literal(words), fontsize=SMALL, va="center", color=INK)


def _write_ends(ax: Axes, y: float, ends: tuple[str, str]) -> None:
    for share, text, side in zip((0.0, 1.0), ends, ("left", "right"), strict=True):
        ax.text(share, y - 1.5 * _HEIGHT, text, fontsize=SMALL - 2, ha=side, va="top", color=GREY)
