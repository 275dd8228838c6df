"""The model of a study: an answer for every threshold, in the words of the contract."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from cbabo import Constraint, Discrete, Integer, Model, Objective, Problem, Real, Settings
from cbabo.answering.answers import Answer, Estimate
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.query import outside_warnings
from cbabo.errors import InputError, ModelError
from cbabo.methods.learner import Learner
from cbabo.methods.step import step
from cbabo.model import make_model
from learned import QUICK, evaluated, model_of
from simulators import band, lattice, make_beam, simulate_beam, simulate_lattice, simulate_valley, valley

AT = {"stress": 5.0, "frequency": 3.0}
SOLVER = Settings.default().replace(library=16)


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(make_beam(), simulate_beam)


@pytest.fixture(scope="module")
def smooth() -> Model:
    return model_of(valley(), simulate_valley)


def test_an_answer_says_everything_by_name(model: Model) -> None:
    answer = model.predict(AT)
    assert isinstance(answer, Answer)
    assert answer.thresholds == AT
    assert list(answer.point) == ["width", "ribs"]
    assert isinstance(answer.point["ribs"], int)
    assert 1.0 <= answer.point["width"] <= 3.0
    assert list(answer.outputs) == ["mass", "stress", "frequency", "cost"]
    assert answer.objective == answer.outputs["mass"]
    for estimate in answer.outputs.values():
        assert type(estimate.mean) is float
        assert type(estimate.std) is float
        assert estimate.std > 0
    assert 0.0 <= answer.probability_feasible <= 1.0
    assert answer.status == "predicted"
    assert not answer.verified
    assert answer.feasible == (answer.probability_feasible > 0.5)
    assert answer.closest_thresholds is None
    assert answer.warnings == ()


def test_an_answer_is_the_networks_design_and_the_surrogates_word(smooth: Model) -> None:
    at = {"c": 1.2, "g": 0.1}
    answer = smooth.predict(at)
    theta = torch.tensor([[0.6, 0.45]], dtype=torch.float64)
    x = smooth.pcm.designs(theta)
    assert answer.point == smooth.problem.space.points(x.numpy())[0]
    mean, std = smooth.surrogates.mean_and_std(x)
    for j, name in enumerate(("f", "c", "g")):
        assert answer.outputs[name].mean == pytest.approx(float(mean[0, j]), rel=1e-9)
        assert answer.outputs[name].std == pytest.approx(float(std[0, j]), rel=1e-6)
    expected = math.exp(float(smooth.posterior.limits.log_probability(mean, std, theta)[0]))
    assert answer.probability_feasible == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert smooth.predict(at, method="pcm") == answer


def test_surrogates_of_good_data_tell_the_truth(smooth: Model) -> None:
    """Twenty evaluations of a smooth simulator: predictions are what the simulator says, within a few deviations."""
    for at in ({"c": 0.5, "g": 0.0}, {"c": 2.0, "g": -1.0}):
        answer = smooth.predict(at)
        truth = simulate_valley(answer.point)
        for name, estimate in answer.outputs.items():
            assert abs(truth[name] - estimate.mean) < 0.02 + 4 * estimate.std


def test_the_order_of_names_does_not_matter(model: Model) -> None:
    assert model.predict({"frequency": 3.0, "stress": 5.0}) == model.predict(AT)


TABLE = np.array([[5.0, 3.0], [1.0, 6.0], [9.0, 2.0], [2.5, 4.5]])


def test_many_answers_by_array_table_list_and_one_by_one(model: Model) -> None:
    many = model.predict_many(TABLE)
    assert len(many) == 4
    frame = pd.DataFrame({"frequency": TABLE[:, 1], "stress": TABLE[:, 0]})
    for other in (
        model.predict_many(frame),
        model.predict_many(TABLE.tolist()),
        model.predict_many(TABLE.astype(object)),
    ):  # type: ignore[arg-type]
        assert np.array_equal(other.points, many.points)
        assert np.array_equal(other.thresholds, TABLE)
    assert many.points.shape == (4, 2)
    for i, (stress, frequency) in enumerate(TABLE):
        single = model.predict({"stress": stress, "frequency": frequency})
        assert many.points[i] == pytest.approx(list(single.point.values()), rel=1e-12)
        assert many.answer(i).objective.mean == pytest.approx(single.objective.mean, rel=1e-9)
    assert many.answer(-1) == many.answer(3)
    assert model.predict_many(AT).answer(0) == model.predict(AT)


def test_points_are_natural_legal_and_in_the_order_of_the_variables() -> None:
    problem = Problem(
        "order",
        [Discrete("gauge", [0.192, 0.345, 0.5]), Real("r", 1e-3, 1e3, log=True), Integer("teeth", 17, 28)],
        Objective("f"),
        [Constraint("c", "<=", low=0.0, high=40.0)],
    )
    model = model_of(problem, lambda p: {"f": -p["teeth"] + p["gauge"], "c": p["teeth"] * math.log10(p["r"])}, 12)
    points = model.predict_many(np.linspace(0.0, 40.0, 101)[:, None]).points
    assert points.shape == (101, 3)
    assert set(points[:, 0]) <= {0.192, 0.345, 0.5}
    assert ((points[:, 1] >= 1e-3) & (points[:, 1] <= 1e3)).all()
    assert set(points[:, 2]) <= set(range(17, 29))
    answer = model.predict({"c": 11.0})
    assert problem.space.check(answer.point) == answer.point
    predicted = model.surrogates.mean(torch.from_numpy(problem.space.unit(problem.space.array([answer.point]))))
    assert answer.objective.mean == pytest.approx(
        float(predicted[0, 0]), rel=1e-9
    )  # of the legal design, not of another


def test_a_table_of_answers(model: Model) -> None:
    many = model.predict_many(TABLE)
    frame = many.to_frame()
    assert list(frame.columns) == [
        "limit stress", "limit frequency", "width", "ribs", "mass", "mass std", "stress", "stress std", "frequency",
        "frequency std", "cost", "cost std", "probability feasible", "probability success", "approximate",
    ]  # fmt: skip
    assert len(frame) == 4
    assert frame["ribs"].dtype == np.int64
    for i in range(4):
        answer = many.answer(i)
        assert frame["limit stress"][i] == answer.thresholds["stress"]
        assert frame["width"][i] == answer.point["width"]
        assert frame["mass"][i] == answer.objective.mean
        assert frame["cost std"][i] == answer.outputs["cost"].std
        assert frame["probability feasible"][i] == answer.probability_feasible
        assert frame["probability success"][i] == answer.probability_success == 1.0


def test_no_thresholds_give_no_answers(model: Model) -> None:
    for nothing in (np.empty((0, 2)), pd.DataFrame({"stress": [], "frequency": []})):
        many = model.predict_many(nothing)
        assert len(many) == 0
        assert many.points.shape == (0, 2)
        assert len(many.to_frame()) == 0


def test_thousands_at_once_are_the_same_as_a_few(smooth: Model) -> None:
    box = smooth.problem.box
    rows = box.from_theta(np.random.default_rng(0).random((5000, 2)))
    many = smooth.predict_many(rows)
    few = smooth.predict_many(rows[4990:])
    assert np.allclose(many.points[4990:], few.points, rtol=1e-12)
    assert np.allclose(many.probability_feasible[4990:], few.probability_feasible, rtol=1e-6, atol=1e-9)


def test_deviations_are_only_computed_when_asked_for(smooth: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nobody asked")

    monkeypatch.setattr(type(smooth.surrogates), "mean_and_std", refuse)
    many = smooth.predict_many(np.array([[1.0, 0.0]]))
    assert many.points.shape == (1, 2)
    with pytest.raises(AssertionError, match="nobody asked"):
        many.to_frame()


WRONG = [
    ({**AT, "cost": 40.0}, "the limit of 'cost' is fixed by the problem"),
    ({**AT, "streß": 40.0}, "unknown constraint 'streß'"),
    ({**AT, "stress": float("nan")}, "stress must be a finite number"),
    ({**AT, "stress": "5"}, "stress must be a finite number"),
    ({**AT, "stress": None}, "stress must be a finite number"),
    ({**AT, "stress": [5.0, 6.0]}, "stress must be a finite number"),
    ([1.0, 2.0], "expected n rows and 2 columns"),
    ([[1.0, 2.0, 3.0]], "expected n rows and 2 columns"),
    ([["a", "b"]], "of numbers"),
    ([[1.0, float("inf")]], "finite"),
    (pd.DataFrame({"stress": [1.0], "frequency": [2.0], "weight": [1.0]}), "unknown constraint 'weight'"),
    (pd.DataFrame({"stress": [1.0], "frequency": [None]}), "finite number"),
]


@pytest.mark.parametrize(("thresholds", "words"), WRONG)
def test_wrong_thresholds_get_one_sentence(model: Model, thresholds: object, words: str) -> None:
    for ask in (model.predict, model.predict_many):
        with pytest.raises(InputError, match="^thresholds: ") as caught:
            ask(thresholds)  # type: ignore[operator]
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_predict_answers_one_question(model: Model) -> None:
    for several in (TABLE, pd.DataFrame(TABLE, columns=["stress", "frequency"]), np.empty((0, 2))):
        with pytest.raises(InputError, match=r"^thresholds: expected one limit for each constraint, got \d rows$"):
            model.predict(several)  # type: ignore[arg-type]
    assert model.predict(TABLE[:1]) == model.predict(AT)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["PCM", "network", "", 3, ["pcm"]])
def test_an_unknown_method_gets_one_sentence(model: Model, method: object) -> None:
    for ask in (model.predict, model.predict_many):
        with pytest.raises(InputError, match=r"^predict: method must be 'pcm' or 'solver', got .*$"):
            ask(AT, method=method)  # type: ignore[operator]


def test_thresholds_outside_the_box_are_answered_with_a_warning(model: Model) -> None:
    answer = model.predict({"stress": 11.0, "frequency": 1.0})
    assert len(answer.warnings) == 2
    assert answer.warnings[0].startswith("stress = 11 lies outside 1 to 9 by 2 (25 % of the range)")
    assert answer.warnings[1].startswith("frequency = 1 lies outside 2 to 6 by 1 (25 % of the range)")
    assert answer.thresholds == {"stress": 11.0, "frequency": 1.0}
    assert (
        answer.point == model.predict({"stress": 9.0, "frequency": 2.0}).point
    )  # the edge is as far as it has learned
    strict = model.predict({"stress": -100.0, "frequency": 3.0})
    assert strict.probability_feasible < 1e-6  # judged by what was asked, not by the edge of the box
    assert not strict.feasible


def test_the_edge_itself_and_rounding_are_inside() -> None:
    assert outside_warnings(make_beam().box, np.array([9.0, 2.0])) == ()
    assert outside_warnings(make_beam().box, np.array([9.0 + 1e-12, 2.0 - 1e-12])) == ()
    assert len(outside_warnings(make_beam().box, np.array([9.0 + 1e-6, 2.0]))) == 1


def test_limits_that_contradict_each_other_are_answered() -> None:
    problem = band()
    model = model_of(problem, lambda p: {"f": p["x"] ** 2, "y": p["x"]}, 8)
    answer = model.predict({"low": 0.8, "top": 0.2})
    assert answer.probability_feasible == 0.0
    assert not answer.feasible
    assert model.predict({"low": 0.1, "top": 0.9}).probability_feasible > 0.5


def test_extreme_thresholds_are_numbers_too(model: Model) -> None:
    for value in (1e300, -1e300, 0.0, 5e-324):
        answer = model.predict({"stress": value, "frequency": 3.0})
        assert 0.0 <= answer.probability_feasible <= 1.0
        assert math.isfinite(answer.objective.mean)


# ---- making one


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_evaluations_get_one_sentence(count: int) -> None:
    few = evaluated(make_beam(), simulate_beam, 2)
    rows = (*few[:count], *(Evaluation(9 + i, "failed", "run", few[0].point, {}, failure="no") for i in range(30)))
    with pytest.raises(
        ModelError, match=rf"^a model needs at least 2 measured designs, got {count}; run more evaluations first$"
    ):
        make_model(Evaluations(make_beam(), rows), Learner(0), QUICK, 0)


def test_a_model_of_two_designs_answers() -> None:
    model = model_of(make_beam(), simulate_beam, 2)
    assert model.predict(AT).status == "predicted"


def test_failed_and_running_rows_are_kept_but_not_learned_from(smooth: Model) -> None:
    good = evaluated(valley(), simulate_valley, 20)
    rest = (
        Evaluation(90, "failed", "run", good[0].point, {}, failure="no"),
        Evaluation(91, "running", "run", good[1].point, {}),
    )
    mixed = make_model(Evaluations(valley(), (*good, *rest)), Learner(0), QUICK, 0)
    assert len(mixed.evaluations) == 22
    answer = mixed.predict({"c": 1.0, "g": 0.0})
    assert answer.probability_success < 1.0
    assert replace(answer, probability_success=1.0) == smooth.predict({"c": 1.0, "g": 0.0})


def test_the_network_is_the_learners_once_there_is_one() -> None:
    evaluations = evaluated(valley(), simulate_valley, 12)
    _, state = step(evaluations, evaluations.running, Learner(1).to_bytes(), QUICK, 0)
    learner = Learner.from_bytes(state)
    assert learner.trainee is not None
    model = make_model(evaluations, learner, QUICK, 0)
    assert model.pcm.weights.equal(learner.trainee.pcm.weights)
    assert learner.to_bytes() == state


def test_without_one_it_is_trained_over_the_whole_horizon(smooth: Model) -> None:
    """As with imported runs only: the answers must not be those of an untrained network, which are all the same."""
    points = smooth.predict_many(smooth.problem.box.from_theta(np.array([[0.0, 0.0], [1.0, 1.0]]))).points
    assert np.abs(points[0] - points[1]).max() > 0.05
    again = model_of(valley(), simulate_valley)
    assert again.pcm.weights.equal(smooth.pcm.weights)
    assert not model_of(valley(), simulate_valley, seed=1).pcm.weights.equal(smooth.pcm.weights)


def test_constant_outputs_and_duplicates_do_no_harm() -> None:
    flat = model_of(valley(), lambda p: {"f": 3.0, "c": 1.0, "g": 0.5}, 8)
    answer = flat.predict({"c": 1.5, "g": 0.0})
    assert answer.objective.mean == pytest.approx(3.0, abs=1e-6)
    evaluations = evaluated(valley(), simulate_valley, 6)
    twice = Evaluations(valley(), (*evaluations, *evaluations))
    assert make_model(twice, Learner(0), QUICK, 0).predict({"c": 1.0, "g": 0.0}).objective.std >= 0.0


def test_a_lattice_gets_legal_answers() -> None:
    model = model_of(lattice(), simulate_lattice, 12)
    for value in np.linspace(0.0, 4.0, 9):
        point = model.predict({"c": float(value)}).point
        assert lattice().space.check(point) == point


def test_a_model_is_a_value(model: Model) -> None:
    assert model == model
    assert model != model_of(make_beam(), simulate_beam, 3)  # and says so without an error from torch
    assert len({model, model}) == 1
    with pytest.raises(AttributeError):
        model.seed = 3  # type: ignore[misc]
    before = model.pcm.weights.clone()
    model.predict(AT), model.predict_many(TABLE).to_frame()
    assert model.pcm.weights.equal(before)


def test_asking_leaves_torch_as_it_was(model: Model) -> None:
    before = torch.get_num_threads(), torch.is_grad_enabled(), torch.random.get_rng_state()
    many = model.predict_many(TABLE)
    many.to_frame()
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == before[:2]
    assert torch.random.get_rng_state().equal(before[2])
    assert isinstance(many.moments[0], np.ndarray)


def test_estimates_compare_by_value() -> None:
    assert Estimate(1.0, 0.0) == Estimate(1.0, 0.0)


def test_many_answers_warn_about_limits_outside_the_box_once_each(model: Model) -> None:
    inside = pd.DataFrame({"stress": [2.0, 4.0], "frequency": [3.0, 5.0]})
    assert model.predict_many(inside).warnings == ()
    outside = pd.DataFrame({"stress": [2.0, 11.0, 13.0], "frequency": [3.0, 3.0, 3.0]})
    (warning,) = model.predict_many(outside).warnings
    assert "stress = 13 lies outside 1 to 9 by 4 (50 % of the range)" in warning
    assert model.predict_many(inside[:0]).warnings == ()


# ---- with the default settings the solver answers


@pytest.fixture(scope="module")
def solving() -> Model:
    return model_of(valley(), simulate_valley, 30, Settings.default().replace(library=64))


REACHABLE, UNREACHABLE = {"c": 1.0, "g": 0.0}, {"c": 0.0, "g": 1.0}


def obeyed(point: dict[str, float], at: dict[str, float]) -> bool:
    y = simulate_valley(point)
    return y["c"] <= at["c"] + 1e-8 and at["g"] - 1e-8 <= y["g"] <= 2.5


def test_the_default_answer_is_feasible_probable_and_nearly_the_best(solving: Model) -> None:
    a, b = np.meshgrid(np.linspace(-1, 1, 801), np.linspace(10, 30, 801))
    y = simulate_valley({"a": a, "b": b})  # type: ignore[dict-item]
    for c, g in ((1.0, 0.0), (0.7, -0.5), (1.8, 0.9), (2.0, -1.0)):
        answer = solving.predict({"c": c, "g": g})
        assert answer.status == "predicted"
        assert answer.probability_feasible >= 0.98 - 1e-3
        assert obeyed(answer.point, {"c": c, "g": g})
        best = y["f"][(y["c"] <= c) & (y["g"] >= g) & (y["g"] <= 2.5)].min()
        assert simulate_valley(answer.point)["f"] <= best + 0.01


def test_one_answer_and_many_are_the_same(solving: Model) -> None:
    table = pd.DataFrame({"c": [1.0, 0.0, 1.8], "g": [0.0, 1.0, 0.9]})
    many = solving.predict_many(table)
    for i, row in enumerate(table.to_dict("records")):
        alone = solving.predict(row)
        assert many.answer(i).point == alone.point
        assert many.answer(i).closest_thresholds == alone.closest_thresholds
        assert many.answer(i).objective.mean == pytest.approx(alone.objective.mean, rel=1e-9)
        assert many.answer(i).objective.std == pytest.approx(alone.objective.std, rel=1e-4)
        assert many.status(i) == alone.status


def test_what_cannot_be_met_is_unreachable_and_says_what_can(solving: Model) -> None:
    answer = solving.predict(UNREACHABLE)
    assert answer.status == "unreachable"
    assert answer.probability_feasible < 0.98
    closest = answer.closest_thresholds
    assert closest is not None
    assert list(closest) == ["c", "g"]
    assert 0.0 <= closest["c"] <= 2.0
    assert -1.0 <= closest["g"] <= 1.0
    assert closest != UNREACHABLE
    relaxed = solving.predict(closest)
    assert relaxed.status == "predicted"
    assert relaxed.probability_feasible >= 0.97
    stricter = {name: 0.95 * closest[name] + 0.05 * UNREACHABLE[name] for name in closest}
    assert solving.predict(stricter).status == "unreachable"


def test_what_can_be_met_has_no_closest_thresholds(solving: Model) -> None:
    assert solving.predict(REACHABLE).closest_thresholds is None


def test_a_measured_design_that_is_best_is_returned_as_measured() -> None:
    """The data hold the true optimum for one threshold, and nothing near it."""
    evaluations = evaluated(valley(), simulate_valley, 12)
    best = model_of(valley(), simulate_valley, 60, SOLVER).predict(REACHABLE).point
    y = simulate_valley(best)
    rows = (*evaluations, Evaluation(77, "complete", "run", best, y))
    model = make_model(Evaluations(valley(), rows), Learner(0), SOLVER, 0)
    at = {"c": max(1.0, y["c"]), "g": min(0.0, y["g"])}
    answer = model.predict(at)
    if answer.status == "verified":
        assert answer.point == best
        assert {name: e.mean for name, e in answer.outputs.items()} == y
        assert all(e.std == 0.0 for e in answer.outputs.values())
        assert answer.probability_feasible == 1.0
    else:
        assert answer.objective.mean <= y["f"] + 1e-9  # it promises more


def test_measured_values_are_told_for_measured_answers() -> None:
    model = model_of(lattice(), simulate_lattice, 12, SOLVER)
    many = model.predict_many(np.linspace(0.3, 4.0, 12)[:, None])
    verified = [i for i in range(12) if many.status(i) == "verified"]
    assert verified
    frame = many.to_frame()
    for i in verified:
        answer = many.answer(i)
        assert {name: e.mean for name, e in answer.outputs.items()} == simulate_lattice(answer.point)
        assert frame["f std"][i] == 0.0
        assert frame["probability feasible"][i] == 1.0


@pytest.mark.parametrize("probability", [0.5, 0.8, 0.95, 0.999])
def test_the_probability_asked_for_is_kept(solving: Model, probability: float) -> None:
    for c in (0.6, 1.0, 1.5):
        answer = solving.predict({"c": c, "g": 0.0}, probability=probability)
        assert answer.probability_feasible >= probability - 1e-3
        assert answer.status != "unreachable"


def test_more_probability_costs_objective() -> None:
    model = model_of(valley(), simulate_valley, 8, SOLVER)
    careless, careful = (model.predict({"c": 0.6, "g": 0.0}, probability=p) for p in (0.3, 0.9999))
    assert careful.probability_feasible > careless.probability_feasible
    assert careful.objective.mean > careless.objective.mean


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 1.5, float("nan"), "0.9", True, [0.9]])
def test_a_wrong_probability_gets_one_sentence(solving: Model, probability: object, fast: bool) -> None:
    with pytest.raises(InputError, match=r"^predict: probability must be a number between 0 and 1, got .*$"):
        solving.predict_many(REACHABLE, probability=probability, fast=fast)  # type: ignore[arg-type]


def test_fast_answers_are_close_to_the_full_ones(solving: Model) -> None:
    rows = solving.problem.box.from_theta(np.random.default_rng(0).random((40, 2)))
    full, fast = solving.predict_many(rows), solving.predict_many(rows, fast=True)
    assert fast.points.shape == full.points.shape
    reached = np.array([full.status(i) != "unreachable" for i in range(40)])
    truth = [
        np.array([simulate_valley(p)["f"] for p in solving.problem.space.points(a.x.numpy())]) for a in (full, fast)
    ]
    assert np.mean((truth[1] - truth[0])[reached]) < 0.01 * np.ptp(truth[0])
    kept = [fast.probability_feasible[i] >= 0.97 for i in range(40) if reached[i]]
    assert np.mean(kept) > 0.95
    statuses = [(full.status(i), fast.status(i)) for i in range(40)]
    assert np.mean([a == b for a, b in statuses]) > 0.85


def test_fast_answers_know_what_cannot_be_met(solving: Model) -> None:
    answer = solving.predict_many(UNREACHABLE, fast=True).answer(0)
    assert answer.status == "unreachable"
    assert answer.closest_thresholds is not None
    assert math.isfinite(answer.objective.mean)


def test_no_thresholds_give_no_answers_by_the_solver_either(solving: Model) -> None:
    for fast in (False, True):
        many = solving.predict_many(np.empty((0, 2)), fast=fast)
        assert len(many) == 0
        assert many.points.shape == (0, 2)
        assert len(many.to_frame()) == 0


def test_thresholds_outside_the_box_are_answered_as_asked_with_a_warning(solving: Model) -> None:
    answer = solving.predict({"c": 5.0, "g": -3.0})
    assert len(answer.warnings) == 2
    assert answer.status == "predicted"
    assert answer.objective.mean <= solving.predict({"c": 2.0, "g": -1.0}).objective.mean + 1e-6
    impossible = solving.predict({"c": -5.0, "g": 0.0})
    assert impossible.status == "unreachable"
    assert impossible.probability_feasible < 1e-3


def low_and_high() -> Problem:
    """The objective falls with x and c rises with it; designs with c from 0 to 4, limits from 1 to 2 only."""
    return Problem("slope", [Real("x", 0.0, 4.0)], Objective("f"), [Constraint("c", "<=", low=1.0, high=2.0)])


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("limit", [0.8, 0.95, 2.05, 2.3])
def test_a_reachable_limit_a_little_outside_the_box_is_met(limit: float, fast: bool) -> None:
    """The limit asked for is answered, not the nearest one of the box: neither broken, nor called unreachable."""
    model = model_of(low_and_high(), lambda p: {"f": -p["x"], "c": p["x"]}, 12, SOLVER)
    answer = model.predict_many({"c": limit}, fast=fast).answer(0)
    assert answer.status in ("predicted", "verified")
    assert answer.probability_feasible >= 0.97
    assert limit - 0.05 <= answer.point["x"] <= limit + 1e-6
    assert "lies outside 1 to 2" in answer.warnings[0]


@pytest.mark.parametrize("fast", [False, True])
def test_a_measured_design_that_breaks_a_limit_outside_the_box_is_not_verified(fast: bool) -> None:
    """Designs at the box's strictest limit were measured; a stricter limit breaks them."""
    problem = low_and_high()
    points = [0.0, 0.5, 0.999, 1.0, 1.5, 2.0, 3.0, 4.0]
    rows = tuple(Evaluation(i + 1, "complete", "run", {"x": x}, {"f": -x, "c": x}) for i, x in enumerate(points))
    model = make_model(Evaluations(problem, rows), Learner(0), SOLVER, 0)
    for limit in (0.9, 0.7, 0.3):
        answer = model.predict_many({"c": limit}, fast=fast).answer(0)
        assert answer.outputs["c"].mean <= limit + 1e-6
        assert answer.point["x"] not in (0.999, 1.0)


def test_limits_that_are_left_out_stand_at_their_nominal_values(model: Model) -> None:
    nominal = model.problem.box.nominal
    assert model.predict({"stress": 5.0}).thresholds == {**nominal, "stress": 5.0}
    assert model.predict().thresholds == nominal


def test_a_model_prints_as_one_line(model: Model, solving: Model) -> None:
    assert repr(model) == "Model('beam', paper method, 20 measured, 0 failed, 2 variables, 2 movable limits)"
    assert len(repr(solving)) < 200
    assert "\n" not in repr(solving.predict_many({"c": 1.0, "g": 0.0}))


def test_the_paper_method_says_what_it_does_not_do(model: Model) -> None:
    with pytest.raises(InputError, match=r"^predict: the paper method answers by its network only; leave method out$"):
        model.predict(AT, method="solver")
    assert model.predict(AT, probability=0.9).warnings == ("probability has no effect: the network aims at none",)


def test_extreme_thresholds_are_numbers_to_the_solver_too(solving: Model) -> None:
    for value in (1e300, -1e300, 0.0, 5e-324):
        for fast in (False, True):
            answer = solving.predict_many({"c": value, "g": 0.0}, fast=fast).answer(0)
            assert 0.0 <= answer.probability_feasible <= 1.0
            assert math.isfinite(answer.objective.mean)


def test_limits_that_contradict_each_other_are_unreachable() -> None:
    problem = band()
    model = model_of(problem, lambda p: {"f": p["x"] ** 2, "y": p["x"]}, 8, SOLVER)
    answer = model.predict({"low": 0.8, "top": 0.2})
    assert answer.status == "unreachable"
    assert answer.probability_feasible < 1e-6
    assert answer.closest_thresholds is not None
    assert answer.closest_thresholds["low"] <= answer.closest_thresholds["top"]
    assert model.predict({"low": 0.1, "top": 0.9}).status == "predicted"


def test_the_network_can_still_be_asked(solving: Model) -> None:
    quick = model_of(valley(), simulate_valley, 12, Settings.default().replace(hidden_width=16, library=24))
    answer = quick.predict(REACHABLE, method="pcm")
    theta = torch.from_numpy(quick.problem.box.to_theta(np.array([[1.0, 0.0]])))
    assert answer.point == quick.problem.space.points(quick.pcm.designs(theta).numpy())[0]
    assert answer.status == "predicted"
    assert quick.predict(REACHABLE, method="solver") == quick.predict(REACHABLE)
    assert solving.network is None
