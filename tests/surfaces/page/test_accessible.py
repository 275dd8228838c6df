"""axe-core finds no violation, in either theme, at any width, and in no state of the page."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from browser import TOKEN, node_module, served, window
from cbabo import Study
from page.exploring import explained, mapped, opened
from simulators import simulate_beam

VIOLATIONS = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    const words = (node) => `${node.html.slice(0, 160)} ${node.any.map((a) => a.message).join("; ")}`;
    return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map(words).join(" | ")}`);
}"""


def violations(page: Page) -> list[Any]:
    """What axe-core finds; its script is put in from outside, past the page's own policy."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(node_module("axe-core/axe.min.js").read_text(encoding="utf-8"))
    return page.evaluate(VIOLATIONS)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_no_violation_is_found(chromium: Browser, ten: str, theme: str, width: int) -> None:
    with window(chromium, offline=True, viewport={"width": width, "height": 900}, color_scheme=theme) as shown:
        page = opened(shown, ten)
        explained(shown)
        mapped(shown)
        assert violations(page) == []
        page.evaluate("document.querySelectorAll('#rows .limit').forEach((row) => row.classList.add('waiting'))")
        page.evaluate("['multiples', 'map-frame'].forEach((id) => document.getElementById(id).classList.add('stale'))")
        assert violations(page) == []  # Also while prices and pictures of other limits are still shown.
        page.evaluate(
            "explorer.pins.add(explorer.panel.answer), explorer.pins.add(explorer.panel.answer), explorer.picked.pick(3)"
        )
        page.get_by_role("button", name="Copy link").click()
        page.evaluate("document.querySelectorAll('details').forEach((e) => (e.open = true))")
        page.get_by_role("button", name="probability", exact=True).click()
        page.fill("#filter", "no such")
        assert violations(page) == []
        page.evaluate("explorer.state.set(explorer.state.problem.preset('strictest'))")
        shown.wait("explorer.explainer.insight?.conflict && explorer.panel.answer.status === 'unreachable'")
        assert violations(page) == []


def test_no_violation_is_found_with_a_server(chromium: Browser, study: Study) -> None:
    with served(study, simulate_beam) as address, window(chromium) as shown:
        page = opened(shown, f"{address}#token={TOKEN}&at.stress=4&at.frequency=3")
        page.get_by_label("intent of stress", exact=True).select_option("loosen")
        page.get_by_role("button", name="Recommend").click()
        page.locator("#alternatives").wait_for()
        explained(shown)
        mapped(shown)
        assert violations(page) == []
        page.get_by_role("button", name="Verify").click()
        shown.wait("!explorer.measure.busy")
        assert violations(page) == []
