"""Another question to the same data: any recorded number as the objective, or limited.

The surrogates of outputs that the problem models are used as they are. Those of further numbers that the simulator returned are
fitted when they are first asked for. The answer is that of the constrained solver, or a measured design.

Evaluations were chosen for the problem's own objective. Its answers lie where limits bind, and so do those of most other
questions, but nothing was measured for the sake of another objective. `own_limits` returns the limits of the problem's own
question that has the same answer: a focus on them measures designs there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from cbabo.answering.answers import Answer
from cbabo.answering.predict import Answers
from cbabo.decisions.aims import aimed_probability
from cbabo.decisions.robustness import TUNING as ROBUST
from cbabo.decisions.robustness import robust_answer, robust_design, snapped_design
from cbabo.decisions.scatter import Scatter
from cbabo.domain.constraints import Constraint
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.notation import parse_objective
from cbabo.domain.problem import Objective, Problem
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.method import Designs, Fitted
from cbabo.numerics.arrays import FloatArray, is_number
from cbabo.numerics.threads import one_thread
from cbabo.surrogate.joining import joined
from cbabo.surrogate.posterior import FitState, Posterior

Limit = float | tuple[str, float]
"""A limit of another question: a number, or its sense and a number, as (">=", 12.0)."""
_NARROW = 1e-6
"""Of its size: the range of a limit on a number that is the same in all evaluations."""


def is_other(fitted: Fitted, limits: object, objective: str | None) -> bool:
    """Tell whether a question is not the problem's own: another objective, a recorded number, or a sense with a limit."""
    if objective is not None or not isinstance(limits, Mapping):
        return objective is not None
    own = {c.name for c in fitted.problem.constraints}
    recorded = {name for row in fitted.evaluations.complete.rows[:1] for name in row.outputs}
    senses = any(isinstance(v, tuple | list) and len(v) == 2 and isinstance(v[0], str) for v in limits.values())
    return senses or any(name in recorded and name not in own for name in limits)


def answer_other(
    fitted: Fitted,
    limits: Mapping[str, Limit],
    objective: str | None,
    probability: float | None,
    scatter: Mapping[str, float] | None = None,
    tolerance: Mapping[str, float] | None = None,
) -> Answer:
    """Answer another question; the arguments are those of `Model.predict`."""
    aim = aimed_probability(fitted, probability, "predict")
    other, query = other_question(fitted, limits, objective)
    if scatter is not None or tolerance is not None:
        return robust_answer(other, query, scatter, tolerance, probability)
    with one_thread():
        found = other.solver.answers(query, aim)[0]
        solved = robust_design(other, query, Scatter.of(other.problem, other.seed, None, None), aim)
    enough = min(found.probability, solved.probability) >= aim - ROBUST.settled
    loss = solved.value + other.solver.price * (1.0 - solved.probability)
    better = loss < other.solver.loss(found) if enough else solved.probability > found.probability
    x = snapped_design(other, solved.x if better else found.x)
    measured = {} if better or found.measured is None else {0: found.measured}
    designs = Designs(torch.from_numpy(x[None]), measured, aim - ROBUST.settled)
    return Answers(other, query, designs).answer(0)


def other_question(fitted: Fitted, limits: Mapping[str, Limit], objective: str | None) -> tuple[Fitted, Query]:
    """Return a fitted model of another question, and the query of its limits."""
    if not isinstance(limits, Mapping):
        raise InputError(f"predict: expected limits as a mapping of names to numbers, got {shown(limits)}")
    recorded = _recorded(fitted.evaluations)
    goal = _goal(fitted.problem, objective, recorded)
    constraints, thresholds = _constraints(fitted.problem, goal, limits, recorded)
    own = fitted.problem
    valid = _valid(own, goal, constraints)
    problem = Problem(own.name, own.variables, goal, constraints, valid, relations=own.relations, derived=own.derived)
    evaluations = Evaluations(problem, fitted.evaluations.rows)
    columns = {name: (fitted.posterior, j) for j, name in enumerate(own.simulated)}
    parts = [
        columns[name] if name in columns else (_further(fitted, name, recorded[name]), 0) for name in problem.simulated
    ]
    with one_thread():
        posterior = joined(problem, evaluations, parts)
    other = Fitted(problem, fitted.method, fitted.seed, evaluations, posterior, notes=fitted.notes)
    return other, Query.of(problem.box, problem.box.complete(thresholds))


def own_limits(fitted: Fitted, answer: Answer) -> dict[str, float]:
    """Return the limits of the problem's own question to which the answer of another question is the answer too, in the box."""
    found = {}
    for c in fitted.problem.box.movable:
        values = [answer.outputs[name].mean for name in c.output_names if name in answer.outputs]
        stated = answer.thresholds.get(c.name)
        if stated is None and not values:
            raise InputError(f"own_limits: the answer says nothing of {c.name!r}; ask with a limit on it")
        value = stated if stated is not None else c.sign * max(c.sign * v for v in values)
        low, high = sorted((c.strictest, c.most_relaxed))
        found[c.name] = min(max(value, low), high)
    return found


def relative_limits(
    fitted: Fitted, reference: Answer | Mapping[str, float], changes: Mapping[str, float]
) -> dict[str, float]:
    """Return limits that differ from a reference by shares; the arguments are those of `Model.relative`."""
    known = _reference(fitted, reference)
    if not isinstance(changes, Mapping):
        raise InputError(f"relative: expected changes as a mapping of names to shares, got {shown(changes)}")
    for name, share in changes.items():
        if name not in known:
            raise InputError(f"relative: unknown output {shown(name)}; expected one of {', '.join(known)}")
        if not is_number(share):
            raise InputError(f"relative: the change of {name} must be a share such as -0.05, got {shown(share)}")
    return {name: known[name] + float(share) * abs(known[name]) for name, share in changes.items()}


def _reference(fitted: Fitted, reference: Answer | Mapping[str, float]) -> dict[str, float]:
    """Return the outputs of a reference design: as measured, or else as predicted."""
    if isinstance(reference, Answer):
        return {name: estimate.mean for name, estimate in reference.outputs.items()}
    space = fitted.problem.space
    point = space.check(reference)
    measured = next((row for row in fitted.evaluations.complete if row.point == point), None)
    if measured is not None:
        return dict(measured.outputs)
    x = torch.from_numpy(space.unit(space.array([point])))
    with one_thread(), torch.no_grad():
        mean = fitted.posterior.natural(*fitted.posterior.predictor.mean_and_std(x))[0][0]
    return dict(zip(fitted.problem.outputs, mean.tolist(), strict=True))


def _recorded(evaluations: Evaluations) -> dict[str, FloatArray]:
    """Return every number that all measured evaluations have, by name (n each)."""
    rows = evaluations.informative.rows
    names = dict.fromkeys([*evaluations.problem.outputs, *(name for row in rows for name in row.outputs)])
    return {n: np.array([r.outputs[n] for r in rows]) for n in names if all(n in r.outputs for r in rows)}


def _known(name: str, problem: Problem, recorded: Mapping[str, FloatArray], what: str) -> None:
    """Refuse what was not recorded."""
    if name in problem.parts:
        part = problem.outputs[problem.parts[name][0]]
        raise InputError(f"predict: {what} {name!r} has parts; name one of them, such as {part!r}")
    if name not in recorded:
        raise InputError(
            f"predict: {what} {shown(name)} is no number that all measured evaluations have; "
            f"expected one of {', '.join(recorded)}"
        )


def _goal(problem: Problem, objective: str | None, recorded: Mapping[str, FloatArray]) -> Objective:
    """Read the objective; its direction is that of the problem's limits on it, unless it is stated."""
    if objective is None:
        return problem.objective
    if not isinstance(objective, str):
        raise InputError(f"predict: objective must be the name of a recorded number, got {shown(objective)}")
    if objective in recorded or objective in problem.parts:
        name, direction = objective, None
    else:
        parsed = parse_objective(objective)
        name, direction = parsed["name"], parsed["direction"] if parsed["name"] != objective.strip() else None
    _known(name, problem, recorded, "objective")
    if name == problem.objective.name:
        return replace(problem.objective, direction=direction or problem.objective.direction)
    limiting = [c for c in problem.constraints if name in c.output_names]
    senses = {c.sense for c in limiting}
    if direction is None and len(senses) > 1:
        raise InputError(f"predict: {name!r} is limited from both sides; state 'minimize {name}' or 'maximize {name}'")
    stated: Any = direction or ("maximize" if senses == {">="} else "minimize")
    return Objective(name, unit=next((c.unit for c in limiting if c.unit), ""), direction=stated)


def _constraints(
    problem: Problem, goal: Objective, limits: Mapping[str, Limit], recorded: Mapping[str, FloatArray]
) -> tuple[list[Constraint], dict[str, float]]:
    """Return the constraints of another question, and the limits that were stated.

    The movable limit of the new objective is left out unless it is stated, and so is that of the old one; but one of the two
    must be there to have a limit at all: the largest value that was measured of the old objective.
    """
    own = {c.name: c for c in problem.constraints}
    kept = [c for c in problem.constraints if c.name in limits or not c.movable or c.output_names != (goal.name,)]
    thresholds: dict[str, float] = {}
    for name, limit in limits.items():
        sense, value = _limit(name, limit)
        if name in own:
            if not own[name].movable:
                raise InputError(f"predict: the limit of {name!r} is fixed by the problem")
            if sense not in (None, own[name].sense):
                raise InputError(f"predict: {name} is limited by {own[name].sense} in this problem, got {sense}")
        else:
            _known(name, problem, recorded, "limit")
            kept.append(_further_limit(problem, name, sense, recorded[name]))
        thresholds[name] = value
    old = problem.objective.name
    if goal.name != old and old not in limits and old not in own:
        kept.append(_further_limit(problem, old, None, recorded[old]))
        thresholds[old] = kept[-1].most_relaxed
    return kept, thresholds


def _further_limit(problem: Problem, name: str, sense: str | None, values: FloatArray) -> Constraint:
    """Return a limit that may move over all measured values."""
    objective = problem.objective
    if sense is None:
        sense = ">=" if name == objective.name and objective.direction == "maximize" else "<="
    low, high = float(values.min()), float(values.max())
    high = high if high > low else low + _NARROW * max(1.0, abs(low))
    unit = objective.unit if name == objective.name else ""
    return Constraint(name, sense, low=low, high=high, unit=unit)  # type: ignore[arg-type]


def _limit(name: str, limit: object) -> tuple[str | None, float]:
    """Read a limit: a number, or its sense and a number."""
    sense: Any = None
    value: Any = limit
    if isinstance(limit, tuple | list) and len(limit) == 2:
        sense, value = limit
    if sense not in (None, "<=", ">=") or not is_number(value):
        raise InputError(
            f'predict: the limit of {name} must be a number, or a sense and one as (">=", 12.0), got {shown(limit)}'
        )
    return sense, float(value)


def _further(fitted: Fitted, name: str, values: FloatArray) -> Posterior:
    """Return the posterior of a further recorded number, fitted when it is first asked for."""
    if name not in fitted.further:
        constraint = _further_limit(fitted.problem, name, None, values)
        problem = Problem(fitted.problem.name, fitted.problem.variables, Objective(name), [constraint])
        with one_thread():
            fitted.further[name] = fitted.method.fit(Evaluations(problem, fitted.evaluations.rows), FitState())
    return fitted.further[name]


def _valid(problem: Problem, goal: Objective, constraints: Sequence[Constraint]) -> dict[str, tuple[float, float]]:
    """Return the valid ranges of the outputs that another question has."""
    names = {goal.name, *(name for c in constraints for name in c.output_names)}
    return {name: ends for name, ends in problem.valid.items() if name in names}
