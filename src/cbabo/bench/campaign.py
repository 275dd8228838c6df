"""A benchmark grid, run unit by unit: resumable after kill -9, every finished unit a row of CSV.

A unit is one problem, method, seed and number of thresholds N. Its row is keyed by these and by the revision of the method's
results (see `revisions`).
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cbabo import problems
from cbabo.bench.methods import ALL_ROWS, METHODS, Measures, measure
from cbabo.domain.notation import read_yaml, sentence
from cbabo.errors import InputError, RunStoppedError
from cbabo.evaluators.function import describe
from cbabo.evaluators.guard import Guardian
from cbabo.evaluators.pool import WorkerPool

COLUMNS = ("problem", "method", "seed", "n", "code", "seconds", "measures")
ROUGH_SECONDS = 60.0
"""Estimated seconds of a unit where nothing has been measured."""
_SUITES = ("paper", "variant", "active")


@dataclass(frozen=True, order=True)
class Unit:
    """One piece of work."""

    problem: str
    method: str
    seed: int
    n: int


@dataclass(frozen=True)
class Row:
    """The result of a finished unit."""

    problem: str
    method: str
    seed: int
    n: int
    code: str
    """The revision of the method that computed it."""
    seconds: float
    """How long it took."""
    measures: Measures

    @property
    def unit(self) -> Unit:
        """The piece of work it belongs to."""
        return Unit(self.problem, self.method, self.seed, self.n)

    @property
    def current(self) -> bool:
        """Whether it has the present revision of its method."""
        return self.method in METHODS and METHODS[self.method].code == self.code


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    problems: list[str]
    methods: list[str]
    seeds: int = Field(ge=1)
    n: list[Annotated[int, Field(ge=1, le=ALL_ROWS)]] = [ALL_ROWS]


@dataclass(frozen=True)
class Campaign:
    """A grid of units and where its rows are kept."""

    name: str
    units: tuple[Unit, ...]
    results: Path

    @classmethod
    def read(cls, path: Path) -> Campaign:
        """Read a campaign file; `problems` may name suites; the rows go to a CSV file of the same name beside it.

        A method that answers all thresholds at once makes one unit for all N. Seeds come last, so that a campaign that is stopped
        early has compared everything.
        """
        try:
            stated = _File.model_validate(read_yaml(path))
            names = [name for entry in stated.problems for name in _problem_names(entry)]
        except ValidationError as error:
            raise InputError(f"{path}: {sentence(error)}") from error
        except InputError as error:
            raise InputError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from error
        for method in stated.methods:
            if method not in METHODS:
                raise InputError(f"{path}: unknown method {method!r}; expected one of {', '.join(METHODS)}")
        grid = itertools.product(range(stated.seeds), stated.n, stated.methods, names)
        units = dict.fromkeys(
            Unit(problem, method, seed, n if METHODS[method].per_threshold else ALL_ROWS)
            for seed, n, method, problem in grid
        )
        return cls(stated.name, tuple(units), path.with_suffix(".csv"))

    def pending(self) -> list[Unit]:
        """Return the units without a current row."""
        done = {row.unit for row in read_rows([self.results]) if row.current}
        return [unit for unit in self.units if unit not in done]


@dataclass(frozen=True)
class Progress:
    """The progress report after each unit."""

    unit: Unit
    seconds: float
    failure: str | None
    """Why it failed, in one line."""
    done: int
    total: int
    left: float
    """Seconds to go, estimated."""


def run(campaign: Campaign, workers: int, report: Callable[[Progress], None], executor: Executor | None = None) -> None:
    """Compute what is pending and append each finished unit at once; a failed unit is reported, and the others continue.

    workers: processes of this machine; an executor, such as a cluster's, gets all units at once instead.
    """
    pending = campaign.pending()
    queue = iter(pending)
    running: dict[Future[tuple[Measures, float]], Unit] = {}
    tally = _Tally(pending, Estimates.of(campaign))
    with _executing(workers, executor) as (pool, capacity):
        while True:
            for unit in itertools.islice(queue, capacity - len(running)):
                running[pool.submit(timed, measure, unit)] = unit
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                unit = running.pop(future)
                seconds, failure = 0.0, None
                try:
                    measures, seconds = future.result()
                except (BrokenExecutor, CancelledError) as error:
                    raise RunStoppedError(
                        f"the executor broke ({describe(error)}); start it anew and run again: "
                        "every finished unit is stored"
                    ) from error
                except Exception as error:  # A unit may fail in any way.
                    failure = describe(error)
                else:
                    append(campaign.results, unit, seconds, measures)
                report(tally.count(unit, seconds, failure))
    if tally.failed:
        raise RunStoppedError(f"{tally.failed} of {len(pending)} units failed; run again to try them once more")


def timed(compute: Callable[[str, str, int, int], Measures], unit: Unit) -> tuple[Measures, float]:
    """Compute a unit; return what it measures and how long it took."""
    began = time.perf_counter()
    measures = compute(unit.problem, unit.method, unit.seed, unit.n)
    return measures, time.perf_counter() - began


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """Return the rows of results files, the latest one for each unit; an incomplete last line is left out."""
    found: dict[Unit, Row] = {}
    for path in paths:
        for line in _lines(path):
            row = Row(
                line["problem"],
                line["method"],
                int(line["seed"]),
                int(line["n"]),
                line["code"],
                float(line["seconds"]),
                json.loads(line["measures"], parse_int=float),
            )
            found.pop(row.unit, None)
            found[row.unit] = row
    return list(found.values())


def append(path: Path, unit: Unit, seconds: float, measures: Measures) -> None:
    """Append a row and flush it to disk; an incomplete last line, left by a kill, is removed first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    complete = _complete(path)
    if not complete:
        writer.writerow(COLUMNS)
    content = json.dumps({name: _compact(value) for name, value in measures.items()}, separators=(",", ":"))
    code = METHODS[unit.method].code
    writer.writerow((unit.problem, unit.method, unit.seed, unit.n, code, f"{seconds:.3g}", content))
    with path.open("ab") as file:
        file.truncate(complete)
        file.write(text.getvalue().encode())
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class Estimates:
    """Estimated seconds of units, from existing rows."""

    by_kind: dict[tuple[str, str, int], float]
    """Mean seconds by problem, method and N."""
    by_method: dict[str, float]

    @classmethod
    def of(cls, campaign: Campaign) -> Estimates:
        """Take all rows beside a campaign, of any revision."""
        kinds: dict[tuple[str, str, int], list[float]] = {}
        methods: dict[str, list[float]] = {}
        for row in read_rows(sorted(campaign.results.parent.glob("*.csv"))):
            kinds.setdefault((row.problem, row.method, row.n), []).append(row.seconds)
            methods.setdefault(row.method, []).append(row.seconds)
        means = {kind: float(np.mean(seconds)) for kind, seconds in kinds.items()}
        return cls(means, {method: float(np.mean(seconds)) for method, seconds in methods.items()})

    def seconds(self, unit: Unit) -> float:
        """Return the seconds of a unit: of its kind, else the mean of its method, else a rough constant."""
        known = self.by_kind.get((unit.problem, unit.method, unit.n), self.by_method.get(unit.method))
        return ROUGH_SECONDS if known is None else known


class _Tally:
    """Counts finished and remaining units, and estimates the remaining time."""

    def __init__(self, pending: Sequence[Unit], estimates: Estimates) -> None:
        self._work = {unit: estimates.seconds(unit) for unit in pending}
        self._left = sum(self._work.values())
        self._all = self._left
        self._began = time.monotonic()
        self._done = 0
        self.failed = 0

    def count(self, unit: Unit, seconds: float, failure: str | None) -> Progress:
        """Take one more unit into account."""
        self._done += 1
        self.failed += failure is not None
        self._left = max(0.0, self._left - self._work[unit])
        pace = (time.monotonic() - self._began) / max(self._all - self._left, 1e-9)
        return Progress(unit, seconds, failure, self._done, len(self._work), pace * self._left)


@contextmanager
def _executing(workers: int, executor: Executor | None) -> Iterator[tuple[Executor, int]]:
    """Give an executor, and how many units to keep in it."""
    if executor is not None:
        yield executor, 10**9
        return
    with Guardian(), WorkerPool(workers) as pool:
        yield pool, workers


def _lines(path: Path) -> Iterator[dict[str, str]]:
    complete = _complete(path)
    if not complete:
        return
    text = path.read_bytes()[:complete].decode()
    lines = csv.DictReader(io.StringIO(text, newline=""))
    if tuple(lines.fieldnames or ()) != COLUMNS:
        raise InputError(
            f"{path}: expected a campaign's results with the columns {', '.join(COLUMNS)}, got {text.splitlines()[0]!r}; "
            "move the file away and run the campaign again"
        )
    yield from lines


def _complete(path: Path) -> int:
    """Return how many bytes of a results file are complete lines."""
    return path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0


def _compact(value: float | Sequence[float]) -> object:
    """Keep 12 digits, and whole numbers without a point."""
    if isinstance(value, float | int):
        short = float(f"{value:.12g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    return [_compact(v) for v in value]


def _problem_names(entry: str) -> Sequence[str]:
    if entry in _SUITES:
        return problems.names(entry)  # type: ignore[arg-type]
    return [problems.get(entry).name]
