"""Textbook problems on which no setting of direct answers was chosen: what answers lose, and how many are feasible.

python benchmarks/unseen.py [--problems welded_beam ...] [--seeds 3] [--evaluations 60 100 200]

A welded beam, a coil spring, a stepped cantilever, an I-beam, and a truss of ten bars with limits on the largest of ten
stresses and of eight displacements. True optima are the best of several SLSQP runs on the formulas themselves (for the truss on
every stress and displacement, which are smooth, not on their maximum). Losses are in percent of the optima's range. With the
default settings fast answers and those of the network alone are judged too, after the last evaluation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize

from cbabo import Constraint, Objective, Problem, Real, Settings, Study
from cbabo.answering.predict import Answers
from cbabo.bench.metrics import losses
from cbabo.domain.space import Point
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread

THRESHOLDS = 40
STARTS = 12


@dataclass(frozen=True)
class Case:
    """A problem with its formulas."""

    problem: Problem
    outputs: Callable[[FloatArray], FloatArray]
    """Design (d) -> raw outputs (q), in the problem's order."""
    smooth: Callable[[FloatArray], tuple[list[FloatArray], float]] | None = None
    """Design -> what each constraint is the largest of, and the objective; None: the outputs are smooth."""

    def evaluate(self, point: Point) -> dict[str, float]:
        """Simulate one design."""
        y = self.outputs(np.array([float(point[name]) for name in self.problem.space.names]))
        return dict(zip(self.problem.outputs, y.tolist(), strict=True))

    def optimum(self, theta: FloatArray) -> float:
        """Return the best objective at theta (k, unit cube); nan if none was found."""
        problem = self.problem
        limits = problem.box.named(problem.box.from_theta(theta[None])[0])
        low, high = (np.array([getattr(v, end) for v in problem.variables]) for end in ("low", "high"))
        scale = abs(float(self.outputs(0.5 * (low + high))[0]))

        def slack(u: FloatArray) -> FloatArray:
            x = low + u * (high - low)
            y = dict(zip(problem.outputs, self.outputs(x).tolist(), strict=True))
            parts = [np.array([y[c.name]]) for c in problem.constraints] if self.smooth is None else self.smooth(x)[0]
            bounds = [limits.get(c.name, c.limit) for c in problem.constraints]
            signs = [1.0 if c.sense == "<=" else -1.0 for c in problem.constraints]
            slacks = [s * (t - part) / max(abs(t), 1.0) for s, t, part in zip(signs, bounds, parts, strict=True)]  # type: ignore[arg-type, operator]
            return np.concatenate(slacks)

        best = np.nan
        random = np.random.default_rng(0)
        for _ in range(STARTS):
            found = minimize(
                lambda u: float(self.outputs(low + u * (high - low))[0]) / scale,
                random.random(len(low)),
                bounds=[(0.0, 1.0)] * len(low),
                constraints=[{"type": "ineq", "fun": slack}],
                method="SLSQP",
                options={"maxiter": 400, "ftol": 1e-12},
            )
            u = np.clip(found.x, 0.0, 1.0)
            if np.isfinite(u).all() and slack(u).min() > -1e-7:
                best = float(np.fmin(best, self.outputs(low + u * (high - low))[0]))
        return best


def welded_beam(x: FloatArray) -> FloatArray:
    """Cost; shear stress, bending stress, deflection, buckling load, weld beyond the beam."""
    h, length, t, b = x
    load, reach, young, shear = 6000.0, 14.0, 30e6, 12e6
    moment = load * (reach + length / 2.0)
    radius = np.sqrt(length**2 / 4.0 + ((h + t) / 2.0) ** 2)
    polar = 2.0 * np.sqrt(2.0) * h * length * (length**2 / 12.0 + ((h + t) / 2.0) ** 2)
    direct, twisted = load / (np.sqrt(2.0) * h * length), moment * radius / polar
    tau = np.sqrt(direct**2 + direct * twisted * length / radius + twisted**2)
    buckling = 4.013 * young * t * b**3 / (6.0 * reach**2) * (1.0 - t / (2.0 * reach) * np.sqrt(young / (4.0 * shear)))
    cost = 1.10471 * h**2 * length + 0.04811 * t * b * (14.0 + length)
    sigma, deflection = 6.0 * load * reach / (b * t**2), 4.0 * load * reach**3 / (young * b * t**3)
    return np.array([cost, tau, sigma, deflection, buckling, h - b])


def spring(x: FloatArray) -> FloatArray:
    """Weight; deflection, shear, surge and diameter, each normalised."""
    d, coil, turns = x
    shear = (4.0 * coil**2 - d * coil) / (12566.0 * (coil * d**3 - d**4)) + 1.0 / (5108.0 * d**2) - 1.0
    deflection, surge = 1.0 - coil**3 * turns / (71785.0 * d**4), 1.0 - 140.45 * d / (coil**2 * turns)
    return np.array([(turns + 2.0) * coil * d**2, deflection, shear, surge, (coil + d) / 1.5 - 1.0])


def cantilever(x: FloatArray) -> FloatArray:
    """Weight; deflection."""
    return np.array([0.0624 * x.sum(), (np.array([61.0, 37.0, 19.0, 7.0, 1.0]) / x**3).sum()])


def i_beam(x: FloatArray) -> FloatArray:
    """Deflection; area, stress."""
    h, b, web, flange = x
    inner = h - 2.0 * flange
    inertia = web * inner**3 / 12.0 + b * flange**3 / 6.0 + 2.0 * b * flange * ((h - flange) / 2.0) ** 2
    strong = web * inner**3 + 2.0 * b * flange * (4.0 * flange**2 + 3.0 * h * inner)
    stress = 18e4 * h / strong + 15e3 * b / (inner * web**3 + 2.0 * flange * b**3)
    return np.array([5000.0 / inertia, 2.0 * b * flange + web * inner, stress])


NODES = np.array([[720, 360], [720, 0], [360, 360], [360, 0], [0, 360], [0, 0]], dtype=np.float64)
BARS = np.array([[4, 2], [2, 0], [5, 3], [3, 1], [2, 3], [0, 1], [4, 3], [5, 2], [2, 1], [3, 0]])


def ten_bars(x: FloatArray) -> tuple[list[FloatArray], float]:
    """Stresses and displacements with both signs; weight."""
    along = NODES[BARS[:, 1]] - NODES[BARS[:, 0]]
    length = np.linalg.norm(along, axis=1)
    strain = np.zeros((10, 12))
    for i, (a, b) in enumerate(BARS):
        strain[i, 2 * a : 2 * a + 2], strain[i, 2 * b : 2 * b + 2] = -along[i] / length[i], along[i] / length[i]
    stiffness = (strain.T * (1e4 * x / length)) @ strain
    force = np.zeros(8)
    force[[3, 7]] = -100.0
    moved = np.linalg.solve(stiffness[:8, :8], force)
    stress = 1e4 / length * (strain[:, :8] @ moved)
    return [np.concatenate([stress, -stress]), np.concatenate([moved, -moved])], float(0.1 * (x * length).sum())


def truss(x: FloatArray) -> FloatArray:
    """Weight; largest stress, largest displacement."""
    parts, weight = ten_bars(x)
    return np.array([weight, parts[0].max(), parts[1].max()])


def _problem(name: str, bounds: dict[str, tuple[float, float]], constraints: list[Constraint]) -> Problem:
    return Problem(name, [Real(v, *ends) for v, ends in bounds.items()], Objective("objective"), constraints)


def _limit(name: str, low: float, high: float) -> Constraint:
    return Constraint(name, "<=", low=low, high=high)


CASES = {
    "welded_beam": Case(
        _problem(
            "welded_beam",
            {"h": (0.125, 2.0), "l": (0.1, 10.0), "t": (0.1, 10.0), "b": (0.125, 2.0)},
            [
                _limit("shear", 8e3, 18e3),
                _limit("bending", 20e3, 40e3),
                _limit("deflection", 0.05, 0.4),
                Constraint("buckling", ">=", limit=6000.0),
                Constraint("overhang", "<=", limit=0.0),
            ],
        ),
        welded_beam,
    ),
    "spring": Case(
        _problem(
            "spring",
            {"d": (0.05, 0.2), "coil": (0.25, 1.3), "turns": (2.0, 15.0)},
            [
                _limit("deflection", -0.5, 0.5),
                _limit("shear", -0.4, 0.2),
                _limit("surge", -5.0, 0.0),
                Constraint("diameter", "<=", limit=0.0),
            ],
        ),
        spring,
    ),
    "cantilever": Case(
        _problem("cantilever", {f"x{i}": (2.0, 10.0) for i in range(1, 6)}, [_limit("deflection", 0.5, 2.0)]),
        cantilever,
    ),
    "i_beam": Case(
        _problem(
            "i_beam",
            {"h": (10.0, 80.0), "b": (10.0, 50.0), "web": (0.9, 5.0), "flange": (0.9, 5.0)},
            [_limit("area", 150.0, 400.0), _limit("stress", 4.0, 12.0)],
        ),
        i_beam,
    ),
    "truss": Case(
        _problem(
            "truss",
            {f"a{i}": (0.1, 35.0) for i in range(1, 11)},
            [_limit("stress", 15.0, 40.0), _limit("displacement", 1.5, 4.0)],
        ),
        truss,
        ten_bars,
    ),
}


def main() -> None:
    """Read the command line, and compare the default settings with the paper's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[60, 100, 200])
    given = parser.parse_args()
    print("problem      settings answers  evaluations   loss %  worst seed   feasible %  stated %")
    with one_thread():
        for name in given.problems:
            case = CASES[name]
            k = len(case.problem.box.names)
            theta = np.random.default_rng(0).random((THRESHOLDS, k))
            best = np.array([case.optimum(row) for row in theta])
            theta, best = theta[np.isfinite(best)], best[np.isfinite(best)]
            span = float(np.ptp(best)) if k else 1.0
            for settings in ("default", "paper"):
                show(case, settings, theta, best, span, given.seeds, given.evaluations)


def show(
    case: Case, settings: str, theta: FloatArray, best: FloatArray, span: float, seeds: int, at: list[int]
) -> None:
    """Run, and print a line for each number of evaluations."""
    box = case.problem.box
    limits = box.from_theta(theta)
    results: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for seed in range(seeds):
        study = Study.create(case.problem, "sqlite://", seed=seed, settings=getattr(Settings, settings)())
        for n in at:
            study.run(case.evaluate, budget=n, workers=1)
            model = study.model()
            ways: dict[str, Callable[[FloatArray], Answers]] = {"direct": model.predict_many}
            if settings == "default" and n == max(at):
                ways["fast"] = partial(model.predict_many, fast=True)
                ways["network"] = partial(model.predict_many, method="pcm")
            for way, answer in ways.items():
                found = answer(limits)
                y = np.array([case.outputs(x) for x in found.points])
                feasible = box.feasible(y, limits)
                lost = losses(y[:, 0], feasible, best, span)
                shares = 100.0 * feasible.mean(), 100.0 * found.probability_feasible.mean()
                results.setdefault((way, n), []).append((lost.mean(), *shares))
    for (way, n), some in results.items():
        loss, share, stated = np.mean(some, axis=0)
        worst = max(loss for loss, _, _ in some)
        print(
            f"{case.problem.name:12s} {settings:8s} {way:8s} {n:11d} {loss:8.2f} {worst:11.2f} {share:12.1f} {stated:9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
