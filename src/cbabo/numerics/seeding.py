"""Independent random generators derived from one seed and a path of names.

Every random decision draws from a generator made of the study's seed and the decision's name. The order of the decisions has
therefore no influence on their results, and the global generators are not used.
"""

from __future__ import annotations

import hashlib
import numbers

import numpy as np

from cbabo.errors import InputError, shown


def child(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator of this seed and this path of names."""
    return np.random.default_rng(np.random.SeedSequence([_checked_seed(seed), *_hash_words(names)]))


def child_seed(seed: int, *names: str | int) -> int:
    """Return a 63-bit integer seed of this seed and this path of names, for libraries that take an integer."""
    return int(child(seed, *names).integers(0, 2**63 - 1))


def _checked_seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise InputError(f"seed: expected a whole number, 0 or more, got {shown(seed)}")
    return int(seed)


def _hash_words(names: tuple[str | int, ...]) -> list[int]:
    # Conversion to int makes 3 and np.int64(3) the same name.
    typed = (f"str:{n}" if isinstance(n, str) else f"int:{int(n)}" for n in names)
    digest = hashlib.sha256("\x1f".join(typed).encode()).digest()
    return [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
