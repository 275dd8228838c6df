"""What reaches a terminal: escape sequences and their like are shown, never obeyed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cbabo.surfaces.cli.terminal import escaped, escaping, unescaped
from surfaces.cli.conftest import BIN

EVIL = "\x1b[2J\x1b]0;title\x07red\u202eder\ud800\x9b31m"
SHOWN = r"\x1b[2J\x1b]0;title\x07red\u202eder\ud800\x9b31m"
FAILING = f"""
def escaping(point):
    print({EVIL.replace(chr(0xD800), "")!r})
    raise ValueError({EVIL!r})
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text\n\ttab", "plain text\n\ttab"),
        ("µm ≤ „schief“ 10\u00a0mm \u202f", "µm ≤ „schief“ 10\u00a0mm \u202f"),
        (EVIL, SHOWN),
        ("a\rb\x08\x7f\x85", r"a\rb\x08\x7f\x85"),
        ("\u2066\u200f\ufeff", r"\u2066\u200f\ufeff"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        (r"already \x1b[31m", r"already \x1b[31m"),
    ],
)
def test_texts_are_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected
    assert escaped(expected) == expected


def test_streams_escape_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    with escaping():
        print(EVIL)
        print(EVIL, file=sys.stderr)
        assert unescaped(sys.stdout) is before
        with pytest.raises(TypeError):
            sys.stdout.write(b"")  # type: ignore[arg-type]
    assert sys.stdout is before
    assert capsys.readouterr() == (f"{SHOWN}\n", f"{SHOWN}\n")


@pytest.fixture
def failing(folder: Path) -> Path:
    with (folder / "beamsim.py").open("a") as file:
        file.write(FAILING)
    text = (folder / "study.yaml").read_text()
    (folder / "study.yaml").write_text(text.replace("beamsim:evaluate", "beamsim:escaping"))
    return folder


def check_shown(*texts: str) -> None:
    assert any(r"\x1b]0;title\x07red" in text for text in texts), texts
    for text in texts:
        for c in "\x1b\x07\x9b\u202e\ud800":
            assert c not in text, text


def test_failures_are_shown_escaped_by_every_command(cli: Any, cli_raw: Any, failing: Path) -> None:
    run = cli_raw("run", "study.yaml", "--budget", 3)
    check_shown(run.out, run.err)
    status = cli("status", "study.yaml", "--logs")
    check_shown(status.out, status.err)
    tried = cli_raw("check", "study.yaml", "--try")
    check_shown(tried.err)
    told = cli("ask", "study.yaml", "--format", "json")
    told = cli("tell", "study.yaml", json.loads(told.out)[0]["id"], "--failed", EVIL.replace("\ud800", ""))
    check_shown(told.out)


def test_errors_are_shown_escaped(cli_raw: Any, folder: Path) -> None:
    for words in (
        ["check", f"{EVIL}.yaml"],
        ["run", "study.yaml", f"--{EVIL}"],
        [EVIL],
        ["check", "study.yaml", "--set", f"problem.{EVIL}=1"],
    ):
        result = cli_raw(*[word.replace("\ud800", "") for word in words])
        assert result.code == 2
        check_shown(result.err)


def test_data_for_machines_are_whole(cli: Any, cli_raw: Any, failing: Path) -> None:
    cli_raw("run", "study.yaml", "--budget", 1)
    stored = json.loads(cli("status", "study.yaml", "--format", "json").out)["failures"][0]["failure"]
    assert "\x1b[2J" in stored
    cli("export", "csv", "study.yaml", "all.csv")
    assert "\x1b[2J" in (failing / "all.csv").read_text(encoding="utf-8")


def test_a_real_terminal_gets_no_escape_sequence_of_a_simulator(cli_raw: Any, failing: Path) -> None:
    main, other = pty.openpty()
    command = [BIN / "cbabo", "status", "study.yaml"]
    cli_raw("run", "study.yaml", "--budget", 1)
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    subprocess.run(command, check=True, stdout=other, stderr=other, stdin=subprocess.DEVNULL, env=environment)
    os.close(other)
    parts = []
    try:
        while part := os.read(main, 65536):
            parts.append(part)
    except OSError:  # The other end is closed.
        pass
    os.close(main)
    check_shown(b"".join(parts).decode())
