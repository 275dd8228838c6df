"""A connection to a Dask cluster, or an error that states why there is none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

from cbabo.errors import InputError, MissingExtraError
from cbabo.evaluators.function import describe

_CONNECT_SECONDS = 6
"""How long to look for a cluster."""


@contextmanager
def connected(address: str | None) -> Iterator[Executor | None]:
    """Connect to the scheduler at this address and give an executor; no address, none."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ModuleNotFoundError as error:
        raise MissingExtraError("--dask needs Dask's distributed; install it by: pip install 'cbabo[dask]'") from error
    try:
        get_address_host_port(address)
    except ValueError as error:
        raise InputError(f"--dask: expected an address such as tcp://host:8786, got {address!r} ({error})") from error
    found: SimpleQueue[Any] = SimpleQueue()

    def connect() -> None:
        try:
            found.put(Client(address, timeout=_CONNECT_SECONDS, set_as_default=False))
        except Exception as error:  # Dask takes the greeting of what is no scheduler for a length
            found.put("something else does" if isinstance(error, MemoryError) else describe(error))

    # In a thread, because Dask waits for ever for the greeting of what is no scheduler, such as its own dashboard.
    threading.Thread(target=connect, daemon=True).start()
    try:
        client = found.get(timeout=_CONNECT_SECONDS + 1.0)
    except Empty:
        client = "something else does"
    if isinstance(client, str):
        raise InputError(
            f"--dask: no scheduler answers at {address!r} ({client}); "
            "give the address that it has printed, as tcp://host:8786"
        )
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # a lost scheduler gets our sentence, no more
    with client:
        yield client.get_executor(pure=False, retries=0)
