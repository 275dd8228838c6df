"""Leave-one-out predictions against what was measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cbabo.display.numbers import labelled, percent
from cbabo.display.plots.style import BAND, GREY, INK, LINE, SMALL, axes_for, plain, wrapped
from cbabo.display.units import units

if TYPE_CHECKING:
    from cbabo.answering.quality import Quality
    from cbabo.domain.problem import Problem

_ACROSS = 4
_SHOWN = (0.005, 0.995)
"""Quantiles of the measurements between which predictions are drawn: a single far one would hide all others."""
_TITLE = 26
"""Letters in a line of the title of a panel."""
_BEHIND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}


def draw_all(problem: Problem, quality: Quality) -> Figure:
    """Draw one panel for each output."""
    count = len(quality.outputs)
    across = min(count, _ACROSS)
    down = math.ceil(count / across)
    figure = plt.figure(figsize=(2.7 * across, 2.6 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for i, name in enumerate(quality.outputs):
        draw_output(problem, quality, name, panels[i])
        if i % across:
            panels[i].set_ylabel("")
        if i + across < count:
            panels[i].set_xlabel("")
    for spare in panels[count:]:
        spare.set_axis_off()
    return figure


def draw_output(problem: Problem, quality: Quality, output: str, ax: Axes | None) -> Axes:
    """Draw one output: every measured design as predicted from all others, with 2 standard deviations to either side."""
    ax = axes_for(ax, 3.4, 3.2)
    j = quality.outputs.index(output)
    observed, predicted, std = quality.observed[:, j], quality.predicted[:, j], quality.std[:, j]
    low, high = (float(v) for v in np.quantile(observed, _SHOWN))
    margin = 0.05 * (high - low) or 0.1 * abs(high) or 1.0
    low, high = low - margin, high + margin
    ax.plot([low, high], [low, high], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.errorbar(observed, predicted, 2.0 * std, fmt="none", ecolor=BAND, elinewidth=1.0, zorder=2)
    ax.plot(observed, predicted, marker="o", markersize=2.6, markeredgewidth=0, color=LINE, linestyle="none", zorder=3)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_aspect("equal")
    ax.set_title(wrapped(labelled(output, units(problem).get(output, "")), _TITLE), fontsize=SMALL + 1, color=INK)
    explained, inside = max(0.0, float(quality.explained[j])), float(quality.covered[-1, j])
    words = f"{percent(explained)} explained\n{percent(inside)} inside 95 %"
    ax.text(0.04, 0.96, words, transform=ax.transAxes, fontsize=SMALL - 1, va="top", color=INK, bbox=_BEHIND)
    ax.set_xlabel("measured", fontsize=SMALL)
    ax.set_ylabel("predicted from the others", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL - 1)
    ax.locator_params(nbins=4)
    plain(ax)
    return ax
