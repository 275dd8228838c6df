"""Proposals side by side, the way into the ledger, and what is taken out of the page."""

from __future__ import annotations

import csv
import io
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from browser import TOKEN, served, window
from cbabo import Study
from page.exploring import explained, mapped, opened
from simulators import simulate_beam

CELLS = """() => {
    const cell = (c) => [c.firstChild?.textContent, c.classList.contains("differs")];
    const cells = (row) => [...row.querySelectorAll("td")].map(cell);
    const rows = [...document.querySelectorAll("#pins tbody tr")];
    return rows.map((row) => [row.querySelector("th").textContent, ...cells(row)]);
}"""


def pin(page: Page) -> None:
    page.get_by_role("button", name="Pin", exact=True).click()


def test_pins_stand_side_by_side_with_their_differences(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=4&at.frequency=3")
        assert page.locator("#compare").is_hidden()
        pin(page)
        first = shown.answer()
        page.evaluate("explorer.state.set([6, 3])")
        shown.wait("explorer.panel.answer.thresholds[0] === 6")
        pin(page)
        second = shown.answer()
        rows = {name: cells for name, *cells in page.evaluate(CELLS)}
        assert rows["stress ≤"] == [["4", False], ["6", True]]
        assert rows["frequency ≥"] == [["3", False], ["3", False]]
        assert float(rows["mass [kg]"][1][0].split(" ")[0]) == pytest.approx(second["mean"][0], rel=1e-2)
        assert rows["width"][1][1] == (abs(first["point"][0] - second["point"][0]) > 1e-3)
        page.get_by_label("name of the proposal").nth(1).fill("the light one")
        page.get_by_label("note of proposal 2").fill("as the supplier wants")
        page.get_by_label("note of proposal 2").blur()
        shown.shot("pinned")
        page.reload()  # They are kept for this study.
        opened(shown, page.url)
        assert page.get_by_label("name of the proposal").nth(1).input_value() == "the light one"
        assert page.get_by_label("note of the light one").input_value() == "as the supplier wants"
        page.get_by_role("button", name="Go there").first.click()
        shown.wait("explorer.panel.answer.thresholds[0] === 4")
        page.get_by_role("button", name="remove proposal 1").click()
        assert page.get_by_label("name of the proposal").count() == 1
        assert page.get_by_role("button", name="Enter into the ledger").count() == 0  # There is no server.


def test_one_click_enters_a_proposal_into_the_ledger(chromium: Browser, study: Study) -> None:
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, f"{address}#at.stress=6&at.frequency=3")  # without the token
        pin(page)
        page.get_by_label("note of proposal 1").fill("agreed with the supplier")
        page.get_by_label("note of proposal 1").blur()
        page.get_by_role("button", name="Enter into the ledger").click()
        page.fill("#token-form input", TOKEN)
        page.get_by_role("button", name="Use it").click()
        page.get_by_text("Entered as decision 1").wait_for()
        made = study.decisions[-1]
        assert dict(made.thresholds) == {"stress": 6.0, "frequency": 3.0}
        assert made.note == "proposal 1: agreed with the supplier"
        assert page.get_by_role("button", name="Enter into the ledger").is_disabled()
        assert len([text for text in shown.complaints if "401" in text]) == 1
        shown.complaints.clear()


def test_alternatives_of_a_recommendation_can_be_pinned(chromium: Browser, study: Study) -> None:
    with served(study) as address, window(chromium) as shown:
        page = opened(shown, f"{address}#token={TOKEN}&at.stress=4&at.frequency=3")
        page.get_by_label("intent of stress", exact=True).select_option("loosen")
        page.get_by_role("button", name="Recommend").click()
        page.locator("#alternatives").wait_for()
        found = page.evaluate("explorer.recommend.proposal.found")
        assert found["alternatives"]
        page.locator("#alternatives li").first.get_by_role("button", name="Pin").click()
        page.get_by_role("button", name="Pin all").click()
        pins = page.evaluate("explorer.pins.pins.map((p) => [p.thresholds, p.note])")
        assert pins[0] == [list(found["alternatives"][0]["limits"].values()), "alternative of a recommendation"]
        assert pins[1] == [[change["after"] for change in found["changes"]], "recommended"]
        assert [limits for limits, _ in pins[2:]] == [list(other["limits"].values()) for other in found["alternatives"]]


def exported(page: Page, tools: str, kind: str) -> bytes:
    page.locator(f"{tools} summary").click()
    with page.expect_download() as download:
        page.locator(tools).get_by_role("button", name=kind, exact=True).click()
    page.locator(f"{tools} summary").click()
    return download.value.path().read_bytes()


def test_pictures_and_tables_can_be_taken_out(chromium: Browser, solved: str) -> None:
    with window(chromium) as shown:
        page = opened(shown, f"{solved}#at.stress=4&at.frequency=3&curve=stress")
        explained(shown)
        mapped(shown)
        pin(page)
        rows = list(csv.reader(io.StringIO(exported(page, "#curve-tools", "CSV").decode())))
        assert rows[0] == ["stress", "mass [kg]", "deviation", "probability"]
        at = next(row for row in rows[1:] if float(row[0]) == 4.0)
        assert float(at[1]) == page.evaluate("explorer.panel.answer.mean[0]")
        for tools in ("#curve-tools", "#map-tools", "#timeline-tools", "#quality-tools"):
            picture = ElementTree.fromstring(exported(page, tools, "SVG"))
            assert picture.tag == "{http://www.w3.org/2000/svg}svg"
            strokes = {part.get("stroke") for part in picture.iter() if part.tag.endswith("path")}
            assert len(strokes - {"none", None}) >= 2  # Colours came along.
            assert "NaN" not in ElementTree.tostring(picture).decode()
            image = exported(page, tools, "PNG")
            assert image.startswith(b"\x89PNG")
            assert int.from_bytes(image[16:20], "big") >= 2 * float(picture.get("width")) - 2
        for tools in ("#multiples-tools", "#evaluations-tools", "#compare-tools"):
            assert len(exported(page, tools, "CSV").decode().splitlines()) > 1
        page.locator("#curve-tools summary").click()
        page.locator("#curve-tools").get_by_role("button", name="Copy numbers").click()
        assert page.evaluate("navigator.clipboard.readText()").splitlines()[0].split("\t") == rows[0]


def test_names_that_a_spreadsheet_would_run_are_made_harmless(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, solved)
        page.evaluate("explorer.pins.add(explorer.panel.answer, '=1+1')")
        with page.expect_download() as download:
            page.evaluate("document.querySelectorAll('#compare-tools button')[1].click()")
        assert "'=1+1" in download.value.path().read_text()


def test_it_prints_on_one_page(chromium: Browser, ten: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, ten)
        explained(shown)
        pin(page)
        page.emulate_media(media="print")
        assert page.locator("#answer").is_visible()
        assert page.locator("#history").is_hidden()
        document = page.pdf(prefer_css_page_size=True)
        assert document.count(b"/Type /Page\n") + document.count(b"/Type /Page ") == 1
        shown.shot("printed")


def test_a_copied_link_says_where_it_leads(chromium: Browser, solved: str, study: Study) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=4&at.frequency=3")
        page.get_by_role("button", name="Copy link").click()
        assert "a file on this machine" in shown.text("#sharing")
        page.get_by_role("button", name="Copy the part with the limits").click()
        part = page.evaluate("navigator.clipboard.readText()")
        assert part.startswith("#at.stress=4&at.frequency=3")
        page.get_by_role("button", name="Close").first.click()
        assert page.locator("#sharing").is_hidden()
    with served(study, simulate_beam) as address, window(chromium) as shown:
        page = opened(shown, address + part)
        assert page.evaluate("String(explorer.state.thresholds)") == "4,3"
        page.get_by_role("button", name="Copy link").click()
        assert "this machine only" in shown.text("#sharing")
