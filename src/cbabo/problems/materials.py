"""The categorical suite: problems in which a material is chosen, and where the best one depends on the limits.

Both are functions of the other suites' kind with the constants of the chosen material; the materials' numbers are this package's,
chosen so that the best material changes within the box: among two of the car's four for most thresholds, among all four of the
welded beam's. True optima are known by enumeration: one search for each material.

X: n x v designs in natural units, one per row; the material is its index.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Final

import numpy as np

from cbabo.domain.categorical import Categorical
from cbabo.domain.constraints import Constraint
from cbabo.domain.problem import Objective, Problem
from cbabo.domain.space import Real
from cbabo.numerics.arrays import FloatArray
from cbabo.problems import engineering, references
from cbabo.problems.shipped import ShippedProblem


@dataclass(frozen=True)
class _Sheet:
    """A sheet material of the car's structure."""

    strength: float
    """The response surfaces' material variable: 0.192 is mild steel, 0.345 is high-strength steel."""
    stiffness: float
    """By what a thickness is multiplied before it enters the response surfaces."""
    weight: float
    """Weight of a thickness, mild steel being 1."""
    joining: float
    """What its joints add to the weight."""


@dataclass(frozen=True)
class _Stock:
    """A bar material of the welded beam, in inches, pounds and dollars."""

    strength: float
    modulus: float
    shear_modulus: float
    density: float
    price: float
    """Of a cubic inch."""


SHEETS: Final = {
    "mild steel": _Sheet(0.192, 1.0, 1.0, 0.0),
    "high-strength steel": _Sheet(0.345, 1.0, 1.03, 0.6),
    "aluminium": _Sheet(0.25, 0.9, 0.82, 2.0),
    "composite": _Sheet(0.30, 1.15, 1.0, 3.0),
}
STOCKS: Final = {
    "steel": _Stock(30e3, 30e6, 12e6, 0.283, 0.0481),
    "cast iron": _Stock(16e3, 14e6, 6e6, 0.26, 0.0235),
    "aluminium": _Stock(24e3, 10e6, 4e6, 0.098, 0.045),
    "titanium": _Stock(70e3, 16e6, 6e6, 0.16, 0.09),
}

_LOAD = 6000.0
_LENGTH = 14.0
_WELD_PRICE = 1.10471
_SHEET_CONSTANTS = np.array([astuple(s) for s in SHEETS.values()])
_STOCK_CONSTANTS = np.array([astuple(s) for s in STOCKS.values()])


def car_material(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight of a car's side structure whose sheets are all of one material: see `engineering.car`.

    x1 to x7 are thicknesses, x8 and x9 the barrier's height and position.

    >>> f, c = car_material(np.array([[1.0] * 7 + [0.0, -10.0, -10.0]]))
    >>> f.round(2).tolist(), c.shape
    ([29.05], (1, 10))
    """
    thickness, barrier = X[:, :7], X[:, 8:]
    strength, stiffness, weight, joining = _SHEET_CONSTANTS[X[:, 7].astype(np.int64)].T
    stiff = thickness * stiffness[:, None]
    _, c = engineering.car(np.column_stack([stiff, strength, strength, barrier]))
    zero = np.zeros_like(strength)
    bare, _ = engineering.car(np.column_stack([thickness, strength, strength, barrier]))
    nothing, _ = engineering.car(np.column_stack([np.zeros_like(thickness), zero, zero, barrier]))
    return nothing + joining + weight * (bare - nothing), c


def welded_beam_material(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cost of a welded cantilever: weld size as a share of the width x1, weld length x2, height x3, width x4 (inches).

    The constraints are the shear stress of the weld and the bending stress, both as shares of the material's strength, the
    deflection, the load as a share of the buckling load, and the mass.

    >>> f, c = welded_beam_material(np.array([[0.8, 3.5, 9.0, 0.25, 0.0]]))
    >>> f.round(2).tolist(), c.shape
    ([2.06], (1, 5))
    """
    share, weld, height, width = X[:, :4].T
    strength, modulus, shear_modulus, density, price = _STOCK_CONSTANTS[X[:, 4].astype(np.int64)].T
    size = share * width
    direct = _LOAD / (np.sqrt(2.0) * size * weld)
    radius = np.sqrt(weld**2 / 4 + ((size + height) / 2) ** 2)
    polar = 2 * np.sqrt(2.0) * size * weld * (weld**2 / 12 + ((size + height) / 2) ** 2)
    torsion = _LOAD * (_LENGTH + weld / 2) * radius / polar
    shear = np.sqrt(direct**2 + direct * torsion * weld / radius + torsion**2)
    bending = 6 * _LOAD * _LENGTH / (width * height**2)
    deflection = 4 * _LOAD * _LENGTH**3 / (modulus * width * height**3)
    slender = 1 - height / (2 * _LENGTH) * np.sqrt(modulus / (4 * shear_modulus))
    buckling = 4.013 * modulus * height * width**3 / 6 / _LENGTH**2 * slender
    bar, seam = height * width * (_LENGTH + weld), size**2 * weld
    c = [shear / (0.577 * strength), bending / strength, deflection, _LOAD / buckling, density * (bar + seam)]
    return _WELD_PRICE * (1 + price) * seam + price * bar, np.column_stack(c)


def _limits(box: list[tuple[float, float]]) -> list[Constraint]:
    return [Constraint(f"c{j}", "<=", low=low, high=high) for j, (low, high) in enumerate(box, start=1)]


CAR_MATERIAL: Final = ShippedProblem(
    Problem(
        "car_material",
        [
            *(Real(f"x{i}", 0.45 if i == 2 else 0.5, 1.35 if i == 2 else 1.5) for i in range(1, 8)),
            Categorical("material", tuple(SHEETS)),
            Real("x8", -20.0, 0.0),
            Real("x9", -20.0, 0.0),
        ],
        Objective("f"),
        _limits(
            [
                *[(-0.4, -0.25), (-0.68, -0.64), (-0.69, -0.66), (-0.21, -0.17), (-4.0, -2.5)],
                *[(-4.5, -2.5), (1.0, 7.0), (0.0, 0.35), (-1.0, -0.5), (-0.5, 0.0)],
            ]
        ),
    ),
    "categorical",
    car_material,
    source=references.BO_ENGINEERING,
    notes="The response surfaces of car, with one material for all sheets; the materials and the box are this package's.",
)
WELDED_BEAM_MATERIAL: Final = ShippedProblem(
    Problem(
        "welded_beam_material",
        [
            *[Real("x1", 0.1, 1.0), Real("x2", 0.5, 8.0), Real("x3", 2.0, 10.0), Real("x4", 0.1, 2.0)],
            Categorical("material", tuple(STOCKS)),
        ],
        Objective("f"),
        _limits([(0.6, 1.2), (0.6, 1.2), (0.08, 0.4), (0.6, 1.2), (6.0, 16.0)]),
    ),
    "categorical",
    welded_beam_material,
    source=references.WELDED_BEAM,
    notes="The formulas of the welded beam, stresses as shares of the strength; the materials and the box are this package's.",
)

CATEGORICAL: Final = (CAR_MATERIAL, WELDED_BEAM_MATERIAL)
"""The suite in order."""
