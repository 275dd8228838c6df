"""The synthetic test functions: pure mathematics, without an engineering meaning.

X: n x d designs in natural units, one per row; x1, x2, ... are its columns.
f: n objective values, to be minimised.
c: n x m constraint values; c_j <= theta_j is what a design must obey, and theta = 0 is the classical problem.

Every function takes X and returns (f, c). None of them looks at bounds: those belong to the problems.
"""

from __future__ import annotations

import numpy as np

from cbabo.numerics.arrays import FloatArray

C13_SHIFT = np.array(
    [
        69.69311714880897,
        1.509803311435702,
        67.6746198312362,
        80.43173609273597,
        80.47622449424348,
        51.21092936019716,
        52.7723719926014,
        17.248465789326257,
        52.40150903116374,
        39.64846247456716,
    ]
)
"""Where c13 has its origin."""


def g01(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A concave quadratic in 13 variables under 9 linear constraints.

    >>> f, c = g01(np.array([[1.0] * 9 + [3.0] * 3 + [1.0]]))
    >>> f.round(2).tolist(), c.shape
    ([-15.0], (1, 9))
    """
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, _ = X.T
    f = 5 * X[:, :4].sum(axis=1) - 5 * (X[:, :4] ** 2).sum(axis=1) - X[:, 4:].sum(axis=1)
    c = [
        2 * x1 + 2 * x2 + x10 + x11 - 10,
        2 * x1 + 2 * x3 + x10 + x12 - 10,
        2 * x2 + 2 * x3 + x11 + x12 - 10,
        -8 * x1 + x10,
        -8 * x2 + x11,
        -8 * x3 + x12,
        -2 * x4 - x5 + x10,
        -2 * x6 - x7 + x11,
        -2 * x8 - x9 + x12,
    ]
    return f, np.column_stack(c)


def g04(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Himmelblau's problem in 5 variables: three responses, each between a floor and a ceiling.

    >>> f, c = g04(np.array([[78.0, 33.0, 30.0, 45.0, 36.8]]))
    >>> f.round(2).tolist(), c.shape
    ([-30662.44], (1, 6))
    """
    x1, x2, x3, x4, x5 = X.T
    f = 5.3578547 * x3**2 + 0.8356891 * x1 * x5 + 37.293239 * x1 - 40792.141
    u = 85.334407 + 0.0056858 * x2 * x5 + 0.0006262 * x1 * x4 - 0.0022053 * x3 * x5
    v = 80.51249 + 0.0071317 * x2 * x5 + 0.0029955 * x1 * x2 + 0.0021813 * x3**2
    w = 9.300961 + 0.0047026 * x3 * x5 + 0.0012547 * x1 * x3 + 0.0019085 * x3 * x4
    return f, np.column_stack([u - 92, -u, v - 110, 90 - v, w - 25, 20 - w])


def g06(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A cubic whose feasible set at theta = 0 is a thin crescent between two circles.

    >>> f, c = g06(np.array([[14.1, 0.85]]))
    >>> f.round(2).tolist(), c.shape
    ([-6953.81], (1, 2))
    """
    x1, x2 = X.T
    f = (x1 - 10) ** 3 + (x2 - 20) ** 3
    c = [
        100 - (x1 - 5) ** 2 - (x2 - 5) ** 2,
        (x1 - 6) ** 2 + (x2 - 5) ** 2 - 82.81,
    ]
    return f, np.column_stack(c)


def g07(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A convex quadratic in 10 variables under 3 linear and 5 convex quadratic constraints.

    >>> f, c = g07(np.array([[2.0, 2.0, 8.0, 5.0, 1.0, 1.0, 1.0, 10.0, 8.0, 8.0]]))
    >>> f.round(2).tolist(), c.shape
    ([26.0], (1, 8))
    """
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = X.T
    f = (
        x1**2
        + x2**2
        + x1 * x2
        - 14 * x1
        - 16 * x2
        + (x3 - 10) ** 2
        + 4 * (x4 - 5) ** 2
        + (x5 - 3) ** 2
        + 2 * (x6 - 1) ** 2
        + 5 * x7**2
        + 7 * (x8 - 11) ** 2
        + 2 * (x9 - 10) ** 2
        + (x10 - 7) ** 2
        + 45
    )
    c = [
        -105 + 4 * x1 + 5 * x2 - 3 * x7 + 9 * x8,
        10 * x1 - 8 * x2 - 17 * x7 + 2 * x8,
        -8 * x1 + 2 * x2 + 5 * x9 - 2 * x10 - 12,
        3 * (x1 - 2) ** 2 + 4 * (x2 - 3) ** 2 + 2 * x3**2 - 7 * x4 - 120,
        5 * x1**2 + 8 * x2 + (x3 - 6) ** 2 - 2 * x4 - 40,
        x1**2 + 2 * (x2 - 2) ** 2 - 2 * x1 * x2 + 14 * x5 - 6 * x6,
        0.5 * (x1 - 8) ** 2 + 2 * (x2 - 4) ** 2 + 3 * x5**2 - x6 - 30,
        -3 * x1 + 6 * x2 + 12 * (x9 - 8) ** 2 - 7 * x10,
    ]
    return f, np.column_stack(c)


def g10(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A heat exchanger network: a linear objective, constraints of which some are 1e5 times the others.

    >>> f, c = g10(np.array([[579.0, 1360.0, 5110.0, 182.0, 296.0, 218.0, 286.0, 396.0]]))
    >>> f.round(2).tolist(), c.shape
    ([7049.0], (1, 6))
    """
    x1, x2, x3, x4, x5, x6, x7, x8 = X.T
    c = [
        -1 + 0.0025 * (x4 + x6),
        -1 + 0.0025 * (x5 + x7 - x4),
        -1 + 0.01 * (x8 - x5),
        -x1 * x6 + 833.33252 * x4 + 100 * x1 - 83333.333,
        -x2 * x7 + 1250 * x5 + x2 * x4 - 1250 * x4,
        -x3 * x8 + 1250000 + x3 * x5 - 2500 * x5,
    ]
    return x1 + x2 + x3, np.column_stack(c)


def c13(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A shifted Schwefel function in 10 variables under sphere, sine and Griewank constraints.

    >>> f, c = c13(np.array([C13_SHIFT]))
    >>> f.round(2).tolist(), c.shape
    ([0.0], (1, 3))
    """
    z = X - C13_SHIFT
    root = np.sqrt(np.arange(1.0, z.shape[1] + 1))
    griewank = (z**2).sum(axis=1) / 4000 - np.cos(z / root).prod(axis=1) + 1
    f = (-z * np.sin(np.sqrt(np.abs(z)))).mean(axis=1)
    c = [
        -50 + (z**2).mean(axis=1) / 100,
        50 * np.sin(np.pi * z / 50).mean(axis=1),
        75 - 50 * griewank,
    ]
    return f, np.column_stack(c)


def ackley(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ackley's function in any number of variables, below a plane and inside a ball around the origin.

    >>> f, c = ackley(np.array([[0.0, 0.0]]))
    >>> f.round(2).tolist(), c.shape
    ([0.0], (1, 2))
    """
    f = -20 * np.exp(-0.2 * np.sqrt((X**2).mean(axis=1))) - np.exp(np.cos(2 * np.pi * X).mean(axis=1)) + 20 + np.e
    return f, np.column_stack([X.sum(axis=1), np.sqrt((X**2).sum(axis=1)) - 5])


def gkxwc1(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Waves in 2 variables, feasible in diagonal bands.

    >>> f, c = gkxwc1(np.array([[3.0, 3.0]]))
    >>> f.round(2).tolist(), c.shape
    ([-0.81], (1, 1))
    """
    x1, x2 = X.T
    return np.cos(2 * x1) * np.cos(x2) + np.sin(x1), np.column_stack([np.cos(x1 + x2) - 0.5])


def gkxwc2(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A wavy slope in 2 variables, feasible at theta = 0 in two small islands only.

    >>> f, c = gkxwc2(np.array([[3.0, 3.0]]))
    >>> f.round(2).tolist(), c.shape
    ([3.14], (1, 1))
    """
    x1, x2 = X.T
    return np.sin(x1) + x2, np.column_stack([np.sin(x1) * np.sin(x2) + 0.95])


def keane(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keane's bump in any number d of variables: the product of x above a floor, their sum below 7.5 d.

    The objective falls to minus infinity as x goes to 0, and is minus infinity there. Only the first
    constraint, 0.75 - prod(x) <= theta_1, keeps designs off the origin; at theta_1 >= 0.75 nothing does.

    >>> f, c = keane(np.array([[3.0] * 18]))
    >>> f.round(2).tolist(), c.shape
    ([-0.41], (1, 2))
    """
    d = X.shape[1]
    numerator = (np.cos(X) ** 4).sum(axis=1) - 2 * (np.cos(X) ** 2).prod(axis=1)
    weighted = np.sqrt((np.arange(1.0, d + 1) * X**2).sum(axis=1))
    with np.errstate(divide="ignore"):
        f = -np.abs(numerator / weighted)
    return f, np.column_stack([0.75 - X.prod(axis=1), X.sum(axis=1) - 7.5 * d])
