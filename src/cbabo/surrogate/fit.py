"""Fits of the surrogates: maximum-a-posteriori hyperparameters of all outputs together, warm-started from the last fit.

Symbols and shapes
    x    n x d    evaluated points, unit cube; y  n x q  outputs, natural units
    u    g x p    log lengthscales and log noise, p = d + 1, of the g groups of outputs that share them
    starts   t x p   initial points of a cold fit, the same for every output

A warm fit starts at the last hyperparameters with the Hessian approximation found there; it takes about five evaluations of the
objective. A cold fit explores: it minimises coarsely from every start and continues with the best result. A warm fit explores,
too, and keeps the better result for each output, when the data have grown by `growth` since the last exploration; and for a
single output, when its objective is worse than at the last fit. With more than 256 evaluations the coarse minimisations use 256
of them.

Factorisations that fail: a trial whose covariance matrix has no Cholesky factor has an infinite objective, so that its step is
shortened; a start without a factor is dropped; if the warm start is dropped, the output explores; if all starts are dropped, they
are tried with tenfold noise, up to a variance of 1, beyond which SurrogateError is raised.

Everything runs on one thread (the number of threads is restored) and is reproducible to the last bit on the same machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cbabo.errors import SurrogateError
from cbabo.numerics.threads import one_thread
from cbabo.surrogate import kernel
from cbabo.surrogate.data import check_data, standardisation
from cbabo.surrogate.descent import Descent, descend
from cbabo.surrogate.gp import Surrogates, assembled
from cbabo.surrogate.hyperparameters import Hyperparameters, check_same_problem, factorise
from cbabo.surrogate.likelihood import Objective, Priors
from cbabo.surrogate.noise import RowNoise
from cbabo.surrogate.sharing import Sharing


@dataclass(frozen=True)
class FitTuning:
    """Numbers that control the search for hyperparameters."""

    subset: int = 256
    """Evaluations that the coarse minimisations of a cold fit use at most."""
    coarse_tolerance: float = 1e-4
    """Tolerance of the coarse minimisations; only the best result is continued with the full tolerance."""
    few_variables: int = 4
    """Number of variables up to which there are further starts, because outputs with poles then have many local optima."""
    surprise: float = 0.02
    """Increase of the objective per evaluation since the last fit from which on a single output explores."""


TUNING = FitTuning()


def fit(
    x: Tensor,
    y: Tensor,
    *,
    warm: Hyperparameters | None = None,
    priors: Priors | None = None,
    growth: float = 1.25,
    tolerance: float = 1e-7,
    max_rounds: int = 200,
    family: Tensor | None = None,
    stretch: Tensor | None = None,
    group: Tensor | None = None,
    row_noise: RowNoise | None = None,
    rows: Tensor | None = None,
) -> Surrogates:
    """Fit surrogates to x (n x d, unit cube) and y (n x q, natural units), double precision.

    `warm` are the hyperparameters of an earlier fit to the same problem. With `growth` 1 every fit explores, with inf only the
    first one. `tolerance` is the gain in the objective per evaluation below which a minimisation ends. `family` (q) and `stretch`
    (q x d) are the form of each output (see `Hyperparameters`). `group` (q, any integers): outputs with the same one have the
    same form and share their lengthscales and noise, by which the sum of their log likelihoods is the largest. `row_noise` states
    repeated measurements, its spread in the units of y. `rows` (indices): the evaluations that lengthscales and noise are
    fitted to, all of them if None; the surrogates are conditioned on all in any case.

    Examples:
        >>> x = torch.linspace(0.0, 1.0, 6, dtype=torch.float64).unsqueeze(1)
        >>> first = fit(x, torch.sin(3.0 * x))
        >>> again = fit(x, torch.sin(3.0 * x), warm=first.hyperparameters)
        >>> again.hyperparameters.explored
        6
    """
    check_data(x, y, least=2)
    if warm is not None:
        check_same_problem(warm, x, y)
    with one_thread(), torch.no_grad():
        # The alignment in memory affects the last bits of the results, so that all data are copied.
        x, y = (t.detach().clone(memory_format=torch.contiguous_format) for t in (x, y))
        d = x.shape[1]
        centre, scale = standardisation(y)
        finite = centre.isfinite() & scale.isfinite()
        if not bool(finite.all()):
            raise SurrogateError(
                f"Expected outputs with a finite spread, got values too large for it in output {int((~finite).nonzero()[0])}; "
                "change its unit."
            )
        priors = priors or Priors.botorch(d)
        sharing = Sharing.of(torch.arange(y.shape[1]) if group is None else group)
        own_family, own_stretch = (None if t is None else sharing.once(t) for t in (family, stretch))
        form = Hyperparameters(x, x, x, family=own_family, stretch=own_stretch)
        z = ((y - centre) / scale).T.contiguous()
        standardised = None if row_noise is None else replace(row_noise, spread=row_noise.spread / scale.square())
        objective = Objective(form.stretched(x)[0], z, priors, own_family, sharing, standardised)
        search = _Search(objective if rows is None else objective.at(rows), len(x), tolerance, max_rounds)
        if warm is None:
            found, explored = search.cold(torch.arange(sharing.groups)), len(x)
        else:
            found, explored = search.warm(warm, growth)
        u, curvature, value = (sharing.each(t) for t in (found.u, found.curvature, found.value))
        lengthscales, noise = u[:, :d].exp(), u[:, d].exp()
        kind, relative = (None, None) if row_noise is None else (row_noise.kind, row_noise.relative)
        hyperparameters = Hyperparameters(
            lengthscales, noise, noise, curvature, value, explored, None, family, stretch, noise_kind=kind
        )
        factor, noise = factorise(x, hyperparameters, relative)
        constant, amplitude = objective.moments(factor, hyperparameters.sharing, noise)
        hyperparameters = replace(hyperparameters, noise=noise, constant=constant, amplitude=amplitude)
        return assembled(x, y, hyperparameters, centre, scale, factor, relative)


@dataclass(frozen=True)
class _Search:
    """Search for the hyperparameters that minimise the objective."""

    objective: Objective
    n: int
    """Number of evaluations, of which the objective may be of a part."""
    tolerance: float
    max_rounds: int

    def warm(self, last: Hyperparameters, growth: float) -> tuple[Descent, int]:
        """Return the result of a warm start, and the number of evaluations at the last exploration."""
        sharing = self.objective.sharing
        assert sharing is not None
        u = sharing.once(torch.cat([last.lengthscales, last.noise.unsqueeze(-1)], dim=-1).log())
        outputs = torch.arange(len(u))
        curvature = None if last.curvature is None else sharing.once(last.curvature)
        found = self._descend(self.objective, outputs, u, curvature, self.tolerance)
        n = self.objective.x.shape[-2]
        explore = self.n >= growth * last.explored
        surprised = ~found.value.isfinite()
        if last.value is not None and self.n == n:  # Of other evaluations than the last fit's, it would tell nothing.
            surprised |= found.value > sharing.once(last.value) + TUNING.surprise
        due = outputs if explore else surprised.nonzero().squeeze(-1)
        if len(due):
            found = _keep_better(found, self.cold(due), due)
        return found, self.n if explore else last.explored

    def cold(self, outputs: Tensor) -> Descent:
        """Return the best result of all starts for the given outputs (o indices)."""
        starts = self._starts(outputs)
        while True:
            found = self._minimise_from(starts, outputs)
            if bool(found.value.isfinite().all()):
                return found
            if bool((starts[..., -1] >= 0.0).all()):
                j = int(outputs[(~found.value.isfinite()).nonzero()[0]])
                raise SurrogateError(
                    f"Expected a covariance matrix with a Cholesky factor at one start at least, got none for output {j} with "
                    "any noise variance up to 1; look for extreme values in that output."
                )
            starts[..., -1] = (starts[..., -1] + math.log(10.0)).clamp_max(0.0)

    def _starts(self, outputs: Tensor) -> Tensor:
        """Return starts (t x o x p) for the given outputs."""
        d, family = self.objective.x.shape[-1], self.objective.family
        starts = _starts(self.objective.priors, d).unsqueeze(1).repeat(1, len(outputs), 1)
        if family is not None:
            starts[:, family[outputs] == kernel.ADDITIVE, :d] -= 0.5 * math.log(d)  # Its distances do not grow with d.
        return torch.maximum(starts, self.objective.priors.lower(d))

    def _minimise_from(self, starts: Tensor, outputs: Tensor) -> Descent:
        """Minimise coarsely from starts (t x o x p) and return the best result for each output, continued."""
        t, o = len(starts), len(outputs)
        thinned = self.objective.thinned(TUNING.subset)
        coarse = self._descend(thinned, outputs.repeat(t), starts.flatten(0, 1), None, TUNING.coarse_tolerance)
        at = coarse.value.reshape(t, o).argmin(0) * o + torch.arange(o)
        return self._descend(self.objective, outputs, coarse.u[at], coarse.curvature[at], self.tolerance)

    def _descend(
        self, objective: Objective, outputs: Tensor, u: Tensor, curvature: Tensor | None, tolerance: float
    ) -> Descent:
        def function(u: Tensor, problems: Tensor) -> tuple[Tensor, Tensor]:
            return objective.value_and_gradient(u, outputs[problems])

        lower = objective.priors.lower(objective.x.shape[-1])
        return descend(function, u, lower, curvature, tolerance=tolerance, max_rounds=self.max_rounds)


def _starts(priors: Priors, d: int) -> Tensor:
    """Return starts (t x p): the modes of the priors as in BoTorch, short lengthscales, and medium ones with much noise.

    With few variables there are further starts, because outputs with poles have many local optima then: very short lengthscales
    with little noise, and for each variable a start at which only its lengthscale is short. Of 72 cold fits to three_truss (24
    new seeds, n = 30, 100, 200) one was worse than BoTorch's by more than 0.001 per evaluation in some output.
    """
    root = math.sqrt(d / 2.0)
    starts = [priors.start(d), _start(d, 0.1 * root, 1e-2), _start(d, 0.3 * root, 0.3)]
    if d <= TUNING.few_variables:
        starts.append(_start(d, 0.03 * root, 2e-4))
        for i in range(d):
            one_short = _start(d, 5.0 * root, 3e-2)
            one_short[i] = math.log(0.15)
            starts.append(one_short)
    return torch.maximum(torch.stack(starts), priors.lower(d))


def _start(d: int, lengthscale: float, noise: float) -> Tensor:
    """Return u (p) with equal lengthscales."""
    return torch.tensor([lengthscale] * d + [noise], dtype=torch.float64).log()


def _keep_better(a: Descent, b: Descent, outputs: Tensor) -> Descent:
    """Return a with the rows of b, which belong to the given outputs, where the value of b is lower."""
    lower = b.value < a.value[outputs]
    at = outputs[lower]
    u, value, curvature = a.u.clone(), a.value.clone(), a.curvature.clone()
    u[at], value[at], curvature[at] = b.u[lower], b.value[lower], b.curvature[lower]
    return Descent(u, value, curvature, a.rounds + b.rounds, a.evaluations + b.evaluations)
