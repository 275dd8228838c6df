"""Plane trusses and frames by the finite element method, for many designs at once.

n designs; k nodes; e bars or beams; a load case is a column of nodal forces. Units: m for lengths, cm^2 for areas, cm^4 for
second moments of area, kN for forces, kN m for moments, mm for displacements.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbabo.numerics.arrays import FloatArray

YOUNG = 21_000.0
"""Young's modulus of steel, kN/cm^2."""
MASS = 0.785
"""Mass of steel, kg for a bar of 1 cm^2 and 1 m."""
CHUNK = 1000
"""Designs that are assembled at once, so that memory stays small."""

Bars = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Truss:
    """Bars between pinned nodes."""

    bars: Bars
    """The two nodes of each bar, e x 2."""
    held: tuple[int, ...]
    """Degrees of freedom that are held: 2 i is the horizontal one of node i, 2 i + 1 the vertical one."""
    loads: FloatArray
    """Nodal forces, 2 k x cases."""

    def solve(self, nodes: FloatArray, areas: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bar forces (n x e x cases), displacements (n x 2 k x cases) and bar lengths (n x e).

        nodes: n x k x 2, or k x 2 if all designs have the same; areas: n x e.
        """
        nodes = np.broadcast_to(nodes, (len(areas), *nodes.shape[-2:]))
        parts = [self._solve(nodes[i : i + CHUNK], areas[i : i + CHUNK]) for i in range(0, max(len(areas), 1), CHUNK)]
        forces, moved, lengths = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return forces, moved, lengths

    def _solve(self, nodes: FloatArray, areas: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        n, e = areas.shape
        along = nodes[:, self.bars[:, 1]] - nodes[:, self.bars[:, 0]]
        lengths = np.linalg.norm(along, axis=2)
        stretch = np.zeros((n, e, self.loads.shape[0]))
        rows = np.arange(e)
        for axis in range(2):
            cosine = along[:, :, axis] / lengths
            stretch[:, rows, 2 * self.bars[:, 0] + axis] = -cosine
            stretch[:, rows, 2 * self.bars[:, 1] + axis] = cosine
        free = stretch[:, :, self._free]
        springs = YOUNG * areas / lengths
        stiffness = np.swapaxes(free * springs[:, :, None], 1, 2) @ free
        moved = np.zeros((n, *self.loads.shape))
        loads = np.broadcast_to(self.loads[self._free], (n, len(self._free), self.loads.shape[1]))
        moved[:, self._free] = np.linalg.solve(stiffness, loads)
        return springs[:, :, None] * (stretch @ moved), 1000.0 * moved, lengths

    @cached_property
    def _free(self) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(self.loads.shape[0]), self.held)


@dataclass(frozen=True, eq=False)
class Frame:
    """Beams that are rigidly connected."""

    nodes: FloatArray
    """k x 2."""
    beams: Bars
    """The two nodes of each beam, e x 2."""
    held: tuple[int, ...]
    """Degrees of freedom that are held: 3 i, 3 i + 1 and 3 i + 2 are the two shifts and the rotation of node i."""
    loads: FloatArray
    """Nodal forces and moments, 3 k x cases."""

    def solve(self, areas: FloatArray, inertias: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return axial forces (n x e x cases), end moments (n x e x 2 x cases) and displacements (n x 3 k x cases).

        areas, inertias: n x e. Rotations among the displacements are in thousandths.
        """
        slices = [slice(i, i + CHUNK) for i in range(0, max(len(areas), 1), CHUNK)]
        parts = [self._solve(areas[some], inertias[some]) for some in slices]
        axial, moments, moved = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return axial, moments, moved

    def _solve(self, areas: FloatArray, inertias: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        n, free = len(areas), self._free
        factors = np.column_stack([YOUNG * areas, YOUNG * 1e-4 * inertias])
        stiffness = (factors @ self._whole).reshape(n, len(free), len(free))
        moved = np.zeros((n, *self.loads.shape))
        moved[:, free] = np.linalg.solve(
            stiffness, np.broadcast_to(self.loads[free], (n, len(free), self.loads.shape[1]))
        )
        shifts = moved[:, self._freedoms]
        axial, bending = (
            factor[:, :, None, None] * (local @ shifts)
            for factor, local in zip(np.split(factors, 2, axis=1), self._local, strict=True)
        )
        return axial[:, :, 3], bending[:, :, [2, 5]], 1000.0 * moved

    @cached_property
    def _free(self) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(self.loads.shape[0]), self.held)

    @cached_property
    def _freedoms(self) -> NDArray[np.int64]:
        """The degrees of freedom of each beam's ends, e x 6."""
        return np.concatenate([3 * self.beams[:, [end]] + np.arange(3) for end in (0, 1)], axis=1)

    @cached_property
    def _local(self) -> FloatArray:
        """Matrices from global displacements to local end forces for E A = 1 alone and for E I = 1 alone, 2 x e x 6 x 6."""
        found = np.zeros((2, len(self.beams), 6, 6))
        for i, (dx, dy) in enumerate(self.nodes[self.beams[:, 1]] - self.nodes[self.beams[:, 0]]):
            length = float(np.hypot(dx, dy))
            found[:, i] = _beam_stiffness(length) @ _rotation(dx / length, dy / length)
        return found

    @cached_property
    def _whole(self) -> FloatArray:
        """Stiffness matrices of the free degrees of freedom for one of all E A and E I being 1, 2 e x (free * free)."""
        e, size = len(self.beams), self.loads.shape[0]
        found = np.zeros((2, e, size, size))
        for i, (dx, dy) in enumerate(self.nodes[self.beams[:, 1]] - self.nodes[self.beams[:, 0]]):
            length = float(np.hypot(dx, dy))
            places = self._freedoms[i]
            found[:, i, places[:, None], places] = _rotation(dx / length, dy / length).T @ self._local[:, i]
        return found[:, :, self._free[:, None], self._free].reshape(2 * e, -1)


def _rotation(cosine: float, sine: float) -> FloatArray:
    """Return the matrix, 6 x 6, from global to local displacements of a beam's ends."""
    turn = np.zeros((6, 6))
    for i in (0, 3):
        turn[i : i + 2, i : i + 2] = [[cosine, sine], [-sine, cosine]]
        turn[i + 2, i + 2] = 1.0
    return turn


def _beam_stiffness(length: float) -> FloatArray:
    """Return the local stiffness matrices for E A = 1 alone and for E I = 1 alone, 2 x 6 x 6."""
    matrix = np.zeros((2, 6, 6))
    matrix[0, [0, 3], [0, 3]] = 1.0 / length
    matrix[0, [0, 3], [3, 0]] = -1.0 / length
    shape = np.array(
        [
            [12.0, 6.0 * length, -12.0, 6.0 * length],
            [6.0 * length, 4.0 * length**2, -6.0 * length, 2.0 * length**2],
            [-12.0, -6.0 * length, 12.0, -6.0 * length],
            [6.0 * length, 2.0 * length**2, -6.0 * length, 4.0 * length**2],
        ]
    )
    places = np.array([1, 2, 4, 5])
    matrix[1, places[:, None], places] = shape / length**3
    return matrix
