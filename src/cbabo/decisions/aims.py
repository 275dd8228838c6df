"""The probability of feasibility that a decision tool aims at."""

from __future__ import annotations

from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.methods.settings import DefaultSettings
from cbabo.numerics.arrays import is_number


def aimed_probability(fitted: Fitted, probability: float | None, tool: str) -> float:
    """Return the probability asked for, or that of the settings; that of the default method where the method aims at none."""
    if probability is None:
        settings = fitted.settings
        return settings.probability if isinstance(settings, DefaultSettings) else DefaultSettings().probability
    if not (is_number(probability) and 0.0 < probability < 1.0):
        raise InputError(f"{tool}: probability must be a number between 0 and 1, got {shown(probability)}")
    return float(probability)


def refuse_source(method: str | None, what: str) -> None:
    """Refuse to answer by the network where only the surrogates can."""
    if method is not None:
        raise InputError(
            f"predict: with {what} the surrogates' problem is solved; leave method out, got {shown(method)}"
        )
