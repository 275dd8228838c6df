"""The simulators of several tests.

Every worker process imports this module, so that it imports nothing heavy: that would be most of a worker's cost.
"""

from __future__ import annotations


def simulate_beam(point: dict[str, float]) -> dict[str, float]:
    """The beam's simulator: quick, smooth, and with one number that nobody asked for."""
    width, ribs = point["width"], point["ribs"]
    return {
        "mass": width**2 + 0.3 * ribs,
        "stress": 12.0 / (width**2 + 0.1 * ribs),
        "frequency": 1.5 * width + 0.2 * ribs,
        "cost": 5.0 * width + 4.0 * ribs,
        "elements": 1000.0 * width,
    }


def simulate_awkward(point: dict[str, float]) -> dict[str, float]:
    """The beam with numbers at the ends of what a float can hold, and failures."""
    from cbabo.domain.current import current_evaluation

    if (current_evaluation.get() or 0) % 7 == 0:
        raise ValueError("mesh did not converge")
    return {**simulate_beam(point), "tiny": 5e-324, "huge": 1.7976931348623157e308, "minus zero": -0.0}


def simulate_valley(point: dict[str, float]) -> dict[str, float]:
    import numpy as np

    a, b = point["a"], (point["b"] - 20.0) / 10.0
    return {"f": (a - 0.6) ** 2 + 0.5 * (b + 0.4) ** 2, "c": 1.0 + a - 0.5 * b**2, "g": np.sin(2.0 * b) + a}


def simulate_mirrored(point: dict[str, float]) -> dict[str, float]:
    return {name: -value for name, value in simulate_valley(point).items()}


def simulate_lattice(point: dict[str, float]) -> dict[str, float]:
    return {"f": (point["i"] - 2.4) ** 2 + 3.0 * (point["g"] - 0.5) ** 2, "c": point["i"] * (0.6 + point["g"])}


def simulate_wavy(point: dict[str, float]) -> dict[str, float]:
    import numpy as np

    x = np.array(list(point.values()))
    return {"f": float(np.sin(40.0 * x * x[::-1]).sum() - x.sum()), "c": float(x.sum()), "g": float(x[0])}
