"""An L-shaped steel bracket in plane stress, computed by CalculiX: 7 variables, 2 limits. Needs the Debian package calculix-ccx.

The least mass for the largest von Mises stress of all integration points and for the deflection of the loaded end. The arms
taper; the lower arm, the corner and the loaded arm have a thickness each.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from cbabo import Constraint, Objective, Problem, Real
from cbabo.domain.space import Point
from cbabo.errors import EvaluationError
from cbabo.numerics.arrays import FloatArray

PROBLEM = Problem(
    "bracket",
    [
        Real("base", 15.0, 60.0, unit="mm"),
        Real("neck", 15.0, 60.0, unit="mm"),
        Real("root", 15.0, 60.0, unit="mm"),
        Real("tip", 8.0, 40.0, unit="mm"),
        Real("thick_lower", 2.0, 12.0, unit="mm"),
        Real("thick_corner", 2.0, 12.0, unit="mm"),
        Real("thick_upper", 2.0, 12.0, unit="mm"),
    ],
    Objective("mass", unit="kg"),
    [
        Constraint("stress", "<=", low=150.0, high=400.0, unit="MPa"),
        Constraint("deflection", "<=", low=0.8, high=2.0, unit="mm"),
    ],
)
HEIGHT, REACH = 120.0, 200.0
"""Of the lower arm below the corner, and of the whole upper arm from the outer edge, mm."""
FORCE = 2000.0
"""At the end, N."""
DENSITY = 7.85e-6
"""kg/mm^3."""
ELEMENTS = ((4, 8), (4, 4), (10, 4))
"""Elements across and along the lower arm, the corner and the upper arm; neighbours share their edges."""
STRESSES = 4 * 2 * sum(across * along for across, along in ELEMENTS)
"""Integration points: CalculiX makes solid elements of plane ones, with two layers of four points."""
_CYCLE = ((0, 0), (2, 0), (2, 2), (0, 2), (1, 0), (2, 1), (1, 2), (0, 1))
"""Corners and midside nodes of an element of eight nodes, in half steps."""


def evaluate(point: Point) -> dict[str, float]:
    """Simulate one design."""
    parts = _parts(np.array([float(point[name]) for name in PROBLEM.space.names]))
    return {name: float(part.max()) for name, part in zip(PROBLEM.outputs, parts, strict=True)}


def evaluate_many(X: FloatArray) -> FloatArray:
    """Simulate designs, n x d; outputs n x q, NaN where CalculiX fails."""
    return np.column_stack([part.max(axis=1) for part in evaluate_parts(X)])


def evaluate_parts(X: FloatArray) -> list[FloatArray]:
    """Simulate designs, n x d; for each output the values that it is the largest of, n x parts, NaN where CalculiX fails."""
    rows = []
    for x in X:
        try:
            rows.append(_parts(x))
        except EvaluationError:
            rows.append([np.full(count, np.nan) for count in (1, STRESSES, 1)])
    return [np.array(part) for part in zip(*rows, strict=True)]


def _parts(x: FloatArray) -> list[FloatArray]:
    patches = _patches(*x[:4])
    numbers: dict[tuple[int, int], int] = {}
    places: list[tuple[float, float]] = []
    lines, sets, element, volume = [], [], 0, 0.0
    for patch, (grid, thickness) in enumerate(zip(patches, x[4:], strict=True)):
        sets.append(f"*ELEMENT, TYPE=CPS8R, ELSET=E{patch}")
        for i in range(0, grid.shape[0] - 1, 2):
            for j in range(0, grid.shape[1] - 1, 2):
                nodes = [_number(grid[i + di, j + dj], numbers, places) for di, dj in _CYCLE]
                element += 1
                sets.append(f"{element}, {', '.join(map(str, nodes))}")
                volume += thickness * _area(grid[[i, i + 2, i + 2, i], [j, j, j + 2, j + 2]])
        sets.append(f"*SOLID SECTION, ELSET=E{patch}, MATERIAL=STEEL\n{thickness:.10g}")
    lines += [
        "*NODE, NSET=ALL",
        *(f"{n}, {px:.10g}, {py:.10g}, 0" for n, (px, py) in enumerate(places, start=1)),
        *sets,
    ]
    held = [numbers[_key(place)] for place in patches[0][:, 0]]
    end = [numbers[_key(place)] for place in patches[2][-1, :]]
    weights = _simpson(len(end))
    lines += [f"*NSET, NSET=END\n{end[0]}"]
    lines += ["*MATERIAL, NAME=STEEL", "*ELASTIC", "210000, 0.3", "*BOUNDARY", *(f"{n}, 1, 2" for n in held)]
    lines += ["*STEP", "*STATIC", "*CLOAD", *(f"{n}, 2, {-FORCE * w:.10g}" for n, w in zip(end, weights, strict=True))]
    lines += ["*NODE PRINT, NSET=END", "U", *(f"*EL PRINT, ELSET=E{patch}\nS" for patch in range(3)), "*END STEP", ""]
    stress, deflection = _run("\n".join(lines))
    return [np.array([DENSITY * volume]), stress, np.array([deflection])]


def _patches(base: float, neck: float, root: float, tip: float) -> list[FloatArray]:
    """Return the node grids of the three parts at half steps, each (2 across + 1) x (2 along + 1) x 2."""
    top = HEIGHT + root
    corners = (
        [(0.0, 0.0), (base, 0.0), (neck, HEIGHT), (0.0, HEIGHT)],
        [(0.0, HEIGHT), (neck, HEIGHT), (neck, top), (0.0, top)],
        [(neck, HEIGHT), (REACH, top - tip), (REACH, top), (neck, top)],
    )
    grids = []
    for (a, b, c, d), (across, along) in zip((np.array(four) for four in corners), ELEMENTS, strict=True):
        s = np.linspace(0.0, 1.0, 2 * across + 1)[:, None, None]
        t = np.linspace(0.0, 1.0, 2 * along + 1)[None, :, None]
        grids.append((1 - s) * (1 - t) * a + s * (1 - t) * b + s * t * c + (1 - s) * t * d)
    return grids


def _key(place: FloatArray) -> tuple[int, int]:
    return round(1e6 * place[0]), round(1e6 * place[1])


def _number(place: FloatArray, numbers: dict[tuple[int, int], int], places: list[tuple[float, float]]) -> int:
    """Return the number of the node at a place; a new one if there is none."""
    key = _key(place)
    if key not in numbers:
        places.append((float(place[0]), float(place[1])))
        numbers[key] = len(places)
    return numbers[key]


def _area(corners: FloatArray) -> float:
    """Return the area of a polygon."""
    x, y = corners.T
    return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def _simpson(count: int) -> FloatArray:
    """Return the shares of an even load on the nodes of an edge of quadratic elements."""
    weights = np.zeros(count)
    for i in range(0, count - 1, 2):
        weights[i : i + 3] += [1.0, 4.0, 1.0]
    return weights / weights.sum()


def _run(text: str) -> tuple[FloatArray, float]:
    """Return the von Mises stress of every integration point, and how far the end moves down."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bracket.inp").write_text(text, encoding="ascii")
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            ["ccx", "bracket"], cwd=folder, capture_output=True, text=True, check=False, env=one_thread
        )
        results = Path(folder, "bracket.dat")
        written = results.read_text(encoding="ascii") if results.exists() else ""
    moved, _, stresses = written.partition("stresses")
    rows = [line.split() for line in moved.splitlines() if re.match(r"^\s+\d+\s+-?\d", line)]
    parts = [line.split() for line in stresses.splitlines() if re.match(r"^\s+\d+\s+\d+\s+-?\d", line)]
    if not rows or not parts:
        raise EvaluationError("CalculiX wrote no results", log=done.stdout[-2000:] + done.stderr[-2000:])
    xx, yy, zz, xy, xz, yz = np.array([part[2:8] for part in parts], dtype=np.float64).T
    squares = 0.5 * ((xx - yy) ** 2 + (yy - zz) ** 2 + (zz - xx) ** 2) + 3.0 * (xy**2 + xz**2 + yz**2)
    return np.sqrt(squares), -float(rows[0][2])
