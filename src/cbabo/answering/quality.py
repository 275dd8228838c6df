"""The quality of a model: every measured design predicted from all others.

Symbols and shapes
    observed         n x q    measured outputs, natural units
    predicted, std   n x q    what all other designs say about them
    z                n x q    errors in standard deviations, as the surrogates learn the outputs; standard normal if
                              these are right

A limited output that is a maximum over members has kinks where the largest member changes, which no kernel learns: its errors
stay large although it has no noise. Such outputs are recognised by that, and returning the members is recommended.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Probabilities of the central intervals by which calibration is judged."""


@dataclass(frozen=True)
class QualityTuning:
    """Numbers that decide which output behaves like a maximum."""

    evaluations: int = 60
    """Measured designs below which smooth outputs may have large errors too."""
    evaluations_per_variable: int = 6
    """The same for each variable."""
    error: float = 0.025
    """Median of the absolute leave-one-out errors, as a share of the output's interquartile range as it is learned. With 65
    designs limited outputs of five smooth problems stay below 0.014; the largest stress and displacement of a ten-bar truss, and
    the largest stress of a bridge, lie between 0.032 and 0.09. Root mean squares and kurtosis tell them apart less well: smooth
    outputs with poles have few, but very large errors."""
    noise: float = 1e-4
    """Noise variance, as a share of the output's variance, from which on noise explains the errors."""


TUNING = QualityTuning()


@dataclass(frozen=True, eq=False)
class Quality:
    """Leave-one-out predictions of all simulated outputs."""

    outputs: tuple[str, ...]
    ids: NDArray[np.int64]
    """n, the evaluations."""
    observed: FloatArray
    predicted: FloatArray
    std: FloatArray
    z: FloatArray
    explained: FloatArray
    """The share of each output's variance (q) that the predictions explain, as the surrogates learn it: 1 is perfect, 0 no better
    than the mean."""

    @cached_property
    def covered(self) -> FloatArray:
        """The share of each output's measurements (levels x q) that lie in the central interval of each level."""
        z = np.abs(self.z)
        return np.array([(z <= ndtri(0.5 + 0.5 * level)).mean(axis=0) for level in LEVELS])


def leave_one_out(fitted: Fitted) -> Quality:
    """Predict every measured design that the surrogates learned from by all others, hyperparameters kept."""
    measured = fitted.posterior.measured
    with one_thread():
        mean, deviation = fitted.surrogates.leave_one_out()
        y = fitted.surrogates.y
        z, explained = ((y - mean) / deviation).numpy(), explained_share(y.numpy(), mean.numpy())
        warp = fitted.posterior.warp
        predicted, std = (p.numpy() for p in ((mean, deviation) if warp is None else warp.natural(mean, deviation)))
    learned = list(fitted.problem.learned)
    ids = np.array([row.id for row in measured], dtype=np.int64)
    return Quality(
        tuple(fitted.problem.outputs[j] for j in learned), ids, measured.y[:, learned], predicted, std, z, explained
    )


def maxima_advice(fitted: Fitted) -> tuple[str, ...]:
    """Say which limited outputs behave like a maximum, in one sentence, if some do."""
    problem, s = fitted.problem, fitted.surrogates
    if len(s.x) < max(TUNING.evaluations, TUNING.evaluations_per_variable * s.x.shape[1]):
        return ()
    with one_thread():
        error = (s.leave_one_out()[0] - s.y).abs().median(0).values
        lower, upper = s.y.quantile(0.25, dim=0), s.y.quantile(0.75, dim=0)
        large = (error > TUNING.error * (upper - lower)) & (s.hyperparameters.noise < TUNING.noise)
    parts = {j for at in problem.parts.values() for j in at}
    found = [problem.outputs[j] for i, j in enumerate(problem.learned) if bool(large[i]) and j > 0 and j not in parts]
    if not found:
        return ()
    named = " and ".join(", ".join(found).rsplit(", ", 1))
    behave, they = ("behaves", "it is") if len(found) == 1 else ("behave", "they are")
    return (
        f"{named} {behave} like the maximum of several quantities (kinks, large errors without noise); "
        f"if {they}, let the simulator return the list of all of them instead, which is learned far better",
    )


def explained_share(observed: FloatArray, predicted: FloatArray) -> FloatArray:
    """Return the share of the variance of each column (q) that predictions explain; 1 for a constant one."""
    error = np.square(observed - predicted).sum(axis=0)
    spread = np.square(observed - observed.mean(axis=0)).sum(axis=0)
    constant = spread == 0.0
    return np.where(constant, 1.0, 1.0 - error / np.where(constant, 1.0, spread))
