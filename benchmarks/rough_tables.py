"""Tables of the documentation from the lines of `rough.py`, in Markdown.

python benchmarks/rough_tables.py answers|calibration|loss|refinement [--results FILE] [--problems noise5 ...] [--earlier COMMIT]

answers: feasible share, stated probability and loss of every kind of answer, by group.
calibration: the surrogates' own answers at 0.8, 0.9 and 0.98: the stated probability of obeying the limits less the share found
  among designs for which the simulator returns, in points; the same of whether it returns at all, of direct answers; and the loss
  of margin: the gap of the answers at 0.98 less that of the answers without a margin.
loss: the loss of direct answers after each number of evaluations; with --earlier, that of the commit (lines of `earlier.py`)
  and the difference of runs with the same problem and seed.
refinement: the loss of answers refined by some evaluations, at the same thresholds.

Means weigh the problems of a group alike. Intervals in brackets hold 95 %, by bootstrap over seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd
from rough import AIMS, DIRECT, averaged, read
from subjects import chosen, group_of

from cbabo.bench.metrics import Interval

RESULTS = Path(__file__).parent / "results" / "rough.csv"
DEFAULT = "default"
"""The settings of the present method, as lines state them."""
EARLIER = "revision "
"""What stands before the commit in the lines of an earlier revision."""
PAIR = ["problem", "seed", "evaluations"]
"""What lines of two revisions have in common."""
Row = list[str]


def answers(table: pd.DataFrame) -> Iterator[Row]:
    """Yield a row for each kind of answer of each group."""
    yield ["group", "seeds", "answers", "evaluations", "feasible %", "stated %", "loss %"]
    for group, part in by_group(table):
        for (kind, n), rows in part.groupby(["answers", "evaluations"], sort=False):
            stated = averaged(rows, "stated").mean
            yield [
                *(group, seeds(rows), str(kind), str(n)),
                *(shown(averaged(rows, "feasible")), f"{stated:.1f}", shown(averaged(rows, "loss"))),
            ]


def calibration(table: pd.DataFrame) -> Iterator[Row]:
    """Yield a row for each problem, and for each group the means and the largest differences."""
    yield ["problem", "seeds", *(f"said less found at {aim:g}" for aim in AIMS), "returns", "loss of margin %"]
    for group, part in by_group(table):
        worst: list[list[float]] = []
        for name, rows in part.groupby("problem", sort=False):
            kinds = {str(kind): some for kind, some in rows.groupby("answers")}
            own = [kinds.get(f"surrogate@{aim:g}") for aim in AIMS]
            free = kinds.get("margin-free")
            if free is None or any(some is None for some in own):
                continue
            differences = [too_sure(some) for some in own if some is not None]
            assert own[-1] is not None
            last = kinds[DIRECT][kinds[DIRECT]["evaluations"] == free["evaluations"].iloc[0]]
            differences.append(float((last["success"] - last["returned"]).mean()))
            margin = float(own[-1]["gap"].mean() - free["gap"].mean())
            worst.append([*differences, margin])
            yield [str(name), seeds(free), *(f"{v:+.1f}" for v in differences), f"{margin:.2f}"]
        if worst:
            cells = pd.DataFrame(worst)
            average, distance, most = cells.mean(), cells.abs().mean(), cells.abs().max()
            yield [f"**{group}**, mean", "", *(f"{v:+.1f}" for v in average[:-1]), f"{average.iloc[-1]:.2f}"]
            yield [f"**{group}**, mean distance", "", *(f"{v:.1f}" for v in distance[:-1]), ""]
            yield [f"**{group}**, largest distance", "", *(f"{v:.1f}" for v in most[:-1]), f"{most.iloc[-1]:.2f}"]


def too_sure(rows: pd.DataFrame) -> float:
    """Return the stated probability less the share of answers that obey, of those for which the simulator returns, in points."""
    returned = rows["returned"].fillna(100.0)
    return float((rows["stated"] - 100.0 * rows["feasible"] / returned.where(returned > 0.0))[returned > 0.0].mean())


def loss(table: pd.DataFrame, earlier: pd.DataFrame | None = None) -> Iterator[Row]:
    """Yield a row for each problem and each group; earlier: the lines of another revision."""
    direct = table[table["answers"] == DIRECT]
    numbers = sorted(direct["evaluations"].unique())
    pairs = None if earlier is None else direct.merge(earlier, on=PAIR, suffixes=("", " earlier"))
    head = [
        f"{what} {n}" for n in numbers for what in (("after",) if pairs is None else ("after", "before", "difference"))
    ]
    yield ["problem", "seeds", *head]
    for group, part in by_group(direct):
        names = part["problem"].unique().tolist()
        for title, rows in [*((name, part[part["problem"] == name]) for name in names), (f"**{group}**", part)]:
            cells: Row = []
            for n in numbers:
                some = rows[rows["evaluations"] == n]
                cells.append(shown(averaged(some, "loss")) if len(some) else "")
                if pairs is not None:
                    both = pairs[(pairs["evaluations"] == n) & pairs["problem"].isin(some["problem"])]
                    cells += _compared(both) if len(both) else ["", ""]
            yield [title, seeds(rows), *cells]


def _compared(both: pd.DataFrame) -> Row:
    """Return the earlier loss, and the difference of the pairs."""
    both = both.assign(difference=both["loss"] - both["loss earlier"])
    return [f"{averaged(both, 'loss earlier').mean:.2f}", shown(averaged(both, "difference"))]


def refinement(table: pd.DataFrame) -> Iterator[Row]:
    """Yield a row for each problem and each group."""
    refined = table[table["answers"].str.startswith("refined")]
    kinds = sorted(refined["answers"].unique(), key=lambda kind: int(kind.split()[1]))
    yield ["problem", "seeds", *kinds]
    for group, part in by_group(refined):
        names = part["problem"].unique().tolist()
        for title, rows in [*((name, part[part["problem"] == name]) for name in names), (f"**{group}**", part)]:
            by_kind = [rows[rows["answers"] == kind] for kind in kinds]
            yield [title, seeds(rows), *(shown(averaged(some, "loss")) if len(some) else "" for some in by_kind)]


def by_group(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the lines of each group of problems."""
    groups = table["problem"].map(group_of)
    for group in dict.fromkeys(groups):
        yield group, table[groups == group]


def seeds(table: pd.DataFrame) -> str:
    """Return how many seeds each problem has at least."""
    return str(table.groupby("problem")["seed"].nunique().min())


def shown(interval: Interval) -> str:
    """Return a mean with its interval; a single seed has none."""
    mean = f"{interval.mean:.2f}"
    return mean if interval.low == interval.high else f"{mean} [{interval.low:.2f}, {interval.high:.2f}]"


def markdown(rows: Iterator[Row]) -> str:
    """Return a table; the first row is its head."""
    lines = list(rows)
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]])


TABLES: dict[str, Callable[[pd.DataFrame], Iterator[Row]]] = {
    "answers": answers,
    "calibration": calibration,
    "loss": loss,
    "refinement": refinement,
}


def table_of(arguments: Sequence[str] | None = None) -> str:
    """Return the table that the arguments of the command line ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--problems", nargs="+", default=[], help="names of problems or groups; all unless given")
    parser.add_argument("--earlier", metavar="COMMIT", help="compare with this commit's lines")
    given = parser.parse_args(arguments)
    whole = read(given.results)
    if given.problems:
        whole = whole[whole["problem"].isin(chosen(given.problems))]
    table = whole[whole["settings"] == DEFAULT]
    if given.table == "loss" and given.earlier:
        rows = loss(table, whole[whole["settings"] == f"{EARLIER}{given.earlier}"])
    else:
        rows = TABLES[given.table](table)
    return markdown(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    print(table_of(arguments))


if __name__ == "__main__":
    main()
