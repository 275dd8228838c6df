"""An answer: the design in its ranges, and the outputs against their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes

from cbabo.display.answers import summary
from cbabo.display.numbers import estimated, labelled, measured, stated
from cbabo.display.plots.style import BAND, BROKEN, GREY, INK, LINE, PALE, SMALL, axes_for, literal, wrapped
from cbabo.display.problems import value_of

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer, Price
    from cbabo.answering.standings import LimitStanding
    from cbabo.domain.problem import Problem
    from cbabo.domain.space import AnyVariable

_ROW, _BARS, _LETTER = 0.37, 3.2, 0.068
"""Inches: the height of a row, the width of the bars, and that of a letter beside them."""
_GAP = 0.6
"""Between variables and limits, in rows."""
_TITLE = 60
"""Letters in a line of the title."""
_MARKS = {"slack": "o", "active": "D", "violated": "X"}
_HEIGHT = 0.16
"""Half the height of a bar, in rows."""


def draw_answer(problem: Problem, answer: Answer, standings: Sequence[LimitStanding], ax: Axes | None) -> Axes:
    """Draw one row for each variable and each limited output."""
    labels = [labelled(v.name, v.unit) for v in problem.variables]
    labels += [labelled(s.title, s.constraint.unit) for s in standings]
    words = [f"{value_of(v, answer.point[v.name])} {v.unit}".rstrip() for v in problem.variables]
    prices = [answer.prices.get(s.constraint.name) for s in standings]
    words += [_words(problem, s, price) for s, price in zip(standings, prices, strict=True)]
    letters = max(map(len, labels)) + max(len(line) for text in words for line in text.split("\n"))
    ax = axes_for(ax, _BARS + _LETTER * letters, _ROW * (len(labels) + 1) + 0.5)
    places = [-float(i) for i in range(len(labels))]
    for i in range(len(problem.variables), len(labels)):
        places[i] -= _GAP
    for y, v in zip(places, problem.variables, strict=False):
        _draw_variable(ax, y, v, answer.point[v.name])
    for y, s, price in zip(places[len(problem.variables) :], standings, prices, strict=True):
        _draw_limit(ax, y, s, price)
    for y, text in zip(places, words, strict=True):
        ax.text(1.04, y, literal(text), fontsize=SMALL, va="center", color=INK)
    title = wrapped(f"{answer.status}: {summary(answer)}", _TITLE)
    ax.set_title(title, fontsize=SMALL + 1, color=INK, loc="left")
    ax.set_yticks(places, [literal(text) for text in labels], fontsize=SMALL)
    ax.set_ylim(places[-1] - 0.7, 0.6)
    ax.set_xlim(0.0, 1.0)
    ax.set_xticks([])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _words(problem: Problem, s: LimitStanding, price: Price | None) -> str:
    """State an output with its limit and, if that binds, what relaxing it gains."""
    c, goal = s.constraint, problem.objective
    text = f"{estimated(s.estimate.mean, s.estimate.std)} {'≤' if c.sense == '<=' else '≥'} {measured(s.limit, c.unit)}"
    if price is None or not price.binds:
        return text
    return f"{text}\nbinds: {estimated(price.value, price.std)} {goal.unit or goal.name} per {c.unit or 'unit'}"


def _draw_variable(ax: Axes, y: float, variable: AnyVariable, value: Any) -> None:
    """Draw where a variable lies in its range."""
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


def _draw_limit(ax: Axes, y: float, s: LimitStanding, price: Price | None) -> None:
    """Draw an output with its deviation against its limit; the side beyond the limit is red."""
    c, mean, std = s.constraint, s.estimate.mean, s.estimate.std
    if c.limit is None:
        low, high = sorted((c.strictest, c.most_relaxed, s.limit))[::2]
    else:
        reach = float(f"{max(1.6 * abs(mean - c.limit), 4.0 * std, 0.02 * c.scale):.1g}")
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
    _write_ends(ax, y, (stated(float(f"{low:.4g}")), stated(float(f"{high:.4g}"))))


def _write_ends(ax: Axes, y: float, ends: tuple[str, str]) -> None:
    for share, text, side in zip((0.0, 1.0), ends, ("left", "right"), strict=True):
        ax.text(share, y - 1.5 * _HEIGHT, text, fontsize=SMALL - 2, ha=side, va="top", color=GREY)
