"""The prices of an answer's limits, in natural units: from the multipliers of the surrogates' problem, or from its next change.

Symbols and shapes
    theta   k        thresholds of the answer, normalised; x  d  its design, unit cube
    gain    k        what the standardised objective gains per unit of theta (see `solver.sensitivity`)

The objective of continuous variables has a derivative by every limit. That of discrete ones moves in jumps: a limit that does not
bind with the discrete values held is priced by the difference quotient to the next change on its relaxed side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cbabo.answering.answers import Price
from cbabo.domain.query import Query
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread
from cbabo.solver.sensitivity import Sensitivity

Values = tuple[FloatArray, FloatArray]
"""Means and standard deviations of the objective, n each, natural units; infinitely bad means where limits cannot be met."""


@dataclass(frozen=True)
class PriceTuning:
    """Numbers that tune prices."""

    widened: float = 1.5
    """Factor of the standard deviation: kernels are uncertain too, and derivatives depend on them more than values do."""
    accuracy: float = 1e-4
    """Of the price: what its standard deviation is at least; the solver's accuracy."""
    steps: int = 16
    """Values of a limit among which its next change is looked for."""
    halvings: int = 8
    """How often the interval that contains the change is halved."""
    gain: float = 1e-6
    """Of the objective: a smaller gain is no change."""


TUNING = PriceTuning()


class Prices(dict[str, Price]):
    """Prices by limit that are computed when one of them is first looked at.

    Examples:
        >>> prices = Prices(["stress"], lambda: {"stress": Price(0.02, 0.001, 180.0, 214.0)})
        >>> len(prices), prices["stress"].value
        (1, 0.02)
    """

    def __init__(self, names: Any = (), make: Callable[[], Mapping[str, Price]] | None = None) -> None:
        """names: of the limits or, without `make`, all items."""
        super().__init__(names if make is None else dict.fromkeys(names))
        self._make = make

    def _made(self) -> Prices:
        if self._make is not None:
            found, self._make = self._make(), None
            self.update(found)
        return self

    def __getitem__(self, name: str) -> Price:
        """Return the price of one limit."""
        return dict.__getitem__(self._made() if name in self else self, name)

    def __iter__(self) -> Iterator[str]:  # Its own, so that copies into a dict ask for every value.
        """Iterate over the names of the limits."""
        return super().__iter__()

    def get(self, name: Any, default: Any = None) -> Any:
        """Return the price of one limit, or a default."""
        return dict.get(self._made() if name in self else self, name, default)

    def items(self) -> Any:
        """Return names and prices."""
        return dict.items(self._made())

    def values(self) -> Any:
        """Return the prices."""
        return dict.values(self._made())

    def __eq__(self, other: object) -> bool:  # A dict has no hash.
        """Tell whether another mapping has the same prices."""
        return dict.__eq__(self._made(), other)

    def __repr__(self) -> str:
        """Show the prices."""
        return dict.__repr__(self._made())

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as a plain dict."""
        return dict, (dict(self.items()),)


def price_limits(fitted: Fitted, query: Query, x: FloatArray, ask: Callable[[Query], Values]) -> dict[str, Price]:
    """Return the price of every movable limit of a query with one row, whose answer is a design x (d).

    ask: returns the objective of fast answers to a query, for discrete variables.
    """
    theta = query.theta[0]
    with one_thread():
        found = Sensitivity(fitted.solver, theta, x)
        binds = found.binding(found.lam[None])[0]
        value = np.where(binds, found.gain, 0.0) * _slope(fitted, found.x)
        std = TUNING.widened * found.gain_std * _slope(fitted, found.x)
        ends = found.ranges() if found.has_free_variables else (theta.copy(), theta.copy())
    priced = _in_natural_units(query, value, np.hypot(std, TUNING.accuracy * value), *ends)
    if fitted.solver.discrete:
        priced |= _next_changes(fitted, query, [j for j, yes in enumerate(binds) if not yes], ask)
    return priced


def _slope(fitted: Fitted, x: FloatArray) -> float:
    """Return the derivative of the objective, natural units, by its standardised and warped value at a design (d)."""
    posterior = fitted.posterior
    scale = float(posterior.predictor.scale[0])
    warp = posterior.output_warp
    if warp is None:
        return scale
    g = posterior.predictor.mean(torch.from_numpy(x[None]))
    return scale * float((-warp.log_slope(warp.inverse(g))).exp()[0, 0])


def _in_natural_units(
    query: Query, value: FloatArray, std: FloatArray, first: FloatArray, last: FloatArray
) -> dict[str, Price]:
    """Return prices per unit of theta (k), which hold between two values of each threshold (k each), per natural unit."""
    box = query.box
    ends = np.sort(box.from_theta(np.stack([first, last])), axis=0)
    return {
        c.name: Price(*(float(v) for v in (value[j] / c.scale, std[j] / c.scale, ends[0, j], ends[1, j])))
        for j, c in enumerate(box.movable)
    }


def _next_changes(fitted: Fitted, query: Query, which: list[int], ask: Callable[[Query], Values]) -> dict[str, Price]:
    """Return the prices of limits (indices) whose relaxation changes a discrete variable, as quotients to the next change."""
    theta, goal = query.theta[0], fitted.problem.objective.sign
    which = [j for j in which if theta[j] < 1.0]
    if not which:
        return {}
    share = np.linspace(0.0, 1.0, TUNING.steps + 1)[1:]

    def moved(j: FloatArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows = np.repeat(theta[None], len(j), axis=0)
        rows[np.arange(len(j)), j] += at * (1.0 - theta[j])
        mean, std = ask(Query.at(query.box, np.vstack([theta, rows])))
        least = TUNING.gain * max(1.0, abs(float(mean[0])))
        gain = goal * (mean[0] - mean[1:])
        return np.where(gain > least, gain, 0.0), np.hypot(std[1:], std[0])

    limits = np.array(which)
    gain, _ = moved(np.repeat(limits, len(share)), np.tile(share, len(limits)))
    first = (gain.reshape(len(limits), -1) > 0.0).argmax(1)
    some = gain.reshape(len(limits), -1).any(1)
    limits, high = limits[some], share[first[some]]
    if not len(limits):
        return {}
    low = high - share[0]
    for _ in range(TUNING.halvings):
        middle = 0.5 * (low + high)
        gained = moved(limits, middle)[0] > 0.0
        low, high = np.where(gained, low, middle), np.where(gained, middle, high)
    gain, std = moved(limits, high)
    distance = high * (1.0 - theta[limits])
    value, spread, last = np.zeros_like(theta), np.zeros_like(theta), theta.copy()
    value[limits], spread[limits], last[limits] = gain / distance, std / distance, theta[limits] + distance
    priced = _in_natural_units(query, value, spread, theta, last)
    return {query.box.names[j]: priced[query.box.names[j]] for j in limits.tolist()}
