"""docs/guide.md does what it says: its files are written, its commands run, its output compared.

A fenced block with title="name" is a file. In a console block, lines after "$ " are commands and the others what they
print: the lines must appear in this order, "..." stands for anything, and spaces and rules count for nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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


def test_the_guide_does_what_it_says(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = 0
    for block in BLOCK.finditer(GUIDE.read_text(encoding="utf-8")):
        if block["title"]:
            (tmp_path / block["title"]).write_text(block["body"], encoding="utf-8")
            continue
        assert block["kind"] == "console", f"what is this block for: {block[0]}"
        for command, shown in commands(block["body"]):
            done = subprocess.run(
                command,
                shell=True,
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=120,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            printed = iter(done.stdout.splitlines())
            for line in shown:
                if line.strip() != "...":
                    assert any(fits(came, line) for came in printed), f"{command}\n{line}\n\n{done.stdout}"
            ran += 1
    assert ran >= 10
