"""The paper's method: a network from thresholds to designs, trained along with the run on plain Gaussian processes.

An iteration trains the network for some steps and selects a batch among its designs at sampled thresholds. The network alone
answers; refinement maximises LogcEI in a box around the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.methods.acquisition import maximise
from cbabo.methods.designs import designs_of, legal_designs
from cbabo.methods.learner import Learner
from cbabo.methods.method import (
    Designs,
    Fitted,
    Measure,
    Ranking,
    Refinement,
    best_measured,
    layer_sizes,
    measured_design,
)
from cbabo.methods.selection import ThresholdSampler, select
from cbabo.methods.settings import PaperSettings
from cbabo.methods.training import Trainee, train
from cbabo.network.pcm import PCM, Adam
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child, child_seed
from cbabo.numerics.threads import one_thread
from cbabo.surrogate.limits import Limits
from cbabo.surrogate.posterior import FitState, Posterior, fit_plain


@dataclass(frozen=True)
class PaperMethod:
    """CBA-BO as the paper has it."""

    settings: PaperSettings

    def fit(self, evaluations: Evaluations, state: FitState) -> Posterior:
        """Fit plain Gaussian processes to the measured designs."""
        return fit_plain(evaluations, state)

    def propose(
        self,
        evaluations: Evaluations,
        pending: Evaluations,
        learner: Learner,
        seed: int,
        size: int,
        focus: Focus | None,
    ) -> tuple[Tensor, Learner]:
        """Train the network for one iteration and select among its designs; it always learns the whole box."""
        posterior = self.fit(evaluations, learner.fit)
        learner, candidates = self.train_for_one_iteration(posterior, replace(learner, fit=posterior.fit_state), seed)
        chosen = select(
            candidates,
            posterior.predictor,
            posterior.limits,
            len(posterior.problem.box.names),
            self.settings.beta,
            self.settings.similarity,
            size,
            designs_of(posterior.problem, pending),
            child(seed, "batch", learner.iteration),
        )
        return chosen, learner

    def answer(self, fitted: Fitted, query: Query, probability: float | None, fast: bool) -> Designs:
        """Return the network's designs; it aims at no probability."""
        return network_designs(fitted, query)

    def refine(
        self,
        fitted: Fitted,
        query: Query,
        measure: Measure,
        evaluations: int,
        start: Point | None,
        made: Sequence[Evaluation],
    ) -> Refinement:
        """Measure the answer, then the maxima of LogcEI close to it; return the best of these.

        The rule of the paper's appendix: feasible before infeasible, then by objective, or by total violation.
        """
        spent = list(made)
        centre = start
        if centre is None and spent:
            centre = dict(spent[0].point)
        if centre is None:
            centre = fitted.problem.space.points(network_designs(fitted, query).x.numpy())[0]
        for _ in range(evaluations):
            point = self._next(fitted, centre, query, spent) if spent else centre
            if point is None:
                break
            spent.append(measure(point))
        measured = [e for e in spent if e.state == "complete"]
        after = fitted.conditioned(measured)
        if not measured:
            return Refinement(after, None, spent)
        best = best_measured(query, measured, fitted.problem, 1.0)
        return Refinement(after, measured_design(after, best, None), spent)

    def rank(self, fitted: Fitted, theta: FloatArray) -> Ranking:
        """Rank by the surrogates' means at the network's designs, natural units."""
        limits, mean = Limits.of(fitted.problem), _means(fitted, theta)
        excess = limits.excess(mean, torch.zeros_like(mean), torch.from_numpy(theta), 0.0)
        feasible = (excess <= self.settings.recommend_tolerance).all(1).numpy()
        return Ranking(limits.goal * mean[:, 0].numpy(), feasible)

    def nearest_reachable(self, fitted: Fitted, base: FloatArray, theta: FloatArray) -> FloatArray | None:
        """Return the thresholds nearest to the base that one of the network's designs obeys by its means."""
        limits, mean = Limits.of(fitted.problem), _means(fitted, theta)
        needed_bound = limits.sign * mean[:, limits.output] - limits.base
        fixed = limits.span == 0
        needed = torch.from_numpy(np.tile(base, (len(mean), 1)))
        for r in (~fixed).nonzero().flatten().tolist():
            j = int(limits.threshold[r])
            needed[:, j] = torch.maximum(needed[:, j], needed_bound[:, r] / limits.span[r])
        possible = (needed_bound[:, fixed] <= 0).all(1) & (needed <= 1.0).all(1)
        if not bool(possible.any()):
            return None
        distance = torch.where(possible, (needed - torch.from_numpy(base)).norm(dim=1), torch.inf)
        return np.asarray(needed[distance.argmin()].numpy())

    def train_network(self, fitted: Fitted) -> PCM:
        """Train a network on the surrogates over the whole horizon."""
        problem, settings = fitted.problem, self.settings
        sampler = ThresholdSampler(len(problem.box.names), child_seed(fitted.seed, "sobol"))
        random = child(fitted.seed, "thresholds of an untrained model")
        thetas, _ = sampler.draw(settings.training_steps, settings.thresholds_per_step, random)
        posterior = fitted.posterior
        with one_thread():
            untrained = self._untrained(problem, fitted.seed)
            return train(untrained, posterior.predictor, posterior.limits, thetas, settings).pcm

    def train_for_one_iteration(self, posterior: Posterior, learner: Learner, seed: int) -> tuple[Learner, Tensor]:
        """Train the network for one iteration; return the state after it and the candidates (c x d) for a batch."""
        problem, settings = posterior.problem, self.settings
        sampler = ThresholdSampler(len(problem.box.names), child_seed(seed, "sobol"), learner.sobol_position)
        random = child(seed, "thresholds", learner.iteration)
        thetas, sampler = sampler.draw(settings.inner_steps, settings.thresholds_per_step, random)
        trainee = learner.trainee or self._untrained(problem, seed)
        trainee = train(trainee, posterior.predictor, posterior.limits, thetas, settings)
        theta, sampler = sampler.draw(1, settings.candidates, random)
        if settings.candidate_source == "network":
            candidates = trainee.pcm.designs(theta[0])
        else:
            candidates = torch.from_numpy(random.random((settings.candidates, problem.space.dimension)))
        return replace(learner, sobol_position=sampler.position, trainee=trainee), legal_designs(problem, candidates)

    def _untrained(self, problem: Problem, seed: int) -> Trainee:
        """Return the network before its first training."""
        pcm = PCM.initial(layer_sizes(problem, self.settings), child_seed(seed, "network"))
        return Trainee(pcm, Adam.initial(pcm.weights))

    def _next(self, fitted: Fitted, centre: Point, query: Query, spent: Sequence[Evaluation]) -> Point | None:
        """Return the design that maximises LogcEI close to the centre, by surrogates refitted to all data."""
        problem, radius = fitted.problem, self.settings.refine_radius
        tried = Evaluations(problem, (*fitted.evaluations, *spent))
        table = tried.complete
        incumbent = table.best(query.named(0))
        best = None if incumbent is None else problem.objective.sign * incumbent.outputs[problem.objective.name]
        at = torch.from_numpy(problem.space.unit(problem.space.array([centre])))[0]
        lower, upper = (at - radius).clamp_min(0.0), (at + radius).clamp_max(1.0)
        with one_thread():
            x = torch.from_numpy(table.x)
            posterior = fit_plain(table, fitted.posterior.fit_state)
            near = ((x >= lower) & (x <= upper)).all(1)
            chosen = maximise(
                posterior.predictor,
                posterior.limits,
                torch.from_numpy(query.theta),
                best,
                lower,
                upper,
                torch.cat([at.unsqueeze(0), x[near]]),
                child_seed(fitted.seed, "refine", len(spent)),
                legal=lambda x: legal_designs(problem, x),
                known=torch.from_numpy(tried.x),
            )
        return None if chosen is None else problem.space.points(chosen.unsqueeze(0).numpy())[0]


def network_designs(fitted: Fitted, query: Query) -> Designs:
    """Return the network's designs alone; outside the box it answers the nearest thresholds inside, where it was trained."""
    designs = fitted.pcm.designs(torch.from_numpy(query.nearest_in_box))
    return Designs(legal_designs(fitted.problem, designs), {}, None)


def _means(fitted: Fitted, theta: FloatArray) -> Tensor:
    """Return the outputs' means (c x q), natural units, at the network's designs."""
    with one_thread():
        x = legal_designs(fitted.problem, fitted.pcm.designs(torch.from_numpy(theta)))
        return fitted.posterior.predictor.mean(x)
