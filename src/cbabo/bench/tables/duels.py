"""Win rates: how often our answer beats another's at the same threshold, beside the paper's numbers.

Feasible beats infeasible, then the lower objective wins; ties count one half. Rates and their 95 % intervals, by bootstrap over
seeds and thresholds, are in percent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cbabo.bench.campaign import Row
from cbabo.bench.metrics import mean_interval, outcomes, tally
from cbabo.bench.printed import printed
from cbabo.bench.tables.answers import answers, of, ordered, pairs, required, samples

BASELINES = ("CMA-ES", "cEI", "ALBO", "SCBO", "LogcEI")
"""In the paper's order."""
_COUNTS = ["seeds", "compared", "wins", "ties", "losses", "win rate %", "low", "high"]


def win_rate_direct(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare our predictions with every baseline at every N."""
    return _against_baselines("win_rate_direct", rows, "direct", ours)


def win_rate_refined(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare our refined answers with every baseline at every N."""
    return _against_baselines("win_rate_refined", rows, "refined", ours)


def ablation(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare our predictions with those of runs on random candidates, and without monotonic guidance."""
    return _against_variants("ablation", rows, ours)


def beta(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare our predictions with those of runs with other confidence bounds."""
    return _against_variants("beta", rows, ours)


def inner_steps(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare our predictions with those of runs with other numbers of training steps."""
    return _against_variants("inner_steps", rows, ours)


def alpha(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare our predictions with those of runs with other weights of monotonic guidance."""
    return _against_variants("alpha", rows, ours)


def start(rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
    """Compare refinement that starts at the prediction with refinement that starts anywhere."""
    mine = of(answers(rows, "refined", "random start"), ours)
    met = pairs(mine[mine["stage"] == "refined"], mine[mine["stage"] == "random start"])
    required("start", met, f"refinements of {ours!r} from its predictions and from random designs")
    return ordered(_beside(_tallied(met, ["problem"]), printed("start"), ["problem"]))


def _against_baselines(table: str, rows: Sequence[Row], stage: str, ours: str) -> pd.DataFrame:
    met = pairs(of(answers(rows, stage), ours), of(answers(rows, "best"), *BASELINES))
    required(table, met, f"{stage} answers of {ours!r} and of a baseline to the same thresholds")
    key = ["problem", "n", "baseline"]
    met = met.drop(columns="n").rename(columns={"n_theirs": "n", "method_theirs": "baseline"})
    shown = _beside(_tallied(met, key), printed(table), key)
    place = shown["baseline"].map(BASELINES.index).rename("place")
    return ordered(shown.assign(place=place), "n", "place").drop(columns="place")


def _against_variants(table: str, rows: Sequence[Row], ours: str) -> pd.DataFrame:
    paper = printed(table)
    direct = answers(rows, "direct")
    met = pairs(of(direct, ours), of(direct, *paper["variant"].unique()))
    required(table, met, f"answers of {ours!r} and of its variants ({', '.join(paper['variant'].unique())})")
    key = ["variant", "problem"]
    shown = _beside(_tallied(met.rename(columns={"method_theirs": "variant"}), key), paper, key)
    place = {name: i for i, name in enumerate(paper["variant"].unique())}
    return ordered(shown).sort_values("variant", key=lambda v: v.map(place), kind="stable").reset_index(drop=True)


def _tallied(met: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Count wins, ties and losses of paired answers, one line for each value of the key."""
    result = outcomes(met["objective"], met["feasible"], met["objective_theirs"], met["feasible_theirs"])
    lines = []
    for values, part in met.assign(rate=100.0 * result).groupby(key, sort=False):
        count, interval = tally(part["rate"] / 100.0), mean_interval(samples(part, "rate"))
        numbers = [part["seed"].nunique(), len(part), count.wins, count.ties, count.losses]
        shares = np.round([count.rate, interval.low, interval.high], 1)
        lines.append([*values, *numbers, *shares])
    return pd.DataFrame(lines, columns=[*key, *_COUNTS])


def _beside(mine: pd.DataFrame, paper: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Put the paper's win rates beside ours; lines that only one of them has keep empty cells."""
    return mine.merge(paper.rename(columns={"win rate": "paper %"}), on=key, how="outer", sort=False)
