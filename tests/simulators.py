"""Simulators that several tests use; importable in worker processes too."""

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
