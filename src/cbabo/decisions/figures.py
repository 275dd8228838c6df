"""What the figures of a model show; `display.plots` draws it, and is imported when a figure is drawn: matplotlib is optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cbabo.answering.predict import predict_many
from cbabo.answering.quality import leave_one_out
from cbabo.decisions.atlas import atlas
from cbabo.decisions.tradeoff import Curve, across, along, placed
from cbabo.display.extras import needs_matplotlib
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.methods.settings import DefaultSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cbabo.answering.answers import Answer


def plot_tradeoff(fitted: Fitted, query: Query, limit: str, count: int, ax: Axes | None) -> Axes:
    """Draw the objective over one limit, the others held as in a query with one row."""
    with needs_matplotlib("plot_tradeoff"):
        from cbabo.display.plots.tradeoff import draw_tradeoff
    base = query.named(0)
    curve, asked = along(fitted, base, limit, count), _asked(fitted, query)
    designs = placed(fitted.evaluations, base, (limit,))
    return draw_tradeoff(fitted.problem, _with_answer(curve, asked), designs, asked, ax)


def plot_map(fitted: Fitted, query: Query, limits: Sequence[str], count: int, ax: Axes | None) -> Axes:
    """Draw the objective over two limits, the others held; limits: none for the two that matter most at this place."""
    with needs_matplotlib("plot_map"):
        from cbabo.display.plots.maps import draw_map
    names = fitted.problem.box.names
    if len(names) < 2:
        raise InputError(
            f"plot_map: expected a problem with two movable limits, got one, {names[0]}; use plot_tradeoff"
        )
    base, asked = query.named(0), _asked(fitted, query)
    if isinstance(fitted.settings, DefaultSettings):
        found = atlas(fitted, query, limits or None, count).map
        assert found is not None
        return draw_map(fitted.problem, found.names, found.limits, found.mean, found.binding, found.sets, asked, ax)
    first, second = limits or names[:2]
    plain = across(fitted, base, (first, second), count)
    reached = np.where(plain.reachable, 0, -1)
    return draw_map(fitted.problem, plain.names, plain.limits, plain.mean, reached, (), asked, ax)


def plot_quality(fitted: Fitted, output: str | None, ax: Axes | None) -> Any:
    """Draw leave-one-out predictions, of one output on axes or of each on a figure of its own."""
    with needs_matplotlib("plot_quality"):
        from cbabo.display.plots.quality import draw_all, draw_output
    quality = leave_one_out(fitted)
    if output is None and len(quality.outputs) == 1:
        output = quality.outputs[0]
    if output is None:
        if ax is not None:
            raise InputError(f"plot_quality: ax shows one output; state which, one of {', '.join(quality.outputs)}")
        figure: Figure = draw_all(fitted.problem, quality)
        return figure
    if output not in quality.outputs:
        known = ", ".join(quality.outputs)
        raise InputError(f"plot_quality: unknown simulated output {shown(output)}; expected one of {known}")
    return draw_output(fitted.problem, quality, output, ax)


def chosen_pair(first: str | None, second: str | None) -> tuple[str, ...]:
    """Return the two limits of a map; none of them stated: empty."""
    if (first is None) != (second is None):
        raise InputError("plot_map: expected two limits or none, got one; state the other one too")
    return () if first is None or second is None else (first, second)


def _asked(fitted: Fitted, query: Query) -> Answer:
    """Return the fast answer, which lies on the curves and maps; the network's own under the paper's method."""
    return predict_many(fitted, query, fast=True).answer(0)


def _with_answer(curve: Curve, asked: Answer) -> Curve:
    """Return a curve that passes through an answer, where that lies between its ends."""
    value = asked.thresholds[curve.name]
    low, high = sorted((float(curve.limits[0]), float(curve.limits[-1])))
    if not low < value < high or value in curve.limits:
        return curve
    rising = curve.limits[-1] > curve.limits[0]
    at = int(np.searchsorted(curve.limits if rising else -curve.limits, value if rising else -value))
    met = asked.status != "unreachable"
    return Curve(
        curve.name,
        np.insert(curve.limits, at, value),
        np.insert(curve.mean, at, asked.objective.mean),
        np.insert(curve.std, at, asked.objective.std),
        np.insert(curve.probability, at, asked.probability_feasible),
        np.insert(curve.reachable, at, met),
    )
