"""Selection of each output's form: its warp, the stretch of its variables and its kernel family.

Candidate forms are compared by the posterior density of the outputs in natural units (the log Jacobian of the warp is
included), at hyperparameters that are fitted from those of the current form. Warp, stretch and kernel family are selected one
after the other. The current form is kept unless another one is clearly better, and an output that is predicted almost exactly
keeps its form without a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from cbabo.surrogate import kernel
from cbabo.surrogate.fit import fit
from cbabo.surrogate.gp import Surrogates
from cbabo.surrogate.hyperparameters import Hyperparameters
from cbabo.surrogate.large import fitted_rows
from cbabo.surrogate.likelihood import Priors
from cbabo.surrogate.noise import TUNING as NOISE
from cbabo.surrogate.noise import Measurements, RowNoise
from cbabo.surrogate.sharing import Sharing
from cbabo.surrogate.warp import Warp


@dataclass(frozen=True)
class FormTuning:
    """Numbers that control the selection of forms and the fits to formed outputs."""

    min_gain: float = 3.0
    """Gain in log density below which the current form is kept."""
    additive_gain: float = 5.0
    """Further gain below which no output becomes additive: with few evaluations many functions look like a sum."""
    additive_evaluations: int = 40
    """Evaluations below which no output becomes additive, whatever the number of variables."""
    additive_evaluations_per_variable: int = 4
    """Evaluations for each variable below which no output becomes additive."""
    additive_error: float = 0.03
    """Leave-one-out error, in standard deviations of the output, up to which the additive kernel is not tried."""
    exact_error: float = 1e-3
    """Leave-one-out error, in standard deviations of the output, up to which the current form is good enough."""
    comparison_tolerance: float = 1e-3
    """Tolerance of the fits that are compared: coarse, since forms must differ clearly."""
    comparison_rounds: int = 60
    """Rounds of the fits that are compared."""
    comparison_evaluations: int = 100
    """Evaluations that are used for the comparison at most."""
    stretches: tuple[float, ...] = (0.0, 2.0, 4.0, 6.0)
    """Candidate stretches for all variables."""
    end_widths: tuple[float, ...] = (0.5, 0.05)
    """Widths of a warp that is centred at an output's end: shares of its distance to the median and of its limits' range."""
    end_distance: float = 1.5
    """Distance of an output's end from the middle of its limits, in ranges of the limits, beyond which the end is not tried."""
    rounding: float = 1e-12
    """Of the spread of an output: a narrower warp is rounding, as where a limit binds in most designs, and would amplify it."""
    tolerance: float = 1e-5
    """Tolerance of the fits to the outputs as formed."""
    growth: float = 2.0
    """Growth of the data between two fits to the outputs as formed that explore all starts."""


TUNING = FormTuning()


@dataclass(frozen=True, eq=False)
class Forms:
    """The form of every output.

    Examples:
        >>> forms = Forms.plain(torch.ones(1, dtype=torch.float64), d=1)
        >>> x = torch.linspace(0.0, 1.0, 8, dtype=torch.float64).unsqueeze(1)
        >>> surrogates = forms.fit(x, x.square(), warm=None)
        >>> surrogates.mean(torch.tensor([[0.6]], dtype=torch.float64)).round(decimals=2).tolist()
        [[0.36]]
    """

    warp: Warp
    family: Tensor = field(metadata={"dtype": torch.int64})
    """q, kernel family: SMOOTH, ROUGH or ADDITIVE."""
    stretch: Tensor
    """q x d, a: variables enter as log(1 + (e^a - 1) x) / a; 0 leaves them unchanged."""

    @classmethod
    def plain(cls, orientation: Tensor, d: int) -> Forms:
        """Return the simplest forms of outputs with these orientations (q): not warped, not stretched, smooth."""
        q = len(orientation)
        return cls(Warp.none(orientation), torch.zeros(q, dtype=torch.int64), torch.zeros(q, d, dtype=torch.float64))

    def same_lengthscales(self, other: Forms) -> bool:
        """Return whether lengthscales have the same meaning in both, which additive kernels change."""
        return bool(((self.family == kernel.ADDITIVE) == (other.family == kernel.ADDITIVE)).all())

    def fit(
        self,
        x: Tensor,
        y: Tensor,
        warm: Hyperparameters | None,
        group: Tensor | None = None,
        repeats: tuple[Measurements, Tensor] | None = None,
    ) -> Surrogates:
        """Fit surrogates to the warped outputs; warm: start of the fit, possibly of other forms; group (q): see `fit`.

        repeats: the measurements whose means are y, and which outputs (q) are noisy. The noise of a warped output is taken as
        the same everywhere in warped or in natural units, whichever is more likely; in warped units where it shares a kernel.
        """
        if (
            warm is not None
            and warm.family is not None
            and not self.same_lengthscales(replace(self, family=warm.family))
        ):
            warm = replace(warm, explored=0)
        if repeats is None:
            return self._fit(x, y, warm, group, None)
        measurements, noisy = repeats
        slope = self.warp.log_slope(y).exp()
        row_noise = RowNoise.of(measurements, noisy, slope, torch.zeros_like(noisy))
        in_warped_units = self._fit(x, y, warm, group, row_noise)
        curved = noisy & self.warp.curved & _alone(group, len(noisy))
        if not bool(curved.any()):
            return in_warped_units
        # Slopes at the measured values would give more weight to whatever noise moved where the warp is flat.
        slope = self.warp.log_slope(self.warp.inverse(in_warped_units.mean(x))).exp()
        warm = in_warped_units.hyperparameters
        in_natural_units = self._fit(x, y, warm, group, RowNoise.of(measurements, noisy, slope, curved))
        values = [s.hyperparameters.value for s in (in_natural_units, in_warped_units)]
        assert values[0] is not None
        assert values[1] is not None
        scaled = curved & (values[0] < values[1])
        if not bool(scaled.any()):
            return in_warped_units
        if bool((scaled == curved).all()):
            return in_natural_units
        return self._fit(x, y, warm, group, RowNoise.of(measurements, noisy, slope, scaled))

    def _fit(
        self, x: Tensor, y: Tensor, warm: Hyperparameters | None, group: Tensor | None, row_noise: RowNoise | None
    ) -> Surrogates:
        return fit(
            x,
            self.warp.forward(y),
            priors=Priors.sharp(x.shape[1]),
            warm=warm,
            family=self.family,
            stretch=self.stretch,
            tolerance=TUNING.tolerance,
            growth=TUNING.growth,
            group=group,
            row_noise=row_noise,
            rows=fitted_rows(len(x), x.shape[1], additive=bool((self.family == kernel.ADDITIVE).any())),
        )


def _alone(group: Tensor | None, q: int) -> Tensor:
    """Return which outputs (q) share their kernel with no other."""
    if group is None:
        return torch.ones(q, dtype=torch.bool)
    return (group.unsqueeze(0) == group.unsqueeze(1)).sum(0) == 1


def choose(
    x: Tensor,
    y: Tensor,
    ranges: Tensor,
    ratio: Tensor,
    present: Forms,
    fitted: Surrogates,
    group: Tensor | None = None,
    repeats: tuple[Measurements, Tensor] | None = None,
) -> Forms:
    """Return the selected forms for x (n x d, unit cube) and y (n x q, natural units); takes several fits of all outputs.

    ranges: q x 2, ranges of each output's limits (nan where it has none); ratio: d, log(upper / lower bound) of each variable, 0
    where it does not exist; present: the current forms; fitted: surrogates of the current forms; group: q, outputs with the same
    one get the same kind of form, and the same kernel; repeats: as `Forms.fit` takes them. A warp of a noisy output is at least
    as wide as a few standard deviations of its noise.
    """
    sharing = Sharing.of(torch.arange(y.shape[1]) if group is None else group)
    if not sharing.is_trivial:  # Groups may have been formed anew since the current forms were chosen.
        present = replace(
            present, family=_of_first(present.family, sharing), stretch=_of_first(present.stretch, sharing)
        )
    mean, _ = fitted.leave_one_out()
    error = _largest(((mean - fitted.y) / fitted.scale).square().mean(0).sqrt(), sharing)
    due = (error > TUNING.exact_error).nonzero().squeeze(-1)
    if not len(due):
        return present
    count = min(TUNING.comparison_evaluations, len(x))
    keep = torch.arange(count) * len(x) // count
    row_noise, min_width = None, torch.zeros_like(error)
    if repeats is not None:
        measurements, noisy = repeats
        row_noise = RowNoise.of(measurements, noisy, torch.ones_like(y), torch.zeros_like(noisy)).without_repeats()
        noise_std = torch.maximum(_natural_noise(present.warp, y, fitted), measurements.noise_std)
        min_width = torch.where(noisy, NOISE.warp_width * noise_std, 0.0)
        present = replace(present, warp=replace(present.warp, width=torch.maximum(present.warp.width, min_width)))
        row_noise = row_noise.at(keep, due)
    comparison = _Comparison(
        x[keep], y[keep][:, due], _hyperparameters_of(fitted.hyperparameters, due), sharing.group[due], row_noise
    )
    best = _forms_of(present, due)
    warps = _candidate_warps(y[:, due], ranges[due], best.warp, min_width[due])
    best = comparison.select(best, [replace(best, warp=w) for w in warps])
    stretches = [torch.full_like(best.stretch, a) for a in TUNING.stretches]
    if bool((ratio > 0).any()):
        stretches.append(ratio.expand_as(best.stretch))
    # Additive outputs have no stretch, nor have variables with designs below their lower bounds, where it is not defined.
    plain = (best.family == kernel.ADDITIVE).unsqueeze(-1) | (x.amin(0) < 0.0)
    best = comparison.select(best, [replace(best, stretch=torch.where(plain, 0.0, s)) for s in stretches])
    radial = [replace(best, family=torch.full_like(best.family, f)) for f in (kernel.SMOOTH, kernel.ROUGH)]
    best = comparison.select(best, radial)
    poor = ((error[due] > TUNING.additive_error) | (best.family == kernel.ADDITIVE)).nonzero().squeeze(-1)
    enough = max(TUNING.additive_evaluations, TUNING.additive_evaluations_per_variable * x.shape[1])
    if len(x) >= enough and len(poor):
        none = Warp.none(best.warp.orientation)
        sum_form = Forms(none, torch.full_like(best.family, kernel.ADDITIVE), torch.zeros_like(best.stretch))
        sums = [_forms_of(replace(sum_form, warp=w), poor) for w in (best.warp, none)]
        best = _with_forms(best, poor, comparison.among(poor).select(_forms_of(best, poor), sums))
    return _with_forms(present, due, best)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Comparison of candidate forms on a part of the data."""

    x: Tensor
    y: Tensor
    warm: Hyperparameters
    """Hyperparameters of the current forms."""
    group: Tensor
    """q, the group of each output."""
    row_noise: RowNoise | None = None
    """Noise of every row; None: the same for all."""

    def select(self, present: Forms, others: list[Forms]) -> Forms:
        """Return the best form of each output: the current one unless another is clearly better for its group."""
        candidates = [present, *others]
        # Where lengthscales have the same meaning, fits start at the current hyperparameters.
        near = [c for c in candidates if c.same_lengthscales(present)]
        far = [c for c in candidates if not c.same_lengthscales(present)]
        found = self._log_densities(near, self._start(len(near))) + (self._log_densities(far, None) if far else [])
        candidates, density = near + far, torch.stack(found)
        density[0] += TUNING.min_gain
        for i, candidate in enumerate(candidates):
            becomes_additive = (candidate.family == kernel.ADDITIVE) & (present.family != kernel.ADDITIVE)
            density[i] -= TUNING.additive_gain * becomes_additive
        at, q = density.argmax(0), torch.arange(self.y.shape[1])
        return _combine(candidates, lambda parts: torch.stack(parts)[at, q])

    def among(self, outputs: Tensor) -> _Comparison:
        """Return the comparison for some outputs (indices) only."""
        warm = _hyperparameters_of(self.warm, outputs)
        noise = None if self.row_noise is None else self.row_noise.at(torch.arange(len(self.x)), outputs)
        return _Comparison(self.x, self.y[:, outputs], warm, self.group[outputs], noise)

    def _log_densities(self, candidates: list[Forms], start: Hyperparameters | None) -> list[Tensor]:
        """Return the log posterior density of each output's group (q) for each candidate, by one fit of all of them."""
        n, q = self.y.shape
        fitted = fit(
            self.x,
            torch.cat([f.warp.forward(self.y) for f in candidates], dim=1),
            priors=Priors.sharp(self.x.shape[1]),
            warm=start,
            growth=torch.inf,
            family=torch.cat([f.family for f in candidates]),
            stretch=torch.cat([f.stretch for f in candidates]),
            tolerance=TUNING.comparison_tolerance,
            max_rounds=TUNING.comparison_rounds,
            group=torch.cat([self.group + i * (int(self.group.max()) + 1) for i in range(len(candidates))]),
            row_noise=None if self.row_noise is None else self.row_noise.repeated(len(candidates)),
        )
        assert fitted.hyperparameters.value is not None
        log = -n * (fitted.hyperparameters.value + fitted.scale.log())
        sharing = Sharing.of(self.group)
        return [
            _summed(part + f.warp.log_slope(self.y).sum(0), sharing)
            for part, f in zip(log.split(q), candidates, strict=True)
        ]

    def _start(self, c: int) -> Hyperparameters:
        """Return the current hyperparameters, repeated for c candidates."""
        warm = self.warm
        return Hyperparameters(
            warm.lengthscales.repeat(c, 1),
            warm.noise.repeat(c),
            warm.constant.repeat(c),
            None if warm.curvature is None else warm.curvature.repeat(c, 1, 1),
            explored=len(self.x),
        )


def _largest(t: Tensor, sharing: Sharing) -> Tensor:
    """Return the largest value (q) of non-negative t (q) in each output's group."""
    return t if sharing.is_trivial else sharing.each(sharing.columns(t.unsqueeze(-1)).amax(-1).squeeze(-1))


def _of_first(t: Tensor, sharing: Sharing) -> Tensor:
    """Return for each output what the first output of its group has; t: q x ...."""
    return sharing.each(sharing.once(t))


def _summed(t: Tensor, sharing: Sharing) -> Tensor:
    """Return the sum (q) of t (q) in each output's group."""
    return t if sharing.is_trivial else sharing.each(sharing.columns(t.unsqueeze(-1)).sum(-1).squeeze(-1))


def _natural_noise(warp: Warp, y: Tensor, fitted: Surrogates) -> Tensor:
    """Return the standard deviations (q) of the noise in natural units, in the middle of the data."""
    slope = warp.log_slope(y.median(0).values).exp()
    return fitted.noise_std / torch.where(warp.curved, slope, 1.0)


def _candidate_warps(y: Tensor, ranges: Tensor, present: Warp, min_width: Tensor) -> list[Warp]:
    """Return candidate warps, each for all outputs: centred at the median, between the limits, and at the outputs' ends.

    min_width: q, smallest width of each output's warp.
    """
    none = Warp.none(present.orientation)
    y = none.orientation * y
    levels = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=y.dtype)
    low, lower, middle, upper, high = torch.quantile(y, levels, dim=0).unbind(0)
    ends = none.orientation.unsqueeze(-1) * ranges
    between, span = ends.mean(1), (ends[:, 1] - ends[:, 0]).abs()
    found = [(middle, 0.5 * (upper - lower)), (between, 0.5 * span)]
    for share in TUNING.end_widths:
        found += [(low, share * (middle - low)), (high, share * (high - middle))]
        # A limit asks for the distance of an output from its end, however many values are close to that end.
        for end in (low, high):
            near = (end - between).abs() <= TUNING.end_distance * span
            found.append((end, torch.where(near, share * span, 0.0)))
    warps = [none]
    for centre, width in found:
        valid = (width > TUNING.rounding * (high - low)) & width.isfinite() & centre.isfinite()
        width = torch.maximum(width, min_width)
        warps.append(
            Warp(none.orientation, torch.where(valid, centre, none.centre), torch.where(valid, width, none.width))
        )
    return warps


def with_plain(forms: Forms, outputs: Tensor) -> Forms:
    """Return forms in which some outputs (indices) have the simplest form."""
    plain = Forms.plain(forms.warp.orientation, forms.stretch.shape[1])
    return _with_forms(forms, outputs, _forms_of(plain, outputs))


def _combine(forms: list[Forms], join: Callable[[list[Tensor]], Tensor]) -> Forms:
    """Return forms whose tensors are joined from those of several forms."""
    warps = [f.warp for f in forms]
    warp = Warp(*(join([getattr(w, part) for w in warps]) for part in ("orientation", "centre", "width")))
    return Forms(warp, join([f.family for f in forms]), join([f.stretch for f in forms]))


def _forms_of(forms: Forms, at: Tensor) -> Forms:
    """Return the forms of some outputs (indices)."""
    return Forms(forms.warp.at(at), forms.family[at], forms.stretch[at])


def _with_forms(forms: Forms, at: Tensor, new: Forms) -> Forms:
    """Return forms in which those of some outputs (indices) are replaced."""

    def join(parts: list[Tensor]) -> Tensor:
        whole = parts[0].clone()
        whole[at] = parts[1]
        return whole

    return _combine([forms, new], join)


def _hyperparameters_of(h: Hyperparameters, at: Tensor) -> Hyperparameters:
    """Return the hyperparameters of some outputs (indices)."""
    curvature = None if h.curvature is None else h.curvature[at]
    return Hyperparameters(h.lengthscales[at], h.noise[at], h.constant[at], curvature)
