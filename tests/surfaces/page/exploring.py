"""What tests of the explorer do again and again."""

from __future__ import annotations

from playwright.sync_api import Page

from browser import Window


def opened(shown: Window, address: str) -> Page:
    shown.page.goto(address)
    shown.wait("window.explorer?.panel.answer && explorer.tradeoffs.curve?.work.done")
    return shown.page


def explained(shown: Window) -> None:
    shown.wait("explorer.explainer.insight?.curves && !document.querySelector('.limit.waiting')")


def box(page: Page, selector: str) -> dict[str, float]:
    found = page.locator(selector).bounding_box()
    assert found is not None
    return dict(found)


def mapped(shown: Window) -> None:
    shown.wait("explorer.tradeoffs.cells?.work.done")
