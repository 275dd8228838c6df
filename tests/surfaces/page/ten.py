"""A problem with ten limits and eleven variables, with names of 30 characters and units of 10, for what must fit a window."""

from __future__ import annotations

from cbabo import Constraint, Discrete, Integer, Objective, Problem, Real

_UNITS = ["kN", "mm", "millimetre", "", "N·mm/(m·s)", "g", "kN", "Hz", "m/s", ""]
_NAMES = [
    "pubic force",
    "abdomen load at the lower ribs",
    "rib deflection, upper position",
    "viscous criterion",
    "B-pillar velocity at mid point",
    "door velocity",
    "roof crush",
    "first eigenfrequency of a body",
    "floor intrusion",
    "head injury",
]


def ten_limits() -> Problem:
    """Ten movable limits, the eighth of them a lower one."""
    constraints = [
        Constraint(name, ">=" if i == 7 else "<=", low=1.0, high=4.0, unit=unit, nominal=2.5)
        for i, (name, unit) in enumerate(zip(_NAMES, _UNITS, strict=True))
    ]
    numbers = [Real(f"thickness {i}", 0.5, 1.5, unit="mm") for i in range(9)]
    return Problem(
        "side impact",
        [*numbers, Integer("ribs", 2, 9), Discrete("gauge of the outer door panel", [0.192, 0.345, 0.5])],
        Objective("mass", unit="kg"),
        constraints,
    )


def simulate_ten(point: dict[str, float]) -> dict[str, float]:
    """Mass rises with every thickness; each limited output falls with some of them."""
    x = [(value - 0.5) for value in list(point.values())[:9]]
    ribs, gauge = (point["ribs"] - 2) / 7, (point["gauge of the outer door panel"] - 0.192) / 0.308
    found: dict[str, float] = {"mass": 12 + 2 * sum(x) + 1.5 * ribs + gauge}
    for i, name in enumerate(_NAMES):
        stiff = 1.8 * x[i % 9] + 0.7 * x[(i + 3) % 9] ** 2 + 0.4 * ribs + 0.3 * gauge
        found[name] = 1.2 + 0.9 * stiff if i == 7 else 4.2 - stiff + (0.6 * x[(i + 5) % 9] if i % 3 else 0.0)
    return found
