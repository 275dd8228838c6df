"""Surrogates: one exact Gaussian process for each output, fitted and queried as one batch."""

from __future__ import annotations

from cbabo.surrogate.fit import fit
from cbabo.surrogate.forms import Forms, choose
from cbabo.surrogate.gp import Prediction, Surrogates, condition
from cbabo.surrogate.hyperparameters import Hyperparameters
from cbabo.surrogate.likelihood import Priors
from cbabo.surrogate.pointwise import Pointwise
from cbabo.surrogate.warp import Warp

__all__ = [
    "Forms",
    "Hyperparameters",
    "Pointwise",
    "Prediction",
    "Priors",
    "Surrogates",
    "Warp",
    "choose",
    "condition",
    "fit",
]
