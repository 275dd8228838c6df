"""A benchmark grid, run unit by unit: resumable after kill -9, every finished unit a row of CSV.

A unit is one problem, method, seed and number of thresholds N. Its row is keyed by these and by the version of the code that
computes (see `code_version`): a change of the engine makes new rows, a change of the command line does not.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from cbabo import problems
from cbabo.bench.methods import METHODS, measure
from cbabo.errors import EvaluationError, InputError
from cbabo.evaluators.guard import Guardian
from cbabo.evaluators.pool import WorkerPool
from cbabo.notation import read_yaml, sentence

COLUMNS = ("problem", "method", "seed", "n", "code", "metric", "value")
_OUTSIDE = ("bench", "cli", "web")  # folders whose code does not compute answers


@dataclass(frozen=True, order=True)
class Unit:
    """One piece of work."""

    problem: str
    method: str
    seed: int
    n: int


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    problems: list[str]
    methods: list[str]
    seeds: int
    n: list[int]


@dataclass(frozen=True)
class Campaign:
    """A grid of units and where its rows are kept."""

    name: str
    units: tuple[Unit, ...]
    results: Path

    @classmethod
    def read(cls, path: Path) -> Campaign:
        """Read a campaign file; `problems` may name suites; the rows go to a CSV file of the campaign's name beside it."""
        try:
            stated = _File.model_validate(read_yaml(path))
        except ValidationError as error:
            raise InputError(f"{path}: {sentence(error)}") from error
        names = [name for entry in stated.problems for name in _problem_names(entry)]
        for method in stated.methods:
            if method not in METHODS:
                raise InputError(f"{path}: unknown method {method!r}; expected one of {', '.join(METHODS)}")
        grid = itertools.product(range(stated.seeds), stated.n, stated.methods, names)
        units = tuple(Unit(problem, method, seed, n) for seed, n, method, problem in grid)
        return cls(stated.name, units, path.with_suffix(".csv"))

    def pending(self) -> list[Unit]:
        """Return the units without rows of this version of the code."""
        done = {
            (r["problem"], r["method"], int(r["seed"]), int(r["n"]))
            for r in rows(self.results)
            if r["code"] == code_version()
        }
        return [u for u in self.units if (u.problem, u.method, u.seed, u.n) not in done]


def run(campaign: Campaign, workers: int, report: Callable[[str], None]) -> None:
    """Compute what is pending, one process per worker, and append each finished unit at once."""
    pending = campaign.pending()
    began, total, failed = time.monotonic(), len(pending), 0
    with Guardian(), WorkerPool(workers) as pool:
        queue = iter(pending)
        running: dict[Future[dict[str, float]], Unit] = {}
        while True:
            for unit in itertools.islice(queue, workers - len(running)):
                running[pool.submit(measure, unit.problem, unit.method, unit.seed, unit.n)] = unit
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                unit = running.pop(future)
                try:
                    _append(campaign.results, unit, future.result())
                except EvaluationError as error:
                    failed += 1
                    report(f"{unit} failed: {error.reason}")
                total -= 1
                done = len(pending) - total
                left = (time.monotonic() - began) / done * total
                report(
                    f"{unit.problem} {unit.method} seed {unit.seed} N {unit.n}: done; {total} left, about {left / 60:.0f} min"
                )
    if failed:
        raise InputError(f"{failed} units failed; run again to try them once more")


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a results file; a last line that a kill cut short is left out."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["value"]]


@cache
def code_version() -> str:
    """Return a short hash of the code that computes answers."""
    root = Path(problems.__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _OUTSIDE:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


def _append(path: Path, unit: Unit, metrics: dict[str, float]) -> None:
    new = not path.exists() or not path.stat().st_size
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        key = (unit.problem, unit.method, unit.seed, unit.n, code_version())
        writer.writerows([(*key, name, repr(value)) for name, value in metrics.items()])
        file.flush()
        os.fsync(file.fileno())


def _problem_names(entry: str) -> Sequence[str]:
    if entry in ("paper", "variant", "active"):
        return problems.names(entry)  # type: ignore[arg-type]
    return [problems.get(entry).name]
