"""Decision tools against the truth: robust answers, tolerances, fixed variables, common designs, other objectives, audits.

python benchmarks/robust.py scatter [--problems three_truss ...] [--seeds 3] [--thresholds 20] [--budget 200] [--models DIR]
                                    [--out results.csv]
python benchmarks/robust.py tolerances | freeze | common | objective | focus | audit | claims   [--smoke]

scatter      stated probability of robust answers, and the share of 4,000 designs as they are made that truly obey the limits
tolerances   the same of boxes of tolerances, and how large they are
freeze       mean cost of fixing each variable, and the true cost at the same value, in percent of the mean objective
common       mean cost of one design for five thresholds, and the true one
objective    loss of answers to another objective, the first limited output, with the old objective as a limit, which is what it
             costs now and a little (0.1 %) or much (up to 25 %) of its measured range: the gap to the true optimum in percent of
             how far it moves over these questions, at least of the range of the output's own limit; 100 where a limit is broken;
             "loss of range" is in percent of that range alone, which is the stricter unit; "reached" is the share of questions
             whose limits can be met
focus        the worst of these losses, after 5 answers to it were measured, or 20 evaluations with a focus on its own limits
audit        claimed and found shares of an audit of 20 evaluations, and how often it rejects
claims       how often audits of 20 evaluations reject, from many claims of one model and the true functions, without a run for
             each audit. "rejected": audits of claims drawn from these. "rejected, right": what is found is drawn with the claimed
             probabilities, so that claims are right; low and high are the ends of its 95 % interval. "rejected, 90", "80" and
             "70": it is drawn with so many percent, so that claims are wrong

Models are those of ordinary studies of `--budget` evaluations. With --models they are kept in a folder and used again. Each
command prints a table as Markdown, one line for each problem, means over the seeds. --out keeps what was measured,
and goes on from there. --smoke makes everything small.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from resuming import Rows

from cbabo import Answer, Model, Problem, Settings, Study, problems
from cbabo.bench.optima import solve_all
from cbabo.decisions.audit import draw_claims
from cbabo.decisions.other_question import other_question
from cbabo.domain.audits import LEVEL, binomial_interval, tail_probability
from cbabo.domain.evaluations import Evaluation
from cbabo.errors import StudyError
from cbabo.numerics.arrays import FloatArray
from cbabo.problems import ShippedProblem

PROBLEMS = (
    *("three_truss", "pressure_vessel_active", "rc_beam", "gkxwc2_active", "g04_active", "speed_reducer_active"),
)
"""Quick problems with continuous variables and limits that bind."""
MADE = 4000
"""Designs as they are made, for each answer."""
SCATTER = 0.01
"""Standard deviation of every variable, as a share of its range; tolerances are sqrt(3) times as wide."""
COMMON = 5
"""Thresholds of one common design."""
LITTLE = 1e-3
"""Of the measured range of the old objective: room that every question has, so that its limits can be met. Predictions have
deviations, so that no design keeps the predicted optimum with the stated probability."""
AUDITED = 20
"""Evaluations of an audit."""
COUNTS = ("cases", "claims")
"""What is summed over seeds."""
CLAIMS = 400
"""Claims of a model that are compared with the true functions."""
AUDITS = 4000
"""Audits that are put together of a model's claims."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A model of a shipped problem, and thresholds to ask for."""

    shipped: ShippedProblem
    model: Model
    thresholds: FloatArray
    seed: int
    study: Study | None = None

    def named(self, row: FloatArray) -> dict[str, float]:
        """Return limits by name."""
        return self.model.problem.box.named(row)

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the variables."""
        variables = self.model.problem.variables
        return np.array([v.low for v in variables]), np.array([v.high for v in variables])

    def share(self, point: dict[str, float], deviations: FloatArray, row: FloatArray) -> float:
        """Return the share of designs around a point that truly obey the limits."""
        low, high = self.ends()
        x = np.clip(np.array([point[n] for n in self.model.problem.space.names]) + deviations, low, high)
        y = np.column_stack(self.shipped.evaluate_many(x))
        return float(self.model.problem.box.feasible(y, np.repeat(row[None], len(x), axis=0)).mean())


def case(name: str, seed: int, args: argparse.Namespace, *, with_study: bool = False) -> Case:
    """Run an ordinary study, or read its model."""
    shipped = problems.get(name)
    file = None if args.models is None else Path(args.models) / f"{name}-{seed}-{args.budget}.cbabo"
    study = None
    if with_study or file is None or not file.exists():
        settings = Settings.default().replace(library=32) if args.smoke else Settings.default()
        study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=settings)
        study.run(shipped.evaluator(seed), budget=args.budget, in_process=True)
        model = study.model()
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            model.save(file)
    else:
        model = Model.load(file)
    theta = np.random.default_rng([seed, 22]).random((args.thresholds, len(model.problem.box.names)))
    return Case(shipped, model, model.problem.box.from_theta(theta), seed, study)


def scatter(case: Case) -> list[dict[str, Any]]:
    """Compare stated and found probabilities of robust answers."""
    low, high = case.ends()
    std = dict(zip(case.model.problem.space.names, SCATTER * (high - low), strict=True))
    random = np.random.default_rng(case.seed).normal(size=(MADE, len(low))) * SCATTER * (high - low)
    rows = []
    for row, probability in zip(case.thresholds, np.tile([0.98, 0.9], len(case.thresholds)), strict=False):
        begun = time.perf_counter()
        answer = case.model.predict(case.named(row), scatter=std, probability=float(probability))
        seconds = time.perf_counter() - begun
        if answer.status == "unreachable":
            continue
        found = case.share(answer.point, random, row)
        plain = case.share(case.model.predict(case.named(row)).point, random, row)
        stated = answer.probability_feasible
        rows.append(
            {"stated": stated, "found": found, "error": abs(stated - found), "without": plain, "seconds": seconds}
        )
    return rows


def tolerances(case: Case) -> list[dict[str, Any]]:
    """Compare stated and found probabilities of boxes of tolerances."""
    uniform = np.random.default_rng(case.seed).uniform(size=(MADE, case.model.problem.space.dimension))
    rows = []
    for row in case.thresholds[: max(2, len(case.thresholds) // 4)]:
        begun = time.perf_counter()
        found = case.model.tolerances(case.named(row), give=0.05)
        seconds = time.perf_counter() - begun
        if found.answer.status == "unreachable":
            continue
        box = found.to_frame().set_index("variable").loc[list(case.model.problem.space.names)]
        low, high, value = (box[name].to_numpy() for name in ("low", "high", "value"))
        made = low + uniform * (high - low) - value
        share, stated = case.share(found.answer.point, made, row), found.answer.probability_feasible
        width = 100.0 * next(iter(found.shares.values()))
        rows.append(
            {"stated": stated, "found": share, "error": abs(stated - share), "width %": width, "seconds": seconds}
        )
    return rows


def freeze(case: Case) -> list[dict[str, Any]]:
    """Compare the costs of fixing variables with the true ones."""
    rows = case.thresholds[:8]
    begun = time.perf_counter()
    frame = case.model.freeze(rows).set_index("variable")
    seconds = time.perf_counter() - begun
    free = np.array([o.f for o in solve_all(case.shipped, rows)])
    unit = np.abs(free[np.isfinite(free)]).mean() / 100.0
    found = []
    for name, said in frame.iterrows():
        held = np.array([o.f for o in solve_all(_held(case.shipped, str(name), float(said["value"])), rows)])
        both = np.isfinite(free) & np.isfinite(held)
        true, lost = float((held - free)[both].mean()), float(1.0 - both.sum() / np.isfinite(free).sum())
        found.append(
            {
                "cost %": said["cost"] / unit,
                "true cost %": true / unit,
                "error %": abs(said["cost"] - true) / unit,
                "worst error %": abs(said["worst"] - float((held - free)[both].max())) / unit,
                "lost": said["lost"],
                "truly lost": lost,
                "seconds": seconds / len(frame),
            }
        )
    return found


def common(case: Case) -> list[dict[str, Any]]:
    """Compare the cost of one design for several thresholds with the true one."""
    rows = []
    for first in range(0, len(case.thresholds) - COMMON + 1, COMMON):
        part = case.thresholds[first : first + COMMON]
        begun = time.perf_counter()
        found = case.model.common(part)
        seconds = time.perf_counter() - begun
        strictest = case.model.problem.box.row(found.answer.thresholds)
        f = np.array([o.f for o in solve_all(case.shipped, np.vstack([strictest, part]))])
        if found.answer.status == "unreachable" or not np.isfinite(f).all():
            continue
        unit, true = np.abs(f[1:]).mean() / 100.0, float((f[0] - f[1:]).mean())
        cost = {"cost %": found.cost / unit, "true cost %": true / unit, "error %": abs(found.cost - true) / unit}
        point = {n: found.answer.point[n] for n in case.model.problem.space.names}
        obeyed = np.mean([case.share(point, np.zeros((1, len(point))), row) for row in part])
        rows.append({**cost, "obeyed": obeyed, "seconds": seconds})
    return rows


@dataclasses.dataclass(frozen=True)
class Questions:
    """Questions with another objective, and their true optima."""

    case: Case
    new: str
    asked: list[dict[str, float]]
    swapped: ShippedProblem
    optima: FloatArray

    @classmethod
    def of(cls, case: Case) -> Questions:
        """Ask for the least first limited output; half of the questions leave the old objective much room."""
        model, random = case.model, np.random.default_rng([case.seed, 3])
        new = model.problem.constraints[0].name
        span = float(np.ptp(model.evaluations.complete.y[:, 0]))
        asked = []
        for i, row in enumerate(case.thresholds):
            own = model.predict(case.named(row))
            room = span * max(LITTLE, random.random() * 0.25 * (i % 2))
            asked.append({**{n: v for n, v in case.named(row).items() if n != new}, "f": own.objective.mean + room})
        swapped = _swapped(case, asked[0], new)
        limits = np.array([[question[name] for name in swapped.problem.box.names] for question in asked])
        return cls(case, new, asked, swapped, np.array([o.f for o in solve_all(swapped, limits)]))

    @property
    def span(self) -> float:
        """How far the true optimum moves over the questions, at least the range of the output's own limit."""
        finite = self.optima[np.isfinite(self.optima)]
        return max(float(np.ptp(finite)), self.case.model.problem.constraints[0].scale)

    def loss(self, model: Model, i: int, unit: float | None = None) -> tuple[float, Answer]:
        """Return the loss of a model's answer to one question, in percent of the span or of another unit."""
        box = self.swapped.problem.box
        unit = self.span if unit is None else unit
        answer = model.predict(self.asked[i], objective=self.new)
        y = np.column_stack(self.swapped.evaluate_many([[answer.point[n] for n in model.problem.space.names]]))
        row = np.array([[self.asked[i][name] for name in box.names]])
        gap = 100.0 * float(np.clip((y[0, 0] - self.optima[i]) / unit, 0.0, 1.0))
        return gap if bool(box.feasible(y, row)[0]) else 100.0, answer


def objective(case: Case) -> list[dict[str, Any]]:
    """Measure the loss of answers to another objective."""
    questions, rows = Questions.of(case), []
    for i in np.flatnonzero(np.isfinite(questions.optima)).tolist():
        begun = time.perf_counter()
        loss, answer = questions.loss(case.model, i)
        seconds = time.perf_counter() - begun
        split = {"loss, little room": loss if i % 2 == 0 else np.nan, "loss, room": loss if i % 2 else np.nan}
        by_range = questions.loss(case.model, i, case.model.problem.constraints[0].scale)[0]
        stated = {"obeyed": loss < 100.0, "stated": answer.probability_feasible}
        stated["reached"] = answer.status != "unreachable"
        rows.append({"loss": loss, **split, "loss of range": by_range, **stated, "seconds": seconds})
    return rows


def focus(case: Case) -> list[dict[str, Any]]:
    """Repair the worst answer to another objective: by measuring answers to it, or by a focus on its own limits."""
    assert case.study is not None
    questions = Questions.of(case)
    known = np.flatnonzero(np.isfinite(questions.optima)).tolist()
    before = {i: questions.loss(case.model, i)[0] for i in known}
    worst = max(before, key=lambda i: before[i])
    model, evaluator = case.model, case.shipped.evaluator(case.seed)
    made = []
    for number in range(1, 6):  # Measure the answer itself, learn from it, and ask again.
        point = questions.loss(model, worst)[1].point
        made.append(Evaluation(10_000 + number, "complete", "refine", point, evaluator(point)))
        model = Model(**{f.name: getattr(case.model.conditioned(made), f.name) for f in dataclasses.fields(Model)})
    measured = questions.loss(model, worst)[0]
    model, budget = case.model, case.study.evaluations.requested
    for _ in range(2):  # The limits are stated anew when something was learned.
        case.study.focus([model.own_limits(questions.loss(model, worst)[1])])
        budget += 10
        case.study.run(evaluator, budget=budget, in_process=True)
        model = case.study.model()
    focused = questions.loss(model, worst)[0]
    return [{"worst loss": before[worst], "5 answers measured": measured, "20 evaluations focused": focused}]


def audit(case: Case) -> list[dict[str, Any]]:
    """Audit a study."""
    assert case.study is not None
    begun = time.perf_counter()
    try:
        found = case.study.audit(case.shipped.evaluator(case.seed), evaluations=len(case.thresholds), in_process=True)
    except StudyError:  # All answers are measured designs.
        return []
    seconds = time.perf_counter() - begun
    shares = {"claimed": found.joint.claimed, "found": found.joint.found / max(1, found.joint.count)}
    return [{**shares, "evaluations": found.joint.count, "rejected": float(found.rejected), "seconds": seconds}]


def claims(case: Case) -> list[dict[str, Any]]:
    """Put many audits together of one model's claims."""
    random = np.random.default_rng([case.seed, 4])
    try:
        drawn = draw_claims(case.model, CLAIMS if len(case.thresholds) > 5 else AUDITED, 0)
    except StudyError:  # All answers are measured designs.
        return []
    names = case.model.problem.space.names
    stated, right = np.array([row.claimed for row in drawn.rows]), np.empty(len(drawn.rows), dtype=np.bool_)
    for i, row in enumerate(drawn.rows):
        y = np.column_stack(case.shipped.evaluate_many([[row.point[n] for n in names]]))
        right[i] = bool(case.model.problem.box.feasible(y, case.model.problem.box.row(row.thresholds)[None])[0])
    picked = np.array([random.permutation(len(stated))[:AUDITED] for _ in range(AUDITS)])
    chance = random.random(picked.shape)

    def rejected(found: FloatArray) -> int:
        return sum(
            tail_probability(stated[rows].tolist(), int(yes.sum())) < LEVEL
            for rows, yes in zip(picked, found, strict=True)
        )

    size = rejected(chance < stated[picked])
    low, high = binomial_interval(size, AUDITS)
    wrong = {f"rejected, {round(100 * p)}": rejected(chance < p) / AUDITS for p in (0.9, 0.8, 0.7)}
    return [
        {
            "claims": len(stated),
            "claimed": stated.mean(),
            "found": right.mean(),
            "rejected": rejected(right[picked]) / AUDITS,
            "rejected, right": size / AUDITS,
            "low": low,
            "high": high,
            **wrong,
        }
    ]


def _held(shipped: ShippedProblem, name: str, value: float) -> ShippedProblem:
    """Return a problem with one variable fixed: the true function of the others."""
    space = shipped.problem.space
    at = space.names.index(name)
    variables = [v for v in shipped.problem.variables if v.name != name]
    stated = Problem(shipped.name, variables, shipped.problem.objective, shipped.problem.constraints)

    def function(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return shipped.function(np.insert(x, at, value, axis=1))

    return dataclasses.replace(shipped, problem=stated, function=function, pieces=(), optimum=None)


def _swapped(case: Case, question: dict[str, float], new: str) -> ShippedProblem:
    """Return the problem of another question with its true function."""
    problem = other_question(case.model, question, new)[0].problem
    outputs = case.shipped.problem.outputs

    def function(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        y = dict(zip(outputs, np.column_stack(case.shipped.function(x)).T, strict=True))
        return y[new], np.column_stack([y[name] for name in problem.outputs[1:]])

    return dataclasses.replace(case.shipped, problem=problem, function=function, pieces=(), optimum=None)


TOOLS: dict[str, Callable[[Case], list[dict[str, Any]]]] = {
    "scatter": scatter,
    "tolerances": tolerances,
    "freeze": freeze,
    "common": common,
    "objective": objective,
    "focus": focus,
    "audit": audit,
    "claims": claims,
}


def main() -> None:
    """Run one tool on all problems and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--thresholds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--models", help="A folder in which models are kept.")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.smoke:
        args.problems, args.thresholds, args.budget, args.seeds = args.problems[:1], 5, 30, 1
    measured = Rows(args.out)
    for seed in range(args.seeds):
        for name in args.problems:
            if measured.has(args.tool, name, seed):
                continue
            rows = TOOLS[args.tool](case(name, seed, args, with_study=args.tool in ("audit", "focus")))
            means = pd.DataFrame(rows).mean().to_dict() if rows else {}
            largest = {"largest error": max(row["error"] for row in rows)} if rows and "error" in rows[0] else {}
            measured.add(args.tool, name, seed, {"cases": len(rows), **means, **largest})
    print(f"\n{args.tool}\n\n{measured.table(args.tool, args.problems, range(args.seeds), COUNTS)}")


if __name__ == "__main__":
    main()
