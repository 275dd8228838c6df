"""Audits: what a model claimed of designs before they were measured, and what was found.

Symbols
    p_i     the probability with which answer i was claimed to obey its limits
    k, n    how many of the n measured answers obey them

If the claims are right, k is a sum of independent events with probabilities p_i. The claim is rejected where a number as small
as k would be found in less than 5 % of all audits. Claims that were too careful are no reason for a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from cbabo.domain.space import Point

LEVEL = 0.05
"""Probability with which right claims are rejected at most; intervals have the complementary one."""


def tail_probability(claims: Sequence[float], found: int) -> float:
    """Return the probability that at most so many of independent events with these probabilities happen.

    Examples:
        >>> round(tail_probability([0.98] * 20, 17), 4), tail_probability([0.98] * 20, 20)
        (0.0071, 1.0)
    """
    chance = np.array([1.0])
    for p in claims:
        chance = np.convolve(chance, [1.0 - p, p])
    return float(min(1.0, chance[: found + 1].sum()))


def binomial_interval(found: int, count: int) -> tuple[float, float]:
    """Return the exact 95 % interval (Clopper and Pearson) of a share of which so many of a count were found.

    Examples:
        >>> [round(end, 3) for end in binomial_interval(20, 20)]
        [0.832, 1.0]
    """
    low = 0.0 if found == 0 else float(betaincinv(found, count - found + 1, 0.5 * LEVEL))
    return low, 1.0 if found == count else float(betaincinv(found + 1, count - found, 1.0 - 0.5 * LEVEL))


@dataclass(frozen=True)
class AuditedAnswer:
    """One answer of an audit: what was claimed of it, and what its evaluation found."""

    evaluation: int
    """Its id."""
    thresholds: Mapping[str, float]
    point: Point
    claimed: float
    """The probability with which all limits were claimed to be obeyed."""
    claimed_limits: Mapping[str, float]
    """The same for each limit by itself."""
    claimed_success: float
    """The probability with which the simulator was claimed to return at all."""
    found: bool | None = None
    """Whether all limits are obeyed; None where the evaluation failed."""
    found_limits: Mapping[str, bool] = field(default_factory=dict)
    beyond: Mapping[str, float] = field(default_factory=dict)
    """By how much each limit is broken, natural units; not above zero where it is obeyed."""
    deviations: Mapping[str, float] = field(default_factory=dict)
    """How much worse than predicted the output closest to each limit is, in standard deviations of the prediction."""


@dataclass(frozen=True)
class Share:
    """A claimed share and the one that was found."""

    name: str
    """The limit; "all limits" for all of them together."""
    claimed: float
    """Mean of the claimed probabilities."""
    found: int
    count: int
    low: float
    """Lower end of the 95 % interval of the found share."""
    high: float
    tail: float
    """The probability of finding so few, if the claims are right."""

    @property
    def rejected(self) -> bool:
        """Whether the claim is rejected at 95 %."""
        return self.tail < LEVEL


@dataclass(frozen=True)
class Audit:
    """A test of a model's claims at thresholds that it had not seen.

    Examples:
        >>> rows = [AuditedAnswer(i, {"stress": 2.0}, {"x": 1.0}, 0.98, {"stress": 0.98}, 1.0, i > 3, {"stress": i > 3})
        ...         for i in range(1, 21)]
        >>> audit = Audit(tuple(rows), drawn=24, verified=3, unreachable=1)
        >>> audit.joint.found, audit.joint.count, audit.rejected
        (17, 20, True)
    """

    rows: tuple[AuditedAnswer, ...]
    drawn: int
    """Thresholds that were drawn."""
    verified: int = 0
    """How many of these are answered by measured designs, of which nothing is left to test."""
    unreachable: int = 0
    """How many of them cannot be met, by the model."""
    number: int = 0
    """Of its entry in the ledger; 0 before it has one."""
    made: str = ""
    """When, ISO 8601."""

    @cached_property
    def measured(self) -> tuple[AuditedAnswer, ...]:
        """The answers whose evaluation returned."""
        return tuple(row for row in self.rows if row.found is not None)

    @cached_property
    def joint(self) -> Share:
        """All limits together."""
        return _share("all limits", [r.claimed for r in self.measured], [bool(r.found) for r in self.measured])

    @cached_property
    def limits(self) -> tuple[Share, ...]:
        """Each limit by itself."""
        names = self.measured[0].claimed_limits if self.measured else ()
        return tuple(
            _share(name, [r.claimed_limits[name] for r in self.measured], [r.found_limits[name] for r in self.measured])
            for name in names
        )

    @cached_property
    def success(self) -> Share:
        """Whether the simulator returned."""
        return _share(
            "simulator returns", [r.claimed_success for r in self.rows], [r.found is not None for r in self.rows]
        )

    @property
    def rejected(self) -> bool:
        """Whether the claim that answers obey all limits is rejected at 95 %."""
        return self.joint.rejected

    @cached_property
    def errors(self) -> tuple[AuditedAnswer, ...]:
        """The answers that were found to break a limit."""
        return tuple(row for row in self.measured if not row.found)

    @cached_property
    def where(self) -> tuple[str, ...]:
        """Say on which side of which limits all errors lie, where there are at least two."""
        if len(self.errors) < 2:
            return ()
        found = []
        for name in self.errors[0].thresholds:
            middle = float(np.median([row.thresholds[name] for row in self.measured]))
            errors = [row.thresholds[name] for row in self.errors]
            side = "<=" if max(errors) <= middle else ">=" if min(errors) >= middle else None
            if side is not None:
                found.append(f"all {len(errors)} broken answers have a limit {name} {side} {middle:.4g}")
        return tuple(found)

    def to_frame(self) -> pd.DataFrame:
        """Return the claimed and found shares as a table: all limits together, then each of them, then successes."""
        shares = (self.joint, *self.limits, self.success)
        columns = ("name", "claimed", "found", "count", "low", "high", "tail", "rejected")
        frame = pd.DataFrame([{name: getattr(share, name) for name in columns} for share in shares])
        frame.insert(4, "share", frame["found"] / frame["count"].where(frame["count"] > 0))
        return frame

    def errors_frame(self) -> pd.DataFrame:
        """Return where answers broke a limit: one row for each broken limit of each answer."""
        rows = [
            {
                "evaluation": row.evaluation,
                **{f"limit {name}": value for name, value in row.thresholds.items()},
                "claimed": row.claimed,
                "breaks": name,
                "by": row.beyond[name],
                "deviations": row.deviations[name],
            }
            for row in self.errors
            for name, obeyed in row.found_limits.items()
            if not obeyed
        ]
        names = [f"limit {name}" for name in self.rows[0].thresholds] if self.rows else []
        columns = ["evaluation", *names, "claimed", "breaks", "by", "deviations"]
        return pd.DataFrame(rows, columns=None if rows else columns)

    def sentence(self) -> str:
        """Say in one sentence what was claimed and found."""
        j = self.joint
        return (
            f"{j.found} of {j.count} answers obey all limits ({100 * j.found / max(j.count, 1):.0f} %, 95 % interval "
            f"{100 * j.low:.0f} to {100 * j.high:.0f} %), claimed {100 * j.claimed:.1f} %: "
            + ("the claim is rejected" if self.rejected else "the claim is not rejected")
        )

    def to_dict(self) -> dict[str, Any]:
        """State it in plain values."""
        return {
            "rows": [asdict(row) for row in self.rows],
            **{name: getattr(self, name) for name in ("drawn", "verified", "unreachable")},
        }

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any], number: int = 0, made: str = "") -> Audit:
        """Read it back."""
        rows = tuple(AuditedAnswer(**row) for row in stated["rows"])
        return cls(rows, stated["drawn"], stated["verified"], stated["unreachable"], number, made)


def _share(name: str, claims: Sequence[float], found: Sequence[bool]) -> Share:
    count, good = len(found), sum(found)
    low, high = binomial_interval(good, count) if count else (0.0, 1.0)
    mean = float(np.mean(claims)) if count else 1.0
    return Share(name, mean, good, count, low, high, tail_probability(claims, good) if count else 1.0)
