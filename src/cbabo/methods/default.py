"""The default method: warped and calibrated Gaussian processes whose constrained problem is solved for each threshold.

A batch holds answers to thresholds, which remove the surrogates' error where answers are, and designs that maximise the expected
improvement over many thresholds (see `batch`); with a focus, designs are chosen one after the other (see `focused`). Answers aim
at a stated probability of feasibility, and a measured design is returned where none is expected to be better. Refinement corrects
an answer by the error just measured (see `correction`).
"""

from __future__ import annotations

import math
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
from cbabo.methods.batch import choose_batch
from cbabo.methods.correction import largest_error, next_design, relative_gain
from cbabo.methods.designs import designs_of, legal_designs
from cbabo.methods.effort import FULL_EFFORT, Effort
from cbabo.methods.focused import choose_focused
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
from cbabo.methods.settings import DefaultSettings
from cbabo.network.distillation import distil
from cbabo.network.pcm import PCM
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child, child_seed
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import PROBABILITY_SLACK
from cbabo.solver.categorical import solver_for
from cbabo.solver.consistency import consistent, full_answers
from cbabo.surrogate.large import TUNING as LARGE
from cbabo.surrogate.posterior import FitState, Posterior, fit_calibrated


@dataclass(frozen=True)
class DefaultTuning:
    """Numbers that tune the method and are not settings."""

    single_share: float = 0.6
    """Share of answers where a batch is a single design: the share of the usual batch, three of five."""
    designs_per_end: int = 10
    """Designs for each of which an end of the box is answered, strictest and most relaxed in turn: people ask for them, and no
    other threshold is close."""
    unverified_gain: float = 0.05
    """Gain, of the objective's span over the box, for which a refinement returns a prediction instead of a measured design."""
    largest_error: float = 3.0
    """Error of the last prediction, in standard deviations, up to which a further prediction is trusted."""
    least_gain: float = 1e-4
    """Expected improvement, of the objective's span over the box, below which a refinement ends: it would not be noticed."""


TUNING = DefaultTuning()


@dataclass(frozen=True)
class DefaultMethod:
    """CBA-BO with a solver instead of the network."""

    settings: DefaultSettings

    def fit(self, evaluations: Evaluations, state: FitState) -> Posterior:
        """Fit warped and calibrated Gaussian processes, and the failure probability."""
        first = self.settings.first_batch(len(evaluations.problem.variables), focused=False)
        return self._fit(evaluations, state, first)

    def propose(
        self,
        evaluations: Evaluations,
        pending: Evaluations,
        learner: Learner,
        seed: int,
        size: int,
        focus: Focus | None,
    ) -> tuple[Tensor, Learner]:
        """Choose answers to thresholds of the box, or of the focus, and improvements; pending designs count as predicted."""
        focused = focus is not None
        first = self.settings.first_batch(len(evaluations.problem.variables), focused=focused)
        posterior = self._fit(evaluations, learner.fit, first, learner.effort)
        after = posterior.fantasize(torch.from_numpy(pending.x)) if len(pending) else posterior
        taken = designs_of(posterior.problem, evaluations.failed, pending, posterior.left_out(evaluations))
        repeat = self._repeat(posterior, pending)
        fresh = size - len(repeat)
        answers = min(self._answers(size, learner.iteration), fresh)
        random = child(seed, "batch", learner.iteration)
        if focus is not None:
            query, weights = self._focused(posterior.problem, focus, random)
            chosen = choose_focused(after, query, weights, answers, fresh, taken, random)
        else:
            query = self._thresholds(posterior.problem, learner, seed, size)
            aim, level = self.settings.probability, learner.effort.level
            chosen = choose_batch(after, query, answers, fresh, taken, aim, random, level)
        chosen = legal_designs(posterior.problem, chosen)
        space = posterior.problem.space
        as_measured = torch.from_numpy(space.unit(space.natural(chosen.numpy())))  # Rounded as when it is measured.
        return torch.cat([chosen, repeat]), replace(
            learner,
            sobol_position=learner.sobol_position + self.settings.batch_thresholds,
            fit=replace(posterior.fit_state, prequential=posterior.with_predictions(as_measured)),
        )

    def answer(self, fitted: Fitted, query: Query, probability: float | None, fast: bool) -> Designs:
        """Solve the surrogates' problem for each threshold, or answer from solved thresholds."""
        aim = self.settings.probability if probability is None else probability
        with one_thread():
            fast_map = fitted.fast_map
            if fast:
                found = consistent(fast_map, query, fast_map.answers(query, aim), aim)
            else:
                found = full_answers(fast_map, query, aim)
        x = np.array([f.x for f in found]).reshape(-1, fitted.problem.space.dimension)
        measured = {i: f.measured for i, f in enumerate(found) if f.measured is not None}
        designs, rows = torch.from_numpy(x), list(measured)
        legal = legal_designs(fitted.problem, designs)
        legal[rows] = designs[rows]  # What was measured obeyed all relations, to the last bit.
        closest = {i: f.closest for i, f in enumerate(found) if f.closest is not None}
        return Designs(legal, measured, aim, fast, closest)

    def refine(
        self,
        fitted: Fitted,
        query: Query,
        measure: Measure,
        evaluations: int,
        start: Point | None,
        made: Sequence[Evaluation],
    ) -> Refinement:
        """Measure the answer, then solve again close by with the error just measured; return the best measured design.

        An answer that was measured before leaves all evaluations for improving it. A refinement ends early if no untried design
        is left close by, and from the third evaluation on if little is left to gain.
        """
        spent, notes, aim = list(made), list[str](), self.settings.probability
        predicted = fitted.problem.space.points(self.answer(fitted, query, None, fast=False).x.numpy())[0]
        measured_before = any(e.point == predicted for e in fitted.evaluations.complete)
        known = start is None and measured_before and fitted.posterior.all_exact
        centre = predicted if start is None else start
        for _ in range(0 if known and evaluations == 1 and not spent else evaluations):
            point = centre
            if spent or known:
                found = next_design(fitted, query, centre, spent, aim)
                if found is None:
                    notes.append(
                        f"stopped after {len(spent)} evaluations: no untried design close by is predicted better"
                    )
                    break
                if len(spent) > 1 and found.gain < TUNING.least_gain and fitted.posterior.all_exact:
                    notes.append(
                        f"stopped after {len(spent)} evaluations: the expected gain is below {TUNING.least_gain:g} of the span"
                    )
                    break
                point = found.point
            spent.append(measure(point))
        measured = [e for e in spent if e.state == "complete"]
        after = fitted.conditioned(measured)
        if not measured and not known:
            return Refinement(after, None, spent, notes)
        noisy = bool(measured) and not fitted.posterior.all_exact
        trusted = noisy and largest_error(fitted.posterior, measured[-1]) <= TUNING.largest_error
        return Refinement(after, self._best(after, query, measured, aim, trusted=trusted), spent, notes)

    def _best(self, fitted: Fitted, query: Query, made: Sequence[Evaluation], aim: float, *, trusted: bool) -> Designs:
        """Return the answer of a refinement: the incumbent, or a prediction that is clearly better, or the best that was tried.

        trusted: whether a prediction may be returned: only where outputs are noisy, so that one measurement proves little, and if
        the last evaluation was predicted well. Without noise a refinement answers with what was measured.
        """
        with one_thread():
            incumbent = fitted.solver.incumbent(query, aim)
            predicted = fitted.solver.predict(fitted.solver.bound(query.theta)[0], aim)
            enough = trusted and predicted.probability >= aim - PROBABILITY_SLACK
            if enough and incumbent is not None:
                enough = relative_gain(fitted, incumbent.objective, predicted.objective) > TUNING.unverified_gain
        if enough:
            return Designs(legal_designs(fitted.problem, torch.from_numpy(predicted.x[None])), {}, aim)
        if incumbent is not None and incumbent.measured is not None:
            return measured_design(fitted, fitted.posterior.measured[incumbent.measured], aim)
        left_out = {e.id for e in fitted.posterior.left_out(fitted.evaluations)}
        tried = made or [e for e in fitted.evaluations.complete if e.id not in left_out]
        return measured_design(fitted, self._most_feasible(fitted, query, tried), aim)

    def _most_feasible(self, fitted: Fitted, query: Query, tried: Sequence[Evaluation]) -> Evaluation:
        """Return the measured design that breaks limits least or, where outputs are noisy, is most probably feasible."""
        if fitted.posterior.all_exact:
            return best_measured(query, tried, fitted.problem, fitted.problem.box.scales)
        chance = fitted.posterior.measured_probability(query)[0]
        points = [e.point for e in fitted.posterior.measured]
        return max(tried, key=lambda e: float(chance[points.index(e.point)]))

    def rank(self, fitted: Fitted, theta: FloatArray) -> Ranking:
        """Rank by fast answers: the standardised objective, feasible where they are as probable as the settings ask."""
        with one_thread():
            found = fitted.fast_map.answers(Query.at(fitted.problem.box, theta), self.settings.probability)
        aim = self.settings.probability - PROBABILITY_SLACK
        return Ranking(np.array([f.objective for f in found]), np.array([f.probability >= aim for f in found]))

    def nearest_reachable(self, fitted: Fitted, base: FloatArray, theta: FloatArray) -> FloatArray | None:
        """Return the thresholds nearest to the base that can be met with the stated probability."""
        with one_thread():
            return fitted.solver.closest(base, self.settings.probability - PROBABILITY_SLACK)

    def train_network(self, fitted: Fitted) -> PCM:
        """Distil the network from thresholds that the fast map answers."""
        fast_map, settings = fitted.fast_map, self.settings
        with one_thread():
            return distil(fast_map, layer_sizes(fitted.problem, settings), settings.probability, fitted.seed)

    def _fit(self, evaluations: Evaluations, state: FitState, initial: int, effort: Effort = FULL_EFFORT) -> Posterior:
        """Fit after this many initial evaluations."""
        realisation = self.settings.feasible_as == "realisation"
        most = effort.designs(LARGE.elements // len(evaluations.problem.learned))
        return fit_calibrated(evaluations, state, initial, self.settings.noise, realisation=realisation, most=most)

    def _repeat(self, posterior: Posterior, pending: Evaluations) -> Tensor:
        """Return the design to be measured once more (1 x d), which shows whether outputs are noisy; none (0 x d) if it is known.

        It is a good design for the nominal limits, whose second measurement is of use if they are.
        """
        x, counts = posterior.surrogates.x, posterior.counts
        known = counts is not None and bool((counts > 1).any())
        under_way = any(e.point == m.point for e in pending for m in posterior.measured)
        if not self.settings.measures_noise or known or under_way:
            return x[:0]
        solver, box = solver_for(posterior), posterior.problem.box
        bound = solver.bound(Query.of(box, box.nominal).theta)[0]
        starts = torch.from_numpy(solver.starts(bound, 1)[0][None])
        region = posterior.problem.region
        return starts if region is None or bool(region.contains(starts.numpy())[0]) else x[:0]

    def _thresholds(self, problem: Problem, learner: Learner, seed: int, size: int) -> Query:
        """Return the thresholds that a batch of this size for the whole box is chosen for."""
        box, count = problem.box, self.settings.batch_thresholds
        theta = sobol(len(box.names), child_seed(seed, "sobol"), count, learner.sobol_position).numpy()
        each = TUNING.designs_per_end
        before, after = (i * min(size, each) // each for i in (learner.iteration, learner.iteration + 1))
        if after > before:
            theta[0] = float(before % 2)
        return Query.at(box, theta)

    def _focused(self, problem: Problem, focus: Focus, random: np.random.Generator) -> tuple[Query, FloatArray]:
        """Return the thresholds of the focus and their weights; of a large one some, drawn by weight."""
        rows, weights, count = focus.array, np.array(focus.weights), self.settings.batch_thresholds
        if len(weights) > count:
            rows = rows[random.choice(len(weights), size=count, replace=False, p=weights)]
            weights = np.full(count, 1.0 / count)
        return Query.of(problem.box, rows), weights

    def _answers(self, size: int, iteration: int) -> int:
        """Return how many answers a batch of this size has, so that their share comes out over the iterations."""
        s = self.settings
        share = min(1.0, s.answers_per_batch / s.batch_size) if s.batch_size > 1 else TUNING.single_share
        return math.floor((iteration + 1) * size * share) - math.floor(iteration * size * share)
