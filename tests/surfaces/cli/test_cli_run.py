"""run and status, as a user calls them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cbabo import Study
from cbabo.surfaces.cli.progress import clock
from cbabo.surfaces.studyfile import StudyFile


def stored(folder: Path, name: str = "beam") -> pd.DataFrame:
    return Study.open(f"sqlite:///{folder}/beam.db", name).evaluations.to_frame()


def summary(cli: Any, *words: Any) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(cli(*words, "--format", "json").out)
    return result


def test_run_spends_the_budget_and_shows_the_best(cli: Any) -> None:
    result = cli("run", "study.yaml", "--budget", 8)
    assert "8/8 evaluations, 0 failed, best mass" in result.err
    assert result.err.endswith(" s each, 0:00 left\n")
    for fragment in ("requested", "stress <= 5 MPa; frequency >= 4 Hz", "best at the nominal limits: evaluation"):
        assert fragment in result.out
    assert "failures" not in result.out


def test_a_quiet_run_says_nothing(cli: Any, folder: Path) -> None:
    result = cli("run", "study.yaml", "--budget", 6, "--quiet")
    assert (result.out, result.err) == ("", "")
    assert len(stored(folder)) == 6
    assert json.loads(cli("run", "study.yaml", "--budget", 6, "-q", "--format", "json").out)["complete"] == 6


def test_run_again_resumes(cli: Any, folder: Path) -> None:
    assert summary(cli, "run", "study.yaml", "--budget", 3)["complete"] == 3
    first = stored(folder)
    assert summary(cli, "run", "study.yaml", "--budget", 6)["complete"] == 6
    pd.testing.assert_frame_equal(stored(folder)[:3], first)
    assert summary(cli, "run", "study.yaml", "--budget", 6, "--set", "study.name=straight")["complete"] == 6
    columns = ["id", "width", "ribs", "mass"]
    pd.testing.assert_frame_equal(stored(folder)[columns], stored(folder, "straight")[columns])


def test_a_spent_budget_is_said(cli: Any, folder: Path) -> None:
    cli("run", "study.yaml", "--budget", 3)
    result = cli("run", "study.yaml", "--budget", 2)
    assert result.err == (
        "Nothing was left to evaluate: 3 evaluations are done or failed and the budget is 2; raise --budget to go on.\n"
    )
    assert len(stored(folder)) == 3
    assert summary(cli, "run", "study.yaml", "--budget", 0)["requested"] == 3


@pytest.mark.parametrize("form", ["json", "csv"])
def test_for_machines_there_is_the_result_and_nothing_else(cli: Any, form: str) -> None:
    result = cli("run", "study.yaml", "--budget", 8, "--format", form)
    assert result.err == ""
    if form == "json":
        values = json.loads(result.out)
        assert values["study"] == "beam"
        assert values["best_objective"] == values["best_outputs"]["mass"]
        assert set(values["best_design"]) == {"width", "ribs"}
        assert values["nominal_limits"] == {"stress": 5.0, "frequency": 4.0}
        assert values["failures"] == values["pending"] == []
    else:
        header, row = result.out.splitlines()
        assert header.startswith("study,requested,complete,failed,running,imported,excluded,damaged,optimiser,")
        assert row.startswith("beam,8,8,0,0,0,0,0,none,")


def test_another_seed_problem_or_settings_is_refused_by_name(cli: Any, folder: Path) -> None:
    cli("run", "study.yaml", "--budget", 2)
    for change, said in (
        ("study.seed=3", "'beam' exists with a different seed;"),
        ("problem.variables.0.high=4", "'beam' exists with a different problem;"),
        ("study.settings.batch_size=2", "'beam' exists with different settings;"),
    ):
        assert said in cli("run", "study.yaml", "--set", change, code=2).err
        assert said in cli("ask", "study.yaml", "--set", change, code=2).err
        what = said.split()[-1][:-1]
        warned = cli("status", "study.yaml", "--set", change)
        assert warned.err.startswith(f"cbabo: study.yaml states another {what} than the study was created with")
    assert len(stored(folder)) == 2
    assert summary(cli, "run", "study.yaml", "--set", "study.seed=3", "--set", "study.name=b", "--budget", 1)
    assert cli("status", "study.yaml", "--set", "study.name=b", "--set", "study.seed=3").err == ""


def test_worker_processes(cli: Any, folder: Path) -> None:
    assert summary(cli, "run", "study.yaml", "--budget", 4, "--workers", 2, "--asynchronous")["complete"] == 4
    assert stored(folder)["worker"].nunique() <= 2


def test_a_study_by_its_address_needs_an_evaluator(cli: Any, folder: Path) -> None:
    address = f"sqlite:///{folder}/beam.db::beam"
    cli("run", "study.yaml", "--budget", 2)
    assert "add --evaluator module:function" in cli("run", address, code=2).err
    assert summary(cli, "run", address, "--evaluator", "beamsim:evaluate", "--budget", 3)["complete"] == 3
    for wrong, said in (("nosuch:evaluate", "no module 'nosuch'"), ("beamsim", "named as module:function")):
        assert said in cli("run", address, "--evaluator", wrong, code=2).err
    refused = cli("run", address, "--evaluator", "beamsim:evaluate", "--set", "study.seed=3", code=2)
    assert "--set: expected a study file" in refused.err


def test_an_evaluator_may_replace_the_file_s(cli: Any) -> None:
    assert summary(
        cli, "run", "study.yaml", "--set", "evaluator=null", "--evaluator", "beamsim:evaluate", "--budget", 1
    )


@pytest.mark.parametrize("change", ["evaluator=null", "evaluator.python=nosuch:evaluate"])
def test_without_a_simulator_no_study_is_made(cli: Any, folder: Path, change: str) -> None:
    assert "study.yaml: " in cli("run", "study.yaml", "--set", change, code=2).err
    assert not (folder / "beam.db").exists()


def test_a_hopeless_run_stops(cli: Any) -> None:
    words = ("run", "study.yaml", "--set", "evaluator.python=beamsim:broken", "--stop-after-failures", 3)
    result = cli(*words, code=1)
    assert result.out == ""
    lines = [line for line in result.err.splitlines() if line.startswith("cbabo: ")]
    assert lines[0] == "cbabo: evaluation 1 failed: ValueError: no convergence [red]at all[/red]"
    assert lines[-1].startswith("cbabo: the last 3 evaluations failed in a row (the latest: ValueError: no convergence")
    status = cli("status", "study.yaml").out
    assert "No measured design obeys the nominal limits yet." in status
    assert "3       3, 2, 1   ValueError: no convergence [red]at all[/red]" in status
    logs = cli("status", "study.yaml", "--logs").out
    assert logs.count("--- evaluation ") == 3
    assert "in broken" in logs
    values = summary(cli, "status", "study.yaml")
    assert [row["id"] for row in values["failures"]] == [1, 2, 3]
    assert all("in broken" in row["log"] for row in values["failures"])
    assert values["best_objective"] is None
    assert cli("status", "study.yaml", "--format", "csv").out.splitlines()[1].startswith("beam,3,0,3,0,0,0,0,none,")


def test_a_misspelt_program_stops_the_run_and_is_put_right(cli: Any, folder: Path) -> None:
    words = (
        "run",
        "study.yaml",
        "--set",
        "evaluator={command: 'no-such-program-here {width} {ribs}', outputs: stdout}",
    )
    stopped = cli(*words, code=1).err
    assert "the first 5 evaluations of this run failed for the same reason (the latest: the command " in stopped
    assert "cbabo retry STUDY --failed" in stopped
    assert "5       5, 4, 3, 2, 1" in cli("status", "study.yaml").out  # One reason, though the directories differ.
    assert "expected ids of evaluations or --failed, got neither" in cli("retry", "study.yaml", code=2).err
    assert "got both" in cli("retry", "study.yaml", 1, "--failed", code=2).err
    said = cli("retry", "study.yaml", "--failed").out
    assert said == "5 evaluations will be run again, as evaluations 6, 7, 8, 9, 10. Next: cbabo run study.yaml\n"
    waiting = summary(cli, "status", "study.yaml")
    assert (waiting["requested"], waiting["failed"], waiting["running"], waiting["to_run_again"]) == (5, 0, 0, 5)
    assert "\nwill be run again\n" in cli("status", "study.yaml").out
    done = cli("run", "study.yaml", "--budget", 6)
    assert done.err.splitlines()[-1].startswith("6/6 evaluations, 0 failed")
    assert summary(cli, "status", "study.yaml")["complete"] == 6
    assert "No evaluation has failed" in cli("retry", "study.yaml", "--failed").out


def test_status_says_that_an_interrupted_evaluation_will_be_run_again(cli: Any, folder: Path) -> None:
    study = StudyFile.read("study.yaml").create()

    def interrupted(point: dict[str, float]) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(interrupted, budget=1, in_process=True)
    assert "\ninterrupted, will be run again\n" in cli("status", "study.yaml").out
    values = summary(cli, "status", "study.yaml")
    assert (values["running"], values["to_run_again"]) == (0, 1)
    assert values["pending"][0]["standing"] == "interrupted, will be run again"


def test_a_timeout_given_by_the_way_wins(cli: Any, folder: Path) -> None:
    words = ("run", "study.yaml", "--set", "evaluator.python=beamsim:hanging", "--timeout", 0.3, "--budget", 1)
    values = summary(cli, *words)
    assert "0.3 s" in values["failures"][0]["failure"]
    command = f"evaluator={{command: [{sys.executable}, -c, 'import time; time.sleep(60)'], timeout: 50}}"
    words = ("run", "study.yaml", "--set", command, "--timeout", 0.3, "--retries", 1, "--budget", 2)
    values = summary(cli, *words)
    assert "within 0.3 s" in values["failures"][1]["failure"]
    assert len(list((folder / "runs").iterdir())) == 2, "tried twice"


def test_wrong_options(cli: Any) -> None:
    for words, said in (
        (["--timeout", -1], "timeout must be more than 0 s"),
        (["--timeout", "nan"], "timeout must be more than 0 s"),
        (["--retries", -1], "retries must be 0 or more"),
    ):
        assert said in cli("run", "study.yaml", *words, code=2).err


def test_very_long_failures_do_not_flood_the_screen(cli: Any) -> None:
    cli("ask", "study.yaml", "-n", 14)
    cli("tell", "study.yaml", 1, "--failed", "\x1b[31mword \a" * 400)
    for number in range(2, 14):
        cli("tell", "study.yaml", number, "--failed", f"cause {chr(96 + number)}")
    out = cli("status", "study.yaml").out
    assert len(out) < 4000
    assert "\x1b" not in out
    assert "… and 3 more reasons, see --format json" in out
    assert "cause m" in out
    cli("tell", "study.yaml", 14, "--failed", "\x1b[31mword \a" * 400)
    out = cli("status", "study.yaml").out
    assert "\x1b" not in out
    assert "\a" not in out
    assert "2       14, 1" in out
    assert len(summary(cli, "status", "study.yaml")["failures"][0]["failure"]) > 2000


def test_wide_designs_are_not_cut_off(cli: Any, folder: Path) -> None:
    names = [f"thickness_of_rib_number_{i}" for i in range(20)]
    variables = ", ".join(f"{{name: {name}, type: real, low: 0.1, high: 0.7}}" for name in names)
    cli("ask", "study.yaml", "-n", 2, "--set", f"problem.variables=[{variables}]")
    words = ("ask", "study.yaml", "-n", 2, "--set", f"problem.variables=[{variables}]")
    printed = cli(*words).out
    assert [line.split()[0] for line in printed.splitlines()[2:]] == names
    point = Study.open(f"sqlite:///{folder}/beam.db", "beam").evaluations[2].point
    for name in names:
        assert f"{point[name]!r}" in printed


def test_status_of_what_is_not_there(cli: Any, folder: Path) -> None:
    not_started = "study.yaml: this study was not started yet; start it by: cbabo run study.yaml"
    assert not_started in cli("status", "study.yaml", code=2).err
    assert not (folder / "beam.db").exists()
    cli("ask", "study.yaml", "--set", "study.name=other")
    assert not_started in cli("status", "study.yaml", code=2).err
    address = f"sqlite:///{folder}/beam.db"
    assert "there is no study 'nosuch'" in cli("status", f"{address}::nosuch", code=2).err
    assert "it holds: 'other'" in cli("status", f"{address}::", code=2).err
    assert "without '::name'" in cli("status", address, code=2).err
    assert "there is no such database" in cli("status", "sqlite:///nosuch.db::beam", code=2).err
    assert not (folder / "nosuch.db").exists()
    for wrong in ("::", "beam.db::beam", "mysql://x::beam", "sqlite://beam.db::beam", "sqlite:///:memory:::beam"):
        assert "storage: " in cli("status", wrong, code=2).err
    assert "No such file" in cli("status", "nosuch.yaml", code=2).err
    assert "Is a directory" in cli("status", folder, code=2).err


def test_status_shows_what_is_under_way(cli: Any) -> None:
    cli("ask", "study.yaml", "-n", 12)
    out = cli("status", "study.yaml").out
    assert "running, or asked for and not yet told: the first 10 of 12" in out
    assert len(summary(cli, "status", "study.yaml")["pending"]) == 12


def test_a_file_with_colons_is_a_file(cli: Any, folder: Path) -> None:
    (folder / "a::b.yaml").write_text((folder / "study.yaml").read_text())
    assert summary(cli, "run", "a::b.yaml", "--budget", 1)["complete"] == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.6, "1:00"), (245, "4:05"), (3600 * 3 + 245, "3:04:05"), (1e6, "12 days"), (1e10, "115741 days")],
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
