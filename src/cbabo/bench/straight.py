"""The paper written straight down on BoTorch, measured as the engine is."""

from __future__ import annotations

import time

from cbabo.bench import plain
from cbabo.bench.judging import Measures, direct
from cbabo.methods.settings import Settings
from cbabo.problems import ShippedProblem

_BUDGET = 200


def paper_on_botorch(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Run, and judge the network's direct answers at all rows."""
    began = time.perf_counter()
    result = plain.run(shipped, seed, Settings.paper(), _BUDGET)
    seconds = time.perf_counter() - began
    measures = direct(shipped, seed, lambda thresholds: plain.answers(shipped, result.network, thresholds))
    return {"run seconds": seconds} | measures
