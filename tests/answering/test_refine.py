"""Refinement: measure the predicted design, look once more close to it, return the better."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cbabo import Constraint, Model, Objective, Problem, Real, Settings, Study, problems
from cbabo.answering.refine import measured_answer
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.query import Query
from cbabo.errors import InputError
from cbabo.methods import paper as module
from cbabo.methods.method import best_measured
from cbabo.methods.paper import PaperMethod
from learned import QUICK, Lab, model_of, refine
from simulators import band, lattice, mirrored, simulate_lattice, simulate_mirrored, simulate_valley, valley

AT = {"c": 1.0, "g": 0.0}
QUERY = Query.of(valley().box, AT)


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(valley(), simulate_valley)


@pytest.fixture
def lab() -> Lab:
    return Lab(simulate_valley)


def distance(problem: Problem, a: dict[str, float], b: dict[str, float]) -> float:
    x = problem.space.unit(problem.space.array([a, b]))
    return float(np.abs(x[0] - x[1]).max())


@pytest.mark.parametrize("evaluations", [1, 2, 4])
def test_so_many_calls_and_no_more(model: Model, lab: Lab, evaluations: int) -> None:
    answer = refine(model, AT, lab, evaluations)
    assert len(lab.made) == evaluations
    assert answer.status in ("verified", "measured")
    assert answer.point in [e.point for e in lab.made]


def test_two_is_what_the_paper_spends(model: Model, lab: Lab) -> None:
    refine(model, AT, lab)
    assert len(lab.made) == 2


def test_one_call_verifies_the_prediction(model: Model, lab: Lab) -> None:
    predicted = model.predict(AT)
    answer = refine(model, AT, lab, 1)
    assert lab.made[0].point == predicted.point
    assert answer.point == predicted.point
    assert answer.status == "measured"  # and it breaks a limit, as a network's design may
    assert not answer.verified
    truth = simulate_valley(predicted.point)
    assert {name: e.mean for name, e in answer.outputs.items()} == truth
    assert all(e.std == 0.0 for e in answer.outputs.values())
    assert answer.objective.mean == truth["f"]
    assert answer.thresholds == AT
    assert answer.probability_feasible in (0.0, 1.0)
    assert answer.feasible == (truth["c"] <= 1.0 and 0.0 <= truth["g"] <= 2.5)


@pytest.mark.parametrize("theta", [(0.1, 0.2), (0.5, 0.5), (0.9, 0.4), (1.0, 1.0)])
def test_the_second_design_is_close_to_the_first_and_the_better_one_is_returned(
    model: Model, lab: Lab, theta: tuple[float, float]
) -> None:
    box = model.problem.box
    at = box.named(box.from_theta(np.array([theta]))[0])
    answer = refine(model, at, lab)
    first, second = lab.made
    assert second.point != first.point
    assert distance(model.problem, first.point, second.point) <= 0.25 + 1e-12
    rows = box.array(at)
    rank = []
    for made in lab.made:
        y = np.array([[made.outputs[name] for name in model.problem.outputs]])
        violation = np.clip(box.violations(y, rows), 0.0, None).sum()
        feasible = bool(box.feasible(y, rows)[0])
        rank.append((0, made.outputs["f"]) if feasible else (1, violation))
    assert answer.point == lab.made[int(rank[1] < rank[0])].point


def test_a_smaller_radius_stays_closer(model: Model, lab: Lab) -> None:
    close = replace(model, method=PaperMethod(QUICK.replace(refine_radius=0.01)), network=model.pcm)
    refine(close, AT, lab, 3)
    assert all(distance(model.problem, lab.made[0].point, e.point) <= 0.01 + 1e-12 for e in lab.made)


def test_refinement_finds_what_is_to_be_found(model: Model) -> None:
    """With the surrogates as good as here, a few calls reach the best within the radius, found by brute force."""
    lab = Lab(simulate_valley)
    answer = refine(model, AT, lab, 4)
    centre = model.predict(AT).point
    a, b = np.meshgrid(np.linspace(-1, 1, 301), np.linspace(10, 30, 301))
    near = (abs(a - centre["a"]) <= 0.5) & (abs(b - centre["b"]) <= 5.0)
    y = simulate_valley({"a": a, "b": b})  # type: ignore[dict-item]
    good = near & (y["c"] <= 1.0) & (y["g"] >= 0.0) & (y["g"] <= 2.5)
    assert answer.feasible
    assert answer.objective.mean <= y["f"][good].min() + 0.02


def test_the_second_look_knows_what_the_first_found(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Surrogates are refitted on all data, the new evaluation among them; the incumbent is the best that is feasible."""
    seen: list[tuple[int, float | None]] = []
    true_maximise = module.maximise

    def spy(surrogates, limits, theta, best, *rest, **named):  # type: ignore[no-untyped-def]
        seen.append((len(surrogates.x), best))
        return true_maximise(surrogates, limits, theta, best, *rest, **named)

    monkeypatch.setattr(module, "maximise", spy)
    lab = Lab(simulate_valley)
    refine(model, AT, lab, 3)
    assert [count for count, _ in seen] == [21, 22]
    known = [*model.evaluations, lab.made[0]]
    feasible = [e.outputs["f"] for e in known if e.outputs["c"] <= 1.0 and 0.0 <= e.outputs["g"] <= 2.5]
    assert seen[0][1] == min(feasible)


def test_restating_a_problem_changes_nothing(model: Model) -> None:
    one, two = Lab(simulate_valley), Lab(simulate_mirrored)
    other = model_of(mirrored(), simulate_mirrored)
    a = refine(model, AT, one)
    b = refine(other, {"c": -1.0, "g": 0.0}, two)
    for mine, theirs in zip(one.made, two.made, strict=True):
        assert mine.point == pytest.approx(theirs.point, rel=1e-4, abs=1e-5)
    assert a.objective.mean == pytest.approx(-b.objective.mean, rel=1e-4)
    assert a.feasible == b.feasible


def test_the_same_again_is_the_same(model: Model) -> None:
    one, two = Lab(simulate_valley), Lab(simulate_valley)
    assert refine(model, AT, one, 3) == refine(model, AT, two, 3)
    assert one.made == two.made


# ---- failures


@pytest.mark.parametrize("evaluations", [1, 2, 4])
def test_without_noise_a_refinement_answers_with_what_was_measured(evaluations: int) -> None:
    """The limit never binds, so that a prediction is always a little better, and was returned instead."""
    problem = Problem(
        "calm", [Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)], Objective("f"), [Constraint("c", "<=", low=2.0, high=3.0)]
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        a, b = point["a"], point["b"]
        return {"f": math.cosh(2.0 * (a - 0.3123)) + math.cosh(3.0 * (b - 0.6177)), "c": a + b}

    study = Study.create(problem, "sqlite://", settings=Settings.default().replace(library=16))
    study.run(simulate, budget=20, in_process=True)
    answer = study.refine({"c": 2.5}, simulate, evaluations, in_process=True)
    assert answer.status == "verified"
    assert answer.objective.mean == simulate(dict(answer.point))["f"]


def test_when_everything_fails_the_prediction_is_returned_with_a_warning(model: Model) -> None:
    lab = Lab(simulate_valley, broken=(1, 2))
    answer = refine(model, AT, lab)
    predicted = model.predict(AT)
    assert answer.point == predicted.point
    assert answer.status == "predicted"
    assert answer.objective == predicted.objective
    assert answer.warnings == (
        "evaluation 101 failed: no licence 1",
        "evaluation 102 failed: no licence 2",
        "not verified: every evaluation failed",
    )
    assert lab.made[1].point != lab.made[0].point  # a design that failed is not tried again


@pytest.mark.parametrize("broken", [1, 2])
def test_when_one_fails_the_other_is_returned_and_the_failure_told(model: Model, broken: int) -> None:
    lab = Lab(simulate_valley, broken=(broken,))
    answer = refine(model, AT, lab)
    assert answer.status in ("verified", "measured")
    assert answer.point == lab.made[2 - broken].point
    assert answer.warnings[-1] == f"evaluation {100 + broken} failed: no licence {broken}"


def test_outside_the_box_the_warning_stays(model: Model, lab: Lab) -> None:
    answer = refine(model, {"c": 3.0, "g": 0.0}, lab, 1)
    assert len(answer.warnings) == 1
    assert answer.warnings[0].startswith("c = 3 lies outside 0 to 2 by 1")
    assert answer.thresholds == {"c": 3.0, "g": 0.0}


def test_where_nothing_is_feasible_the_least_violation_wins(model: Model, lab: Lab) -> None:
    answer = refine(model, {"c": -5.0, "g": 0.0}, lab, 3)
    assert not answer.feasible
    assert answer.probability_feasible == 0.0
    violations = [
        max(0.0, e.outputs["c"] + 5.0) + max(0.0, -e.outputs["g"]) + max(0.0, e.outputs["g"] - 2.5) for e in lab.made
    ]
    assert answer.point == lab.made[int(np.argmin(violations))].point


def test_limits_that_contradict_each_other_end_in_an_answer() -> None:
    problem = band()

    def simulate(point: dict[str, float]) -> dict[str, float]:
        return {"f": point["x"] ** 2, "y": point["x"]}

    answer = refine(model_of(problem, simulate, 8), {"low": 0.8, "top": 0.2}, Lab(simulate))
    assert answer.status in ("verified", "measured")
    assert not answer.feasible


# ---- discrete variables


@pytest.mark.parametrize("limit", [0.5, 1.5, 2.5, 3.5])
def test_a_lattice_is_never_measured_twice(limit: float) -> None:
    model = model_of(lattice(), simulate_lattice, 7)
    lab = Lab(simulate_lattice)
    answer = refine(model, {"c": limit}, lab, 4)
    assert 1 <= len(lab.made) <= 4
    tried = [e.point for e in model.evaluations]
    for made in lab.made[1:]:
        assert lattice().space.check(made.point) == made.point
        assert made.point not in tried
    assert len({tuple(e.point.values()) for e in lab.made}) == len(lab.made)
    assert answer.status in ("verified", "measured")


def test_when_every_design_in_reach_is_known_no_call_is_wasted() -> None:
    space = lattice().space
    points = [{"i": i, "g": g} for i, g in itertools.product(range(4), (0.1, 0.2, 0.8))]
    model = model_of(lattice(), simulate_lattice, 7)
    rows = tuple(
        Evaluation(n + 1, "complete", "run", space.check(p), simulate_lattice(p)) for n, p in enumerate(points)
    )
    full = replace(model, evaluations=type(model.evaluations)(model.problem, rows))
    lab = Lab(simulate_lattice)
    answer = refine(full, {"c": 2.0}, lab, 5)
    assert len(lab.made) == 1
    assert answer.status in ("verified", "measured")


@pytest.mark.parametrize("name", ["speed_reducer11", "pressure_vessel_mixed"])
def test_mixed_variables_stay_legal(name: str) -> None:
    shipped = problems.get(name)
    model = model_of(shipped.problem, shipped.evaluate, 15)
    lab = Lab(shipped.evaluate)
    box = shipped.problem.box
    refine(model, box.named(box.from_theta(np.full((1, len(box.names)), 0.6))[0]), lab)
    for made in lab.made:
        assert shipped.problem.space.check(made.point) == made.point


# ---- the rule and its record


def outcome(f: float, c: float, g: float = 0.0) -> Evaluation:
    return Evaluation(1, "complete", "refine", {"a": f, "b": 20.0}, {"f": f, "c": c, "g": g})


@pytest.mark.parametrize(
    ("pair", "winner"),
    [
        ([outcome(1.0, 0.5), outcome(0.5, 0.9)], 1),  # both feasible: the objective
        ([outcome(1.0, 1.0), outcome(0.5, 1.0 + 1e-6)], 0),  # feasible before infeasible
        ([outcome(1.0, 1.0), outcome(0.5, 1.0 + 1e-10)], 1),  # within the tolerance is feasible
        ([outcome(0.1, 3.0), outcome(9.0, 2.0)], 1),  # both infeasible: total violation, whatever the objective
        ([outcome(0.1, 1.5, -0.4), outcome(0.1, 1.6, 0.0)], 1),  # 0.9 against 0.6
        ([outcome(1.0, 0.5), outcome(1.0, 0.7)], 0),  # a draw: the first
    ],
)
def test_the_rule(model: Model, pair: list[Evaluation], winner: int) -> None:
    assert best_measured(QUERY, pair, model.problem, 1.0) is pair[winner]


def test_a_measured_answer_is_sure_of_itself(model: Model) -> None:
    rows = (outcome(1.0, 0.5), replace(outcome(0.9, 1.5), id=2))
    good, bad = (measured_answer(model.conditioned([row]), QUERY, row) for row in rows)
    assert (good.probability_feasible, good.feasible, good.status) == (1.0, True, "verified")
    assert (bad.probability_feasible, bad.feasible, bad.status) == (0.0, False, "measured")
    assert not bad.verified
    assert bad.warnings == ("the measured design breaks c <= 1 by 0.5",)
    assert good.warnings == ()
    assert good.objective.std == 0.0


@pytest.mark.parametrize(
    ("thresholds", "words"),
    [
        ({"c": 1.0}, "'g' is missing"),
        ({**AT, "h": 1.0}, "unknown constraint"),
        ({**AT, "g_top": 1.0}, "fixed by the problem"),
    ],
)
def test_wrong_thresholds_cost_nothing(model: Model, lab: Lab, thresholds: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        refine(model, thresholds, lab)  # type: ignore[arg-type]
    assert lab.made == []


def test_what_the_evaluator_raises_passes_through(model: Model) -> None:
    """Failures are made data by whoever measures; anything else, such as Ctrl-C, is not refine's to swallow."""

    def interrupted(point: dict[str, float]) -> Evaluation:
        raise KeyboardInterrupt

    measure: Callable[[dict[str, float]], Evaluation] = interrupted
    with pytest.raises(KeyboardInterrupt):
        refine(model, AT, measure)
