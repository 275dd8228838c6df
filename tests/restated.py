"""The same problem and the same evaluated designs in other words: other units, another origin, the other direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cbabo import Constraint, Discrete, Integer, Objective, Problem, Real
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.space import Point


@dataclass(frozen=True)
class Restatement:
    """new = factor * old + shift, for some outputs and variables."""

    factors: Mapping[str, float] = field(default_factory=dict)
    shifts: Mapping[str, float] = field(default_factory=dict)

    def value(self, name: str, old: float) -> float:
        return self.factors.get(name, 1.0) * old + self.shifts.get(name, 0.0)

    def problem(self, old: Problem) -> Problem:
        variables = [self._variable(v) for v in old.variables]
        objective = old.objective
        if self.factors.get(objective.name, 1.0) < 0:
            turned = "maximize" if objective.direction == "minimize" else "minimize"
            objective = Objective(objective.name, direction=turned)  # type: ignore[arg-type]
        return Problem(old.name, variables, objective, [self._constraint(c) for c in old.constraints])

    def point(self, old: Mapping[str, float]) -> Point:
        return {name: self.value(name, v) if name in self._stated else v for name, v in old.items()}

    def evaluations(self, old: Evaluations) -> Evaluations:
        rows = (
            replace(e, point=self.point(e.point), outputs={n: self.value(n, v) for n, v in e.outputs.items()})
            for e in old
        )
        return Evaluations(self.problem(old.problem), tuple(rows))

    @property
    def _stated(self) -> set[str]:
        return {*self.factors, *self.shifts}

    def _variable(self, v: Real | Integer | Discrete) -> Real | Integer | Discrete:
        if v.name not in self._stated:
            return v
        if isinstance(v, Real):
            return Real(v.name, self.value(v.name, v.low), self.value(v.name, v.high), log=v.log)
        return Discrete(v.name, [self.value(v.name, x) for x in v.values])

    def _constraint(self, c: Constraint) -> Constraint:
        output = c.output_names[0]
        if output not in self._stated:
            return c
        turned = self.factors.get(output, 1.0) < 0
        sense = {"<=": ">=", ">=": "<="}[c.sense] if turned else c.sense
        if c.limit is not None:
            return Constraint(c.name, sense, limit=self.value(output, c.limit), outputs=c.outputs)  # type: ignore[arg-type]
        assert c.low is not None
        assert c.high is not None
        low, high = sorted((self.value(output, c.low), self.value(output, c.high)))
        return Constraint(c.name, sense, low=low, high=high, outputs=c.outputs)  # type: ignore[arg-type]


def range_of(evaluations: Evaluations, output: str) -> float:
    """From the least to the largest measured value."""
    values = [e.outputs[output] for e in evaluations.complete]
    return max(values) - min(values)
