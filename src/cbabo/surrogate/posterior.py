"""The posterior of a problem's outputs after some evaluations: Gaussian processes, plain or warped and calibrated.

Symbols and shapes
    x      n x d    measured designs, unit cube; y  n x q  their outputs, natural units
    g(y)            outputs as the surrogates learn them (see `surrogate.warp`)
    kappa  q        factor of the standard deviations: how large errors were, in standard deviations

kappa is the largest of three root mean squares: of leave-one-out errors; of the errors of predicting each of the last evaluations
from those before it; and of the prequential errors, those of the predictions made when designs were chosen (see `prequential`).
The last two matter because a solver chooses designs where the surrogates err in its favour; the newest errors count most in them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.domain.evaluations import Evaluations
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate import Forms, Hyperparameters, Pointwise, Surrogates, Warp, choose, condition, fit
from cbabo.surrogate.columns import (
    exact_outputs,
    learned_columns,
    learned_rows,
    orientation,
    ranges,
    ratio,
)
from cbabo.surrogate.columns import groups as _groups
from cbabo.surrogate.composed import Composed, ComposedPointwise
from cbabo.surrogate.failures import FailureModel, fit_failure_model
from cbabo.surrogate.forms import with_plain
from cbabo.surrogate.formulas import Formulas
from cbabo.surrogate.large import most_conditioned, representative
from cbabo.surrogate.limits import Limits
from cbabo.surrogate.noise import NATURAL, Measurements, NoisePolicy, RowNoise
from cbabo.surrogate.noise import TUNING as NOISE
from cbabo.surrogate.prequential import PrequentialErrors, recent_mean
from cbabo.surrogate.sharing import Sharing, split_by_relevance


@dataclass(frozen=True)
class PosteriorTuning:
    """Numbers that tune the calibration."""

    recent: int = 30
    """Evaluations whose prediction by those before them is compared with what was measured: about six batches."""
    fewest_recent: int = 5
    """Without this many of them, a root mean square says nothing."""
    kappa: tuple[float, float] = (0.05, 20.0)
    """Limits of kappa: a smaller one would claim certainty, a larger one only widens what is useless already."""
    certain: float = 1e6
    """Slack in standard deviations that stands for certainty."""
    growth: float = 1.6
    """Growth of the data between two choices of the outputs' forms: choosing costs as much as several fits."""


TUNING = PosteriorTuning()


@dataclass(frozen=True, eq=False)
class FitState:
    """What one fit hands to the next; its defaults are the state before the first fit."""

    hyperparameters: Hyperparameters | None = None
    """Where the next fit starts."""
    warp: Warp | None = None
    """How outputs are warped; None before a warp was chosen, and where outputs are not warped."""
    formed: int = 0
    """How many evaluations there were when the outputs' forms were chosen."""
    prequential: PrequentialErrors | None = None
    """Predictions of proposed designs, and the errors of earlier ones; None where surrogates are not calibrated."""

    def for_outputs(self, q: int) -> FitState:
        """Return this state, or that before the first fit if it is of another number of outputs, as after parts were found."""
        h = self.hyperparameters
        return self if h is None or len(h.noise) == q else FitState()

    @property
    def forms(self) -> Forms | None:
        """The outputs' forms; None before they were chosen."""
        h = self.hyperparameters
        if h is None or h.family is None or h.stretch is None or self.warp is None:
            return None
        return Forms(self.warp, h.family, h.stretch)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Surrogates of a problem's outputs, and the evaluations that they were fitted to."""

    problem: Problem
    measured: Evaluations
    """n, the first evaluation of each measured design."""
    surrogates: Surrogates
    """Of the simulated outputs (p) as they are, or as `forms` says; `predictor` predicts all outputs (q)."""
    forms: Forms | None = None
    """How outputs are warped; None: not at all, and their signs are the problem's."""
    formed: int = 0
    """How many evaluations there were when the forms were chosen."""
    failure_model: FailureModel | None = None
    """The probability of a failure; None where failures show no pattern."""
    prequential: PrequentialErrors | None = None
    """How wrong earlier posteriors were; None where surrogates are not calibrated."""
    kappa: Tensor | None = None
    """q, the factor by which standard deviations were multiplied."""
    exact: Tensor | None = None
    """q, whether what was measured is the output itself, without noise; None: all outputs are exact."""
    counts: Tensor | None = None
    """n, how often each design was measured; None: once each."""

    @cached_property
    def limits(self) -> Limits:
        """The problem's objective and limits in the surrogates' units."""
        return Limits.of(self.problem, self.output_warp)

    @property
    def warp(self) -> Warp | None:
        """How simulated outputs are warped."""
        return None if self.forms is None else self.forms.warp

    @cached_property
    def output_warp(self) -> Warp | None:
        """How all outputs are warped: derived ones are not."""
        if self.warp is None or self.formulas is None:
            return self.warp
        q, learned = len(self.problem.outputs), torch.from_numpy(self.formulas.learned)
        found = Warp.none(torch.ones(q, dtype=torch.float64))
        for part in ("orientation", "centre", "width"):
            getattr(found, part)[learned] = getattr(self.warp, part)
        return found

    @cached_property
    def formulas(self) -> Formulas | None:
        """The derived outputs; None where there are none."""
        if not self.problem.derived:
            return None
        s, derived = self.surrogates, [j for j, n in enumerate(self.problem.outputs) if n in self.problem.derived]
        return Formulas(self.problem, self.warp, s.centre.numpy(), s.scale.numpy(), self.measured.y[:, derived])

    @cached_property
    def predictor(self) -> Surrogates | Composed:
        """What predicts all outputs: the surrogates, and formulas of these where there are derived outputs."""
        return self.surrogates if self.formulas is None else Composed(self.surrogates, self.formulas)

    @cached_property
    def pointwise(self) -> Pointwise | ComposedPointwise:
        """The predictor for one design at a time."""
        return (
            Pointwise(self.surrogates) if self.formulas is None else ComposedPointwise(self.surrogates, self.formulas)
        )

    @cached_property
    def z(self) -> Tensor:
        """What is known of the outputs of the data, n x q, standardised as the surrogates do: measured, or its posterior mean."""
        return self._known[0]

    @cached_property
    def z_std(self) -> Tensor:
        """The standard deviations of z, n x q; zero where an output is exact."""
        return self._known[1]

    @property
    def all_exact(self) -> bool:
        """Whether no output is noisy."""
        return self.exact is None or bool(self.exact.all())

    @cached_property
    def noise(self) -> Tensor:
        """Standard deviation (q) of the noise of each output, natural units, in the middle of the data; 0 where it is exact."""
        if self.exact is None:
            return torch.zeros(len(self.problem.outputs), dtype=torch.float64)
        s, warp = self.surrogates, self.warp
        exact = self.exact[self._learned]
        std = s.noise_std if self.kappa is None else s.noise_std / self.kappa
        if warp is not None:
            kind = s.hyperparameters.noise_kind
            scaled = torch.zeros_like(exact) if kind is None else kind == NATURAL
            slope = warp.log_slope(warp.inverse(s.y).median(0).values).exp()
            std = std / torch.where(warp.curved & ~scaled, slope, 1.0)
        found = torch.zeros(len(self.problem.outputs), dtype=torch.float64)
        found[self._learned] = torch.where(exact, 0.0, std)
        return found

    @cached_property
    def _learned(self) -> Tensor:
        """Where the simulated outputs are among all (p)."""
        return torch.tensor(self.problem.learned)

    def measured_probability(self, query: Query) -> FloatArray:
        """Return the probability (b x n) that the measured designs obey all limits of a query, by what was measured of them.

        It is 1 or 0 where all outputs are exact, and 0 for designs that break a known relation or lie outside amended bounds:
        these are never answers.
        """
        y = self.measured.y
        if self.exact is None or self.all_exact:
            return np.asarray(self.problem.box.obeyed(y, query.thresholds) & self.is_legal, dtype=np.float64)
        n, s, limits = len(y), self.predictor, self.limits
        obeyed = self.problem.box.obeyed(np.where(self.exact.numpy(), y, np.nan), query.thresholds, unknown=True)
        mean, std = self.z[:n] * s.scale + s.centre, torch.where(self.exact, 1.0, self.z_std[:n] * s.scale)
        slack = limits.bound(torch.from_numpy(query.theta))[:, None] - limits.sign * mean[:, limits.output]
        # Exact outputs are judged as they were measured.
        slack = torch.where(self.exact[limits.output], TUNING.certain, slack / std[:, limits.output])
        chance = limits.log_probability_of_slack(slack.reshape(-1, len(limits.output))).exp()
        return np.where(obeyed & self.is_legal, chance.numpy().reshape(len(query), n), 0.0)

    @cached_property
    def is_legal(self) -> NDArray[np.bool_]:
        """Which measured designs (n) lie within the bounds and obey all known relations; others are data, but no answers."""
        region, inside = self.problem.region, self.measured.is_inside
        return inside if region is None else inside & region.holds([row.point for row in self.measured])

    @cached_property
    def _known(self) -> tuple[Tensor, Tensor]:
        s, every = self.surrogates, self.predictor
        z = (s.y - s.centre) / s.scale
        if self.formulas is not None:
            learned = z
            z = z.new_empty(len(z), len(self.problem.outputs))
            z[:, self._learned] = learned
            z[:, self.formulas.derived] = torch.from_numpy(self.formulas.values(s.x.numpy(), learned.numpy()))
        if self.exact is None or self.all_exact:
            return z, torch.zeros_like(z)
        with torch.no_grad():
            mean, std = every.mean_and_std(s.x)
        z = torch.where(self.exact, z, (mean - every.centre) / every.scale)
        return z, torch.where(self.exact, 0.0, std / every.scale)

    def left_out(self, evaluations: Evaluations) -> Evaluations:
        """Return the measured designs of these evaluations that the surrogates are not conditioned on, because there are many."""
        known = {tuple(row.point.values()) for row in self.measured}
        rows = (row for row in evaluations.informative if tuple(row.point.values()) not in known)
        return Evaluations(evaluations.problem, tuple(rows))

    @property
    def fit_state(self) -> FitState:
        """What the next fit starts from."""
        return FitState(self.surrogates.hyperparameters, self.warp, self.formed, self.prequential)

    def fantasize(self, x: Tensor) -> Posterior:
        """Condition on designs x (p x d) as if their posterior means had been measured."""
        return replace(self, surrogates=self.surrogates.with_data(x, self.surrogates.mean(x)))

    def not_lowered(self) -> Posterior:
        """Return this with deviations as fitted where calibration has lowered them: errors near data say nothing of far ones."""
        return self if self.kappa is None else self._divided(self.kappa.clamp_max(1.0))

    def not_raised(self) -> Posterior:
        """Return this with deviations as fitted where calibration has raised them."""
        return self if self.kappa is None else self._divided(self.kappa.clamp_min(1.0))

    def _divided(self, factor: Tensor) -> Posterior:
        """Return this with the calibrated deviations divided by a factor (q)."""
        assert self.kappa is not None
        return replace(self, surrogates=calibrated(self.surrogates, 1.0 / factor), kappa=self.kappa / factor)

    def with_predictions(self, x: Tensor) -> PrequentialErrors | None:
        """Return the prequential record with the predictions of proposed designs x (p x d), before calibration."""
        if self.prequential is None or self.kappa is None:
            return None
        mean, std = self.surrogates.mean_and_std(x)
        return self.prequential.with_predictions(x, mean, self.surrogates.observation_std(std) / self.kappa)

    def conditioned(self, evaluations: Evaluations, policy: NoisePolicy) -> Posterior:
        """Return the posterior of more evaluations of the same problem, with the same hyperparameters."""
        found = _measurements(evaluations)
        s, h, y = self.surrogates, self.surrogates.hyperparameters, found.y
        warped = y if self.warp is None else self.warp.forward(y)
        exact, relative = self.exact, None
        if exact is not None:
            noisy = _noisy(found, policy) | ~exact[self._learned]
            exact = exact_outputs(self.problem, ~noisy)
            scaled = torch.zeros_like(noisy) if h.noise_kind is None else h.noise_kind == NATURAL
            assert self.warp is not None
            # Of what is not measured yet, the posterior mean tells the slope of the warp.
            slope = self.warp.log_slope(self.warp.inverse(s.mean(found.x))).exp()
            if bool(noisy.any()):
                row_noise = RowNoise.of(found, noisy, slope, scaled)
                relative, h = row_noise.relative, replace(h, noise_kind=row_noise.kind)
        surrogates = condition(found.x, warped, h, s.centre, s.scale, relative)
        return replace(self, measured=found.rows, surrogates=surrogates, exact=exact, counts=found.count)

    def natural(self, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and deviations (b x q) in natural units."""
        return (mean, std) if self.output_warp is None else self.output_warp.natural(mean, std)


def fit_plain(evaluations: Evaluations, state: FitState) -> Posterior:
    """Fit Gaussian processes with BoTorch's priors to the raw outputs of all measured designs."""
    measured = evaluations.complete
    x, y = torch.from_numpy(measured.x), torch.from_numpy(measured.y)
    y = learned_columns(measured.problem, y)
    state = state.for_outputs(y.shape[1])
    return Posterior(measured.problem, measured, fit(x, y, warm=state.hyperparameters))


def fit_calibrated(
    evaluations: Evaluations,
    state: FitState,
    initial_evaluations: int,
    policy: NoisePolicy = "detect",
    realisation: bool = False,
    most: int | None = None,
) -> Posterior:
    """Fit warped and calibrated Gaussian processes, and the failure probability.

    initial_evaluations: how many of the first designs were not chosen by a model. policy: what counts as noise. realisation:
    whether limits are about one measurement, noise included, instead of the noise-free outputs. most: designs that the surrogates
    are conditioned on at most; None: as many as `large` says.
    """
    measurements = _measurements(evaluations, most)
    noisy = _noisy(measurements, policy)
    repeats = (measurements, noisy) if bool(noisy.any()) else None
    x, y = measurements.x, measurements.y
    problem = evaluations.problem
    state = state.for_outputs(y.shape[1])
    prequential = state.prequential or PrequentialErrors.none(x.shape[1], y.shape[1])
    forms = state.forms or Forms.plain(learned_rows(problem, orientation(problem)), x.shape[1])
    count, formed = len(evaluations.informative), state.formed
    newly_noisy = noisy & _taken_as_exact(state)
    if bool(newly_noisy.any()):  # Their forms were chosen as if their scatter were no noise.
        forms, formed = with_plain(forms, newly_noisy.nonzero().squeeze(-1)), 0
    group = _present_groups(problem, state.hyperparameters)
    surrogates = forms.fit(x, y, state.hyperparameters, group, repeats)
    prequential = prequential.measured(x, y, forms.warp)
    if count >= max(initial_evaluations, TUNING.growth * formed):
        group = split_by_relevance(_groups(problem), _relevance(surrogates))
        forms = choose(x, y, learned_rows(problem, ranges(problem)), ratio(problem), forms, surrogates, group, repeats)
        surrogates, formed = forms.fit(x, y, surrogates.hyperparameters, group, repeats), count
        prequential = prequential.without_pending()
    kappa = measured_kappa(surrogates, initial_evaluations - (count - len(x)), prequential)
    surrogates = calibrated(surrogates, kappa)
    h = surrogates.hyperparameters
    nugget = torch.ones_like(h.noise) if realisation else torch.where(noisy, 0.0, torch.ones_like(h.noise))
    surrogates = surrogates.with_deviations(replace(h, nugget=nugget))
    exact = ~noisy
    if policy == "detect" and not measurements.repeated and count >= initial_evaluations:
        assert h.amplitude is not None
        exact &= h.noise * h.amplitude / kappa.square() < NOISE.suspicious
    return Posterior(
        problem,
        measurements.rows,
        surrogates,
        forms,
        formed,
        fit_failure_model(evaluations),
        prequential,
        kappa,
        exact_outputs(problem, exact),
        measurements.count,
    )


def _measurements(evaluations: Evaluations, most: int | None = None) -> Measurements:
    """Return the measurements of the simulated outputs, at so many designs at most."""
    found, problem = Measurements.of(evaluations.informative), evaluations.problem
    count = min(most or len(found.rows), most_conditioned(len(problem.learned)))
    if len(found.rows) > count:
        found = found.of_designs(representative(found.rows, count, found.count.numpy()))
    return found.of_outputs(torch.tensor(problem.learned)) if problem.derived else found


def _noisy(measurements: Measurements, policy: NoisePolicy) -> Tensor:
    """Return which outputs (q) are noisy: with one part of an output all of its parts, which may share a kernel."""
    noisy, group = measurements.noisy(policy), _groups(measurements.rows.problem)
    return (noisy & (group.unsqueeze(1) == group.unsqueeze(0))).any(1)


def _taken_as_exact(state: FitState) -> Tensor | bool:
    """Return which outputs (q) the last fit took as exact."""
    h = state.hyperparameters
    return False if h is None or h.nugget is None else h.nugget == 1.0


def calibrated(surrogates: Surrogates, kappa: Tensor) -> Surrogates:
    """Return surrogates whose deviations are multiplied by kappa (q)."""
    h = surrogates.hyperparameters
    assert h.amplitude is not None
    return surrogates.with_deviations(replace(h, amplitude=h.amplitude * kappa.square()))


def measured_kappa(surrogates: Surrogates, initial: int, prequential: PrequentialErrors | None = None) -> Tensor:
    """Return by what deviations are too small; initial: how many evaluations nobody chose."""
    h = surrogates.hyperparameters
    assert h.amplitude is not None
    mean, std = surrogates.leave_one_out()
    kappa = ((mean - surrogates.y) / std).square().mean(0).sqrt()
    first = max(initial, len(surrogates.x) - TUNING.recent)
    if len(surrogates.x) - first >= TUNING.fewest_recent:
        z = ((surrogates.y - surrogates.centre) / surrogates.scale - h.constant).T
        errors = surrogates.whitened(z)
        recent = (recent_mean(errors[:, first:].square()) / h.amplitude).sqrt()
        kappa = torch.maximum(kappa, recent)
    kappa = kappa.nan_to_num(1.0)
    return (kappa if prequential is None else torch.maximum(kappa, prequential.kappa)).clamp(*TUNING.kappa)


def _present_groups(problem: Problem, last: Hyperparameters | None) -> Tensor:
    """Return the label of each output's group (q) that shares a kernel: as in the last fit, all parts of an output before."""
    whole = _groups(problem)
    if last is None:
        return whole
    return Sharing.of_rows(whole, last.lengthscales, last.noise, last.family, last.stretch).group


def _relevance(surrogates: Surrogates) -> Tensor:
    """Return how much each output depends on each variable (q x d): the root mean square of the derivatives at the data."""
    return surrogates.mean_and_gradient(surrogates.x)[1].square().mean(0).sqrt()
