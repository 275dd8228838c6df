"""Printing tables for people, and JSON or CSV for machines.

Only results go to standard output; what a simulator prints is sent to standard error, so that `--format json` gives
JSON and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from cbabo.surfaces.cli.options import Format
from cbabo.surfaces.cli.terminal import escaped, unescaped
from cbabo.surfaces.records import csv_text, json_value, table_rows

_PIPE_WIDTH = 200
_ENDLESS = 100_000
_READABLE = 100


def print_frame(frame: pd.DataFrame, form: Format, title: str = "", *, exact: bool = False) -> None:
    """Print a table; `exact` writes numbers so that nothing of them is lost."""
    if form == "csv":
        stream = sys.stdout if sys.stdout.isatty() else unescaped(sys.stdout)  # A file keeps the data as they are.
        stream.write(csv_text(frame))
    elif form == "json":
        print_json(table_rows(frame))
    else:
        _print_table(frame, title, exact=exact)


def print_json(values: Any) -> None:
    """Print plain values as JSON."""
    sys.stdout.write(json.dumps(values, indent=2, allow_nan=False) + "\n")


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names with values, one line each."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(Text(escaped(name)), Text(cell(value)))
    _print(_console(), grid)


def print_paragraph(text: str) -> None:
    """Print text that is broken into lines of at most 100 columns."""
    width = min(_READABLE, shutil.get_terminal_size((_READABLE, 24)).columns) if sys.stdout.isatty() else _READABLE
    sys.stdout.write(textwrap.fill(escaped(" ".join(text.split())), width) + "\n")


def cell(value: Any, *, exact: bool = False) -> str:
    """Write one value on one line; escaped here already, so that a table is as wide as what is shown."""
    value = json_value(value)
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) and not exact else str(value)
    return escaped(" ".join(text.split("\n")))


def print_log(title: str, text: str) -> None:
    """Print what a simulator left behind, line by line."""
    sys.stdout.write("\n".join([f"\n--- {title}", *text.splitlines(), ""]))


@contextmanager
def simulator_output() -> Iterator[None]:
    """Send what is printed inside, also by compiled code, to standard error."""
    sys.stdout.flush()
    try:
        out, err = sys.stdout.fileno(), sys.stderr.fileno()
    except (OSError, AttributeError):  # captured, as in a notebook: there is only Python's own level
        with redirect_stdout(sys.stderr):
            yield
        return
    saved = os.dup(out)
    os.dup2(err, out)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, out)
        os.close(saved)


def _print_table(frame: pd.DataFrame, title: str, *, exact: bool) -> None:
    """Print as wide as it must be; a table that does not fit is turned on its side."""
    console = _console()
    names = [escaped(str(name)) for name in frame.columns]
    rows = [[cell(v, exact=exact) for v in row.values()] for row in table_rows(frame)]
    numeric = [pd.api.types.is_numeric_dtype(frame.iloc[:, i]) for i in range(len(names))]
    table = _table(names, rows, numeric)
    fits = console.measure(table, options=console.options.update(width=_ENDLESS)).minimum <= console.width
    if not fits and all(numeric):
        turned = [[name, *(row[i] for row in rows)] for i, name in enumerate(names)]
        table = _table(turned[0], turned[1:], [False] + [True] * len(rows))
    _print(console, *([Text(f"\n{escaped(title)}")] if title else []), table)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> Table:
    """Lay out a table for the terminal; texts from a study are never read as markup, and never cut off."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, is_number in zip(names, numeric, strict=True):
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _print(console: Console, *parts: RenderableType) -> None:
    with console.capture() as capture:
        console.print(*parts, sep="\n")
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def _console() -> Console:
    """Print as wide as the terminal, into a file or a pipe wider; without styles, which would be escaped."""
    return Console(color_system=None, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
