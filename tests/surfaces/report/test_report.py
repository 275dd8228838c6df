"""A report says everything, in HTML that holds no script."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser

from browser import chromium as chromium
from browser import window
from cbabo import Settings, Study
from cbabo.display.markup import Markup, joined, table, tag
from cbabo.display.numbers import estimated, number, percent
from cbabo.errors import InputError, ModelError
from cbabo.surfaces.report import report
from cbabo.surfaces.report.charts import Axis, Chart
from learned import QUICK, evaluated
from simulators import make_beam, simulate_beam


class Outline(HTMLParser):
    """Collects the elements of a page and checks that they end as they began."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f"{data} "


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    def failing(point: dict[str, float]) -> dict[str, float]:
        if point["width"] > 2.9:
            raise ValueError("the mesh broke")
        return simulate_beam(point)

    study = Study.create(make_beam(), f"sqlite:///{tmp_path_factory.mktemp('report')}/beam.db", seed=7, settings=QUICK)
    study.run(failing, budget=35, in_process=True)
    return study


def test_everything_is_there(study: Study) -> None:
    page = Outline(report(study))
    assert page.open == []
    assert "script" not in page.tags
    for words in (
        "beam: report", "Problem", "Evaluations", "Answers", "Trade-offs", "Recommendation", "Quality of the model",
        "Versions and settings", "the mesh broke", "width", "frequency", "torch", "hidden_width", study.problem.digest,
    ):  # fmt: skip
        assert words in page.words, words
    assert page.tags.count("svg") == 2 + 1 + 4  # curves, a map, an output each


class Columns(HTMLParser):
    """The rows of the first table behind a heading, by the name of each; what stands in a cell is one text."""

    def __init__(self, page: str, heading: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(page.split(f"<h2>{heading}</h2>")[1].split("</table>")[0])

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data

    def of(self, name: str) -> list[list[str]]:
        return [row[1:] for row in self.rows if row[0] == name]


def test_chosen_thresholds_are_answered_in_columns_and_once(study: Study) -> None:
    rows = [{"stress": 3.25, "frequency": 3.0}, {"stress": 6.0, "frequency": 2.5}]
    model = study.model()
    table = Columns(report(study, [*rows, rows[0]]), "Answers")
    assert table.rows[0] == ["", "1", "2"]
    answers = [model.predict(row) for row in rows]
    assert table.of("mass [kg]") == [[estimated(a.objective.mean, a.objective.std) for a in answers]]
    assert table.of("ribs") == [[str(a.point["ribs"]) for a in answers]]
    assert table.of("simulator returns with") == [[percent(a.probability_success) for a in answers]]
    assert any(a.probability_success < 1.0 for a in answers)
    limits, outputs = table.of("stress ≤")[0], table.of("stress")[0]
    assert [text.split()[-1] for text in limits] == ["3.25", "6"]
    assert outputs == [estimated(a.outputs["stress"].mean, a.outputs["stress"].std) for a in answers]


@pytest.fixture(scope="module")
def solved() -> Study:
    settings = Settings.default().replace(library=16)
    study = Study.create(make_beam(), "sqlite://", seed=7, settings=settings)
    study.add(pd.DataFrame([{**row.point, **row.outputs} for row in evaluated(make_beam(), simulate_beam, 24)]))
    return study


def test_equal_limits_are_answered_once(solved: Study) -> None:
    titles = Columns(report(solved), "Answers").rows[0]
    assert titles == [
        "",
        "nominal",
        "strictest",
        "25 % relaxed",
        "75 % relaxed",
        "most relaxed",
    ]  # Nominal is the middle.


def test_limits_that_bind_are_marked_with_what_relaxing_them_gains(solved: Study) -> None:
    page = report(solved)
    model = solved.model()
    prices, table = model.predict().prices, Columns(page, "Answers")
    for name, symbol in (("stress", "≤"), ("frequency", "≥")):
        assert table.of(f"{name} {symbol}")[0][0].startswith("◆") == prices[name].binds
        gain = prices[name]
        assert table.of(name)[-1][0] == (estimated(gain.value, gain.std) if gain.binds else "0")
    costs = Columns(page, "What limits cost")
    reach = model.reach()
    assert costs.of("frequency")[0][4] == number(reach.loc["frequency", "strictest"])


def test_limits_that_cannot_be_met_are_marked_and_the_closest_stated(solved: Study) -> None:
    asked = {"stress": 1.05, "frequency": 5.9}
    table = Columns(report(solved, [solved.problem.box.nominal, asked]), "Answers")
    assert table.of("status")[0][1] == "unreachable"
    assert table.of("frequency ≥")[0][1] == "✕ 5.9"
    closest = solved.model().predict(asked).closest_thresholds
    assert closest is not None
    assert table.of("frequency")[0] == ["", number(closest["frequency"])]


def test_more_answers_than_fit_on_a_page_are_several_tables(solved: Study) -> None:
    rows = np.column_stack([np.linspace(4.0, 8.0, 8), np.full(8, 4.0)])
    section = report(solved, rows).split("<h2>Answers</h2>")[1].split("<h2>")[0]
    assert section.count("<table") == 2


def test_the_report_fits_the_screen_and_the_page_and_breaks_no_number(
    chromium: Browser, solved: Study, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(report(solved), encoding="utf-8")
    with window(chromium, offline=True) as opened:
        opened.page.goto(path.as_uri())
        for name, width, media in (("wide", 1400, "screen"), ("narrow", 400, "screen"), ("print", 718, "print")):
            opened.page.set_viewport_size({"width": width, "height": 900})
            opened.page.emulate_media(media=media)
            assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            heights = opened.page.evaluate(
                "[...document.querySelectorAll('.answers td.number')].map((cell) => cell.getClientRects()[0].height)"
            )
            assert max(heights) < 30, width  # of one line
            opened.shot(f"report-{name}")
        table = "document.querySelector('.answers')"
        assert opened.page.evaluate(f"{table}.scrollWidth <= {table}.clientWidth")  # In print nothing can be scrolled.


def test_a_recommendation_follows_its_intents_or_says_why_not(study: Study) -> None:
    page = report(study, intents={"stress": "loosen", "frequency": "loosen"})
    assert "loosen" in page.split("<h2>Recommendation</h2>")[1]
    with pytest.raises(InputError, match="unknown limit"):
        study.model().recommend(study.problem.box.nominal, {"mass": "tighten"})
    assert "unknown limit" in report(study, intents={"mass": "tighten"})


def test_too_few_evaluations_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="at least 2 measured designs"):
        report(Study.create(make_beam(), f"sqlite:///{tmp_path}/new.db", settings=QUICK))


def test_text_is_escaped_wherever_it_stands() -> None:
    hostile = "\"'><script>&"
    made = joined(hostile, tag("p", hostile, class_=hostile), table([hostile], [[hostile]]), Markup("<hr>"))
    assert "<script" not in made
    assert made.endswith("<hr>")
    chart = Chart(Axis(hostile, 0.0, 1.0), Axis(hostile, 0.0, 1.0), hostile).drawing()
    assert "<script" not in chart


def test_ticks_are_round_and_inside() -> None:
    assert Axis("", 0.0, 10.0).ticks(5) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert Axis("", -0.031, 0.012).ticks(4) == pytest.approx([-0.02, 0.0])
    flat = Axis.around("", np.array([3.0, 3.0]))
    assert flat.low < 3.0 < flat.high
