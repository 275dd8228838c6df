"""Evaluations: a table that sorts and filters, parallel coordinates with brushing, and measured designs that are picked."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser import window
from cbabo import Model
from cbabo.surfaces.document import document
from cbabo.surfaces.page import single_file
from page.exploring import box, explained, mapped, opened

COLUMN = (
    """n => [...document.querySelectorAll("#evaluations-table tbody tr")].map((row) => row.children[n].textContent)"""
)


def test_the_table_sorts_and_filters(chromium: Browser, solved: str, beam_model: Model) -> None:
    mass = {row.id: row.outputs["mass"] for row in beam_model.evaluations}
    stress = {row.id: row.outputs["stress"] for row in beam_model.evaluations}
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=4&at.frequency=3")
        rows = page.locator("#evaluations-table tbody tr")
        assert rows.count() == 30
        for down in (False, True):
            page.locator("#evaluations-table th").get_by_role("button", name="mass").click()
            ids = [int(i) for i in page.evaluate(COLUMN, 0)]
            assert [mass[i] for i in ids] == sorted(mass.values(), reverse=down)
        page.fill("#filter", "stress < 4, mass >= 5")
        expected = {i for i in mass if stress[i] < 4 and mass[i] >= 5}
        assert 0 < len(expected) < 30
        assert {int(i) for i in page.evaluate(COLUMN, 0)} == expected
        assert shown.text("#filter-count") == f"{len(expected)} of 30"
        page.fill("#filter", "volume < 4")
        assert "there is no column “volume”" in shown.text("#filter-said")
        page.get_by_role("button", name="Clear").click()
        page.locator("#filter-obey").check()
        found = {int(i) for i in page.evaluate(COLUMN, 0)}
        truth = page.evaluate(
            "explorer.answers.measured.filter((e) => explorer.state.problem.obeys(e.outputs, [4, 3])).map((e) => e.id)"
        )
        assert found == set(truth)


def test_brushing_an_axis_filters_the_table_too(chromium: Browser, solved: str, beam_model: Model) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, solved)
        explained(shown)
        mapped(shown)
        page.locator("#parallel").scroll_into_view_if_needed()
        page.wait_for_timeout(300)  # What was not rendered before takes its place.
        frame = box(page, "#parallel")
        axis = page.evaluate("explorer.parallel.axes.find((a) => a.name === 'width').x")
        top, bottom = frame["y"] + 46, frame["y"] + frame["height"] - 18
        page.mouse.move(frame["x"] + axis, bottom - 1)
        page.mouse.down()
        page.mouse.move(frame["x"] + axis, (top + bottom) / 2, steps=4)
        page.mouse.up()
        widths = {row.id: row.point["width"] for row in beam_model.evaluations}
        found = {int(i) for i in page.evaluate(COLUMN, 0)}
        low, high = page.evaluate("explorer.evaluations.brushes.get('width')")
        assert low < 1.05
        assert high == pytest.approx(2.0, abs=0.05)
        assert found == {i for i, w in widths.items() if low <= w <= high}
        assert page.locator("#parallel .brush").count() == 1
        strands = page.locator("#parallel .strand").nth(1).get_attribute("d")
        assert strands is not None
        assert strands.count("M") == len(found)
        page.mouse.click(frame["x"] + axis, (top + bottom) / 2)
        assert page.locator("#evaluations-table tbody tr").count() == 30
        assert page.locator("#parallel .brush").count() == 0


def test_a_measured_design_is_picked_in_a_plot_and_in_the_table(chromium: Browser, solved: str) -> None:
    with window(chromium, offline=True) as shown:
        page = opened(shown, f"{solved}#at.stress=6&at.frequency=3&curve=stress")
        explained(shown)
        mapped(shown)
        page.locator("#timeline").scroll_into_view_if_needed()
        seen = page.evaluate("explorer.history.seen[3]")
        page.locator("#timeline").hover(position={"x": seen["px"], "y": seen["py"]})
        assert page.locator("#timeline + .tip").inner_text().startswith(f"evaluation {seen['id']}: mass ")
        page.locator("#timeline").click(position={"x": seen["px"], "y": seen["py"]})
        assert f"Evaluation {seen['id']} at" in shown.text("#picked")
        page.get_by_role("button", name="look at evaluation 7", exact=True).click()
        assert "Evaluation 7 at" in shown.text("#picked")
        outputs = page.evaluate("explorer.answers.evaluations.find((e) => e.id === 7).outputs")
        page.get_by_role("button", name="Go to the strictest limits that it obeys").click()
        at = page.evaluate("explorer.state.thresholds")
        names = page.evaluate("explorer.state.problem.outputs")
        measured = dict(zip(names, outputs, strict=True))
        if measured["stress"] <= 9 and measured["frequency"] >= 2 and measured["cost"] <= 40:
            assert 0 <= at[0] - max(measured["stress"], 1.0) < 0.01
            assert 0 <= min(measured["frequency"], 6.0) - at[1] < 0.01
        else:
            assert at == [9, 2]
        curve = page.evaluate("explorer.tradeoffs.curves.plot.seen")
        if curve:
            page.locator("#curve").click(position={"x": curve[0]["px"], "y": curve[0]["py"]})
            assert f"Evaluation {curve[0]['id']} at" in shown.text("#picked")


@pytest.mark.parametrize("audit", [None, "2026-01-02 03:04 UTC: 19 of 20 answers obeyed all limits"])
def test_the_last_audit_is_told_beside_the_quality(
    chromium: Browser, beam_model: Model, tmp_path: Path, audit: str | None
) -> None:
    file = tmp_path / "audited.html"
    file.write_text(single_file(document(beam_model, "beam", None, audit)), encoding="utf-8")
    with window(chromium, offline=True) as shown:
        opened(shown, file.as_uri())
        assert shown.text("#audit") == (f"Last audit, {audit}" if audit else shown.text("#audit"))
        assert ("not audited yet" in shown.text("#audit")) == (audit is None)
