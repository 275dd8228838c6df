"""The explorer with its server, in a real browser."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from playwright.sync_api import Browser

from browser import TOKEN, Window, served, window
from cbabo import Settings, Study
from cbabo.domain.convergence import Convergence
from cbabo.study.modelcache import keep_convergence
from learned import QUICK
from simulators import make_beam, simulate_beam


def opened(shown: Window, address: str, hash: str = "") -> Window:
    shown.page.goto(f"{address}#token={TOKEN}{hash}")
    shown.wait("window.explorer?.status.revision")
    return shown


def test_the_token_is_taken_out_of_the_address(chromium: Browser, study: Study) -> None:
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, address, "&at.stress=4").page
        shown.wait("explorer.panel.answer.thresholds[0] === 4")
        assert TOKEN not in page.url
        page.reload()  # it is kept for this tab, and the position for everyone
        shown.wait("window.explorer?.panel.answer?.thresholds[0] === 4")
        assert page.evaluate("explorer.server.token") == TOKEN


def test_recommend_and_accept(chromium: Browser, study: Study) -> None:
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, address, "&at.stress=4&at.frequency=3").page
        intent = page.get_by_label("intent of stress", exact=True)
        intent.focus()
        page.keyboard.press("ArrowDown")  # all of this by the keyboard
        assert intent.input_value() == "loosen"
        page.get_by_role("button", name="Recommend").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Accept proposal").wait_for()
        proposal = page.evaluate("explorer.recommend.proposal.found")
        assert [c["intent"] for c in proposal["changes"]] == ["loosen", "lock"]
        shown.shot("recommend")
        page.get_by_role("button", name="Accept proposal").press("Space")
        after = [change["after"] for change in proposal["changes"]]
        shown.wait(f"String(explorer.panel.answer.thresholds) === String({after})")
        assert page.get_by_role("button", name="Accept proposal").is_hidden()
        page.get_by_role("button", name="Undo").click()
        shown.wait("String(explorer.panel.answer.thresholds) === '4,3'")


def test_recommend_says_why_not(chromium: Browser, study: Study) -> None:
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, address, "&at.stress=1&at.frequency=6").page
        page.get_by_role("button", name="Recommend").click()
        page.locator("#proposal .worse").wait_for()
        assert "recommend:" in shown.text("#proposal")
        shown.complaints.clear()  # the browser notes the refusal


def waiting_for(file: Path):
    """A simulator that answers when the file is there."""

    def wait(point: dict[str, float]) -> dict[str, float]:
        deadline = time.monotonic() + 20
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return simulate_beam(point)

    return wait


def test_verify_in_the_background_then_improve(chromium: Browser, study: Study, tmp_path: Path) -> None:
    slow = waiting_for(tmp_path / "go")

    with served(study, slow) as address, window(chromium) as shown:
        page = opened(shown, address, "&at.stress=4&at.frequency=3").page
        improve = page.get_by_role("button", name="Improve")
        assert improve.is_disabled()
        page.get_by_role("button", name="Verify").click()
        page.get_by_role("progressbar", name="evaluating").wait_for()
        shown.shot("verifying")
        page.get_by_role("slider", name="limit of stress, at most").fill("6")  # the page goes on meanwhile
        shown.wait("explorer.panel.answer.thresholds[0] === 6")
        assert shown.text("#status") == "Predicted"
        (tmp_path / "go").touch()
        shown.wait("explorer.verified.size === 1")
        page.get_by_role("slider", name="limit of stress, at most").fill("4")
        shown.wait("document.getElementById('status').textContent.startsWith('Verified')")
        truth = simulate_beam(study.evaluations[-1].point)
        assert page.get_by_role("button", name="measured output").is_visible()
        assert page.get_by_role("button", name="predicted output").is_hidden()
        assert shown.answer()["mean"][0] == truth["mass"]
        assert set(shown.answer()["std"]) == {0}
        shown.wait("!document.getElementById('improve').disabled")
        improve.click()
        shown.wait("!explorer.measure.busy")
        shown.shot("verified")
        assert [row.kind for row in study.evaluations[32:]] in (["refine"], ["refine"] * 2)
        page.reload()
        shown.wait("document.getElementById('status').textContent.startsWith('Verified')")


def test_an_answer_that_breaks_a_limit_is_shown_as_measured_and_can_be_improved(
    chromium: Browser, study: Study
) -> None:
    def weaker(point: dict[str, float]) -> dict[str, float]:
        return {**simulate_beam(point), "stress": 4.5}

    with served(study, weaker) as address, window(chromium) as shown:
        page = opened(shown, address, "&at.stress=4&at.frequency=3").page
        asked: list[object] = []
        page.on("request", lambda r: asked.append(r.post_data_json) if r.url.endswith("/api/refine") else None)
        page.get_by_role("button", name="Verify").click()
        shown.wait("document.getElementById('status').textContent === 'Measured: breaks a limit'")
        assert page.locator("#status .sign.measured").count() == 1
        assert shown.text("#probability") == "broken"
        assert "the measured design breaks stress <= 4 by 0.5" in shown.text("#warnings")
        assert page.evaluate("explorer.verified.size") == 0
        assert len(study.evaluations) == 33
        shown.wait("explorer.answers.measured.length === 33")  # The newer model does not replace what was measured.
        assert shown.text("#status") == "Measured: breaks a limit"
        assert page.get_by_role("button", name="Verify").is_disabled()
        shown.shot("measured")
        page.get_by_role("button", name="Improve").click()
        shown.wait("!explorer.measure.busy && !document.querySelector('#measure progress')")
        assert shown.text("#status") == "Measured: breaks a limit"
        assert [row.kind for row in study.evaluations[32:]] == ["refine", "refine"]
        limits = {"stress": 4, "frequency": 3}
        assert asked == [{"thresholds": limits, "evaluations": 1}] * 2
        slider = page.get_by_role("slider", name="limit of stress, at most")
        for stress in ("6", "4"):  # Once the limits have moved, the newer model's prediction is shown.
            slider.fill(stress)
            shown.wait(f"explorer.panel.answer.thresholds[0] === {stress}")
        assert shown.text("#status") in ("Predicted", "Unreachable")
        assert page.get_by_role("button", name="Improve").is_disabled()
        assert page.get_by_role("button", name="Verify").is_enabled()


def test_the_solvers_own_answer_is_shown_when_limits_rest(chromium: Browser, tmp_path: Path) -> None:
    study = Study.create(make_beam(), f"sqlite:///{tmp_path}/solved.db", settings=Settings.default().replace(library=8))
    study.run(simulate_beam, budget=22, in_process=True)
    at = {"stress": 3.3, "frequency": 3.1}
    expected = study.model().predict(at)
    with served(study, simulate_beam) as address, window(chromium) as shown:
        page = opened(shown, address, "&at.stress=3.3&at.frequency=3.1").page
        shown.wait("explorer.exact?.key === '3.3,3.1' && !explorer.panel.answer.approximate")
        assert shown.answer()["point"] == list(expected.point.values())
        assert shown.answer()["status"] == expected.status
        if not expected.verified:
            page.get_by_role("button", name="Verify").click()
            shown.wait("document.getElementById('status').textContent.startsWith('Verified')")
            assert study.evaluations[-1].point == expected.point
        before = len(study.evaluations)
        shown.wait("!document.getElementById('improve').disabled")
        page.get_by_role("button", name="Improve").click()
        shown.wait("!explorer.measure.busy && !document.querySelector('#measure progress')")
        assert len(study.evaluations) <= before + 1
        page.get_by_role("button", name="Strictest").click()
        shown.wait("explorer.exact?.key === '1,6'")
        assert shown.text("#status") == "Unreachable"
        page.locator(".way button").first.click()
        shown.wait("explorer.panel.answer.status !== 'unreachable'")
        shown.shot("solver")


def test_by_hand_without_an_evaluator(chromium: Browser, study: Study) -> None:
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, address, "&at.stress=4&at.frequency=3").page
        assert page.is_hidden("#verify")
        page.get_by_role("button", name="Measure by hand").click()
        page.locator("#hand-in").wait_for()
        pending = study.evaluations[-1]
        assert (pending.state, pending.kind) == ("running", "refine")
        for name, value in simulate_beam(dict(pending.point)).items():
            if name in study.problem.outputs:
                page.fill(f'#hand-in input[name="{name}"]', repr(value))
        shown.shot("by-hand")
        page.get_by_role("button", name="Store", exact=True).click()
        shown.wait("document.getElementById('status').textContent.startsWith('Verified')")
        assert study.evaluations[-1].state == "complete"
        page.get_by_role("button", name="Nominal").click()
        page.get_by_role("button", name="Measure by hand").click()
        page.fill('#hand-in input[name="failed"]', "the mesh broke")
        page.get_by_role("button", name="Store as failed").click()
        shown.wait("document.getElementById('measure').textContent.includes('Stored as failed: the mesh broke')")
        shown.wait("document.getElementById('failures').textContent.includes('the mesh broke')")


def test_without_the_token_it_is_asked_for(chromium: Browser, study: Study) -> None:
    with served(study) as address, window(chromium) as shown:
        page = shown.page
        page.goto(address)
        shown.wait("window.explorer?.status.revision")
        page.get_by_role("button", name="Measure by hand").click()
        page.fill("#token-form input", TOKEN)
        page.get_by_role("button", name="Use it").click()
        page.locator("#hand-in").wait_for()
        assert len([text for text in shown.complaints if "401" in text]) == 1
        shown.complaints.clear()


def test_a_running_study_is_followed_live(chromium: Browser, study: Study, tmp_path: Path) -> None:
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, address).page
        assert shown.text("#progress").startswith("32 measured")
        before = page.evaluate("explorer.stated.revision")
        run = threading.Thread(target=study.run, args=(waiting_for(tmp_path / "go"), 36))
        run.start()
        shown.wait("document.getElementById('progress').textContent.includes('running: ')")
        shown.shot("running")
        (tmp_path / "go").touch()
        run.join(60)
        shown.wait("document.getElementById('progress').textContent.startsWith('36 measured')")
        shown.wait(f"explorer.stated.revision !== '{before}'")
        shown.wait("explorer.answers.measured.length === 36")


def test_the_convergence_is_said_beside_the_number_of_evaluations(chromium: Browser, study: Study) -> None:
    moves = Convergence(evaluations=32, window=10, thresholds=64, moved=0.004, gain=0.002, risk=0.001)
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, address).page
        assert page.locator("#convergence").is_hidden()
        keep_convergence(study, moves)  # As a run does at its end.
        page.locator("#convergence").wait_for(state="visible")
        assert shown.text("#convergence") == (
            "Convergence: over the last 10 evaluations the answers at 64 thresholds moved by 0.4 % of the span; "
            "expected further gain 0.2 %, risk 0.1 %."
        )
        progress, line = (page.locator(place).bounding_box() for place in ("#progress", "#convergence"))
        assert progress is not None
        assert line is not None
        assert 0.0 <= line["y"] - progress["y"] < 40.0
        shown.shot("convergence")


def test_a_study_that_has_no_model_yet_gets_one(chromium: Browser, tmp_path: Path) -> None:
    study = Study.create(make_beam(), f"sqlite:///{tmp_path}/new.db", settings=QUICK)
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, address).page
        shown.wait("document.getElementById('notice').textContent.includes('at least 2 measured designs')")
        assert page.is_hidden("main")
        study.run(simulate_beam, budget=30, in_process=True)
        shown.wait("explorer.panel.answer !== undefined")
        assert page.is_visible("main")


def test_a_server_that_ended_is_told(chromium: Browser, study: Study) -> None:
    with window(chromium) as shown:
        with served(study) as address:
            opened(shown, address)
        shown.wait("document.getElementById('notice').textContent.includes('does not answer')")
        shown.complaints.clear()
