"""docs/guide.md does what it says: its files are written, its commands run, its output compared.

A fenced block with title="name" is a file. In a console block, lines after "$ " are commands and the others what they
print: the lines must appear in this order, "..." stands for anything, and spaces and rules count for nothing. What only calls
cbabo is called in this process, which has imported everything already; all else is run by a shell. The study file gets one
more setting than in the guide: a smaller library, with which models are made sooner. A text block is only shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cbabo.surfaces.cli

GUIDE = Path(__file__).parent.parent / "docs" / "guide.md"
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(body: str) -> Iterator[tuple[str, list[str]]]:
    for part in body.removeprefix("$ ").split("\n$ "):
        command, *shown = part.splitlines()
        yield command, shown


def squeezed(line: str) -> str:
    return " ".join(line.replace("─", " ").split())


def fits(line: str, shown: str) -> bool:
    return re.fullmatch(".*".join(re.escape(squeezed(part)) for part in shown.split("...")), squeezed(line)) is not None


def called(words: list[str], patch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Call the command line in this process; return its exit code and what it prints."""
    printed = io.StringIO()
    patch.setattr(sys, "argv", words)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), pytest.raises(SystemExit) as ending:
        cbabo.surfaces.cli.main()
    return int(ending.value.code or 0), printed.getvalue()


def in_a_shell(command: str) -> tuple[int, str]:
    done = subprocess.run(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout


def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "path", list(sys.path))
    ran = {"called": 0, "in a shell": 0}
    for block in BLOCK.finditer(GUIDE.read_text(encoding="utf-8")):
        if block["title"]:
            more = "  settings: {library: 16}\n" if block["title"] == "study.yaml" else ""  # in its last section
            (tmp_path / block["title"]).write_text(block["body"] + more, encoding="utf-8")
            continue
        if block["kind"] == "text":  # What another study prints.
            continue
        assert block["kind"] == "console", f"what is this block for: {block[0]}"
        for command, shown in commands(block["body"]):
            if command.startswith("cbabo ") and not set(command) & set(";|&<>$"):
                code, came = called(shlex.split(command), monkeypatch)
                ran["called"] += 1
            else:
                code, came = in_a_shell(command)
                ran["in a shell"] += 1
            assert code == 0, f"{command}\n{came}"
            printed = iter(came.splitlines())
            for line in shown:
                if line.strip() != "...":
                    assert any(fits(one, line) for one in printed), f"{command}\n{line}\n\n{came}"
    assert ran["called"] >= 15
    assert ran["in a shell"] == 3
