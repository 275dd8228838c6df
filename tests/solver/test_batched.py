"""The surrogates at many designs at once say what they say at one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from cbabo import Settings
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from cbabo.solver.batched import BatchedPosterior
from cbabo.solver.continuous import Solver
from cbabo.surrogate import Surrogates
from cbabo.surrogate.gp import condition
from cbabo.surrogate.kernel import ADDITIVE, ROUGH, SMOOTH
from learned import cornered, evaluated, posterior_of, unit_points
from simulators import simulate_valley, valley

X = unit_points(7, 2, seed=3).numpy()
PLAIN = (SMOOTH, SMOOTH, SMOOTH)
STRAIGHT = (0.0, 0.0, 0.0)


def solver_of(family: tuple[int, ...] | None = None, stretch: tuple[float, ...] | None = None) -> Solver:
    """The valley's outputs f, c and g, learned with these kernels, and variables stretched by so much."""
    posterior = posterior_of(evaluated(valley(), simulate_valley, 25), Settings.default())
    s = posterior.surrogates
    h = replace(
        s.hyperparameters,
        family=None if family is None else torch.tensor(family),
        stretch=None if stretch is None else torch.tensor(stretch, dtype=torch.float64).unsqueeze(-1).expand(-1, 2),
        noise=torch.full_like(s.hyperparameters.noise, 1e-6),
    )
    return Solver(replace(posterior, surrogates=condition(s.x, s.y, h, s.centre, s.scale)))


@pytest.mark.parametrize("which", [None, [0], [1], [0, 2], [1, 2]])
@pytest.mark.parametrize(
    ("family", "stretch"),
    [
        (None, None),
        (PLAIN, STRAIGHT),
        ((SMOOTH, ROUGH, SMOOTH), STRAIGHT),
        ((ADDITIVE, SMOOTH, ROUGH), None),
        (PLAIN, (0.0, 0.0, 2.0)),
        ((ROUGH, ADDITIVE, SMOOTH), (2.0, 0.0, 1.0)),
    ],
)
def test_many_designs_are_seen_as_each_alone(
    family: tuple[int, ...] | None, stretch: tuple[float, ...] | None, which: list[int] | None
) -> None:
    solver = solver_of(family, stretch)
    batched = BatchedPosterior(solver, None if which is None else np.array(which))
    one = solver.pointwise
    z, (same, J), s = batched.mean(X), batched.mean_and_slope(X), batched.std(X)
    assert batched.columns[0] == 0  # the objective
    for i, x in enumerate(X):
        mean, slope = one.mean_and_jacobian(x)
        assert z[i] == pytest.approx(mean[batched.columns], abs=1e-7)
        assert same[i] == pytest.approx(z[i], abs=1e-9)
        assert J[i] == pytest.approx(slope[batched.columns], abs=1e-5)
        assert s[i] == pytest.approx(one.std(x)[batched.outputs], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("which", [[0], [1], [1, 2], [0, 1, 2]])
def test_requirements_are_those_that_are_looked_at(which: list[int]) -> None:
    solver = solver_of((SMOOTH, ROUGH, SMOOTH))
    batched = BatchedPosterior(solver, np.array(which))
    theta = np.array([[0.2, 0.9], [0.5, 0.5]])
    assert batched.bound(theta) == pytest.approx(solver.bound(theta)[:, which])
    assert batched.columns[batched.output].tolist() == solver.output[which].tolist()
    assert batched.sign.tolist() == solver.sign[which].tolist()


def test_deviations_are_found_anew_where_they_are_asked_for() -> None:
    batched = BatchedPosterior(solver_of((SMOOTH, ROUGH, SMOOTH), (0.0, 0.0, 1.0)))
    asked = np.random.default_rng(1).random((len(X), 3)) < 0.5
    asked[:, 1] = False
    given = np.full((len(X), 3), 7.0)
    found = batched.updated_std(given, X, asked)
    assert found[asked] == pytest.approx(batched.std(X)[asked], rel=1e-6)
    assert (found[~asked] == 7.0).all()
    assert (given == 7.0).all()
    assert 0 < asked.sum() < asked.size


def test_nothing_is_worked_out_where_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    batched = BatchedPosterior(solver_of())
    seen: list[int] = []
    before = Surrogates.mean_and_std
    monkeypatch.setattr(Surrogates, "mean_and_std", lambda s, x: (seen.append(len(x)), before(s, x))[1])
    asked = np.zeros((len(X), 3), dtype=np.bool_)
    asked[2:5, 1] = True
    batched.updated_std(np.zeros((len(X), 3)), X, asked)
    assert seen == [3]


def test_the_risk_of_failures_is_one_row_more() -> None:
    solver = make_model(cornered(), Learner(0), Settings.default(), 0).solver
    failure_model = solver.failure_model
    assert failure_model is not None
    for which in (None, np.array([1])):
        batched = BatchedPosterior(solver, which)
        z, J = batched.mean_and_slope(X)
        risk = failure_model.surrogates
        assert z[:, -1] * float(risk.scale) + float(risk.centre) == pytest.approx(
            risk.mean(torch.from_numpy(X))[:, 0].numpy(), abs=1e-9
        )
        limit = batched.bound(np.array([[0.5, 0.5]]))[0, -1]
        assert limit * float(risk.scale) + float(risk.centre) == pytest.approx(failure_model.limit)
        assert (batched.output[-1], batched.sign[-1]) == (z.shape[1] - 1, 1.0)
        assert J.shape == (len(X), z.shape[1], 2)
        assert batched.mean(X) == pytest.approx(z, abs=1e-9)
        assert batched.std(X).shape == (len(X), z.shape[1] - 1)  # its deviation is nobody's business


@pytest.mark.parametrize("which", [None, [0], [1, 2]])
def test_outputs_that_share_a_kernel_are_seen_as_each_alone(which: list[int] | None) -> None:
    posterior = posterior_of(evaluated(valley(), simulate_valley, 25), Settings.default())
    s = posterior.surrogates
    alike, first = torch.tensor([0, 1, 1]), torch.zeros(3, dtype=torch.int64)
    h = replace(
        s.hyperparameters,
        lengthscales=s.hyperparameters.lengthscales[alike],
        noise=torch.full_like(s.hyperparameters.noise, 1e-6),
        family=first,
        stretch=None,
    )
    solver = Solver(replace(posterior, surrogates=condition(s.x, s.y, h, s.centre, s.scale)))
    assert len(solver.posterior.surrogates.factor) == 2
    batched = BatchedPosterior(solver, None if which is None else np.array(which))
    z, (_, J), std = batched.mean(X), batched.mean_and_slope(X), batched.std(X)
    where = np.arange(std.size).reshape(std.shape) % 3 == 0
    updated = batched.updated_std(np.full_like(std, 9.0), X, where)
    assert updated == pytest.approx(np.where(where, std, 9.0), rel=1e-9)
    for i, x in enumerate(X):
        mean, slope = solver.pointwise.mean_and_jacobian(x)
        assert z[i] == pytest.approx(mean[batched.columns], abs=1e-7)
        assert J[i] == pytest.approx(slope[batched.columns], abs=1e-5)
        assert std[i] == pytest.approx(solver.pointwise.std(x)[batched.outputs], rel=1e-3, abs=1e-6)
