"""Random noise on the outputs of a shipped problem.

y: q outputs of one evaluation, objective first; deviations: q. Additive noise gives y + deviations * e, multiplicative noise
y * (1 + deviations * e), where the entries of e are independent, with mean zero and standard deviation one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from cbabo.errors import InputError
from cbabo.numerics.arrays import FloatArray

STUDENT_FREEDOM: Final = 3
"""Degrees of freedom of Student noise: the fewest, as a whole number, with a finite standard deviation."""


@dataclass(frozen=True)
class Noise:
    """How the measured outputs of a problem scatter about its noise-free ones.

    >>> noise = Noise("additive", (0.0, 0.5))
    >>> noise.measured(np.array([3.0, 1.0]), np.random.default_rng(0)).round(2)
    array([3.  , 0.93])
    """

    kind: Literal["additive", "multiplicative"]

    deviations: tuple[float, ...]
    """The standard deviation for each output, in the output's unit or as a share of its value; zero: the output is exact."""

    distribution: Literal["normal", "student"] = "normal"
    """student: t with 3 degrees of freedom, scaled to the same standard deviation; one value in 70 is beyond 3 deviations."""

    def __post_init__(self) -> None:
        if not self.deviations or not all(math.isfinite(s) and s >= 0.0 for s in self.deviations):
            raise InputError(
                f"noise: expected a standard deviation of zero or more for each output, got {self.deviations}; "
                "give zero where an output is exact"
            )

    def measured(self, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return the outputs y (q) with noise."""
        if self.distribution == "student":
            e = generator.standard_t(STUDENT_FREEDOM, len(y)) / math.sqrt(STUDENT_FREEDOM / (STUDENT_FREEDOM - 2.0))
        else:
            e = generator.standard_normal(len(y))
        unit = 1.0 if self.kind == "additive" else y
        return np.asarray(y + unit * np.array(self.deviations) * e)
