"""A problem's objective and limits as tensors, and the probability that limits are obeyed.

Symbols and shapes
    mean, std   b x q    of the raw outputs, natural units
    theta       b x k    thresholds, unit cube
    r                    requirements: one for each output that must obey a limit
    bound       b x r    sign * limit: base + span * theta
    excess      b x r    sign * mean + beta * std - bound: above zero where a limit is broken
    slack       b x r    (bound - sign * mean) / std: distance to the limit in standard deviations

With signs applied everything is "minimise, and stay below", whatever the problem's directions are. Where the surrogates learn
warped outputs, limits are warped with them, and everything here is in warped units.

Stated probabilities are those of Student's t with 4 degrees of freedom and unit variance. Standard deviations are calibrated by
the root mean square of errors, but errors at answers have heavier tails than a normal distribution: hyperparameters are
uncertain, and a kink or a pole is close to some answers only. Up to 0.98 both distributions ask for about the same margin; five
standard deviations are exceeded once in a thousand answers instead of once in three million. An acquisition function takes
outputs as normal: with heavy tails, designs far from any feasible one would be worth an evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.problem import Problem
from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate.warp import Warp


@dataclass(frozen=True, eq=False)
class Limits:
    """A problem's objective and requirements as tensors."""

    goal: float
    """+1 to minimise the first output, -1 to maximise it."""
    output: Tensor
    """r: which output a requirement is about."""
    sign: Tensor
    """r: +1 for <=, -1 for >=."""
    base: Tensor
    """r: the bound at theta = 0."""
    span: Tensor
    """r: how far the bound moves to theta = 1; zero where it is fixed."""
    threshold: Tensor
    """r: which theta moves it (any where it is fixed)."""
    warp: Warp | None = None
    """r: how the limited output is warped; None: not at all."""
    exact: Tensor | None = None
    """r: whether the limited output is a formula of variables, so that a limit on it is obeyed or not; None: none is."""

    @classmethod
    def of(cls, problem: Problem, warp: Warp | None = None) -> Limits:
        """Translate a problem's objective and constraints; warp: of all outputs, as the surrogates learn them."""
        rows = [(c, name) for c in problem.constraints for name in c.output_names]
        movable = problem.box.names
        real = {"dtype": torch.float64}
        output = torch.tensor([problem.outputs.index(name) for _, name in rows])
        sign = torch.tensor([c.sign for c, _ in rows], **real)  # type: ignore[arg-type]
        mine = None if warp is None else warp.at(output)
        return cls(
            goal=problem.objective.sign * (1.0 if warp is None else float(warp.orientation[0])),
            output=output,
            sign=sign if mine is None else sign * mine.orientation,
            base=torch.tensor([c.sign * c.strictest for c, _ in rows], **real),  # type: ignore[arg-type]
            span=torch.tensor([c.scale if c.movable else 0.0 for c, _ in rows], **real),  # type: ignore[arg-type]
            threshold=torch.tensor([movable.index(c.name) if c.movable else 0 for c, _ in rows]),
            warp=mine,
            exact=torch.isin(output, torch.tensor(problem.exact)) if problem.exact else None,
        )

    def bound(self, theta: Tensor) -> Tensor:
        """Return the bounds (b x r) at theta (b x k)."""
        bound = torch.addcmul(self.base, self.span, theta[:, self.threshold])
        if self.warp is None:
            return bound
        return self.sign * self.warp.forward(self.sign * self.warp.orientation * bound)

    def excess(self, mean: Tensor, std: Tensor, theta: Tensor, beta: float) -> Tensor:
        """Return by how much the upper confidence bounds exceed the limits, b x r."""
        return self.upper(mean, std, beta) - self.bound(theta)

    def upper(self, mean: Tensor, std: Tensor, beta: float) -> Tensor:
        """Return the pessimistic values of what must stay below, b x r."""
        return self.sign * mean[:, self.output] + beta * std[:, self.output]

    def lower_objective(self, mean: Tensor, std: Tensor, beta: float) -> Tensor:
        """Return the optimistic objective to be minimised, b."""
        return self.goal * mean[:, 0] - beta * std[:, 0]

    def slack(self, mean: Tensor, std: Tensor, theta: Tensor) -> Tensor:
        """Return the distances to the limits in standard deviations (b x r), above zero where a mean obeys its limit."""
        return (self.bound(theta) - self.sign * mean[:, self.output]) / std[:, self.output]

    def log_probability(self, mean: Tensor, std: Tensor, theta: Tensor) -> Tensor:
        """Return the log probability (b) that every requirement is obeyed (see `log_probability_of_slack`)."""
        return self.log_probability_of_slack(self.slack(mean, std, theta))

    def log_probability_of_slack(self, slack: Tensor) -> Tensor:
        """Return the log probability (b) that every requirement is obeyed, for slacks (b x r) in standard deviations.

        Everything that states a probability of feasibility computes it here. An exact requirement has the probability 1 or 0.
        """
        if self.exact is not None:
            certain = (slack + EXACT_SLACK).sign() * _LARGEST
            slack = torch.where(self.exact, certain, slack)
        return self._joint(slack, _log_student)

    def log_normal_probability(self, mean: Tensor, std: Tensor, theta: Tensor) -> Tensor:
        """Return the same (b) if outputs were normally distributed, for acquisition functions."""
        return self._joint(self.slack(mean, std, theta), _log_ndtr)

    def _joint(self, slack: Tensor, log_cdf: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the log probability (b) of all requirements for slacks (b x r) with this log distribution function.

        Outputs are taken as independent; two limits on one output are one interval, not two independent events.
        """
        alone, shared = self._alone_and_shared
        total = log_cdf(slack[:, alone]).sum(1)
        for mine in shared:
            above, below = (slack[:, mine[self.sign[mine] == side]] for side in (1.0, -1.0))
            total = total + _log_interval(above, below, log_cdf)
        return total

    @cached_property
    def _alone_and_shared(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Which requirements are the only one about their output, and the groups of those that are not."""
        groups = [(self.output == j).nonzero().squeeze(-1) for j in self.output.unique()]
        alone = [group for group in groups if len(group) == 1]
        return torch.cat([self.output[:0], *alone]), tuple(group for group in groups if len(group) > 1)


EXACT_SLACK = 1e-3
"""By how much an exact output may exceed its limit, in least deviations of a derived output (see `formulas`): rounding."""
_LARGEST = 1e100
"""Distance in standard deviations beyond which squares would overflow."""


def student_probability(z: FloatArray) -> FloatArray:
    """Return P(Z <= z) of Student's t with 4 degrees of freedom and unit variance.

    Examples:
        >>> student_probability(np.array([-5.0, 0.0, 2.12])).round(4).tolist()
        [0.0011, 0.5, 0.98]
    """
    u = z / np.sqrt(2.0 + np.square(z))
    return np.asarray(0.25 * np.square(1.0 + u) * (2.0 - u))


def student_quantile(probability: float) -> float:
    """Return z with P(Z <= z) equal to a probability between 0 and 1.

    Examples:
        >>> round(student_quantile(0.98), 2)
        2.12
    """
    # With u = z / sqrt(2 + z^2) the distribution function is (2 + 3 u - u^3) / 4, which a cosine solves.
    u = 2.0 * math.cos((math.acos(1.0 - 2.0 * probability) - 2.0 * math.pi) / 3.0)
    return u * math.sqrt(2.0 / ((1.0 - u) * (1.0 + u)))


def student_margin(density: FloatArray) -> FloatArray:
    """Return z >= 0 at which the density of the same distribution has a value; 0 where it never is so large.

    Examples:
        >>> round(float(student_margin(np.array(3.0 / 6.0**2.5))), 6)
        2.0
    """
    return np.asarray(np.sqrt(np.clip(np.power(3.0 / density, 0.4) - 2.0, 0.0, None)))


def _log_interval(above: Tensor, below: Tensor, log_cdf: Callable[[Tensor], Tensor]) -> Tensor:
    """Return log P(-below <= z <= above) for the tightest of each, b x (any) each; z has a symmetric distribution."""
    if not below.shape[1]:
        return log_cdf(above.amin(1))
    if not above.shape[1]:
        return log_cdf(below.amin(1))
    high, low = above.amin(1), -below.amin(1)
    flip = low > 0  # in the upper tail: mirror, where differences keep their digits
    high, low = torch.where(flip, -low, high), torch.where(flip, -high, low)
    log_high, log_low = log_cdf(high), log_cdf(low)
    gap = (log_low - log_high).clamp_max(-1e-300)
    inside = log_high + torch.log(-torch.expm1(gap))
    return torch.where(high > low, inside, torch.full_like(inside, -torch.inf))


def _log_student(z: Tensor) -> Tensor:
    """Return log P(Z <= z) of Student's t with 4 degrees of freedom and unit variance."""
    z = z.clamp(-_LARGEST, _LARGEST)
    root = torch.sqrt(2.0 + z.square())
    # 1 + u of `student_probability`; for z < 0 in a form that keeps its digits.
    plus = torch.where(z > 0, 1.0 + z / root, 2.0 / (root * (root - z.clamp_max(0.0))))
    return 2.0 * plus.log() + (3.0 - plus).log() - math.log(4.0)


def _log_ndtr(z: Tensor) -> Tensor:
    """Return log Phi(z); torch's own has a wrong derivative in the far tail (by a factor of 2 at -1e8, infinite at -1e10)."""
    tail = z.clamp_max(-1.0)
    lower = torch.log(0.5 * torch.special.erfcx(tail * -math.sqrt(0.5))) - 0.5 * tail.square()
    return torch.where(z > -1.0, torch.special.log_ndtr(z.clamp_min(-1.0)), lower)
