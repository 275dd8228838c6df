"""A generator with the interface of gest-api (`suggest` and `ingest`), for libEnsemble, optimas and others that drive one.

VOCS state a constraint by one value. `ranges` says between which values each limit is still negotiated; the others are fixed.
The study is in the generator: after any number of results, `generator.study.model()` answers every combination of limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import pandas as pd

from cbabo.domain.categorical import Categorical
from cbabo.domain.constraints import Constraint
from cbabo.domain.problem import Objective, Problem
from cbabo.domain.space import AnyVariable, Discrete, Real
from cbabo.errors import CbaboError, MissingExtraError
from cbabo.methods.settings import MethodSettings
from cbabo.study.study import Study

try:
    from gest_api.generator import Generator
    from gest_api.vocs import VOCS, BoundsConstraint, ContinuousVariable, DiscreteVariable, LessThanConstraint
except ModuleNotFoundError as missing:
    raise MissingExtraError("gest-api is not installed; pip install 'cbabo[gest]'") from missing


class CbaboGenerator(Generator):  # type: ignore[misc]
    """Suggests the designs of a study, and stores what was measured of them.

    Examples:
        >>> from gest_api.vocs import VOCS
        >>> vocs = VOCS(
        ...     variables={"width": [0.1, 3.0]}, objectives={"mass": "MINIMIZE"}, constraints={"stress": ["LESS_THAN", 4.0]}
        ... )
        >>> generator = CbaboGenerator(vocs, ranges={"stress": (1.0, 9.0)})
        >>> [point] = generator.suggest(1)
        >>> generator.ingest([{**point, "mass": 1.0, "stress": 3.0}])
        >>> len(generator.study.evaluations)
        1
    """

    returns_id = True

    def __init__(
        self,
        vocs: VOCS,
        ranges: Mapping[str, tuple[float, float]],
        *,
        storage: str = "sqlite://",
        name: str = "generator",
        seed: int = 0,
        settings: MethodSettings | None = None,
        batch: int = 5,
    ) -> None:
        """Create the study, or open it if it is in the storage.

        ranges: for each constraint whose limit is still negotiated, the ends of its range; the value in the VOCS is nominal.
        batch: designs that `suggest` returns where no number is asked for. The other arguments are those of `Study.create`.
        """
        self._ranges, self._batch, self.vocs = dict(ranges), batch, vocs
        self._validate_vocs(vocs)
        try:
            problem = problem_of(vocs, self._ranges, name)
            self.study = Study.create(problem, storage, name, seed=seed, settings=settings, exist_ok=True)
        except CbaboError as error:
            raise ValueError(str(error)) from error

    def _validate_vocs(self, vocs: VOCS) -> None:
        if len(vocs.objectives) != 1:
            raise ValueError(f"expected one objective, got {len(vocs.objectives)}; state the others as observables")
        kind = type(next(iter(vocs.objectives.values()))).__name__
        if kind not in ("MinimizeObjective", "MaximizeObjective"):
            raise ValueError(f"expected an objective to minimize or maximize, got {kind}")
        for name, variable in vocs.variables.items():
            if type(variable) not in (ContinuousVariable, DiscreteVariable):
                raise ValueError(
                    f"variable {name!r}: {type(variable).__name__} is not supported; state bounds or values"
                )
        unknown = [name for name in self._ranges if name not in vocs.constraints]
        if unknown:
            raise ValueError(f"ranges: {unknown[0]!r} is no constraint; expected some of {', '.join(vocs.constraints)}")
        if not self._ranges:
            raise ValueError(
                "ranges: expected at least one constraint with the ends of its range, such as {'stress': (1, 9)}"
            )
        for name in self._ranges:
            if isinstance(vocs.constraints[name], BoundsConstraint):
                raise ValueError(f"ranges: {name!r} is bounded on both sides; state it as one-sided, to move its limit")

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        """Return designs to evaluate, with the constants of the VOCS."""
        constants = {name: constant.value for name, constant in self.vocs.constants.items()}
        try:
            trials = self.study.ask(self._batch if num_points is None else num_points)
        except CbaboError as error:
            raise ValueError(str(error)) from error
        if num_points is not None and len(trials) != num_points:
            raise ValueError(f"{num_points} designs were asked for, but only {len(trials)} are left to evaluate")
        return [{**trial.point, **constants, "_id": trial.id} for trial in trials]

    def ingest(self, results: list[dict[str, Any]]) -> None:
        """Store results: of suggested designs by their "_id", others as old runs. An output that is NaN is a failure."""
        old = []
        for result in results:
            outputs = {name: result[name] for name in self.vocs.output_names if name in result}
            if "_id" not in result:
                old.append({**{name: result[name] for name in self.vocs.variables}, **outputs})
                continue
            failed = [name for name, value in outputs.items() if value is None or not math.isfinite(value)]
            try:
                if failed:
                    self.study.tell(result["_id"], failed=f"the output {failed[0]!r} is {outputs[failed[0]]}")
                else:
                    self.study.tell(result["_id"], outputs)
            except CbaboError as error:
                raise ValueError(str(error)) from error
        if old:
            report = self.study.add(pd.DataFrame(old))
            if report.problems:
                line, why = report.problems[0]
                raise ValueError(
                    f"result {line}: {why}; {len(report.problems)} results were left out, the others are stored"
                )


def problem_of(vocs: VOCS, ranges: Mapping[str, tuple[float, float]], name: str) -> Problem:
    """Return the problem that VOCS state, with limits that move in their ranges."""
    goal, kind = next(iter(vocs.objectives.items()))
    direction: Literal["minimize", "maximize"] = (
        "maximize" if type(kind).__name__ == "MaximizeObjective" else "minimize"
    )
    constraints = []
    for c, stated in vocs.constraints.items():
        if isinstance(stated, BoundsConstraint):
            low, high = stated.range
            constraints += [Constraint(c, "<=", limit=high), Constraint(f"{c} at least", ">=", limit=low, outputs=c)]
            continue
        sense = "<=" if isinstance(stated, LessThanConstraint) else ">="
        if c in ranges:
            low, high = ranges[c]
            nominal = min(max(stated.value, low), high)
            constraints.append(Constraint(c, sense, low=low, high=high, nominal=nominal))  # type: ignore[arg-type]
        else:
            constraints.append(Constraint(c, sense, limit=stated.value))  # type: ignore[arg-type]
    return Problem(
        name, [_variable(n, v) for n, v in vocs.variables.items()], Objective(goal, direction=direction), constraints
    )


def _variable(name: str, stated: Any) -> AnyVariable:
    if isinstance(stated, ContinuousVariable):
        low, high = stated.domain
        return Real(name, float(low), float(high))
    values = list(stated.values)
    if all(isinstance(value, str) for value in values):
        return Categorical(name, tuple(sorted(values)))
    return Discrete(name, tuple(sorted(values)))
