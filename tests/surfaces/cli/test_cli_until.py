"""run --until, and the budget of a study file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_the_file_states_how_long_to_run(cli: Any, folder: Path) -> None:
    assert "3/3 evaluations" in cli("run", "study.yaml", "--set", "study.budget=3").err
    assert "4/4 evaluations" in cli("run", "study.yaml", "--set", "study.budget=3", "--budget", 4).err
    for wrong in ("-1", "many", "true"):
        assert "study.budget" in cli("run", "study.yaml", "--set", f"study.budget={wrong}", code=2).err
    assert "study.until: expected a share" in cli("check", "study.yaml", "--set", "study.until=2", code=2).err
    assert "--until: expected a share" in cli("run", "study.yaml", "--until", "2", code=2).err


def test_a_run_ends_when_it_has_converged_and_status_says_so(cli: Any, folder: Path) -> None:
    small = ("--set", "study.settings.library=16", "--set", "study.until=5%")
    done = cli("run", "study.yaml", *small, "--budget", 60)
    assert "The answers have converged to 5 % of the span." in done.err
    assert ", converged to " in done.err
    assert "\nConvergence: over the last " in done.out
    values = json.loads(cli("status", "study.yaml", *small, "--format", "json").out)
    assert values["requested"] < 60
    assert values["convergence"]["figure"] <= 0.05
    assert "moved by" in values["convergence"]["text"]
    cli("forget", "study.yaml", 1, *small)
    assert json.loads(cli("status", "study.yaml", *small, "--format", "json").out)["convergence"] is None
