"""One seed, many named children.

Every random decision draws from a generator made from the study's seed and the decision's name, so that the
order in which things happen never matters and the global generators are left as found.
"""

from __future__ import annotations

import hashlib
import numbers

import numpy as np

from cbabo.errors import InputError, shown


def child(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator that belongs to this seed and this path of names."""
    return np.random.default_rng(np.random.SeedSequence([_whole(seed), *_words(names)]))


def child_seed(seed: int, *names: str | int) -> int:
    """Return a 63-bit integer seed for libraries that take a number."""
    return int(child(seed, *names).integers(0, 2**63 - 1))


def _whole(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise InputError(f"seed: expected a whole number, 0 or more, got {shown(seed)}")
    return int(seed)


def _words(names: tuple[str | int, ...]) -> list[int]:
    typed = (f"str:{n}" if isinstance(n, str) else f"int:{int(n)}" for n in names)  # 3 and np.int64(3) are one name
    digest = hashlib.sha256("\x1f".join(typed).encode()).digest()
    return [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
