"""Words and numbers: the sentence, digits, what is explained, what the answer rests on, and the probability that is aimed at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser

from browser import TOKEN, served, window
from cbabo import Model, Settings, Study
from learned import model_of
from page.conftest import SOLVED, write
from page.exploring import explained, opened
from simulators import make_beam, mirrored, simulate_beam, simulate_mirrored

AT = {"stress": 6.0, "frequency": 3.0}


@pytest.fixture(scope="module")
def solver_study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("solver")
    study = Study.create(make_beam(), f"sqlite:///{folder}/solved.db", settings=Settings.default().replace(library=8))
    study.run(simulate_beam, budget=22, in_process=True)
    return study


def test_a_sentence_says_what_one_sees(chromium: Browser, solved: str, beam_model: Model, tmp_path: Path) -> None:
    with window(chromium, offline=True) as shown:
        opened(shown, f"{solved}#at.stress=6&at.frequency=3")
        explained(shown)
        answer = beam_model.predict_many([AT], fast=True).answer(0)
        words = shown.text("#sentence")
        kind = "is, as measured," if answer.verified else "is predicted to be"
        assert words.startswith(f"The least mass under these limits {kind} ")
        assert float(words.split(f"{kind} ")[1].split(" kg")[0]) == pytest.approx(answer.objective.mean, rel=1e-3)
        assert words.endswith("; frequency decides.")
        shown.page.evaluate("explorer.state.set([1, 6])")
        shown.wait("explorer.explainer.insight?.conflict")
        assert shown.text("#sentence").startswith("No design is predicted to obey these limits")
        assert "unit cube" not in shown.page.evaluate("document.body.innerText")
    model = model_of(mirrored(), simulate_mirrored, count=24, settings=SOLVED)
    with window(chromium, offline=True) as shown:
        opened(shown, write(model, tmp_path / "mirrored.html"))
        explained(shown)
        assert shown.text("#sentence").startswith("The greatest f under these limits is")
        prices = shown.page.evaluate("explorer.explainer.insight.prices")
        for name, price in zip(("c", "g"), prices, strict=True):
            assert price["value"] >= 0.0
            if price["value"] > 0:
                assert " gains " in shown.text(f"[data-limit={name}] .price")


DIGITS = """() => import("/numbers.js").then(({ certain, spread }) =>
    [
        [18.83421, 0.12], [18.83421, 0.0004], [12345.6, 320], [0.0123456, 0.0021],
        [-0.004, 0.12], [18.83421, 0], [2.5e9, 1e7], [0, 0.5],
    ].map(([value, std]) => certain(value, std) + spread(value, std)))"""


def test_digits_follow_the_deviation(chromium: Browser, study: Study) -> None:
    with served(study) as address, window(chromium) as shown:
        opened(shown, address)
        assert shown.page.evaluate(DIGITS) == [
            "18.83 ± 0.12", "18.834 ± <0.001", "12350 ± 320", "0.0123 ± 0.0021", "0.00 ± 0.12", "18.834",
            "2.5000e9 ± 1.0e7", "0.00 ± 0.50",
        ]  # fmt: skip


def test_stated_values_are_shown_as_stated(chromium: Browser, ten: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, ten)
        values = dict(
            zip(
                page.evaluate("explorer.state.problem.variables.map((v) => v.name)"),
                shown.answer()["point"],
                strict=True,
            )
        )
        gauge = page.locator("#design .variable", has_text="gauge").locator(".number").first.inner_text()
        assert gauge == f"{values['gauge of the outer door panel']:g}"
        assert gauge in ("0.192", "0.345", "0.5")
        assert page.locator("#design .variable", has_text="ribs").locator(".number").first.inner_text() == str(
            int(values["ribs"])
        )


def test_words_explain_themselves_and_the_first_visit_is_told(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, solved)
        assert page.locator("#welcome").is_visible()
        page.get_by_role("button", name="Got it").click()
        page.reload()
        opened(shown, solved)
        assert page.locator("#welcome").is_hidden()
        for name, meaning in (
            ("probability", "how sure the model is"),
            ("predicted output", "nobody has run"),
            ("relaxing it", "the others held"),
        ):
            page.get_by_role("button", name=name, exact=True).press("Enter")
            assert meaning in shown.text("#help")
            page.keyboard.press("Escape")
            assert page.locator("#help").is_hidden()


def test_it_is_told_what_the_answer_rests_on(chromium: Browser, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(study) as address, window(chromium) as shown:
        monkeypatch.setattr(
            "cbabo.surfaces.web.following.Follower._learn", lambda *_: None
        )  # The newer model takes long.
        opened(shown, f"{address}#token={TOKEN}")
        last = max(row.started for row in study.evaluations if row.started is not None)
        assert shown.text("#basis") == f"Rests on 32 measured designs, the last of {last:%Y-%m-%d %H:%M} UTC."
        study.add(pd.DataFrame([{"width": 1.2345, "ribs": 2, **simulate_beam({"width": 1.2345, "ribs": 2})}]))
        shown.wait("document.getElementById('progress').textContent.startsWith('33 measured')")
        shown.wait("document.getElementById('basis').textContent.includes('; 1 newer one is not in it yet')")
        assert shown.text("#basis").startswith("Rests on 32 measured designs")


@pytest.mark.parametrize("probability", [0.5, 0.8, 0.999])
def test_answers_that_aim_at_another_probability_are_pythons(
    chromium: Browser, solved: str, beam_model: Model, probability: float
) -> None:
    box = beam_model.problem.box
    thresholds = box.from_theta(np.random.default_rng(2).uniform(-0.1, 1.1, (200, 2)))
    expected = beam_model.predict_many(thresholds, probability=probability, fast=True)
    with window(chromium, offline=True) as shown:
        page = opened(shown, solved)
        page.select_option("#risk", str(probability))
        shown.wait(f"explorer.answers.map.library.aim === {probability}")
        assert f"probability={probability}" in page.url
        found = page.evaluate("rows => explorer.answers.many(rows)", thresholds.tolist())
        assert np.array([answer["point"] for answer in found]) == pytest.approx(expected.points, abs=1e-6)
        page.reload()
        opened(shown, page.url)
        assert page.evaluate("explorer.answers.map.library.aim") == probability
        page.go_back()


def test_the_server_answers_for_the_probability_and_explains(chromium: Browser, solver_study: Study) -> None:
    model = solver_study.model()
    with served(solver_study, simulate_beam) as address, window(chromium) as shown:
        page = opened(shown, f"{address}#token={TOKEN}&at.stress=6&at.frequency=3")
        shown.wait("explorer.explainer.insight?.source === 'server' && explorer.explainer.insight.curves")
        found = model.explain(AT)
        insight = page.evaluate("explorer.explainer.insight")
        for i, name in enumerate(AT):
            price = found.answer.prices[name]
            assert insight["prices"][i]["value"] == pytest.approx(price.value, rel=1e-6, abs=1e-9)
            assert insight["reach"][i]["strictest"] == pytest.approx(float(found.reach.loc[name]["strictest"]))
        assert shown.text("#prices-note") == ""
        shown.wait("explorer.exact?.key === '6,3' && !explorer.panel.answer.approximate")
        assert shown.text("#kind") == ""  # A file's answers, and those while a slider moves, say "approximate" here.
        page.evaluate("explorer.state.set([6.01, 3], false)")
        shown.wait("explorer.panel.answer.approximate && document.getElementById('kind').textContent === 'approximate'")
        page.evaluate("explorer.state.set([6, 3])")
        assert page.get_by_role("button", name="Verify").is_enabled() or shown.answer()["status"] == "verified"
        page.select_option("#risk", "0.8")
        shown.wait("explorer.exact?.key === '6,3@0.8' && !explorer.panel.answer.approximate")
        expected = model.predict(AT, probability=0.8)
        assert shown.answer()["point"] == list(expected.point.values())
        assert page.get_by_role("button", name="Verify").is_disabled()
        shown.wait("explorer.explainer.insight?.source === 'page'")
        page.select_option("#risk", "0.98")
        page.get_by_role("button", name="Strictest").click()
        shown.wait("explorer.explainer.insight?.source === 'server' && explorer.explainer.insight.conflict")
        conflict = model.conflict({"stress": 1.0, "frequency": 6.0})
        assert conflict is not None
        shown_limits = page.evaluate(
            "explorer.explainer.insight.conflict.limits.map((i) => explorer.state.problem.movable[i].name)"
        )
        assert shown_limits == list(conflict.limits)
        page.locator(".way button").first.click()
        shown.wait("explorer.panel.answer.status !== 'unreachable'")
