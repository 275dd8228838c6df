"""Constraint-bound agnostic Bayesian optimisation: one run of a simulator, an answer for every limit.

Names are resolved when they are first used, so that importing the package, and the commands that only read, stay quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer as Answer
    from cbabo.answering.answers import Price as Price
    from cbabo.answering.answers import Recommendation as Recommendation
    from cbabo.decisions.conflict import Conflict as Conflict
    from cbabo.domain.categorical import Categorical as Categorical
    from cbabo.domain.constraints import Constraint as Constraint
    from cbabo.domain.problem import Objective as Objective
    from cbabo.domain.problem import Problem as Problem
    from cbabo.domain.space import Discrete as Discrete
    from cbabo.domain.space import Integer as Integer
    from cbabo.domain.space import Real as Real
    from cbabo.errors import EvaluationError as EvaluationError
    from cbabo.methods.settings import Settings as Settings
    from cbabo.model import Model as Model
    from cbabo.study.study import Study as Study

    __version__: str

_HOMES = {
    "Answer": "cbabo.answering.answers",
    "Categorical": "cbabo.domain.categorical",
    "Conflict": "cbabo.decisions.conflict",
    "Constraint": "cbabo.domain.constraints",
    "Discrete": "cbabo.domain.space",
    "EvaluationError": "cbabo.errors",
    "Integer": "cbabo.domain.space",
    "Model": "cbabo.model",
    "Objective": "cbabo.domain.problem",
    "Price": "cbabo.answering.answers",
    "Problem": "cbabo.domain.problem",
    "Real": "cbabo.domain.space",
    "Recommendation": "cbabo.answering.answers",
    "Settings": "cbabo.methods.settings",
    "Study": "cbabo.study.study",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name == "problems":
        return importlib.import_module("cbabo.problems")
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("cbabo")
    if name not in _HOMES:
        raise AttributeError(f"module 'cbabo' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "problems"]
