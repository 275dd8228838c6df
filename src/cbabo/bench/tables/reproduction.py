"""The paper's other tables: feasible shares, objective values, monotonicity, run time and the case study, beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cbabo import problems
from cbabo.bench.campaign import Row
from cbabo.bench.metrics import TIE
from cbabo.bench.printed import CASE_STUDY, printed
from cbabo.bench.tables.answers import answers, of, required, units
from cbabo.bench.tables.win_rates import BASELINES
from cbabo.bench.truth import truth
from cbabo.methods.settings import Settings

MARGIN = 5.0
"""Percentage points beyond the paper's standard deviation within which a feasible share is reproduced."""


def feasibility(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare feasible shares with the paper's Table 1: predictions at 1,000 thresholds, refined answers at 100.

    Problems of the active suite follow, where there are units of them, and the mean over all problems.
    """
    found = units([row for row in rows if row.method in (ours, "plain")], "direct share", "refined feasible")
    required("feasibility", found.dropna(how="all", subset=["direct share", "refined feasible"]), f"units of {ours!r}")
    mine, plain = of(found, ours), of(found, "plain")
    lines = []
    active = [[name, *[np.nan] * 4] for name in problems.names("active") if (mine["problem"] == name).any()]
    for problem, *paper in [*printed("feasibility").itertuples(index=False), *active]:
        line: dict[str, object] = {"problem": problem, "seeds": int((mine["problem"] == problem).sum())}
        for i, (stage, name) in enumerate((("direct", "direct share"), ("refined", "refined feasible"))):
            line |= _share(stage, 100.0 * mine.loc[mine["problem"] == problem, name], *paper[2 * i : 2 * i + 2])
        reference = 100.0 * plain.loc[plain["problem"] == problem, "direct share"]
        lines.append(line | {"plain direct %": round(reference.mean(), 1)})
    table = pd.DataFrame(lines)
    measured = table[table["seeds"] > 0]
    mean: dict[str, object] = {"problem": f"mean of these {len(measured)}"}
    mean |= {name: round(measured[name].mean(), 1) for name in ("direct %", "refined %")}
    return pd.concat([table, pd.DataFrame([mean])], ignore_index=True)


def single_threshold(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Show objective values at one threshold (the first row, seed 0) for every N; the paper's threshold is not known."""
    found = answers(rows, "direct", "refined", "best")
    found = found[(found["seed"] == 0) & (found["row"] == 0) & found["method"].isin([ours, *BASELINES])]
    required("single_threshold", found, f"answers of {ours!r} or a baseline to the first threshold, seed 0")
    found = found.assign(column=found["method"].where(found["stage"] == "best", found["stage"]))
    paper = printed("single_threshold").rename(columns={"method": "column"})
    columns = list(paper["column"].unique())
    lines = []
    for (problem, n), theirs in paper.groupby(["problem", "n"], sort=False):
        mine = found[(found["problem"] == problem) & ((found["n"] == n) | (found["stage"] != "best"))]
        best = f"{truth(str(problem)).f[0]:.2e}" if len(mine) else ""
        lines.append({"problem": problem, "n": n, "values": "ours", "optimum": best} | _values(mine))
        lines.append({"problem": problem, "n": n, "values": "paper", "optimum": ""} | _values(theirs))
    table = pd.DataFrame(lines + _first_places(found, paper), columns=["problem", "n", "values", "optimum", *columns])
    return table.fillna("")


def monotonicity(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Show how often the objective does not rise when limits are loosened, by the true one and by the surrogate's mean."""
    names = {"true": "monotonic true", "mean": "monotonic mean"}
    found = units(rows, *names.values()).dropna(how="all", subset=[*names.values()])
    required("monotonicity", of(found, ours, "no monotonic"), f"units of {ours!r} or 'no monotonic'")
    paper = printed("monotonicity").set_index("problem")
    lines = []
    for problem in problems.names("paper"):
        line: dict[str, object] = {"problem": problem}
        for guidance, method in (("with", ours), ("without", "no monotonic")):
            part = of(found[found["problem"] == problem], method)
            line |= {f"{guidance}, {kind} %": round(100.0 * part[name].mean(), 1) for kind, name in names.items()}
            line[f"{guidance}, paper %"] = paper[f"{guidance} guidance"].get(problem, np.nan)
        lines.append(line)
    return pd.DataFrame(lines)


def runtime(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Show seconds: of our iterations (fits, training, selection), answers and refinements; of the baselines' suggestions."""
    found = units(rows, "run seconds", "predict seconds", "refine seconds", "suggest seconds")
    required("runtime", of(found, ours, *BASELINES), f"units of {ours!r} or a baseline")
    found["run seconds"] /= Settings.paper().horizon
    sources = dict.fromkeys(("training", "prediction", "refinement"), ours) | {name: name for name in BASELINES}
    measured = dict.fromkeys(BASELINES, "suggest seconds")
    measured |= {"training": "run seconds", "prediction": "predict seconds", "refinement": "refine seconds"}
    paper = printed("runtime").set_index("problem").reindex(problems.names("paper"))
    lines: list[dict[str, object]] = []
    for problem in paper.index:
        part = found[found["problem"] == problem]
        means = {column: of(part, method)[measured[column]].mean() for column, method in sources.items()}
        lines.append({"problem": problem, "seconds": "ours"} | {name: float(f"{s:.3g}") for name, s in means.items()})
        lines.append({"problem": problem, "seconds": "paper"} | paper.loc[problem].to_dict())
    return pd.DataFrame(lines)


def case_study(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """List the car case study seed by seed; 13.7 % is the most that these intents allow."""
    lines: list[dict[str, object]] = [
        {"run": f"seed {row.seed}"} | {name: round(float(np.mean(value)), 3) for name, value in row.measures.items()}
        for row in sorted(rows, key=lambda row: row.seed)
        if row.method == "case study"
    ]
    required("case_study", pd.DataFrame(lines), "units of 'case study'")
    before, after, gain = CASE_STUDY
    limits = printed("case_study").set_index("constraint")["limit after"]
    paper = {"objective before": before, "objective after": after, "improvement percent": gain}
    paper |= {"intents followed": 1.0, "feasible": 1.0} | {f"limit {name}": value for name, value in limits.items()}
    return pd.DataFrame([*lines, {"run": "paper"} | paper])


def _share(stage: str, found: pd.Series[float], paper: float, deviation: float) -> dict[str, object]:
    within = abs(found.mean() - paper) <= deviation + MARGIN
    return {
        f"{stage} %": round(found.mean(), 1),
        f"{stage} sd": round(found.std(), 1),
        f"paper {stage} %": paper,
        f"paper {stage} sd": deviation,
        f"{stage} within": ("yes" if within else "no") if found.notna().any() and not np.isnan(paper) else "",
    }


def _values(part: pd.DataFrame) -> dict[str, str]:
    """Write objective values as the paper does, infeasible ones marked."""
    marks = np.where(part["feasible"] > 0, "", " infeasible")
    texts = [f"{value:.2e}{mark}" for value, mark in zip(part["objective"], marks, strict=True)]
    return dict(zip(part["column"], texts, strict=True))


def _first_places(found: pd.DataFrame, paper: pd.DataFrame) -> list[dict[str, object]]:
    """Count the problems on which each method reaches the best feasible value; the paper's own count beside it."""
    wins = printed("single_threshold_wins")
    lines: list[dict[str, object]] = []
    for n in paper["n"].unique():
        part = found[((found["n"] == n) | (found["stage"] != "best")) & (found["feasible"] > 0)]
        best = part.groupby("problem")["objective"].transform("min")
        first = part[part["objective"] <= best + TIE * best.abs().clip(lower=1.0)]
        counts = dict.fromkeys(part["column"], 0) | first["column"].value_counts().to_dict()
        theirs = wins[wins["n"] == n].set_index("method")["wins"]
        for values, count in (("ours", counts), ("paper", theirs.to_dict())):
            lines.append({"problem": "first places", "n": n, "values": values} | count)
    return lines
