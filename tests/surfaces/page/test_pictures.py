"""The pictures: the trade-off passes through the answer and ends where limits cannot be met, the map and the small multiples."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Browser

from browser import window
from page.exploring import box, explained, mapped, opened

PATH = """() => [...document.querySelectorAll("#curve .curve")].map((e) => e.getAttribute("d"))
    .join("").match(/[\\d.]+ [\\d.]+/g)?.map((pair) => pair.split(" ").map(Number)) ?? []"""


BETTER = """b => {
    const { curves } = explorer.tradeoffs;
    curves.answer = { ...curves.answer, mean: curves.answer.mean.with(0, curves.answer.mean[0] - b) };
    curves.draw();
}"""
SCALES = """explorer.tradeoffs.multiples.figures.map(({ plot }) =>
    [plot.y(22) - plot.y(23), plot.bottom - plot.y(22)].map((v) => v.toFixed(3)).join())"""
PRICES = """Object.fromEntries(explorer.state.problem.movable.map((c, i) =>
    [c.name, explorer.explainer.insight.prices[i].value]))"""


def test_the_marker_lies_on_the_curve_which_never_rises(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=3.37&at.frequency=3.1&curve=stress")
        mean = page.evaluate("explorer.panel.answer.mean[0]")
        for better in (0.0, 0.4):  # As a solver's own answer may be better than the page's approximate ones.
            page.evaluate(
                BETTER,
                better,
            )
            here = page.evaluate(
                "['cx', 'cy'].map((n) => Number(document.querySelector('#curve .here').getAttribute(n)))"
            )
            points = page.evaluate(PATH)
            assert min((x - here[0]) ** 2 + (y - here[1]) ** 2 for x, y in points) < 0.2
            heights = [y for _, y in sorted(map(tuple, points))]
            assert heights == sorted(heights)  # Downwards on the screen: the mass falls as the limit relaxes.
        assert page.evaluate("explorer.tradeoffs.curves.answer.mean[0]") == pytest.approx(mean - 0.4)


def test_the_curve_ends_where_the_limit_can_no_longer_be_met(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=4&at.frequency=4&curve=stress")
        explained(shown)
        strictest = page.evaluate("explorer.explainer.insight.reach[0].strictest")
        found = page.evaluate("explorer.tradeoffs.curve.found.map((a) => a.status)")
        assert "unreachable" in found
        left = page.evaluate("explorer.tradeoffs.curves.plot.x(explorer.explainer.insight.reach[0].strictest)")
        assert min(x for x, _ in page.evaluate(PATH)) >= left - 1.0
        assert page.locator("#curve .hatching").count() == 1
        page.evaluate("t => explorer.state.set([1, 6])", strictest)
        shown.wait("explorer.panel.answer.status === 'unreachable' && explorer.tradeoffs.curve.work.done")
        assert page.locator("#curve .here").get_attribute("visibility") == "hidden"


def test_hovering_shows_values_and_a_click_goes_there(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=4&at.frequency=3&curve=stress")
        mapped(shown)
        low = """(() => {
            const i = explorer.tradeoffs.cells.second, { low, high } = explorer.state.problem.movable[i];
            return explorer.state.thresholds[i] < low + 0.3 * (high - low);
        })()"""
        page.evaluate("explorer.state.look('first', 0), explorer.state.look('second', 1)")
        mapped(shown)
        for plot, go in (("#curve", "explorer.state.thresholds[0] > 7.5"), ("#map", low)):
            page.locator(plot).scroll_into_view_if_needed()
            frame = box(page, plot)
            x, y = frame["x"] + frame["width"] * 0.9, frame["y"] + frame["height"] * 0.8
            page.mouse.move(x, y)
            tip = page.locator(f"{plot} + .tip")
            assert ("mass" in tip.inner_text() and "kg" in tip.inner_text()) or "cannot be met" in tip.inner_text()
            page.mouse.click(x, y)
            shown.wait(go)
        page.mouse.move(5, 5)
        assert page.locator("#map + .tip").is_hidden()


def test_the_map_opens_on_the_limits_that_matter_most(chromium: Browser, ten: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, ten)
        mapped(shown)
        gains = page.evaluate(
            """explorer.explainer.insight.curves.map((points) => {
                const met = points.filter((p) => p.answer.status !== "unreachable").map((p) => p.answer.mean[0]);
                return met[0] - met.at(-1);
            })"""
        )
        most = sorted(range(10), key=lambda i: -gains[i])[:2]
        cells = page.evaluate("[explorer.tradeoffs.cells.first, explorer.tradeoffs.cells.second]")
        assert cells == most
        assert page.locator("#map .cell").count() >= 2  # Regions where different limits bind.
        assert page.locator("#map .contour-label").count() >= 2


def test_an_old_map_is_marked_until_the_new_one_is_there(chromium: Browser, ten: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, ten)
        mapped(shown)
        assert page.locator("#map-frame").get_attribute("aria-busy") == "false"
        begun = time.monotonic()
        page.get_by_role("spinbutton", name="limit of roof crush, at most").fill("2.2")
        page.keyboard.press("Enter")
        shown.wait("document.getElementById('map-frame').getAttribute('aria-busy') === 'true'")
        assert page.locator("#map-busy").is_visible()
        shown.wait("document.getElementById('map-frame').getAttribute('aria-busy') === 'false'")
        assert page.locator("#map-busy").is_hidden()
        assert time.monotonic() - begun < 10.0
        mapped(shown)


def test_small_multiples_share_a_scale_and_are_sorted_by_price(chromium: Browser, ten: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, ten)
        explained(shown)
        names = page.evaluate(
            "[...document.querySelectorAll('#multiples [data-multiple]')].map((e) => e.dataset.multiple)"
        )
        assert len(names) == 10
        prices = page.evaluate(PRICES)
        shown_prices = [prices[name] for name in names]
        assert shown_prices == sorted(shown_prices, reverse=True)
        assert shown_prices[0] > 0.0
        scales = page.evaluate(SCALES)
        assert len(set(scales)) == 1
        first = page.locator("#multiples svg").first
        first.scroll_into_view_if_needed()
        before = page.evaluate("explorer.state.thresholds.slice()")
        first.click(position={"x": 60, "y": 40})
        shown.wait(f"String(explorer.state.thresholds) !== '{','.join(f'{v:g}' for v in before)}'")
        moved = [
            i for i, (a, b) in enumerate(zip(before, page.evaluate("explorer.state.thresholds"), strict=True)) if a != b
        ]
        assert moved == [page.evaluate("n => explorer.state.problem.movable.findIndex((c) => c.name === n)", names[0])]


def test_conflicts_and_ways_out(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=1&at.frequency=6")
        shown.wait("explorer.explainer.insight?.conflict")
        assert shown.text("#objective") == "none"
        assert page.locator("#design").is_hidden()
        assert page.get_by_role("button", name="Copy point").is_disabled()
        insight = page.evaluate("explorer.explainer.insight")
        limits = insight["conflict"]["limits"]
        alone = page.evaluate(
            """limits => limits.map((i) => explorer.answers.many([explorer.state.problem.movable.map((c, j) =>
                limits.includes(j) && j !== i ? explorer.state.thresholds[j] : c.relaxed)])[0].status)""",
            limits,
        )
        assert limits
        assert "unreachable" not in alone  # Without any one of them the others can be met.
        words = shown.text("#ways")
        assert all(["stress", "frequency"][i] in words for i in limits)
        ways = insight["ways"]
        assert ways
        assert [way["cost"] for way in ways] == sorted(way["cost"] for way in ways)
        shown.shot("unreachable")
        page.locator(".way button").first.click()
        shown.wait("explorer.panel.answer.status !== 'unreachable'")
        assert page.evaluate("explorer.state.thresholds") == pytest.approx(ways[0]["thresholds"])
        assert page.locator("#conflict").is_hidden()
