"""Five shipped problems as plain formulas over the unit cube: realistic data for tests and benchmarks.

Shapes: u n x d in the unit cube; the returned outputs are n x q, the objective first, then the constraints.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import qmc

Array = NDArray[np.float64]


def _ackley6(u: Array) -> Array:
    x = -5.0 + 15.0 * u
    f = -20 * np.exp(-0.2 * np.sqrt((x**2).mean(1))) - np.exp(np.cos(2 * np.pi * x).mean(1)) + 20 + np.e
    return np.stack([f, x.sum(1), np.sqrt((x**2).sum(1)) - 5.0], 1)


def _three_truss(u: Array) -> Array:
    x1, x2 = np.maximum(u, 1e-5).T
    r, s = np.sqrt(2.0), np.sqrt(2.0) * x1**2 + 2 * x1 * x2
    f = 100 * (2 * r * x1 + x2)
    return np.stack([f, 2 * (r * x1 + x2) / s - 2, 2 * x2 / s - 2, 2 / (x1 + r * x2) - 2], 1)


def _pressure_vessel(u: Array) -> Array:
    low, high = np.array([0.0625, 0.0625, 10, 0]), np.array([6.1875, 6.1875, 200, 190])
    a, b, c, e = (low + (high - low) * u).T
    f = 0.6224 * a * c * e + 1.7781 * b * c**2 + 3.1661 * a**2 * e + 19.84 * a**2 * c
    volume = -np.pi * c**2 * e - 4 / 3 * np.pi * c**3 + 1296000
    return np.stack([f, -a + 0.0193 * c, -b + 0.00954 * c, volume, e - 240], 1)


def _g01(u: Array) -> Array:
    x = u * np.array([1.0] * 9 + [100.0] * 3 + [1.0])
    v = [None, *x.T]
    f = 5 * x[:, :4].sum(1) - 5 * (x[:, :4] ** 2).sum(1) - x[:, 4:].sum(1)
    pairs = [(1, 2, 10, 11), (1, 3, 10, 12), (2, 3, 11, 12)]
    c = [2 * v[i] + 2 * v[j] + v[k] + v[m] - 10 for i, j, k, m in pairs]
    c += [-8 * v[i] + v[9 + i] for i in (1, 2, 3)]
    c += [-2 * v[i] - v[i + 1] + v[k] for i, k in ((4, 10), (6, 11), (8, 12))]
    return np.stack([f, *c], 1)


def _car(u: Array) -> Array:
    low = np.array([0.5, 0.45, 0.5, 0.5, 0.5, 0.5, 0.5, 0.192, 0.192, -20, -20])
    high = np.array([1.5, 1.35, 1.5, 1.5, 1.5, 1.5, 1.5, 0.345, 0.345, 0, 0])
    a, b, c, e, g, h, i, j, k, m, o = (low + (high - low) * u).T
    return np.stack(
        [
            1.98 + 4.90 * a + 6.67 * b + 6.98 * c + 4.01 * e + 1.78 * g + 2.73 * i,
            1.16 - 0.3717 * b * e - 0.00931 * b * m - 0.484 * c * k + 0.01343 * h * m - 1,
            0.261
            - 0.0159 * a * b
            - 0.188 * a * j
            - 0.019 * b * i
            + 0.0144 * c * g
            + 0.0008757 * g * m
            + 0.08045 * h * k
            + 0.00139 * j * o
            + 0.00001575 * m * o
            - 0.9,
            0.214
            + 0.00817 * g
            - 0.131 * a * j
            - 0.0704 * a * k
            + 0.03099 * b * h
            - 0.018 * b * i
            + 0.0208 * c * j
            + 0.121 * c * k
            - 0.00364 * g * h
            + 0.0007715 * g * m
            - 0.0005354 * h * m
            + 0.00121 * j * o
            - 0.9,
            0.74 - 0.061 * b - 0.163 * c * j + 0.001232 * c * m - 0.166 * i * k + 0.227 * b**2 - 0.9,
            28.98 + 3.818 * c - 4.2 * a * b + 0.0207 * g * m + 6.63 * h * k - 7.7 * i * j + 0.32 * k * m - 32,
            33.86
            + 2.95 * c
            + 0.1792 * m
            - 5.057 * a * b
            - 11 * b * j
            - 0.0215 * g * m
            - 9.98 * i * j
            + 22 * j * k
            - 32,
            46.36 - 9.9 * b - 12.9 * a * j + 0.1107 * c * m - 32,
            4.72 - 0.5 * e - 0.19 * b * c - 0.0122 * e * m + 0.009325 * h * m + 0.000191 * o**2 - 4,
            10.58 - 0.674 * a * b - 1.95 * b * j + 0.02054 * c * m - 0.0198 * e * m + 0.028 * h * m - 9.9,
            16.45 - 0.489 * c * i - 0.843 * g * h + 0.0432 * k * m - 0.0556 * k * o - 0.000786 * o**2 - 15.7,
        ],
        1,
    )


FORMULAS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "g01": (13, _g01),
    "car": (11, _car),
    "pressure_vessel": (4, _pressure_vessel),
    "three_truss": (2, _three_truss),
    "ackley6": (6, _ackley6),
}


def data(name: str, n: int, seed: int = 0) -> tuple[Array, Array]:
    """Return n points (n x d) of which the first 30 are a Latin hypercube and later ones crowd together, with outputs (n x q).

    The later points imitate a run of the method: batches of five, each near the best of what is there, one uniform.
    """
    d, formula = FORMULAS[name]
    rng = np.random.default_rng(seed)
    u = qmc.LatinHypercube(d, rng=rng).random(min(n, 30))
    while len(u) < n:
        order = np.argsort(formula(u)[:, 0])[:10]
        near = u[rng.choice(order, 4)] + rng.normal(0, 0.15, (4, d))
        u = np.vstack([u, np.clip(near, 0, 1), rng.random((1, d))])[:n]
    return u, formula(u)


def tensors(name: str, n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = data(name, n, seed)
    return torch.tensor(x), torch.tensor(y)
