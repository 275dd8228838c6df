"""Recommending limits: intents are followed, the score is the paper's, and refusals say what to do."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cbabo import Constraint, Model, Objective, Problem, Real, Settings, problems
from cbabo.answering.answers import Recommendation
from cbabo.decisions.recommend import _sizes, propose
from cbabo.decisions.wish import Wish
from cbabo.errors import InputError
from cbabo.methods.default import DefaultMethod
from cbabo.methods.method import Fitted, Ranking
from cbabo.methods.paper import PaperMethod
from cbabo.methods.settings import PaperSettings
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child
from learned import QUICK, model_of
from simulators import mirrored, simulate_mirrored, simulate_valley, valley

BASE = {"c": 1.4, "g": -0.2}
TRAINED = QUICK.replace(inner_steps=30, recommend_candidates=3000)
WORDS = {-1: "tighten", 0: "lock", 1: "loosen"}


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(valley(), simulate_valley, settings=TRAINED)


@pytest.fixture(scope="module")
def car() -> Model:
    shipped = problems.get("car")
    return model_of(shipped.problem, shipped.evaluate, 40, TRAINED)


def moves(model: Model, base: dict[str, float], found: Recommendation) -> dict[str, float]:
    """How far every limit moved, normalised: below zero is tighter."""
    box = model.problem.box
    delta = box.to_theta(box.array(found.thresholds)) - box.to_theta(box.array(base))
    return box.named(delta[0])


def check_intents(model: Model, base: dict[str, float], intents: dict[str, str], found: Recommendation) -> None:
    for name, move in moves(model, base, found).items():
        intent = intents.get(name, "lock")
        if intent == "lock":
            assert found.thresholds[name] == base[name]  # to the last bit
        else:
            assert move * {"tighten": -1, "loosen": 1}[intent] >= 0


@pytest.mark.parametrize("first", ["tighten", "lock", "loosen"])
@pytest.mark.parametrize("second", ["tighten", "lock", "loosen"])
def test_intents_are_followed(model: Model, first: str, second: str) -> None:
    intents = {"c": first, "g": second}
    if first == second == "lock":
        with pytest.raises(InputError, match=r"^recommend: there is nothing to move \(every limit is locked\); let "):
            model.recommend(BASE, intents)  # type: ignore[arg-type]
        return
    found = model.recommend(BASE, intents)  # type: ignore[arg-type]
    for proposal in (found, *found.alternatives):
        check_intents(model, BASE, intents, proposal)
        assert {name: change.intent for name, change in proposal.changes.items()} == intents


def test_the_papers_case_in_small(car: Model) -> None:
    """Car at 3.0 everywhere, with the paper's mixed intents."""
    base = dict.fromkeys(car.problem.box.names, 3.0)
    intents: dict[str, Any] = dict.fromkeys(("c1", "c3", "c9"), "tighten") | dict.fromkeys(("c5", "c7", "c8"), "loosen")
    found = car.recommend(base, intents)
    for proposal in (found, *found.alternatives):
        check_intents(car, base, intents, proposal)
    assert all(moves(car, base, found)[name] < 0 for name in ("c1", "c3", "c9"))
    assert found.improvement > 0
    box = car.problem.box
    mean = np.array([[found.answer.outputs[name].mean for name in car.problem.outputs]])
    assert (box.violations(mean, box.array(found.thresholds)) <= 1e-4 + 1e-9).all()


@pytest.mark.parametrize("name", ["pressure_vessel", "three_truss"])
def test_large_numbers_do_not_outweigh_an_intent(name: str) -> None:
    """In the paper's score the objective counts in its own unit: a gain of 1,000 outweighs its barrier of 10,000 by far."""
    shipped = problems.get(name)
    model = model_of(shipped.problem, shipped.evaluate, 30, TRAINED)
    box = shipped.problem.box
    random = np.random.default_rng(0)
    for _ in range(4):
        base = box.named(box.from_theta(0.3 + 0.4 * random.random((1, len(box.names))))[0])
        intents = {n: WORDS[int(random.integers(-1, 2))] for n in box.names}
        intents[box.names[0]] = "loosen" if set(intents.values()) == {"lock"} else intents[box.names[0]]
        found = model.recommend(base, intents)  # type: ignore[arg-type]
        for proposal in (found, *found.alternatives):
            check_intents(model, base, intents, proposal)


def test_signs_may_stand_for_words(model: Model) -> None:
    by_word = model.recommend(BASE, {"c": "tighten", "g": "loosen"})
    assert model.recommend(BASE, {"c": "<", "g": ">"}) == by_word
    assert model.recommend(BASE, {"c": ">", "g": "="}) == model.recommend(BASE, {"c": "loosen"})


def test_a_recommendation_says_everything(model: Model) -> None:
    found = model.recommend(BASE, {"c": "loosen", "g": "tighten"})
    assert list(found.thresholds) == ["c", "g"]
    answer = model.predict(found.thresholds)
    assert found.answer.thresholds == answer.thresholds == found.thresholds
    assert found.answer.point == pytest.approx(answer.point, rel=1e-12)
    assert found.answer.objective.mean == pytest.approx(answer.objective.mean, rel=1e-9)
    assert found.base.thresholds == BASE  # to the last bit
    assert found.base.point == pytest.approx(model.predict(BASE).point, rel=1e-12)
    assert found.improvement == found.base.objective.mean - found.answer.objective.mean
    assert list(found.changes) == ["c", "g"]
    for name, change in found.changes.items():
        assert change.before == BASE[name]
        assert change.after == found.thresholds[name]
        alone = model.predict({**BASE, name: change.after})
        assert change.effect == pytest.approx(found.base.objective.mean - alone.objective.mean, abs=1e-9)
    assert found.answer.warnings == ()


def test_alternatives_differ_clearly_and_come_in_order(model: Model) -> None:
    found = model.recommend(BASE, {"c": "loosen", "g": "tighten"}, alternatives=4)
    assert len(found.alternatives) == 4
    proposals = [found, *found.alternatives]
    assert all(a.utility >= b.utility for a, b in itertools.pairwise(proposals))
    box = model.problem.box
    theta = np.vstack([box.to_theta(box.array(p.thresholds)) for p in proposals])
    apart = np.abs(theta[:, None] - theta[None]).max(axis=2) + np.eye(5)
    assert apart.min() >= 0.25 * 0.2 - 1e-9
    assert all(p.alternatives == () for p in found.alternatives)


def test_a_limit_at_its_end_is_named_and_nothing_to_move_is_refused(model: Model) -> None:
    found = model.recommend({"c": 2.0, "g": 0.0}, {"c": "loosen", "g": "loosen"})
    assert found.answer.warnings == ("c is at its loosest already and cannot be loosened further",)
    assert found.thresholds["c"] == 2.0
    with pytest.raises(
        InputError, match=r"nothing to move \(c is at its loosest already and cannot be loosened further\)"
    ):
        model.recommend({"c": 2.0, "g": 0.0}, {"c": "loosen"})
    with pytest.raises(
        InputError, match=r"nothing to move \(g is at its strictest already and cannot be tightened further\)"
    ):
        model.recommend({"c": 1.0, "g": 1.0}, {"g": "tighten"})
    with pytest.raises(InputError, match=r"nothing to move \(every limit is locked\)"):
        model.recommend(BASE, {})


def test_the_same_question_gets_the_same_answer(model: Model) -> None:
    before = torch.random.get_rng_state()
    one = model.recommend(BASE, {"c": "loosen"})
    assert model.recommend(dict(reversed(BASE.items())), {"c": "loosen"}) == one
    assert torch.random.get_rng_state().equal(before)


def test_a_recommendation_can_be_the_next_base(model: Model) -> None:
    at = {"c": 1.9, "g": -0.9}
    for _ in range(3):  # up to the edges of the box, which are still inside
        at = dict(model.recommend(at, {"c": "loosen", "g": "loosen"}).thresholds)
        if at == {"c": 2.0, "g": -1.0}:
            break
    assert at["c"] <= 2.0
    assert at["g"] >= -1.0


def test_loosening_helps_and_improvement_is_positive_for_both_directions(model: Model) -> None:
    mirror = model_of(mirrored(), simulate_mirrored, settings=TRAINED)
    one = model.recommend(BASE, {"c": "loosen", "g": "loosen"})
    two = mirror.recommend({"c": -1.4, "g": 0.2}, {"c": "loosen", "g": "loosen"})
    assert one.improvement > 0
    assert two.improvement == pytest.approx(one.improvement, rel=1e-6)
    assert two.answer.objective.mean > two.base.objective.mean  # maximised: more is better
    assert two.thresholds == pytest.approx({"c": -one.thresholds["c"], "g": -one.thresholds["g"]}, rel=1e-6)
    assert two.changes["c"].effect == pytest.approx(one.changes["c"].effect, rel=1e-5, abs=1e-9)


def test_what_is_recommended_is_believed_feasible(model: Model) -> None:
    found = model.recommend(BASE, {"c": "tighten", "g": "loosen"})
    box = model.problem.box
    for proposal in (found, *found.alternatives):
        mean = np.array([[proposal.answer.outputs[name].mean for name in model.problem.outputs]])
        assert (box.violations(mean, box.array(proposal.thresholds)) <= 1e-4 + 1e-9).all()


# ---- its parts


def test_candidates_are_four_fifths_guided() -> None:
    base, directions = np.array([0.5, 0.5, 0.5]), np.array([-1.0, 0.0, 1.0])
    settings = QUICK.replace(recommend_range=0.2)
    theta = Wish(base, directions, settings).candidates(10_000, child(0, "recommend"))
    assert theta.shape == (10_000, 3)
    guided, explored = theta[:8000] - base, theta[8000:] - base
    assert (guided[:, 0] < 0).all()
    assert (theta[:, 1] == base[1]).all()
    assert (guided[:, 2] > 0).all()
    half_normal = 0.1 * np.sqrt(2 / np.pi)
    assert np.abs(guided[:, [0, 2]]).mean() == pytest.approx(half_normal, rel=0.03)
    assert explored[:, [0, 2]].std(axis=0) == pytest.approx(0.08, rel=0.06)
    assert np.abs(explored.mean(axis=0)).max() < 0.01
    edge = Wish(np.array([0.0, 1.0, 1.0]), directions, settings).candidates(100, child(0, "recommend"))
    assert ((edge >= 0) & (edge <= 1)).all()


@pytest.mark.parametrize("guided", [0.0, 1.0])
def test_the_shares_may_be_anything(guided: float) -> None:
    settings = QUICK.replace(recommend_guided=guided)
    theta = Wish(np.array([0.5]), np.array([1.0]), settings).candidates(11, child(0, "recommend"))
    assert len(theta) == 11
    assert (theta > 0.5).all() == (guided == 1.0)


def test_the_score_by_hand() -> None:
    base, directions = np.array([0.5, 0.5, 0.5]), np.array([-1.0, 0.0, 1.0])
    theta = np.array([[0.3, 0.5, 0.9], [0.6, 0.5, 0.5], [0.5, 0.51, 0.5], [0.4, 0.4, 0.4], [0.5, 0.5, 0.5]])
    gain = np.array([0.1, 1.0, 0.0, -0.2, 0.0])
    expected = [
        100 * 0.1 + 50 * 0.2,  # tightened as asked; loosened within the allowance
        100 * 1.0 - 10_000 * 0.1,  # relaxed what should be tightened
        -10_000 * 0.01,  # relaxed what is locked
        -100 * 0.2 + 50 * 0.1,  # only tightening that was asked for is rewarded
        0.0,
    ]
    assert Wish(base, directions, QUICK).utility(theta, gain) == pytest.approx(expected)


def test_loosening_beyond_the_allowance_costs_its_square() -> None:
    """In normalised thresholds the allowance of 1 is never reached; with the formula alone it can be."""
    score = Wish(np.array([0.5]), np.array([1.0]), QUICK).utility(np.array([[2.7]]), np.array([0.0]))
    assert score == pytest.approx([-50 * (2.2 - 1.0) ** 2])
    wide = Wish(np.array([30.0]), np.array([1.0]), QUICK).utility(np.array([[32.0]]), np.array([0.0]))
    assert wide == pytest.approx([-50 * (2.0 - 1.5) ** 2])


def test_weights_are_settings() -> None:
    settings = QUICK.replace(objective_weight=2.0, barrier_weight=3.0, reward_weight=5.0)
    score = Wish(np.array([0.5, 0.5]), np.array([-1.0, 0.0]), settings).utility(
        np.array([[0.4, 0.7]]), np.array([10.0])
    )
    assert score == pytest.approx([2 * 10 + 5 * 0.1 - 3 * 0.2])


def test_following_by_hand() -> None:
    delta = np.array(
        [
            [-0.1, 0.0, 0.2],
            [0.0, 0.0, 0.0],
            [0.001, 0.0, 0.1],
            [-0.1, 1e-12, 0.1],
            [-0.1, -0.006, 0.1],
            [-0.1, 0.0, -0.1],
        ]
    )
    directions = np.array([-1.0, 0.0, 1.0])
    assert Wish(np.full(3, 0.5), directions, QUICK).follows(0.5 + delta).tolist() == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]
    at_the_end = np.array([0.0, 0.5, 0.5])  # what is as tight as can be need not be tighter
    assert Wish(at_the_end, directions, QUICK).follows(at_the_end + delta).tolist() == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_choosing_different_ones_by_hand() -> None:
    theta = np.array([[0.50], [0.51], [0.56], [0.60], [0.10]])
    best_first, wish = np.array([1, 0, 2, 3]), Wish(np.array([0.5]), np.array([1.0]), QUICK)
    assert wish.different(theta, best_first, 9) == [1, 2]  # 0.05 apart at least
    assert wish.different(theta, best_first, 1) == [1]
    assert wish.different(theta, np.array([4, 0, 1, 2, 3]), 9) == [4, 0, 2]
    assert wish.different(theta, best_first[:0], 9) == []


def test_of_equally_good_ones_that_which_changes_less_comes_first() -> None:
    theta = np.array([[0.9], [0.5], [0.8], [0.6], [0.7]])
    worth = np.array([3.0, -np.inf, 3.0 + 1e-7, 1.0, 2.9])
    assert Wish(np.array([0.5]), np.array([0.0]), QUICK).ranked(theta, worth).tolist() == [2, 0, 4, 3]
    assert Wish(np.array([1.0]), np.array([0.0]), QUICK).ranked(theta, worth).tolist() == [0, 2, 4, 3]


def test_the_winner_has_the_best_score_of_all_that_follow(model: Model) -> None:
    """Everything recomputed plainly from the candidates."""
    box, limits = model.problem.box, model.posterior.limits
    base, directions = box.to_theta(box.array(BASE))[0], np.array([-1.0, 1.0])
    theta = Wish(base, directions, model.settings).candidates(3000, child(model.seed, "recommend"))
    mean = model.surrogates.mean(model.pcm.designs(torch.from_numpy(np.vstack([base, theta])))).numpy()
    obeyed = (box.violations(mean[1:], box.from_theta(theta)) <= 1e-4).all(axis=1)
    usable = obeyed & Wish(base, directions, model.settings).follows(theta)
    score = np.where(usable, Wish(base, directions, model.settings).utility(theta, mean[0, 0] - mean[1:, 0]), -np.inf)
    found = propose(model, base, directions, 3)
    assert found.theta[0] == pytest.approx(theta[score.argmax()], abs=1e-12)
    assert found.utility[0] == pytest.approx(score.max(), rel=1e-9)
    assert found.followed
    assert limits.goal == 1.0


@pytest.mark.parametrize(
    ("total", "rounds", "sizes"),
    [(3000, 0, [3000]), (2000, 16, [1008] + [62] * 16), (5, 16, [5]), (1, 3, [1]), (7, 3, [4, 1, 1, 1])],
)
def test_rounds_share_half_of_the_candidates(total: int, rounds: int, sizes: list[int]) -> None:
    assert _sizes(QUICK.replace(recommend_candidates=total, recommend_rounds=rounds)) == sizes


def test_rounds_find_better_limits_with_as_many_candidates(car: Model) -> None:
    base = dict.fromkeys(car.problem.box.names, 3.0)
    intents: dict[str, Any] = dict.fromkeys(("c1", "c3", "c9"), "tighten") | dict.fromkeys(("c5", "c7", "c8"), "loosen")
    asked = 0

    class Counted(PaperMethod):
        def rank(self, fitted: Fitted, theta: FloatArray) -> Ranking:
            nonlocal asked
            asked += len(theta)
            return super().rank(fitted, theta)

    directions = np.array([{"tighten": -1.0, "loosen": 1.0}.get(intents.get(n, ""), 0.0) for n in base])
    start = car.problem.box.to_theta(car.problem.box.array(base))[0]
    found = []
    for rounds in (0, 16):
        asked = 0
        settings = car.settings.replace(recommend_candidates=2000, recommend_rounds=rounds)
        assert isinstance(settings, PaperSettings)
        counted = replace(car, method=Counted(settings), network=car.pcm)
        found.append(propose(counted, start, directions, 4))
        assert asked == 2001 + (rounds > 0) * 4 * len(base)
    assert found[1].utility[0] > 1.1 * found[0].utility[0]
    assert found[1].followed
    assert len(found[1].theta) == 4
    assert np.abs(found[1].theta - found[1].base).max() <= 0.4 + 1e-9
    for theta, utility in zip(found[1].theta, found[1].utility, strict=True):  # no limit has moved for nothing
        for j in np.flatnonzero(theta != found[1].base):
            back = theta.copy()
            back[j] = found[1].base[j]
            ranking = counted.method.rank(counted, np.array([found[1].base, back]))
            gain = ranking.objective[:1] - ranking.objective[1:]
            score = Wish(found[1].base, directions, settings).utility(back[None], gain)
            assert not ranking.feasible[1] or score[0] < utility
    locked = [j for j, name in enumerate(base) if name not in intents]
    assert (found[1].theta[:, locked] == found[1].base[locked]).all()


def test_a_round_keeps_to_what_is_asked_for() -> None:
    """Around the two feasible ones, which are the best; with directions they are followed, within the box and the reach."""
    theta = np.array([[0.4, 0.2, 0.99], [0.1, 0.2, 0.3], [0.35, 0.2, 0.95]])
    base, directions, random = np.array([0.45, 0.2, 0.9]), np.array([-1.0, 0.0, 1.0]), child(0, "recommend")
    worth = np.array([1.0, -np.inf, 2.0])
    new = Wish(base, directions, QUICK).around(theta, worth, 1, 500, random)
    assert new.shape == (500, 3)
    assert Wish(base, directions, QUICK).follows(new).all()
    assert ((new >= 0.0) & (new <= 1.0)).all()
    assert np.abs(new - base).max() <= 0.4 + 1e-12
    assert np.abs(new[:, 0] - 0.375).mean() < 0.1
    free = Wish(base, -directions, QUICK).around(theta, worth, 1, 500, random)
    assert (free[:, 0] > base[0]).any()
    late = Wish(base, -directions, QUICK).around(theta, worth, 12, 500, random)
    assert (late - theta[[2, 0]][np.arange(500) % 2]).std() < 0.2 * (free - theta[[2, 0]][np.arange(500) % 2]).std()


# ---- refusals


@pytest.mark.parametrize(
    ("base", "intents", "words"),
    [
        ({"c": 2.5, "g": 0.0}, {}, "the base of c must lie between 0 and 2, got 2.5; start from limits inside the box"),
        ({"c": 1.0, "g": -1.01}, {}, "the base of g must lie between -1 and 1, got -1.01"),
        (BASE, {"h": "lock"}, "unknown limit 'h'; expected one of c, g"),
        (BASE, {3: "lock"}, "unknown limit 3; expected one of c, g"),
        (BASE, {"g_top": "lock"}, "the limit of 'g_top' is fixed by the problem; expected one of c, g"),
        (BASE, {"c": "relax"}, "the intent of c must be tighten, lock or loosen, got 'relax'"),
        (BASE, {"c": None}, "the intent of c must be tighten, lock or loosen, got None"),
        (BASE, {"c": ["tighten"]}, "the intent of c must be tighten, lock or loosen, got ['tighten']"),
        (BASE, {"c": -1}, "the intent of c must be tighten, lock or loosen, got -1"),
        (BASE, "tighten", "expected intents as a mapping"),
        (BASE, None, "expected intents as a mapping"),
    ],
)
def test_wrong_questions_get_one_sentence(model: Model, base: Any, intents: Any, words: str) -> None:
    with pytest.raises(InputError, match=r"^recommend: ") as caught:
        model.recommend(base, intents)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("base", [{**BASE, "x": 1}, {"c": float("nan"), "g": 0.0}, [[1.0, 0.0], [1.0, 0.0]]])
def test_a_wrong_base_gets_one_sentence(model: Model, base: Any) -> None:
    with pytest.raises(InputError, match=r"^thresholds: .*$"):
        model.recommend(base, {"c": "loosen"})


@pytest.mark.parametrize("alternatives", [-1, 1.5, True, "3", None])
def test_a_wrong_number_of_alternatives_gets_one_sentence(model: Model, alternatives: Any) -> None:
    with pytest.raises(InputError, match=r"^recommend: alternatives must be a whole number from 0 on, got .*$"):
        model.recommend(BASE, {}, alternatives=alternatives)
    assert model.recommend(BASE, {"c": "loosen"}, alternatives=0).alternatives == ()


def test_a_base_at_the_edge_is_inside_whatever_the_rounding(model: Model) -> None:
    for c, g in ((2.0, -1.0), (2.0 + 1e-12, -1.0 - 1e-12)):
        found = model.recommend({"c": c, "g": g}, {"c": "tighten"})
        assert found.base.thresholds == {"c": c, "g": g}
        assert found.thresholds["c"] <= 2.0
    with pytest.raises(InputError, match="the base of c must lie between"):
        model.recommend({"c": 2.0 + 1e-6, "g": -1.0}, {"c": "tighten"})


def unreachable(limit: float | None = None) -> Model:
    """c is never below 1, so that half of its range cannot be met; with a fixed limit that nothing obeys, none can."""
    fixed = [] if limit is None else [Constraint("h", "<=", limit=limit)]
    problem = Problem(
        "wall",
        [Real("x", 0, 1)],
        Objective("f"),
        [Constraint("c", "<=", low=0.0, high=2.0), Constraint("d", ">=", low=0.0, high=1.0), *fixed],
    )
    return model_of(
        problem, lambda p: {"f": -p["x"], "c": 1.0 + p["x"] ** 2, "d": 0.5 + 0.1 * p["x"], "h": 5.0}, 10, TRAINED
    )


def test_nothing_feasible_is_told_with_the_nearest_limits_that_can_be_met() -> None:
    model = unreachable()
    with pytest.raises(InputError) as caught:
        model.recommend({"c": 0.2, "d": 0.9}, {"c": "loosen"})
    text = str(caught.value)
    told = re.fullmatch(
        r"recommend: no candidate near the base obeys its limits; the nearest that can be met: c = (\S+), d = (\S+)",
        text,
    )
    assert told is not None
    c, d = float(told[1]), float(told[2])
    assert 1.0 - 0.05 <= c <= 1.5
    assert 0.45 <= d <= 0.6
    assert model.recommend({"c": min(2.0, c + 0.3), "d": d - 0.1}, {"c": "loosen"}).thresholds["c"] >= c


def test_where_nothing_helps_that_is_said() -> None:
    with pytest.raises(
        InputError, match=r"^recommend: no limits near the base can be met, .*; start from more relaxed limits$"
    ):
        unreachable(limit=1.0).recommend({"c": 1.0, "d": 0.2}, {"c": "loosen"})


def test_when_intents_cannot_be_followed_the_rest_is_offered_with_a_warning() -> None:
    """The base is a little too strict and should be tightened: only relaxing it helps."""
    model = unreachable()
    found = model.recommend({"c": 0.98, "d": 0.1}, {"c": "tighten", "d": "loosen"})
    assert found.thresholds["c"] > 0.98
    assert len(found.answer.warnings) == 1
    assert found.answer.warnings[0].startswith("no limits that follow all intents are predicted to be feasible")


# ---- with the default settings


@pytest.fixture(scope="module")
def solving() -> Model:
    settings = Settings.default().replace(library=48, recommend_candidates=600)
    return model_of(valley(), simulate_valley, 35, settings)


@pytest.mark.parametrize(
    "intents", [("tighten", "loosen"), ("loosen", "tighten"), ("loosen", "lock"), ("lock", "tighten")]
)
def test_intents_are_followed_with_the_default_settings_too(solving: Model, intents: tuple[str, str]) -> None:
    named: dict[str, Any] = dict(zip(("c", "g"), intents, strict=True))
    found = solving.recommend(BASE, named)
    for proposal in (found, *found.alternatives):
        check_intents(solving, BASE, named, proposal)
        assert proposal.answer.probability_feasible >= 0.97
        assert proposal.answer.status != "unreachable"
        truth = simulate_valley(proposal.answer.point)
        assert truth["c"] <= proposal.thresholds["c"] + 1e-3
        assert truth["g"] >= proposal.thresholds["g"] - 1e-3
        assert proposal.improvement == pytest.approx(
            solving.predict(BASE).objective.mean - proposal.answer.objective.mean, abs=1e-9
        )


def test_loosening_what_binds_gains_what_the_multiplier_says(solving: Model) -> None:
    found = solving.recommend({"c": 0.8, "g": 0.2}, {"c": "loosen", "g": "loosen"})
    assert found.improvement > 0
    best = min(solving.predict({"c": 0.8 + dc, "g": 0.2 - dg}).objective.mean for dc in (0.0, 0.4) for dg in (0.0, 0.4))
    assert found.answer.objective.mean <= best + 0.5 * found.improvement


def test_the_network_is_not_needed_with_the_default_settings(solving: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nobody asked")

    monkeypatch.setattr("cbabo.methods.default.distil", refuse)
    assert solving.recommend(BASE, {"c": "tighten"}).thresholds["c"] <= BASE["c"]


def test_where_nothing_near_can_be_met_the_solver_says_what_can(solving: Model) -> None:
    with pytest.raises(InputError, match="the nearest that can be met: c = ") as caught:
        method = DefaultMethod(Settings.default().replace(recommend_range=0.01))
        replace(solving, method=method).recommend({"c": 0.0, "g": 1.0}, {"c": "loosen", "g": "loosen"})
    stated = dict(re.findall(r"(\w+) = ([-0-9.e]+)", str(caught.value).split("met: ")[1]))
    assert solving.predict({name: float(value) for name, value in stated.items()}).probability_feasible > 0.9
