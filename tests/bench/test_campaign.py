from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cbabo.bench import campaign as module
from cbabo.bench.campaign import Campaign, Unit, code_version, rows, run
from cbabo.bench.methods import METHODS, feasible_share, queries
from cbabo.bench.printed import FEASIBILITY
from cbabo.bench.tables import case_study, feasibility
from cbabo.errors import EvaluationError, InputError
from cbabo.problems import get, names


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text("name: small\nproblems: [gkxwc1, gkxwc2]\nmethods: [paper]\nseeds: 2\nn: [1, 5]\n")
    return path


def test_a_campaign_is_a_grid(file: Path) -> None:
    campaign = Campaign.read(file)
    assert len(campaign.units) == 2 * 1 * 2 * 2
    assert Unit("gkxwc1", "paper", 1, 5) in campaign.units
    assert campaign.results == file.with_suffix(".csv")


def test_a_suite_stands_for_its_problems(file: Path) -> None:
    file.write_text("name: all\nproblems: [paper]\nmethods: [paper]\nseeds: 1\nn: [1]\n")
    assert [unit.problem for unit in Campaign.read(file).units] == list(names("paper"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("gkxwc1", "gkxwc9"), "did you mean"),
        (("[paper]", "[best]"), "unknown method 'best'"),
        (("seeds: 2", "seeds: many"), "seeds: input should be a valid integer"),
        (("seeds: 2", "sedes: 2"), "missing"),
    ],
)
def test_a_wrong_campaign_gets_one_sentence(file: Path, change: tuple[str, str], words: str) -> None:
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(InputError, match=words) as caught:
        Campaign.read(file)
    assert "\n" not in str(caught.value)


def test_finished_units_are_rows_and_are_not_computed_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(problem: str, method: str, seed: int, n: int) -> dict[str, float]:
        return {"value of " + problem: seed + 0.1 + n}

    monkeypatch.setattr(module, "measure", measure)
    campaign = Campaign.read(file)
    lines: list[str] = []
    run(campaign, 2, lines.append)
    assert len(lines) == 8
    assert campaign.pending() == []
    found = {(r["problem"], int(r["seed"]), int(r["n"])): float(r["value"]) for r in rows(campaign.results)}
    assert found["gkxwc2", 1, 5] == 1 + 0.1 + 5
    before = campaign.results.read_text()
    run(campaign, 2, lines.append)
    assert campaign.results.read_text() == before
    cut = before[: before.rindex(",") + 1]  # killed while writing: the last value is missing
    campaign.results.write_text(cut)
    assert len(campaign.pending()) == 1
    monkeypatch.setattr(module, "code_version", lambda: "another")
    assert len(campaign.pending()) == 8


def test_a_failing_unit_is_told_and_the_others_go_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(problem: str, method: str, seed: int, n: int) -> dict[str, float]:
        if problem == "gkxwc1":
            raise EvaluationError("no luck")
        return {"value": 1.0}

    monkeypatch.setattr(module, "measure", measure)
    campaign = Campaign.read(file)
    with pytest.raises(InputError, match="4 units failed"):
        run(campaign, 2, lambda line: None)
    assert {unit.problem for unit in campaign.pending()} == {"gkxwc1"}


def test_the_version_is_that_of_the_code_that_computes() -> None:
    assert len(code_version()) == 10
    assert set(METHODS) >= {"paper", "default", "plain", "case study"}


def test_queries_lie_in_the_box_and_shares_are_counted() -> None:
    shipped = get("gkxwc2")
    thresholds = queries(shipped, 0, 50)
    assert thresholds.shape == (50, 1)
    assert (queries(shipped, 0, 50) == thresholds).all()
    assert ((thresholds >= 0) & (thresholds <= 5)).all()
    designs = shipped.problem.space.natural(np.random.default_rng(0).random((50, 2)))
    _, c = shipped.evaluate_many(designs)
    assert feasible_share(shipped, designs, thresholds) == (c <= thresholds).mean()


def test_the_feasibility_table_stands_beside_the_paper() -> None:
    records = [
        {"problem": "car", "method": "paper", "seed": s, "n": 1, "code": "x", "metric": "direct feasible", "value": v}
        for s, v in enumerate(("0.70", "0.74"))
    ]
    table = feasibility(pd.DataFrame(records)).set_index("problem")
    assert list(table.index) == list(FEASIBILITY)
    assert table.loc["car", "feasible %"] == 72.0
    assert table.loc["car", "within"] == "yes"
    assert table.loc["g01", "within"] == ""


def test_the_case_study_is_listed_by_seed() -> None:
    records = [
        {"problem": "car", "method": "case study", "seed": s, "n": 1, "code": "x", "metric": m, "value": str(v)}
        for s in (0, 1)
        for m, v in (("feasible", 1.0), ("improvement percent", 12.5 + s))
    ]
    assert list(case_study(pd.DataFrame(records))["improvement percent"]) == [12.5, 13.5]
