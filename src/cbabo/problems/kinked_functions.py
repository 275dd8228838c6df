"""Functions with kinks: structures whose outputs are maxima over members, a stop that is touched, and members that buckle.

X: n x d designs in natural units. Functions that end in `_members` return each member's value, n x members, where the function
without that ending returns the largest of them; those that end in `_parts` return the smooth values that members are largest of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from cbabo.numerics.arrays import FloatArray
from cbabo.problems.structures import MASS, YOUNG, Frame, Truss

Values = tuple[FloatArray, FloatArray]

MPA = 10.0
"""MPa in one kN/cm^2."""
TUBE = 0.8
"""Second moment of area of a tube whose wall is a tenth of its radius, as a multiple of its squared area."""
YIELD = 235.0
"""Yield stress of the tower's steel, MPa."""


def _loads(size: int, *cases: dict[int, float]) -> FloatArray:
    """Return nodal loads, size x cases, from the loaded degrees of freedom of each case."""
    loads = np.zeros((size, len(cases)))
    for column, case in enumerate(cases):
        for freedom, force in case.items():
            loads[freedom, column] = force
    return loads


def _by_member(values: Values, members: int) -> Values:
    """Group values, n x (members * each + 1), into the largest of each member; the last value stays as it is."""
    f, c = values
    each = c.shape[1] // members
    return f, np.column_stack([c[:, :-1].reshape(len(c), members, each).max(axis=2), c[:, -1]])


def _maximum(values: Values) -> Values:
    """Return the largest of all values but the last, and the last: n x 2."""
    f, c = values
    return f, np.column_stack([c[:, :-1].max(axis=1), c[:, -1]])


# A cantilever truss of two square panels with crossed diagonals: 10 bars, an area each.
_TRUSS10_NODES = np.array([[0.0, 0.0], [0.0, 3.0], [3.0, 0.0], [3.0, 3.0], [6.0, 0.0], [6.0, 3.0]])
_TRUSS10 = Truss(
    bars=np.array([[0, 2], [1, 3], [2, 4], [3, 5], [2, 3], [4, 5], [0, 3], [1, 2], [2, 5], [3, 4]]),
    held=(0, 1, 2, 3),
    loads=_loads(12, {5: -150.0, 9: -200.0, 10: 40.0}),
)


def truss10_members(X: FloatArray) -> Values:
    """Mass; the stress of each of 10 bars, and the sag of the loaded end."""
    forces, moved, lengths = _TRUSS10.solve(_TRUSS10_NODES, X)
    return MASS * (X * lengths).sum(axis=1), np.column_stack([MPA * np.abs(forces[:, :, 0]) / X, -moved[:, 9, 0]])


def truss10(X: FloatArray) -> Values:
    """Mass; the largest stress, and the sag of the loaded end."""
    return _maximum(truss10_members(X))


# A bridge of six panels of 4 m: bottom nodes 0 to 6, top nodes 7 to 11, symmetric groups of bars, variable height.
_BRIDGE_BARS = np.array(
    [
        *[(0, 1), (5, 6), (1, 2), (4, 5), (2, 3), (3, 4)],
        *[(7, 8), (10, 11), (8, 9), (9, 10)],
        *[(0, 7), (6, 11), (7, 2), (11, 4), (8, 3), (10, 3)],
        *[(1, 7), (5, 11), (2, 8), (4, 10), (3, 9)],
    ]
)
_BRIDGE_GROUPS = np.array([0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6])
_BRIDGE = Truss(
    bars=_BRIDGE_BARS,
    held=(0, 1, 13),
    loads=_loads(24, dict.fromkeys((3, 5, 7, 9, 11), -90.0), {3: -160.0, 5: -200.0, 7: -60.0}),
)
_BRIDGE_SAGS = (5, 7, 9)


def bridge21_parts(X: FloatArray) -> Values:
    """Mass; the stress of each of 21 bars in two load cases, and the sag of three nodes in each."""
    height, areas = X[:, -1], X[:, _BRIDGE_GROUPS]
    bottom, top = 4.0 * np.arange(7.0), 4.0 * np.arange(1.0, 6.0)
    nodes = np.zeros((len(X), 12, 2))
    nodes[:, :7, 0], nodes[:, 7:, 0], nodes[:, 7:, 1] = bottom, top, height[:, None]
    forces, moved, lengths = _BRIDGE.solve(nodes, areas)
    stress = MPA * np.abs(forces) / areas[:, :, None]
    sags = -moved[:, _BRIDGE_SAGS].reshape(len(X), 6)
    return MASS * (areas * lengths).sum(axis=1), np.column_stack([stress.reshape(len(X), 42), sags])


def bridge21_members(X: FloatArray) -> Values:
    """Mass; the stress of each of 21 bars, and the largest sag."""
    f, c = bridge21_parts(X)
    return f, np.column_stack([c[:, :42].reshape(len(X), 21, 2).max(axis=2), c[:, 42:].max(axis=1)])


def bridge21(X: FloatArray) -> Values:
    """Mass; the largest stress, and the largest sag."""
    return _maximum(bridge21_members(X))


# A tower of eight storeys with crossed braces: legs and braces in four groups each, of two storeys; variable width at the base.
_STOREYS = 8
_TOWER_BARS = np.array(
    [
        bar
        for i in range(0, 2 * _STOREYS, 2)
        for bar in [(i, i + 2), (i + 1, i + 3), (i, i + 3), (i + 1, i + 2), (i + 2, i + 3)]
    ]
)
_TOWER_GROUPS = np.array([group for i in range(_STOREYS) for group in (i // 2, i // 2, *(4 + i // 2,) * 3)])
_TOWER = Truss(
    bars=_TOWER_BARS,
    held=(0, 1, 2, 3),
    loads=_loads(
        4 * (_STOREYS + 1),
        {4 * i: 6.0 for i in range(1, _STOREYS)} | {32: 30.0, 33: -60.0, 35: -60.0},
        {33: -150.0, 35: -190.0, 34: -12.0},
    ),
)


def tower40_parts(X: FloatArray) -> Values:
    """Mass; for each of 40 bars in two load cases its stress by the yield and by the buckling stress; the shift of the top."""
    areas, levels = X[:, _TOWER_GROUPS], np.linspace(0.0, 1.0, _STOREYS + 1)
    half = 0.5 * (X[:, [8]] * (1.0 - levels) + 1.0 * levels)
    nodes = np.zeros((len(X), 2 * _STOREYS + 2, 2))
    nodes[:, 0::2, 0], nodes[:, 1::2, 0] = -half, half
    nodes[:, :, 1] = np.repeat(2.0 * np.arange(_STOREYS + 1.0), 2)
    forces, moved, lengths = _TOWER.solve(nodes, areas)
    stress = MPA * forces / areas[:, :, None]
    buckling = MPA * np.pi**2 * YOUNG * TUBE * areas / (100.0 * lengths) ** 2
    parts = np.stack([np.abs(stress) / YIELD, -stress / buckling[:, :, None]], axis=3)
    return MASS * (areas * lengths).sum(axis=1), np.column_stack([parts.reshape(len(X), 160), moved[:, 32, 0]])


def tower40_members(X: FloatArray) -> Values:
    """Mass; how far each of 40 bars is used, up to yielding or buckling; the shift of the top."""
    return _by_member(tower40_parts(X), 40)


def tower40(X: FloatArray) -> Values:
    """Mass; how far the most used bar is used, up to yielding or buckling; the shift of the top."""
    return _maximum(tower40_members(X))


# A frame of two bays and three storeys: columns 0 to 8, and six beams of two halves each, loaded in the middle.
def _frame() -> Frame:
    columns = [(3 * level + i, 3 * level + i + 3) for level in range(3) for i in range(3)]
    joints = [(6.0 * i, 3.5 * level) for level in range(4) for i in range(3)]
    middles = [(6.0 * i + 3.0, 3.5 * level) for level in (1, 2, 3) for i in range(2)]
    halves = [
        half
        for number, (level, i) in enumerate((level, i) for level in (1, 2, 3) for i in range(2))
        for half in ((3 * level + i, 12 + number), (12 + number, 3 * level + i + 1))
    ]
    gravity = {3 * (12 + number) + 1: -80.0 for number in range(6)}
    wind = {3 * 3: 25.0, 3 * 6: 30.0, 3 * 9: 20.0}
    return Frame(
        nodes=np.array([*joints, *middles]),
        beams=np.array([*columns, *halves]),
        held=tuple(range(9)),
        loads=_loads(54, {k: 1.35 * v for k, v in gravity.items()}, gravity | wind),
    )


_FRAME = _frame()
_FRAME_GROUPS = np.array([0, 1, 0, 2, 3, 2, 2, 3, 2, *(4,) * 8, *(5,) * 4])


def frame21_parts(X: FloatArray) -> Values:
    """Mass; the stress at both ends of each of 21 beams in two load cases, and the drift of the top under wind."""
    depth = X[:, _FRAME_GROUPS]
    areas, inertias = 0.12 * depth**2, 0.02 * depth**4
    axial, moments, moved = _FRAME.solve(areas, inertias)
    bending = 100.0 * np.abs(moments) / (2.0 * inertias / depth)[:, :, None, None]
    stress = MPA * (np.abs(axial / areas[:, :, None])[:, :, None] + bending)
    lengths = np.linalg.norm(_FRAME.nodes[_FRAME.beams[:, 1]] - _FRAME.nodes[_FRAME.beams[:, 0]], axis=1)
    return MASS * (areas * lengths).sum(axis=1), np.column_stack([stress.reshape(len(X), 84), moved[:, 27, 1]])


def frame21_members(X: FloatArray) -> Values:
    """Mass; the largest stress of each of 21 beams, and the drift of the top."""
    return _by_member(frame21_parts(X), 21)


def frame21(X: FloatArray) -> Values:
    """Mass; the largest stress, and the drift of the top."""
    return _maximum(frame21_members(X))


# A cantilever of 5 m in segments of equal length, loaded at its end: a width (cm) and a height (cm) for each segment.
CANTILEVER_LENGTH: Final = 5.0
CANTILEVER_LOAD: Final = 50.0


def cantilever_members(X: FloatArray) -> Values:
    """Volume in dm^3; the stress at the root of each segment in MPa, and the deflection of the end in mm."""
    count = X.shape[1] // 2
    width, height = X[:, :count], X[:, count:]
    reach = CANTILEVER_LENGTH * (1.0 - np.arange(count + 1) / count)
    inertia = width * height**3 / 12.0
    stress = MPA * CANTILEVER_LOAD * 100.0 * reach[:-1] * height / (2.0 * inertia)
    cubes = 1e6 * (reach[:-1] ** 3 - reach[1:] ** 3)
    deflection = 10.0 * (CANTILEVER_LOAD * cubes / (3.0 * YOUNG * inertia)).sum(axis=1)
    return 0.1 * (CANTILEVER_LENGTH / count) * (width * height).sum(axis=1), np.column_stack([stress, deflection])


def cantilever(X: FloatArray) -> Values:
    """Volume; the largest stress, and the deflection of the end."""
    return _maximum(cantilever_members(X))


# A cantilever of three segments of 1 m, loaded at its end, that touches an elastic stop after a gap, 2 m from its root.
_STOP = Frame(
    nodes=np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]),
    beams=np.array([[0, 1], [1, 2], [2, 3]]),
    held=(0, 1, 2),
    loads=_loads(12, {10: -40.0}, {7: 1.0}),
)
_STOP_WIDTH = 6.0


def _stop(X: FloatArray, push: Callable[[FloatArray], FloatArray]) -> tuple[Values, FloatArray]:
    """Return the outputs where the stop pushes with `push` of the force that holds the beam off it, and that force."""
    heights, gap, stiffness = X[:, :3], X[:, 3], X[:, 4]
    inertias = _STOP_WIDTH * heights**3 / 12.0
    _, moments, moved = _STOP.solve(_STOP_WIDTH * heights, inertias)
    force = (-moved[:, 7, 0] - gap) / (moved[:, 7, 1] + 1.0 / stiffness)
    reaction = push(force)
    moment = moments[..., 0] + reaction[:, None, None] * moments[..., 1]
    stress = MPA * 100.0 * moment / (2.0 * inertias / heights)[:, :, None]
    sag = -(moved[:, 10, 0] + reaction * moved[:, 10, 1])
    parts = np.stack([stress, -stress], axis=3).reshape(len(X), 12)
    f = MASS * _STOP_WIDTH * heights.sum(axis=1) + 10.0 * stiffness
    return (f, np.column_stack([parts, sag, -gap])), force


def stop_open_parts(X: FloatArray) -> Values:
    """Cost; stresses, sag, gap; by how far the stop is missed, negative: the beam does not reach the stop."""
    (f, c), force = _stop(X, np.zeros_like)
    return f, np.column_stack([c, force])


def stop_closed_parts(X: FloatArray) -> Values:
    """Cost; stresses, sag, gap; the negative force of the stop: the beam pushes against the stop."""
    (f, c), force = _stop(X, lambda force: force)
    return f, np.column_stack([c, -force])


def stop(X: FloatArray) -> Values:
    """Cost; the largest stress, the sag of the end, and the negative gap."""
    (f, c), _ = _stop(X, lambda force: np.maximum(force, 0.0))
    return f, np.column_stack([c[:, :-2].max(axis=1), c[:, -2:]])
