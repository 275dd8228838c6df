"""A campaign's rows as frames: one line for each threshold that a method answered, or one for each unit of work.

stage: which of a method's answers. "direct": predicted; "network": by the network alone, where that is not the prediction;
"fast": many at once; "refined": after two more evaluations; "random start": the same from a random design; "evaluated": the best
design of the run; "best": of what a baseline evaluated for that threshold alone. The thresholds of a problem go by their row
number, so that answers to the same one can be compared whoever gave them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from cbabo import problems
from cbabo.bench.campaign import Row
from cbabo.bench.metrics import losses
from cbabo.bench.truth import truth
from cbabo.errors import InputError
from cbabo.numerics.arrays import FloatArray
from cbabo.problems import Suite

STAGES = ("direct", "network", "fast", "refined", "random start", "evaluated", "best")
SUITES: tuple[Suite, ...] = ("paper", "active", "variant")
"""In the order in which tables show them."""
SERIES = ["problem", "method", "stage", "n"]
"""The columns that tell one series of answers from another."""
_STATED, _TRUE = "stated at ", "true at "
_COLUMNS = [*SERIES, "seed", "row", "objective", "feasible", "violation", "probability"]


def answers(rows: Iterable[Row], *stages: str, after: int | None = None) -> pd.DataFrame:
    """Return every answer of these stages (of all, if none is named): one line for each threshold row of each unit.

    after: so many evaluations instead of the whole budget. Columns: problem, method, stage, n, seed, row, objective,
    feasible (0 or 1), violation (in total) and probability (as stated, else NaN).
    """
    suffix = "" if after is None else f"@{after}"
    frames = [
        _unit(row, stage, suffix)
        for row in rows
        for stage in stages or STAGES
        if f"{stage} objective{suffix}" in row.measures
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=_COLUMNS)


def with_losses(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column "loss" in percent, against the known optima; thresholds at which a problem is unbounded are left out."""
    parts = []
    for problem, part in table.groupby("problem", sort=False):
        known = truth(str(problem))
        best = known.f[part["row"].to_numpy(dtype=np.intp)]
        parts.append(part.assign(loss=losses(part["objective"], part["feasible"], best, known.span)))
    return pd.concat(parts, ignore_index=True).dropna(subset=["loss"]) if parts else table.assign(loss=[])


def pairs(mine: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Join two frames of answers to the same problem, seed and threshold row; the second one's columns end in "_theirs"."""
    return mine.merge(theirs, on=["problem", "seed", "row"], suffixes=("", "_theirs"))


def of(table: pd.DataFrame, *methods: str) -> pd.DataFrame:
    """Return the lines of these methods."""
    return table[table["method"].isin(methods)]


def units(rows: Iterable[Row], *names: str) -> pd.DataFrame:
    """Return measures unit by unit: problem, method, seed, n and a column for each name; lists averaged, NaN where absent."""
    lines = [
        (row.problem, row.method, row.seed, row.n, *(float(np.mean(row.measures.get(name, np.nan))) for name in names))
        for row in rows
    ]
    return pd.DataFrame(lines, columns=["problem", "method", "seed", "n", *names])


def targets(rows: Iterable[Row]) -> pd.DataFrame:
    """Return stated probability and true feasibility of answers at target probabilities, without measured designs.

    Columns: problem, method, seed, target, probability (as stated), feasible (0 or 1).
    """
    frames = [
        pd.DataFrame(
            {
                "problem": row.problem,
                "method": row.method,
                "seed": row.seed,
                "target": float(name.removeprefix(_STATED)),
            }
            | {"probability": stated, "feasible": row.measures[name.replace(_STATED, _TRUE)]}
        )
        for row in rows
        for name, stated in row.measures.items()
        if name.startswith(_STATED)
    ]
    columns = ["problem", "method", "seed", "target", "probability", "feasible"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def suites(table: pd.DataFrame) -> pd.Series[str]:
    """Return the suite of each line's problem."""
    return table["problem"].map(lambda name: problems.get(name).suite)


def suite_label(part: pd.DataFrame, suite: Suite) -> str:
    """Name the average over those problems of a suite that there are answers to."""
    return f"{suite} suite, {part['problem'].nunique()} of {len(problems.names(suite))}"


def samples(table: pd.DataFrame, column: str) -> list[FloatArray]:
    """Return a column as one array for each seed, as intervals want it."""
    return [part.to_numpy(dtype=np.float64) for _, part in table.groupby("seed")[column]]


def required(table: str, found: pd.DataFrame, what: str) -> pd.DataFrame:
    """Return what was found, or say what is missing if that is nothing at all."""
    if found.empty:
        raise InputError(f"table {table}: expected {what}, found none; compute them by: cbabo bench run CAMPAIGN.yaml")
    return found


def ordered(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Sort by problem, in the order of the catalogue, and then by these columns; other lines keep their order."""
    place = {name: i for i, name in enumerate(problems.names())}
    keys = table.assign(problem=table["problem"].map(place))
    return table.loc[keys.sort_values(["problem", *columns], kind="stable").index].reset_index(drop=True)


def _unit(row: Row, stage: str, suffix: str) -> pd.DataFrame:
    numbers = np.asarray(row.measures["row"], dtype=np.intp)
    stated = {
        name: np.broadcast_to(np.array(row.measures.get(f"{stage} {name}{suffix}", np.nan), dtype=float), numbers.shape)
        for name in ("objective", "feasible", "violation", "probability")
    }
    names = {"problem": row.problem, "method": row.method, "stage": stage, "n": row.n, "seed": row.seed}
    return pd.DataFrame(names | {"row": numbers} | stated)
