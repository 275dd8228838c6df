"""How the outputs of an answer stand to the limits that were asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cbabo.domain.constraints import FEASIBILITY_TOLERANCE, Constraint

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer, Estimate
    from cbabo.domain.problem import Problem

ACTIVE_SHARE = 0.01
"""Of a limit's range: nearer than this a limit is active, however small the standard deviation of its output is."""
Standing = Literal["slack", "active", "violated"]


@dataclass(frozen=True)
class LimitStanding:
    """One output and one limit on it."""

    constraint: Constraint
    output: str
    """An output with parts by its own name: the part that is closest to breaking the limit."""
    limit: float
    """As it was asked for, or as the problem fixes it."""
    estimate: Estimate
    standing: Standing

    @property
    def title(self) -> str:
        """The name of the limit, with the output where one limit holds for several."""
        return (
            self.constraint.name if self.output == self.constraint.name else f"{self.constraint.name} ({self.output})"
        )

    @property
    def room(self) -> float:
        """How far the output may still move until it reaches the limit; below zero where it breaks it."""
        return self.constraint.sign * (self.limit - self.estimate.mean)


def standing(room: float, std: float, scale: float) -> Standing:
    """Say how an output stands to a limit: room to it (below zero where it is broken), deviation, the limit's range.

    violated: broken by more than a deviation, or measured and broken at all; active: within two deviations, or 1 % of the range.

    Examples:
        >>> standing(5.0, 1.0, 10.0), standing(0.05, 0.0, 10.0), standing(-2.0, 1.0, 10.0)
        ('slack', 'active', 'violated')
    """
    if room < -max(std, FEASIBILITY_TOLERANCE * scale):
        return "violated"
    return "active" if room <= max(2.0 * std, ACTIVE_SHARE * scale) else "slack"


def limit_standings(problem: Problem, answer: Answer) -> tuple[LimitStanding, ...]:
    """Return every output with every limit on it, in the order of the problem's constraints."""
    whole = {problem.outputs[j]: name for name, at in problem.parts.items() for j in at}
    found = []
    for c in problem.constraints:
        limit = answer.thresholds[c.name] if c.limit is None else c.limit
        for output in dict.fromkeys(whole.get(name, name) for name in c.output_names):
            estimate = answer.outputs[output]
            stands = standing(c.sign * (limit - estimate.mean), estimate.std, c.scale)
            found.append(LimitStanding(c, output, limit, estimate, stands))
    return tuple(found)
