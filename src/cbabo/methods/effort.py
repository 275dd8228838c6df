"""How much effort a batch of designs is worth: less where choosing them takes long beside evaluating them.

A run is to be the same to the last bit after a kill, so that the effort must not follow the clock. The level is part of the
learner's state, which is stored with each batch. It is set when a batch is stored, for the next one, by the processor time that
this one took and by the stored times of evaluations; a resumed run reads it. It is raised only after several batches in a row
that took long by themselves, so that runs of ordinary size never change it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class EffortTuning:
    """When effort is lowered, and by how much."""

    share: float = 0.1
    """Share of the time of a batch's evaluations that choosing them may take."""
    least_seconds: float = 10.0
    """Seconds of processor time below which a batch is never too costly: with a fast simulator every share would be exceeded, and
    a batch of an ordinary run takes up to four, with a choice of forms."""
    batches: int = 3
    """Batches in a row that must be too costly: the choice of forms makes single ones costly."""
    recent: int = 20
    """Latest evaluations whose mean time counts."""
    lowest: int = 2
    """Number of times that effort is lowered at most."""
    factor: int = 8
    """Factor of the memory, and at least of the time, by which each level lowers the designs that surrogates know."""
    fewest: int = 300
    """Designs that surrogates are conditioned on at least."""


TUNING = EffortTuning()


@dataclass(frozen=True)
class Effort:
    """The effort of the next batch.

    Examples:
        >>> effort = Effort()
        >>> for _ in range(3):
        ...     effort = effort.after(30.0, 60.0)
        >>> effort.level, effort.after(3.0, 60.0).level, effort.designs(20_000_000)
        (1, 1, 1581)
    """

    level: int = 0
    """How often it was lowered."""
    costly: int = 0
    """Batches in a row, up to the last, that were too costly."""

    def after(self, seconds: float, evaluation_seconds: float | None) -> Effort:
        """Return the effort after a batch that took so much processor time.

        evaluation_seconds: the time of its evaluations, those at the same time counted once; None where nobody knows.
        """
        allowed = None if evaluation_seconds is None else max(TUNING.least_seconds, TUNING.share * evaluation_seconds)
        if allowed is None or seconds <= allowed or self.level == TUNING.lowest:
            return replace(self, costly=0)
        if self.costly + 1 < TUNING.batches:
            return replace(self, costly=self.costly + 1)
        return Effort(self.level + 1)

    def designs(self, elements: int) -> int | None:
        """Return how many designs surrogates are conditioned on at most, where all could have so many elements; None: all."""
        if not self.level:
            return None
        return max(TUNING.fewest, int((elements / TUNING.factor**self.level) ** 0.5))

    def sentence(self, seconds: float | None = None) -> str:
        """Say it in plain words, with the processor time of the last batch if it is known; empty where effort is not lowered."""
        if not self.level:
            return ""
        what = "choosing a batch takes" if seconds is None else f"choosing a batch took {seconds:.0f} s,"
        return (
            f"{what} more than a tenth of the time of its evaluations, so that its effort was lowered to level {self.level} of "
            f"{TUNING.lowest}: surrogates use fewer designs while designs are chosen, but all for answers"
        )


FULL_EFFORT = Effort()


def time_of_batch(seconds: Sequence[float | None], size: int, at_once: int) -> float | None:
    """Return how long the evaluations of a batch take, so many at a time, by the times of the latest ones; None if unknown.

    Examples:
        >>> time_of_batch([None, 10.0, 20.0], size=5, at_once=2)
        37.5
    """
    known = [s for s in seconds if s is not None][-TUNING.recent :]
    return size * sum(known) / len(known) / max(1, min(at_once, size)) if known else None


def stored_effort(state: bytes | None) -> Effort:
    """Read the effort alone from a learner's state, without PyTorch; full effort where it has none."""
    if state is None:
        return FULL_EFFORT
    try:
        size = int.from_bytes(state[:8], "little")
        (text,) = json.loads(state[8 : 8 + size])["__metadata__"].values()
        stated = json.loads(text.partition(" ")[2])["learner"]["effort"]
        return Effort(int(stated["level"]), int(stated["costly"]))
    except (AttributeError, LookupError, TypeError, ValueError):
        return FULL_EFFORT
