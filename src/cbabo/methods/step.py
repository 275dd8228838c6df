"""One iteration of the method, as a pure function of what was measured.

`step` is all that `ask`, `run`, the command line and the benchmark call; there is no second loop. The state it returns
is stored with the batch, so that a killed run goes on exactly where it was.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.evaluations import Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.problem import Problem
from cbabo.domain.space import Point
from cbabo.methods.batch import choose_batch
from cbabo.methods.designs import latin_hypercube, snapped
from cbabo.methods.learner import Learner
from cbabo.methods.selection import ThresholdSampler, select
from cbabo.methods.settings import Settings
from cbabo.network.pcm import PCM, Adam
from cbabo.network.training import Trainee, train
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child, child_seed
from cbabo.numerics.threads import one_thread
from cbabo.surrogate.posterior import Posterior, fit_posterior

FEWEST = 2
"""Measured designs without which there is nothing to learn from."""


def step(
    evaluations: Evaluations,
    pending: Evaluations,
    state: bytes | None,
    settings: Settings,
    seed: int,
    focus: Focus | None = None,
) -> tuple[list[Point], bytes]:
    """Propose the next batch.

    1. The first call lays out a Latin hypercube that tops up what was imported to `initial_evaluations`.
    2. Every further call fits the surrogates to all measured designs, starting from the last fit,
    3. and, as the settings say, trains the network on them for `inner_steps` steps and selects `batch_size` designs among its
       candidates, or solves the surrogates' problem at fresh thresholds and looks for discoveries.

    evaluations: everything measured so far, failures included; pending: asked for and not yet told; state: what the
    previous call returned, None at first; focus: the thresholds that matter, None for the whole box (the network always learns
    the whole box). Too few measured designs to learn from are met with a Latin hypercube.
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
        posterior = fit_posterior(evaluations, learner, settings)
        learner = replace(
            learner, hyperparameters=posterior.surrogates.hyperparameters, warp=posterior.warp, formed=posterior.formed
        )
        if settings.candidate_source == "solver":
            chosen, learner = _from_solver(posterior, evaluations, pending, learner, settings, seed, size, focus)
        else:
            chosen, learner = _from_network(posterior, pending, learner, settings, seed, size)
    return problem.space.points(chosen.numpy()), replace(learner, iteration=learner.iteration + 1).to_bytes()


def _from_network(
    posterior: Posterior, pending: Evaluations, learner: Learner, settings: Settings, seed: int, size: int
) -> tuple[Tensor, Learner]:
    """Train the network for one iteration and select among its candidates."""
    learner, candidates = learn(posterior, learner, settings, seed)
    random = child(seed, "batch", learner.iteration)
    k = len(posterior.problem.box.names)
    taken = _designs(posterior.problem, pending)
    beta, similarity = settings.beta, settings.similarity
    return select(candidates, posterior.surrogates, posterior.limits, k, beta, similarity, size, taken, random), learner


def _from_solver(
    posterior: Posterior,
    evaluations: Evaluations,
    pending: Evaluations,
    learner: Learner,
    settings: Settings,
    seed: int,
    size: int,
    focus: Focus | None,
) -> tuple[Tensor, Learner]:
    """Answer thresholds that matter, and look for something better elsewhere; pending designs count as believed."""
    box, count = posterior.problem.box, settings.batch_thresholds
    if focus is None:
        theta = sobol(len(box.names), child_seed(seed, "sobol"), count, learner.sobol_position).numpy()
        if learner.iteration % 2:  # the ends of the box, in turn: people ask for them, and no other threshold is close
            theta[0] = float(learner.iteration // 2 % 2)
    else:
        drawn = child(seed, "focus", learner.iteration).choice(len(focus.weights), size=count, p=focus.weights)
        theta = box.to_theta(focus.array[list(dict.fromkeys(drawn.tolist()))])
    expecting = posterior.fantasize(torch.from_numpy(pending.x)) if len(pending) else posterior
    taken = _designs(posterior.problem, evaluations.failed, pending)
    answers = _turn(settings, size, learner.iteration)
    chosen = choose_batch(expecting, theta, answers, size, taken, child(seed, "batch", learner.iteration))
    chosen = snapped(posterior.problem.space, chosen)
    space = posterior.problem.space
    prequential = posterior.with_predictions(
        torch.from_numpy(space.unit(space.natural(chosen.numpy())))
    )  # rounded as when it is measured
    return chosen, replace(learner, sobol_position=learner.sobol_position + count, prequential=prequential)


def _turn(settings: Settings, size: int, iteration: int) -> int:
    """Return how many answers a batch of this size has, so that their share comes out over the iterations."""
    share = min(1.0, settings.answers_per_batch / settings.batch_size) if settings.batch_size > 1 else 0.6
    return math.floor((iteration + 1) * size * share) - math.floor(iteration * size * share)


def _designs(problem: Problem, *tables: Evaluations) -> Tensor:
    """Return the designs (p x d) of some tables."""
    return torch.from_numpy(np.vstack([np.empty((0, problem.space.dimension)), *(t.x for t in tables if len(t))]))


def learn(posterior: Posterior, learner: Learner, settings: Settings, seed: int) -> tuple[Learner, Tensor]:
    """Train the network for one iteration; return the learner after it and the candidates (c x d) for a batch."""
    problem = posterior.problem
    k = len(problem.box.names)
    sampler = ThresholdSampler(k, child_seed(seed, "sobol"), learner.sobol_position)
    random = child(seed, "thresholds", learner.iteration)
    thetas, sampler = sampler.draw(settings.inner_steps, settings.thresholds_per_step, random)
    trainee = train(
        learner.trainee or untrained(problem, settings, seed), posterior.surrogates, posterior.limits, thetas, settings
    )
    theta, sampler = sampler.draw(1, settings.candidates, random)
    if settings.candidate_source == "network":
        candidates = trainee.pcm.designs(theta[0])
    else:
        candidates = torch.from_numpy(random.random((settings.candidates, problem.space.dimension)))
    return replace(learner, sobol_position=sampler.position, trainee=trainee), snapped(problem.space, candidates)


def train_whole(posterior: Posterior, settings: Settings, seed: int) -> PCM:
    """Train a network on these surrogates over the whole horizon."""
    problem = posterior.problem
    sampler = ThresholdSampler(len(problem.box.names), child_seed(seed, "sobol"))
    random = child(seed, "thresholds of an untrained model")
    thetas, _ = sampler.draw(settings.training_steps, settings.thresholds_per_step, random)
    with one_thread():
        return train(untrained(problem, settings, seed), posterior.surrogates, posterior.limits, thetas, settings).pcm


def untrained(problem: Problem, settings: Settings, seed: int) -> Trainee:
    """Return the network before its first training."""
    pcm = PCM.initial(layers(problem, settings), child_seed(seed, "network"))
    return Trainee(pcm, Adam.initial(pcm.weights))


def layers(problem: Problem, settings: Settings) -> tuple[int, ...]:
    """Return the sizes of the network's layers."""
    hidden = [settings.hidden_width] * settings.hidden_layers
    return (len(problem.box.names), *hidden, problem.space.dimension)
