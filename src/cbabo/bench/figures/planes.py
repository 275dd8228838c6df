"""The paper's two figures of problems with two variables: predicted designs, and how refinement moves them.

Campaign rows do not hold designs, so each figure runs the studies that it shows (about 20 seconds a problem).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from cbabo import problems
from cbabo.answering.refine import refine
from cbabo.bench.campaign import Row
from cbabo.bench.cbabo_runs import BUDGET
from cbabo.bench.figures.style import FEASIBLE, INFEASIBLE, INK, OPTIMUM, PALETTE, REFINED, drawing
from cbabo.bench.scoring import random_thresholds
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.methods.settings import MethodSettings, Settings
from cbabo.model import Model
from cbabo.numerics.arrays import FloatArray
from cbabo.problems import ShippedProblem
from cbabo.study.study import Study

PROBLEMS = ("gkxwc1", "gkxwc2", "three_truss")
SEED = 0
DISTRIBUTION = 300
"""Thresholds in the figure of distributions."""
MOVES = 15
"""Thresholds in the figure of refinements."""
GRID = 401
"""Values of each variable on the grid of optima."""


def distributions(rows: Sequence[Row], path: Path, ours: str = "paper") -> None:
    """Draw predicted designs beside the grid's optima, for the same random thresholds; the campaign's rows are not needed."""
    settings = Settings.from_dict({"preset": ours})
    with drawing(path, len(PROBLEMS), 2, (5.6, 2.5 * len(PROBLEMS))) as panels:
        for name, (left, right) in zip(PROBLEMS, panels, strict=True):
            shipped = problems.get(name)
            thresholds = random_thresholds(shipped, SEED, DISTRIBUTION)
            model = _model(shipped, settings)
            designs = {"predicted": model.predict_many(thresholds).points, "optimal": grid_optima(shipped, thresholds)}
            for axes, (kind, found), colour in zip((left, right), designs.items(), PALETTE, strict=False):
                _landscape(axes, shipped)
                axes.scatter(
                    found[:, 0], found[:, 1], s=9, color=colour, alpha=0.6, linewidths=0, zorder=3, clip_on=False
                )
                axes.set_title(f"{name}: {kind}, {len(found)} thresholds")


def refinements(rows: Sequence[Row], path: Path, ours: str = "paper") -> None:
    """Draw how refinement moves predicted designs towards the grid's optima; the campaign's rows are not needed."""
    settings = Settings.from_dict({"preset": ours})
    with drawing(path, 1, len(PROBLEMS), (3.2 * len(PROBLEMS), 3.4)) as panels:
        for name, axes in zip(PROBLEMS, panels[0], strict=True):
            shipped = problems.get(name)
            thresholds = random_thresholds(shipped, SEED, MOVES)
            model = _model(shipped, settings)
            before = model.predict_many(thresholds).points
            after = np.array([_refined(model, shipped, row) for row in thresholds])
            _landscape(axes, shipped)
            _moves(axes, shipped, thresholds, before, after)
            axes.set_title(f"{name}, {len(thresholds)} thresholds")
        panels[0][0].figure.legend(handles=_KEY, loc="outside lower center", ncols=len(_KEY))


def grid_optima(shipped: ShippedProblem, thresholds: FloatArray) -> FloatArray:
    """Return the best feasible design of a fine grid for each threshold, n x 2, natural units; NaN where none is feasible."""
    ticks = np.linspace(0.0, 1.0, GRID)
    designs = shipped.problem.space.natural(np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2))
    f, c = shipped.evaluate_many(designs)
    order = np.argsort(f, kind="stable")
    designs, c = designs[order], c[order]
    found = np.full((len(thresholds), 2), np.nan)
    for i, limits in enumerate(thresholds):
        feasible = (c <= limits).all(axis=1)
        if feasible.any():
            found[i] = designs[feasible.argmax()]
    return found


def _model(shipped: ShippedProblem, settings: MethodSettings) -> Model:
    study = Study.create(shipped.problem, "sqlite://", seed=SEED, settings=settings)
    study.run(shipped.evaluate, budget=BUDGET, in_process=True)
    return study.model()


def _refined(model: Model, shipped: ShippedProblem, row: FloatArray) -> FloatArray:
    """Return the refined design (2, natural units) for one row of thresholds; other rows do not learn from it."""

    def measure(point: Point) -> Evaluation:
        return Evaluation(len(model.evaluations) + 1, "complete", "refine", point, shipped.evaluate(point))

    answer = refine(model, Query.of(model.problem.box, row[None]), measure)
    return np.asarray(model.problem.space.array([answer.point])[0])


def _landscape(axes: Axes, shipped: ShippedProblem) -> None:
    """Draw the objective's level lines behind everything else."""
    ticks = np.linspace(0.0, 1.0, 121)
    designs = shipped.problem.space.natural(np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2))
    f, _ = shipped.evaluate_many(designs)
    x, y = (designs[:, i].reshape(len(ticks), -1) for i in range(2))
    axes.contour(x, y, f.reshape(x.shape), levels=14, colors=[INK], linewidths=0.4, alpha=0.25, linestyles="solid")
    axes.set_xlabel("x1")
    axes.set_ylabel("x2")
    axes.set_xlim(x.min(), x.max())
    axes.set_ylim(y.min(), y.max())


def _moves(axes: Axes, shipped: ShippedProblem, thresholds: FloatArray, before: FloatArray, after: FloatArray) -> None:
    f, c = shipped.evaluate_many(before)
    feasible = shipped.problem.box.feasible(np.column_stack([f, c]), thresholds)
    for start, end in zip(before, after, strict=True):
        axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": INK, "lw": 0.6}, zorder=3)
    optima = grid_optima(shipped, thresholds)
    axes.scatter(
        optima[:, 0],
        optima[:, 1],
        marker="*",
        s=70,
        color=OPTIMUM,
        edgecolors=INK,
        linewidths=0.3,
        zorder=4,
        clip_on=False,
    )
    colours = np.where(feasible, FEASIBLE, INFEASIBLE).tolist()
    axes.scatter(before[:, 0], before[:, 1], s=36, color=colours, linewidths=0, zorder=5, clip_on=False)
    axes.scatter(after[:, 0], after[:, 1], marker="s", s=9, color=REFINED, linewidths=0, zorder=6, clip_on=False)


def _mark(marker: str, colour: str, label: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=colour, label=label)


_KEY = [
    _mark("*", OPTIMUM, "optimum on a grid"),
    _mark("o", FEASIBLE, "predicted, feasible"),
    _mark("o", INFEASIBLE, "predicted, infeasible"),
    _mark("s", REFINED, "refined"),
]
