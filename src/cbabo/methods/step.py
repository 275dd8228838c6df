"""One iteration, as a pure function of what was measured.

`step` is all that `ask`, `run`, the command line and the benchmark call; there is no second loop. The state it returns
is stored with the batch, so that a killed run goes on exactly where it was.
"""

from __future__ import annotations

from dataclasses import replace

from cbabo.domain.evaluations import Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.space import Point
from cbabo.methods.designs import has_repeats, latin_hypercube, with_repeat
from cbabo.methods.learner import Learner
from cbabo.methods.registry import method_for
from cbabo.methods.settings import MethodSettings
from cbabo.numerics.threads import one_thread

FEWEST = 2
"""Measured designs without which no surrogate can be fitted."""


def step(
    evaluations: Evaluations,
    pending: Evaluations,
    state: bytes | None,
    settings: MethodSettings,
    seed: int,
    focus: Focus | None = None,
) -> tuple[list[Point], bytes]:
    """Propose the next batch.

    1. The first call lays out a Latin hypercube that tops up what was imported to `initial_evaluations`; one of its designs is
       measured twice where the settings ask whether outputs are noisy.
    2. Every further call lets the method fit its surrogates to all measured designs and propose `batch_size` designs.

    evaluations: everything measured so far, failures included; pending: asked for and not yet told; state: what the
    previous call returned, None at first; focus: the thresholds that matter, None for the whole box. Too few measured designs
    to fit surrogates to are met with a Latin hypercube.
    """
    learner = Learner.from_bytes(state)
    problem, measured = evaluations.problem, evaluations.complete
    size = settings.batch_size
    initial = learner.iteration == 0 and len(measured) < settings.initial_evaluations
    if initial:
        size = settings.initial_evaluations - len(measured)
    if initial or len(measured) < FEWEST:
        batch = latin_hypercube(problem.space, size, seed, learner.iteration)
        if initial and settings.measures_noise and size > FEWEST and not has_repeats(measured):
            batch = with_repeat(problem.space, batch)
    else:
        with one_thread():
            chosen, learner = method_for(settings).propose(evaluations, pending, learner, seed, size, focus)
        batch = problem.space.points(chosen.numpy())
    return batch, replace(learner, iteration=learner.iteration + 1).to_bytes()
