"""Small matrices are quickest on one thread; the second core is worth more to a second process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the controller looks for it)
import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread of torch and of every BLAS, and give the caller's numbers back; results are the same to the bit."""
    before = torch.get_num_threads()
    with _blas().limit(limits=1, user_api="blas"):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@cache
def _blas() -> ThreadpoolController:
    """Find the loaded BLAS libraries once: looking costs more than limiting."""
    return ThreadpoolController()
