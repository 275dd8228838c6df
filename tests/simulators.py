"""Problems and their simulators, for several tests. A worker process imports this module, so that it must not import torch."""

from __future__ import annotations

import numpy as np

from cbabo import Constraint, Discrete, Integer, Objective, Problem, Real


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


def make_beam() -> Problem:
    """A small problem with a real and an integer variable, a >= limit and a fixed one."""
    return Problem(
        "beam",
        [Real("width", 1.0, 3.0), Integer("ribs", 0, 4)],
        Objective("mass", unit="kg"),
        [
            Constraint("stress", "<=", low=1.0, high=9.0, nominal=5.0),
            Constraint("frequency", ">=", low=2.0, high=6.0),
            Constraint("cost", "<=", limit=40.0),
        ],
    )


def valley() -> Problem:
    """Two reals; both limits cost something, one of them is a >= on the output of which another is a <=."""
    return Problem(
        "valley",
        [Real("a", -1.0, 1.0), Real("b", 10.0, 30.0)],
        Objective("f"),
        [
            Constraint("c", "<=", low=0.0, high=2.0),
            Constraint("g", ">=", low=-1.0, high=1.0),
            Constraint("g_top", "<=", limit=2.5, outputs="g"),
        ],
    )


def simulate_valley(point: dict[str, float]) -> dict[str, float]:
    a, b = point["a"], (point["b"] - 20.0) / 10.0
    return {"f": (a - 0.6) ** 2 + 0.5 * (b + 0.4) ** 2, "c": 1.0 + a - 0.5 * b**2, "g": np.sin(2.0 * b) + a}


def mirrored() -> Problem:
    """The valley restated: maximise instead of minimise, >= instead of <= and the other way round."""
    return Problem(
        "mirrored",
        [Real("a", -1.0, 1.0), Real("b", 10.0, 30.0)],
        Objective("f", direction="maximize"),
        [
            Constraint("c", ">=", low=-2.0, high=0.0),
            Constraint("g", "<=", low=-1.0, high=1.0),
            Constraint("g_top", ">=", limit=-2.5, outputs="g"),
        ],
    )


def simulate_mirrored(point: dict[str, float]) -> dict[str, float]:
    return {name: -value for name, value in simulate_valley(point).items()}


def lattice() -> Problem:
    """No continuous variable at all."""
    return Problem(
        "lattice",
        [Integer("i", 0, 3), Discrete("g", [0.1, 0.2, 0.8])],
        Objective("f"),
        [Constraint("c", "<=", low=0.0, high=4.0)],
    )


def simulate_lattice(point: dict[str, float]) -> dict[str, float]:
    return {"f": (point["i"] - 2.4) ** 2 + 3.0 * (point["g"] - 0.5) ** 2, "c": point["i"] * (0.6 + point["g"])}


def wavy() -> Problem:
    """Far more waves than evaluations; the first limit holds back how deep one may go."""
    reals = [Real(f"x{i}", 0.0, 1.0) for i in range(5)]
    constraints = [Constraint("c", "<=", low=1.5, high=3.5), Constraint("g", ">=", low=0.0, high=0.5)]
    return Problem("wavy", reals, Objective("f"), constraints)


def simulate_wavy(point: dict[str, float]) -> dict[str, float]:
    x = np.array(list(point.values()))
    return {"f": float(np.sin(40.0 * x * x[::-1]).sum() - x.sum()), "c": float(x.sum()), "g": float(x[0])}


def band() -> Problem:
    """A limit from below and one from above on the same output: they may contradict each other."""
    return Problem(
        "band",
        [Real("x", 0, 1)],
        Objective("f"),
        [
            Constraint("low", ">=", low=0.0, high=1.0, outputs="y"),
            Constraint("top", "<=", low=0.0, high=1.0, outputs="y"),
        ],
    )
