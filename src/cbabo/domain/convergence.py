"""How far the answers of a study still move: what is said of it, and the share of the span at which a run may end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cbabo.errors import InputError, shown
from cbabo.numerics.arrays import is_number

FEWEST_MEASURED = 20
"""Measured designs below which nothing is said about convergence."""


@dataclass(frozen=True)
class Convergence:
    """How far the answers still move, in shares of the span: 0.004 is 0.4 %.

    Examples:
        >>> found = Convergence(evaluations=90, window=30, thresholds=64, moved=0.004, gain=0.002, risk=0.001)
        >>> str(found).partition("; ")[2]
        'expected further gain 0.2 %, risk 0.1 %'
        >>> round(found.figure, 3)
        0.007
    """

    evaluations: int
    """Measured evaluations that it is of."""
    window: int
    """The last evaluations, without which answers are compared."""
    thresholds: int
    """Thresholds that can be met, of 64."""
    moved: float
    """How much the answers have gained by the last evaluations."""
    gain: float
    """What is expected to be gained at most by further ones."""
    risk: float
    """The mean probability that an answer breaks a limit."""

    @property
    def figure(self) -> float:
        """The figure by which a run may stop: what the last evaluations have gained, and what may still be gained or lost."""
        return min(1.0, self.moved + self.gain + self.risk)

    def __str__(self) -> str:
        """Say it in plain words."""
        if not self.thresholds:
            return "no limits are known to be met yet, so that nothing can be said about convergence"
        return (
            f"over the last {self.window} evaluations the answers at {self.thresholds} thresholds moved by "
            f"{_percent(self.moved)} of the span; expected further gain {_percent(self.gain)}, risk {_percent(self.risk)}"
        )


def read_share(where: str, given: Any) -> float:
    """Read a share of the span, written as 0.005 or "0.5%".

    Examples:
        >>> read_share("until", "0.5%"), read_share("until", 0.005)
        (0.005, 0.005)
    """
    value = given
    if isinstance(given, str):
        number, percent, rest = given.strip().partition("%")
        try:
            value = float(number) / (100.0 if percent else 1.0) if not rest else None
        except ValueError:
            value = None
    if not is_number(value) or not 0.0 < value < 1.0:
        raise InputError(f'{where}: expected a share of the span such as 0.005 or "0.5%", got {shown(given)}')
    return float(value)


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %"
