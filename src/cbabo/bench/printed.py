"""Numbers printed in the paper, for tables that stand beside them. Its "g06" in some tables is g04."""

from __future__ import annotations

FEASIBILITY = {
    "g01": (39.5, 1.1, 99.5, 0.2),
    "g04": (97.6, 0.4, 98.7, 1.1),
    "g07": (69.2, 5.5, 100.0, 0.1),
    "g10": (99.1, 0.8, 100.0, 0.1),
    "c13": (79.1, 13.8, 99.7, 0.2),
    "ackley2": (100.0, 0.2, 100.0, 0.0),
    "ackley6": (99.9, 0.2, 100.0, 0.0),
    "ackley10": (99.8, 0.2, 100.0, 0.0),
    "gkxwc1": (100.0, 0.0, 100.0, 0.0),
    "gkxwc2": (90.5, 0.5, 99.8, 0.3),
    "keane18": (92.5, 15.8, 92.5, 15.8),
    "pressure_vessel": (87.7, 3.0, 100.0, 0.0),
    "rc_beam": (81.9, 1.3, 100.0, 0.1),
    "three_truss": (68.2, 6.7, 91.4, 4.0),
    "speed_reducer": (91.7, 0.1, 96.8, 0.1),
    "car": (72.1, 0.9, 98.3, 0.3),
}
"""Feasible share in percent over 1,000 thresholds: prediction mean and deviation, refinement mean and deviation."""
