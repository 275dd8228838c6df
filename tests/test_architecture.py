"""Reading a study never imports the heavy parts; import-linter (`make lint`) holds the order of the folders."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "cbabo"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("name", ["utils", "core", "base", "helpers", "common", "misc"])
def test_there_is_no_junk_room(name: str) -> None:
    assert not [path for path in SOURCE.rglob("*") if path.stem in (name, f"{name}s")]


def test_the_library_does_not_print() -> None:
    for path in MODULES:
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert not any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls), path


READING = """
from cbabo import Objective, Problem, Real, Settings, Study
problem = Problem("p", [Real("x", 0, 1)], Objective("f"), ["c <= [0..1]"])
study = Study.create(problem, "sqlite://", settings=Settings.paper())
study.add(__import__("pandas").DataFrame({"x": [0.5], "f": [1.0], "c": [0.2]}))
assert len(study.evaluations.to_frame()) == 1
assert study.evaluations.best({"c": 0.5}) is not None
"""


@pytest.mark.parametrize(
    "code", ["import cbabo", "import cbabo.surfaces.cli", "import cbabo.problems, cbabo.answering.answers", READING]
)
def test_reading_imports_nothing_heavy(code: str) -> None:
    check = f"import sys\n{code}\nsys.exit(str(set(sys.modules) & {{'torch', 'botorch', 'gpytorch'}} or '') or 0)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_the_public_names_are_few_and_there() -> None:
    import cbabo

    assert len(cbabo.__all__) <= 16
    assert {"Answer", "Recommendation", "EvaluationError"} <= set(cbabo.__all__)
    assert cbabo.__version__ == metadata.version("cbabo")
    for name in dir(cbabo):
        assert getattr(cbabo, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Stduy'"):
        cbabo.Stduy  # noqa: B018


def test_the_package_can_be_run_as_a_module() -> None:
    command = [sys.executable, "-m", "cbabo", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{metadata.version('cbabo')}\n", "")
