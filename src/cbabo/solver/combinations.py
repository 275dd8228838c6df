"""Combinations of categories among the entries of a library: from which entries thresholds are answered, and which results go on.

Symbols and shapes as in `library`; m entries, b thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbabo.domain.space import Space
from cbabo.numerics.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Combinations:
    """The combinations of categories that a library has."""

    number: NDArray[np.int64]
    """m, the combination of each entry, numbered by first occurrence; all 0 without categories."""
    groups: Sequence[NDArray[np.int64]]
    """The entries of the combinations, the most frequent first, of equal ones the first; none without categories."""

    @classmethod
    def of(cls, space: Space, x: FloatArray, most: int) -> Combinations:
        """Return those of designs x (m x d), so many at most."""
        found: dict[bytes, int] = {}
        keys = [b"".join(design[at].tobytes() for at in space.categories) for design in x]
        number = np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)
        groups = [np.flatnonzero(number == g) for g in range(len(found))] if space.categories else []
        return cls(number, sorted(groups, key=len, reverse=True)[:most])

    def kept(self, near: NDArray[np.int64], merit: FloatArray, count: int, equal: float) -> NDArray[np.int64]:
        """Return which starts (b x kept) go on: the best, and the best of some other combinations, so many in all at most.

        near: b x starts, their entries; merit: b x starts, less being better. Of starts that differ by less than `equal` the
        first one is the best.
        """
        kept = [(merit <= merit.min(1, keepdims=True) + equal).argmax(1)]
        rows, combination, left = np.arange(len(near)), self.number[near], np.array(merit)
        for _ in range(min(count, len(self.groups)) - 1):
            left[combination == combination[rows, kept[-1]][:, None]] = np.inf
            others = left.argmin(1)
            kept.append(np.where(np.isfinite(left[rows, others]), others, kept[0]))
        return np.column_stack(kept)
