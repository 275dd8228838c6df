"""How long commands take that ask a finished study: predict, recommend, export explorer and serve, the first time and again.

The first call fits the model (and solves thresholds where fast answers are needed) and keeps it beside the study; the second one
reads it. The time to import torch, which every one of these commands pays, is printed beside them as the reference.

    python benchmarks/startup.py            # car, 200 evaluations
    python benchmarks/startup.py --smoke    # a small study, to see that it works
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from cbabo import Study, problems


def main() -> None:
    """Make a study, and time the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", default="car")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--smoke", action="store_true", help="a small study")
    stated = parser.parse_args()
    name, budget = ("three_truss", 40) if stated.smoke else (stated.problem, stated.budget)
    shipped = problems.get(name)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/study.db"
        Study.create(shipped.problem, url, seed=0).run(shipped.evaluate, budget=budget)
        study = f"{url}::{shipped.problem.name}"
        reference = min(_seconds([sys.executable, "-c", "import torch"]) for _ in range(3))
        print(f"{name}, {budget} evaluations; importing torch takes {reference:.2f} s")
        print(f"{'command':20} {'first s':>8} {'again s':>8} {'again / import':>15}")
        limit = shipped.problem.box.names[0]
        commands = {
            "predict": ["predict", study],
            "recommend": ["recommend", study, "--loosen", limit],
            "export explorer": ["export", "explorer", study, f"{folder}/page.html"],
        }
        for title, words in commands.items():
            first, *again = [_seconds([sys.executable, "-c", _MAIN, *words]) for _ in range(4)]
            _row(title, first, min(again), reference)
        served = [_served(study, Path(folder)) for _ in range(3)]
        _row("serve", served[0], min(served[1:]), reference)


_MAIN = (
    "import sys\n"
    "try:\n    from cbabo.surfaces.cli import main\n"
    "except ImportError:\n    from cbabo.cli import main\n"  # The layout of earlier versions, to compare with them.
    "sys.argv[0] = 'cbabo'\nmain()"
)


def _row(title: str, first: float, again: float, reference: float) -> None:
    print(f"{title:20} {first:8.2f} {again:8.2f} {again / reference:15.1f}", flush=True)


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _served(study: str, folder: Path) -> float:
    """Return the seconds until a server that has just been started answers with its document."""
    began = time.perf_counter()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", _MAIN, "serve", study, "--port", "8765"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        while time.perf_counter() - began < 120:
            try:
                with urlopen("http://127.0.0.1:8765/api/document", timeout=30) as answer:
                    assert "map" in json.load(answer)
                    return time.perf_counter() - began
            except (URLError, ConnectionError):
                if process.poll() is not None:
                    raise RuntimeError(re.sub(r"\s+", " ", process.communicate()[0])) from None
                time.sleep(0.02)
        raise RuntimeError("the server did not answer within two minutes")
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
