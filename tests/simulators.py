"""A problem and its simulator that several tests use; importable in worker processes too."""

from __future__ import annotations

from cbabo import Constraint, Integer, Objective, Problem, Real


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
