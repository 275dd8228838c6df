"""What known formulas buy: a stepped cantilever of 10 segments, with and without its formulas.

python benchmarks/formulas.py [--evaluations 60 100] [--seeds 1] [--smoke]

Each segment has a width and a height: 20 variables. The volume and the slenderness of every segment (height over width) are
formulas of these; the stress of every segment and the deflection of the end are simulated. "black box" learns all of them from
the simulator, "formulas" states the first two as `derived`. Both have the same number of evaluations. Losses are in percent of
the range of the optimal volume over the thresholds, and 100 for an answer that breaks a limit; the optimum at every threshold is
computed on the simulator itself. Rows with "fast" are about fast answers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize

from cbabo import Constraint, Objective, Problem, Real, Settings, Study
from cbabo.bench.metrics import losses
from cbabo.numerics.arrays import FloatArray
from cbabo.problems.kinked_functions import CANTILEVER_LENGTH, cantilever_members

SEGMENTS = 10
THRESHOLDS = 40
WIDTH, HEIGHT = (2.0, 12.0), (10.0, 60.0)  # cm
WIDTHS = [f"w{i}" for i in range(1, SEGMENTS + 1)]
HEIGHTS = [f"h{i}" for i in range(1, SEGMENTS + 1)]
SLENDER = [f"slenderness{i}" for i in range(1, SEGMENTS + 1)]


def stated(segments: int, formulas: bool) -> Problem:
    """Return the problem, with the volume and the slenderness as formulas or as outputs of the simulator."""
    w, h, slender = WIDTHS[:segments], HEIGHTS[:segments], SLENDER[:segments]
    volume = " + ".join(f"{a}*{b}" for a, b in zip(w, h, strict=True))
    derived = {"volume": f"{0.1 * CANTILEVER_LENGTH / segments!r}*({volume})"}
    derived |= {name: f"{b}/{a}" for name, a, b in zip(slender, w, h, strict=True)}
    return Problem(
        "cantilever with formulas" if formulas else "cantilever",
        [*(Real(name, *WIDTH) for name in w), *(Real(name, *HEIGHT) for name in h)],
        Objective("volume", unit="dm3"),
        [
            Constraint("stress", low=80.0, high=200.0, unit="MPa"),
            Constraint("deflection", low=15.0, high=60.0, unit="mm"),
            Constraint("slenderness", low=4.0, high=12.0, outputs=slender),
        ],
        derived=derived if formulas else None,
    )


def simulate(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return volumes (n), stresses (n x segments), deflections (n) and slendernesses (n x segments) of designs x."""
    volume, members = cantilever_members(x)
    width, height = np.split(x, 2, axis=1)
    return volume, members[:, :-1], members[:, -1], height / width


def evaluate(point: Mapping[str, float]) -> dict[str, object]:
    """Return everything, as a simulator does; formulas take nothing from it that they state themselves."""
    x = np.array([list(point.values())], dtype=np.float64)
    volume, stress, deflection, slender = simulate(x)
    every = dict(zip(SLENDER, slender[0].tolist(), strict=False))
    return {"volume": float(volume[0]), "stress": stress[0].tolist(), "deflection": float(deflection[0]), **every}


def violation(x: FloatArray, limits: FloatArray) -> FloatArray:
    """Return the largest violation (n) of limits (n x 3) by designs (n x d), as a share of each limit's range."""
    _, stress, deflection, slender = simulate(x)
    worst = np.column_stack([stress.max(1), deflection, slender.max(1)])
    return np.asarray(((worst - limits) / np.array([120.0, 45.0, 8.0])).max(1))


def optimum(segments: int, limits: FloatArray) -> float:
    """Return the least volume within limits (3); in logarithms of the variables the problem is convex, so that one start does."""
    low, high = (np.log(np.repeat([a, b], segments)) for a, b in zip(WIDTH, HEIGHT, strict=True))

    def slack(u: FloatArray) -> FloatArray:
        _, stress, deflection, slender = simulate(np.exp(u)[None])
        return np.log(np.concatenate([limits[0] / stress[0], limits[1] / deflection, limits[2] / slender[0]]))

    found = minimize(
        lambda u: float(np.log(simulate(np.exp(u)[None])[0][0])),
        0.5 * (low + high),
        bounds=list(zip(low, high, strict=True)),
        constraints={"type": "ineq", "fun": slack},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 300},
    )
    return float(np.exp(found.fun)) if float(slack(found.x).min()) > -1e-6 else np.nan


def main() -> None:
    """Read the command line and compare both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[60, 100])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--library", type=int, default=64, help="Entries of the library of solved thresholds.")
    parser.add_argument(
        "--smoke", action="store_true", help="Three segments and few evaluations, to see that it works."
    )
    given = parser.parse_args()
    segments, budgets = (3, [20]) if given.smoke else (SEGMENTS, given.evaluations)
    count = 6 if given.smoke else THRESHOLDS
    settings = Settings.default().replace(library=8 if given.smoke else given.library)
    limits = stated(segments, formulas=True).box.from_theta(np.random.default_rng(0).random((count, 3)))
    optima = np.array([optimum(segments, row) for row in limits])
    span = float(np.nanmax(optima) - np.nanmin(optima))
    print(
        f"{segments} segments, {count} thresholds, optimal volumes {np.nanmin(optima):.2f} to {np.nanmax(optima):.2f} dm3"
    )
    print("statement  seed evaluations answers    loss % feasible % stated %   cpu s")
    for seed in range(given.seeds):
        for name in ("black box", "formulas"):
            study = Study.create(
                stated(segments, name == "formulas"), "sqlite://", name=name, seed=seed, settings=settings
            )
            for budget in budgets:
                begun = time.process_time()
                study.run(evaluate, budget=budget, in_process=True)
                model = study.model()
                for fast in (False, True):
                    answers = model.predict_many(limits, fast=fast)
                    volume, feasible = simulate(answers.points)[0], violation(answers.points, limits) <= 1e-9
                    loss = np.nanmean(losses(volume, feasible, optima, span))
                    kept, claimed = 100.0 * feasible.mean(), 100.0 * answers.probability_feasible.mean()
                    row = f"{name:10s} {seed:4d} {budget:11d} {'fast' if fast else 'full':8s} {loss:8.3f} {kept:10.1f}"
                    print(f"{row} {claimed:8.1f} {time.process_time() - begun:7.1f}", flush=True)


if __name__ == "__main__":
    main()
