"""One row for each limit: what it shows, how it is moved, and that ten of them fit."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from browser import window
from cbabo import Model
from page.exploring import box, explained, opened


def test_a_row_says_everything_about_its_limit(chromium: Browser, solved: str, beam_model: Model) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=3&at.frequency=3")
        explained(shown)
        row = page.locator("[data-limit=stress]")
        answer = beam_model.predict_many([{"stress": 3.0, "frequency": 3.0}], fast=True).answer(0)
        assert float(row.locator(".output").inner_text().split(" ±")[0]) == pytest.approx(
            answer.outputs["stress"].mean, abs=0.02
        )
        prices = page.evaluate("explorer.explainer.insight.prices")
        paid = [price["value"] > 0 for price in prices]
        assert any(paid)
        for name, price, costs in zip(("stress", "frequency"), prices, paid, strict=True):
            words = page.locator(f"[data-limit={name}] .price").inner_text()
            more = {"stress": "1 more saves", "frequency": "1 less saves"}[name]
            assert words.startswith(more) and words.endswith(" kg") if costs else words == "gains nothing"
            if costs:
                assert float(words.split()[3]) == pytest.approx(price["value"], rel=0.06)
        step = 0.02 * 8.0
        further = beam_model.predict_many([{"stress": 3.0 + step, "frequency": 3.0}], fast=True).answer(0)
        assert prices[0]["value"] == pytest.approx(
            max(answer.objective.mean - further.objective.mean, 0.0) / step, abs=1e-5
        )
        assert "differences of this page’s own approximate answers" in shown.text("#prices-note")
        assert row.get_by_label("intent of stress").input_value() == "lock"
        assert page.locator("[data-limit=cost] .fixed").inner_text() == "40"
        assert page.locator("[data-limit=cost] input").count() == 0


def test_standings_are_told_by_shape_and_a_lower_limit_falls_short(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=1&at.frequency=6")
        shapes = page.evaluate(
            "[...document.querySelectorAll('#rows .limit .sign')].map((s) => [s.classList[1], s.firstChild.getAttribute('d')])"
        )
        assert len({d for _, d in shapes}) == len({kind for kind, _ in shapes})
        rows = {row["name"]: row for row in page.evaluate("explorer.answers.standings(explorer.panel.answer)")}
        assert "violated" in {row["standing"] for row in rows.values()}
        for name, row in rows.items():
            words = page.locator(f"[data-limit={name}] .room").inner_text()
            assert words.startswith("over by") == (row["standing"] == "violated" and name != "frequency")
            assert words.startswith("falls short by") == (row["standing"] == "violated" and name == "frequency")
        page.evaluate("explorer.state.set([9, 6.5])")
        shown.wait("document.querySelector('[data-limit=frequency] .room').textContent.startsWith('falls short by')")


def test_the_reachable_part_of_a_track_is_told(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=3&at.frequency=4")
        explained(shown)
        strictest = page.evaluate("explorer.explainer.insight.reach[0].strictest")
        statuses = page.evaluate(
            "t => explorer.answers.many([[t - 0.05, 4], [t + 0.01, 4]]).map((a) => a.status)", strictest
        )
        assert strictest > 1.0
        assert statuses[0] == "unreachable"
        assert statuses[1] != "unreachable"
        far, track = box(page, "[data-limit=stress] .far"), box(page, "[data-limit=stress] .track")
        assert far["x"] == pytest.approx(track["x"], abs=1.0)
        assert far["width"] == pytest.approx(track["width"] * (strictest - 1.0) / 8.0, abs=1.5)


def test_the_thumb_moves_from_the_nominal_value(chromium: Browser, exported: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, exported)  # The sliders stand at their nominal values.
        slider = box(page, "[data-limit=stress] input[type=range]")
        x, y = slider["x"] + slider["width"] / 2, slider["y"] + slider["height"] / 2
        for offset in (-4.0, 0.0, 4.0, 7.0):
            page.evaluate("explorer.state.set([5, 4])")
            page.mouse.move(x, y + offset)
            page.mouse.down()
            page.mouse.move(x + 60, y + offset)
            page.mouse.up()
            shown.wait("explorer.state.thresholds[0] > 5.2")


def test_a_value_that_is_typed_is_never_changed_silently(chromium: Browser, exported: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, exported)
        field = page.get_by_role("spinbutton", name="limit of stress, at most")
        note = page.locator("[data-limit=stress] .name small")
        field.fill("12.345678")
        field.press("Enter")
        assert field.input_value() == "12.345678"
        assert note.inner_text() == "outside 1 to 9"
        field.fill("6")
        field.press("Enter")
        assert note.is_hidden()
        field.fill("")
        field.press("Enter")
        assert field.input_value() == "6"
        assert "not a number" in note.inner_text()


def test_undo_redo_and_back(chromium: Browser, exported: str) -> None:
    at = "String(explorer.panel.answer.thresholds) === '{}'"
    with window(chromium, offline=True) as shown:
        page = opened(shown, exported)
        for name in ("Strictest", "Most relaxed"):
            page.get_by_role("button", name=name).click()
        shown.wait(at.format("9,2"))
        page.keyboard.press("Control+z")
        shown.wait(at.format("1,6"))
        page.keyboard.press("Control+Shift+Z")
        shown.wait(at.format("9,2"))
        page.keyboard.press("Control+z")
        page.keyboard.press("Control+y")
        shown.wait(at.format("9,2"))
        assert page.get_by_role("button", name="Redo").is_disabled()
        page.get_by_role("button", name="Nominal").click()
        shown.wait(at.format("5,4"))
        page.go_back()
        shown.wait(at.format("9,2"))
        page.go_forward()
        shown.wait(at.format("5,4"))


def test_a_field_keeps_its_own_undo(chromium: Browser, exported: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, exported)
        page.get_by_role("button", name="Strictest").click()
        shown.wait("explorer.panel.answer.thresholds[0] === 1")
        field = page.get_by_role("spinbutton", name="limit of stress, at most")
        field.focus()
        page.keyboard.press("Control+a")
        page.keyboard.type("37")
        page.keyboard.press("Control+z")
        assert field.input_value() != "37"
        assert page.evaluate("String(explorer.state.thresholds)") == "1,6"


MIDDLES = """() => [...document.querySelectorAll("header > *, header button")].filter((e) => e.offsetParent)
    .map((e) => e.getBoundingClientRect()).map((r) => (r.top + r.bottom) / 2)"""
OVERFLOWING = """() => [...document.querySelectorAll("#rows .limit > *, #design .variable > :not(.bar)")]
    .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "visible")
    .filter((e) => getComputedStyle(e).display !== "inline")
    .map((e) => e.outerHTML.slice(0, 90))"""


def test_ten_limits_eleven_variables_and_a_trade_off_fit_a_window(chromium: Browser, ten: str) -> None:
    with window(chromium, offline=True, viewport={"width": 1400, "height": 900}) as shown:
        page = opened(shown, ten)
        explained(shown)
        assert page.locator("#rows .limit:not(.head)").count() == 10
        assert page.locator("#design .variable:not(.head)").count() == 11
        for part in ("#rows", "#design", "#curve", "#curve-key"):
            place = box(page, part)
            assert place["y"] >= 0
            assert place["y"] + place["height"] <= 900, part
        assert page.evaluate("document.documentElement.scrollWidth") <= 1400
        assert page.evaluate(OVERFLOWING) == []
        shown.shot("ten")


@pytest.mark.parametrize("width", [400, 900])
def test_a_narrow_window_keeps_the_answer_in_sight(chromium: Browser, ten: str, width: int) -> None:
    with window(chromium, offline=True, viewport={"width": width, "height": 800}) as shown:
        page = opened(shown, ten)
        explained(shown)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OVERFLOWING) == []
        tops = page.evaluate(MIDDLES)
        assert max(tops) - min(tops) < 8.0  # The header is one line.
        page.mouse.wheel(0, 1500)
        shown.wait("window.scrollY > 800")
        for part in ("#answer", "#objective", "#probability", "#status"):
            place = box(page, part)
            assert place["y"] >= 0
            assert place["y"] + place["height"] <= 240
        shown.shot(f"ten-{width}")
