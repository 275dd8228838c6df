"""The failure model: a region in which the simulator fails is avoided, accidents are not mistaken for one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from cbabo import Problem, Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.methods.learner import Learner
from cbabo.methods.step import step
from cbabo.solver.continuous import Solver
from cbabo.surrogate import posterior as posterior_module
from cbabo.surrogate.failures import FailureModel, fit_failure_model
from learned import asked, cornered, evaluated, posterior_of, unit_points, with_failures
from simulators import lattice, simulate_lattice, simulate_valley, valley

DEFAULT = Settings.default()


def learned(evaluations: Evaluations) -> FailureModel:
    failure_model = fit_failure_model(evaluations)
    assert failure_model is not None
    return failure_model


def test_a_region_that_fails_is_known_inside_and_outside() -> None:
    failure_model = learned(cornered())
    x = unit_points(300, 2)
    a = 2.0 * x[:, 0] - 1.0
    p = failure_model.probability(x)
    assert bool((p >= 0.0).all())
    assert bool((p < 1.0).all())
    assert bool((p[a > 0.45] > failure_model.limit).all())
    assert float((p[a < 0.15] < failure_model.limit).double().mean()) > 0.95
    assert 0.05 <= failure_model.limit <= 0.5


def test_accidents_anywhere_give_no_model() -> None:
    everything = evaluated(valley(), simulate_valley, 80)
    for seed in range(6):
        failing = [everything[i].point for i in np.random.default_rng(seed).choice(80, size=12, replace=False)]
        evaluations = with_failures(everything, failing.__contains__)
        assert len(evaluations.failed) == 12
        assert fit_failure_model(evaluations) is None


def test_what_was_given_up_teaches_nothing() -> None:
    """The same region as above, but its evaluations were lost by the set-up."""
    evaluations = cornered()
    lost = [replace(row, cause="set-up") if row.state == "failed" else row for row in evaluations]
    assert fit_failure_model(Evaluations(evaluations.problem, tuple(lost))) is None
    assert len(evaluations.failed_designs) == len(evaluations.failed) > 0


@pytest.mark.parametrize("failures", [0, 1])
def test_too_few_failures_give_no_model(failures: int) -> None:
    rows = list(evaluated(valley(), simulate_valley, 20))
    for i in range(failures):
        rows[i] = Evaluation(rows[i].id, "failed", "run", rows[i].point, {}, failure="mesh")
    assert fit_failure_model(Evaluations(valley(), tuple(rows))) is None


def test_too_few_measured_designs_give_no_model() -> None:
    evaluations = evaluated(valley(), simulate_valley, 20)
    first = evaluations[0].point
    assert fit_failure_model(with_failures(evaluations, lambda p: p != first)) is None


def test_the_excess_and_its_derivative_belong_to_the_probability() -> None:
    failure_model = learned(cornered())
    for x in (np.array([0.5, 0.4]), np.array([0.63, 0.7]), np.array([0.7, 0.2])):
        excess, slope = failure_model.excess(x)
        p = float(failure_model.surrogates.mean(torch.from_numpy(x[None]))[0, 0])
        assert excess == pytest.approx(p - failure_model.limit, abs=1e-9)
        for i in range(2):
            ahead, behind = (failure_model.excess(x + h * np.eye(2)[i])[0] for h in (1e-6, -1e-6))
            assert slope[i] == pytest.approx((ahead - behind) / 2e-6, rel=1e-4, abs=1e-6)


def test_answers_stay_out_of_a_region_that_fails() -> None:
    """Without failures the optimum lies at a = 0.6; with them the answer goes as far as is tolerable, and no further."""
    evaluations = cornered()
    relaxed = np.array([1.0, 1.0])
    without = Solver(replace(posterior_of(evaluations, DEFAULT), failure_model=None)).answers(
        asked(valley(), relaxed[None]), 0.98
    )[0]
    posterior = posterior_of(evaluations, DEFAULT)
    assert posterior.failure_model is not None
    found = Solver(posterior).answers(asked(valley(), relaxed[None]), 0.98)[0]
    assert 2.0 * without.x[0] - 1.0 > 0.5
    assert -0.2 < 2.0 * found.x[0] - 1.0 < 0.4
    assert (
        float(posterior.failure_model.probability(torch.from_numpy(found.x[None])))
        <= posterior.failure_model.limit + 1e-6
    )


@pytest.mark.parametrize("blind", [False, True])
def test_a_run_learns_to_avoid_a_corner_that_fails(blind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unconstrained optimum lies inside, so that the best designs lie at its edge; a run without a model proposes it."""
    problem: Problem = valley()

    def fails(p: dict[str, float]) -> bool:
        return p["a"] > 0.4 and p["b"] < 20.0

    if blind:
        monkeypatch.setattr(posterior_module, "fit_failure_model", lambda evaluations: None)
    failed = 0
    for seed in range(3):
        evaluations = with_failures(evaluated(problem, simulate_valley, 40, seed=seed), fails)
        state: bytes | None = Learner(1).to_bytes()
        for _ in range(5):
            batch, state = step(evaluations, evaluations.running, state, DEFAULT, seed)
            new = [
                Evaluation(len(evaluations) + 1 + i, "failed", "run", p, {}, failure="mesh")
                if fails(p)
                else Evaluation(len(evaluations) + 1 + i, "complete", "run", p, simulate_valley(p))
                for i, p in enumerate(batch)
            ]
            evaluations = Evaluations(problem, (*evaluations, *new))
        assert len(evaluations) == 65
        failed += sum(e.state == "failed" for e in list(evaluations)[50:])
    assert failed >= 14 if blind else failed <= 9  # of 45


def test_failures_on_a_lattice_are_learned_too() -> None:
    rows = []
    for n in range(4):
        for e in evaluated(lattice(), simulate_lattice, 12, seed=n):
            state = "failed" if e.point["i"] == 3 else "complete"
            rows.append(replace(e, id=len(rows) + 1, state=state, outputs={} if state == "failed" else e.outputs))
    failure_model = learned(Evaluations(lattice(), tuple(rows)))
    p = failure_model.probability(torch.tensor([[1.0, 0.5], [0.0, 0.5]], dtype=torch.float64))
    assert float(p[0]) > failure_model.limit > float(p[1])
