"""export explorer, report, model and csv, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cbabo import Model, Study


def test_the_explorer_says_how_to_open_it(cli: Any, learned: str, folder: Path) -> None:
    said = cli("export", "explorer", learned, "beam.html").out
    assert "Wrote the explorer of beam to beam.html" in said
    assert (folder / "beam.html").as_uri() in said
    assert 'id="document"' in (folder / "beam.html").read_text()


def test_evaluations_go_to_optuna_and_come_back(cli: Any, learned: str, folder: Path) -> None:
    count = len(Study.open(*learned.split("::")).evaluations)
    address = "optuna://sqlite:///trials.db::beam"
    assert f"Wrote {count} evaluations as trials to {address}." in cli("export", "optuna", learned, address).out
    assert "there is a study 'beam' already" in cli("export", "optuna", learned, address, code=2).err
    said = cli("import", "study.yaml", address, "--set", "study.name=again").out
    assert f"Imported {count} rows from {address}." in said
    assert (
        "there is no file other.db"
        in cli("import", "study.yaml", "optuna://sqlite:///other.db", "--set", "study.name=again", code=2).err
    )


def test_the_report_answers_chosen_limits(cli: Any, learned: str, folder: Path) -> None:
    cli("export", "report", learned, "all.html")
    (folder / "limits.csv").write_text("stress,frequency\n4.125,3\n")
    cli("export", "report", learned, "report.html", "--limits", "limits.csv", "--tighten", "stress")
    page = (folder / "report.html").read_text()
    assert "4.125" in page
    assert "tighten" in page
    assert (
        "expected a CSV file of limits" in cli("export", "report", learned, "x.html", "--limits", "no.csv", code=2).err
    )


def test_the_model_is_read_back(cli: Any, learned: str, folder: Path) -> None:
    assert "35 measured designs" in cli("export", "model", learned, "beam.cbabo").out
    answer = json.loads(cli("predict", learned, "--at", "stress=4", "--format", "json").out)
    assert Model.load(folder / "beam.cbabo").predict(answer["limits"]).objective.mean == answer["objective"]


@pytest.mark.parametrize("kind", ["explorer", "report", "model", "csv"])
def test_nothing_is_written_over_a_study_or_nowhere(cli: Any, learned: str, folder: Path, kind: str) -> None:
    before = (folder / "beam.db").read_bytes()
    assert "is a study and is left as it is" in cli("export", kind, learned, "beam.db", code=2).err
    assert (folder / "beam.db").read_bytes() == before
    assert "cannot be written" in cli("export", kind, learned, "nowhere/file", code=2).err


@pytest.mark.parametrize("kind", ["explorer", "report", "model"])
def test_too_few_evaluations_get_a_sentence(cli: Any, folder: Path, kind: str) -> None:
    cli("ask", "study.yaml")
    assert "a model needs at least 2 measured designs" in cli("export", kind, "study.yaml", "x", code=1).err


def test_a_table_that_a_spreadsheet_may_open_is_imported_again(cli: Any, folder: Path) -> None:
    text = (
        (folder / "study.yaml")
        .read_text()
        .replace("name: width", "name: '-width'")
        .replace("minimize mass", "minimize +mass")
    )
    (folder / "study.yaml").write_text(text)
    cli("ask", "study.yaml", "-n", 2)
    cli("tell", "study.yaml", 1, "+mass=2", "stress=3", "frequency=-4")
    cli("tell", "study.yaml", 2, "--failed", "=HYPERLINK(1)")
    cli("export", "csv", "study.yaml", "all.csv")
    lines = (folder / "all.csv").read_text().splitlines()
    assert lines[0].startswith("id,state,kind,'-width,ribs,'+mass,stress,frequency")
    assert "'=HYPERLINK(1)" in lines[2]
    assert "-4.0" in lines[1].split(",")  # a number stays one
    result = cli("import", "study.yaml", "all.csv", "--set=study.name=other")
    assert result.out.startswith("Imported 1 row from all.csv")
