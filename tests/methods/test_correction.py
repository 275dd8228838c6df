"""Improving an answer with the error just seen, and refinement where the solver answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cbabo import Constraint, Discrete, Model, Objective, Problem, Real, Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.query import Query
from cbabo.methods.correction import next_design
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from learned import Lab, model_of, refine
from simulators import lattice, simulate_lattice, simulate_valley, valley

DEFAULT = Settings.default().replace(initial_evaluations=30)
"""Forms of outputs are chosen after 30 evaluations only, so that surrogates of fewer have errors worth correcting."""
AT = {"c": 1.0, "g": 0.0}
QUERY = Query.of(valley().box, np.array([[1.0, 0.0]]))


def obeys(y: dict[str, float], c: float = 1.0, g: float = 0.0) -> bool:
    return y["c"] <= c + 2e-9 and g - 2e-9 <= y["g"] <= 2.5


def best_of_all(c: float = 1.0, g: float = 0.0) -> float:
    a, b = np.meshgrid(np.linspace(-1, 1, 1201), np.linspace(10, 30, 1201))
    y = simulate_valley({"a": a, "b": b})  # type: ignore[dict-item]
    return float(y["f"][(y["c"] <= c) & (y["g"] >= g) & (y["g"] <= 2.5)].min())


@pytest.fixture(scope="module")
def rough() -> Model:
    """Few designs: predictions are off, and there is something to correct."""
    return model_of(valley(), simulate_valley, 7, DEFAULT)


@pytest.fixture(scope="module")
def fine() -> Model:
    return model_of(valley(), simulate_valley, 40, DEFAULT)


# ---- correcting


def test_a_correction_is_new_legal_and_close(rough: Model) -> None:
    point = rough.predict(AT).point
    made = [Evaluation(90, "complete", "refine", point, simulate_valley(point))]
    found = next_design(rough, QUERY, point, made, 0.98)
    assert found is not None
    assert found.point != point
    space = valley().space
    around = space.unit(space.array([found.point, *(e.point for e in rough.evaluations), point]))
    assert np.abs(around[1:] - around[0]).max(1).min() > 1e-9
    incumbent = [p for p in (*(e.point for e in rough.evaluations), point) if obeys(simulate_valley(p))]
    near = space.unit(space.array([found.point, *incumbent, point]))
    assert np.abs(near[1:] - near[0]).max(1).min() <= 0.15 + 1e-9


def test_an_error_just_seen_is_not_made_again() -> None:
    """An output that is higher than predicted close to the answer: the next design keeps clear of the limit."""
    model = model_of(valley(), simulate_valley, 20, DEFAULT)
    point = model.predict(AT).point
    for error in (0.05, 0.2):
        y = simulate_valley(point)
        made = [Evaluation(90, "complete", "refine", point, {**y, "c": y["c"] + error})]
        found = next_design(model, QUERY, point, made, 0.98)
        assert found is not None
        before, after = (simulate_valley(p)["c"] for p in (point, found.point))
        assert after < before - 0.5 * error  # an output shifted by the error is obeyed again


def test_without_a_feasible_design_any_gain_is_worth_it() -> None:
    model = model_of(valley(), simulate_valley, 7, DEFAULT)
    strict = {"c": 0.0, "g": 1.0}
    point = model.predict(strict).point
    y = {**simulate_valley(point), "c": 3.0}
    made = [Evaluation(90, "complete", "refine", point, y)]
    found = next_design(model, Query.of(valley().box, np.array([[0.0, 1.0]])), point, made, 0.98)
    assert found is not None
    assert found.gain == np.inf


def test_from_the_third_evaluation_on_a_better_region_is_found_far_away() -> None:
    """Two corrections close to an answer that cannot be improved there: the next design may lie in another basin."""

    def basins(point: dict[str, float]) -> dict[str, float]:
        u = point["u"]
        return {"f": min(1.0 + 4.0 * (u - 0.2) ** 2, 0.5 + 60.0 * (u - 0.85) ** 2, 2.0), "c": u}

    problem = Problem("basins", [Real("u", 0.0, 1.0)], Objective("f"), [Constraint("c", "<=", low=0.5, high=1.0)])
    places = [*np.linspace(0.0, 0.5, 11).tolist(), 0.95, 1.0]
    rows = [Evaluation(i, "complete", "run", {"u": u}, basins({"u": u})) for i, u in enumerate(places)]
    model = make_model(Evaluations(problem, tuple(rows)), Learner(0), DEFAULT, seed=0)
    query, made = Query.of(problem.box, np.array([[1.0]])), []
    for number, u in enumerate((0.21, 0.19)):
        made.append(Evaluation(90 + number, "complete", "refine", {"u": u}, basins({"u": u})))
    close = next_design(model, query, {"u": 0.2}, made[:1], 0.98)
    far = next_design(model, query, {"u": 0.2}, made, 0.98)
    assert close is None or abs(close.point["u"] - 0.2) <= 0.16
    assert far is not None
    assert far.point["u"] > 0.5
    assert far.gain > 0.0
    again = next_design(model, query, {"u": 0.2}, made, 0.98)
    assert again is not None
    assert again.point == far.point


# ---- refining


@pytest.mark.parametrize("count", [1, 2, 4])
def test_no_more_calls_than_allowed(rough: Model, count: int) -> None:
    lab = Lab(simulate_valley)
    answer = refine(rough, AT, lab, count)
    assert 1 <= len(lab.made) <= count
    assert answer.verified or answer.warnings[0].startswith("predicted after these evaluations")
    assert obeys(simulate_valley(answer.point))
    assert len({tuple(e.point.values()) for e in lab.made}) == len(lab.made)


def test_one_call_verifies_the_prediction(rough: Model) -> None:
    lab = Lab(simulate_valley)
    predicted = rough.predict(AT)
    assert not predicted.verified
    answer = refine(rough, AT, lab, 1)
    assert [e.point for e in lab.made] == [predicted.point]
    assert answer.verified
    measured = [(e.outputs["f"], e.point) for e in (*rough.evaluations, *lab.made) if obeys(e.outputs)]  # type: ignore[arg-type]
    if measured:
        assert answer.point == min(measured, key=lambda m: m[0])[1]


def test_every_further_call_is_worth_something(rough: Model) -> None:
    """With two calls the answer is feasible, and with four it is the best there is."""
    for c, g in ((1.0, 0.0), (0.6, -0.5), (1.5, 0.5)):
        optimum = best_of_all(c, g)
        lost = []
        for count in (2, 4):
            answer = refine(rough, {"c": c, "g": g}, Lab(simulate_valley), count)
            outputs = simulate_valley(answer.point)
            assert answer.feasible
            assert obeys(outputs, c, g)
            lost.append(outputs["f"] - optimum)
        assert lost[1] <= lost[0] + 0.005  # Two evaluations may end at a prediction that is as good.
        assert lost[1] < 0.02


def test_it_stops_when_little_is_left_to_gain_and_says_so(fine: Model) -> None:
    lab = Lab(simulate_valley)
    answer = refine(fine, AT, lab, 12)
    assert 2 <= len(lab.made) < 12
    (note,) = answer.warnings
    reasons = ("the expected gain is below 0.0001 of the span", "no untried design close by is predicted better")
    assert note in [f"stopped after {len(lab.made)} evaluations: {reason}" for reason in reasons]
    assert answer.objective.mean - best_of_all() < 2e-3


def test_two_calls_are_both_spent_unless_nothing_is_left(fine: Model) -> None:
    """The second is what the user asked for; only further ones are weighed."""
    for at in (AT, {"c": 1.2, "g": -0.3}, {"c": 0.7, "g": 0.1}):
        lab = Lab(simulate_valley)
        answer = refine(fine, at, lab)
        assert len(lab.made) == 2 or "no untried design" in answer.warnings[0]
        assert not any("expected gain" in w for w in answer.warnings)


def test_a_lattice_that_is_used_up_is_said_to_be() -> None:
    points = [{"i": i, "g": g} for i in range(4) for g in (0.1, 0.2, 0.8)]
    table = tuple(Evaluation(n + 1, "complete", "run", p, simulate_lattice(p)) for n, p in enumerate(points))
    model = make_model(Evaluations(lattice(), table), Learner(0), DEFAULT, 0)
    lab = Lab(simulate_lattice)
    answer = refine(model, {"c": 2.0}, lab, 3)
    assert lab.made == []
    assert answer.verified
    assert answer.warnings == ("stopped after 0 evaluations: no untried design close by is predicted better",)


def test_a_design_that_was_measured_is_not_measured_again() -> None:
    """Where the answer is verified already, one call has nothing to verify, and two are left for improving it."""
    model = model_of(lattice(), simulate_lattice, 12, DEFAULT)
    at = next({"c": float(v)} for v in np.linspace(0.5, 4.0, 30) if model.predict({"c": float(v)}).verified)
    lab = Lab(simulate_lattice)
    answer = refine(model, at, lab, 1)
    assert lab.made == []
    assert answer.verified
    assert answer.point == model.predict(at).point
    tried = [e.point for e in model.evaluations]
    refine(model, at, lab, 3)
    assert all(e.point not in tried for e in lab.made)


@pytest.mark.parametrize("limit", [0.3, 1.0, 2.2, 3.7])
def test_a_lattice_is_never_measured_twice(limit: float) -> None:
    model = model_of(lattice(), simulate_lattice, 7, DEFAULT)
    lab = Lab(simulate_lattice)
    answer = refine(model, {"c": limit}, lab, 6)
    tried = [tuple(e.point.values()) for e in (*model.evaluations, *lab.made)]
    known = {tuple(e.point.values()) for e in model.evaluations}
    assert len({tuple(e.point.values()) for e in lab.made} - known) == len(lab.made)
    assert answer.verified
    assert tuple(answer.point.values()) in tried


def test_mixed_variables_stay_legal() -> None:
    problem = Problem(
        "mixed",
        [Real("a", 0.0, 1.0), Discrete("g", [0.1, 0.2, 0.5, 0.9])],
        Objective("f"),
        [Constraint("c", "<=", low=0.0, high=1.5)],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": (point["a"] - 1.0) ** 2 - point["g"], "c": point["a"] * (1.0 + point["g"])}

    model = model_of(problem, simulate, 9, DEFAULT)
    lab = Lab(simulate)
    answer = refine(model, {"c": 0.9}, lab, 3)
    assert answer.feasible
    assert all(problem.space.check(e.point) == e.point for e in lab.made)


# ---- failures and unreachable limits


def test_when_everything_fails_the_prediction_is_returned_with_a_warning(rough: Model) -> None:
    lab = Lab(simulate_valley, broken=(1, 2))
    answer = refine(rough, AT, lab)
    assert answer.point == rough.predict(AT).point
    assert not answer.verified
    assert answer.warnings == (
        "evaluation 101 failed: no licence 1",
        "evaluation 102 failed: no licence 2",
        "not verified: every evaluation failed",
    )
    assert lab.made[1].point != lab.made[0].point


@pytest.mark.parametrize("broken", [1, 2])
def test_when_one_fails_the_other_counts_and_the_failure_is_told(rough: Model, broken: int) -> None:
    lab = Lab(simulate_valley, broken=(broken,))
    answer = refine(rough, AT, lab)
    assert len(lab.made) == 2
    assert answer.verified
    assert f"evaluation {100 + broken} failed: no licence {broken}" in answer.warnings


def test_limits_that_cannot_be_met_end_in_the_least_violating_design(fine: Model) -> None:
    lab = Lab(simulate_valley)
    answer = refine(fine, {"c": -5.0, "g": 0.0}, lab, 3)
    assert answer.status == "measured"
    assert not answer.feasible
    assert any(w.startswith("the measured design breaks c <= -5 by ") for w in answer.warnings)
    assert answer.warnings[0].startswith("c = -5 lies outside 0 to 2 by 5")

    def violation(y: dict[str, float]) -> float:
        return max(0.0, y["c"] + 5.0) + max(0.0, -y["g"]) + max(0.0, y["g"] - 2.5)

    known = [dict(e.outputs) for e in (*fine.evaluations, *lab.made)]
    found = {name: e.mean for name, e in answer.outputs.items()}
    assert violation(found) == pytest.approx(min(violation(y) for y in known))


def test_what_was_measured_before_is_returned_if_it_is_better(fine: Model) -> None:
    """An evaluator that has changed for the worse: the old design is still the answer."""

    def worse(point: dict[str, float]) -> dict[str, float]:
        return {**simulate_valley(point), "f": 99.0}

    answer = refine(fine, AT, Lab(worse))
    assert answer.verified
    assert answer.objective.mean < 10.0
    assert answer.point in [e.point for e in fine.evaluations]


def test_the_same_again_is_the_same(rough: Model) -> None:
    one, two = Lab(simulate_valley), Lab(simulate_valley)
    assert refine(rough, AT, one, 3) == refine(rough, AT, two, 3)
    assert one.made == two.made


def test_what_the_evaluator_raises_passes_through(rough: Model) -> None:
    def interrupted(point: dict[str, float]) -> Evaluation:
        raise KeyboardInterrupt

    measure: Callable[[dict[str, float]], Evaluation] = interrupted
    with pytest.raises(KeyboardInterrupt):
        refine(rough, AT, measure)
