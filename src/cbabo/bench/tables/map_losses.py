"""Loss of methods that answer all thresholds after one run: our predictions and network beside the non-adaptive baselines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cbabo import problems
from cbabo.bench.campaign import Row
from cbabo.bench.metrics import mean_interval
from cbabo.bench.tables.answers import answers, of, ordered, pairs, required, samples, with_losses

OTHERS = ("paper", "lhs plain", "lhs strong")
"""The paper's settings, and 200 designs of a Latin hypercube re-optimised for each threshold: BoTorch's models, and ours."""
PLAIN = OTHERS[:2]
"""Those without our default method."""
BINDING = (*problems.names("active"), "g01", "g07", "c13", "three_truss", "rc_beam")
"""Problems whose limits bind."""
ROUGH = ("ackley", "c13", "gkxwc1")
"""First words of the problems with many local optima or kinks."""


def maps(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare the loss of our predictions with that of the other maps on problems whose limits bind, then on average.

    "difference": to the better of the two in PLAIN, answer by answer, with its interval.
    """
    found = with_losses(answers(rows, "direct"))
    found = found[found["problem"].isin(BINDING)]
    mine = required("maps", of(found, ours), f"answers of {ours!r} to problems whose limits bind")
    others = [name for name in OTHERS if name != ours]
    table = ordered(pd.DataFrame([_line(found, str(name), ours, others) for name in mine["problem"].unique()]))
    smooth = ~table["problem"].str.startswith(ROUGH)
    means = [_mean(table, f"mean of these {len(table)}")]
    means += [_mean(table[smooth], f"of the {smooth.sum()} smooth ones")] if smooth.any() else []
    return pd.concat([table, pd.DataFrame(means)], ignore_index=True)


def network(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare our network alone with the paper's on every problem: feasible shares and losses at the same thresholds."""
    found = with_losses(answers(rows, "direct", "network"))
    alone = found[(found["method"] == ours) & (found["stage"] == ("direct" if ours == "paper" else "network"))]
    paper = of(found, "paper")
    required("network", alone, f"answers of the network of {ours!r}")
    lines = []
    for name, part in alone.groupby("problem", sort=False):
        theirs = paper[paper["problem"] == name]
        shares = [round(100.0 * p["feasible"].mean(), 1) for p in (part, theirs)]
        lost = [round(p["loss"].mean(), 2) for p in (part, theirs)]
        line: dict[str, object] = {"problem": name, "seeds": part["seed"].nunique()}
        line |= {"feasible %": shares[0], "paper's feasible %": shares[1], "points": round(shares[0] - shares[1], 1)}
        lines.append(line | {"loss %": lost[0], "paper's loss %": lost[1]})
    return ordered(pd.DataFrame(lines))


def _line(found: pd.DataFrame, problem: str, ours: str, others: Sequence[str]) -> dict[str, object]:
    part = found[found["problem"] == problem]
    mine = of(part, ours)
    line: dict[str, object] = {"problem": problem, "seeds": mine["seed"].nunique()}
    line |= {"feasible %": round(100.0 * mine["feasible"].mean(), 1), "loss %": round(mine["loss"].mean(), 2)}
    lost = {name: of(part, name)["loss"].mean() for name in others}
    line |= {name: round(value, 2) for name, value in lost.items()}
    plain = [name for name in PLAIN if np.isfinite(lost.get(name, np.nan))]
    if plain:
        met = pairs(mine, of(part, min(plain, key=lambda name: lost[name])))
        interval = mean_interval(samples(met.assign(apart=met["loss"] - met["loss_theirs"]), "apart"))
        line |= {"difference": round(interval.mean, 2), "low": round(interval.low, 2), "high": round(interval.high, 2)}
    return line


def _mean(table: pd.DataFrame, title: str) -> dict[str, object]:
    columns = table.select_dtypes("number").columns.drop(["seeds", "low", "high"], errors="ignore")
    return {"problem": title} | {str(name): float(value) for name, value in table[columns].mean().round(2).items()}
