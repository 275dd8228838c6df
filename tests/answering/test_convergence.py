"""How far answers still move: the estimate against the truth, and what it must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmark_scripts import script
from cbabo import Settings, Study, problems
from cbabo.answering.convergence import convergence
from cbabo.domain.convergence import Convergence, read_share
from cbabo.domain.evaluations import Evaluations
from cbabo.errors import InputError
from cbabo.methods.learner import Learner
from cbabo.model import Model, make_model
from cbabo.surrogate import condition
from cbabo.surrogate.sampling import joint_samples
from learned import QUICK, evaluated
from simulators import lattice, make_beam, simulate_beam, simulate_lattice, simulate_valley, valley

SETTINGS = Settings.default().replace(library=16)


@pytest.fixture(scope="module")
def study() -> Study:
    truss = problems.get("three_truss")
    study = Study.create(truss.problem, "sqlite://", settings=SETTINGS)
    study.run(truss.evaluate, budget=45, in_process=True)
    return study


def model_of(evaluations: Evaluations) -> Model:
    return make_model(evaluations, Learner(0), SETTINGS, 0)


def test_the_figure_falls_and_holds_the_true_loss(study: Study) -> None:
    true_loss = script("enough").true_loss
    rows = study.evaluations
    early = model_of(Evaluations(rows.problem, rows.rows[:24]))
    before, after = convergence(early), convergence(study.model())
    assert before is not None
    assert after is not None
    assert (before.evaluations, before.window, after.evaluations, after.window) == (24, 8, 45, 15)
    assert after.figure < 0.5 * before.figure
    assert 0.0 <= after.risk < 0.05
    assert 0.0 <= before.risk < 0.05
    assert true_loss("three_truss", study.model())[0] < 2.0 * 100.0 * after.figure
    assert convergence(study.model()) == after  # The same to the last bit.


def test_nothing_is_said_too_early_or_of_a_network(study: Study) -> None:
    rows = study.evaluations
    assert convergence(model_of(Evaluations(rows.problem, rows.rows[:19]))) is None
    paper = make_model(rows, Learner(0), QUICK, 0)
    assert convergence(paper) is None
    empty = Study.create(rows.problem, "sqlite://")
    assert empty.convergence() is None


@pytest.mark.parametrize(
    ("problem", "simulate"), [(make_beam(), simulate_beam), (valley(), simulate_valley)], ids=["mixed", "fixed limit"]
)
def test_other_kinds_of_problems(problem, simulate) -> None:
    found = convergence(model_of(evaluated(problem, simulate, 24)))
    assert found is not None
    assert found.thresholds > 0
    assert 0.0 <= found.figure <= 1.0


def test_a_space_that_is_used_up_has_nothing_to_gain() -> None:
    problem = lattice()
    rows = tuple(row for n in range(2) for row in evaluated(problem, simulate_lattice, 12, seed=n).rows)
    designs = list(problem.space.designs())
    table = Evaluations(
        problem,
        tuple(
            replace(row, id=i + 1, point=designs[i % 12], outputs=simulate_lattice(designs[i % 12]))
            for i, row in enumerate(rows)
        ),
    )
    found = convergence(model_of(table))
    assert found is not None
    assert (found.moved, found.risk) == (0.0, 0.0)
    assert found.gain < 0.01


def test_samples_have_the_posterior_s_moments(study: Study) -> None:
    surrogates = study.model().surrogates
    x = torch.rand((6, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    normal = torch.randn((4000, 6, 4), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    samples = joint_samples(surrogates, x, normal)
    mean, std = surrogates.mean_and_std(x)
    least = 1e-4 * surrogates.scale  # What is added to a covariance matrix to factorise it.
    assert bool(((samples.mean(0) - mean).abs() < 0.1 * std + least).all())
    assert bool((samples.std(0) < 1.1 * std + least).all())  # Without noise, which the stated deviations may contain.
    at_data = joint_samples(surrogates, surrogates.x[:5], normal[:50, :5])
    assert float(((at_data - surrogates.y[:5]).abs() / surrogates.scale).max()) < 0.05


def test_what_a_kernel_cannot_follow_of_a_deterministic_output_is_sampled(study: Study) -> None:
    s = study.model().surrogates
    h = replace(s.hyperparameters, noise=torch.full_like(s.hyperparameters.noise, 0.05))
    x = torch.rand((6, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    normal = torch.randn((4000, 6, 4), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for nugget in (1.0, 0.0):
        rough = condition(s.x, s.y, replace(h, nugget=torch.full_like(h.noise, nugget)), s.centre, s.scale)
        spread, std = joint_samples(rough, x, normal).std(0), rough.mean_and_std(x)[1]
        assert spread.numpy() == pytest.approx(std.numpy(), rel=0.1)


def test_a_run_ends_when_its_answers_have_converged() -> None:
    truss = problems.get("gkxwc2_active")
    study = Study.create(truss.problem, "sqlite://", settings=SETTINGS)
    estimates: list[Convergence] = []
    study.run(truss.evaluate, budget=80, in_process=True, until="2%", on_convergence=estimates.append)
    count = len(study.evaluations)
    assert count < 80
    assert estimates[-1].figure <= 0.02 < estimates[0].figure or len(estimates) == 1
    assert all(found.evaluations % 10 == 0 for found in estimates)
    study.run(truss.evaluate, budget=80, in_process=True, until=0.02)
    assert len(study.evaluations) == count  # It has converged already.
    study.run(truss.evaluate, budget=count + 2, in_process=True)
    assert len(study.evaluations) == count + 2


@pytest.mark.parametrize("until", [0.0, 1.0, -0.1, "5", "0.5 % of it", "much", True, float("nan"), None])
def test_only_shares_are_taken(until: object) -> None:
    with pytest.raises(InputError, match="expected a share of the span such as 0.005"):
        read_share("until", until)


def test_the_paper_s_method_cannot_tell(study: Study) -> None:
    other = Study.create(study.problem, "sqlite://", settings=QUICK)
    with pytest.raises(InputError, match="until needs the default method"):
        other.run(problems.get("three_truss").evaluate, budget=5, until=0.01)


def test_words() -> None:
    found = Convergence(90, 30, 64, 0.004, 0.002, 0.001)
    assert str(found) == (
        "over the last 30 evaluations the answers at 64 thresholds moved by 0.4 % of the span; "
        "expected further gain 0.2 %, risk 0.1 %"
    )
    assert np.isclose(found.figure, 0.007)
    assert Convergence(90, 30, 64, moved=0.9, gain=0.4, risk=0.0).figure == 1.0
    assert "no limits are known to be met" in str(Convergence(20, 6, 0, 1.0, 1.0, 1.0))
