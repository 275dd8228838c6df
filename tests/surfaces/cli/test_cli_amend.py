"""amend, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

STRICTER = "problem.constraints.0.high=12"


def test_the_file_is_changed_and_the_study_amended(cli: Any, folder: Path) -> None:
    cli("run", "study.yaml", "--budget", 8)
    text = (folder / "study.yaml").read_text()
    assert "nothing" in cli("amend", "study.yaml").out.lower()
    refused = cli("run", "study.yaml", "--set", STRICTER, code=2).err
    assert "constraint 'stress': " in refused
    assert "-> 12; amend the study by study.amend or cbabo amend" in refused
    warned = cli("status", "study.yaml", "--set", STRICTER).err
    assert "change it by: cbabo amend study.yaml" in warned
    done = cli("amend", "study.yaml", "--set", STRICTER)
    assert done.err == ""
    assert done.out.splitlines()[-1] == "Amended; all 8 evaluations are kept."
    assert "constraint 'stress': high " in done.out
    assert "after evaluation 8: constraint 'stress': high " in cli("status", f"sqlite:///{folder}/beam.db::beam").out
    cli("run", "study.yaml", "--set", STRICTER, "--budget", 9)
    values = json.loads(cli("status", "study.yaml", "--set", STRICTER, "--format", "json").out)
    assert (values["complete"], values["amendments"][0]["after_evaluation"]) == (9, 8)
    (folder / "other.yaml").write_text(text)
    assert "-> 12" not in cli("amend", f"sqlite:///{folder}/beam.db::beam", "other.yaml").out  # Back to what it was.


def test_what_cannot_be_is_one_sentence(cli: Any, folder: Path) -> None:
    assert "not started yet" in cli("amend", "study.yaml", code=2).err
    cli("run", "study.yaml", "--budget", 2)
    address = f"sqlite:///{folder}/beam.db::beam"
    assert "expected a FILE with the new problem" in cli("amend", address, code=2).err
    more = "problem.variables.1={name: load, type: real, low: 1, high: 3}"
    assert "cannot be removed" in cli("amend", "study.yaml", "--set", more, code=2).err
    assert "must be a number, got 'x'" in cli("amend", "study.yaml", "--value", "load=x", code=2).err
    assert "given for 'load'" in cli("amend", "study.yaml", "--value", "load=2", "--set", STRICTER, code=2).err
