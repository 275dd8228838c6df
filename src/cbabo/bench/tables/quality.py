"""Our own tables: loss by method, loss over the budget, calibration, and baselines with a lower loss.

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
from cbabo.bench.tables.answers import (
    SERIES,
    SUITES,
    answers,
    of,
    ordered,
    pairs,
    required,
    samples,
    suite_label,
    suites,
    targets,
    with_losses,
)
from cbabo.bench.truth import Truth, truth
from cbabo.numerics.arrays import FloatArray

CHECKPOINTS = (60, 100, 150)
"""Evaluations after which a run's answers were scored, before the end."""
BUDGET = 200
"""Evaluations of a whole run."""
NEHVI = "qLogNEHVI"
"""The method of the multi-objective baseline."""
OWN_VARIANTS = ("default", "all random", "no monotonic", "beta", "alpha", "inner")
"""First words of the methods that are our own variants."""
SAME_OPTIMUM = 1e-6
"""Optima that differ by less than this share of the span are the same."""
SHARE_DIGIT = 0.1
"""Percentage points: the last digit that is shown of a share."""
LOSS_ROUNDING = 0.005
"""Percent: a loss below this is shown as zero."""
TESTS_A_MAP = 0.1
"""Least share of thresholds with a different optimum, for a problem to test a map."""
_INTERVAL = ("loss %", "low", "high")
_SHARES = ("feasible %", "loss %")


def loss(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Average the loss of every method over each suite: what covers most problems first, and of that the best."""
    found = with_losses(answers(rows))
    required("loss", found, "answers of any method")
    lines = []
    for (suite, method, stage, n), part in found.assign(suite=suites(found)).groupby(
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
        {"problem": suite_label(part, suite), "evaluations": spent} | _numbers(part)
        for suite in SUITES
        for spent, part in found[suites(found) == suite].groupby("evaluations")
    ]
    return pd.DataFrame([*averages, *ordered(pd.DataFrame(lines), "evaluations").to_dict("records")])


def calibration(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare the stated probability of being feasible with the feasible share, by problem and method.

    Where answers aim at a probability, by that too, and over answers that are not measured designs; then the last lines say
    how far apart both are on average over each suite, and over all of them.
    """
    aimed = targets(rows)
    plain = answers(rows, "direct").dropna(subset=["probability"])
    plain = plain[~plain["method"].isin(aimed["method"])].assign(target=np.nan)
    frames = [frame for frame in (plain, aimed) if not frame.empty]
    required("calibration", pd.concat(frames) if frames else plain, "answers with a stated probability")
    lines = []
    for (problem, method, target), part in pd.concat(frames).groupby(["problem", "method", "target"], dropna=False):
        share = mean_interval(samples(part, "feasible"))
        stated = 100.0 * part["probability"].mean()
        low, high = 100.0 * share.low, 100.0 * share.high
        lines.append(
            {
                "problem": problem,
                "method": method,
                "target": target,
                "seeds": part["seed"].nunique(),
                "answers": len(part),
                "stated %": round(stated, 1),
                "feasible %": round(100.0 * share.mean, 1),
                "low": round(low, 1),
                "high": round(high, 1),
                "too sure by": round(stated - 100.0 * share.mean, 1) + 0.0,
                "within": "yes" if low - SHARE_DIGIT <= stated <= high + SHARE_DIGIT else "no",
            }
        )
    table = ordered(pd.DataFrame(lines), "method", "target")
    apart = table.assign(apart=table["too sure by"].abs())
    means = [
        {"problem": f"{suite_label(part, suite)}, mean distance", "method": method, "target": target}
        | {"too sure by": round(part["apart"].mean(), 1)}
        for suite in SUITES
        for (method, target), part in apart[suites(apart) == suite].groupby(["method", "target"], dropna=False)
    ]
    means += [
        {"problem": f"all suites, {len(part)} problems, mean distance", "method": method, "target": target}
        | {"too sure by": round(part["apart"].mean(), 1)}
        for (method, target), part in apart.groupby(["method", "target"], dropna=False)
        if suites(part).nunique() > 1
    ]
    return pd.concat([table, pd.DataFrame(means)], ignore_index=True)


def nehvi(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare with hypervolume improvement over objective and constraints, where there are at most two constraints."""
    theirs = {row.problem for row in rows if row.method == NEHVI}
    chosen = [row for row in rows if row.method in (NEHVI, ours) and row.problem in theirs]
    required("nehvi", answers(chosen), f"answers of {NEHVI!r}")
    table = loss_by_problem(chosen, ours)
    table.insert(1, "m", table["problem"].map(lambda name: len(problems.get(name).problem.constraints)))
    return table


def vacuous(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Show what constant answers reach, and so which problems cannot test a map of thresholds; our loss stands beside it.

    "moved %": thresholds whose optimum differs from that of the most relaxed limits; "tests a map": "yes" if a tenth do. The
    constants: the optimum of the strictest limits, that of the most relaxed ones, and the best of these and all others.
    """
    mine = of(with_losses(answers(rows, "direct")), ours).groupby("problem")["loss"].mean()
    lines = []
    for problem in (name for suite in SUITES for name in problems.names(suite)):
        known = truth(problem)
        finite = np.isfinite(known.f)
        relaxed = known.relaxed.f if np.isfinite(known.relaxed.f) else known.f[finite].min()
        moved = float((known.f[finite] > relaxed + SAME_OPTIMUM * known.span).mean())
        verdict = "yes" if moved >= TESTS_A_MAP else "hardly" if moved > 0.0 else "no"
        line: dict[str, object] = {"problem": problem, "suite": problems.get(problem).suite}
        line |= {"bounded %": _percent(finite.mean()), "moved %": _percent(moved), "tests a map": verdict}
        lines.append(line | _constants(known) | {"our loss %": round(mine.get(problem, np.nan), 2)})
    return pd.DataFrame(lines)


def losses_to(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """List the baselines with a lower loss than ours: the interval of the paired difference excludes zero; worst first.

    Differences below rounding, the default settings and our own variants are left out.
    """
    found = with_losses(answers(rows))
    mine = of(found, ours)
    mine = mine[mine["stage"].isin(["direct", "refined"])]
    met = pairs(mine, found[(found["method"] != ours) & ~found["method"].str.startswith(OWN_VARIANTS)])
    required("losses_to", met, f"answers of {ours!r} and of others to the same thresholds")
    met = met.assign(difference=met["loss"] - met["loss_theirs"])
    lines = []
    key = ["problem", "stage", "method_theirs", "stage_theirs", "n_theirs"]
    for (problem, stage, baseline, kind, n), part in met.groupby(key, sort=False):
        interval = mean_interval(samples(part, "difference")) if part["difference"].mean() > 0.0 else None
        if interval is not None and interval.low > LOSS_ROUNDING:
            series = {"problem": problem, "ours": stage, "baseline": baseline, "its answers": kind, "n": n}
            means = {"our loss %": part["loss"].mean(), "its loss %": part["loss_theirs"].mean()}
            limits = {"difference": interval.mean, "low": interval.low, "high": interval.high}
            lines.append(series | {"compared": len(part)} | {k: round(v, 2) for k, v in (means | limits).items()})
    columns = ["problem", "ours", "baseline", "its answers", "n", "compared", "our loss %", "its loss %"]
    table = pd.DataFrame(lines, columns=[*columns, "difference", "low", "high"])
    return table.sort_values("difference", ascending=False, kind="stable").reset_index(drop=True)


def _numbers(part: pd.DataFrame) -> dict[str, float]:
    """Return seeds, mean loss with its interval and feasible share of answers, every problem weighing alike."""
    groups = [group for _, group in part.groupby("problem")]
    interval = average_interval([samples(group, "loss") for group in groups])
    feasible = float(np.mean([group["feasible"].mean() for group in groups]))
    return {"seeds": part["seed"].nunique()} | _limits(interval) | {"feasible %": _percent(feasible)}


def _limits(interval: Interval) -> dict[str, float]:
    return dict(zip(_INTERVAL, np.round([interval.mean, interval.low, interval.high], 2).tolist(), strict=True))


def _constants(known: Truth) -> dict[str, float]:
    """Return feasible share and loss of constant answers, over the thresholds at which the problem is bounded."""
    ends = [_constant(known, x) for x in (known.strictest.x, known.relaxed.x)]
    others = [_constant(known, x) for x in known.x]
    scored = [*ends, min((pair for pair in (*ends, *others) if np.isfinite(pair[1])), key=lambda pair: pair[1])]
    named = zip(("strictest", "relaxed", "best"), scored, strict=True)
    return {f"{name} {kind}": value for name, pair in named for kind, value in zip(_SHARES, pair, strict=True)}


def _constant(known: Truth, x: FloatArray) -> tuple[float, float]:
    """Return feasible share and mean loss, in percent, of one design as the answer to every threshold."""
    if not np.isfinite(x).all():
        return np.nan, np.nan
    shipped, finite = problems.get(known.name), np.isfinite(known.f)
    y = np.column_stack(shipped.evaluate_many(x[np.newaxis])).repeat(finite.sum(), axis=0)
    feasible = shipped.problem.box.feasible(y, known.thresholds[finite])
    found = losses(y[:, 0], feasible, known.f[finite], known.span)
    return _percent(feasible.mean()), round(float(found.mean()), 2)


def _percent(share: float) -> float:
    return round(100.0 * float(share), 1)
