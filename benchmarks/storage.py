"""What the database costs: opening a large study, and telling an evaluation beyond the bare commit.

python benchmarks/storage.py            10,000 evaluations
python benchmarks/storage.py --smoke    300 evaluations, to see that it works
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from cbabo import Study, problems


def main() -> None:
    """Fill a study, open it anew, and compare tell with a bare insert of the same row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a small study only")
    count = 300 if parser.parse_args().smoke else 10_000
    shipped = problems.get("car")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/large.db"
        study = Study.create(shipped.problem, url)
        trials = study.ask(count)
        tells = []
        for trial in trials:
            outputs = shipped.evaluate(trial.point)
            began = time.perf_counter()
            study.tell(trial.id, outputs)
            tells.append(time.perf_counter() - began)
        began = time.perf_counter()
        opened = Study.open(url, "car")
        first = time.perf_counter() - began
        evaluations = opened.evaluations
        whole = time.perf_counter() - began
        began = time.perf_counter()
        frame = evaluations.to_frame()
        framed = time.perf_counter() - began
        bare = bare_commits(Path(folder) / "bare.db", min(count, 1000), json.dumps(outputs))
    tell, commit = statistics.median(tells), statistics.median(bare)
    print(f"evaluations in the study            {len(frame)}")
    print(f"open the study                      {first:.3f} s")
    print(f"open and read all evaluations       {whole:.3f} s   (limit 2 s)")
    print(f"table of all evaluations            {framed:.3f} s")
    print(f"tell, median                        {1000 * tell:.2f} ms")
    print(f"bare commit of one row, median      {1000 * commit:.2f} ms")
    print(f"tell beyond the commit, median      {1000 * (tell - commit):.2f} ms  (limit 5 ms)")


def bare_commits(path: Path, count: int, text: str) -> list[float]:
    """Time the same durability without this package: one row per commit, WAL, synchronous=FULL."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, outputs TEXT)")
    times = []
    for number in range(count):
        began = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?, ?)", (number, text))
        connection.execute("COMMIT")
        times.append(time.perf_counter() - began)
    connection.close()
    return times


if __name__ == "__main__":
    main()
