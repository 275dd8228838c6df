"""Fitting surrogates: hyperparameters by maximum a posteriori, all outputs together, warm from the last fit.

Symbols and shapes
    x    n x d    evaluated points, unit cube; y  n x q  outputs, natural units
    u    q x p    log lengthscales and log noise, p = d + 1
    starts   t x p   where a descent from scratch begins, the same for every output

Warm, a fit descends from the last hyperparameters with the curvature learned there: five evaluations or so. A first fit
explores: it descends roughly from every start and goes on with the best. A warm fit explores too, and keeps the better for each
output, when the data have grown by `growth` since the last exploration; and for one output, when its objective has become
worse than at the last fit. With more than 256 evaluations the starts descend on 256 of them.

Failure, one policy: a trial whose covariance has no Cholesky factor counts as infinitely bad, so its step is shortened; if a
start has none, that start is dropped; if the warm start is dropped, the output explores; if all are dropped, the starts are
tried with noise raised tenfold, up to 1; then SurrogateError.

Everything runs on one thread (the caller's count is restored) and is the same to the last bit on the same machine.
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
from cbabo.surrogate.gp import Hyperparameters, Surrogates, assembled, check_same_problem, factorise
from cbabo.surrogate.likelihood import Objective, Priors

_SUBSET = 256  # evaluations that starts from scratch see at most
_ROUGH = 1e-4  # tolerance of their descents; the best one goes on
_FEW_VARIABLES = 4  # up to which the search has further starts
_SURPRISE = 0.02  # rise of the objective per evaluation since the last fit that makes an output explore


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
) -> Surrogates:
    """Return surrogates fitted to x (n x d, unit cube) and y (n x q, natural units), double precision.

    `warm` are the hyperparameters of an earlier fit to the same problem; `growth` 1 explores every time, inf never again.
    `tolerance` is the gain in the objective per evaluation below which a descent ends. `family` (q) and `stretch` (q x d) are
    each output's form (see `Hyperparameters`).
    """
    check_data(x, y, least=2)
    if warm is not None:
        check_same_problem(warm, x, y)
    with one_thread(), torch.no_grad():
        x, y = (t.detach().clone(memory_format=torch.contiguous_format) for t in (x, y))  # alignment decides last bits
        d = x.shape[1]
        centre, scale = standardisation(y)
        sound = centre.isfinite() & scale.isfinite()
        if not bool(sound.all()):
            raise SurrogateError(
                f"Expected outputs with a finite spread, got values too large for it in output {int((~sound).nonzero()[0])}; "
                "change its unit."
            )
        priors = priors or Priors.botorch(d)
        form = Hyperparameters(x, x, x, family=family, stretch=stretch)
        objective = Objective(form.stretched(x)[0], ((y - centre) / scale).T.contiguous(), priors, family)
        search = _Search(objective, tolerance, max_rounds)
        if warm is None:
            found, explored = search.from_scratch(torch.arange(y.shape[1])), len(x)
        else:
            found, explored = search.from_last(warm, growth)
        lengthscales, noise = found.u[:, :d].exp(), found.u[:, d].exp()
        hyperparameters = Hyperparameters(
            lengthscales, noise, noise, found.curvature, found.value, explored, None, family, stretch
        )
        factor, noise = factorise(x, hyperparameters)
        constant, amplitude = objective.moments(factor)
        hyperparameters = replace(hyperparameters, noise=noise, constant=constant, amplitude=amplitude)
        return assembled(x, y, hyperparameters, centre, scale, factor)


@dataclass(frozen=True)
class _Search:
    objective: Objective
    tolerance: float
    max_rounds: int

    def from_last(self, warm: Hyperparameters, growth: float) -> tuple[Descent, int]:
        """Return the best for each output, and the number of evaluations at the last exploration."""
        u = torch.cat([warm.lengthscales, warm.noise.unsqueeze(-1)], dim=-1).log()
        outputs = torch.arange(len(u))
        found = self._descend(self.objective, outputs, u, warm.curvature, self.tolerance)
        n = self.objective.x.shape[-2]
        explore = n >= growth * warm.explored
        surprised = ~found.value.isfinite()
        if warm.value is not None:
            surprised |= found.value > warm.value + _SURPRISE
        due = outputs if explore else surprised.nonzero().squeeze(-1)
        if len(due):
            found = _better(found, self.from_scratch(due), due)
        return found, n if explore else warm.explored

    def from_scratch(self, outputs: Tensor) -> Descent:
        """Return the best of all starts for the given outputs (o indices)."""
        starts = self._starts(outputs)
        while True:
            found = self._best_of(starts, outputs)
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
            starts[:, family[outputs] == kernel.ADDITIVE, :d] -= 0.5 * math.log(d)  # distances do not grow with d
        return torch.maximum(starts, self.objective.priors.lower(d))

    def _best_of(self, starts: Tensor, outputs: Tensor) -> Descent:
        t, o = len(starts), len(outputs)
        thinned = self.objective.thinned(_SUBSET)
        rough = self._descend(thinned, outputs.repeat(t), starts.flatten(0, 1), None, _ROUGH)
        at = rough.value.reshape(t, o).argmin(0) * o + torch.arange(o)
        return self._descend(self.objective, outputs, rough.u[at], rough.curvature[at], self.tolerance)

    def _descend(
        self, objective: Objective, outputs: Tensor, u: Tensor, curvature: Tensor | None, tolerance: float
    ) -> Descent:
        def function(u: Tensor, problems: Tensor) -> tuple[Tensor, Tensor]:
            return objective.value_and_gradient(u, outputs[problems])

        lower = objective.priors.lower(objective.x.shape[-1])
        return descend(function, u, lower, curvature, tolerance=tolerance, max_rounds=self.max_rounds)


def _starts(priors: Priors, d: int) -> Tensor:
    """Return starts (t x p): the priors' modes as in BoTorch; short lengthscales; shortish ones with much noise.

    With few variables outputs that have poles show many optima, so that there are more: very short ones with little noise, and
    for each variable one where it alone has a short lengthscale. Cold fits of three_truss, 24 fresh seeds, n = 30, 100, 200:
    one of 72 was below BoTorch's by more than 0.001 per evaluation in some output.
    """
    root = math.sqrt(d / 2.0)
    starts = [priors.start(d), _start(d, 0.1 * root, 1e-2), _start(d, 0.3 * root, 0.3)]
    if d <= _FEW_VARIABLES:
        starts.append(_start(d, 0.03 * root, 2e-4))
        for i in range(d):
            alone = _start(d, 5.0 * root, 3e-2)
            alone[i] = math.log(0.15)
            starts.append(alone)
    return torch.maximum(torch.stack(starts), priors.lower(d))


def _start(d: int, lengthscale: float, noise: float) -> Tensor:
    return torch.tensor([lengthscale] * d + [noise], dtype=torch.float64).log()


def _better(a: Descent, b: Descent, outputs: Tensor) -> Descent:
    """Return a with b's rows, which are of the given outputs, where they are lower."""
    lower = b.value < a.value[outputs]
    at = outputs[lower]
    u, value, curvature = a.u.clone(), a.value.clone(), a.curvature.clone()
    u[at], value[at], curvature[at] = b.u[lower], b.value[lower], b.curvature[lower]
    return Descent(u, value, curvature, a.rounds + b.rounds, a.evaluations + b.evaluations)
