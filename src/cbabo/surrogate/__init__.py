"""Surrogates: one exact Gaussian process for each raw output, fitted and queried as one batch."""

from __future__ import annotations

from cbabo.surrogate.fit import fit
from cbabo.surrogate.gp import Hyperparameters, Prediction, Surrogates, condition
from cbabo.surrogate.likelihood import Priors

__all__ = ["Hyperparameters", "Prediction", "Priors", "Surrogates", "condition", "fit"]
