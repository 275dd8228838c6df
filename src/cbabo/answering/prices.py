"""The prices of an answer's limits, in natural units: from the multipliers of the surrogates' problem, or from its next change.

Symbols and shapes
    theta   k        thresholds of the answer, normalised; x  d  its design, unit cube
    gain    k        what the standardised objective gains per unit of theta (see `solver.sensitivity`)
    first, last      k each, the thresholds between which a price holds, normalised

The objective of continuous variables has a derivative by every limit, as long as discrete ones keep their values. Where these
change, a price ends; where they change is found by halving an interval whose ends have full answers. A limit that does not bind
with the discrete values held is priced by the difference quotient to the next change on its relaxed side, if the objective jumps
there; it costs nothing where another discrete design only draws level. A price ends also where its limit can no longer be met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cbabo.answering.answers import Price
from cbabo.domain.query import Query
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread
from cbabo.solver.reaching import Reaching
from cbabo.solver.sensitivity import Sensitivity


class Asked(NamedTuple):
    """What is predicted for some thresholds."""

    mean: FloatArray
    """n, of the objective, natural units; infinitely bad where the limits cannot be met."""
    std: FloatArray
    """n, its standard deviations."""
    x: FloatArray
    """n x d, the designs, unit cube."""


class Ask(Protocol):
    """Answers a query for the probability that the priced answer aims at."""

    def __call__(self, query: Query, *, fast: bool) -> Asked:
        """Return what is predicted."""
        ...


@dataclass(frozen=True)
class PriceTuning:
    """Numbers that tune prices."""

    widened: float = 1.5
    """Factor of the standard deviation: kernels are uncertain too, and derivatives depend on them more than values do."""
    accuracy: float = 1e-4
    """Of the price: what its standard deviation is at least; the solver's accuracy."""
    halvings: int = 12
    """How often the interval that contains a change of the discrete design is halved: it is then known to 0.03 % of the range."""
    gain: float = 1e-6
    """Of the objective: a smaller gain is no change."""
    after: float = 1e-3
    """Of the range: how far behind a change the objective is looked at once more, to tell a jump from a bend."""
    bend: float = 1.5
    """Factor of the gain over that distance from which on the change is a bend: behind a jump the gain hardly grows."""


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


def price_limits(fitted: Fitted, query: Query, x: FloatArray, aim: float | None, ask: Ask) -> dict[str, Price]:
    """Return the price of every movable limit of a query with one row, whose answer is a design x (d).

    aim: the probability of feasibility that the answer aims at; None where it aims at none.
    """
    theta, base = query.theta[0], None
    if fitted.solver.discrete:
        base = ask(query, fast=False)
        if np.isfinite(base.mean[0]):  # That of a fast answer or of a measured design may have other discrete values.
            x = base.x[0]
    with one_thread():
        found = Sensitivity(fitted.solver, theta, x)
        binds = found.binding(found.lam[None])[0]
        value = np.where(binds, found.gain, 0.0) * _slope(fitted, found.x)
        std = TUNING.widened * found.gain_std * _slope(fitted, found.x)
        first, last = found.ranges() if found.has_free_variables else (np.minimum(theta, 0.0), np.maximum(theta, 1.0))
    std = np.hypot(std, TUNING.accuracy * value)
    if base is not None and np.isfinite(base.mean[0]):
        value, std, first, last = _Changes(fitted, query, base, ask).applied(binds, value, std, first, last)
    if aim is not None:
        first = _reachable(fitted, query, first, aim, ask)
    return _in_natural_units(query, value, std, first, last)


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


def _reachable(fitted: Fitted, query: Query, first: FloatArray, aim: float, ask: Ask) -> FloatArray:
    """Return the strictest thresholds (k) of ranges again, each no stricter than what can be met, the others held."""
    theta, first = query.theta[0], first.copy()
    stricter = np.flatnonzero(first < theta)
    rows = np.repeat(theta[None], len(stricter), axis=0)
    rows[np.arange(len(stricter)), stricter] = first[stricter]
    missed = stricter[~np.isfinite(ask(Query.at(query.box, rows), fast=True).mean)] if len(stricter) else stricter
    if not len(missed):
        return first
    with one_thread():
        search = Reaching(fitted.solver, fitted.fast_map.library, aim)
        for j in missed.tolist():
            met = search.strictest_alone(theta, j)
            first[j] = theta[j] if met is None else float(np.clip(met.theta[j], first[j], theta[j]))
    return first


class _Changes:
    """Where the discrete variables of full answers change as one limit moves, the others held."""

    def __init__(self, fitted: Fitted, query: Query, base: Asked, ask: Ask) -> None:
        """base: the full answer to the query."""
        self.query, self.base, self.ask = query, base, ask
        self.theta, self.goal = query.theta[0], fitted.problem.objective.sign
        self.discrete = ~fitted.problem.space.continuous

    def applied(
        self, binds: NDArray[np.bool_], value: FloatArray, std: FloatArray, first: FloatArray, last: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return prices, their deviations and the ends of their ranges (k each), changes of the discrete variables considered.

        All but `binds` are those with the discrete variables held.
        """
        value, std, k = value.copy(), std.copy(), np.arange(len(self.theta))
        # A limit that does not bind with these discrete values leaves them as they are if it is tightened, until it binds.
        low, _ = self._until(k, np.where(binds | self.discrete.all(), first, self.theta))
        first = np.where(binds | self.discrete.all(), low, first)
        near, far = self._until(k, last)
        jumps = np.flatnonzero(~binds & (far > near))
        last = np.where(binds, near, far)
        if len(jumps):
            gain, spread = self._gained(jumps, far[jumps])
            further, _ = self._gained(jumps, np.minimum(far[jumps] + TUNING.after, np.maximum(self.theta[jumps], 1.0)))
            some = (gain > 0.0) & (further <= TUNING.bend * gain)
            jumps, distance = jumps[some], (far - self.theta)[jumps[some]]
            value[jumps], std[jumps] = gain[some] / distance, spread[some] / distance
        return value, std, first, last

    def _until(self, j: NDArray[np.intp], end: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values of limits (indices j) between which their first change on the way to an end lies; the end if none."""
        near, far = self.theta[j].copy(), end.copy()
        some = np.flatnonzero(far != near)
        changed = self._changed(j[some], far[some])
        near[some[~changed]] = far[some[~changed]]
        some = some[changed]
        for _ in range(TUNING.halvings if len(some) else 0):
            middle = 0.5 * (near + far)[some]
            changed = self._changed(j[some], middle)
            far[some], near[some] = np.where(changed, middle, far[some]), np.where(changed, near[some], middle)
        return near, far

    def _asked(self, j: NDArray[np.intp], at: FloatArray) -> Asked:
        rows = np.repeat(self.theta[None], len(j), axis=0)
        rows[np.arange(len(j)), j] = at
        return self.ask(Query.at(self.query.box, rows), fast=False)

    def _changed(self, j: NDArray[np.intp], at: FloatArray) -> NDArray[np.bool_]:
        """Tell for limits (indices) at these values whether the full answer has other discrete values, and another objective."""
        if not len(j):
            return np.zeros(0, dtype=np.bool_)
        found = self._asked(j, at)
        other = (found.x != self.base.x)[:, self.discrete].any(1)
        differs = np.abs(found.mean - self.base.mean) > self._least
        return np.asarray((other & differs) | ~np.isfinite(found.mean))

    def _gained(self, j: NDArray[np.intp], at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what the objective gains if limits (indices) are moved to these values, and the standard deviations."""
        found = self._asked(j, at)
        gain = self.goal * (self.base.mean[0] - found.mean)
        return np.where(gain > self._least, gain, 0.0), np.hypot(found.std, self.base.std[0])

    @property
    def _least(self) -> float:
        return TUNING.gain * max(1.0, abs(float(self.base.mean[0])))
