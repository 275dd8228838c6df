"""Win rates: how often our answer beats another's at the same threshold, beside the paper's numbers.

Feasible beats infeasible, then the lower objective wins, or the lower violation of two infeasible answers; ties count one half.
Rates and their 95 % intervals, by bootstrap over seeds and thresholds, are in percent.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cbabo.bench.campaign import Row
from cbabo.bench.metrics import average_interval, outcomes, tally
from cbabo.bench.printed import printed
from cbabo.bench.tables.answers import SUITES, answers, of, ordered, pairs, required, samples, suite_label, suites

BASELINES = ("CMA-ES", "cEI", "ALBO", "SCBO", "LogcEI")
"""In the paper's order."""
ALL = "mean of these"
"""The label of the mean over baselines."""
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
    """Compare refinement that starts at the prediction with refinement from a random design."""
    mine = of(answers(rows, "refined", "random start"), ours)
    met = pairs(mine[mine["stage"] == "refined"], mine[mine["stage"] == "random start"])
    required("start", met, f"refinements of {ours!r} from its predictions and from random designs")
    return ordered(_beside(_tallied(met, ["problem"]), printed("start"), ["problem"]))


def _against_baselines(table: str, rows: Sequence[Row], stage: str, ours: str) -> pd.DataFrame:
    """Compare by suite, problem, N and baseline; the suites' lines come first."""
    met = pairs(of(answers(rows, stage), ours), of(answers(rows, "best"), *BASELINES))
    required(table, met, f"{stage} answers of {ours!r} and of a baseline to the same thresholds")
    met = met.drop(columns="n").rename(columns={"n_theirs": "n", "method_theirs": "baseline"})
    key, paper = ["problem", "n", "baseline"], printed(table)
    by_problem = _beside(_tallied(met, key), paper, key)
    place = by_problem["baseline"].map(BASELINES.index)
    by_problem = ordered(by_problem.assign(place=place), "n", "place").drop(columns="place")
    return pd.concat([*_by_suite(met, by_problem), by_problem], ignore_index=True)


def _by_suite(met: pd.DataFrame, by_problem: pd.DataFrame) -> list[pd.DataFrame]:
    """Average over the problems of each suite, then over baselines; the paper's numbers over those that we have too."""
    shared = by_problem.dropna(subset=["win rate %"])
    key = ["problem", "n", "baseline"]
    frames = []
    for suite in SUITES:
        part = met[suites(met) == suite]
        mine = _tallied(part.assign(of=part["problem"], problem=suite_label(part, suite)), key, within="of")
        paper = shared[suites(shared) == suite].groupby(["n", "baseline"])["paper %"].mean().round(1).reset_index()
        lines = mine.merge(paper, on=["n", "baseline"])
        means = [_mean(part) for _, part in lines.groupby("n") if len(part) > 1]
        lines = pd.concat([lines, pd.DataFrame(means)], ignore_index=True)
        place = lines["baseline"].map([*BASELINES, ALL].index)
        frames.append(lines.assign(place=place).sort_values(["n", "place"]).drop(columns="place"))
    return [frame for frame in frames if len(frame)]


def _mean(lines: pd.DataFrame) -> dict[str, object]:
    """Average one suite's lines at one N over baselines; without an interval, for the same answers of ours meet them all."""
    first = lines.iloc[0]
    mean = {"problem": first["problem"], "n": first["n"], "baseline": ALL, "seeds": lines["seeds"].min()}
    mean |= {name: lines[name].sum() for name in ("compared", "wins", "ties", "losses")}
    return mean | {name: round(lines[name].mean(), 1) for name in ("win rate %", "paper %")}


def _against_variants(table: str, rows: Sequence[Row], ours: str) -> pd.DataFrame:
    paper = printed(table)
    direct = answers(rows, "direct")
    met = pairs(of(direct, ours), of(direct, *paper["variant"].unique()))
    required(table, met, f"answers of {ours!r} and of its variants ({', '.join(paper['variant'].unique())})")
    key = ["variant", "problem"]
    shown = _beside(_tallied(met.rename(columns={"method_theirs": "variant"}), key), paper, key)
    place = {name: i for i, name in enumerate(paper["variant"].unique())}
    return ordered(shown).sort_values("variant", key=lambda v: v.map(place), kind="stable").reset_index(drop=True)


def _tallied(met: pd.DataFrame, key: list[str], within: str = "problem") -> pd.DataFrame:
    """Count wins, ties and losses of paired answers, one line for each value of the key; problems weigh alike in a rate."""
    mine, theirs = ([met[name + end] for name in ("objective", "feasible", "violation")] for end in ("", "_theirs"))
    result = outcomes(mine, theirs)
    lines = []
    for values, part in met.assign(outcome=result).groupby(key, sort=False):
        count = tally(part["outcome"])
        rate = average_interval([samples(problem, "outcome") for _, problem in part.groupby(within)])
        shares = [round(100.0 * share, 1) for share in (rate.mean, rate.low, rate.high)]
        lines.append([*values, part["seed"].nunique(), len(part), count.wins, count.ties, count.losses, *shares])
    return pd.DataFrame(lines, columns=[*key, *_COUNTS])


def _beside(mine: pd.DataFrame, paper: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Put the paper's win rates beside ours; lines that only one of them has keep empty cells."""
    return mine.merge(paper.rename(columns={"win rate": "paper %"}), on=key, how="outer", sort=False)
