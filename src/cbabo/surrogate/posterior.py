"""What is believed about a problem after some evaluations: surrogates of its outputs, warped and calibrated as settings say.

Symbols and shapes
    x      n x d    measured designs, unit cube; y  n x q  their outputs, natural units
    g(y)            outputs as the surrogates learn them (see `surrogate.warp`)
    kappa  q        by what deviations are multiplied: how large errors were, in deviations

kappa is the largest of three: the root mean square of leave-one-out errors, that of the errors of predicting each of the last
evaluations from those before it, and that of what was foretold of the last designs when they were chosen (see `prequential`).
Designs are chosen where the surrogates promise much: a solver walks to where they err.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.problem import Problem
from cbabo.methods.learner import Learner
from cbabo.methods.settings import Settings
from cbabo.surrogate import Forms, Pointwise, Surrogates, Warp, choose, fit
from cbabo.surrogate.failures import FailureModel, fit_failure_model
from cbabo.surrogate.limits import Limits
from cbabo.surrogate.prequential import PrequentialErrors

_RECENT = 30  # evaluations whose prediction by those before them is judged
_FEWEST_RECENT = 5
_KAPPA = (0.05, 20.0)
_GROWTH = 1.6  # of the evaluations between two choices of the outputs' forms


@dataclass(frozen=True, eq=False)
class Posterior:
    """Surrogates of a problem, and what they learned from."""

    problem: Problem
    measured: Evaluations
    surrogates: Surrogates
    """Of the outputs as they are, or as `forms` says."""
    forms: Forms | None = None
    """How outputs are warped; None: they are not, and their order of sign is the problem's."""
    formed: int = 0
    """How many evaluations there were when the forms were chosen."""
    failure_model: FailureModel | None = None
    """Where the simulator fails; None: nowhere in particular."""
    prequential: PrequentialErrors | None = None
    """How wrong earlier posteriors were; None where surrogates are not calibrated."""
    kappa: Tensor | None = None
    """q, by what deviations were multiplied."""

    @cached_property
    def limits(self) -> Limits:
        """The problem's objective and limits in the surrogates' units."""
        return Limits.of(self.problem, self.warp)

    @property
    def warp(self) -> Warp | None:
        """How outputs are warped."""
        return None if self.forms is None else self.forms.warp

    @cached_property
    def pointwise(self) -> Pointwise:
        """The surrogates for one design at a time."""
        return Pointwise(self.surrogates)

    @cached_property
    def z(self) -> Tensor:
        """Measured outputs, n x q, standardised as the surrogates do."""
        s = self.surrogates
        return (s.y - s.centre) / s.scale

    def fantasize(self, x: Tensor) -> Posterior:
        """Return the posterior as it would be if designs x (p x d) turned out just as believed: less is left to learn there."""
        return replace(self, surrogates=self.surrogates.with_data(x, self.surrogates.mean(x)))

    def with_predictions(self, x: Tensor) -> PrequentialErrors | None:
        """Return the prequential with what is believed of proposed designs x (p x d), deviations before their calibration."""
        if self.prequential is None or self.kappa is None:
            return None
        mean, std = self.surrogates.mean_and_std(x)
        return self.prequential.with_predictions(x, mean, std / self.kappa)

    def natural(self, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and deviations (b x q) in natural units."""
        return (mean, std) if self.warp is None else self.warp.natural(mean, std)


def fit_posterior(evaluations: Evaluations, learner: Learner, settings: Settings) -> Posterior:
    """Fit surrogates to the measured designs, starting from the learner's last fit; failures are learned from as settings say."""
    measured = training_evaluations(evaluations, settings)
    x, y = torch.from_numpy(measured.x), torch.from_numpy(measured.y)
    problem = measured.problem
    if settings.surrogates == "plain":
        return Posterior(problem, measured, fit(x, y, warm=learner.hyperparameters))
    prequential = learner.prequential or PrequentialErrors.none(x.shape[1], y.shape[1])
    forms = learner.forms or Forms.plain(_orientation(problem), x.shape[1])
    surrogates = forms.fit(x, y, learner.hyperparameters)
    prequential = prequential.measured(x, y, forms.warp)
    formed = learner.formed
    if len(x) >= max(settings.initial_evaluations, _GROWTH * formed):
        forms = choose(x, y, _ranges(problem), _ratio(problem), forms, surrogates)
        surrogates, formed = forms.fit(x, y, surrogates.hyperparameters), len(x)
        prequential = prequential.without_pending()
    kappa = measured_kappa(surrogates, settings.initial_evaluations, prequential)
    surrogates = calibrated(surrogates, kappa)
    return Posterior(problem, measured, surrogates, forms, formed, fit_failure_model(evaluations), prequential, kappa)


def training_evaluations(evaluations: Evaluations, settings: Settings) -> Evaluations:
    """Return the measured designs, where surrogates are calibrated without exact repetitions: these foretell each other."""
    measured = evaluations.complete
    if settings.surrogates == "plain":
        return measured
    first: dict[tuple[float, ...], Evaluation] = {}
    for e in measured:
        first.setdefault((*e.point.values(), *(e.outputs[name] for name in measured.problem.outputs)), e)
    return Evaluations(measured.problem, tuple(first.values())) if 2 <= len(first) < len(measured) else measured


def calibrated(surrogates: Surrogates, kappa: Tensor) -> Surrogates:
    """Return surrogates whose deviations are multiplied by kappa (q)."""
    h = surrogates.hyperparameters
    assert h.amplitude is not None
    return replace(surrogates, hyperparameters=replace(h, amplitude=h.amplitude * kappa.square()))


def measured_kappa(surrogates: Surrogates, initial: int, prequential: PrequentialErrors | None = None) -> Tensor:
    """Return by what deviations are too small; initial: how many evaluations nobody chose."""
    h = surrogates.hyperparameters
    assert h.amplitude is not None
    mean, std = surrogates.leave_one_out()
    kappa = ((mean - surrogates.y) / std).square().mean(0).sqrt()
    first = max(initial, len(surrogates.x) - _RECENT)
    if len(surrogates.x) - first >= _FEWEST_RECENT:
        z = ((surrogates.y - surrogates.centre) / surrogates.scale - h.constant).T.unsqueeze(-1)
        errors = torch.linalg.solve_triangular(surrogates.factor, z, upper=False).squeeze(-1)
        recent = (errors[:, first:].square().mean(1) / h.amplitude).sqrt()
        kappa = torch.maximum(kappa, recent)
    kappa = kappa.nan_to_num(1.0)
    return (kappa if prequential is None else torch.maximum(kappa, prequential.kappa)).clamp(*_KAPPA)


def _orientation(problem: Problem) -> Tensor:
    """Return for every output (q) the sign with which less is better."""
    signs = dict.fromkeys(problem.outputs, 0.0)
    for constraint in problem.constraints:
        for name in constraint.output_names:
            signs[name] = signs[name] or constraint.sign
    signs[problem.objective.name] = problem.objective.sign
    return torch.tensor([s or 1.0 for s in signs.values()], dtype=torch.float64)


def _ranges(problem: Problem) -> Tensor:
    """Return where the limits of every output may lie (q x 2); nan where it has none."""
    ends = {name: [np.inf, -np.inf] for name in problem.outputs}
    for c in problem.constraints:
        for name in c.output_names:
            ends[name][0] = min(ends[name][0], c.strictest, c.most_relaxed)
            ends[name][1] = max(ends[name][1], c.strictest, c.most_relaxed)
    found = torch.tensor(list(ends.values()), dtype=torch.float64)
    return torch.where(found.isfinite().all(1, keepdim=True), found, torch.nan)


def _ratio(problem: Problem) -> Tensor:
    """Return log(upper / lower bound) of every variable (d); 0 where bounds are not positive or its scale is logarithmic."""
    return torch.tensor(
        [
            np.log(v.high / v.low) if v.low > 0 and not getattr(v, "log", False) else 0.0
            for v in problem.space.variables
        ],
        dtype=torch.float64,
    )
