"""Names, units and reasons that look like HTML or script are shown as what they are, wherever they appear."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from browser import TOKEN, served, window
from cbabo import Constraint, Objective, Problem, Real, Study
from cbabo.surfaces.report import report
from learned import QUICK
from page.conftest import write

SCRIPT = "</script><script>alert(1)</script>"
IMAGE = "\"'><img src=x onerror=alert(1)>"
MARKUP = "<b>bold</b><svg onload&alert(1)>"


def hostile() -> Problem:
    return Problem(
        f"{IMAGE}{SCRIPT}",
        [Real(f"x{SCRIPT}", 0.0, 1.0, unit=IMAGE), Real(MARKUP, 0.0, 1.0)],
        Objective(f"f{SCRIPT}", unit=IMAGE),
        [
            Constraint(f"c{MARKUP}", "<=", low=0.0, high=2.0, unit=IMAGE),
            Constraint("javascript:alert(1)", ">=", low=-1.0, high=0.5),
        ],
    )


def simulate(point: dict[str, float]) -> dict[str, float]:
    a, b = point.values()
    if a > 0.9:
        raise ValueError(f"{IMAGE} {SCRIPT}")
    return {f"f{SCRIPT}": a + b, f"c{MARKUP}": 2 - a - b, "javascript:alert(1)": b - a}


def made(folder: Path) -> Study:
    study = Study.create(hostile(), f"sqlite:///{folder}/hostile.db", name=f"study {IMAGE}{SCRIPT}", settings=QUICK)
    study.run(simulate, budget=31, in_process=True)
    assert study.evaluations.failed
    return study


FOREIGN = """() => [...document.querySelectorAll("img, iframe, object, b, [onload], [onerror], a[href^=javascript]")]
    .map((e) => e.outerHTML)
    .concat([...document.scripts].filter((s) => s.type !== "application/json" && s.textContent.includes("alert(1)")))
    .map(String)"""


def test_in_the_exported_file(chromium: Browser, tmp_path: Path) -> None:
    study = made(tmp_path)
    with window(chromium, offline=True) as shown:
        shown.page.goto(write(study.model(), tmp_path / "hostile.html"))
        shown.wait("window.explorer?.panel.answer && explorer.tradeoffs.cells?.work.done")
        shown.page.get_by_role("button", name="Strictest").click()
        shown.page.get_by_text("Numbers", exact=True).click()
        shown.page.get_by_role("button", name="Pin", exact=True).click()
        assert MARKUP in shown.text("#pins")
        shown.page.reload()
        shown.wait("window.explorer?.panel.answer")
        assert shown.page.evaluate(FOREIGN) == []
        assert IMAGE in shown.text("#design")
        assert SCRIPT in shown.text("#failures")


def test_in_the_page_with_its_server(chromium: Browser, tmp_path: Path) -> None:
    study = made(tmp_path)
    with served(study) as address, window(chromium) as shown:
        page = shown.page
        page.goto(f"{address}#token={TOKEN}")
        shown.wait("window.explorer?.status.revision")
        page.get_by_role("button", name="Most relaxed").click()
        page.get_by_label("intent of javascript:alert(1)", exact=True).select_option("tighten")
        page.get_by_role("button", name="Recommend").click()
        shown.wait(
            "document.getElementById('proposal').childElementCount > 0 && !document.getElementById('propose').disabled"
        )
        assert MARKUP in shown.text("#proposal")
        page.get_by_role("button", name="Measure by hand").click()
        page.locator("#hand-in").wait_for()
        assert page.evaluate(FOREIGN) == []
        assert SCRIPT in shown.text("#title")
        assert MARKUP in shown.text("#hand-in")


def test_in_the_report(chromium: Browser, tmp_path: Path) -> None:
    study = made(tmp_path)
    file = tmp_path / "report.html"
    file.write_text(report(study), encoding="utf-8")
    with window(chromium, offline=True) as shown:
        shown.page.goto(file.as_uri())
        assert shown.page.evaluate(FOREIGN) == []
        assert SCRIPT in shown.text("h1")
        assert IMAGE in shown.text("body")
        shown.shot("report-hostile")
