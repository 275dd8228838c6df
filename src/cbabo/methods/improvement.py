"""The expected gain of a design over several thresholds, with its gradient, and the designs at which it is largest.

Symbols and shapes
    x       c x d    candidates, unit cube
    theta   b x k    thresholds that matter; w  b  how much each matters
    best    b        the incumbent at each, to be minimised, in the surrogates' units; inf where nothing obeys the threshold
    p       c        the failure probability

    gain(x) = log sum_theta w EI_theta(x) P(x obeys theta) + log(1 - p(x))

For one threshold that is LogcEI. A threshold without an incumbent counts by the probability alone, and so for more than any
improvement: EI is in standard deviations of the measured objectives. The gradient is one product with the derivatives of means
and deviations. Ascents by L-BFGS-B start from the best candidates, jointly as one problem, and go on from the best of them alone.
They climb arcsinh(gain): a gain is about minus the squared distance to a limit in standard deviations, 1e8 where these are small,
and the worst start would drown all others. Discrete variables stay where a candidate has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize
from torch import Tensor

from cbabo.methods.acquisition import log_improvement
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread
from cbabo.surrogate.failures import TUNING as FAILURES
from cbabo.surrogate.failures import FailureModel
from cbabo.surrogate.posterior import Posterior


@dataclass(frozen=True)
class ImprovementTuning:
    """Effort of the ascents."""

    joint_iterations: int = 20
    """Iterations of the joint ascent at most: enough to tell which start leads to the best maximum."""
    final_iterations: int = 30
    """Iterations of the ascent from its best result at most."""


TUNING = ImprovementTuning()


@dataclass(frozen=True, eq=False)
class ExpectedGain:
    """The criterion that an improvement maximises."""

    posterior: Posterior
    theta: Tensor
    """b x k."""
    best: Tensor
    """b."""
    weights: Tensor
    """b, positive."""

    def values(self, x: FloatArray) -> FloatArray:
        """Return the gain (c) at candidates; -inf where a failure is too probable."""
        at = torch.from_numpy(x)
        with torch.no_grad():
            value = self._of(*self.posterior.predictor.mean_and_std(at)).nan_to_num(-torch.inf)
            if self._failures is not None:
                p = self._failures.probability(at)
                value = torch.where(p > self._failures.limit, -torch.inf, value + torch.log1p(-p))
        return np.asarray(value.numpy())

    def value_and_gradient(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gain (c) and its gradient (c x d); a probable failure lowers it, but is not ruled out."""
        at = torch.tensor(x)
        with torch.no_grad():
            prediction = self.posterior.predictor.predict(at)
        mean, std = prediction.mean.clone().requires_grad_(), prediction.std.clone().requires_grad_()
        with torch.enable_grad():
            value = self._of(mean, std)
            on_mean, on_std = torch.autograd.grad(value.sum(), (mean, std))
        value = value.detach()
        gradient = prediction.vjp(on_mean.nan_to_num(0.0), on_std.nan_to_num(0.0))
        if self._failures is not None:
            p = self._failures.probability(at)
            _, slope = self._failures.surrogates.mean_and_gradient(at)
            inside = (p > 0.0) & (p < 1.0 - FAILURES.min_probability)
            value = value + torch.log1p(-p)
            gradient = gradient - torch.where(inside, 1.0 / (1.0 - p), 0.0).unsqueeze(-1) * slope[:, 0]
        return value.numpy(), gradient.nan_to_num(0.0).numpy()

    def ascend(self, starts: FloatArray) -> FloatArray:
        """Return where ascents from candidates (s x d) end, one each, the best of them after further iterations."""
        if self._discrete.all():
            return starts
        together = self._ascend(starts, TUNING.joint_iterations)
        best = int(self.values(together).argmax())
        together[best] = self._ascend(together[best : best + 1], TUNING.final_iterations)[0]
        return together

    def _ascend(self, starts: FloatArray, iterations: int) -> FloatArray:
        held = np.broadcast_to(self._discrete, starts.shape)
        low, high = np.where(held, starts, 0.0).ravel(), np.where(held, starts, 1.0).ravel()

        def descend(flat: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self.value_and_gradient(flat.reshape(starts.shape))
            slope = gradient / np.sqrt(1.0 + np.square(value))[:, None]
            return -float(np.arcsinh(value).sum()), -slope.ravel()

        with one_thread():  # SciPy's BLAS threads would cost several times the work.
            found = minimize(
                descend,
                starts.ravel(),
                jac=True,
                method="L-BFGS-B",
                bounds=Bounds(low, high),
                options={"maxiter": iterations, "maxfun": iterations + 5},
            )
        return np.asarray(np.clip(found.x, low, high).reshape(starts.shape))

    def _of(self, mean: Tensor, std: Tensor) -> Tensor:
        """Return the gain (c) without failures, of means and deviations (c x q)."""
        p, s = self.posterior, self.posterior.predictor
        b, c = len(self.theta), len(mean)
        chance = p.limits.log_normal_probability(
            mean.repeat(b, 1), std.repeat(b, 1), self.theta.repeat_interleave(c, 0)
        ).view(b, c)
        f, deviation = p.limits.goal * mean[:, 0], std[:, 0]
        some = self.best.isfinite().unsqueeze(-1)
        u = (torch.where(some, self.best.unsqueeze(-1), 0.0) - f) / deviation
        gain = torch.where(some, log_improvement(u) + (deviation / s.scale[0]).log(), 0.0)
        return torch.logsumexp(chance + gain + self.weights.log().unsqueeze(-1), 0)

    @property
    def _failures(self) -> FailureModel | None:
        return self.posterior.failure_model

    @cached_property
    def _discrete(self) -> NDArray[np.bool_]:
        return np.asarray(~self.posterior.problem.space.continuous)
