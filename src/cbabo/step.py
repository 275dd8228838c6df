"""One iteration of the method, as a pure function of what was measured.

`step` is all that `ask`, `run`, the command line and the benchmark call; there is no second loop. The state it returns
is stored with the batch, so that a killed run goes on exactly where it was.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cbabo.designs import latin_hypercube, snapped
from cbabo.evaluations import Evaluations
from cbabo.learner import Learner
from cbabo.limits import Limits
from cbabo.pcm import PCM, Adam
from cbabo.problem import Problem
from cbabo.seeding import child, child_seed
from cbabo.selection import ThresholdSampler, select
from cbabo.settings import Settings
from cbabo.space import Point
from cbabo.surrogate import Surrogates, fit
from cbabo.threads import one_thread
from cbabo.training import Trainee, train

FEWEST = 2
"""Measured designs without which there is nothing to learn from."""


def step(
    evaluations: Evaluations, pending: Evaluations, state: bytes | None, settings: Settings, seed: int
) -> tuple[list[Point], bytes]:
    """Propose the next batch.

    1. The first call lays out a Latin hypercube that tops up what was imported to `initial_evaluations`.
    2. Every further call fits the surrogates to all measured designs, starting from the last fit,
    3. trains the network on them for `inner_steps` steps,
    4. and selects `batch_size` designs among the network's candidates.

    evaluations: everything measured so far, failures included; pending: asked for and not yet told; state: what the
    previous call returned, None at first. Too few measured designs to learn from are met with a Latin hypercube.
    """
    learner = Learner.from_bytes(state)
    problem, measured = evaluations.problem, evaluations.complete
    size = settings.batch_size
    if learner.iteration == 0 and len(measured) < settings.initial_evaluations:
        size = settings.initial_evaluations - len(measured)
    if (learner.iteration == 0 and len(measured) < settings.initial_evaluations) or len(measured) < FEWEST:
        batch = latin_hypercube(problem.space, size, seed, learner.iteration)
        return batch, replace(learner, iteration=learner.iteration + 1).to_bytes()
    with one_thread():
        surrogates = fit_surrogates(measured, learner)
        learner, candidates = learn(problem, surrogates, learner, settings, seed)
        taken = (
            torch.from_numpy(pending.x)
            if len(pending)
            else torch.empty(0, problem.space.dimension, dtype=torch.float64)
        )
        chosen = select(
            candidates,
            surrogates,
            Limits.of(problem),
            len(problem.box.names),
            settings.beta,
            settings.similarity,
            size,
            taken,
            child(seed, "batch", learner.iteration),
        )
    return problem.space.points(chosen.numpy()), replace(learner, iteration=learner.iteration + 1).to_bytes()


def fit_surrogates(measured: Evaluations, learner: Learner) -> Surrogates:
    """Fit one Gaussian process to every output of the measured designs, starting from the learner's last fit."""
    return fit(torch.from_numpy(measured.x), torch.from_numpy(measured.y), warm=learner.hyperparameters)


def learn(
    problem: Problem, surrogates: Surrogates, learner: Learner, settings: Settings, seed: int
) -> tuple[Learner, Tensor]:
    """Train the network for one iteration; return the learner after it and the candidates (c x d) for a batch."""
    k = len(problem.box.names)
    sampler = ThresholdSampler(k, child_seed(seed, "sobol"), learner.sobol_position)
    random = child(seed, "thresholds", learner.iteration)
    thetas, sampler = sampler.draw(settings.inner_steps, settings.thresholds_per_step, random)
    trainee = train(
        learner.trainee or untrained(problem, settings, seed), surrogates, Limits.of(problem), thetas, settings
    )
    theta, sampler = sampler.draw(1, settings.candidates, random)
    if settings.candidate_source == "network":
        candidates = trainee.pcm.designs(theta[0])
    else:
        candidates = torch.from_numpy(random.random((settings.candidates, problem.space.dimension)))
    after = replace(
        learner, sobol_position=sampler.position, trainee=trainee, hyperparameters=surrogates.hyperparameters
    )
    return after, snapped(problem.space, candidates)


def untrained(problem: Problem, settings: Settings, seed: int) -> Trainee:
    """Return the network before its first training."""
    hidden = [settings.hidden_width] * settings.hidden_layers
    sizes = (len(problem.box.names), *hidden, problem.space.dimension)
    pcm = PCM.initial(sizes, child_seed(seed, "network"))
    return Trainee(pcm, Adam.initial(pcm.weights))
