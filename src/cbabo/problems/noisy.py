"""The rough suite's noisy problems: shipped problems of which every evaluation has random noise.

The noise-free optima are the original's. The unit of a deviation is the range of a limit for a constrained output, and for the
objective how far the optimum moves from the most relaxed limits to the strictest ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from cbabo.domain.problem import Problem
from cbabo.problems import active, paper, variant
from cbabo.problems.noise import Noise
from cbabo.problems.shipped import ShippedProblem

Units = tuple[float, ...]

NOISES: Final[Mapping[str, Callable[[Units], Noise]]] = MappingProxyType(
    {
        "noise1": lambda units: Noise("additive", _scaled(units, 0.01)),
        "noise5": lambda units: Noise("additive", _scaled(units, 0.05)),
        "noise20": lambda units: Noise("additive", _scaled(units, 0.20)),
        "multiplicative2": lambda units: Noise("multiplicative", (0.02,) * len(units)),
        "student5": lambda units: Noise("additive", _scaled(units, 0.05), "student"),
        "partly5": lambda units: Noise("additive", _every_other(_scaled(units, 0.05))),
    }
)
"""The noise of a problem by the end of its name, from the units of its outputs. Normal noise of 1, 5 and 20 %; 2 % of every
value; Student noise with the standard deviation of the 5 %; 5 % on the first constrained output, the third, and so on, only."""

SPANS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "three_truss": 219.91320281372367,
        "rc_beam": 268.6657034351331,
        "car_mixed": 7.661469199133004,
        "g04_active": 1392.9412435006852,
        "gkxwc2_active": 1.253235897503375,
        "pressure_vessel_active": 5913.614710607588,
        "speed_reducer_active": 627.2394402992368,
        "car_active": 11.1450103070619,
    }
)
"""How far the optimum of each original moves over its threshold box."""

_ORIGINALS = {s.name: s for s in (*paper.PAPER, *variant.VARIANT, *active.ACTIVE)}


def _scaled(units: Units, share: float) -> Units:
    return tuple(share * unit for unit in units)


def _every_other(units: Units) -> Units:
    return tuple(unit if i % 2 else 0.0 for i, unit in enumerate(units))


def _noisy(origin: ShippedProblem, ending: str) -> ShippedProblem:
    stated = origin.problem
    units = SPANS[origin.name], *(constraint.scale for constraint in stated.constraints)
    return replace(
        origin,
        problem=Problem(f"{origin.name}_{ending}", stated.variables, stated.objective, stated.constraints),
        suite="rough",
        notes=f"{origin.name} with noise; its known optimum is that of the noise-free functions.",
        noise=NOISES[ending](units),
        optima_of=origin.name,
    )


NOISY: Final[Mapping[str, tuple[ShippedProblem, ...]]] = MappingProxyType(
    {ending: tuple(_noisy(_ORIGINALS[name], ending) for name in SPANS) for ending in NOISES}
)
"""The noisy problems by their kind of noise."""
