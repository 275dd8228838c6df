"""Old runs come in: tables of points and raw outputs, checked row by row, good rows kept."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cbabo.domain.categorical import Categorical
from cbabo.domain.evaluations import sem_column
from cbabo.domain.parts import Reading, count_parts, part_name, taken_apart
from cbabo.domain.problem import RESERVED, Problem
from cbabo.domain.space import AnyVariable, Point
from cbabo.errors import InputError, shown
from cbabo.evaluators.outputs import checked_sem, missing, output_number

_DELIMITERS = ",;\t"
_POINT_NUMBER = re.compile(r"\s*[-+]?\d*\.\d+(?:[eE][-+]?\d+)?\s*")
_COMMA_NUMBER = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class ImportReport:
    """What became of an imported table."""

    added: tuple[int, ...]
    """Ids of the evaluations that were stored."""
    problems: tuple[tuple[int, str], ...]
    """Rows left out: the line of the file (of a DataFrame: the row, from 1) and why."""
    known: int
    """How many rows were in the study already and were left out for that reason."""
    broken: tuple[tuple[int, str], ...] = ()
    """Rows whose designs break a known relation, and what they break: kept, because they were measured, but never an answer."""


@dataclass(frozen=True)
class CheckedRows:
    """The good rows and the others."""

    rows: tuple[tuple[Point, dict[str, Reading]], ...]
    problems: tuple[tuple[int, str], ...]
    known: int
    broken: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class _Table:
    names: list[str]
    lines: Iterable[tuple[int, Sequence[Any] | str]]
    """Line number and cells, or what is wrong with the line."""


def check_rows(
    problem: Problem,
    table: pd.DataFrame | str | Path,
    columns: Mapping[str, str] | None,
    known: Iterable[tuple[Mapping[str, Any], Mapping[str, float]]],
) -> CheckedRows:
    """Read a table whose columns are the variables and outputs, after renaming `columns` (theirs to ours).

    A column "<name> sem" holds standard errors of the column <name>; an output with parts has a column "<name>[0]" and so on for
    each. Further numeric columns are kept as further outputs. `known` holds rows already in the study, as (point, outputs):
    a row that measures the same at the same point is left out, so that a corrected file can be imported again.
    """
    seen = {_key(problem, point, outputs) for point, outputs in known}
    rows: list[tuple[Point, dict[str, Reading]]] = []
    problems: list[tuple[int, str]] = []
    broken: list[tuple[int, str]] = []
    read = _frame_table(table) if isinstance(table, pd.DataFrame) else _csv_table(Path(table))
    names = _renamed(problem, read.names, columns or {})
    for line, cells in read.lines:
        try:
            if isinstance(cells, str):
                raise InputError(cells)
            rows.append(_checked(problem, {name: v for name, v in zip(names, cells, strict=True) if name}))
        except InputError as error:
            problems.append((line, str(error).removeprefix("point: ")))
            continue
        if problem.region is not None and (what := problem.region.broken(rows[-1][0])):
            broken.append((line, f"the design breaks {what}; it is kept as data, but is never an answer"))
    new = [row for row in rows if _key(problem, *row) not in seen]
    return CheckedRows(tuple(new), tuple(problems), len(rows) - len(new), tuple(broken))


def _key(problem: Problem, point: Mapping[str, Any], outputs: Mapping[str, Reading]) -> str:
    values = problem.space.array([point])[0].tolist()
    numbers, _ = taken_apart(outputs)
    return json.dumps(values + [numbers[part] for name in problem.simulated for part in _columns_of(name, numbers)])


def _columns_of(output: str, names: Mapping[str, Any]) -> list[str]:
    """Return the columns that hold an output: its own, or those of its parts."""
    count = None if output in names else count_parts(output, names)
    return [output] if count is None else [part_name(output, i) for i in range(count)]


def _renamed(problem: Problem, names: list[str], columns: Mapping[str, str]) -> list[str]:
    """Return our names of the columns, empty for those without a name."""
    held = ", ".join(repr(name) for name in names)
    for theirs in columns:
        if theirs not in names:
            raise InputError(f"import: there is no column {theirs!r} to rename; the table has {held}")
    renamed = [columns.get(name, name) for name in names]
    absent = missing(dict.fromkeys(renamed), problem.simulated)
    for name in (*problem.space.names, *([] if absent is None else [absent])):
        if name not in renamed:
            raise InputError(
                f"import: expected a column {name!r}, found none among {held}; map the column that holds it"
            )
    for name in filter(None, renamed):
        if renamed.count(name) > 1 and name not in RESERVED:
            raise InputError(
                f"import: expected one column {name!r}, found {renamed.count(name)} among {held}; "
                "remove or rename the others"
            )
    return renamed


def _checked(problem: Problem, cells: Mapping[str, Any]) -> tuple[Point, dict[str, Reading]]:
    if cells.get("state") in ("failed", "running"):
        raise InputError(f"it is a {cells['state']} evaluation, not a measurement")
    point = problem.space.check({v.name: _cell(v, cells[v.name]) for v in problem.variables})
    outputs: dict[str, Reading] = {
        part: _with_error(part, _number(part, cells[part]), cells)
        for name in problem.simulated
        for part in _columns_of(name, cells)
    }
    errors = {sem_column(name) for name in cells}
    for name, value in cells.items():
        if name not in point and name not in outputs and name not in RESERVED and name not in errors:
            with suppress(InputError):
                number = output_number(name, _as_number(value))
                if math.isfinite(number):
                    outputs[name] = _with_error(name, number, cells)
    return point, outputs


def _with_error(name: str, number: float, cells: Mapping[str, Any]) -> Reading:
    """Return an output with the standard error that its row states, if it states one; an empty cell states none."""
    sem = _as_number(cells.get(sem_column(name)))
    if sem is None or (isinstance(sem, str) and not sem.strip()):
        return number
    sem = output_number(sem_column(name), sem)
    return number if math.isnan(sem) else {"value": number, "sem": checked_sem(name, sem)}


def _cell(variable: AnyVariable, value: Any) -> float | str:
    """Return the value of a variable; a label that looks like a number may have been read as one."""
    if not isinstance(variable, Categorical):
        return _number(variable.name, value)
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        raise InputError(f"{variable.name} is empty; expected a label")
    return value.strip() if isinstance(value, str) else f"{value}"


def _number(name: str, value: Any) -> float:
    number = _as_number(value)
    if number is None or (isinstance(number, str) and not number.strip()):
        raise InputError(f"{name} is empty; expected a number")
    try:
        number = output_number(name, number)
    except InputError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {shown(value)}")
    return float(number)


def _as_number(value: Any) -> Any:
    if isinstance(value, str) and "_" not in value:  # Python reads 1_000, nobody writes it into a table
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _frame_table(frame: pd.DataFrame) -> _Table:
    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
    return _Table(names, enumerate(zip(*columns, strict=True), start=1))


def _csv_table(path: Path) -> _Table:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror or error}); check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected a CSV file in UTF-8, got other bytes; save it again as CSV") from error
    if not text.strip() or "\0" in text:
        came = "a file of another kind" if text.strip() else "an empty file"
        raise InputError(f"{path}: expected a CSV file with a header line, got {came}")
    try:
        delimiter = max(_DELIMITERS, key=lambda d: len(next(_csv_lines(text, d))[1]))
        lines = list(_csv_lines(text, delimiter))
    except csv.Error as error:
        raise InputError(f"{path}: the file cannot be read as CSV ({error}); save it again as CSV") from error
    names = [name.strip() for name in lines[0][1]]
    cells = [row for _, row in lines[1:]]
    if delimiter == ";" and not any(_POINT_NUMBER.fullmatch(cell) for row in cells for cell in row):
        lines = [(number, [_with_point(cell) for cell in row]) for number, row in lines]
    return _Table(names, [(number, _fitting(row, names)) for number, row in lines[1:]])


def _csv_lines(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank with the number of the line where it begins."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    begin = 1
    for row in reader:
        if any(cell.strip() for cell in row):
            yield begin, row
        begin = reader.line_num + 1


def _with_point(cell: str) -> str:
    """Read 1,5 as one and a half, as spreadsheets write it that separate cells by semicolons."""
    return cell.replace(",", ".") if _COMMA_NUMBER.fullmatch(cell) else cell


def _fitting(row: list[str], names: list[str]) -> list[str] | str:
    if len(row) == len(names):
        return row
    if len(row) > len(names) and not any(cell.strip() for cell in row[len(names) :]):
        return row[: len(names)]
    return f"expected {len(names)} cells, got {len(row)}"
