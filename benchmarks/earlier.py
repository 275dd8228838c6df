"""Answers of an earlier revision of this package on the problems of `rough.py`, judged alike.

python benchmarks/earlier.py COMMIT --out results.csv [--problems kinks basins ...] [--seeds 5] [--jobs 1]
                             [--evaluations 60 100 200]

The commit is checked out into build/earlier/COMMIT (`git worktree`). A process with that package runs the study and answers; it
asks this process for every evaluation, so that the problems are those of the present code. Lines are appended in the format
of `rough.py`, with the commit in the column of settings; `rough.py --out results.csv --report` prints them beside the others.
Problems whose outputs have parts need a revision that knows parts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rough import Line, append, read, report
from subjects import Subject, chosen, subject

TOP = Path(__file__).resolve().parent.parent

STUDY = """
import json, logging, sys, time
from cbabo import Problem, Study

logging.disable(logging.CRITICAL)
task, replies = json.loads(sys.stdin.readline()), sys.stdout
sys.stdout = sys.stderr


def say(**message):
    replies.write(json.dumps(message) + "\\n")
    replies.flush()


def evaluate(point):
    say(point=point)
    reply = json.loads(sys.stdin.readline())
    if "failed" in reply:
        raise RuntimeError(reply["failed"])
    return reply["outputs"]


study = Study.create(Problem.from_dict(task["problem"]), "sqlite://", seed=task["seed"])
in_process = {"in_process": True} if "in_process" in Study.run.__code__.co_varnames else {}
spent = 0.0
for budget in task["evaluations"]:
    began = time.process_time()
    study.run(evaluate, budget=budget, **in_process)
    model = study.model()
    spent += time.process_time() - began
    found = model.predict_many(task["thresholds"])
    failed = sum(row.state == "failed" for row in study.evaluations)
    stated = [float(p) for p in found.probability_feasible]
    say(budget=budget, points=found.points.tolist(), stated=stated, failed=failed, seconds=spent)
"""
"""What the process with the earlier package runs: names of its public interface that have not changed."""


@dataclass(frozen=True)
class Unit:
    """One run of the earlier revision."""

    commit: str
    source: Path
    problem: str
    seed: int
    evaluations: tuple[int, ...]

    @property
    def label(self) -> str:
        """What stands in the column of settings."""
        return f"revision {self.commit}"

    def run(self) -> list[Line]:
        """Run the study in a process of its own, and judge its answers."""
        mine = subject(self.problem)
        environment = {**os.environ, "PYTHONPATH": str(self.source), "OMP_NUM_THREADS": "1"}
        words = [sys.executable, "-c", STUDY]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            return list(self._lines(mine, process))

    def _lines(self, mine: Subject, process: subprocess.Popen[str]) -> Iterator[Line]:
        assert process.stdin is not None
        assert process.stdout is not None
        evaluate, last = mine.evaluator(self.seed), self.evaluations[-1]

        def say(**message: Any) -> None:
            print(json.dumps(message), file=process.stdin, flush=True)

        say(
            problem=mine.problem.to_dict(),
            seed=self.seed,
            evaluations=self.evaluations,
            thresholds=mine.thresholds.tolist(),
        )
        for text in process.stdout:
            message = json.loads(text)
            if "point" in message:
                try:
                    say(outputs={name: float(value) for name, value in evaluate(message["point"]).items()})
                except Exception as error:
                    say(failed=str(error))
                continue
            count = len(mine.thresholds) if message["budget"] == last else len(mine.known.thresholds)
            worth = mine.judged(np.array(message["points"])[:count], np.array(message["stated"])[:count])
            cells = self.problem, self.seed, self.label, "direct", message["budget"]
            yield Line(*cells, count, message["failed"], float("nan"), message["seconds"], worth)
            if message["budget"] == last:
                return
        raise RuntimeError(f"the earlier revision ended with exit code {process.wait()}; see its traceback above")


def checked_out(commit: str) -> Path:
    """Return the folder with the packages of a commit."""
    place = TOP / "build" / "earlier" / commit
    if not place.exists():
        began = ["git", "-C", str(TOP), "worktree", "add", "--quiet", "--detach", str(place), commit]
        if subprocess.run(began).returncode:
            raise SystemExit(f"earlier: cannot check out {commit}; give a commit of this repository")
    return place / "src"


def missing(given: argparse.Namespace, source: Path) -> list[Unit]:
    """Return the runs whose lines the file does not have."""
    table, at = read(given.out), tuple(sorted(given.evaluations))
    units = [
        Unit(given.commit, source, name, seed, at) for seed in range(given.seeds) for name in chosen(given.problems)
    ]
    done = set(zip(table["problem"], table["seed"], table["settings"], table["evaluations"], strict=True))
    return [u for u in units if (u.problem, u.seed, u.label, at[-1]) not in done]


def run(units: Sequence[Unit], out: Path, jobs: int) -> None:
    """Run what is missing, some at a time, and append the lines of each run when it ends."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(unit.run): unit for unit in units}
        for future in as_completed(futures):
            unit, error = futures[future], future.exception()
            if error is None:
                append(out, future.result())
            state = "done" if error is None else repr(error)
            print(f"{time.strftime('%H:%M')} {unit.problem}, seed {unit.seed}: {state}", flush=True)


def main() -> None:
    """Read the command line, run what the file does not have yet, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="a commit of this repository")
    parser.add_argument("--out", type=Path, required=True, help="the CSV file to which results are appended")
    parser.add_argument("--problems", nargs="+", default=["kinks", "basins", "simulators"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[60, 100, 200])
    given = parser.parse_args()
    run(missing(given, checked_out(given.commit)), given.out, given.jobs)
    report(read(given.out))


if __name__ == "__main__":
    main()
