"""Many small quadratic programs at once, against another solver and against the conditions of a minimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from cbabo.numerics import qp
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.qp import Programs, continued, minimise


def value(given: Programs, i: int, p: FloatArray) -> float:
    violation = np.clip(given.A[i] @ p - given.c[i], 0.0, None).sum()
    return float(given.g[i] @ p + 0.5 * p @ given.H[i] @ p + given.mu[i] * violation)


def by_slsqp(given: Programs, i: int) -> FloatArray:
    """One of them with its violations as further variables."""
    g, H, A, c, low, high, mu = (part[i] for part in given)
    d, r = len(g), len(c)
    rows = np.column_stack([-A, np.eye(r)])
    found = minimize(
        lambda v: g @ v[:d] + 0.5 * v[:d] @ H @ v[:d] + mu * v[d:].sum(),
        np.append(np.clip(0.0, low, high), np.full(r, 1.0)),
        jac=lambda v: np.append(g + H @ v[:d], np.full(r, mu)),
        bounds=[*zip(low, high, strict=True), *[(0.0, None)] * r],
        constraints=[{"type": "ineq", "fun": lambda v: rows @ v + c, "jac": lambda v: rows}],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return np.asarray(found.x[:d])


def programs(seed: int, b: int = 12, d: int = 4, r: int = 3, slack: float = 0.3, mu: float = 50.0) -> Programs:
    """Random ones; slack: scale of the slack at p = 0; rows bind where it is small, and cannot be met where it is negative."""
    random = np.random.default_rng(seed)
    root = random.normal(size=(b, d, d))
    return Programs(
        g=random.normal(size=(b, d)) * 3.0,
        H=root @ root.transpose(0, 2, 1) + 0.1 * np.eye(d),
        A=random.normal(size=(b, r, d)),
        c=slack * random.random((b, r)),
        low=-random.random((b, d)),
        high=random.random((b, d)),
        mu=np.full(b, mu),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("slack", "mu"), [(0.3, 50.0), (5.0, 50.0), (-20.0, 50.0), (-1.0, 0.5)])
def test_the_same_as_another_solver(seed: int, slack: float, mu: float) -> None:
    """Rows that bind, that never do, that cannot be obeyed, and that are cheaper to break."""
    given = programs(seed, slack=slack, mu=mu)
    found = minimise(given)
    for i in range(len(given.g)):
        expected = by_slsqp(given, i)
        assert value(given, i, found.p[i]) == pytest.approx(value(given, i, expected), rel=1e-6, abs=1e-6)
        assert found.p[i] == pytest.approx(expected, abs=2e-4)


def seen_from(given: Programs, p: FloatArray) -> Programs:
    """The same programs with p (b x d) as the origin."""
    return given._replace(
        g=given.g + np.einsum("bij,bj->bi", given.H, p),
        c=given.c - np.einsum("bri,bi->br", given.A, p),
        low=given.low - p,
        high=given.high - p,
    )


@pytest.mark.parametrize("near", [0.0, 0.01, 3.0])
@pytest.mark.parametrize(("slack", "mu"), [(0.3, 50.0), (5.0, 50.0), (-20.0, 50.0), (-1.0, 0.5)])
def test_what_is_continued_ends_at_the_same_minimum(slack: float, mu: float, near: float) -> None:
    """From the solution of a program that differs by `near`, seen from where that is."""
    first = programs(7, b=60, d=6, r=5, slack=slack, mu=mu)
    before = minimise(first)
    change = near * np.random.default_rng(8).normal(size=first.g.shape)
    around = seen_from(first, before.p)
    around = around._replace(g=around.g + change)
    found, expected = continued(around, before.multipliers), minimise(around)
    for i in range(len(first.g)):
        assert value(around, i, found.p[i]) <= value(around, i, expected.p[i]) + 1e-7
    assert found.p == pytest.approx(expected.p, abs=1e-4)
    assert found.multipliers == pytest.approx(expected.multipliers, abs=1e-2 * mu)


def test_near_programs_are_continued_without_starting_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = programs(7, b=60, d=6, r=5)
    before = minimise(first)
    monkeypatch.setattr(qp, "minimise", None)
    found = continued(seen_from(first, before.p), before.multipliers)
    assert np.abs(found.p).max() < 1e-4


def test_what_is_guessed_wrong_may_be_left_to_few_iterations() -> None:
    given = programs(7, b=60, d=2, r=2, slack=5.0)
    nothing = np.zeros_like(given.c)
    rough, exact = minimise(given, 4), minimise(given)
    assert np.array_equal(continued(given, nothing, 0, 4).p, rough.p)
    found = continued(given, nothing, 1, 4).p
    guessed = np.abs(found - exact.p).max(1) < 1e-5
    assert 0 < guessed.sum() < len(found)
    assert found[~guessed] == pytest.approx(rough.p[~guessed], abs=1e-9)


def test_rows_that_say_the_same_are_no_obstacle() -> None:
    """Twice the same row: multipliers are then anything, and the system that guesses solve is singular."""
    one = programs(3, b=20, d=3, r=2, slack=0.05)
    A, c = np.concatenate([one.A, one.A], axis=1), np.concatenate([one.c, one.c], axis=1)
    twice = one._replace(A=A, c=c)
    found = continued(twice, np.ones_like(c))
    assert found.p == pytest.approx(minimise(one).p, abs=1e-4)
    none = continued(twice.some(slice(0)), c[:0])
    assert none.p.shape == (0, 3)


@pytest.mark.parametrize("slack", [0.3, 5.0, -20.0, -1.0])
@pytest.mark.parametrize("d", [1, 3, 12])
def test_a_solution_obeys_the_conditions_of_a_minimum(slack: float, d: int) -> None:
    given = programs(d, b=40, d=d, r=5, slack=slack)
    found = minimise(given)
    p, lam = found.p, found.multipliers
    over = np.einsum("brd,bd->br", given.A, p) - given.c
    assert (p >= given.low - 1e-9).all()
    assert (p <= given.high + 1e-9).all()
    assert (lam >= 0.0).all()
    assert (lam <= given.mu[:, None]).all()
    assert np.abs(lam[over < -1e-4]).max(initial=0.0) < 1e-3  # a row with slack has no price
    assert np.abs(lam - given.mu[:, None])[over > 1e-4].max(initial=0.0) < 1e-3  # a broken one has the full price
    slope = given.g + np.einsum("bij,bj->bi", given.H, p) + np.einsum("brd,br->bd", given.A, lam)
    inside = (p > given.low + 1e-5) & (p < given.high - 1e-5)
    assert np.abs(slope[inside]).max(initial=0.0) < 1e-3
    assert slope[p <= given.low + 1e-5].min(initial=0.0) > -1e-3  # at a bound it would go on, if it could
    assert slope[p >= given.high - 1e-5].max(initial=0.0) < 1e-3


def test_without_rows_that_bind_it_is_a_step_of_newton() -> None:
    given = programs(0, slack=1e3)
    wide = np.full_like(given.low, 100.0)
    found = minimise(given._replace(c=given.c + 1e3, low=-wide, high=wide))
    inside = np.abs(np.linalg.solve(given.H, -given.g[..., None])[..., 0]).max(1) < 50.0
    expected = np.linalg.solve(given.H, -given.g[..., None])[..., 0]
    assert inside.sum() > 5
    assert found.p[inside] == pytest.approx(expected[inside], abs=1e-6)
    assert np.abs(found.multipliers).max() < 1e-6


def test_a_program_worked_out_by_hand() -> None:
    """Nearest to (2, 2) where p1 + p2 <= 1, in a box that ends at 0.3 in p1: (0.3, 0.7), with multiplier 1.3."""
    given = Programs(
        np.array([[-2.0, -2.0]]),
        np.eye(2)[None],
        np.array([[[1.0, 1.0]]]),
        np.array([[1.0]]),
        np.array([[-1.0, -1.0]]),
        np.array([[0.3, 5.0]]),
        np.array([10.0]),
    )
    found = minimise(given)
    assert found.p[0] == pytest.approx([0.3, 0.7], abs=1e-6)
    assert found.multipliers[0] == pytest.approx([1.3], abs=1e-5)


def test_rows_that_contradict_each_other_are_broken_as_little_as_possible() -> None:
    """p <= -0.5 and p >= 0.5: anything between violates by 1 in all, so that the objective decides."""
    given = Programs(
        np.array([[-0.2]]),
        np.eye(1)[None],
        np.array([[[1.0], [-1.0]]]),
        np.array([[-0.5, -0.5]]),
        np.array([[-1.0]]),
        np.array([[1.0]]),
        np.array([100.0]),
    )
    found = minimise(given)
    assert found.p[0] == pytest.approx([0.2], abs=1e-5)
    assert found.multipliers[0] == pytest.approx([100.0, 100.0], abs=1e-2)


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    given = programs(7, b=600)
    found = minimise(given)
    for i in (0, 255, 256, 599):
        alone = minimise(given.some(slice(i, i + 1)))
        assert found.p[i] == pytest.approx(alone.p[0], abs=1e-9)
        assert found.multipliers[i] == pytest.approx(alone.multipliers[0], abs=1e-7)


def test_what_it_is_given_is_left_alone() -> None:
    given, same = programs(3), programs(3)
    minimise(given)
    for part, before in zip(given, same, strict=True):
        assert np.array_equal(part, before)


def test_no_programs_have_no_solutions() -> None:
    given = programs(3, b=0)
    assert minimise(given).p.shape == (0, 4)
    assert minimise(given).multipliers.shape == (0, 3)


def test_steep_and_flat_programs_stay_finite() -> None:
    """Second derivatives over twelve decades, as curvatures of a Lagrangian may have."""
    given = programs(5, b=30)
    for curved, steep, mu in (
        (1e-8, 1.0, 1.0),
        (1e8, 1.0, 1.0),
        (1e11, 1e-9, 1e10),
        (1.0, 1e12, 1e12),
        (1.0, 1e-12, 1e-6),
    ):
        scaled = given._replace(g=given.g * steep, H=given.H * curved, A=given.A * steep, mu=given.mu * mu)
        found = minimise(scaled)
        assert np.isfinite(found.p).all()
        assert np.isfinite(found.multipliers).all()
        assert (found.p >= given.low - 1e-9).all()
        assert (found.p <= given.high + 1e-9).all()
