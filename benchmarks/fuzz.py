"""Damaged files: whatever bytes are changed, there is no traceback, no hang, and no value that silently differs.

python benchmarks/fuzz.py databases                 1,000 damaged databases
python benchmarks/fuzz.py databases --count 100     fewer
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import signal
import sqlite3
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cbabo import Constraint, Integer, Objective, Problem, Real, Study
from cbabo.domain.evaluations import Evaluation
from cbabo.errors import CbaboError
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from cbabo.study.modelcache import cached_model
from cbabo.surfaces.records import status_record

NAMES = ("beam", "plate")
SECONDS = 60.0
"""Longer than this is a hang."""


@dataclass(frozen=True)
class Truth:
    """What a study holds before anything is damaged."""

    problem: Problem
    stated: tuple[Any, ...]
    rows: dict[int, Evaluation]
    state: bytes | None

    @classmethod
    def of(cls, study: Study) -> Truth:
        """Read a study."""
        stated = (study.name, study.seed, study.settings, study.versions, study.focused)
        return cls(study.problem, stated, {row.id: row for row in study.evaluations}, study.learner_state)


class OtherValueError(Exception):
    """Something differs from what was stored, and nothing was said."""


def main() -> None:
    """Damage files and report what became of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    databases = commands.add_parser("databases", help="databases of two studies")
    databases.add_argument("--count", type=int, default=1000)
    databases.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.getLogger("cbabo").setLevel(logging.CRITICAL)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        verdicts = fuzz_databases(Path(folder), given.count, given.seed)
    print(f"damaged databases                   {given.count}")
    for verdict in ("unchanged", "named", "refused", "traceback", "hang", "other value"):
        limit = "   (must be 0)" if verdict in ("traceback", "hang", "other value") else ""
        print(f"{verdict:<36}{verdicts[verdict]}{limit}")
    print(f"seconds                             {time.perf_counter() - began:.0f}")


def fuzz_databases(folder: Path, count: int, seed: int, *, models: bool = True) -> Counter[str]:
    """Damage a database `count` times in different ways; return how often each verdict was given."""
    whole = folder / "whole.db"
    truths = make_database(whole, models=models)
    chance = random.Random(seed)
    verdicts: Counter[str] = Counter()
    for number in range(count):
        damaged = folder / f"damaged-{number}.db"
        content = bytearray(whole.read_bytes())
        start = chance.randrange(len(content))
        for _ in range(chance.choice((1, 1, 1, 2, 4, 16, 64))):
            near = (start + chance.randrange(256)) % len(content)
            content[near] ^= chance.randrange(1, 256)
        damaged.write_bytes(content)
        for kept in folder.glob("whole.db.model-*"):
            shutil.copy(kept, folder / kept.name.replace("whole", damaged.stem))
        verdict = judge(damaged, truths, models=models)
        if verdict in ("traceback", "hang", "other value"):
            print(f"number {number} of seed {seed}: {verdict}")
        verdicts[verdict] += 1
        for file in folder.glob(f"{damaged.stem}.*"):
            file.unlink()
    return verdicts


def judge(file: Path, truths: dict[str, Truth], *, models: bool) -> str:
    """Use a damaged database like a user, and say what became of it."""
    url = f"sqlite:///{file}"
    refused = named = False
    try:
        with _time_limit():
            for name, truth in truths.items():
                try:
                    named |= use(url, name, truth, models=models)
                except CbaboError as error:
                    refused = _is_one_sentence(error)
            try:
                listed = bool(find_damage(Database.open(url)))
            except CbaboError as error:
                listed = _is_one_sentence(error)
            _demand(listed or not named, "damage that the check does not list")
    except TimeoutError:
        return "hang"
    except OtherValueError:
        traceback.print_exc()
        return "other value"
    except Exception:
        traceback.print_exc()
        return "traceback"
    return "refused" if refused else "named" if listed else "unchanged"


def use(url: str, name: str, truth: Truth, *, models: bool) -> bool:
    """Read a study, its status, its model and its next design; return whether something was named as damaged."""
    study = Study.open(url, name)
    _demand(study.problem == truth.problem, "the problem")
    evaluations = study.evaluations
    damages = study.damages
    named = {damage.id for damage in damages}
    for row in evaluations:
        _demand(truth.rows.get(row.id) == row, f"evaluation {row.id}")
    present = {row.id for row in evaluations}
    _demand(set(truth.rows) - present <= named, "an evaluation that is gone")
    status_record(study, evaluations)
    evaluations.to_frame()
    now = (study.name, study.seed, study.settings, study.versions, study.focused)
    _demand(now == truth.stated, "what the study states")
    _demand(study.learner_state == truth.state, "the learner's state")
    if models:
        cached_model(study).predict({})
    (trial,) = study.ask()
    _demand(trial.id not in truth.rows, f"the id {trial.id}, given out again")
    return bool(damages)


def make_database(file: Path, *, models: bool) -> dict[str, Truth]:
    """Write a database of two studies with everything that a study may hold; return what they hold."""
    url = f"sqlite:///{file}"
    truths = {}
    for seed, name in enumerate(NAMES):
        study = Study.create(_problem(), url, name, seed)
        study.add(pd.DataFrame([{"width": 1.5, "ribs": 2, **_simulate({"width": 1.5, "ribs": 2})}]))
        study.run(_awkward, budget=38)
        study.ask_at({"width": 2.0, "ribs": 1})
        study.forget([3, 4], "the mesh was too coarse")
        study.focus([{"stress": 4.0, "frequency": 3.0}])
        if models:
            cached_model(study)
        truths[name] = Truth.of(study)
    del study
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return truths


def _awkward(point: dict[str, float]) -> dict[str, float]:
    if point["ribs"] == 4:
        raise ValueError("the mesh did not converge")
    return _simulate(point)


def _simulate(point: dict[str, float]) -> dict[str, float]:
    width, ribs = point["width"], point["ribs"]
    return {
        "mass": width**2 + 0.3 * ribs,
        "stress": 12.0 / (width**2 + 0.1 * ribs),
        "frequency": 1.5 * width + 0.2 * ribs,
        "elements": 1000.0 * width,
    }


def _problem() -> Problem:
    limits = [
        Constraint("stress", "<=", low=1.0, high=9.0, nominal=5.0),
        Constraint("frequency", ">=", low=2.0, high=6.0),
    ]
    return Problem("beam", [Real("width", 1.0, 3.0), Integer("ribs", 0, 4)], Objective("mass"), limits)


def _is_one_sentence(error: CbaboError) -> bool:
    _demand(bool(str(error)) and "\n" not in str(error), "a message of several lines")
    return True


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise OtherValueError(what)


@contextmanager
def _time_limit() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    main()
