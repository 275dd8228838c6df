from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from cbabo import Constraint, Problem, Real
from cbabo import Objective as Goal
from cbabo.surrogate import Forms, Hyperparameters, Pointwise, Surrogates, choose, condition, fit, kernel
from cbabo.surrogate.likelihood import Objective, Priors, _log_priors
from cbabo.surrogate.posterior import _groups, _present_groups
from cbabo.surrogate.sharing import Sharing, split_by_relevance

GROUP = torch.tensor([0, 1, 1, 2, 1])


def data(n: int = 30, seed: int = 0) -> tuple[Tensor, Tensor]:
    x = torch.rand(n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    a, b, c = x.unbind(1)
    return x, torch.stack([a + b * c, torch.sin(3 * a) + b, 10 * a * c - 4, b.square(), 100 * (c - b * a)], dim=1)


def hyperparameters(family: int, stretched: bool) -> Hyperparameters:
    lengthscales = torch.tensor([[0.5, 0.7, 0.9], [0.4, 0.6, 0.8], [0.3, 0.5, 0.5]], dtype=torch.float64)[GROUP]
    noise = torch.tensor([1e-4, 1e-5, 1e-3], dtype=torch.float64)[GROUP]
    families = torch.tensor([0, family, 1])[GROUP]
    stretch = torch.tensor([0.0, 2.0, 0.0], dtype=torch.float64)[GROUP].unsqueeze(1).expand(-1, 3).clone()
    return Hyperparameters(
        lengthscales,
        noise,
        torch.arange(5, dtype=torch.float64) / 10,
        amplitude=torch.arange(1, 6, dtype=torch.float64),
        family=families,
        stretch=stretch if stretched else None,
    )


def alone(s: Surrogates, j: int) -> Surrogates:
    """One output with a covariance matrix of its own."""
    h = s.hyperparameters
    parts = {f.name: getattr(h, f.name) for f in fields(h)}
    mine = {name: part[j : j + 1] for name, part in parts.items() if isinstance(part, Tensor)}
    return condition(s.x, s.y[:, j : j + 1], replace(h, **mine))


FORMS = [(f, s) for f in (kernel.SMOOTH, kernel.ROUGH) for s in (False, True)] + [(kernel.ADDITIVE, False)]


@pytest.fixture(params=FORMS)
def shared(request: pytest.FixtureRequest) -> Surrogates:
    return condition(*data(), hyperparameters(*request.param))


def test_groups_are_numbered_by_their_first_output() -> None:
    sharing = Sharing.of(torch.tensor([7, 3, 7, 3, 3]))
    assert sharing.group.tolist() == [0, 1, 0, 1, 1]
    assert sharing.first.tolist() == [0, 1]
    assert sharing.slot.tolist() == [0, 0, 1, 1, 2]
    assert (sharing.size, sharing.is_trivial) == (3, False)
    assert Sharing.of(torch.arange(4)).is_trivial


def test_one_factor_for_each_group(shared: Surrogates) -> None:
    assert shared.factor.shape == (3, 30, 30)
    assert shared.hyperparameters.sharing.group.tolist() == GROUP.tolist()


def test_sharing_changes_no_prediction(shared: Surrogates) -> None:
    x, _ = data(40, seed=1)
    mean, std = shared.mean_and_std(x)
    also_mean, gradient = shared.mean_and_gradient(x)
    loo_mean, loo_std = shared.leave_one_out()
    weights = torch.rand(2, 40, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    weights[:, :, 2] = 0.0
    vjp = shared.predict(x).vjp(*weights)
    expected_vjp = torch.zeros_like(vjp)
    for j in range(5):
        own = alone(shared, j)
        own_mean, own_std = own.mean_and_std(x)
        assert torch.allclose(mean[:, j], own_mean[:, 0], rtol=1e-9)
        assert torch.allclose(shared.mean(x)[:, j], own_mean[:, 0], rtol=1e-9)
        assert torch.allclose(also_mean[:, j], own_mean[:, 0], rtol=1e-9)
        assert torch.allclose(std[:, j], own_std[:, 0], rtol=1e-9)
        assert torch.allclose(gradient[:, j], own.mean_and_gradient(x)[1][:, 0], rtol=1e-8, atol=1e-8)
        assert torch.allclose(loo_mean[:, j], own.leave_one_out()[0][:, 0], rtol=1e-7, atol=1e-9)
        assert torch.allclose(loo_std[:, j], own.leave_one_out()[1][:, 0], rtol=1e-9)
        expected_vjp += own.predict(x).vjp(*weights[:, :, j : j + 1])
    assert torch.allclose(vjp, expected_vjp, rtol=1e-7, atol=1e-7)


def test_sharing_changes_nothing_for_one_design(shared: Surrogates) -> None:
    at = np.array([0.3, 0.6, 0.2])
    weights = np.array([1.0, -0.5, 2.0, 0.25, 1.5])
    pointwise = Pointwise(shared)
    z, jacobian = pointwise.mean_and_jacobian(at)
    hessian = np.zeros((3, 3))
    for j in range(5):
        own = Pointwise(alone(shared, j))
        own_z, own_jacobian = own.mean_and_jacobian(at)
        assert z[j] == pytest.approx(own_z[0], rel=1e-9)
        assert jacobian[j] == pytest.approx(own_jacobian[0], rel=1e-8, abs=1e-9)
        assert pointwise.std(at)[j] == pytest.approx(own.std(at)[0], rel=1e-9)
        hessian += own.hessian(at, weights[j : j + 1])
    assert pointwise.hessian(at, weights) == pytest.approx(hessian, rel=1e-7, abs=1e-7)


def test_further_data_keep_the_groups(shared: Surrogates) -> None:
    more = shared.with_data(*data(4, seed=3))
    assert more.factor.shape == (3, 34, 34)


@pytest.mark.parametrize("priors", [Priors.sharp(3), Priors.botorch(3)])
@pytest.mark.parametrize("family", [None, torch.tensor([0, 1, 2])])
def test_the_objective_of_a_group_is_the_sum_of_its_members(priors: Priors, family: Tensor | None) -> None:
    x, y = data()
    z = ((y - y.mean(0)) / y.std(0)).T.contiguous()
    sharing = Sharing.of(GROUP)
    objective = Objective(x, z, priors, family, sharing)
    u = torch.tensor([[-0.7, -0.3, 0.1, -5.0], [-0.5, 0.2, 0.0, -6.0], [0.3, -0.2, -0.1, -4.0]], dtype=torch.float64)
    value, gradient = objective.value_and_gradient(u, torch.arange(3))
    flat = None if family is None else family[sharing.group]
    single, _ = Objective(x, z, priors, flat).value_and_gradient(u[sharing.group], torch.arange(5))
    assert value[0] == pytest.approx(float(single[0]), rel=1e-12)
    # Every single value holds the prior, the group's only once.
    members = single[sharing.group == 1]
    once = float(value[1]) * 30 * 3 - float(members.sum()) * 30
    assert once == pytest.approx(2 * float(_log_priors(u[1:2], priors, None)[0][0]), rel=1e-8)
    for i in range(4):
        step = torch.zeros_like(u)
        step[:, i] = 1e-5
        up, down = (objective.value_and_gradient(u + s, torch.arange(3))[0] for s in (step, -step))
        assert torch.allclose(gradient[:, i], (up - down) / 2e-5, rtol=1e-5, atol=1e-6)


def test_a_fit_of_groups() -> None:
    x, y = data()
    together = fit(x, y, priors=Priors.sharp(3), group=GROUP)
    h = together.hyperparameters
    assert h.sharing.group.tolist() == GROUP.tolist()
    assert h.lengthscales[1].equal(h.lengthscales[4])
    apart = fit(x, y, priors=Priors.sharp(3))
    assert h.lengthscales[0].tolist() == pytest.approx(apart.hyperparameters.lengthscales[0].tolist(), rel=1e-3)
    assert not apart.hyperparameters.lengthscales[1].equal(apart.hyperparameters.lengthscales[4])
    again = fit(x, y, priors=Priors.sharp(3), group=GROUP, warm=h)
    assert again.hyperparameters.sharing.groups == 3
    probe, truth = data(50, seed=5)
    error = ((together.mean(probe) - truth) / truth.std(0)).square().mean(0).sqrt()
    assert float(error.max()) < 0.02


def test_outputs_of_a_group_get_the_same_kernel() -> None:
    x, y = data(40)
    y = torch.stack([y[:, 0], y[:, 1].abs(), (y[:, 2] / 5).exp(), y[:, 3], (x[:, 0] - 0.4).abs()], dim=1)
    forms = Forms.plain(torch.ones(5, dtype=torch.float64), 3)
    surrogates = forms.fit(x, y, None, GROUP)
    chosen = choose(x, y, torch.full((5, 2), torch.nan, dtype=torch.float64), torch.zeros(3), forms, surrogates, GROUP)
    at = GROUP == 1
    assert len(chosen.family[at].unique()) == 1
    assert len(chosen.stretch[at].unique(dim=0)) == 1
    assert chosen.fit(x, y, surrogates.hyperparameters, GROUP).factor.shape[0] == 3


def test_outputs_that_depend_on_other_variables_do_not_share_a_kernel() -> None:
    relevance = torch.rand(40, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).pow(8)
    group = torch.cat([torch.zeros(1, dtype=torch.int64), torch.ones(39, dtype=torch.int64)])
    split = split_by_relevance(group, relevance)
    assert split[0] == 0
    assert 1 < len(split[1:].unique()) <= 6
    assert split_by_relevance(group, 3.0 * relevance).equal(split), "only directions count"
    alike = split_by_relevance(group, torch.ones(40, 5, dtype=torch.float64))
    assert alike.tolist() == [0] + [1] * 39
    assert split_by_relevance(group, torch.zeros(40, 5, dtype=torch.float64)).equal(alike), "constant outputs"


def test_groups_stay_until_forms_are_chosen_again() -> None:
    problem = Problem("p", [Real("a", 0, 1)], Goal("f"), [Constraint("s", "<=", low=1.0, high=2.0)]).expanded({"s": 3})
    h = hyperparameters(kernel.SMOOTH, False)
    last = replace(
        h, lengthscales=h.lengthscales[:4], noise=h.noise[:4], constant=h.constant[:4], amplitude=None, family=None
    )
    assert _present_groups(problem, None).tolist() == [0, 1, 1, 1]
    assert _present_groups(problem, last).tolist() == [0, 1, 1, 2]


def test_parts_under_the_same_limits_are_a_group() -> None:
    limits = [
        Constraint("s", "<=", low=1.0, high=2.0),
        Constraint("t", "<=", low=1.0, high=2.0),
        Constraint("u", ">=", low=0.0, high=0.5, outputs=["s[0]"]),
    ]
    problem = Problem("p", [Real("a", 0, 1)], Goal("f"), limits).expanded({"s": 3, "t": 2})
    assert problem.outputs == ("f", "s[0]", "s[1]", "s[2]", "t[0]", "t[1]")
    assert _groups(problem).tolist() == [0, 1, 2, 2, 4, 4]
