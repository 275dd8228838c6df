"""Sobol points: scrambled by a seed, and continued from wherever the last draw ended."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine


def sobol(dimension: int, seed: int, count: int, position: int = 0) -> Tensor:
    """Return points (count x dimension, unit cube, double precision) from a position of the sequence on; at least one."""
    engine = SobolEngine(dimension, scramble=True, seed=seed)
    engine.fast_forward(position)
    points: Tensor = engine.draw(count, dtype=torch.float64)
    if position == 0:  # torch keeps the first point in its default precision, which is the caller's to choose
        points[0] = engine.shift.to(torch.float64) / 2**engine.MAXBIT
    return points
