"""The explorer in one file, in a real browser with the network cut."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from browser import Window, window
from cbabo import Categorical, Constraint, Discrete, Integer, Model, Objective, Problem, Real, Settings
from cbabo.decisions.tradeoff import UNLIKELY, along, placed, reachable
from cbabo.decisions.wish import Wish
from cbabo.domain.convergence import Convergence
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.errors import InputError
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from cbabo.numerics import qp
from cbabo.numerics.tolerances import PROBABILITY_SLACK
from cbabo.solver import continuous, library
from cbabo.surfaces.document import document
from cbabo.surfaces.page import single_file
from cbabo.surrogate import gp
from learned import QUICK, Simulate, edged, evaluated, model_of
from page.conftest import write
from simulators import (
    bar,
    lattice,
    make_beam,
    mirrored,
    simulate_bar,
    simulate_beam,
    simulate_lattice,
    simulate_mirrored,
    simulate_valley,
    valley,
)


def mixed() -> Problem:
    """Every kind of variable, a limit on several outputs, and two limits on one."""
    return Problem(
        "mixed",
        [Discrete("gauge", [0.192, 0.345, 0.5]), Real("r", 1e-3, 1e3, log=True), Integer("teeth", 17, 28)],
        Objective("f", direction="maximize"),
        [
            Constraint("c", "<=", low=0.0, high=40.0, outputs=["c1", "c2"]),
            Constraint("c_low", ">=", low=-50.0, high=-20.0, outputs="c1"),
            Constraint("f_top", "<=", limit=30.0, outputs="f"),
        ],
    )


def simulate_mixed(p: dict[str, float]) -> dict[str, float]:
    decades = math.log10(p["r"])
    return {
        "f": p["teeth"] - 5 * p["gauge"] - decades**2,
        "c1": p["teeth"] * decades / 2,
        "c2": p["teeth"] + 9 * p["gauge"],
    }


def related() -> Problem:
    """Known relations, one of them curved, formulas of variables, and formulas of outputs."""
    return Problem(
        "related",
        [Real("outer diameter", 10, 60), Real("wall", 0.5, 8, log=True), Integer("ribs", 2, 9)],
        "mass",
        [
            Constraint("safety", ">=", low=1.0, high=4.0),
            Constraint("deflection", low=0.5, high=4.0),
            Constraint("slenderness", limit=25.0),
        ],
        relations=["2.5*wall <= `outer diameter`/2", "ribs*wall <= 24", "wall*`outer diameter` >= 12"],
        derived={
            "mass": "pi*(`outer diameter` - wall)*wall*(1 + 0.02*ribs)",
            "safety": "max(strength, 200)/stress",
            "slenderness": "`outer diameter`/wall",
        },
    )


def simulate_related(p: dict[str, float]) -> dict[str, float]:
    stiffness = p["outer diameter"] ** 2 * p["wall"] * (1 + 0.1 * p["ribs"])
    return {"stress": 4e5 / stiffness, "strength": 210 - 3 * p["wall"] ** 2, "deflection": 1e6 / stiffness / p["ribs"]}


PROBLEMS = {
    "valley": (valley, simulate_valley),
    "mirrored": (mirrored, simulate_mirrored),
    "lattice": (lattice, simulate_lattice),
    "mixed": (mixed, simulate_mixed),
    "materials": (bar, simulate_bar),
    "related": (related, simulate_related),
}


FOCUSED = """() => {
    const e = document.activeElement;
    return e.id || e.getAttribute("aria-label") || e.textContent;
}"""
TOO_WIDE = """() => [...document.querySelectorAll("main *")]
    .filter((e) => e.getBoundingClientRect().right > 401 && !e.closest("svg, .wider"))
    .map((e) => e.outerHTML.slice(0, 80))"""


def opened(shown: Window, address: str) -> Window:
    shown.page.goto(address)
    shown.wait("window.explorer?.panel.answer && explorer.tradeoffs.curve?.work.done")
    return shown


SOLVER = Settings.default().replace(library=16)


def crashing(count: int = 60) -> Evaluations:
    """The valley with a region in which the simulator fails."""
    rows = [
        row if row.point["a"] < 0.5 else Evaluation(row.id, "failed", "run", row.point, {}, failure="no mesh")
        for row in evaluated(valley(), simulate_valley, count)
    ]
    return Evaluations(valley(), tuple(rows))


def noisy(problem: Problem, simulate: Simulate) -> Evaluations:
    """Limited outputs with noise, and one design that was measured twice, which shows it."""
    random = np.random.default_rng(3)

    def scattered(point: dict[str, float]) -> dict[str, float]:
        return {name: y + 0.05 * random.standard_normal() * (name != "f") for name, y in simulate(point).items()}

    rows = evaluated(problem, scattered, 24).rows
    again = Evaluation(25, "complete", "run", rows[0].point, scattered(rows[0].point))
    return Evaluations(problem, (*rows, again))


BY_SOLVER = [*PROBLEMS, "noisy valley", "noisy mixed", "noisy lattice", "crashing", "edged"]
BY_NETWORK = [*PROBLEMS, "noisy valley", "crashing"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *(pytest.param(name, QUICK, id=f"{name}-network") for name in BY_NETWORK),
        *(pytest.param(name, SOLVER, id=f"{name}-solver") for name in BY_SOLVER),
    ],
)
def test_the_page_agrees_with_python_on_hundreds_of_thresholds(
    chromium: Browser, tmp_path: Path, name: str, settings: Settings
) -> None:
    if name in ("crashing", "edged"):
        model = make_model(crashing() if name == "crashing" else edged(), Learner(0), settings, 0)
        assert (model.posterior.failure_model is not None) == (settings is SOLVER and name == "crashing")
    elif name.startswith("noisy "):
        problem, simulate = PROBLEMS[name.removeprefix("noisy ")]
        model = make_model(noisy(problem(), simulate), Learner(0), settings, 0)
        assert model.posterior.all_exact == (settings is QUICK)
    else:
        problem, simulate = PROBLEMS[name]
        model = model_of(problem(), simulate, count=24, settings=settings)
    box = model.problem.box
    count = 1000 if name == "valley" else 400
    thresholds = box.from_theta(np.random.default_rng(1).uniform(-0.3, 1.3, (count, len(box.names))))
    expected = model.predict_many(thresholds, fast=True)
    with window(chromium, offline=True) as shown:
        opened(shown, write(model, tmp_path / f"{name}.html"))
        found = shown.page.evaluate("rows => explorer.answers.many(rows)", thresholds.tolist())
    space = model.problem.space
    ranges = np.array([1.0 if isinstance(v, Categorical) else v.high - v.low for v in model.problem.variables])
    points = space.array([dict(zip(space.names, answer["point"], strict=True)) for answer in found])
    assert np.abs((points - expected.points) / ranges).max() < 1e-6
    spread = np.ptp(model.evaluations.complete.y, axis=0)
    for part, moment in zip(("mean", "std"), expected.moments, strict=True):
        assert np.abs((np.array([answer[part] for answer in found]) - moment) / spread).max() < 1e-6
    chance = np.array([answer["probability"] for answer in found])
    assert np.abs(chance - expected.probability_feasible).max() < 1e-6
    success = np.array([answer["success"] for answer in found])
    assert np.abs(success - expected.probability_success).max() < 1e-6
    assert (success < 1.0).any() == (name == "crashing")
    assert [answer["approximate"] for answer in found] == expected.approximate.tolist()
    least = UNLIKELY if settings is QUICK else settings.probability - PROBABILITY_SLACK
    sure = np.abs(chance - least) > 1e-6
    assert ([answer["status"] != "unreachable" for answer in found] == reachable(expected))[sure].all()
    if settings is SOLVER:
        assert np.array_equal(
            [answer["status"] == "verified" for answer in found],
            [expected.status(i) == "verified" for i in range(count)],
        )


def test_the_page_leaves_out_the_requirements_that_python_leaves_out(chromium: Browser, tmp_path: Path) -> None:
    """With many entries, requirements that come near their bounds in none have no rows in the programs."""
    model = model_of(make_beam(), simulate_beam, count=30, settings=SOLVER.replace(library=80))
    box = model.problem.box
    thresholds = box.from_theta(np.random.default_rng(1).uniform(-0.3, 1.3, (200, len(box.names))))
    expected = model.predict_many(thresholds, fast=True)
    assert len(model.fast_map.near) < len(box.scales)
    with window(chromium, offline=True) as shown:
        opened(shown, write(model, tmp_path / "beam.html"))
        assert shown.page.evaluate("explorer.answers.map.library.near") == model.fast_map.near.tolist()
        found = shown.page.evaluate("rows => explorer.answers.many(rows)", thresholds.tolist())
    assert np.array([answer["point"] for answer in found]) == pytest.approx(expected.points, abs=1e-6)


def test_the_page_follows_the_tuning_in_its_document(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other numbers Python finds other designs, and the page finds the same: it holds no copies of its own."""
    thresholds = valley().box.from_theta(np.random.default_rng(1).random((100, 2)))
    before = model_of(valley(), simulate_valley, count=24, settings=SOLVER).predict_many(thresholds, fast=True)
    changes = {
        library: {
            "rough_guesses": 0,
            "rough_iterations": 4,
            "corrections": (5.0,),
            "margin_corrections": 1,
            "penalty": 3.0,
        },
        continuous: {"widest": 1.5, "price_span": 2.0, "price_halvings": 5},
        qp: {"central": 0.3, "step_fraction": 0.6},
        gp: {"min_variance": 1e-3},
    }
    for module, numbers in changes.items():
        monkeypatch.setattr(module, "TUNING", replace(module.TUNING, **numbers))  # type: ignore[attr-defined]
    model = model_of(valley(), simulate_valley, count=24, settings=SOLVER)
    expected = model.predict_many(thresholds, fast=True)
    assert np.abs(expected.points - before.points).max() > 1e-3
    with window(chromium, offline=True) as shown:
        opened(shown, write(model, tmp_path / "valley.html"))
        found = shown.page.evaluate("rows => explorer.answers.many(rows)", thresholds.tolist())
    assert np.array([answer["point"] for answer in found]) == pytest.approx(expected.points, abs=1e-6)
    assert np.array([answer["std"] for answer in found]) == pytest.approx(expected.moments[1], abs=1e-6)


def test_curves_and_measured_designs_are_those_of_python(chromium: Browser, tmp_path: Path) -> None:
    model = model_of(valley(), simulate_valley)
    at = {"c": 1.2, "g": 0.1}
    curve, designs = along(model, at, "g", 33), placed(model.evaluations, at, ("g",))
    with window(chromium, offline=True) as shown:
        opened(shown, write(model, tmp_path / "valley.html") + "#at.c=1.2&at.g=0.1&curve=g")
        found = shown.page.evaluate("explorer.tradeoffs.curve")
    assert found["limits"] == pytest.approx(curve.limits.tolist())
    assert [answer["mean"][0] for answer in found["found"]] == pytest.approx(curve.mean.tolist())
    assert [e["id"] for e in found["placed"]] == designs.ids.tolist()
    assert [e["limits"][0] for e in found["placed"]] == pytest.approx(designs.limits[:, 0].tolist())


def test_a_slider_moves_the_design_and_the_address(chromium: Browser, exported: str, model: Model) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, exported).page
        before = shown.text("#objective")
        slider = page.get_by_role("slider", name="limit of stress, at most")
        slider.fill("6")
        shown.wait("explorer.panel.answer.thresholds[0] === 6")
        answer = model.predict({**model.problem.box.nominal, "stress": 6.0})
        assert shown.answer()["point"] == pytest.approx(list(answer.point.values()))
        assert shown.text("#objective") != before
        assert page.get_by_role("spinbutton", name="limit of stress, at most").input_value() == "6"
        slider.dispatch_event("change")
        assert "at.stress=6" in page.url
        link = page.url
        page.get_by_role("button", name="Copy link").click()
        assert page.evaluate("navigator.clipboard.readText()") == link
        page.get_by_role("button", name="Copy point").click()
        assert page.evaluate("navigator.clipboard.readText().then(JSON.parse)") == pytest.approx(answer.point)
        page.goto("about:blank")
        opened(shown, link)
        assert shown.answer()["thresholds"] == [6, 4]
        shown.shot("offline")


def test_a_file_says_how_far_its_answers_still_move(
    chromium: Browser, exported: str, model: Model, tmp_path: Path
) -> None:
    moves = Convergence(evaluations=30, window=10, thresholds=64, moved=0.02, gain=0.002, risk=0.001)
    file = tmp_path / "moving.html"
    file.write_text(single_file(document(model, model.problem.name, moves)), encoding="utf-8")
    for address, words in ((file.as_uri(), f"Convergence: {moves}."), (exported, "")):
        with window(chromium, offline=True) as shown:
            shown.page.goto(address)
            shown.wait("window.explorer?.panel.answer")
            assert shown.text("#convergence") == words
            assert shown.page.locator("#convergence").is_visible() == bool(words)


def test_presets_undo_and_what_needs_a_server(chromium: Browser, exported: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, exported).page
        undo = page.get_by_role("button", name="Undo")
        assert undo.is_disabled()
        for name, thresholds in (("Strictest", [1, 6]), ("Most relaxed", [9, 2]), ("Nominal", [5, 4])):
            page.get_by_role("button", name=name).click()
            shown.wait(f"String(explorer.panel.answer.thresholds) === '{thresholds[0]},{thresholds[1]}'")
        undo.click()
        shown.wait("String(explorer.panel.answer.thresholds) === '9,2'")
        page.keyboard.press("Control+z")
        shown.wait("String(explorer.panel.answer.thresholds) === '1,6'")
        for selector in ("#verify", "#improve", "#hand-out"):
            assert not page.is_visible(selector)


@cache
def beam_model(settings: Settings) -> Model:
    return model_of(make_beam(), simulate_beam, count=30, settings=settings)


IN_ROUNDS = QUICK.replace(inner_steps=30, recommend_candidates=2000, recommend_rounds=16)


@pytest.mark.parametrize("settings", [IN_ROUNDS, SOLVER], ids=["network", "solver"])
@pytest.mark.parametrize(("first", "second"), [("loosen", "lock"), ("tighten", "loosen")])
def test_recommended_limits_are_as_good_as_pythons(
    chromium: Browser, tmp_path: Path, settings: Settings, first: str, second: str
) -> None:
    """The page's draws are its own, so that the proposals differ, but their scores hardly do."""
    model = beam_model(settings)
    base, intents = {"stress": 3.0, "frequency": 3.0}, {"stress": first, "frequency": second}
    names = list(base)
    with window(chromium, offline=True) as shown:
        page = opened(shown, write(model, tmp_path / "beam.html") + "#at.stress=3&at.frequency=3").page
        for name in names:
            page.get_by_label(f"intent of {name}", exact=True).select_option(intents[name])
        page.get_by_role("button", name="Recommend").click()
        page.get_by_role("button", name="Accept proposal").wait_for()
        found = page.evaluate("explorer.recommend.proposal.found")
        after = [change["after"] for change in found["changes"]]
        page.get_by_role("button", name="Accept proposal").click()
        shown.wait(f"String(explorer.panel.answer.thresholds) === String({after})")
        assert shown.answer()["mean"][0] == pytest.approx(found["objective_after"])
        if after != list(base.values()):  # it may be best to move nothing
            page.get_by_role("button", name="Undo").click()
        shown.wait("String(explorer.panel.answer.thresholds) === '3,3'")
    expected = model.recommend(base, intents)  # type: ignore[arg-type]
    box = model.problem.box
    theta = box.to_theta(np.array([list(base.values()), after, list(expected.thresholds.values())]))
    directions = np.array([{"tighten": -1.0, "lock": 0.0, "loosen": 1.0}[intent] for intent in (first, second)])
    ranking = model.method.rank(model, theta)
    value, feasible = ranking.objective, ranking.feasible
    assert feasible[1:].all()
    wish = Wish(theta[0], directions, settings)
    follows = wish.follows(theta[1:])
    assert follows[0] == follows[1]
    assert follows[0] == (found["warnings"] == [])
    score = wish.utility(theta[1:], value[0] - value[1:])
    assert score[0] >= score[1] - 0.15 * abs(score[1]) - 0.05
    assert [change["intent"] for change in found["changes"]] == [first, second]
    assert found["improvement"] == pytest.approx(found["objective_before"] - found["objective_after"])
    alone = [model.predict_many([[after[0], 3.0]], fast=True), model.predict_many([[3.0, after[1]]], fast=True)]
    effects = [found["objective_before"] - a.moments[0][0, 0] for a in alone]
    assert [change["effect"] for change in found["changes"]] == pytest.approx(effects, abs=1e-5)


PROPOSE = """async ([settings, thresholds, intents]) => {
    const { answers, stated } = explorer;
    Object.assign(stated.recommend, settings);
    const rank = answers.rank;
    let ranked = 0;
    answers.rank = (rows, tolerance) => ((ranked += rows.length), rank.call(answers, rows, tolerance));
    const found = await explorer.recommend.ask({ thresholds, intents });
    answers.rank = rank;
    return { found, ranked };
}"""


@pytest.mark.parametrize(
    "intents",
    [("loosen", "lock"), ("tighten", "loosen"), ("loosen", "loosen"), ("tighten", "tighten")],
    ids="-".join,
)
def test_recommended_round_steps_are_pythons(
    chromium: Browser, solved: str, beam_model: Model, intents: tuple[str, str]
) -> None:
    base = {"stress": 3.0, "frequency": 3.0}
    stated = dict(zip(base, intents, strict=True))
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=3&at.frequency=3").page
        for name, intent in stated.items():
            page.get_by_label(f"intent of {name}", exact=True).select_option(intent)
        page.get_by_role("button", name="Recommend").click()
        page.locator("#proposal table").wait_for()
        assert page.locator("#unrounded").count() == 0
        found = page.evaluate("explorer.recommend.proposal.found")
    expected = beam_model.recommend(base, stated)  # type: ignore[arg-type]
    assert {change["limit"]: change["after"] for change in found["changes"]} == pytest.approx(expected.thresholds)
    assert found["improvement"] == pytest.approx(expected.improvement, abs=1e-2)
    assert len(found["alternatives"]) == len(expected.alternatives)
    for other, alternative in zip(found["alternatives"], expected.alternatives, strict=True):
        assert other["limits"] == pytest.approx(alternative.thresholds)


def test_locked_limits_stay_equal_and_candidates_and_rounds_are_the_documents(
    chromium: Browser, tmp_path: Path
) -> None:
    made = IN_ROUNDS.replace(recommend_candidates=100, recommend_rounds=4)
    model = model_of(make_beam(), simulate_beam, count=30, settings=made)
    base = {"stress": 3.3000000000000003, "frequency": 2.9000000000000004}
    with window(chromium, offline=True) as shown:
        page = opened(shown, write(model, tmp_path / "beam.html")).page
        for locked, other in (("stress", "frequency"), ("frequency", "stress")):
            for intent in ("tighten", "loosen"):
                result = page.evaluate(PROPOSE, [{}, base, {locked: "lock", other: intent}])
                assert result["ranked"] == 1 + 100 + 2  # The base, all candidates, and every limit moved back once.
                after = {change["limit"]: change["after"] for change in result["found"]["changes"]}
                assert after[locked] == base[locked]
        for candidates, rounds, ranked in ((60, 0, 1 + 60), (7, 5, 1 + 7), (40, 3, 1 + 40 + 2)):
            stated = {"candidates": candidates, "rounds": rounds}
            assert page.evaluate(PROPOSE, [stated, base, {"stress": "loosen"}])["ranked"] == ranked


@pytest.mark.parametrize(
    ("at", "intents", "noted"),
    [
        ((3.0, 3.0), ("lock", "lock"), "every limit is locked"),
        ((9.0, 3.0), ("loosen", "lock"), "stress is at its loosest already and cannot be loosened further"),
        ((1.0, 6.0), ("tighten", "tighten"), "frequency is at its strictest already"),
        ((12.5, 3.0), ("tighten", "lock"), "the base of stress must lie between 1 and 9, got 12.5"),
        ((1.0, 6.0), ("lock", "loosen"), "the nearest that can be met: "),
        ((9.0, 3.0), ("loosen", "loosen"), "stress is at its loosest already and cannot be loosened further"),
    ],
)
def test_without_a_server_too_a_recommendation_says_why_not(
    chromium: Browser, exported: str, model: Model, at: tuple[float, float], intents: tuple[str, str], noted: str
) -> None:
    base, wish = ({"stress": pair[0], "frequency": pair[1]} for pair in (at, intents))
    try:
        expected = list(model.recommend(base, wish).answer.warnings)  # type: ignore[arg-type]
    except InputError as error:
        expected = [str(error)]
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{exported}#at.stress={at[0]}&at.frequency={at[1]}").page
        for name, intent in wish.items():
            page.get_by_label(f"intent of {name}", exact=True).select_option(str(intent))
        page.get_by_role("button", name="Recommend").click()
        page.locator("#proposal .worse").first.wait_for()
        found = page.locator("#proposal p.worse").all_inner_texts()
        assert page.get_by_role("button", name="Recommend").is_enabled()
        assert page.locator("#unrounded").count() == page.locator("#proposal table").count()
    assert len(found) == len(expected)
    assert noted in found[0]
    assert found[0].split("met: ")[0] == expected[0].split("met: ")[0]


def test_limits_outside_their_ranges_are_answered_as_they_were_asked(
    chromium: Browser, exported: str, model: Model
) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{exported}#at.stress=12.25&at.frequency=2").page
        answer = model.predict({"stress": 12.25, "frequency": 2.0})
        assert shown.answer()["thresholds"] == [12.25, 2]
        assert shown.answer()["point"] == pytest.approx(list(answer.point.values()))
        assert shown.answer()["probability"] == pytest.approx(answer.probability_feasible)
        assert page.locator("#warnings p").all_inner_texts() == list(answer.warnings)
        field = page.get_by_role("spinbutton", name="limit of frequency, at least")
        assert page.get_by_role("spinbutton", name="limit of stress, at most").input_value() == "12.25"
        field.fill("100")
        page.keyboard.press("Enter")
        shown.wait("explorer.panel.answer.thresholds[1] === 100")
        assert len(model.predict({"stress": 12.25, "frequency": 100.0}).warnings) == 2
        assert page.locator("#warnings p").all_inner_texts()[:2] == list(
            model.predict({"stress": 12.25, "frequency": 100.0}).warnings
        )
        assert shown.text("#status") == "Unreachable"
        shown.shot("outside")


def test_unreachable_limits_say_what_can_be_met(chromium: Browser, exported: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{exported}#at.stress=1&at.frequency=6").page
        if shown.answer()["status"] != "unreachable":
            pytest.fail("this study reaches its strictest limits; choose another for this test")
        assert shown.text("#status") == "Unreachable"
        assert page.locator("#rows .violated").count() >= 1
        page.locator(".way button").first.click()
        shown.wait("explorer.panel.answer.status !== 'unreachable'")


def test_maps_are_drawn_and_clicked(chromium: Browser, exported: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, exported).page
        shown.wait("explorer.tradeoffs.cells?.work.done")
        frame = page.locator("#map").bounding_box()
        assert frame is not None
        page.mouse.click(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
        shown.wait("explorer.panel.answer.thresholds[0] > 4 && explorer.panel.answer.thresholds[0] < 6.5")
        assert page.locator("#map .cell").count() >= 1
        page.select_option("#map-first", label="frequency")  # the other one gives way
        shown.wait("document.getElementById('map-second').value === '0'")


def test_keyboard_alone_does_everything(chromium: Browser, exported: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, exported).page
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(FOCUSED))
        assert {
            "Strictest", "Nominal", "Most relaxed", "copy", "link", "theme", "curve-limit", "map-first", "map-second",
            "limit of stress, at most", "limit of frequency, at least",
        } <= reached  # fmt: skip
        slider = page.get_by_role("slider", name="limit of stress, at most")
        slider.focus()
        page.keyboard.press("ArrowRight")
        shown.wait("Math.abs(explorer.panel.answer.thresholds[0] - 5.08) < 1e-9")
        page.keyboard.press("PageDown")
        shown.wait("Math.abs(explorer.panel.answer.thresholds[0] - 4.28) < 1e-9")
        assert slider.get_attribute("aria-valuetext") == "4.2800"
        page.keyboard.press("Tab")
        field = page.get_by_role("spinbutton", name="limit of frequency, at least")
        field.focus()
        field.fill("3.5")
        page.keyboard.press("Enter")
        shown.wait("explorer.panel.answer.thresholds[1] === 3.5")
        field.fill("")  # Nothing stays what it was.
        page.keyboard.press("Enter")
        assert field.input_value() == "3.5"
        shown.wait("document.getElementById('spoken').textContent.includes('probability of feasibility')")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_narrow_screen_in_both_themes(chromium: Browser, exported: str, theme: str) -> None:
    with window(chromium, offline=True, viewport={"width": 400, "height": 800}, color_scheme=theme) as shown:
        page = opened(shown, exported).page
        shown.wait("explorer.tradeoffs.cells?.work.done")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.evaluate(TOO_WIDE) == []
        shown.shot(f"narrow-{theme}")
        background = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(background)
        page.click("#theme")
        assert page.evaluate(background) != before
