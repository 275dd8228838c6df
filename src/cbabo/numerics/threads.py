"""Single-threaded computation: small matrices are fastest on one thread, and other cores can run other processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  (Its BLAS must be loaded before the controller looks for it.)
import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch and every BLAS library to one thread and restore the previous numbers afterwards.

    Results that were computed with one thread are reproducible to the last bit.
    """
    before = torch.get_num_threads()
    with _blas_controller().limit(limits=1, user_api="blas"):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@cache
def _blas_controller() -> ThreadpoolController:
    """Return a controller of the loaded BLAS libraries; finding them is slow, so that it is done once."""
    return ThreadpoolController()
