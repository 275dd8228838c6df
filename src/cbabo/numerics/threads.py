"""Single-threaded computation: small matrices are fastest on one thread, and other cores can run other processes.

The BLAS libraries have one number of threads for the whole process. Torch has one for each Python thread (OpenMP), and one
for the process, with which new Python threads begin.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  (Its BLAS must be loaded before the controller looks for it.)
import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread of torch and of every BLAS, and give the caller's numbers back; results are the same to the bit.

    It may be nested, and used by several Python threads at a time: each gets its own number back when it leaves, the process
    when the last one leaves.
    """
    if getattr(_HERE, "inside", False):
        yield
        return
    own = _PROCESS.enter()
    _HERE.inside = True
    try:
        yield
    finally:
        _HERE.inside = False
        _PROCESS.leave(own)


class _Process:
    """The numbers of the process, limited from the first Python thread that enters to the last one that leaves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._torch = 1
        self._blas: Any = None

    def enter(self) -> int:
        """Limit the process and this Python thread; return how many threads torch used in it before."""
        with self._lock:
            own = torch.get_num_threads()
            if self._inside == 0:
                self._torch = own
                self._blas = _libraries().limit(limits=1, user_api="blas")
                _hand_over()
            elif own == 1:  # it began while the process was limited
                own = self._torch
            torch.set_num_threads(1)
            self._inside += 1
            return own

    def leave(self, own: int) -> None:
        """Give this Python thread its number back, and the process if nobody else is inside."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._blas.restore_original_limits()
                _hand_over()
                torch.set_num_threads(self._torch)
            for openmp in _libraries().select(user_api="openmp").lib_controllers:
                openmp.set_num_threads(own)


def _hand_over() -> None:
    """Let another Python thread set the numbers next: newer threadpoolctl keeps that to the one that was first."""
    for blas in _libraries().select(user_api="blas").lib_controllers:
        if hasattr(blas, "clear_controlling_thread"):
            blas.clear_controlling_thread()


_HERE = threading.local()
_PROCESS = _Process()


@cache
def _libraries() -> ThreadpoolController:
    """Find the loaded libraries once: looking costs more than limiting."""
    return ThreadpoolController()
