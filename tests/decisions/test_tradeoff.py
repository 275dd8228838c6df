"""What a limit costs, along one limit and over two."""

from __future__ import annotations

import numpy as np
import pytest

from cbabo import Model
from cbabo.decisions.tradeoff import UNLIKELY, across, along, placed
from cbabo.errors import InputError
from learned import model_of
from simulators import simulate_valley, valley

AT = {"c": 1.2, "g": 0.1}


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(valley(), simulate_valley)


def test_a_curve_runs_from_strictest_to_most_relaxed_with_the_others_held(model: Model) -> None:
    curve = along(model, AT, "g", 5)
    assert curve.limits.tolist() == [1.0, 0.5, 0.0, -0.5, -1.0]  # a >= limit
    for limit, mean, std, chance in zip(curve.limits, curve.mean, curve.std, curve.probability, strict=True):
        answer = model.predict({**AT, "g": limit})
        assert mean == pytest.approx(answer.objective.mean, rel=1e-9)
        assert std == pytest.approx(answer.objective.std, rel=1e-6)
        assert chance == pytest.approx(answer.probability_feasible, rel=1e-6, abs=1e-12)
    assert curve.reachable.tolist() == (curve.probability >= UNLIKELY).tolist()


def test_a_map_holds_the_curves(model: Model) -> None:
    found = across(model, AT, ("c", "g"), 4)
    assert found.mean.shape == found.reachable.shape == (4, 4)
    for i, c in enumerate(found.limits[0]):
        curve = along(model, {**AT, "c": c}, "g", 4)
        assert found.mean[i] == pytest.approx(curve.mean, rel=1e-9)
        assert found.probability[i] == pytest.approx(curve.probability, rel=1e-6, abs=1e-12)


def test_designs_stand_at_the_strictest_limits_that_they_obey(model: Model) -> None:
    shown = placed(model.evaluations, AT, ("c",))
    assert 0 < len(shown.ids) < len(model.evaluations)
    rows = {row.id: row for row in model.evaluations}
    for id, limit, objective in zip(shown.ids, shown.limits[:, 0], shown.objective, strict=True):
        outputs = rows[int(id)].outputs
        assert objective == outputs["f"]
        assert limit == max(outputs["c"], 0.0)
        assert outputs["g"] >= AT["g"]
        assert outputs["g"] <= 2.5
    left_out = set(rows) - {int(id) for id in shown.ids}
    assert all(
        rows[id].outputs["g"] < AT["g"] or rows[id].outputs["g"] > 2.5 or rows[id].outputs["c"] > 2 for id in left_out
    )
    both = placed(model.evaluations, AT, ("c", "g"))
    assert both.limits.shape == (len(both.ids), 2)
    assert (both.limits[:, 1] <= 1.0).all()
    assert set(shown.ids) <= set(both.ids)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda m: along(m, AT, "h"), "unknown limit 'h'; expected one of c, g"),
        (lambda m: along(m, AT, "g_top"), "unknown limit 'g_top'"),
        (lambda m: along(m, {"c": 1.0}, "c"), "'g' is missing"),
        (lambda m: along(m, AT, "c", 1), "from 2 on, got 1"),
        (lambda m: across(m, AT, ("c", "c")), "two different limits"),
        (lambda m: placed(m.evaluations, AT, ("nothing",)), "unknown limit 'nothing'"),
    ],
)
def test_wrong_questions_get_a_sentence(model: Model, ask, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        ask(model)


def test_no_measured_design_is_placed_twice(model: Model) -> None:
    ids = placed(model.evaluations, AT, ("c", "g")).ids
    assert len(np.unique(ids)) == len(ids)
