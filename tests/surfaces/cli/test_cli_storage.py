"""What the command line does with databases, passwords and standard error that cannot be written."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cbabo import Study
from cbabo.storage.urls import hide_passwords

BIN = Path(sys.executable).parent


def shell(line: str, code: int = 0) -> str:
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done
    return done.stdout


BROKEN_FIRST = """
from cbabo.domain.current import current_evaluation

def broken_first(point):
    return broken(point) if current_evaluation.get() <= 3 else evaluate(point)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize(
    ("target", "workers"), [("2>/dev/full", 1), ("2>&-", 2), ("2> >(true)", 2), ("2>&- >&- <&-", 1)]
)
def test_a_standard_error_that_cannot_be_written_never_ends_a_run(folder: Path, target: str, workers: int) -> None:
    with (folder / "beamsim.py").open("a") as file:
        file.write(BROKEN_FIRST)
    study = "study.yaml --set evaluator.python=beamsim:broken_first"
    shell(f"{BIN}/cbabo run {study} --budget 6 --workers {workers} {target}")
    rows = Study.open(f"sqlite:///{folder}/beam.db", "beam").evaluations
    assert (len(rows.failed), len(rows.complete)) == (3, 3)
    with closing(sqlite3.connect(folder / "beam.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_an_error_that_cannot_be_said_keeps_its_exit_code(folder: Path) -> None:
    shell(f"{BIN}/cbabo status nosuch.yaml 2>/dev/full", code=2)
    shell(f"{BIN}/cbabo status nosuch.yaml 2>&-", code=2)


def test_evaluations_are_excluded_and_included_again(cli: Any, folder: Path) -> None:
    cli("run", "study.yaml", "--budget", 4)
    assert cli("forget", "study.yaml", 2, 3, "--reason", "wrong  mesh").out == "Excluded evaluations 2, 3.\n"
    status = json.loads(cli("status", "study.yaml", "--format", "json").out)
    assert (status["requested"], status["complete"], status["excluded"]) == (4, 2, 2)
    assert status["exclusions"] == [{"id": 2, "reason": "wrong mesh"}, {"id": 3, "reason": "wrong mesh"}]
    shown = cli("status", "study.yaml").out
    assert "excluded; cbabo forget --undo includes them again" in shown
    cli("export", "csv", "study.yaml", "table.csv")
    assert (folder / "table.csv").read_text().splitlines()[2].endswith(",wrong mesh")
    assert cli("forget", "study.yaml", 2, "--undo").out == "Included evaluation 2.\n"
    assert json.loads(cli("status", "study.yaml", "--format", "json").out)["complete"] == 3
    assert "there is no evaluation 99" in cli("forget", "study.yaml", 99, code=2).err
    assert json.loads(cli("run", "study.yaml", "--budget", 4, "--format", "json").out)["requested"] == 4


def test_a_running_study_is_not_changed_from_outside(cli: Any, folder: Path) -> None:
    cli("run", "study.yaml", "--budget", 2)
    study = Study.open(f"sqlite:///{folder}/beam.db", "beam")
    with study._store.locked():
        assert "is being optimised by process" in cli("forget", "study.yaml", 1, code=1).err


# ---- passwords

SECRET = "p4ss-w0rd"
URL = f"postgresql://engineer:{SECRET}@127.0.0.1:1/studies"


@pytest.mark.parametrize(
    "words",
    [
        ("status", f"{URL}::beam"),
        ("status", f"{URL}?sslpassword={SECRET}::beam"),
        ("status", URL),
        ("status", f"{URL}::beam", "--set", "study.seed=1"),
        ("status", f"postgresql://engineer:{SECRET}@host:port/studies::beam"),
        ("status", f"postgresql//engineer:{SECRET}@host/studies::beam"),
        ("status", f"sqlite://engineer:{SECRET}@host/study.db::beam"),
        ("status", f"mysql://engineer:{SECRET}@host/studies::beam"),
        ("status", "study.yaml", "--set", f"study.storage={URL}"),
        ("status", "study.yaml", "--set", f"study.storage=[{URL}]"),
        ("status", "study.yaml", "--set", f"study.storge={URL}"),
        ("run", "study.yaml", "--set", f"study.storage={URL}"),
        ("run", f"{URL}::beam"),
        ("run", f"{URL}::beam", "--evaluator", "beamsim:evaluate"),
        ("ask", f"{URL}::beam"),
        ("tell", f"{URL}::beam", 1, "mass=1"),
        ("forget", f"{URL}::beam", 1),
        ("import", f"{URL}::beam", "study.yaml"),
        ("check", URL),
        ("predict", f"{URL}::beam"),
        ("export", "report", f"{URL}::beam", "x.html"),
        ("storage", "upgrade", URL),
        ("storage", "check", URL),
        ("storage", "check", f"{URL}?password={SECRET}"),
        ("storage", "check", f"postgresql://host/name?passwd={SECRET}"),
    ],
    ids=lambda words: " ".join(map(str, words)).replace(SECRET, "SECRET"),
)
def test_a_password_is_never_printed(cli_raw: Any, folder: Path, words: tuple[Any, ...]) -> None:
    result = cli_raw(*words)
    assert result.code in (1, 2)
    assert result.err.startswith("cbabo: ") or "Usage" in result.err, result
    assert SECRET not in result.out + result.err


def test_the_command_to_resume_shows_no_password(folder: Path) -> None:
    from cbabo.surfaces.cli.options import interrupted

    before = sys.argv
    sys.argv = ["cbabo", "run", f"{URL}::beam", "--set", f"study.storage={URL}"]
    try:
        said = str(interrupted("everything is stored"))
    finally:
        sys.argv = before
    assert SECRET not in said
    assert shlex.split(said.partition("resume by: ")[2])[2] == "postgresql://engineer:***@127.0.0.1:1/studies::beam"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("a postgresql://u:p@h/d b", "a postgresql://u:***@h/d b"),
        ("postgresql://u:p/q@r@h/d", "postgresql://u:***@h/d"),
        ("postgresql://h/d?user=u&password=p&x=1", "postgresql://h/d?user=u&password=***&x=1"),
        ("sqlite:////tmp/a@b:c.db", "sqlite:////tmp/a@b:c.db"),
        ("evaluation 3 failed: mail me@home", "evaluation 3 failed: mail me@home"),
    ],
)
def test_passwords_are_replaced(text: str, hidden: str) -> None:
    assert hide_passwords(text) == hidden


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete a file that is open")
def test_a_run_whose_database_is_deleted_says_so_and_fails(folder: Path) -> None:
    running = subprocess.Popen(
        [BIN / "cbabo", "run", "study.yaml", "--budget", "50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "BEAM_SECONDS": "0.3"},
    )
    deadline = time.monotonic() + 60
    while not (folder / "beam.db").exists() or _complete(folder) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (folder / "beam.db").unlink()
    try:
        out, err = running.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGKILL)
        raise
    assert running.returncode == 1
    assert out == ""
    sentence = err.splitlines()[-1]
    assert "the file was deleted, moved or replaced while it was in use; everything" in sentence
    shell(sentence.partition("bring it back by: ")[2])
    assert _complete(folder) >= 3


def _complete(folder: Path) -> int:
    try:
        return len(Study.open(f"sqlite:///{folder}/beam.db", "beam").evaluations.complete)
    except Exception:
        return 0
