from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import cbabo.surfaces.cli
from cbabo.study.modelcache import cached_model, keep_model
from cbabo.surfaces.studyfile import StudyFile

BIN = Path(sys.executable).parent

SIMULATOR = """\
import os
import pathlib
import tempfile
import time

def evaluate(point):
    time.sleep(float(os.environ.get("BEAM_SECONDS", "0")))
    width, ribs = point["width"], point["ribs"]
    return {
        "mass": width**2 + 0.3 * ribs,
        "stress": 12.0 / (width**2 + 0.1 * ribs),
        "frequency": 1.5 * width + 0.2 * ribs,
        "elements": 1000.0 * width,
    }

def hanging_later(point):
    # hangs from the fourth call on, if told so
    if "BEAM_HANGS" in os.environ:
        calls = pathlib.Path(__file__).parent / "calls"
        calls.mkdir(exist_ok=True)
        tempfile.mkstemp(dir=calls)
        if len(list(calls.iterdir())) > 3:
            time.sleep(60)
    return evaluate(point)

def chatty(point):
    print("iteration 1 of the solver")
    os.write(1, b"a line from compiled code\\n")
    return evaluate(point)

def broken(point):
    print("the mesh has a hole")
    raise ValueError("no convergence [red]at all[/red]")

def hanging(point):
    time.sleep(60)

number = 42
"""

STUDY = """\
problem:
  name: beam
  variables:
    - {name: width, type: real, low: 1, high: 3, unit: mm}
    - {name: ribs, type: integer, low: 0, high: 4}
  objective: minimize mass [kg]
  constraints:
    - {name: stress, low: 1, high: 9, nominal: 5, unit: MPa}
    - frequency >= [2..6] Hz
evaluator:
  python: beamsim:evaluate
study:
  storage: sqlite:///beam.db
"""


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Command = Callable[..., Result]


def check_sentence(result: Result) -> None:
    """What a user did wrong, or what failed, is said in one sentence and never as a traceback."""
    lines = result.err.splitlines()
    assert lines, "an error without a word"
    assert lines[-1].startswith("cbabo: "), result.err
    assert "cbabo/surfaces/cli/" not in result.err + result.out  # a simulator's own traceback may be there
    assert len(lines[-1]) < 400
    if result.code == 2:
        assert len(lines) == 1, result.err
        assert result.out == ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, which is also the current one: a study file and its simulator."""
    (tmp_path / "beamsim.py").write_text(SIMULATOR)
    (tmp_path / "study.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def learned_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the study file after 35 evaluations, with small settings, and its model; copied for every test."""
    place = tmp_path_factory.mktemp("learned-beam")
    (place / "study.yaml").write_text(STUDY)
    names: dict[str, Any] = {}
    exec(SIMULATOR, names)
    small = {"initial_evaluations": 30, "library": 16, "recommend_candidates": 2000}
    changes = [f"study.settings.{name}={value}" for name, value in small.items()]
    study = StudyFile.read(place / "study.yaml", changes).create()
    study.run(names["evaluate"], budget=35, in_process=True)
    model = cached_model(study)
    model.predict()
    keep_model(study, model)
    return place / "beam.db"


@pytest.fixture
def learned(learned_database: Path, folder: Path) -> str:
    """The address of a study in the user's folder that has learned a little."""
    for file in learned_database.parent.glob("beam.db*"):
        shutil.copy(file, folder / file.name)
    return f"sqlite:///{folder}/beam.db::beam"


@pytest.fixture
def cli_raw(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Call the command line in this process."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*words: Any) -> Result:
        monkeypatch.setattr(sys, "argv", ["cbabo", *map(str, words)])
        with pytest.raises(SystemExit) as ending:
            cbabo.surfaces.cli.main()
        return Result(int(ending.value.code or 0), *capsys.readouterr())

    yield call
    sys.modules.pop("beamsim", None)


@pytest.fixture
def cli(cli_raw: Command) -> Command:
    """Call the command line in this process; its exit code and errors must be as they should be."""

    def call(*words: Any, code: int = 0) -> Result:
        result = cli_raw(*words)
        assert result.code == code, result
        if code:
            check_sentence(result)
        return result

    return call


@pytest.fixture
def process(folder: Path) -> Command:
    """Call the command line as a process of its own."""

    def call(*words: Any, code: int = 0, **environment: str) -> Result:
        done = subprocess.run(
            [BIN / "cbabo", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
            timeout=60,
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        assert result.code == code, result
        return result

    return call
