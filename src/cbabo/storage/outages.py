"""Short outages: what optimises a study waits for its database, rather than lose what was measured meanwhile."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable
from typing import TypeVar

from cbabo.errors import InputError, OutageError

_LOG = logging.getLogger(__name__)
VARIABLE = "CBABO_OUTAGE_SECONDS"
"""The environment variable that states how long a run waits for its database."""
OUTAGE_SECONDS = 600.0
"""How long a run waits for its database unless the environment variable states otherwise."""
_SHORTEST, _LONGEST = 0.1, 5.0
"""Seconds between two attempts: they double from the one to the other."""

T = TypeVar("T")


def outage_seconds() -> float:
    """Return how long a run waits for its database."""
    stated = os.environ.get(VARIABLE)
    if not stated:
        return OUTAGE_SECONDS
    try:
        seconds = float(stated)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0.0:
        raise InputError(f"{VARIABLE}: expected a number of seconds from 0 on, got {stated!r}")
    return seconds


def persist(attempt: Callable[[], T], seconds: float, is_final: Callable[[], bool]) -> T:
    """Attempt something until the database answers, for so many seconds at most.

    is_final: whether the outage is of a kind that does not pass.
    """
    began = time.monotonic()
    pause = _SHORTEST
    waiting = False
    while True:
        try:
            result = attempt()
        except OutageError as error:
            left = began + seconds - time.monotonic()
            if left <= 0.0 or is_final():
                raise
            if not waiting:
                _LOG.warning("%s Waiting for up to %g s; finished evaluations are kept meanwhile.", error, seconds)
                waiting = True
            time.sleep(min(pause, left))
            pause = min(2.0 * pause, _LONGEST)
            continue
        if waiting:
            _LOG.info("the database answers again, after %.1f s", time.monotonic() - began)
        return result
