"""The command line as processes: exit codes, signals, terminals, pipes, and what is imported."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cbabo import Study
from cbabo.errors import CbaboError

BIN = Path(sys.executable).parent


def frame(folder: Path) -> pd.DataFrame:
    try:
        return Study.open(f"sqlite:///{folder}/beam.db", "beam").evaluations.to_frame()
    except CbaboError:
        return pd.DataFrame({"state": []})


def test_exit_codes_and_what_goes_where(process: Any, folder: Path) -> None:
    words = ("run", "study.yaml", "--budget", 2, "--set")
    done = process(*words, "evaluator.python=beamsim:chatty", "--format", "json")
    assert json.loads(done.out)["complete"] == 2, "what the simulator prints stays off standard output"
    assert done.err == "iteration 1 of the solver\na line from compiled code\n" * 2
    failed = process(*words, "evaluator.python=beamsim:broken", "--budget", 9, "--stop-after-failures", 1, code=1)
    assert failed.err.splitlines()[-1].startswith("cbabo: the last 1 evaluations failed in a row")
    assert failed.out == ""
    wrong = process("status", "nosuch.yaml", code=2)
    assert wrong.err == "cbabo: nosuch.yaml: the file cannot be read (No such file or directory); check the path\n"
    assert wrong.out == ""


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_cleanly_and_the_run_can_be_resumed(cli: Any, folder: Path, workers: int) -> None:
    study = ["study.yaml", "--set", "evaluator.python=beamsim:hanging_later"]
    words = ["run", *study, "--budget", "7", "--workers", str(workers)]
    running = subprocess.Popen(
        [BIN / "cbabo", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "BEAM_HANGS": "yes"},
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (set(frame(folder)["state"]) == {"complete", "running"} and len(list(folder.glob("calls/*"))) > 3):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)

    # Meanwhile: readers are welcome, a second optimiser is not.
    seen = json.loads(cli("status", *study, "--format", "json").out)
    assert seen["optimiser"].startswith(f"process {running.pid} on ")
    assert seen["running"] >= 1
    for verb in ("run", "ask"):
        assert f"is being optimised by process {running.pid}" in cli(verb, *study, code=1).err

    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to everything in the foreground
    out, err = running.communicate(timeout=20)
    assert running.returncode == 130, err
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("cbabo: stopped; everything told so far is stored, resume by: cbabo run study.yaml")
    assert "Traceback" not in err
    before = frame(folder)
    assert len(before) < 7
    assert seen["complete"] <= (before["state"] == "complete").sum()

    command = shlex.split(last.partition("resume by: ")[2])
    assert command == ["cbabo", *words]
    cli(*command[1:])
    after = frame(folder)
    assert list(after["id"]) == list(range(1, 8))
    assert set(after["state"]) == {"complete"}
    kept = before["state"] == "complete"
    pd.testing.assert_frame_equal(after[: len(before)][kept], before[kept])


SOMETIMES = """
def sometimes(point):
    print("solver [bold]says[/bold]")
    if point["ribs"] == 2:
        raise ValueError("two [red]ribs[/red]")
    return evaluate(point)
"""


def test_progress_in_a_terminal(folder: Path) -> None:
    """Evaluations done, failures, best objective at the nominal limits, time per evaluation, time left."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "110", "BEAM_SECONDS": "0.1"}
    with (folder / "beamsim.py").open("a") as file:
        file.write(SOMETIMES)
    words = [BIN / "cbabo", "run", "study.yaml", "--budget", "8", "--set", "evaluator.python=beamsim:sometimes"]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as running:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other side has closed it
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert running.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    failed = int((frame(folder)["state"] == "failed").sum())
    assert failed >= 1
    assert f"8/8 ━━━━━━━━━━━━ {failed} failed, best mass " in text
    assert re.search(r"[3-7]/8 ━.* \d failed, best mass [\d.]+ kg, 0\.\d+ s each, 0:0\d left", text)
    assert re.search(r"cbabo: evaluation \d+ failed: ValueError: two \[red\]ribs\[/red\]\r?\n", text)
    assert "solver [bold]says[/bold]" in text
    assert "best at the nominal limits: evaluation" in text


def test_a_closed_pipe_is_no_reason_for_a_traceback(cli: Any) -> None:
    cli("ask", "study.yaml", "-n", 30)
    command = f"{shlex.quote(str(BIN / 'cbabo'))} status study.yaml --format json | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "{\n"
    assert done.stderr == ""


def test_a_terminal_that_cannot_show_a_unit(cli: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (folder / "study.yaml").read_text().replace("unit: mm", "unit: µm")
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    cli("check", "study.yaml")
    terminal.flush()
    assert "?m" in terminal.buffer.getvalue().decode()


def test_usage_errors_exit_with_2(cli_raw: Any) -> None:
    for words in (["run", "study.yaml", "--bugdet", "3"], ["bogus"], ["run"], ["run", "study.yaml", "--budget", "-1"]):
        result = cli_raw(*words)
        assert result.code == 2
        assert result.out == ""
        assert "Traceback" not in result.err


BLOCKED = """\
import contextlib, io, sys

HEAVY = ("torch", "botorch", "gpytorch", "scipy.stats")

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name in HEAVY:
            raise ImportError(f"{name} was imported")

sys.meta_path.insert(0, Blocker())
from cbabo.surfaces.cli import main

for line in sys.stdin.read().splitlines():
    sys.argv = ["cbabo", *line.split()]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as ending:
            assert not ending.code, (line, ending.code)
assert not [name for name in HEAVY if name in sys.modules]
print("light")
"""


def test_what_only_reads_starts_without_torch(cli: Any) -> None:
    cli("run", "study.yaml", "--budget", 2)
    commands = [
        "--help",
        "--version",
        "run --help",
        "check study.yaml --try",
        "check --schema",
        "status study.yaml",
        "status study.yaml --format json",
        "tell --help",
        "export csv study.yaml all.csv",
        "init new/study.yaml",
    ]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], input="\n".join(commands), capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("light\n", "")
