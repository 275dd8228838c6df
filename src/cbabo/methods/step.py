"""One iteration, as a pure function of what was measured.

`step` is all that `ask`, `run`, the command line and the benchmark call; there is no second loop. The state it returns
is stored with the batch, so that a killed run goes on exactly where it was.
"""

from __future__ import annotations

from dataclasses import replace

from cbabo.domain.evaluations import Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.space import Point
from cbabo.methods.designs import has_repeats, initial_designs, with_repeat
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
    at_once: int | None = None,
) -> tuple[list[Point], bytes]:
    """Propose the next batch.

    1. The first call lays out a Latin hypercube (or, where relations are known, distant designs that obey them) that tops up what
       was imported to `settings.first_batch`; one of its designs is measured twice where the settings ask whether outputs are
       noisy.
    2. Every further call lets the method fit its surrogates to all measured designs and propose `settings.next_batch` designs.

    evaluations: everything measured so far, failures included; pending: asked for and not yet told; state: what the
    previous call returned, None at first; focus: the thresholds that matter, None for the whole box; at_once: how many designs
    will be evaluated at the same time, None if nobody knows. Too few measured designs to fit surrogates to are met with a Latin
    hypercube.
    """
    learner = Learner.from_bytes(state)
    problem, measured = evaluations.problem, evaluations.complete
    focused = focus is not None
    size = settings.next_batch(at_once, focused=focused)
    first = settings.first_batch(len(problem.variables), focused=focused)
    initial = learner.iteration == 0 and len(measured) < first
    if initial:
        size = first - len(measured)
    if initial or len(measured) < FEWEST:
        batch = initial_designs(problem, size, seed, learner.iteration)
        if initial and settings.measures_noise and size > FEWEST and not has_repeats(measured):
            batch = with_repeat(problem.space, batch)
    else:
        with one_thread():
            chosen, learner = method_for(settings).propose(evaluations, pending, learner, seed, size, focus)
        batch = problem.space.points(chosen.numpy())
    return batch, replace(learner, iteration=learner.iteration + 1).to_bytes()
