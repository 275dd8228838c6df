"""Choosing each output's form: how it is warped, how its variables are stretched, which kernel it has.

Forms are compared by the posterior density of the outputs in their own unit (the warp's Jacobian included) at the best
hyperparameters near those of the present form, one aspect after the other. The present form is kept unless another one is
clearly better, and an output that is predicted almost exactly keeps its form without asking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cbabo.surrogate import kernel
from cbabo.surrogate.fit import fit
from cbabo.surrogate.gp import Hyperparameters, Surrogates
from cbabo.surrogate.likelihood import Priors
from cbabo.surrogate.warp import Warp

_CLEARLY = 3.0  # gain in log density without which the present form is kept
_STRONG = 5.0  # gain besides, without which nothing is taken for a sum: with few evaluations much looks like one
_FEWEST, _EACH = 40, 4  # evaluations without which nothing is either: in any case, and for each variable
_POORLY = 0.03  # of an output's deviation: leave-one-out error below which it is not asked whether it is a sum
_EXACTLY = 1e-3  # of an output's deviation: leave-one-out error below which its form is good enough
_ROUGHLY = 1e-3  # tolerance of the fits that are compared
_ROUNDS = 60
_MOST = 100  # evaluations by which forms are compared
_STRETCHES = (0.0, 2.0, 4.0, 6.0)
_NARROW = (0.5, 0.05)  # widths of a warp at an output's end: of its way to the median, and of its limits' range
_NEAR = 1.5  # ranges of the limits between their middle and such an end, beyond which the latter is not tried


@dataclass(frozen=True, eq=False)
class Forms:
    """The form of every output."""

    warp: Warp
    family: Tensor
    """q, the kernel: smooth, rough or additive."""
    stretch: Tensor
    """q x d, a: variables enter as log(1 + (e^a - 1) x) / a; 0 leaves them as they are."""

    @classmethod
    def plain(cls, orientation: Tensor, d: int) -> Forms:
        """Return the simplest form for outputs with these orientations (q)."""
        q = len(orientation)
        return cls(Warp.none(orientation), torch.zeros(q, dtype=torch.int64), torch.zeros(q, d, dtype=torch.float64))

    def alike(self, other: Forms) -> bool:
        """Whether lengthscales mean the same in both."""
        return bool(((self.family == kernel.ADDITIVE) == (other.family == kernel.ADDITIVE)).all())

    def fit(self, x: Tensor, y: Tensor, warm: Hyperparameters | None) -> Surrogates:
        """Return surrogates of the warped outputs; warm: where to start, perhaps of other forms."""
        if warm is not None and warm.family is not None and not self.alike(replace(self, family=warm.family)):
            warm = replace(warm, explored=0)
        priors = Priors.sharp(x.shape[1])
        warped = self.warp.forward(y)
        return fit(
            x, warped, priors=priors, warm=warm, family=self.family, stretch=self.stretch, tolerance=1e-5, growth=2.0
        )


def choose(x: Tensor, y: Tensor, ranges: Tensor, ratio: Tensor, present: Forms, fitted: Surrogates) -> Forms:
    """Return the forms for x (n x d, unit cube) and y (n x q, natural units).

    ranges: q x 2, where each output's limits may lie (nan: nowhere); ratio: d, log(upper / lower bound) of each variable, 0 where
    that is no number; fitted: the surrogates of the present forms.
    """
    mean, _ = fitted.leave_one_out()
    error = ((mean - fitted.y) / fitted.scale).square().mean(0).sqrt()
    due = (error > _EXACTLY).nonzero().squeeze(-1)
    if not len(due):
        return present
    keep = torch.arange(min(_MOST, len(x))) * len(x) // min(_MOST, len(x))
    contest = _Contest(x[keep], y[keep][:, due], _of(fitted.hyperparameters, due))
    best = _pick(present, due)
    best = contest.best(best, [replace(best, warp=w) for w in _warps(y[:, due], ranges[due], best.warp)])
    stretches = [torch.full_like(best.stretch, a) for a in _STRETCHES]
    if bool((ratio > 0).any()):
        stretches.append(ratio.expand_as(best.stretch))
    plainly = (best.family == kernel.ADDITIVE).unsqueeze(-1)  # sums are of the variables as they are
    best = contest.best(best, [replace(best, stretch=torch.where(plainly, 0.0, s)) for s in stretches])
    none = Warp.none(best.warp.orientation)
    radial = [replace(best, family=torch.full_like(best.family, f)) for f in (kernel.SMOOTH, kernel.ROUGH)]
    summed = Forms(none, torch.full_like(best.family, kernel.ADDITIVE), torch.zeros_like(best.stretch))
    best = contest.best(best, radial)
    poor = ((error[due] > _POORLY) | (best.family == kernel.ADDITIVE)).nonzero().squeeze(-1)
    if len(x) >= max(_FEWEST, _EACH * x.shape[1]) and len(poor):
        sums = [_pick(replace(summed, warp=w), poor) for w in (best.warp, none)]
        best = _put(best, poor, contest.among(poor).best(_pick(best, poor), sums))
    return _put(present, due, best)


@dataclass(frozen=True, eq=False)
class _Contest:
    x: Tensor
    y: Tensor
    warm: Hyperparameters

    def best(self, present: Forms, others: list[Forms]) -> Forms:
        """Return for each output the best form, the present one unless another is clearly better."""
        candidates = [present, *others]
        near = [
            c for c in candidates if c.alike(present)
        ]  # hyperparameters mean the same: descend from the present ones
        far = [c for c in candidates if not c.alike(present)]
        found = self._densities(near, self._start(len(near))) + (self._densities(far, None) if far else [])
        candidates, density = near + far, torch.stack(found)
        density[0] += _CLEARLY
        for i, candidate in enumerate(candidates):
            density[i] -= _STRONG * ((candidate.family == kernel.ADDITIVE) & (present.family != kernel.ADDITIVE))
        at, q = density.argmax(0), torch.arange(self.y.shape[1])
        return _combined(candidates, lambda parts: torch.stack(parts)[at, q])

    def among(self, outputs: Tensor) -> _Contest:
        """Return the contest of some outputs (indices) only."""
        return _Contest(self.x, self.y[:, outputs], _of(self.warm, outputs))

    def _densities(self, candidates: list[Forms], start: Hyperparameters | None) -> list[Tensor]:
        n, q = self.y.shape
        fitted = fit(
            self.x,
            torch.cat([f.warp.forward(self.y) for f in candidates], dim=1),
            priors=Priors.sharp(self.x.shape[1]),
            warm=start,
            growth=torch.inf,
            family=torch.cat([f.family for f in candidates]),
            stretch=torch.cat([f.stretch for f in candidates]),
            tolerance=_ROUGHLY,
            max_rounds=_ROUNDS,
        )
        assert fitted.hyperparameters.value is not None
        log = -n * (fitted.hyperparameters.value + fitted.scale.log())
        return [part + f.warp.log_slope(self.y).sum(0) for part, f in zip(log.split(q), candidates, strict=True)]

    def _start(self, c: int) -> Hyperparameters:
        """Return the present hyperparameters for so many candidates."""
        warm = self.warm
        return Hyperparameters(
            warm.lengthscales.repeat(c, 1),
            warm.noise.repeat(c),
            warm.constant.repeat(c),
            None if warm.curvature is None else warm.curvature.repeat(c, 1, 1),
            explored=len(self.x),
        )


def _warps(y: Tensor, ranges: Tensor, present: Warp) -> list[Warp]:
    """Return candidate warps, each for all outputs."""
    none = Warp.none(present.orientation)
    y = none.orientation * y
    levels = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=y.dtype)
    low, lower, middle, upper, high = torch.quantile(y, levels, dim=0).unbind(0)
    ends = none.orientation.unsqueeze(-1) * ranges
    between, span = ends.mean(1), (ends[:, 1] - ends[:, 0]).abs()
    found = [(middle, 0.5 * (upper - lower)), (between, 0.5 * span)]
    for share in _NARROW:
        found += [(low, share * (middle - low)), (high, share * (high - middle))]
        for end in (low, high):  # limits ask how far an output is from its end, however many values lie there
            found.append((end, torch.where((end - between).abs() <= _NEAR * span, share * span, 0.0)))
    warps = [none]
    for centre, width in found:
        sound = (width > 0) & width.isfinite() & centre.isfinite()
        warps.append(
            Warp(none.orientation, torch.where(sound, centre, none.centre), torch.where(sound, width, none.width))
        )
    return warps


def _combined(forms: list[Forms], join: Callable[[list[Tensor]], Tensor]) -> Forms:
    warps = [f.warp for f in forms]
    warp = Warp(*(join([getattr(w, part) for w in warps]) for part in ("orientation", "centre", "width")))
    return Forms(warp, join([f.family for f in forms]), join([f.stretch for f in forms]))


def _pick(forms: Forms, at: Tensor) -> Forms:
    return Forms(forms.warp.at(at), forms.family[at], forms.stretch[at])


def _put(forms: Forms, at: Tensor, new: Forms) -> Forms:
    def join(parts: list[Tensor]) -> Tensor:
        whole = parts[0].clone()
        whole[at] = parts[1]
        return whole

    return _combined([forms, new], join)


def _of(h: Hyperparameters, at: Tensor) -> Hyperparameters:
    curvature = None if h.curvature is None else h.curvature[at]
    return Hyperparameters(h.lengthscales[at], h.noise[at], h.constant[at], curvature)
