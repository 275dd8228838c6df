"""The main path through the explorer in Firefox."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from browser import ARTEFACTS, node_module
from cbabo import Model


def firefox() -> str:
    path = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
    if path is None or shutil.which("node") is None:
        message = "Firefox or Node.js is missing; scripts/system-packages.sh installs both"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    return str(path)


def test_the_main_path_in_firefox(solved: str, beam_model: Model) -> None:
    path = firefox()
    node_module("puppeteer-core/package.json")
    ARTEFACTS.mkdir(exist_ok=True)
    script = Path(__file__).with_name("firefox_walk.mjs")
    picture = ARTEFACTS / "firefox.png"
    walk = subprocess.run(
        ["node", str(script), path, f"{solved}#at.stress=5&at.frequency=4", str(picture)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert walk.returncode == 0, walk.stderr
    seen = json.loads(walk.stdout)
    assert seen["complaints"] == []
    assert seen["first"]["at"] == [5, 4]
    expected = beam_model.predict_many([{"stress": 5.0, "frequency": 4.0}], fast=True).answer(0)
    assert seen["first"]["mean"] == pytest.approx(expected.objective.mean, abs=1e-6)
    assert seen["dragged"]["at"][0] > 5.2
    assert seen["typed"]["at"][1] == 3
    assert seen["typed"]["mean"] < seen["first"]["mean"]  # A lower frequency may be lighter.
    assert seen["price"].startswith("1 less saves")
    assert seen["cells"] >= 1
    assert seen["pins"] == 1
    assert "whatever the other limits are" in seen["unmet"]
    assert seen["last"]["status"] != "unreachable"
    assert picture.stat().st_size > 10_000
