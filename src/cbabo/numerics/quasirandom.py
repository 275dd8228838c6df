"""Scrambled Sobol points: the seed fixes the sequence, and a draw may start at any position of it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine


def sobol(dimension: int, seed: int, count: int, position: int = 0) -> Tensor:
    """Return points (count x dimension, unit cube, double precision) of the sequence from a position on; count >= 1."""
    engine = SobolEngine(dimension, scramble=True, seed=seed)
    engine.fast_forward(position)
    points: Tensor = engine.draw(count, dtype=torch.float64)
    if position == 0:  # Torch computes the first point in its default precision, which the caller may set.
        points[0] = engine.shift.to(torch.float64) / 2**engine.MAXBIT
    return points
