"""Whether further evaluations would still change the answers, estimated without spending any.

There are three figures, at 64 fixed thresholds. The first two are shares of the span: how far the objective of the answers moves
over the box.

- moved: how much better the answers are than those without the last 30 evaluations, judged by what is known now. The earlier
  answers have the same hyperparameters, conditioned on the earlier data only, so that nothing is fitted again.
- gain: what is expected to be gained if everything were known. Functions are sampled from the posterior at candidate designs: the
  answers, the designs that would be best without uncertainty, steps beyond these, and designs anywhere. In each sample an
  answer is compared with the best candidate that obeys the limits there. There are finitely many candidates, so that the gain
  tends to be too low where there are many variables.
- risk: the mean probability that an answer breaks a limit, as answers state it. Such an answer is a loss of the whole span.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from cbabo.domain.convergence import FEWEST_MEASURED, Convergence
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.query import Query
from cbabo.methods.designs import legal_designs
from cbabo.methods.method import Fitted
from cbabo.methods.settings import DefaultSettings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import PROBABILITY_SLACK, SAME_DESIGN
from cbabo.solver.categorical import solver_for
from cbabo.solver.continuous import Solver, SolverAnswer
from cbabo.surrogate.sampling import joint_samples


@dataclass(frozen=True)
class ConvergenceTuning:
    """Effort of the estimate."""

    thresholds: int = 64
    """Thresholds at which answers are compared: the standard error of a mean over the box is then an eighth of the spread."""
    window: int = 30
    """Evaluations that are left out: six batches of the usual size; at most a third of all."""
    samples: int = 64
    """Sampled functions: the expectation is of many thresholds, too."""
    anywhere: int = 256
    """Candidates anywhere in the cube."""
    beyond: tuple[float, ...] = (0.5, 1.5)
    """Steps from an answer towards the design that would be best without uncertainty, in units of their distance."""
    least_span: float = 1e-9
    """Span, as a share of the objectives' own size, below which the spread of the measured objectives is taken instead."""


TUNING = ConvergenceTuning()


def convergence(fitted: Fitted) -> Convergence | None:
    """Estimate how far the answers of a model still move; None where it is too early to say, or where a network answers."""
    settings, measured = fitted.settings, fitted.evaluations.complete
    if not isinstance(settings, DefaultSettings) or len(measured) < FEWEST_MEASURED:
        return None
    window = min(TUNING.window, len(measured) // 3)
    box = fitted.problem.box
    theta = sobol(len(box.names), 0, TUNING.thresholds).numpy()
    query = Query.at(
        box, np.vstack([theta, np.zeros_like(theta[:1]), np.ones_like(theta[:1])])
    )  # The ends give the span.
    aim = settings.probability
    with one_thread():
        earlier = fitted.posterior.conditioned(_without_last(fitted.evaluations, window), settings.noise)
        now, before = fitted.solver.answers(query, aim), solver_for(earlier).answers(query, aim)
        value, chance = _judged(fitted.solver, query, now)
        met = chance >= aim - PROBABILITY_SLACK
        span = _span(fitted, value[met])
        met[TUNING.thresholds :] = False
        if not met.any():
            return Convergence(len(measured), window, 0, 1.0, 1.0, 1.0)
        old_value, old_chance = _judged(fitted.solver, query, before)
        lost = (1.0 - old_chance) + old_chance * np.clip((old_value - value) / span, 0.0, 1.0)
        moved = np.clip(lost - (1.0 - chance), 0.0, 1.0)[met]
        gain = _gain(fitted, query, now, value, span)[met]
    risk = 1.0 - chance[met]
    return Convergence(
        len(measured),
        window,
        int(met.sum()),
        float(moved.mean()),
        float((chance[met] * gain).mean()),
        float(risk.mean()),
    )


def _without_last(evaluations: Evaluations, window: int) -> Evaluations:
    """Return the evaluations before the last measured ones."""
    first = evaluations.complete[len(evaluations.complete) - window].id
    return Evaluations(evaluations.problem, tuple(row for row in evaluations if row.id < first))


def _judged(solver: Solver, query: Query, found: tuple[SolverAnswer, ...]) -> tuple[FloatArray, FloatArray]:
    """Return the objective (b, natural units, to be minimised) of answers, and the probability that they obey the limits (b)."""
    posterior = solver.posterior
    x = np.array([answer.x for answer in found])
    s, limits = posterior.predictor, posterior.limits
    with torch.no_grad():
        mean, std = s.mean_and_std(torch.from_numpy(x))
        chance = limits.log_probability(mean, std, torch.from_numpy(query.theta)).exp().numpy().copy()
    known = posterior.measured_probability(query)
    measured = posterior.measured.x
    for i, design in enumerate(x):
        distance = np.abs(measured - design).max(1)
        row = int(distance.argmin())
        if distance[row] <= SAME_DESIGN:
            chance[i] = known[i, row]
            mean[i] = posterior.z[row] * s.scale + s.centre
    return _objective(solver, mean), chance


def _objective(solver: Solver, values: torch.Tensor) -> FloatArray:
    """Return the objective in natural units, to be minimised, of outputs (... x q) in the surrogates' units."""
    posterior = solver.posterior
    natural = values if posterior.output_warp is None else posterior.output_warp.inverse(values)
    return np.asarray(posterior.problem.objective.sign * natural[..., 0].numpy())


def _span(fitted: Fitted, value: FloatArray) -> float:
    """Return how far the objective of answers (b) moves, or that of the measured designs where it hardly does."""
    measured = fitted.problem.objective.sign * fitted.posterior.measured.y[:, 0]
    size = max(1.0, float(np.abs(measured).max())) * TUNING.least_span
    span = float(np.ptp(value)) if len(value) else 0.0
    if span <= size:
        span = float(np.median(measured) - measured.min())
    return max(span, size)


def _gain(fitted: Fitted, query: Query, found: tuple[SolverAnswer, ...], value: FloatArray, span: float) -> FloatArray:
    """Return the expected gain (b) of the best candidate in sampled functions over the answers."""
    solver, random = fitted.solver, child(fitted.seed, "convergence")
    answers = np.array([answer.x for answer in found])
    bounds = solver.bound(query.theta)
    certain = np.array([solver.solve(bound, x).x for bound, x in zip(bounds, answers, strict=True)])
    steps = [np.clip(answers + step * (certain - answers), 0.0, 1.0) for step in TUNING.beyond]
    anywhere = random.random((TUNING.anywhere, answers.shape[1]))
    pool = torch.unique(legal_designs(fitted.problem, torch.from_numpy(np.vstack([certain, *steps, anywhere]))), dim=0)
    x = torch.cat([torch.from_numpy(answers), pool])
    normal = torch.from_numpy(random.standard_normal((TUNING.samples, len(x), len(fitted.problem.outputs))))
    samples = joint_samples(fitted.posterior.predictor, x, normal)
    objective = _objective(solver, samples)
    s = fitted.posterior.predictor
    z = ((samples - s.centre) / s.scale).numpy()
    gains = np.zeros(len(found))
    for i, bound in enumerate(bounds):
        obeyed = np.ones(objective.shape, dtype=np.bool_)
        for j, limit in enumerate(bound):
            obeyed &= solver.sign[j] * z[:, :, solver.output[j]] <= limit
        own = np.full(len(objective), value[i]) if found[i].measured is not None else objective[:, i]
        best = np.where(obeyed, objective, np.inf).min(1)
        gains[i] = float(np.clip((own - best) / span, 0.0, 1.0).mean())
    return gains
