"""How long workers wait: four of them, evaluations of 0.5 to 3 s, asynchronous refill.

python benchmarks/running.py            48 evaluations, about 25 s
python benchmarks/running.py --smoke    12 evaluations of a tenth of the length
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time

from cbabo import Study, problems

WORKERS = 4


def main() -> None:
    """Run batch by batch and asynchronously, and print the share of the workers' time in which nothing ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a short run only")
    smoke = parser.parse_args().smoke
    shipped = problems.get("three_truss")
    scale = 0.1 if smoke else 1.0

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        time.sleep(scale * random.Random(point["x1"]).uniform(0.5, 3.0))
        return shipped.evaluate(point)

    for label, asynchronous in (("batch by batch", False), ("asynchronous", True)):
        with tempfile.TemporaryDirectory() as folder:
            study = Study.create(shipped.problem, f"sqlite:///{folder}/study.db")
            study.run(evaluate, budget=12 if smoke else 48, workers=WORKERS, asynchronous=asynchronous)
            rows = study.evaluations
        starts = [row.started.timestamp() for row in rows if row.started is not None]
        ends = sorted(s + row.seconds for s, row in zip(starts, rows, strict=True) if row.seconds is not None)
        busy = sum(row.seconds or 0.0 for row in rows)
        # The time that counts ends when there is nothing left to hand out: at the (WORKERS - 1)-th last end.
        span = ends[-WORKERS] - min(starts)
        counted = sum(
            max(0.0, min(ends[-WORKERS], s + (row.seconds or 0.0)) - s) for s, row in zip(starts, rows, strict=True)
        )
        print(
            f"{label:16s} {len(rows)} evaluations, {busy:.1f} s of work in {max(ends) - min(starts):.1f} s; "
            f"workers idle {100 * (1 - counted / (WORKERS * span)):.1f} % (limit when asynchronous: 10 %)"
        )


if __name__ == "__main__":
    main()
