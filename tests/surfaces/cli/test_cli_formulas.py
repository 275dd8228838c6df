"""Relations and derived outputs in a study file: checked, run, imported into, and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FILE = """\
problem:
  name: tube
  variables:
    - {name: outer diameter, type: real, low: 10, high: 60, unit: mm}
    - {name: wall, type: real, low: 0.5, high: 40, unit: mm}
  objective: minimize mass [kg]
  constraints: ["safety >= [1..4]"]
  relations: ["2*wall <= `outer diameter` - 2"]
  derived:
    mass: (`outer diameter` - wall)*wall*0.001
    safety: strength/stress
evaluator: {python: "tubesim:evaluate"}
study: {storage: "sqlite:///tube.db", settings: {library: 4}}
"""
SIMULATOR = """\
def evaluate(point):
    d, t = point["outer diameter"], point["wall"]
    return {"stress": 4e4 / (d * d * t), "strength": 20.0 + t, "elements": 7}
"""


@pytest.fixture
def tube(folder: Path) -> Path:
    (folder / "tube.yaml").write_text(FILE)
    (folder / "tubesim.py").write_text(SIMULATOR)
    return folder


def test_check_shows_relations_and_formulas_and_tries_a_design_that_obeys(cli: Any, tube: Path) -> None:
    out = cli("check", "tube.yaml", "--try").out
    assert "2*wall <= `outer diameter` - 2" in out
    assert "variables, exact" in out
    assert "The simulator must return: strength, stress" in out
    assert "outputs at outer diameter=37.1451, wall=17.5725" in out
    assert "safety" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "problem.relations.0=2*wal <= 3",
            "relations: '2*wal <= 3' names 'wal', which it cannot depend on; did you mean wall?",
        ),
        ("problem.relations.0=wall >= 100", "no design obeys them all"),
        ("problem.derived.mass=2*wall +", "derived: mass: '2*wall +' ends where"),
        ("problem.derived.mass=walll*2", "did you mean wall?"),
        ("problem.derived.safety=mass + safety", "is a circle"),
        ("problem.relations=wall <= 3", "relations: expected a list"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(cli: Any, tube: Path, change: str, message: str) -> None:
    err = cli("check", "tube.yaml", "--set", change, code=2).err
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_formula_without_a_value_is_told_before_anything_runs(cli: Any, tube: Path) -> None:
    failed = cli("check", "tube.yaml", "--try", "--set", "problem.derived.safety=log(-stress)", code=1)
    assert "the formula of 'safety' has no finite value here, but nan" in failed.err


def test_old_designs_that_break_a_relation_are_kept_and_told(cli: Any, tube: Path) -> None:
    cli("run", "tube.yaml", "--budget", 12)
    (tube / "old.csv").write_text("outer diameter,wall,stress,strength\n20,15,6.6,35\n30,2,22.2,22\n")
    imported = cli("import", "tube.yaml", "old.csv")
    assert "line 2: the design breaks '2*wall <= `outer diameter` - 2'; it is kept as data" in imported.err
    assert "Imported 2 rows" in imported.out
    assert "1 measured design breaks a known relation (evaluation 13)" in cli("status", "tube.yaml").out
    answer = json.loads(cli("predict", "tube.yaml", "--at", "safety=2", "--format", "json").out)
    design = answer["design"]
    assert 2 * design["wall"] <= design["outer diameter"] - 2
    assert answer["objective_std"] == 0.0
    assert answer["objective"] == pytest.approx((design["outer diameter"] - design["wall"]) * design["wall"] * 0.001)
    cli("export", "report", "tube.yaml", "report.html")
    report = (tube / "report.html").read_text()
    assert "never an answer" in report
    assert "strength/stress" in report
    again = json.loads(cli("import", "tube.yaml", "old.csv", "--format", "json").out)
    assert again["known"] == 2
    assert [row["line"] for row in again["broken"]] == [2]


def test_a_missing_raw_output_is_a_failure_with_its_name(cli: Any, tube: Path) -> None:
    (tube / "tubesim.py").write_text(SIMULATOR.replace('"strength": 20.0 + t, ', ""))
    failed = cli("check", "tube.yaml", "--try", code=1)
    assert "'strength'" in failed.err
