"""Testing a model's own claims: answers to fresh thresholds, what is claimed of them, and what measuring them finds.

The thresholds are drawn uniformly from the box. Answers that were measured before claim nothing that is left to test, and
unreachable ones claim that they are none; both are counted and passed over. All answers are those of one model, made before the
first of them is measured. A measured design is found to be feasible by its outputs, or where these are noisy by the posterior of
its noise-free outputs.

A rejected claim is a warning on every answer that is not verified, until the model has learned: until a later audit is not
rejected, or until as many further evaluations were measured as the audit had and the present model, leaving out one audited
design at a time, states probabilities of these designs that are not rejected by what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

from cbabo.answering.answers import Answer
from cbabo.answering.predict import predict_many
from cbabo.domain.audits import LEVEL, Audit, AuditedAnswer, tail_probability
from cbabo.domain.constraints import FEASIBILITY_TOLERANCE
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.query import Query
from cbabo.errors import StudyError
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.numerics.threads import one_thread
from cbabo.surrogate.composed import Composed
from cbabo.surrogate.limits import student_probability


@dataclass(frozen=True)
class AuditTuning:
    """Numbers of an audit."""

    draws: int = 10
    """Thresholds that are drawn at most for each evaluation: where nearly all answers are measured or unreachable, an audit has
    fewer evaluations than asked for."""


TUNING = AuditTuning()


@dataclass(frozen=True, eq=False)
class Claims:
    """Answers that are to be measured."""

    answers: tuple[Answer, ...]
    rows: tuple[AuditedAnswer, ...]
    """What is claimed of them; their evaluations have no id yet."""
    drawn: int
    verified: int
    unreachable: int


def draw_claims(fitted: Fitted, count: int, number: int) -> Claims:
    """Answer fresh thresholds until so many answers are left to test; number: of earlier audits, each of which draws others."""
    box, random = fitted.problem.box, child(fitted.seed, "audit", number)
    found: list[tuple[Answer, AuditedAnswer]] = []
    points: list[dict[str, float]] = []
    drawn = verified = unreachable = 0
    while len(found) < count and drawn < TUNING.draws * count:
        theta = random.random((count, len(box.names)))
        answers = predict_many(fitted, Query.at(box, theta))
        claimed = _claimed_limits(fitted, answers.x, theta)
        for i in range(count):
            if len(found) == count:
                break
            drawn += 1
            answer = answers.answer(i)
            verified += i in answers.measured
            unreachable += answer.status == "unreachable"
            if i in answers.measured or answer.status == "unreachable" or answer.point in points:
                continue
            points.append(answer.point)
            by_limit = {c.name: float(p) for c, p in zip(fitted.problem.constraints, claimed[i], strict=True)}
            chances = answer.probability_feasible, by_limit, answer.probability_success
            found.append((answer, AuditedAnswer(0, answer.thresholds, answer.point, *chances)))
    if not found:
        raise StudyError(
            f"audit: of {drawn} fresh thresholds {verified} are answered by measured designs and {unreachable} cannot be met, "
            "so that no claim is left to test; nothing was spent"
        )
    answers_, rows = zip(*found, strict=True)
    return Claims(tuple(answers_), tuple(rows), drawn, verified, unreachable)


def judge(fitted: Fitted, claims: Claims, made: Sequence[Evaluation]) -> Audit:
    """Compare claims with the evaluations of their designs, in the same order; fitted: the model that claimed."""
    after = fitted.conditioned([e for e in made if e.state == "complete"])
    rows = [
        _judged(fitted, after, row, evaluation)
        if evaluation.state == "complete"
        else replace(row, evaluation=evaluation.id)
        for row, evaluation in zip(claims.rows, made, strict=True)
    ]
    return Audit(tuple(rows), claims.drawn, claims.verified, claims.unreachable)


def audit_warning(fitted: Fitted, audit: Audit | None) -> tuple[str, ...]:
    """Return the warning that answers carry after an audit; none if it was not rejected or the model has learned since."""
    if audit is None or not audit.rejected or has_learned(fitted, audit):
        return ()
    return (
        f"the last audit (entry {audit.number}) rejects the stated probabilities: {audit.sentence()}; "
        "run more evaluations and audit again",
    )


def has_learned(fitted: Fitted, audit: Audit) -> bool:
    """Tell whether a model has learned from a rejected audit.

    It has not if the audited designs or limits are no longer those of the study, which was amended: then only a new audit tells.
    """
    ids = [row.evaluation for row in audit.measured]
    later = sum(row.id > max(ids, default=0) for row in fitted.evaluations.complete)
    if later < len(ids):
        return False
    points = [e.point for e in fitted.posterior.measured]
    known = [row for row in audit.measured if row.point in points]
    names = set(fitted.problem.box.names)
    if len(known) < len(ids) or any(set(row.thresholds) != names for row in known):
        return False
    at = [points.index(row.point) for row in known]
    with one_thread():
        mean, std = fitted.surrogates.leave_one_out()
        predictor = fitted.posterior.predictor
        if isinstance(predictor, Composed):
            mean, std = predictor.moments_with_derived(predictor.x, mean, std)
    theta = Query.of(fitted.problem.box, [row.thresholds for row in known]).theta if known else np.zeros((0, 1))
    chance = fitted.posterior.limits.log_probability(mean[at], std[at], torch.from_numpy(theta)).exp()
    return tail_probability(chance.tolist(), sum(bool(row.found) for row in known)) >= LEVEL


def _claimed_limits(fitted: Fitted, x: torch.Tensor, theta: FloatArray) -> FloatArray:
    """Return the probability (n x constraints) with which designs x (n x d) obey each limit at theta (n x k) by itself."""
    limits = fitted.posterior.limits
    with one_thread(), torch.no_grad():
        mean, std = fitted.posterior.predictor.mean_and_std(x)
        each = student_probability(limits.slack(mean, std, torch.from_numpy(theta)).numpy())
    sizes = np.cumsum([0, *(len(c.output_names) for c in fitted.problem.constraints)])
    return np.column_stack([each[:, a:b].prod(axis=1) for a, b in pairwise(sizes)])


def _judged(before: Fitted, after: Fitted, row: AuditedAnswer, evaluation: Evaluation) -> AuditedAnswer:
    """Return what a complete evaluation found of a claim."""
    problem, posterior = before.problem, after.posterior
    query = Query.of(problem.box, row.thresholds)
    at = next(i for i, e in enumerate(posterior.measured) if e.point == row.point)
    y = posterior.measured.y[at : at + 1]
    if posterior.exact is not None and not posterior.all_exact:
        s = posterior.predictor
        known = (posterior.z[at : at + 1] * s.scale + s.centre, posterior.z_std[at : at + 1] * s.scale)
        y = np.where(posterior.exact.numpy(), y, posterior.natural(*known)[0].numpy())
    beyond = problem.box.violations(y, query.thresholds)[0]
    worse = _deviations(before, row, y)
    found, by, deviations = {}, {}, {}
    start = 0
    for c in problem.constraints:
        mine = slice(start, start := start + len(c.output_names))
        worst = int(np.argmax(beyond[mine]))
        by[c.name], deviations[c.name] = float(beyond[mine][worst]), float(worse[mine][worst])
        found[c.name] = bool(by[c.name] <= FEASIBILITY_TOLERANCE * c.scale)
    feasible = bool(posterior.measured_probability(query)[0, at] > 0.5)
    return replace(row, evaluation=evaluation.id, found=feasible, found_limits=found, beyond=by, deviations=deviations)


def _deviations(before: Fitted, row: AuditedAnswer, y: FloatArray) -> FloatArray:
    """Return how much worse than predicted each limited output is (r), in standard deviations of the prediction."""
    posterior, limits = before.posterior, before.posterior.limits
    space = before.problem.space
    x = torch.from_numpy(space.unit(space.array([row.point])))
    with one_thread(), torch.no_grad():
        mean, std = posterior.predictor.mean_and_std(x)
    warp = posterior.output_warp
    warped = torch.from_numpy(y) if warp is None else warp.forward(torch.from_numpy(y))
    return np.asarray((limits.sign * ((warped - mean) / std)[:, limits.output])[0].numpy())
