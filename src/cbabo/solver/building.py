"""The library of solved thresholds: how its entries are made, and what they are compared with.

Symbols and shapes as in `library`; m entries.

Some entries are solved one by one, the others are answered from these. A solver may end in a worse optimum for one threshold than
for its neighbour: every entry is therefore answered once more from the other entries, and replaced where that is better.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from scipy.optimize import nnls

from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.solver.batched import BatchedPosterior
from cbabo.solver.continuous import Solver
from cbabo.solver.library import TUNING, FastMap, Library, as_library, margin_of


def build_library(solver: Solver, probability: float, count: int, seed: int) -> Library:
    """Solve so many thresholds of the box, aiming at this probability."""
    k = len(solver.posterior.problem.box.names)
    theta = np.vstack([np.full((1, k), a) for a in TUNING.diagonal] + [sobol(k, seed, max(count, 1)).numpy()])[:count]
    first = min(count, 2 * TUNING.solved if solver.discrete else TUNING.solved)
    found = [solver.predict(bound, probability) for bound in solver.bound(theta[:first])]
    nothing = np.zeros(len(solver.output))
    x = np.array([f.x for f in found])
    x = x if solver.region is None else solver.region.repaired(x)
    multipliers = np.array([nothing if f.multipliers is None else f.multipliers for f in found])
    batched = BatchedPosterior(solver)
    prices = _multipliers(batched, theta[:first], x, multipliers, probability)
    library = as_library(batched, theta[:first], x, prices, probability)
    while len(library.theta) < count:
        new = theta[len(library.theta) : 2 * len(library.theta)]
        library = _joined(library, FastMap(solver, library).entries(new, probability, TUNING.entry_corrections))
    for _ in range(TUNING.reviews if count > 1 else 0):
        library = reviewed(FastMap(solver, library), probability)
    return library


def reviewed(fast_map: FastMap, probability: float) -> Library:
    """Return the library with entries replaced by their answers from the other entries, where these are better."""
    library, itself = fast_map.library, np.arange(len(fast_map.library.theta))
    x, multipliers, _ = fast_map.solve(library.theta, probability, TUNING.entry_corrections, itself)
    again = as_library(fast_map.batched, library.theta, x, multipliers, probability)
    better = fast_map.values(again, probability) < fast_map.values(library, probability) - TUNING.gain
    parts = ((getattr(again, f.name), getattr(library, f.name)) for f in fields(Library))
    return Library(*(np.where(better.reshape(-1, *(1,) * (old.ndim - 1)), new, old) for new, old in parts))


def _multipliers(
    batched: BatchedPosterior, theta: FloatArray, x: FloatArray, multipliers: FloatArray, probability: float
) -> FloatArray:
    """Return the multipliers (m x r) that best explain designs x (m x d) as optima at theta (m x k).

    The solver's own are its last step's, and anything where requirements compete: unlike these they do not depend on x alone.
    """
    solver = batched.solver
    z, J = batched.mean_and_slope(x)
    std = batched.std(x)[:, solver.output]
    needed = solver.sign * z[:, solver.output] + margin_of(solver, std, multipliers, probability)
    active = needed >= solver.bound(theta) - TUNING.active
    edges, relations = np.eye(x.shape[1]), batched.relations
    prices = np.zeros_like(multipliers)
    for i, design in enumerate(x):
        held = np.concatenate([-edges[design <= TUNING.edge], edges[design >= 1.0 - TUNING.edge]])
        if len(relations):
            held = np.concatenate([held, J[i, relations][z[i, relations] >= -TUNING.active]])
        pushed = np.concatenate([solver.sign[active[i], None] * J[i, solver.output[active[i]]], held])
        length = np.maximum(np.linalg.norm(pushed, axis=1), np.finfo(np.float64).tiny)
        if active[i].any():
            found = nnls((pushed / length[:, None]).T, -solver.goal * J[i, 0])[0]
            prices[i, active[i]] = (found / length)[: active[i].sum()]
    return prices


def _joined(a: Library, b: Library) -> Library:
    return Library(*(np.concatenate([getattr(part, name) for part in (a, b)]) for name in Library.__dataclass_fields__))
