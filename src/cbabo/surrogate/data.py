"""Validation of training and query data, and standardisation of outputs.

Shapes: x n x d, unit cube; y n x q, natural units; both in double precision, one row for each evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cbabo.errors import SurrogateError
from cbabo.numerics.tolerances import FARTHEST_OUTSIDE, SAME_DESIGN


@dataclass(frozen=True)
class DataTuning:
    """Numbers of the standardisation."""

    min_relative_scale: float = 1e-12
    """Standard deviation, as a share of the largest absolute value, up to which an output counts as constant."""


TUNING = DataTuning()


def standardisation(y: Tensor) -> tuple[Tensor, Tensor]:
    """Return centre and scale (q each) of outputs y (n x q): mean and standard deviation (n - 1), or 1 for a constant output."""
    centre = y.mean(0)
    if len(y) < 2:
        return centre, torch.ones_like(centre)
    scale = y.std(0)
    return centre, torch.where(scale > TUNING.min_relative_scale * y.abs().amax(0), scale, torch.ones_like(scale))


def check_data(x: Tensor, y: Tensor, least: int) -> None:
    """Raise SurrogateError unless x (n x d, unit cube) and y (n x q) are finite, in double precision, with n >= least."""
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y) or x.dtype != torch.float64 or y.dtype != torch.float64:
        raise SurrogateError(
            f"Expected x (n x d) and y (n x q) in double precision, got {tuple(x.shape)} {x.dtype} and {tuple(y.shape)} "
            f"{y.dtype}; pass one row for each evaluation in both."
        )
    if len(x) < least or not x.shape[1] or not y.shape[1]:
        raise SurrogateError(
            f"Expected at least {least} evaluations of at least one variable and one output, got {len(x)} of {x.shape[1]} and "
            f"{y.shape[1]}; evaluate more designs first."
        )
    for name, t in (("x", x), ("y", y)):
        if not bool(t.isfinite().all()):
            row, column = (~t.isfinite()).nonzero()[0].tolist()
            raise SurrogateError(
                f"Expected finite numbers, got {t[row, column].item()} in {name}, row {row}, column {column}; leave failed "
                "evaluations out of the data."
            )
    beyond = FARTHEST_OUTSIDE + SAME_DESIGN
    if bool(((x < -beyond) | (x > 1.0 + beyond)).any()):
        raise SurrogateError(
            f"Expected points in or close to the unit cube, got coordinates from {x.min().item():g} to "
            f"{x.max().item():g}; scale variables by their bounds."
        )


def check_query(x: Tensor, d: int) -> None:
    """Raise SurrogateError unless query points are b x d in double precision."""
    if x.ndim != 2 or x.shape[1] != d or x.dtype != torch.float64:
        raise SurrogateError(
            f"Expected query points b x {d} in double precision, got {tuple(x.shape)} {x.dtype}; pass unit-cube points as "
            "rows."
        )
