"""Functions with several local optima, of which another is the best under other limits, and with designs that fail.

X: n x d designs in natural units. Every problem has a function `*_everywhere`, which is smooth and finite, and returns after the
outputs columns that are above zero where the simulator fails; the problem's own function returns NaN there.
"""

from __future__ import annotations

import numpy as np

from cbabo.numerics.arrays import FloatArray

Values = tuple[FloatArray, FloatArray]


def _failing(values: Values, outputs: int) -> Values:
    """Return the outputs, with NaN where one of the columns after them is above zero."""
    f, c = values
    holds = np.where((c[:, outputs:] <= 0.0).all(axis=1), 1.0, np.nan)
    return holds * f, holds[:, None] * c[:, :outputs]


def _bumps(X: FloatArray, centres: FloatArray, heights: FloatArray, width: float) -> FloatArray:
    """Return sums of Gaussian bumps, n x rows of heights; centres: k x d; heights: rows x k."""
    squares = ((X[:, None] - centres) ** 2).sum(axis=2)
    return np.asarray(np.exp(-0.5 * squares / width**2) @ heights.T)


def _ball(X: FloatArray, centre: FloatArray, radius: float) -> FloatArray:
    """Return how far designs lie inside a ball: above zero inside."""
    return np.asarray(radius**2 - ((X - centre) ** 2).sum(axis=1))


# Wells of the objective in which one side effect or the other is large; the wells differ in all three.
_WELLS4 = np.array([[0.2, 0.25, 0.7, 0.3], [0.75, 0.7, 0.25, 0.6], [0.7, 0.2, 0.75, 0.8], [0.3, 0.8, 0.4, 0.15]])
_DEPTHS4 = np.array([[1.0, 0.9, 0.75, 0.6]])
_EFFECTS4 = np.array([[1.0, 0.35, 0.7, 0.25], [0.4, 1.0, 0.6, 0.2]])


def wells4_everywhere(X: FloatArray) -> Values:
    """Return a cost with four wells; two side effects; a ball beside the deepest well, and a corner, in which it fails."""
    f = 100.0 * (1.0 - _bumps(X, _WELLS4, _DEPTHS4, 0.19)[:, 0] + 0.3 * ((X - 0.5) ** 2).sum(axis=1))
    effects = _bumps(X, _WELLS4, _EFFECTS4, 0.15) + 0.1 * X[:, [0, 2]]
    fails = _ball(X, np.array([0.1, 0.1, 0.85, 0.5]), 0.24), X[:, 1] + X[:, 3] - 1.7
    return f, np.column_stack([effects, *fails])


def wells4(X: FloatArray) -> Values:
    """Return a cost with four wells, and two side effects."""
    return _failing(wells4_everywhere(X), 2)


_WELLS8 = np.array(
    [
        [0.15, 0.25, 0.8, 0.2, 0.7, 0.2, 0.75, 0.35],
        [0.75, 0.7, 0.2, 0.65, 0.2, 0.8, 0.3, 0.75],
        [0.7, 0.2, 0.7, 0.85, 0.8, 0.7, 0.8, 0.2],
    ]
)
_DEPTHS8 = np.array([[1.0, 0.9, 0.75]])
_EFFECTS8 = np.array([[1.0, 0.3, 0.45], [0.35, 1.0, 0.4]])


def wells8_everywhere(X: FloatArray) -> Values:
    """Return a cost with three wells; two side effects; two slabs of the space in which it fails."""
    f = 100.0 * (1.0 - _bumps(X, _WELLS8, _DEPTHS8, 0.36)[:, 0] + 0.1 * ((X - 0.5) ** 2).sum(axis=1))
    effects = _bumps(X, _WELLS8, _EFFECTS8, 0.3) + 0.05 * X[:, [1, 6]]
    fails = X[:, :4].sum(axis=1) - 2.9, 0.65 - X[:, 4:7].sum(axis=1)
    return f, np.column_stack([effects, *fails])


def wells8(X: FloatArray) -> Values:
    """Return a cost with three wells, and two side effects."""
    return _failing(wells8_everywhere(X), 2)


# A valley with two waves along every variable: up to three local optima in each.
_RIPPLE_CENTRE = np.array([0.62, 0.35, 0.7, 0.42, 0.55])
_RIPPLE_WEIGHTS = np.array([1.0, 0.8, 1.2, 0.9, 1.1])


def ripples5_everywhere(X: FloatArray) -> Values:
    """Return a rippled cost; a weighted sum and a spread of the variables; a ball and a corner in which it fails."""
    away = X - _RIPPLE_CENTRE
    f = 10.0 * (_RIPPLE_WEIGHTS * away**2 + 0.06 * (1.0 - np.cos(4.0 * np.pi * away))).sum(axis=1)
    total = X @ _RIPPLE_WEIGHTS
    spread = ((X - 0.25) ** 2).sum(axis=1) - 0.3 * X[:, 0] * X[:, 3]
    fails = _ball(X, np.array([0.3, 0.6, 0.3, 0.6, 0.3]), 0.33), X[:, 0] - X[:, 1] - 0.75
    return f, np.column_stack([total, spread, *fails])


def ripples5(X: FloatArray) -> Values:
    """Return a rippled cost; a weighted sum and a spread of the variables."""
    return _failing(ripples5_everywhere(X), 2)


# A machine of 1 t on springs, excited at two frequencies, with two tuned absorbers; fails where an absorber hits its stop.
_EXCITED = 2.0 * np.pi * np.array([4.0, 6.5])
_EXCITING_FORCE = 1.0
_STROKE = 9.0


def absorbers6_everywhere(X: FloatArray) -> Values:
    """Return the cost; the machine's amplitude at two frequencies, in mm; the strokes of the absorbers beyond their stops.

    Variables: stiffness of the machine's springs (kN/mm), mass (t) and frequency (Hz) of either absorber, their damping ratio.
    """
    stiffness, masses, frequencies, damping = X[:, 0], X[:, [1, 3]], X[:, [2, 4]], X[:, 5]
    tuned = 2.0 * np.pi * frequencies
    amplitudes, strokes = [], []
    for w in _EXCITED:
        spring = masses * (tuned**2 + 2j * damping[:, None] * tuned * w)
        inertia = masses * w**2
        machine = 1e3 * stiffness - w**2 + 2j * 0.02 * np.sqrt(1e3 * stiffness) * w
        moved = _EXCITING_FORCE / (machine - (spring * inertia / (spring - inertia)).sum(axis=1))
        stroke = moved[:, None] * inertia / (spring - inertia)
        amplitudes.append(1e3 * np.abs(moved))
        strokes.append(1e3 * np.abs(stroke) - _STROKE)
    f = 8.0 * stiffness + 200.0 * masses.sum(axis=1) + 20.0 * damping
    return f, np.column_stack([*amplitudes, *strokes])


def absorbers6(X: FloatArray) -> Values:
    """Return the cost; the machine's amplitude at two frequencies, in mm."""
    return _failing(absorbers6_everywhere(X), 2)
