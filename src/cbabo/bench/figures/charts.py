"""Figures drawn from a campaign's rows: win rates, loss by method, loss over the budget, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cbabo import problems
from cbabo.bench.campaign import Row
from cbabo.bench.figures.style import INK, PALE, PALETTE, bare, drawing
from cbabo.bench.metrics import calibration as reliability
from cbabo.bench.printed import printed
from cbabo.bench.tables import quality
from cbabo.bench.tables.answers import SUITES, answers, of, required, suites
from cbabo.bench.tables.win_rates import BASELINES, win_rate_refined


def win_rates(rows: Sequence[Row], path: Path, ours: str = "paper") -> None:
    """Draw the win rates of refined answers as heat maps, a panel for each baseline: ours above, the paper's below."""
    found = win_rate_refined(rows, ours)
    counts = sorted(printed("win_rate_refined")["n"].unique())
    shown = problems.names("paper")
    with drawing(path, 2, len(BASELINES), (10.5, 8.6)) as panels:
        for line, (column, title) in zip(panels, {"win rate %": "ours", "paper %": "paper"}.items(), strict=True):
            for axes, baseline in zip(line, BASELINES, strict=True):
                part = found[found["baseline"] == baseline]
                values = part.pivot(index="problem", columns="n", values=column).reindex(index=shown, columns=counts)
                image = _heat(axes, values)
                axes.set_title(f"{title}, against {baseline}")
            for axes in line[1:]:
                axes.set_yticklabels([])
        bar = panels[0][0].figure.colorbar(image, ax=panels, shrink=0.4, aspect=30)
        bar.set_label("win rate of refined answers [%]; above 50, CBA-BO is better")
        bar.outline.set_visible(False)


def loss(rows: Sequence[Row], path: Path, ours: str = "paper") -> None:
    """Draw the mean loss of every method on each suite, with 95 % intervals; what covers less than half of it is left out."""
    table = quality.loss(rows, ours)
    table = table.assign(most=table.groupby("suite")["problems"].transform("max")).sort_values("loss %", kind="stable")
    table = table[(2 * table["problems"] >= table["most"]) & (table["answers"] != "random start")]
    shown = [suite for suite in SUITES if suite in set(table["suite"])]
    tallest = table.groupby("suite").size().max()
    with drawing(path, 1, len(shown), (4.2 * len(shown), 0.9 + 0.22 * tallest)) as panels:
        for axes, suite in zip(panels[0], shown, strict=True):
            part = table[table["suite"] == suite]
            _bars(axes, part, ours)
            axes.set_title(f"{suite} suite, {part['most'].iloc[0]} problems")


def budget(rows: Sequence[Row], path: Path, ours: str = "paper") -> None:
    """Draw the loss of our predictions over the budget: each problem pale, each suite's mean with its 95 % interval."""
    table = quality.budget(rows, ours)
    means = table["problem"].str.contains(" suite, ")
    by_problem = table[~means].assign(suite=suites(table[~means]))
    titles = list(table.loc[means, "problem"].unique())
    with drawing(path, 1, len(titles), (3.2 * len(titles), 2.8)) as panels:
        for axes, title in zip(panels[0], titles, strict=True):
            for _, line in by_problem[by_problem["suite"] == title.split()[0]].groupby("problem"):
                (pale,) = axes.plot(line["evaluations"], line["loss %"], color=PALE, linewidth=0.8, zorder=1)
            mean = table[table["problem"] == title]
            axes.fill_between(mean["evaluations"], mean["low"], mean["high"], color=PALETTE[0], alpha=0.2, linewidth=0)
            (dark,) = axes.plot(mean["evaluations"], mean["loss %"], color=PALETTE[0], marker="o", markersize=4)
            axes.set_title(title)
            axes.set_xlabel("evaluations")
            axes.set_ylim(0.0, 100.0)
            axes.set_xticks([*quality.CHECKPOINTS, quality.BUDGET])
        panels[0][0].set_ylabel(f"loss of predictions [%], {ours}")
        panels[0][-1].legend([dark, pale], ["mean with 95 % interval", "each problem"])


def calibration(rows: Sequence[Row], path: Path, ours: str = "paper") -> None:
    """Draw the feasible share over the stated probability, by suite; calibrated probabilities lie on the diagonal."""
    found = of(answers(rows, "direct").dropna(subset=["probability"]), ours)
    required("calibration", found, f"answers of {ours!r} with a stated probability")
    home = suites(found)
    with drawing(path, 1, 1, (3.8, 3.6)) as panels:
        axes: Axes = panels[0][0]
        axes.plot([0, 100], [0, 100], color=PALE, linewidth=1.0, zorder=1)
        for suite, colour in zip(home.unique(), PALETTE, strict=False):
            bins = reliability(found.loc[home == suite, "probability"], found.loc[home == suite, "feasible"])
            stated, came = [100.0 * b.stated for b in bins], [100.0 * b.feasible for b in bins]
            sizes = [10.0 + 120.0 * b.count / sum(b.count for b in bins) for b in bins]
            axes.plot(stated, came, color=colour, linewidth=0.8, zorder=2)
            axes.scatter(
                stated, came, s=sizes, color=colour, linewidths=0, label=f"{suite} suite", zorder=3, clip_on=False
            )
        axes.set_xlabel(f"stated probability of being feasible [%], {ours}")
        axes.set_ylabel("feasible share [%]")
        axes.set_xlim(0.0, 100.0)
        axes.set_ylim(0.0, 100.0)
        axes.set_aspect("equal")
        axes.legend(loc="lower right", markerscale=0.6)


def _heat(axes: Axes, values: pd.DataFrame) -> object:
    """Draw one heat map, every cell with its number; cells without one stay white."""
    numbers = values.to_numpy(dtype=np.float64)
    image = axes.imshow(numbers, cmap="RdBu", vmin=0.0, vmax=100.0, aspect="auto", alpha=0.85)
    for (i, j), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            dark = abs(value - 50.0) > 35.0
            axes.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=6, color="white" if dark else INK)
    axes.set_xticks(range(len(values.columns)), [str(n) for n in values.columns])
    axes.set_yticks(range(len(values.index)), list(values.index))
    axes.set_xlabel("thresholds N")
    bare(axes)
    return image


def _bars(axes: Axes, part: pd.DataFrame, ours: str) -> None:
    places = np.arange(len(part))[::-1]
    errors = np.array([part["loss %"] - part["low"], part["high"] - part["loss %"]]).clip(min=0.0)
    colours = [PALETTE[0] if method == ours else PALE for method in part["method"]]
    axes.barh(places, part["loss %"], height=0.68, color=colours, zorder=2)
    axes.errorbar(part["loss %"], places, xerr=errors, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5, zorder=3)
    axes.set_yticks(places, [_label(line) for _, line in part.iterrows()])
    axes.set_ylim(-0.6, len(part) - 0.4)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("mean loss [%], 95 % interval")
    axes.tick_params(axis="y", length=0)


def _label(line: pd.Series[Any]) -> str:
    text = f"{line['method']}, " + (f"N = {line['n']}" if line["method"] in BASELINES else line["answers"])
    return text if line["problems"] == line["most"] else f"{text} ({line['problems']} problems)"
