"""Use an installed package as a stranger would: its files are there, a study runs, and the command line reads it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

import cbabo

FILES = (
    "py.typed",
    "surfaces/page/index.html",
    "surfaces/page/style.css",
    "surfaces/page/main.js",
    "surfaces/notebook/widget.js",
    "storage/migrations/env.py",
    "storage/migrations/versions/r0001_studies.py",
)
FOLDERS = {"bench/truths": ".csv", "bench/printed": ".csv", "surfaces/page": ".js"}


def evaluate(point: dict[str, float]) -> dict[str, float]:
    """A simulator of nothing in particular."""
    return {"f": (point["x"] - 0.2) ** 2 + point["y"], "c": 1.0 - point["x"] * point["y"]}


def main() -> None:
    """Fail with the first thing that is missing."""
    root = resources.files("cbabo")
    if Path(str(root)).is_relative_to(Path(__file__).resolve().parent.parent / "src"):
        sys.exit(f"expected the installed package, got {root}; run this with the Python of the clean environment")
    for name in FILES:
        assert root.joinpath(name).is_file(), name
    for folder, ending in FOLDERS.items():
        assert [entry for entry in root.joinpath(folder).iterdir() if entry.name.endswith(ending)], folder

    variables = [cbabo.Real("x", 0.0, 1.0), cbabo.Real("y", 0.0, 1.0)]
    problem = cbabo.Problem("smoke", variables, cbabo.Objective("f"), ["c <= [0.2..1]"])
    with tempfile.TemporaryDirectory() as place:
        storage = f"sqlite:///{Path(place).as_posix()}/study.db"
        study = cbabo.Study.create(problem, storage, seed=0)
        study.run(evaluate, budget=25)
        answer = study.model().predict({"c": 0.8})
        assert abs(answer.objective.mean - evaluate(answer.point)["f"]) < 0.1, answer
        page = Path(place) / "page.html"
        command = [Path(sys.executable).with_name("cbabo")]
        for words in (
            ["--version"],
            ["status", f"{storage}::smoke"],
            ["export", "explorer", f"{storage}::smoke", page],
        ):
            subprocess.run([*command, *map(str, words)], check=True)
        assert page.stat().st_size > 10_000
    sys.stdout.write(f"cbabo at {root} works\n")


if __name__ == "__main__":
    main()
