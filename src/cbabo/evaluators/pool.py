"""Worker processes for simulators that crash or hang: a failed worker costs one task, and the pool continues.

The workers are fresh Python processes, not forks, and functions travel by value if they cannot be imported.
So lambdas, closures and notebooks work, and scripts need no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from queue import LifoQueue
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar

import cloudpickle

from cbabo.errors import InputError
from cbabo.evaluators.function import describe
from cbabo.evaluators.slot import Slot

P = ParamSpec("P")
T = TypeVar("T")


class WorkerPool(Executor):
    """An executor with worker processes that are started when needed and replaced when they die.

    The timeout, in seconds, counts from the moment when a task begins in its worker. A task whose worker dies
    or takes too long raises an EvaluationError that says so and may be retried. What a worker has started is
    killed with it.
    """

    def __init__(self, workers: int, timeout: float | None = None) -> None:
        if not isinstance(workers, int) or workers < 1:
            raise InputError(f"a pool must have one worker or more, but {workers!r} came; give a whole number")
        if timeout is not None and not timeout > 0:
            raise InputError(f"the timeout must be more than 0 s, but is {timeout!r}; give None for no limit")
        logs = Path(tempfile.mkdtemp(prefix="cbabo-pool-"))
        self._slots = [Slot(logs / f"worker-{index}.log", timeout) for index in range(workers)]
        self._idle: LifoQueue[Slot] = LifoQueue()
        for slot in reversed(self._slots):
            self._idle.put(slot)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="cbabo-pool")
        self._dismiss = weakref.finalize(self, _dismiss, self._slots, logs)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a worker process; its result or exception arrives in the future."""
        return self._threads.submit(self._run, packed(fn, args, kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the pool after its tasks or, with wait=False and cancel_futures=True, by killing them."""
        self._threads.shutdown(wait=False, cancel_futures=cancel_futures)
        if cancel_futures and not wait:
            for slot in self._slots:
                slot.kill()
            for slot in self._slots:
                slot.join()
        if wait:
            self._finish()
        else:
            threading.Thread(target=self._finish, name="cbabo-pool-end").start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """Wait for the tasks; after an exception, kill them, because their results are not needed."""
        self.shutdown(wait=kind is None, cancel_futures=kind is not None)
        return False

    def _run(self, body: bytes) -> Any:
        slot = self._idle.get()
        try:
            return slot.call(body)
        finally:
            self._idle.put(slot)

    def _finish(self) -> None:
        self._threads.shutdown(wait=True)
        self._dismiss()


def packed(function: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> bytes:
    """Pack a call for a worker, or say that it cannot be sent."""
    try:
        body: bytes = cloudpickle.dumps((function, args, kwargs or {}))
        return body
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))
        raise InputError(
            f"the function {name} or its arguments cannot be sent to a worker ({describe(error)}); "
            "keep open files, locks and connections out of them, or let it run in this process by in_process=True"
        ) from error


def _dismiss(slots: list[Slot], logs: Path) -> None:
    for slot in slots:
        slot.release()
    for slot in slots:
        slot.join()
    shutil.rmtree(logs, ignore_errors=True)
