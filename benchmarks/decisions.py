"""How far the decision tools are from the truth on shipped problems, one table for each tool.

python benchmarks/decisions.py prices|reach|conflict|atlas|recommend|explain|all [--problems three_truss ...] [--seeds 3]
                               [--evaluations 200] [--thresholds 20] [--models FOLDER] [--out results.csv]

--models keeps fitted models in a folder, and reads those that are there. --out keeps what was measured and goes on from there.
The tables that are printed are means over the seeds, counts are sums. Truths are found by SLSQP on the true functions, from
the known optima (`cbabo.bench.truth`); problems must be smooth, with continuous variables.

prices      against central differences of f*: "error %" is the median relative error of prices of limits that bind,
            "recognised %" how often it is right whether a limit binds, "covered %" how often the truth lies within two
            standard deviations, of all limits and of those that bind.
reach       "until" is the value from which on relaxing gains nothing, "strictest" the strictest value that can be met, errors in
            percent of the range; thresholds lie in the box and, for "strictest", also half a range outside.
conflict    thresholds up to half a range stricter than the box: "missed" are those called unreachable although a design obeys
            them, "claimed" those called reachable although none does; "irreducible %" of the conflicts, by the true functions;
            "obeyed %" of the ways out whose design truly obeys them; "cost %" how much the cheapest costs above the true one.
atlas       how often the set of binding limits is the true one, at thresholds of the box.
recommend   every limit may loosen: the predicted gain against that of the true optima, and how often it is below that of the
            best limit alone.
explain     seconds of `Model.explain` at thresholds of the box, once fast answers are there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from consistency import fitted
from resuming import Rows
from scipy.optimize import minimize

from cbabo import Model, problems
from cbabo.bench.landscape import Descent, Landscape
from cbabo.bench.truth import truth
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.numerics.threads import one_thread

SMOOTH = ("three_truss", "rc_beam", "g04_active", "pressure_vessel_active", "speed_reducer_active", "car_active")
STEP = 1e-3
"""Of the range: half the width of a central difference."""
BINDS = 1e-4
"""Of the span of the optimum: a limit that gains less over its range does not bind."""
SAME = 1e-7
"""Of the span of the optimum: objectives that differ by less are equal."""
Row = dict[str, Any]


class TrueFunctions:
    """The true functions of a problem."""

    def __init__(self, name: str) -> None:
        self.shipped, self.known = problems.get(name), truth(name)
        self.land, self.box = Landscape(self.shipped, self.shipped.whole), self.shipped.problem.box
        self.scale = np.array([c.scale for c in self.box.movable])
        self.starts = np.vstack([self.known.strictest.x, self.known.relaxed.x, self.known.x])
        self.starts = self.starts[np.isfinite(self.starts).all(1)]

    def optimum(self, limits: FloatArray, start: FloatArray, more: int = 0) -> tuple[float, FloatArray]:
        """Return the best objective and its design at limits, from a start and some known optima that obey them."""
        f, c = self.land.function(self.starts)
        f = np.where((c <= limits + 1e-9 * self.scale).all(1), f, np.inf)
        others = self.starts[np.argsort(f, kind="stable")[: min(more, int(np.isfinite(f).sum()))]]
        best, x = np.inf, start
        for first in (start, *others):
            at = first
            for _ in range(3):
                at = Descent(self.land, at, limits, self.land.low, self.land.high).run()[0]
                f, c = self.land.function(at[None])
                if (c[0] <= limits + 1e-9 * self.scale).all() and f[0] < best:
                    best, x = float(f[0]), at
        return best, x

    def prices(self, limits: FloatArray, start: FloatArray) -> FloatArray:
        """Return what the true optimum gains over the range of each limit (k), by central differences."""
        x = self.optimum(limits, start)[1]
        steps = STEP * np.diag(self.scale)
        ends = [(self.optimum(limits - s, x)[0], self.optimum(limits + s, x)[0]) for s in steps]
        return np.array([(a - b) / (2.0 * STEP) for a, b in ends])

    def until(self, limits: FloatArray, j: int, start: FloatArray) -> float:
        """Return the value of a limit from which on relaxing it gains nothing, within its range."""
        c = self.box.movable[j]

        def at(value: float) -> tuple[float, FloatArray]:
            return self.optimum(np.where(np.arange(len(limits)) == j, value, limits), start, 3)

        f, x = at(c.most_relaxed)
        most = f + SAME * self.known.span
        low, high = 0.0, float(np.clip((self.land.function(x[None])[1][0, j] - c.strictest) / c.scale, 0.0, 1.0))
        if at(c.strictest)[0] <= most:
            return c.strictest
        for _ in range(10):  # The optimum need not be the only one.
            middle = 0.5 * (low + high)
            low, high = (low, middle) if at(c.strictest + middle * c.scale)[0] <= most else (middle, high)
        return c.strictest + high * c.scale

    def least(self, limits: FloatArray, cost: FloatArray, high: FloatArray) -> float:
        """Return the least cost of relaxing limits, each by at most `high` of its range, so that they can be met; inf if none."""
        land, width, d = self.land, self.land.high - self.land.low, len(self.land.low)
        best = np.inf
        moving = np.flatnonzero(high > 0)
        for start in self.starts[:: max(1, len(self.starts) // 6)]:
            v0 = np.clip((land.function(start[None])[1][0] - limits) / self.scale, 0.0, high)[moving]

            def over(u: FloatArray) -> FloatArray:
                c = land.function((land.low + u[:d] * width)[None])[1][0]
                v = np.zeros(len(limits))
                v[moving] = u[d:]
                return np.asarray(v - (c - limits) / self.scale)

            found = minimize(
                lambda u: float(cost[moving] @ u[d:]) if len(moving) else 0.0,
                np.append((start - land.low) / width, v0),
                bounds=[(0.0, 1.0)] * d + [(0.0, float(h)) for h in high[moving]],
                constraints=[{"type": "ineq", "fun": over}],
                method="SLSQP",
                options={"maxiter": 200, "ftol": 1e-10},
            )
            if over(found.x).min() >= -1e-6:
                best = min(best, float(cost[moving] @ found.x[d:]) if len(moving) else 0.0)
        return best


def measure_prices(model: Model, true: TrueFunctions, count: int, random: np.random.Generator) -> Row:
    """Compare prices at known thresholds."""
    expected, stated, std, seconds = [], [], [], []
    for limits, x, f in zip(true.known.thresholds[:count], true.known.x, true.known.f, strict=False):
        answer = model.predict(true.box.named(limits))
        if not np.isfinite(f) or answer.status == "unreachable":
            continue
        began = time.perf_counter()
        prices = list(answer.prices.values())
        seconds.append(time.perf_counter() - began)
        expected.append(true.prices(limits, x))
        stated.append([p.value for p in prices] * true.scale)
        std.append([p.std for p in prices] * true.scale)
    a, b, s = (np.array(part) for part in (expected, stated, std))
    known = np.isfinite(a)
    binds, said = a > BINDS * true.known.span, b > BINDS * true.known.span
    both, covered = known & binds & said, np.abs(a - b) <= 2.0 * s + 1e-7 * true.known.span
    error = 100.0 * np.abs(b - a)[both] / a[both]
    return {
        "limits": int(known.sum()),
        "binding": int(both.sum()),
        "error %": np.median(error),
        "90th": np.quantile(error, 0.9),
        "recognised %": 100.0 * (binds == said)[known].mean(),
        "covered %": 100.0 * covered[known].mean(),
        "covered binding %": 100.0 * covered[both].mean(),
        "negative": int((b < 0).sum()),
        "ms": 1000.0 * np.median(seconds),
    }


def measure_reach(model: Model, true: TrueFunctions, count: int, random: np.random.Generator) -> Row:
    """Compare how far limits can go."""
    until, strictest, outside, seconds = [], [], [], []
    k = len(true.scale)
    for limits, x, f in zip(true.known.thresholds[:count], true.known.x, true.known.f, strict=False):
        if not np.isfinite(f):
            continue
        began = time.perf_counter()
        found = model.reach(true.box.named(limits))
        seconds.append(time.perf_counter() - began)
        for j, c in enumerate(true.box.movable):
            expected = true.until(limits, j, x)
            until.append(abs(found["gains_until"].iloc[j] - expected) / c.scale)
            strictest.append(
                abs(found["strictest"].iloc[j] - c.strictest) / c.scale
            )  # The boxes can be met everywhere.
    for _ in range(count):
        theta, j = random.random(k) - 0.5, int(random.integers(k))
        limits = true.box.from_theta(theta[None])[0]
        high = np.where(np.arange(k) == j, 1.0 - theta, 0.0)
        low = limits - np.where(np.arange(k) == j, theta * true.scale, 0.0)
        expected = true.least(low, np.eye(k)[j], np.where(np.arange(k) == j, 1.0, 0.0))
        found = float(model.reach(true.box.named(limits))["strictest"].iloc[j])
        said = (found - low[j]) / true.scale[j]
        if np.isfinite(expected) and np.isfinite(said) and high[j] > 0:
            outside.append(abs(max(said, 0.0) - expected))
    return {
        "values": len(until),
        "until %": 100.0 * np.median(until),
        "until 95th": 100.0 * np.quantile(until, 0.95),
        "strictest 95th": 100.0 * np.quantile(strictest, 0.95),
        "outside": len(outside),
        "outside %": 100.0 * np.median(outside) if outside else 0.0,
        "outside 95th": 100.0 * np.quantile(outside, 0.95) if outside else 0.0,
        "ms": 1000.0 * np.median(seconds),
    }


def measure_conflict(model: Model, true: TrueFunctions, count: int, random: np.random.Generator) -> Row:
    """Compare conflicts and ways out at thresholds that are too strict."""
    k, none = len(true.scale), np.zeros(len(true.scale))
    found = dict.fromkeys(("unreachable", "missed", "claimed", "conflicts", "irreducible", "ways", "obeyed"), 0)
    above, seconds = [], []
    for _ in range(count):
        theta = 0.75 * random.random(k) - 0.5
        limits = true.box.from_theta(theta[None])[0]
        named = true.box.named(limits)
        possible = np.isfinite(true.least(limits, none, none))
        began = time.perf_counter()
        conflict, ways = model.conflict(named), model.ways_out(named)
        seconds.append(time.perf_counter() - began)
        found["unreachable"] += not possible
        found["missed"] += possible and conflict is not None
        found["claimed"] += not possible and conflict is None
        if conflict is None or possible:
            continue
        held = np.array([name in conflict.limits for name in true.box.names])
        relaxed = np.maximum(theta, 1.0)

        def reached(some: Any, theta: FloatArray = theta, relaxed: FloatArray = relaxed) -> bool:
            rows = true.box.from_theta(np.where(some, theta, relaxed)[None])[0]
            return bool(np.isfinite(true.least(rows, none, none)))

        found["conflicts"] += 1
        found["irreducible"] += not reached(held) and all(
            reached(held & (np.arange(k) != j)) for j in np.flatnonzero(held)
        )
        for way in ways:
            y = np.column_stack(true.shipped.evaluate_many(np.array([list(way.answer.point.values())])))
            found["ways"] += 1
            found["obeyed"] += bool(true.box.feasible(y, np.array([list(way.thresholds.values())]))[0])
        least = true.least(limits, np.ones(k), np.clip(1.0 - theta, 0.0, None))
        if ways and np.isfinite(least):
            above.append(100.0 * (ways[0].cost - least) / max(least, 1e-3))
    cost = np.median(above) if above else 0.0
    return {"thresholds": count, **found, "cost %": cost, "s": np.median(seconds)}


def measure_atlas(model: Model, true: TrueFunctions, count: int, random: np.random.Generator) -> Row:
    """Compare the binding sets of a map's cells with the true ones."""
    from cbabo.decisions.atlas import _binding_sets

    rows = true.known.thresholds[:count]
    answers = model.predict_many(rows, fast=True)
    sets = _binding_sets(model, answers)
    right = each = total = 0
    for i, limits in enumerate(rows):
        if np.isfinite(true.known.f[i]) and answers.reachable[i]:
            gains = true.prices(limits, true.known.x[i]) > BINDS * true.known.span
            said = np.array([name in sets[i] for name in true.box.names])
            right, each, total = right + int((gains == said).all()), each + int((gains == said).sum()), total + 1
    began = time.perf_counter()
    atlas = model.atlas()
    seconds = time.perf_counter() - began
    return {
        "thresholds": total,
        "sets %": 100.0 * right / max(total, 1),
        "limits %": 100.0 * each / max(total * len(true.scale), 1),
        "unreachable %": 100.0 * atlas.unreachable,
        "s": seconds,
    }


def measure_recommend(model: Model, true: TrueFunctions, count: int, random: np.random.Generator) -> Row:
    """Compare the gains of recommended limits."""
    errors, worse, seconds = [], 0, []
    for _ in range(count):
        base = true.box.from_theta(0.1 + 0.6 * random.random((1, len(true.scale))))[0]
        began = time.perf_counter()
        found = model.recommend(true.box.named(base), dict.fromkeys(true.box.names, "loosen"))
        seconds.append(time.perf_counter() - began)
        after = np.array(list(found.thresholds.values()))
        x = true.starts[1]
        gain = true.optimum(base, true.starts[0], 6)[0] - true.optimum(after, x, 6)[0]
        if np.isfinite(gain):
            errors.append(100.0 * abs(found.improvement - gain) / true.known.span)
        alone = max(change.effect for change in found.changes.values())
        worse += found.improvement < alone - 1e-6 * abs(alone)
    return {
        "bases": count,
        "error % of span": np.median(errors),
        "90th": np.quantile(errors, 0.9),
        "worse": worse,
        "s": np.median(seconds),
    }


def measure_explain(model: Model, true: TrueFunctions, count: int, random: np.random.Generator) -> Row:
    """Measure how long explanations take."""
    seconds = []
    for limits in true.known.thresholds[:count]:
        began = time.perf_counter(), time.process_time()
        explanation = model.explain(true.box.named(limits))
        assert explanation.binding is not None  # Prices are computed when they are looked at.
        seconds.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    wall, processor = np.array(seconds).T
    return {"explanations": count, "s": np.median(wall), "largest s": wall.max(), "processor s": np.median(processor)}


TOOLS: dict[str, Callable[[Model, TrueFunctions, int, np.random.Generator], Row]] = {
    "prices": measure_prices,
    "reach": measure_reach,
    "conflict": measure_conflict,
    "atlas": measure_atlas,
    "recommend": measure_recommend,
    "explain": measure_explain,
}
COUNTS = (
    *(
        "limits",
        "binding",
        "negative",
        "values",
        "outside",
        "thresholds",
        "unreachable",
        "missed",
        "claimed",
        "conflicts",
    ),
    *("irreducible", "ways", "obeyed", "bases", "worse", "explanations"),
)
"""What is summed over seeds."""


def main(words: Sequence[str] | None = None) -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=[*TOOLS, "all"])
    parser.add_argument("--problems", nargs="+", default=SMOOTH)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--thresholds", type=int, default=20)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(words)
    rows, tools = Rows(given.out), list(TOOLS) if given.tool == "all" else [given.tool]
    for tool in tools:
        for seed in range(given.seeds):
            for name in given.problems:
                if rows.has(tool, name, seed):
                    continue
                with one_thread(), np.errstate(all="ignore"):
                    model = fitted(name, seed, given.evaluations, given.models, anew=False)
                    model.predict()
                    random = child(seed, "decisions", name)
                    rows.add(tool, name, seed, TOOLS[tool](model, TrueFunctions(name), given.thresholds, random))
        print(f"\n{tool}\n\n{rows.table(tool, given.problems, range(given.seeds), COUNTS)}", flush=True)


if __name__ == "__main__":
    main()
