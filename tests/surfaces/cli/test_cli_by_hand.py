"""ask, tell and import, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cbabo import Study
from cbabo.study import modelcache

MEASURED = ("mass=1.5", "stress=3", "frequency=2.5e0")


def test_a_study_by_hand(cli: Any, folder: Path) -> None:
    asked = json.loads(cli("ask", "study.yaml", "-n", 3, "--format", "json").out)
    assert [row["id"] for row in asked] == [1, 2, 3]
    assert cli("tell", "study.yaml", 2, *MEASURED, "elements=12").out == "Stored evaluation 2.\n"
    assert cli("tell", "study.yaml", 1, "--failed", "mesh did\n not converge").out == (
        "Stored evaluation 1 as failed: mesh did not converge.\n"
    )
    assert cli("tell", f"sqlite:///{folder}/beam.db::beam", 3, "mass=-1", "stress = 9", "frequency=2").code == 0
    rows = Study.open(f"sqlite:///{folder}/beam.db", "beam").evaluations
    assert [row.state for row in rows] == ["failed", "complete", "complete"]
    assert rows[1].outputs == {"mass": 1.5, "stress": 3.0, "frequency": 2.5, "elements": 12.0}
    assert [{"id": row.id, **row.point} for row in rows] == asked


def test_standard_errors_are_told_as_a_table_states_them(cli: Any, folder: Path) -> None:
    cli("ask", "study.yaml")
    assert cli("tell", "study.yaml", 1, *MEASURED, "stress sem=0.2").out == "Stored evaluation 1.\n"
    (row,) = Study.open(f"sqlite:///{folder}/beam.db", "beam").evaluations
    assert (row.outputs["stress"], row.sem) == (3.0, {"stress": 0.2})


def test_ask_as_csv_and_table_is_exact(cli: Any) -> None:
    header, row = cli("ask", "study.yaml", "--format", "csv").out.splitlines()
    assert header == "id,width,ribs"
    line = cli("ask", "study.yaml").out.splitlines()[-1]
    pending = json.loads(cli("status", "study.yaml", "--format", "json").out)["pending"]
    widths = [float(row.split(",")[1]), float(line.split()[1])]
    assert widths == [trial["point"]["width"] for trial in pending]


def test_what_is_no_measurement_is_stored_as_a_failure(cli: Any) -> None:
    cli("ask", "study.yaml", "-n", 3)
    for number, value in enumerate(("nan", "inf", "-inf"), start=1):
        out = cli("tell", "study.yaml", number, f"mass={value}", "stress=1", "frequency=1").out
        reason = f"the output 'mass' must be a finite number, but is {value}"
        assert out == f"Stored evaluation {number} as failed: {reason}.\n"


def test_what_tell_refuses(cli: Any) -> None:
    cli("ask", "study.yaml", "-n", 2)
    cli("tell", "study.yaml", 2, *MEASURED)
    for words, said in (
        ((2, *MEASURED), "evaluation 2 is already complete; each one is told once"),
        ((2, "--failed", "late"), "evaluation 2 is already complete; each one is told once"),
        ((99, *MEASURED), "there is no evaluation 99 in study 'beam'; ask for one first"),
        ((1, "mass=1", "stress=2"), "the output 'frequency' is missing; expected mass, stress, frequency"),
        ((1, *MEASURED[:2], "freqency=1"), "the output 'frequency' is missing"),
        ((1, *MEASURED[:2], "frequency=fast"), "frequency must be a number, got 'fast'"),
        ((1, *MEASURED, "note=hello"), "note must be a number, got 'hello'"),
        ((1, *MEASURED, "mass=1"), "expected name=value, each name once, got 'mass=1'"),
        ((1, "mass", "=", "1"), "expected name=value, each name once, got 'mass'"),
        ((1, "mass="), "expected name=value"),
        ((1,), "expected outputs as name=value, or --failed REASON, got neither"),
        ((1, *MEASURED, "--failed", "x"), "got both"),
        ((1, "--failed", " "), "failed must be the reason as a text"),
    ):
        assert said in cli("tell", "study.yaml", *words, code=2).err
    assert json.loads(cli("status", "study.yaml", "--format", "json").out)["running"] == 1
    cli("tell", "study.yaml", 1, *MEASURED)


def test_ctrl_c_while_asking(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Study, "ask", interrupted)
    assert "interrupted; everything told so far is stored" in cli("ask", "study.yaml", code=130).err


def test_tell_before_ask(cli: Any) -> None:
    assert "was not started yet" in cli("tell", "study.yaml", 1, *MEASURED, code=2).err


RUNS = """\
width,ribs,Vol (kg),stress,frequency,note
1.5,1,2.55,5.1,2.45,by hand
9.5,1,2.55,5.1,2.45,too wide

1.5,1.5,2.55,5.1,2.45,half a rib
1.5,2,,5.1,2.45,
1.5,2,abc,5.1,2.45,
2.5,2
2.5,3,7.15,1.8,4.35,"a quoted
note"
2.5,3,nan,1.8,4.35,
"""


def test_import_lists_bad_lines_and_keeps_the_rest(cli: Any, folder: Path) -> None:
    (folder / "runs.csv").write_text(RUNS)
    words = ("import", "study.yaml", "runs.csv", "--column", "Vol (kg)=mass")
    result = cli(*words)
    assert result.out == "Imported 2 rows from runs.csv, 6 rows with problems left out.\n"
    assert result.err.splitlines() == [
        "runs.csv, line 3: width must lie between 1.0 and 3.0, got 9.5",
        "runs.csv, line 5: ribs must be a whole number, got 1.5",
        "runs.csv, line 6: mass is empty; expected a number",
        "runs.csv, line 7: mass must be a finite number, got 'abc'",
        "runs.csv, line 8: expected 6 cells, got 2",
        "runs.csv, line 11: mass must be a finite number, got 'nan'",
    ]
    (folder / "runs.csv").write_text(RUNS.replace("9.5,1", "2.25,1").replace("1.5,1.5", "1.5,0"))
    assert cli(*words).out == "Imported 2 rows from runs.csv, 2 rows already there, 4 rows with problems left out.\n"
    report = json.loads(cli(*words, "--format", "json").out)
    assert report["added"] == []
    assert report["known"] == 4
    assert report["problems"][0] == {"line": 6, "problem": "mass is empty; expected a number"}
    assert cli(*words, "--format", "csv").out.splitlines()[1] == "6,mass is empty; expected a number"
    values = json.loads(cli("status", "study.yaml", "--format", "json").out)
    assert (values["imported"], values["requested"]) == (4, 0)


def test_import_of_what_a_spreadsheet_writes(cli: Any, folder: Path) -> None:
    text = "﻿width;ribs;mass;stress;frequency;\r\n1,5;1;2,55;5,1;2,45;\r\n2,5;3;7,15;1,8;4,35;\r\n"
    (folder / "runs.csv").write_bytes(text.encode())
    assert cli("import", "study.yaml", "runs.csv").out == "Imported 2 rows from runs.csv.\n"
    rows = Study.open(f"sqlite:///{folder}/beam.db", "beam").evaluations
    assert [row.point["width"] for row in rows] == [1.5, 2.5]


def test_import_where_nothing_is_right_fails(cli: Any, folder: Path) -> None:
    (folder / "runs.csv").write_text("width,ribs,mass,stress,frequency\n9,1,1,1,1\n")
    assert "no row could be imported" in cli("import", "study.yaml", "runs.csv", code=1).err


def test_what_import_refuses(cli: Any, folder: Path) -> None:
    for content, words, said in (
        (None, [], "the file cannot be read (No such file or directory)"),
        (b"width,ribs,mass,stress\n", [], "expected a column 'frequency', found none among 'width', 'ribs'"),
        (b"width,ribs,mass,stress,f\n", ["--column", "F=frequency"], "there is no column 'F' to rename"),
        (b"width,ribs,mass,stress,f\n", ["--column", "frequency"], "--column: expected name=value"),
        (b"width,ribs,mass,mass,stress,frequency\n", [], "expected one column 'mass', found 2"),
        (b"", [], "expected a CSV file with a header line, got an empty file"),
        (b"PK\0\0", [], "got a file of another kind"),
        (b"\xff\xfe", [], "expected a CSV file in UTF-8"),
    ):
        if content is not None:
            (folder / "runs.csv").write_bytes(content)
        error = cli("import", "study.yaml", "runs.csv", *words, code=2).err
        assert said in error
        assert ("--column THEIRS=OURS" in error) == ("found none" in error)


def test_what_was_exported_can_be_imported(cli: Any, folder: Path) -> None:
    cli("run", "study.yaml", "--budget", 3)
    cli("ask", "study.yaml")
    cli("export", "csv", "study.yaml", "all.csv")
    result = cli("import", "study.yaml", "all.csv", "--set", "study.name=copy")
    assert result.out == "Imported 3 rows from all.csv, 1 row with problems left out.\n"
    assert result.err == "all.csv, line 5: it is a running evaluation, not a measurement\n"
    copies = [
        [{**row.point, **row.outputs} for row in Study.open(f"sqlite:///{folder}/beam.db", name).evaluations.complete]
        for name in ("beam", "copy")
    ]
    assert copies[0] == copies[1]


def test_parts_are_told_by_their_names_and_shown(cli: Any, folder: Path) -> None:
    cli("ask", "study.yaml", "-n", 2)
    assert cli("tell", "study.yaml", 1, "mass=1.5", "stress[0]=3", "stress[1]=2", "frequency=50").code == 0
    later = cli("tell", "study.yaml", 2, "mass=1.5", "stress=3", "frequency=2.5").out
    assert "as failed: the output 'stress' must be a list of 2" in later
    rows = Study.open(f"sqlite:///{folder}/beam.db", "beam").evaluations
    assert rows[0].outputs == {"mass": 1.5, "stress[0]": 3.0, "stress[1]": 2.0, "frequency": 50.0}
    assert "stress[1]" in cli("status", "study.yaml").out


def test_advice_of_the_kept_model_is_shown(cli: Any, folder: Path) -> None:
    cli("ask", "study.yaml")
    file = modelcache._file(study := Study.open(f"sqlite:///{folder}/beam.db", "beam"))
    assert file is not None
    advice = b'["stress behaves like a maximum"]'
    file.write_bytes(modelcache.study_key(study) + len(advice).to_bytes(8, "big") + advice)
    assert "Advice: stress behaves like a maximum." in cli("status", "study.yaml").out
