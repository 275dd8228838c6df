"""The page inside another page: it says which limits are set there, and takes limits from outside."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import pytest
from playwright.sync_api import Browser

from browser import Window, window
from cbabo import Model
from cbabo.surfaces.document import document
from cbabo.surfaces.page import single_file

OUTER = """<!doctype html><meta charset="utf-8"><body><iframe {attributes} width="1200" height="800"></iframe>
<script>
  const frame = document.querySelector("iframe");
  const told = [];
  addEventListener("message", (e) => e.source === frame.contentWindow && told.push(e.data));
  const set = (thresholds) => frame.contentWindow.postMessage({{ cbabo: "set", thresholds }}, "*");
</script>"""


@pytest.fixture(scope="module", params=["srcdoc", "sandboxed"])
def outer(chromium: Browser, model: Model, request: pytest.FixtureRequest) -> Iterator[Window]:
    """A page with the explorer of a study inside, once with all rights of the page, once with none but scripts."""
    rights = 'sandbox="allow-scripts"' if request.param == "sandboxed" else ""
    inside = f'{rights} srcdoc="{escape(single_file(document(model, "beam")))}"'
    with window(chromium) as shown:
        shown.page.set_content(OUTER.format(attributes=inside))
        shown.wait("told.length > 0")
        yield shown


def test_limits_are_told_at_the_start_and_when_they_rest(outer: Window, model: Model) -> None:
    first = outer.page.evaluate("told[0]")
    assert first == {"cbabo": "limits", "thresholds": model.problem.box.nominal, "probability": None}
    outer.page.frame_locator("iframe").get_by_role("slider").first.fill("6")
    outer.wait("told.at(-1).thresholds.stress === 6")


def test_limits_are_taken_from_outside(outer: Window) -> None:
    outer.page.evaluate("set({ stress: 4.5, frequency: 3 })")
    outer.wait("told.at(-1).thresholds.stress === 4.5 && told.at(-1).thresholds.frequency === 3")
    inside = outer.page.frames[1]
    assert inside.evaluate("explorer.state.thresholds") == [4.5, 3]
    count = outer.page.evaluate("told.length")
    outer.page.evaluate("set({ stress: 4.5 })")  # Nothing changes, and nothing is told.
    outer.page.evaluate("set({ stress: 'much', volume: 3, frequency: 3.5 })")
    outer.wait("told.at(-1).thresholds.frequency === 3.5")
    assert outer.page.evaluate("told.length") == count + 1
    assert inside.evaluate("explorer.state.thresholds") == [4.5, 3.5]
