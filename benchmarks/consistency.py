"""Whether answers agree with each other: relaxing limits never costs, and fast answers are the full ones.

python benchmarks/consistency.py [--problems car_active kinks ...] [--seeds 2] [--evaluations 60 200] [--pairs 100]
                                 [--models FOLDER] [--out results.csv]

--problems takes names of problems, of groups of the rough suite and "active"; without it the active suite, kinks, basins and
noise5. --models keeps fitted models in a folder, and reads those that are there; what answers is made anew.

Every pair has random limits and stricter ones, each limit being tightened with a chance of one half. All answers are asked for in
calls of their own; "network" is the network alone, which promises nothing. A pair is violated if the stricter limits can be met
and the answer to the others is unreachable, or worse by more than 0.1 % of how far the optimum moves over the box. Curves have 41
limits and maps 15 x 15; their pairs are neighbours.
"differ": thresholds at which the objectives of the fast and of the full answer differ by more than 1 % of the same span, or only
one of them is reachable ("worse"), and those of them that are not marked ("lost"); "approximate": how many answers are marked.
"""

from __future__ import annotations

import argparse
import csv
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cbabo import Model, Study, problems
from cbabo.answering.predict import Answers
from cbabo.bench.truth import truth
from cbabo.decisions.tradeoff import across, along, reachable
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.numerics.threads import one_thread
from cbabo.problems.rough import GROUPS

WORSE = 1e-3
"""Of the span: a smaller difference is not a violation."""
DIFFERENT = 0.01
"""Of the span: fast and full answers that differ by more."""
GROUPS_MEASURED = ("active", "kinks", "basins", "noise5")


@dataclass(frozen=True)
class Line:
    """What was found for one kind of answers of one model."""

    problem: str
    seed: int
    evaluations: int
    answers: str
    pairs: int
    worse: int
    """Pairs whose looser limits have the worse answer."""
    lost: int
    """Pairs of which only the stricter limits are reachable."""
    largest: float
    """The largest loss by relaxing limits, in percent of the span."""


def measured(name: str, seed: int, evaluations: int, pairs: int, folder: Path | None) -> Iterator[Line]:
    """Compare the answers of one model."""
    model, span = fitted(name, seed, evaluations, folder), truth(name).span
    box, goal = model.problem.box, model.problem.objective.sign
    random = child(seed, "consistency")
    loose = random.random((pairs, len(box.names)))
    strict = np.where(random.random(loose.shape) < 0.5, loose * random.random(loose.shape), loose)

    def line(kind: str, f: FloatArray, reached: NDArray[np.bool_], before: FloatArray, had: NDArray[np.bool_]) -> Line:
        cost = np.where(reached & had, goal * (f - before) / span, 0.0)
        counts = len(cost), int((cost > WORSE).sum()), int((had & ~reached).sum())
        return Line(name, seed, evaluations, kind, *counts, 100.0 * float(cost.max(initial=0.0)))

    for kind, options in {"full": {}, "fast": {"fast": True}, "network": {"method": "pcm"}}.items():
        (f, reached), (before, had) = (
            joined([model.predict_many(row[None], **options) for row in box.from_theta(theta)])  # type: ignore[arg-type]
            for theta in (loose, strict)
        )
        yield line(kind, f, reached, before, had)
    f, reached = [], []
    for i, name_of_limit in enumerate(box.names):
        curve = along(model, box.named(box.from_theta(loose[i : i + 1])[0]), name_of_limit)
        f.append(curve.mean), reached.append(curve.reachable)
    yield line(
        "curves", *(np.array(part)[:, cut].ravel() for cut in (slice(1, None), slice(-1)) for part in (f, reached))
    )
    if len(box.names) > 1:
        found = across(model, box.named(box.from_theta(loose[:1])[0]), box.names[:2], 15)
        later, earlier = (
            [np.concatenate([p[cut].ravel(), p[:, cut].ravel()]) for p in (found.mean, found.reachable)]
            for cut in (slice(1, None), slice(-1))
        )
        yield line("maps", *later, *earlier)
    rows = box.from_theta(loose)
    full, fast = model.predict_many(rows), model.predict_many(rows, fast=True)
    gap = goal * (fast.moments[0][:, 0] - full.moments[0][:, 0]) / span
    differ = np.where(full.reachable & fast.reachable, np.abs(gap) > DIFFERENT, full.reachable != fast.reachable)
    counts = pairs, int(differ.sum()), int((differ & ~fast.approximate).sum())
    yield Line(name, seed, evaluations, "differ", *counts, 100.0 * float(np.abs(gap).max()))
    yield Line(name, seed, evaluations, "approximate", pairs, int(fast.approximate.sum()), 0, 0.0)


def joined(some: Sequence[Answers]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the objectives of some answers, and whether they can be met."""
    return np.concatenate([a.moments[0][:, 0] for a in some]), np.concatenate([reachable(a) for a in some])


def fitted(name: str, seed: int, evaluations: int, folder: Path | None, *, anew: bool = True) -> Model:
    """Return the model of a run, read if it is there; anew: without its library, which is then made by the present code."""
    kept = None if folder is None else folder / f"{name}-{seed}-{evaluations}.model"
    if kept is not None and kept.exists():
        model = Model.load(kept)
    else:
        shipped = problems.get(name)
        study = Study.create(shipped.problem, "sqlite://", seed=seed)
        study.run(shipped.evaluator(seed), budget=evaluations, in_process=True)
        model = study.model()
        if kept is not None:
            model.save(kept)
    return replace(model, library=None) if anew else model


def chosen(given: Sequence[str]) -> list[str]:
    """Return the problems that names and groups stand for."""
    groups = {"active": problems.names("active")} | {name: [s.name for s in some] for name, some in GROUPS.items()}
    return [name for word in given for name in groups.get(word, (word,))]


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=GROUPS_MEASURED)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[60, 200])
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    logging.getLogger("cbabo").setLevel(logging.ERROR)  # Failing evaluations are meant here.
    file = sys.stdout if given.out is None else given.out.open("w", newline="", encoding="utf-8")
    table = csv.writer(file, lineterminator="\n")
    table.writerow([f.name for f in fields(Line)])
    for seed in range(given.seeds):
        for name in chosen(given.problems):
            for evaluations in given.evaluations:
                with one_thread():
                    for line in measured(name, seed, evaluations, given.pairs, given.models):
                        table.writerow([f"{v:.3g}" if isinstance(v, float) else v for v in astuple(line)])
                file.flush()


if __name__ == "__main__":
    main()
