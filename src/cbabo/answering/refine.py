"""Refinement: measure the predicted design, then look once more close to it.

The evaluator is an argument, and what it measures is handed back to the caller, who stores it before it is learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from cbabo.answering.answers import Answer, Estimate
from cbabo.answering.model import Model, outside_warnings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.space import Point
from cbabo.methods.acquisition import maximise
from cbabo.methods.correction import correct
from cbabo.methods.designs import snapped
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.threads import one_thread
from cbabo.surrogate import fit

_LITTLE = 1e-3  # of the objective's span over the box: an expected gain below ends a refinement

Measure = Callable[[Point], Evaluation]
"""Evaluates a design, stores the outcome, and returns it; failed or complete."""


def refine(
    model: Model, thresholds: Mapping[str, float], measure: Measure, evaluations: int = 2, start: Point | None = None
) -> Answer:
    """Spend at most `evaluations` expensive calls on one answer: 1 verifies it, every further one looks for a better one.

    Where the network answers, every call after the first refits the surrogates on all data and maximises LogcEI within
    `refine_radius` of the prediction; where the solver does, it learns from the error just seen and solves again close by (see
    `correct`). Designs that were tried before are left out; it ends early if there is no other, and from the third call on if
    little is left to gain. The best design is returned: feasible before infeasible, then by objective, or by total violation
    where none is feasible (where the solver answers, in units of the limits' ranges). Failed evaluations are told as warnings.
    start: a design to begin with instead of the prediction.
    """
    row = model.problem.box.row(thresholds)
    predicted = model.predict(thresholds)
    solving = model.settings.answer == "solver"
    tried = predicted.verified or any(e.point == predicted.point for e in model.evaluations.complete)
    known = solving and start is None and tried  # nothing to verify: the calls are left for improving it
    centre = predicted.point if start is None else start
    made: list[Evaluation] = []
    notes: list[str] = []
    for number in range(0 if known and evaluations == 1 else evaluations):
        if number == 0 and not known:
            point: Point | None = centre
        elif solving:
            found = correct(model, row, centre, made)
            point = None if found is None else found.point
            if found is None:
                notes.append(f"stopped after {len(made)} evaluations: no untried design close by promises more")
            elif number > 1 and found.gain < _LITTLE:
                notes.append(
                    f"stopped after {len(made)} evaluations: less than {_LITTLE:g} of the span is left to gain"
                )
                break
        else:
            point = _next(model, centre, row, made, number)
        if point is None:
            break
        made.append(measure(point))
    notes += [f"evaluation {e.id} failed: {e.failure}" for e in made if e.state != "complete"]
    measured = [e for e in made if e.state == "complete"]
    if not measured and not known:
        return replace(predicted, warnings=(*predicted.warnings, *notes, "not verified: every evaluation failed"))
    if solving:
        measured += model.evaluations.complete
    answer = verified(model, row, better(model, row, measured))
    return replace(answer, warnings=(*answer.warnings, *notes))


def better(model: Model, row: FloatArray, measured: Sequence[Evaluation]) -> Evaluation:
    """Return the best of measured designs for the thresholds (1 x k), by the rule of `refine`."""
    table = Evaluations(model.problem, tuple(measured))
    rows = np.repeat(row, len(table), axis=0)
    feasible = model.problem.box.feasible(table.y, rows)
    objective = model.problem.objective.sign * table.y[:, 0]
    unit = model.problem.box.scales if model.settings.answer == "solver" else 1.0
    violation = np.clip(model.problem.box.violations(table.y, rows) / unit, 0.0, None).sum(axis=1)
    keys = [(0, objective[i]) if feasible[i] else (1, violation[i]) for i in range(len(table))]
    return measured[min(range(len(table)), key=keys.__getitem__)]


def verified(model: Model, row: FloatArray, evaluation: Evaluation) -> Answer:
    """Return a measured design as the answer to the thresholds (1 x k)."""
    problem = model.problem
    outputs = {name: Estimate(evaluation.outputs[name], 0.0) for name in problem.outputs}
    y = np.array([[evaluation.outputs[name] for name in problem.outputs]])
    return Answer(
        thresholds=problem.box.named(row[0]),
        point=dict(evaluation.point),
        objective=outputs[problem.objective.name],
        outputs=outputs,
        probability_feasible=float(problem.box.feasible(y, row)[0]),
        status="verified",
        warnings=outside_warnings(problem, row[0]),
    )


def _next(model: Model, start: Point, row: FloatArray, made: Sequence[Evaluation], number: int) -> Point | None:
    problem, settings = model.problem, model.settings
    tried = Evaluations(problem, (*model.evaluations, *made))
    table = tried.complete
    incumbent = table.best(problem.box.named(row[0]))
    best = None if incumbent is None else problem.objective.sign * incumbent.outputs[problem.objective.name]
    centre = torch.from_numpy(problem.space.unit(problem.space.array([start])))[0]
    lower = (centre - settings.refine_radius).clamp_min(0.0)
    upper = (centre + settings.refine_radius).clamp_max(1.0)
    with one_thread():
        x = torch.from_numpy(table.x)
        surrogates = fit(x, torch.from_numpy(table.y), warm=model.surrogates.hyperparameters)
        near = ((x >= lower) & (x <= upper)).all(1)
        extra = torch.cat([centre.unsqueeze(0), x[near]])
        theta = torch.from_numpy(problem.box.to_theta(row))
        seed = child_seed(model.seed, "refine", number)
        chosen = maximise(
            surrogates,
            model.posterior.limits,
            theta,
            best,
            lower,
            upper,
            extra,
            seed,
            legal=lambda x: snapped(problem.space, x),
            known=torch.from_numpy(tried.x),
        )
    return None if chosen is None else problem.space.points(chosen.unsqueeze(0).numpy())[0]
