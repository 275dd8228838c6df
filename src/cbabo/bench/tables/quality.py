"""Our own tables: loss by method, over the budget, calibration, and where we lose.

The loss of an answer is its gap to the true optimum in percent of the problem's span, 100 where it is infeasible. Intervals hold
95 %, by bootstrap over seeds and thresholds; averages over problems weigh each of them alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cbabo import problems
from cbabo.bench.campaign import Row
from cbabo.bench.metrics import Interval, average_interval, losses, mean_interval
from cbabo.bench.tables.answers import SERIES, answers, of, ordered, pairs, required, samples, with_losses
from cbabo.bench.truth import truth

CHECKPOINTS = (60, 100, 150)
BUDGET = 200
NEHVI = "qLogNEHVI"
SUITES = ("paper", "active", "variant")
_SAME = 1e-6  # of the span: optima that count as one
_ENOUGH = 0.1  # share of thresholds that must change the optimum for a problem to test a map
_LIMITS = ["loss %", "low", "high"]


def loss(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Average the loss of every method over each suite: what covers most problems first, and of that the best."""
    found = with_losses(answers(rows))
    required("loss", found, "answers of any method")
    lines = []
    for (suite, method, stage, n), part in found.assign(suite=_suites(found)).groupby(
        ["suite", *SERIES[1:]], sort=False
    ):
        lines.append(
            {"suite": suite, "method": method, "answers": stage, "n": n, "problems": part["problem"].nunique()}
            | _numbers(part)
        )
    table = pd.DataFrame(lines)
    place = table["suite"].map(SUITES.index).rename("place")
    table = table.assign(place=place).sort_values(["place", "problems", "loss %"], ascending=[True, False, True])
    return table.drop(columns="place").reset_index(drop=True)


def loss_by_problem(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Show the loss of every method on every problem, the best first."""
    found = with_losses(answers(rows))
    required("loss_by_problem", found, "answers of any method")
    lines = [
        dict(zip(("problem", "method", "answers", "n"), key, strict=True)) | _numbers(part)
        for key, part in found.groupby(SERIES, sort=False)
    ]
    return ordered(pd.DataFrame(lines), "loss %")


def budget(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Show the loss of our predictions after 60, 100, 150 and 200 evaluations, by problem and averaged over each suite."""
    frames = [answers(rows, "direct", after=spent).assign(evaluations=spent) for spent in CHECKPOINTS]
    found = of(with_losses(pd.concat([*frames, answers(rows, "direct").assign(evaluations=BUDGET)])), ours)
    required("budget", found, f"answers of {ours!r}")
    lines = [
        {"problem": problem, "evaluations": spent} | _numbers(part)
        for (problem, spent), part in found.groupby(["problem", "evaluations"])
    ]
    averages = [
        {"problem": f"{suite}, {part['problem'].nunique()} problems", "evaluations": spent} | _numbers(part)
        for suite in SUITES
        for spent, part in found[_suites(found) == suite].groupby("evaluations")
    ]
    return pd.DataFrame([*averages, *ordered(pd.DataFrame(lines), "evaluations").to_dict("records")])


def calibration(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare the stated probability of being feasible with the feasible share, by problem and method."""
    found = answers(rows, "direct").dropna(subset=["probability"])
    required("calibration", found, "answers with a stated probability")
    lines = []
    for (problem, method), part in found.groupby(["problem", "method"], sort=False):
        share = mean_interval(samples(part, "feasible"))
        stated = 100.0 * part["probability"].mean()
        low, high = 100.0 * share.low, 100.0 * share.high
        lines.append(
            {
                "problem": problem,
                "method": method,
                "seeds": part["seed"].nunique(),
                "stated %": round(stated, 1),
                "feasible %": round(100.0 * share.mean, 1),
                "low": round(low, 1),
                "high": round(high, 1),
                "too sure by": round(stated - 100.0 * share.mean, 1),
                "within": "yes" if low <= stated <= high else "no",
            }
        )
    return ordered(pd.DataFrame(lines), "method")


def nehvi(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare with hypervolume improvement over objective and constraints, where there are at most two constraints."""
    found = with_losses(answers(rows))
    required("nehvi", of(found, NEHVI), f"answers of {NEHVI!r}")
    lines = []
    for problem in found.loc[found["method"] == NEHVI, "problem"].unique():
        part = found[found["problem"] == problem]
        line: dict[str, object] = {"problem": problem, "m": len(problems.get(problem).problem.constraints)}
        for label, series in _contenders(part, ours):
            line |= {
                f"{label} {name}": value for name, value in _limits(mean_interval(samples(series, "loss"))).items()
            }
        lines.append(line)
    return ordered(pd.DataFrame(lines))


def vacuous(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Show what a constant answer reaches, and so which problems cannot test a map of thresholds at all.

    "moved %": thresholds whose optimum differs from that of the most relaxed limits. "tests a map": whether at least a tenth do.
    """
    found = of(with_losses(answers(rows, "direct")), ours)
    lines = []
    for problem in problems.names():
        known, shipped = truth(problem), problems.get(problem)
        finite = np.isfinite(known.f)
        relaxed = known.relaxed.f if np.isfinite(known.relaxed.f) else known.f[finite].min()
        moved = known.f[finite] > relaxed + _SAME * known.span
        line: dict[str, object] = {
            "problem": problem,
            "suite": shipped.suite,
            "bounded %": round(100.0 * finite.mean(), 1),
        }
        line["moved %"] = round(100.0 * moved.mean(), 1)
        for name, optimum in (("strictest", known.strictest), ("most relaxed", known.relaxed)):
            line |= _constant(problem, name, optimum.x)
        mine = found[found["problem"] == problem]
        line[f"{ours} loss %"] = round(mine["loss"].mean(), 2)
        lines.append(line | {"tests a map": "no" if not moved.any() else "hardly" if moved.mean() < _ENOUGH else "yes"})
    return pd.DataFrame(lines)


def losses_to(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """List who beats us where: the interval of the paired difference in loss lies wholly against us; worst first."""
    found = with_losses(answers(rows))
    mine = of(found, ours)
    mine = mine[mine["stage"].isin(["direct", "refined"])]
    met = pairs(mine, found[found["method"] != ours])
    required("losses_to", met, f"answers of {ours!r} and of others to the same thresholds")
    met = met.assign(difference=met["loss"] - met["loss_theirs"])
    lines = []
    key = ["problem", "stage", "method_theirs", "stage_theirs", "n_theirs"]
    for (problem, stage, rival, kind, n), part in met.groupby(key, sort=False):
        interval = mean_interval(samples(part, "difference")) if part["difference"].mean() > 0.0 else None
        if interval is not None and interval.low > 0.0:
            series = {"problem": problem, "ours": stage, "rival": rival, "its answers": kind, "n": n}
            means = {"our loss %": part["loss"].mean(), "its loss %": part["loss_theirs"].mean()}
            limits = {"difference": interval.mean, "low": interval.low, "high": interval.high}
            lines.append(series | {"compared": len(part)} | {k: round(v, 2) for k, v in (means | limits).items()})
    columns = ["problem", "ours", "rival", "its answers", "n", "compared", "our loss %", "its loss %"]
    table = pd.DataFrame(lines, columns=[*columns, "difference", "low", "high"])
    return table.sort_values("difference", ascending=False, kind="stable").reset_index(drop=True)


def _suites(table: pd.DataFrame) -> pd.Series[str]:
    """Return the suite of each line's problem."""
    return table["problem"].map(lambda name: problems.get(name).suite)


def _numbers(part: pd.DataFrame) -> dict[str, float]:
    """Return seeds, mean loss with its interval and feasible share of answers, every problem weighing alike."""
    groups = [group for _, group in part.groupby("problem")]
    interval = average_interval([samples(group, "loss") for group in groups])
    feasible = float(np.mean([group["feasible"].mean() for group in groups]))
    return {"seeds": part["seed"].nunique()} | _limits(interval) | {"feasible %": round(100.0 * feasible, 1)}


def _limits(interval: Interval) -> dict[str, float]:
    return dict(zip(_LIMITS, np.round([interval.mean, interval.low, interval.high], 2).tolist(), strict=True))


def _contenders(part: pd.DataFrame, ours: str) -> list[tuple[str, pd.DataFrame]]:
    """Return the series that stand side by side on one problem, with their names."""
    rival, mine = of(part, NEHVI), of(part, ours)
    named = [(NEHVI, rival)]
    return named + [(f"{ours} {stage}", mine[mine["stage"] == stage]) for stage in ("direct", "refined")]


def _constant(problem: str, name: str, x: np.ndarray) -> dict[str, object]:
    """Judge one design as the answer to every threshold at which the problem is bounded."""
    known, shipped = truth(problem), problems.get(problem)
    if not np.isfinite(x).all():
        return {f"{name} feasible %": np.nan, f"{name} loss %": np.nan}
    f, c = shipped.evaluate_many(x[np.newaxis])
    y = np.repeat(np.column_stack([f, c]), len(known.f), axis=0)
    feasible = shipped.problem.box.feasible(y, known.thresholds)
    found = losses(y[:, 0], feasible, known.f, known.span)
    return {f"{name} feasible %": round(100.0 * feasible.mean(), 1), f"{name} loss %": round(np.nanmean(found), 2)}
