"""What a notebook shows of problems, evaluations, studies, answers and recommendations."""

from __future__ import annotations

from html.parser import HTMLParser

import pandas as pd
import pytest

from cbabo import Categorical, Constraint, Discrete, Integer, Objective, Problem, Real, Settings, Study
from cbabo.answering.answers import Answer, Estimate, LimitChange, Recommendation
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.model import Model
from learned import model_of
from simulators import make_beam, simulate_beam

HOSTILE = "<script>alert(1)</script>&\"'"


class Cells(HTMLParser):
    """Collects the elements of some HTML, which must end as they began, and its texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = [[]]
        self.words = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f"{data} "
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def hostile_problem() -> Problem:
    return Problem(
        f"p {HOSTILE}",
        [Real(f"x {HOSTILE}", 0.0, 1.0, unit=HOSTILE), Categorical("material", (HOSTILE, "steel"))],
        Objective(f"f {HOSTILE}", unit=HOSTILE),
        [Constraint(f"c {HOSTILE}", low=0.0, high=1.0, unit=HOSTILE)],
    )


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(make_beam(), simulate_beam, 24, Settings.default().replace(library=16))


def shown(value: object) -> Cells:
    return Cells(value._repr_html_())  # type: ignore[attr-defined]


def test_a_problem_states_everything() -> None:
    problem = Problem(
        "bar",
        [Real("width", 1.0, 3.0, unit="mm"), Discrete("gauge", [0.192, 0.345]), Integer("ribs", 0, 4)],
        Objective("mass", unit="kg", direction="maximize"),
        [Constraint("stress", low=1.0, high=9.0, nominal=2.0, unit="MPa"), Constraint("f", ">=", limit=3.0)],
        relations=["width <= 2.5 + ribs"],
        derived={"double": "2*mass"},
    )
    found = shown(problem)
    assert "Maximize mass [kg]." in found.words
    assert ["width", "real", "1", "3", "mm"] in found.rows
    assert ["stress", "≤", "1 to 9", "2", "MPa", "stress"] in found.rows
    assert ["f", "≥", "3", "", "", "f"] in found.rows
    assert ["width <= 2.5 + ribs"] in found.rows
    assert ["double", "2*mass", "outputs: as certain as these are"] in found.rows


def test_hostile_names_stay_text_everywhere() -> None:
    problem = hostile_problem()
    x, f, c = problem.space.names[0], problem.objective.name, problem.box.names[0]
    point = {x: 0.5, "material": HOSTILE}
    rows = (
        Evaluation(1, "complete", "run", point, {f: 1.0, c: 0.5}),
        Evaluation(2, "failed", "run", point, {}, failure=HOSTILE),
        Evaluation(3, "complete", "run", point, {f: 1.0, c: 0.5}, excluded=HOSTILE),
    )
    outputs = {f: Estimate(1.0, 0.1), c: Estimate(0.5, 0.1), HOSTILE: Estimate(0.0, 1.0)}
    answer = Answer({c: 0.5}, point, outputs[f], outputs, 0.9, "unreachable", {c: 0.6}, (HOSTILE,), problem=problem)
    found = Recommendation({c: 0.6}, answer, answer, 0.1, 1.0, {c: LimitChange(HOSTILE, 0.5, 0.6, 0.1)})
    alone = Answer({c: 0.5}, point, outputs[f], outputs, 0.9, "predicted")
    study = Study.create(problem, "sqlite://", name=HOSTILE)
    study.tell(study.ask()[0].id, {f: 1.0, c: 0.1})
    for value in (problem, Evaluations(problem, rows), answer, found, alone, study):
        cells = shown(value)
        assert "script" not in cells.tags, value
        assert HOSTILE in cells.words, value


def test_evaluations_show_digits_of_standard_errors_and_only_some_rows() -> None:
    problem = make_beam()
    rows = tuple(
        Evaluation(
            i,
            "complete",
            "run",
            {"width": 2.0, "ribs": 3},
            simulate_beam({"width": 2.0, "ribs": 3}),
            sem={"stress": 0.25},
        )
        for i in range(1, 31)
    )
    found = shown(Evaluations(problem, rows))
    assert "30 measured, 0 failed, 0 pending" in found.words
    assert found.rows[1][:4] == ["id", "state", "kind", "width"]
    assert "mass [kg]" in found.rows[1]
    assert [row[0] for row in found.rows[2:]] == [*map(str, range(1, 11)), "…", *map(str, range(21, 31))]
    stress = found.rows[2][6]
    assert stress.endswith("± 0.25")
    assert len(stress.split(" ")[0].split(".")[1]) == 2


def test_no_evaluations_are_an_empty_table() -> None:
    assert "0 measured" in shown(Evaluations(make_beam(), ())).words


def test_an_answer_shows_outputs_against_limits_and_the_design(model: Model) -> None:
    answer = model.predict({"stress": 5.0})
    found = shown(answer)
    assert found.words.startswith("predicted ")
    assert [row[:2] for row in found.rows if row and row[0] == "stress"] == [["stress", "≤ 5"]]
    frequency = next(row for row in found.rows if row and row[0] == "frequency")
    assert frequency[1] == "≥ 4"
    assert frequency[4] == "◆ active"
    assert next(row for row in found.rows if row and row[0] == "ribs")[1] == str(answer.point["ribs"])


def test_an_unreachable_answer_says_what_is_broken_and_what_can_be_met(model: Model) -> None:
    found = shown(model.predict({"stress": 1.05, "frequency": 6.0}))
    assert found.words.startswith("unreachable ")
    assert "The closest limits that can be met: stress" in found.words
    broken = [row for row in found.rows if row and row[-1] == "✕ violated"]
    assert broken
    for row in broken:
        assert row[3].startswith("over by" if row[0] == "stress" else "falls short by")


def test_a_recommendation_shows_what_each_change_gains(model: Model) -> None:
    recommended = model.recommend({"stress": 3.0, "frequency": 4.0}, {"frequency": "loosen"})
    found = shown(recommended)
    assert "better by" in found.words
    assert [row[1:3] for row in found.rows if row and row[0] == "frequency"] == [["loosen", "4"]]
    assert sum(bool(row) and row[0].startswith("alternative") for row in found.rows) == len(recommended.alternatives)


def test_a_study_shows_how_far_it_is_and_its_best_design(beam: Problem) -> None:
    study = Study.create(beam, "sqlite://", seed=4)
    assert "No measured design obeys the nominal limits." in shown(study).words
    point = {"width": 2.2, "ribs": 4}
    study.add(pd.DataFrame([{**point, **simulate_beam(point)}]))
    found = shown(study)
    assert ["evaluations", "1 measured, 0 failed"] in found.rows
    assert ["method, seed", "default, 4"] in found.rows
    assert ["ribs", "4"] in found.rows
