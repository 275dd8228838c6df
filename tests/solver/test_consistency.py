"""No answer is worse than the answer to stricter limits."""

from __future__ import annotations

import numpy as np
import pytest

from cbabo import Model, Settings, Study, problems
from cbabo.domain.query import Query
from cbabo.numerics.quasirandom import sobol
from cbabo.solver.consistency import consistent, full_answers
from cbabo.solver.continuous import SolverAnswer


@pytest.fixture(scope="module")
def model() -> Model:
    shipped = problems.get("ackley2_active")  # Many local optima, in which a solver ends now and then.
    study = Study.create(shipped.problem, "sqlite://", settings=Settings.default().replace(library=32))
    study.run(shipped.evaluate, budget=40, in_process=True)
    return study.model()


@pytest.mark.parametrize("fast", [False, True])
def test_relaxing_limits_never_costs(model: Model, fast: bool) -> None:
    box = model.problem.box
    loose = sobol(2, 3, 40).numpy()
    stricter = np.clip(loose - 0.1, 0.0, 1.0)
    both = model.predict_many(box.from_theta(np.vstack([stricter, loose])), fast=fast)
    mean, reachable = both.moments[0][:, 0], both.reachable
    span = np.ptp(mean[reachable])
    for strict, relaxed in zip(range(40), range(40, 80), strict=True):
        if reachable[strict]:
            assert reachable[relaxed]
            assert mean[relaxed] <= mean[strict] + 1e-4 * span


def test_a_worse_answer_is_replaced_by_one_to_stricter_limits(model: Model) -> None:
    solver, box = model.solver, model.problem.box
    query = Query.at(box, np.array([[0.4, 0.4], [0.6, 0.6]]))
    good = solver.predict(solver.bound(query.theta)[0], 0.98)
    assert good.probability >= 0.98 - 1e-6
    bad = SolverAnswer(good.x, good.objective + 0.5, good.probability)
    found = consistent(model.fast_map, query, (good, bad), 0.98)
    assert found[1].objective <= good.objective


def test_an_unreachable_answer_is_replaced(model: Model) -> None:
    solver, box = model.solver, model.problem.box
    query = Query.at(box, np.array([[0.4, 0.4], [0.6, 0.6]]))
    good = solver.predict(solver.bound(query.theta)[0], 0.98)
    lost = SolverAnswer(np.full(2, 0.99), -10.0, 0.1)
    assert consistent(model.fast_map, query, (good, lost), 0.98)[1].probability >= 0.98 - 1e-6


def test_a_verified_answer_is_left_only_for_less_expected_loss(model: Model) -> None:
    solver, box = model.solver, model.problem.box
    query = Query.at(box, np.array([[0.6, 0.6]]))
    found = solver.predict(solver.bound(query.theta)[0], 0.98)
    slightly_worse = SolverAnswer(found.x, found.objective + 1e-5, 1.0, measured=0)
    assert consistent(model.fast_map, query, (slightly_worse,), 0.98)[0].measured == 0


def test_a_full_answer_is_never_worse_than_the_fast_one(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the solver ends in a worse optimum, it starts again from the fast answer."""
    query = Query.at(model.problem.box, sobol(2, 5, 64).numpy())
    fast = consistent(model.fast_map, query, model.fast_map.answers(query, 0.98), 0.98)
    reached = [i for i, f in enumerate(fast) if f.probability >= 0.98 - 1e-6 and f.measured is None]
    worse = tuple(SolverAnswer(f.x, f.objective + 0.3, f.probability) for f in fast)
    monkeypatch.setattr(model.solver, "answers", lambda query, probability: worse)
    full = full_answers(model.fast_map, query, 0.98)
    assert len(reached) > 3
    for i in reached:
        assert full[i].objective <= fast[i].objective + 1e-6
        assert full[i].probability >= 0.98 - 1e-6
