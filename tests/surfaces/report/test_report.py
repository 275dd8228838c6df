"""A report says everything, in HTML that holds no script."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from cbabo import Study
from cbabo.display.markup import Markup, joined, table, tag
from cbabo.errors import InputError, ModelError
from cbabo.surfaces.report import report
from cbabo.surfaces.report.charts import Axis, Chart
from learned import QUICK
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


def test_chosen_thresholds_are_answered(study: Study) -> None:
    rows = [{"stress": 3.25, "frequency": 3.0}]
    page = report(study, np.array([[3.25, 3.0]]))
    answer = study.model().predict(rows[0])
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page.split("<h2>Answers</h2>")[1].split("</table>")[0])
    assert cells[:2] == ["3.25", "3"]
    assert f"{answer.objective.mean:.5g}" in cells
    assert answer.probability_success < 1.0
    assert f"{100 * answer.probability_success:.1f} %" in cells


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
