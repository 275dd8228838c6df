"""Make the tables and pictures of docs/benchmarks anew from recorded results; the words around them are left alone.

python benchmarks/refresh.py

A table follows a comment that says what it is and, step by step, what of it is shown:

    <!-- table NAME OURS; where EXPRESSION; columns A, B; drop A, B; wide ROWS, COLUMNS, VALUES; rates N -->

A table of the rough suite follows a comment with the arguments of `rough_tables.py`: <!-- rough answers --problems noise1 -->;
one of
`decisions.py` or `robust.py` follows <!-- decisions TOOL --> or <!-- robust TOOL -->.
A picture is ../figures/NAME-OURS.png.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import robust
from resuming import Rows
from rough_tables import table_of

import decisions
from cbabo.bench.campaign import Row, read_rows
from cbabo.bench.figures import FIGURES
from cbabo.bench.tables import TABLES
from cbabo.bench.tables.win_rates import BASELINES

HERE = Path(__file__).resolve().parent
DOCUMENTS = HERE.parent / "docs" / "benchmarks"
CAMPAIGNS = HERE / "campaigns"
RESULTS = HERE / "results"
SEEDS = 10
"""Seeds that tables of `decisions.py` and `robust.py` may have."""
MARK = re.compile(r"(<!-- (?P<kind>table|rough|decisions|robust) (?P<words>.*?) -->\n)(?:\|.*\n|\(no rows.*\n)*")
PICTURE = re.compile(r"\((\.\./figures/(\w+)-(\w+)\.png)\)")


def main() -> None:
    """Write every table, and draw every picture, anew."""
    for document in sorted(DOCUMENTS.glob("*.md")):
        before = document.read_text(encoding="utf-8")
        after = MARK.sub(lambda found: found.group(1) + KINDS[found["kind"]](found["words"]) + "\n", before)
        document.write_text(after, encoding="utf-8")
        for picture, name, ours in PICTURE.findall(after):
            FIGURES[name](rows(), DOCUMENTS / picture, ours)


def table(words: str) -> str:
    """Return one table in Markdown."""
    first, *steps = [part.strip() for part in words.split(";")]
    name, ours = first.split()
    try:
        found = TABLES[name](rows(), ours)
    except ValueError as error:
        return f"(no rows yet: {error})"
    for step in steps:
        verb, _, rest = step.partition(" ")
        found = STEPS[verb](found, rest)
    lines = [list(map(str, found.columns)), ["---"] * len(found.columns)]
    lines += [[shown(value) for value in line] for line in found.itertuples(index=False)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


@cache
def rows() -> list[Row]:
    """Return all rows of the campaigns."""
    return read_rows(sorted(CAMPAIGNS.glob("*.csv")))


def names(text: str) -> list[str]:
    """Return what commas separate."""
    return [name.strip() for name in text.split(",")]


def where(found: pd.DataFrame, expression: str) -> pd.DataFrame:
    """Keep lines."""
    return found.query(expression, engine="python")


def wide(found: pd.DataFrame, text: str) -> pd.DataFrame:
    """Make a column for each value of one of them."""
    line, column, value = names(text)
    return found.pivot(index=line, columns=column, values=value).reindex(found[line].unique()).reset_index()


def rates(found: pd.DataFrame, n: str) -> pd.DataFrame:
    """Show the win rates against every baseline at this N, with their intervals."""
    part = found[(found["n"] == int(n)) & found["win rate %"].notna()]
    cells = [f"{shown(a)} ({shown(b)} to {shown(c)})" for a, b, c in part[["win rate %", "low", "high"]].to_numpy()]
    return wide(part.assign(cell=cells), "problem, baseline, cell")[["problem", *BASELINES]]


STEPS: dict[str, Callable[[pd.DataFrame, str], pd.DataFrame]] = {
    "where": where,
    "columns": lambda found, text: found[names(text)],
    "drop": lambda found, text: found.drop(columns=names(text)),
    "wide": wide,
    "rates": rates,
}


KINDS: dict[str, Callable[[str], str]] = {
    "table": table,
    "rough": lambda words: table_of(words.split()),
    "decisions": lambda tool: Rows(RESULTS / "decisions.csv").table(
        tool, decisions.SMOOTH, range(SEEDS), decisions.COUNTS
    ),
    "robust": lambda tool: Rows(RESULTS / "robust.csv").table(tool, robust.PROBLEMS, range(SEEDS), robust.COUNTS),
}


def shown(value: object) -> str:
    """Write one cell: four digits, nothing where there is nothing."""
    if not isinstance(value, float | np.floating):
        return str(value)
    if np.isnan(value):
        return ""
    return f"{value:.0f}" if value == np.round(value) and abs(value) < 1e6 else f"{value:.4g}"


if __name__ == "__main__":
    main()
