"""The rooms import downwards only, and reading a study never imports the heavy parts."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "cbabo"
ROOMS = [
    ["errors", "notation", "seeding", "settings"],
    ["space", "constraints", "problem", "evaluations", "focus"],
    ["problems"],
    ["storage"],
    ["evaluators"],
    ["threads", "quasirandom", "designs", "checksum", "surrogate", "pcm", "limits", "acquisition"],
    [
        "training",
        "selection",
        "foresight",
        "learner",
        "hazard",
        "belief",
        "slsqp",
        "polish",
        "lattice",
        "mixed",
        "batch",
        "step",
        "qp",
        "sight",
        "library",
        "distil",
    ],
    ["answers", "recommend", "modelfile", "model", "correct", "refine", "tradeoff", "quality"],
    ["importing", "trials", "runner", "study"],
    ["bench"],
    ["studyfile", "records", "document", "page", "report", "web"],
    ["cli"],
]
"""From the ground up; within a room, a module may import those before it (packages: any of their own)."""
ORDER = {name: (level, place) for level, room in enumerate(ROOMS) for place, name in enumerate(room)}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {name.split(".")[1] for name in names if name.startswith("cbabo.")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_the_rooms(path: Path) -> None:
    home = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert home in ORDER, f"{home} belongs to no room: add it to ROOMS and to docs/architecture.md"
    for name in imported(path) & set(ORDER) - {home}:
        assert ORDER[name] < ORDER[home], f"{home} may not import {name}"


@pytest.mark.parametrize("name", ["utils", "core", "base", "helpers", "common", "misc"])
def test_there_is_no_junk_room(name: str) -> None:
    assert not [path for path in SOURCE.rglob("*") if path.stem in (name, f"{name}s")]


def test_every_module_stands_in_the_architecture() -> None:
    text = (SOURCE.parent.parent / "docs" / "architecture.md").read_text()
    for room in ROOMS:
        for name in room:
            assert f"`{name}`" in text, f"docs/architecture.md does not say what {name} is for"


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


@pytest.mark.parametrize("code", ["import cbabo", "import cbabo.cli", "import cbabo.problems, cbabo.answers", READING])
def test_reading_imports_nothing_heavy(code: str) -> None:
    check = f"import sys\n{code}\nsys.exit(str(set(sys.modules) & {{'torch', 'botorch', 'gpytorch'}} or '') or 0)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_the_public_names_are_few_and_there() -> None:
    import cbabo

    assert len(cbabo.__all__) < 12
    for name in dir(cbabo):
        assert getattr(cbabo, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Stduy'"):
        cbabo.Stduy  # noqa: B018
