"""The default settings beyond the campaigns: processor time of runs, time of answers, and loss with failing evaluations.

python benchmarks/default.py cost          processor time of whole runs, default against the paper's settings, side by side
python benchmarks/default.py answers       one answer, a batch of 1,000, and fast ones; what the fast ones lose
python benchmarks/default.py failures      what 10 % failing evaluations cost, at random and in a corner of the cube

--problems, --seeds and --evaluations make any of them smaller. Losses are in percent of the objective's span over the box.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cbabo import Settings, Study, problems
from cbabo.answering.predict import Answers
from cbabo.bench.metrics import losses
from cbabo.bench.scoring import score_designs
from cbabo.bench.truth import Truth, truth
from cbabo.domain.space import Point
from cbabo.model import Model
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from cbabo.problems import ShippedProblem

SHARE = 0.1
"""Of evaluations that fail, or of the cube in which they do."""
LEARNED = 60
"""Evaluations after which failures should be avoided."""

HARD = [
    "g01",
    "g07",
    "three_truss",
    "rc_beam",
    "car_active",
    "speed_reducer_active",
    "pressure_vessel_active",
    "g04_active",
]
ANSWERED = ["car", "car_active", "g01", "g07", "g10", "three_truss", "rc_beam", "speed_reducer", "speed_reducer_active"]
Evaluate = Callable[[Point], dict[str, float]]


def main() -> None:
    """Read the command line and measure one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["cost", "answers", "failures"])
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=200)
    given = parser.parse_args()
    logging.getLogger("cbabo").setLevel(logging.ERROR)  # failures are meant here
    print(f"cores {os.cpu_count()}, load average {os.getloadavg()[0]:.1f}")
    {"cost": cost, "answers": answers, "failures": failures}[given.part](given)


def learn(
    shipped: ShippedProblem, settings: Settings, seed: int, count: int, evaluate: Evaluate | None = None
) -> Study:
    """Return a study after a run."""
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=settings)
    study.run(evaluate or shipped.evaluate, budget=count, workers=1)
    return study


def cost(given: argparse.Namespace) -> None:
    """Compare whole runs."""
    print("problem                seed   default s   paper s   ratio")
    for name in given.problems or ["car", "g01", "g07", "c13"]:
        seconds = []
        for seed in range(given.seeds):
            spent = []
            for settings in (Settings.default(), Settings.paper()):
                began = time.process_time()
                learn(problems.get(name), settings, seed, given.evaluations)
                spent.append(time.process_time() - began)
            seconds.append(spent)
            print(f"{name:22s} {seed:4d} {spent[0]:11.1f} {spent[1]:9.1f} {spent[0] / spent[1]:7.2f}", flush=True)
        default, paper = np.mean(seconds, axis=0)
        print(f"{name:22s} mean {default:11.1f} {paper:9.1f} {default / paper:7.2f}", flush=True)


def answers(given: argparse.Namespace) -> None:
    """Time answers, and compare fast ones with full ones."""
    print("problem                 one ms   of 1,000 ms   fast ms   ratio   loss %   fast loss %")
    for name in given.problems or ANSWERED:
        shipped, known = problems.get(name), truth(name)
        model = learn(shipped, Settings.default(), 0, given.evaluations).model()
        box = shipped.problem.box
        rows = box.from_theta(child(0, "answers").random((1000, len(box.names))))
        model.predict_many(rows[:1], fast=True)  # makes the library
        one = np.median([timed(partial(model.predict, box.named(row))) for row in rows[:100]])
        many = timed(partial(stated, model, rows, False))
        fast = np.median([timed(partial(stated, model, rows, True)) for _ in range(5)])
        lost = [loss(shipped, known, model.predict_many(known.thresholds, fast=f)).mean() for f in (False, True)]
        print(
            f"{name:22s} {1e3 * one:7.1f} {many:13.2f} {fast:9.2f} {many / fast:7.1f} {lost[0]:8.3f} {lost[1]:13.3f}",
            flush=True,
        )


def stated(model: Model, rows: FloatArray, fast: bool) -> FloatArray:
    """Return the probabilities of many answers."""
    return model.predict_many(rows, fast=fast).probability_feasible


def failures(given: argparse.Namespace) -> None:
    """Compare losses without failures, with random ones, and with a corner that always fails."""
    print("problem                seed   loss %   random %   corner %   in the corner after 60 %")
    for name in given.problems or HARD:
        shipped, known = problems.get(name), truth(name)
        inside = corner(shipped, known)
        found = []
        for seed in range(given.seeds):
            draws = child(seed, "failures").random(10 * given.evaluations)
            random = iter(draws)
            lost = []
            evaluators: Sequence[Evaluate] = (
                shipped.evaluate,
                failing(shipped, lambda point, random=random: float(next(random)) < SHARE),  # type: ignore[misc]
                failing(shipped, inside),
            )
            for evaluate in evaluators:
                study = learn(shipped, Settings.default(), seed, given.evaluations, evaluate)
                lost.append(loss(shipped, known, study.model().predict_many(known.thresholds)).mean())
            late = [inside(e.point) for e in study.evaluations][LEARNED:]
            found.append([*lost, 100 * np.mean(late)])
            print(f"{name:22s} {seed:4d}" + "{:9.2f} {:10.2f} {:10.2f} {:12.1f}".format(*found[-1]), flush=True)
        print(f"{name:22s} mean" + "{:9.2f} {:10.2f} {:10.2f} {:12.1f}".format(*np.mean(found, axis=0)), flush=True)


def corner(shipped: ShippedProblem, known: Truth) -> Callable[[Point], bool]:
    """Return whether a design lies in the corner of the cube, of a tenth of its volume, that is farthest from the optima."""
    space = shipped.problem.space
    middle = np.nanmedian(space.unit(known.x), axis=0)
    side = SHARE ** (1.0 / space.dimension)

    def inside(point: Point) -> bool:
        u = space.unit(space.array([point]))[0]
        return bool(np.all(np.where(middle > 0.5, u, 1.0 - u) <= side))

    return inside


def failing(shipped: ShippedProblem, fails: Callable[[Point], bool]) -> Evaluate:
    """Return the simulator with failures where `fails` says so."""

    def evaluate(point: Point) -> dict[str, float]:
        if fails(point):
            raise RuntimeError("the mesh did not converge")
        return shipped.evaluate(point)

    return evaluate


def loss(shipped: ShippedProblem, known: Truth, found: Answers) -> FloatArray:
    """Return the loss of each answer in percent."""
    scores = score_designs(shipped, found.points, known.thresholds)
    return losses(scores.objective, scores.feasible, known.f, known.span)


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
