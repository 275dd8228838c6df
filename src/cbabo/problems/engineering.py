"""The engineering design functions: vessels, beams, gears, trusses and a car's side impact.

X: n x d designs in natural units, one per row; x1, x2, ... are its columns.
f: n objective values, to be minimised.
c: n x m constraint values; c_j <= theta_j is what a design must obey, and theta = 0 is the classical problem.

Every function takes X and returns (f, c). None of them looks at bounds: those belong to the problems. Where
the code that the paper used departs from the literature, the plain name is the code's form and the
literature's form has a name of its own.
"""

from __future__ import annotations

import numpy as np

from cbabo.numerics.arrays import FloatArray

_TRUSS_SMALLEST_AREA = 1e-5


def pressure_vessel(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cost of a cylindrical vessel: shell thickness x1, head thickness x2, radius x3, length x4 (inches).

    >>> f, c = pressure_vessel(np.array([[0.8, 0.4, 41.0, 180.0]]))
    >>> f.round(2).tolist(), c.shape
    ([5755.58], (1, 4))
    """
    x1, x2, x3, x4 = X.T
    f = 0.6224 * x1 * x3 * x4 + 1.7781 * x2 * x3**2 + 3.1661 * x1**2 * x4 + 19.84 * x1**2 * x3
    c = [
        -x1 + 0.0193 * x3,
        -x2 + 0.00954 * x3,
        -np.pi * x3**2 * x4 - 4 / 3 * np.pi * x3**3 + 1296000,
        x4 - 240,
    ]
    return f, np.column_stack(c)


def rc_beam(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cost of a reinforced concrete beam, strength coefficient 7.35: steel area x1, depth x2, width x3.

    >>> f, c = rc_beam(np.array([[6.3, 34.0, 8.5]]))
    >>> f.round(2).tolist(), c.shape
    ([358.62], (1, 2))
    """
    return _rc_beam(X, coefficient=7.35)


def rc_beam_literature(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cost of the same beam with the literature's strength coefficient, 7.375.

    >>> f, c = rc_beam_literature(np.array([[6.3, 34.0, 8.5]]))
    >>> f.round(2).tolist(), c.shape
    ([358.62], (1, 2))
    """
    return _rc_beam(X, coefficient=7.375)


def _rc_beam(X: FloatArray, coefficient: float) -> tuple[FloatArray, FloatArray]:
    x1, x2, x3 = X.T
    c = [x2 / x3 - 4, 180 + coefficient * x1**2 / x3 - x1 * x2]
    return 29.4 * x1 + 0.6 * x2 * x3, np.column_stack(c)


def speed_reducer(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight of a gearbox with 9 constraints: free shaft lengths, and 1.69e6 in shaft 1's stress.

    Face width x1, module x2, teeth x3, lengths of shafts 1 and 2 x4 and x5, their diameters x6 and x7.

    >>> f, c = speed_reducer(np.array([[3.5, 0.7, 17.0, 7.3, 7.7, 3.4, 5.3]]))
    >>> f.round(2).tolist(), c.shape
    ([3015.51], (1, 9))
    """
    return _speed_reducer(X, stress=1.69e6)


def speed_reducer11(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight of the same gearbox as the literature has it: 11 constraints, and 16.9e6 in shaft 1's stress.

    >>> f, c = speed_reducer11(np.array([[3.5, 0.7, 17.0, 7.3, 7.7, 3.4, 5.3]]))
    >>> f.round(2).tolist(), c.shape
    ([3015.51], (1, 11))
    """
    f, c = _speed_reducer(X, stress=16.9e6)
    _, _, _, x4, x5, x6, x7 = X.T
    return f, np.column_stack([c, (1.5 * x6 + 1.9) / x4 - 1, (1.1 * x7 + 1.9) / x5 - 1])


def _speed_reducer(X: FloatArray, stress: float) -> tuple[FloatArray, FloatArray]:
    x1, x2, x3, x4, x5, x6, x7 = X.T
    f = (
        0.7854 * x1 * x2**2 * (3.3333 * x3**2 + 14.9334 * x3 - 43.0934)
        - 1.508 * x1 * (x6**2 + x7**2)
        + 7.4777 * (x6**3 + x7**3)
        + 0.7854 * (x4 * x6**2 + x5 * x7**2)
    )
    c = [
        27 / (x1 * x2**2 * x3) - 1,
        397.5 / (x1 * x2**2 * x3**2) - 1,
        1.93 * x4**3 / (x2 * x3 * x6**4) - 1,
        1.93 * x5**3 / (x2 * x3 * x7**4) - 1,
        np.sqrt((745 * x4 / (x2 * x3)) ** 2 + stress) / (110 * x6**3) - 1,
        np.sqrt((745 * x5 / (x2 * x3)) ** 2 + 157.5e6) / (85 * x7**3) - 1,
        x2 * x3 / 40 - 1,
        5 * x2 / x1 - 1,
        x1 / (12 * x2) - 1,
    ]
    return f, np.column_stack(c)


def three_truss(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Volume of a three-bar truss, outer bars of area x1, inner bar x2; the constraints are their stresses.

    The stresses have a pole where an area vanishes, so areas below 1e-5 are taken as 1e-5, in the volume too.

    >>> f, c = three_truss(np.array([[0.8, 0.4]]))
    >>> f.round(2).tolist(), c.shape
    ([266.27], (1, 3))
    """
    x1, x2 = np.maximum(X, _TRUSS_SMALLEST_AREA).T
    root2 = np.sqrt(2.0)
    d = root2 * x1**2 + 2 * x1 * x2
    c = [
        2 * (root2 * x1 + x2) / d - 2,
        2 * x2 / d - 2,
        2 / (x1 + root2 * x2) - 2,
    ]
    return 100 * (2 * root2 * x1 + x2), np.column_stack(c)


def car(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight of a car's side structure: response surfaces of a side impact in 11 variables.

    x1 to x7 are thicknesses, x8 and x9 materials (0.192 mild, 0.345 high-strength), x10 and x11 the barrier's
    height and position. The constraints are abdomen load, three viscous criteria, three rib deflections,
    pubic force and the velocities of B-pillar and door, each less a limit; the viscous criteria's is 0.9.

    >>> f, c = car(np.array([[1.0] * 7 + [0.3, 0.3, -10.0, -10.0]]))
    >>> f.round(2).tolist(), c.shape
    ([29.05], (1, 10))
    """
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11 = X.T
    f = 1.98 + 4.90 * x1 + 6.67 * x2 + 6.98 * x3 + 4.01 * x4 + 1.78 * x5 + 2.73 * x7
    abdomen = 1.16 - 0.3717 * x2 * x4 - 0.00931 * x2 * x10 - 0.484 * x3 * x9 + 0.01343 * x6 * x10
    upper_viscous = (
        0.261
        - 0.0159 * x1 * x2
        - 0.188 * x1 * x8
        - 0.019 * x2 * x7
        + 0.0144 * x3 * x5
        + 0.0008757 * x5 * x10
        + 0.08045 * x6 * x9
        + 0.00139 * x8 * x11
        + 0.00001575 * x10 * x11
    )
    middle_viscous = (
        0.214
        + 0.00817 * x5
        - 0.131 * x1 * x8
        - 0.0704 * x1 * x9
        + 0.03099 * x2 * x6
        - 0.018 * x2 * x7
        + 0.0208 * x3 * x8
        + 0.121 * x3 * x9
        - 0.00364 * x5 * x6
        + 0.0007715 * x5 * x10
        - 0.0005354 * x6 * x10
        + 0.00121 * x8 * x11
    )
    lower_viscous = 0.74 - 0.061 * x2 - 0.163 * x3 * x8 + 0.001232 * x3 * x10 - 0.166 * x7 * x9 + 0.227 * x2**2
    upper_rib = (
        28.98 + 3.818 * x3 - 4.2 * x1 * x2 + 0.0207 * x5 * x10 + 6.63 * x6 * x9 - 7.7 * x7 * x8 + 0.32 * x9 * x10
    )
    middle_rib = (
        33.86
        + 2.95 * x3
        + 0.1792 * x10
        - 5.057 * x1 * x2
        - 11 * x2 * x8
        - 0.0215 * x5 * x10
        - 9.98 * x7 * x8
        + 22 * x8 * x9
    )
    lower_rib = 46.36 - 9.9 * x2 - 12.9 * x1 * x8 + 0.1107 * x3 * x10
    pubic = 4.72 - 0.5 * x4 - 0.19 * x2 * x3 - 0.0122 * x4 * x10 + 0.009325 * x6 * x10 + 0.000191 * x11**2
    pillar = 10.58 - 0.674 * x1 * x2 - 1.95 * x2 * x8 + 0.02054 * x3 * x10 - 0.0198 * x4 * x10 + 0.028 * x6 * x10
    door = 16.45 - 0.489 * x3 * x7 - 0.843 * x5 * x6 + 0.0432 * x9 * x10 - 0.0556 * x9 * x11 - 0.000786 * x11**2
    c = [
        abdomen - 1,
        upper_viscous - 0.9,
        middle_viscous - 0.9,
        lower_viscous - 0.9,
        upper_rib - 32,
        middle_rib - 32,
        lower_rib - 32,
        pubic - 4,
        pillar - 9.9,
        door - 15.7,
    ]
    return f, np.column_stack(c)
