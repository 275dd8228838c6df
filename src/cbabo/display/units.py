"""The units of outputs, which limits and objectives state."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbabo.domain.problem import Problem


def units(problem: Problem) -> dict[str, str]:
    """Return the unit of every output: the objective's own, or that of the first limit that states one."""
    found = dict.fromkeys(problem.outputs, "")
    for c in problem.constraints:
        for name in c.output_names:
            found[name] = found[name] or c.unit
    return {**found, problem.objective.name: problem.objective.unit or found[problem.objective.name]}
