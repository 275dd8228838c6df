"""One iteration of the method, as a pure function of what was measured.

`step` is all that `ask`, `run`, the command line and the benchmark call; there is no second loop. The state it returns
is stored with the batch, so that a killed run goes on exactly where it was.
"""

from __future__ import annotations

import json

from scipy.stats import qmc

from cbabo.evaluations import Evaluations
from cbabo.seeding import child
from cbabo.settings import Settings
from cbabo.space import Point, Space


def step(
    evaluations: Evaluations, pending: Evaluations, state: bytes | None, settings: Settings, seed: int
) -> tuple[list[Point], bytes]:
    """Propose the next batch.

    1. The first call lays out a Latin hypercube that tops up what was imported to `initial_evaluations`.
    2. Every further call proposes `batch_size` designs.

    evaluations: everything measured so far, failures included; pending: asked for and not yet told; state: what the
    previous call returned, None at first.
    """
    iteration = 0 if state is None else int(json.loads(state)["iteration"])
    space = evaluations.problem.space
    size = settings.batch_size
    if iteration == 0:
        missing = settings.initial_evaluations - len(evaluations.complete)
        size = missing if missing > 0 else size
    batch = latin_hypercube(space, size, seed, iteration)
    return batch, json.dumps({"iteration": iteration + 1}).encode()


def latin_hypercube(space: Space, count: int, seed: int, iteration: int) -> list[Point]:
    """Return a Latin hypercube of this many legal points."""
    sampler = qmc.LatinHypercube(space.dimension, rng=child(seed, "latin hypercube", iteration))
    return space.spread(sampler.random(count))
