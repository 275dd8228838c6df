from __future__ import annotations

import json
from pathlib import Path

from cli.conftest import Command


def test_freeze_common_and_tolerances(cli: Command, folder: Path, learned: str) -> None:
    (folder / "limits.csv").write_text("stress,frequency,weight\n4,3,1\n6,2.5,3\n")
    (folder / "rows.csv").write_text("stress,frequency\n4,3\n6,2.5\n")
    assert "ribs" in cli("freeze", learned, "--file", "rows.csv").out
    frozen = json.loads(cli("freeze", learned, "--file", "rows.csv", "--fixed", "ribs=2", "--format", "json").out)
    assert [row["variable"] for row in frozen["variables"]] == ["width"]
    assert cli("freeze", learned, "--file", "rows.csv", "--format", "csv").out.startswith("variable,unit,low")
    shared = json.loads(cli("common", learned, "limits.csv", "--format", "json").out)
    assert shared["answer"]["limits"] == {"stress": 4.0, "frequency": 3.0}
    assert [row["weight"] for row in shared["rows"]] == [0.25, 0.75]
    assert "own objective" in cli("common", learned, "limits.csv").out
    words = ("tolerances", learned, "--at", "stress=4", "--give", "0.1", "--weight", "width=2")
    box = json.loads(cli(*words, "--format", "json").out)
    assert [row["variable"] for row in box["variables"]] == ["width"]
    assert box["answer"]["tolerance"]["width"] == box["variables"][0]["tolerance"]
    assert "alone" in cli("tolerances", learned, "--point", "width=2.5", "--point", "ribs=2").out
    cli("tolerances", learned, "--weight", "depth=2", code=2)
    cli("freeze", learned, "--fixed", "width=wide", code=2)
    cli("common", learned, "nothing.csv", code=2)


def test_predict_asks_other_questions(cli: Command, learned: str) -> None:
    words = ("predict", learned, "--at", "mass=6", "--at", "frequency=3", "--objective", "stress", "--format", "json")
    swapped = json.loads(cli(*words).out)
    assert swapped["limits"]["mass"] == 6.0
    assert swapped["objective"] == swapped["outputs"][0]["mean"]
    limited = json.loads(cli("predict", learned, "--at", "elements>=2000", "--format", "json").out)
    assert limited["design"]["width"] >= 1.99
    scattered = json.loads(cli("predict", learned, "--scatter", "width=0.02", "--format", "json").out)
    assert scattered["scatter"] == {"width": 0.02}
    exact = json.loads(cli("predict", learned, "--tolerance", "width=0.02", "--format", "json").out)
    assert exact["tolerance"] == {"width": 0.02}
    words = ("predict", learned, "--at", "mass=-5%", "--reference", "3", "--objective", "stress", "--format", "json")
    relative = json.loads(cli(*words).out)
    assert relative["limits"]["mass"] > 0.0
    cli("predict", learned, "--at", "mass=-5%", code=2)
    cli("predict", learned, "--reference", "999", "--at", "mass=-5%", code=2)
    cli("predict", learned, "--objective", "strain", code=2)
    cli("predict", learned, "--scatter", "ribs=1", code=2)
    cli("predict", learned, "--file", "x.csv", "--objective", "stress", code=2)
