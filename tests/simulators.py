"""Problems and their simulators, for several tests."""

from __future__ import annotations

from typing import Any

from cbabo import Categorical, Constraint, Discrete, Integer, Objective, Problem, Real
from simulated import simulate_awkward as simulate_awkward
from simulated import simulate_beam as simulate_beam
from simulated import simulate_lattice as simulate_lattice
from simulated import simulate_mirrored as simulate_mirrored
from simulated import simulate_valley as simulate_valley
from simulated import simulate_wavy as simulate_wavy


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


def lattice() -> Problem:
    """No continuous variable at all."""
    return Problem(
        "lattice",
        [Integer("i", 0, 3), Discrete("g", [0.1, 0.2, 0.8])],
        Objective("f"),
        [Constraint("c", "<=", low=0.0, high=4.0)],
    )


def wavy() -> Problem:
    """Far more waves than evaluations; the first limit holds back how deep one may go."""
    reals = [Real(f"x{i}", 0.0, 1.0) for i in range(5)]
    constraints = [Constraint("c", "<=", low=1.5, high=3.5), Constraint("g", ">=", low=0.0, high=0.5)]
    return Problem("wavy", reals, Objective("f"), constraints)


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


MATERIALS = {"steel": (1.0, 1.0), "aluminium": (1.5, 0.7), "titanium": (2.2, 0.3)}
"""Price and softness."""


def bar() -> Problem:
    """Two widths and a material: titanium is best for strict limits, aluminium for looser ones."""
    return Problem(
        "bar",
        [Real("a", 0.0, 1.0), Categorical("material", tuple(MATERIALS)), Real("b", 0.0, 1.0)],
        Objective("cost"),
        [Constraint("stress", low=0.2, high=1.5)],
    )


def simulate_bar(point: dict[str, Any]) -> dict[str, float]:
    price, soft = MATERIALS[point["material"]]
    size = point["a"] + 0.5 * point["b"]
    return {"cost": price * (0.3 + size + 0.2 * size**2), "stress": soft * (1.6 - 0.9 * size + 0.1 * point["a"] ** 2)}
