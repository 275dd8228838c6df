"""The documentation site: it is built without a warning, its reference is complete, and its examples run.

Where Sphinx is missing the site is not built and its test is skipped, except where CI=true: there it fails.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import cbabo
from cbabo import Problem, Settings
from cbabo.evaluators.spec import EvaluatorSpec
from cbabo.surfaces.studyfile import json_schema

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HOWTO = sorted(path.stem for path in (DOCS / "howto").glob("*.md"))
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: title=\"[^\"]+\")?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

sys.path.append(str(ROOT / "scripts"))
import build_site  # noqa: E402
import site_pages  # noqa: E402


def require_sphinx() -> None:
    missing = [name for name in ("sphinx", "myst_parser", "pydata_sphinx_theme") if not importlib.util.find_spec(name)]
    if missing:
        message = f"{', '.join(missing)} is not installed; pip install 'cbabo[docs]'"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)


def blocks(page: str, kind: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [block["body"] for block in BLOCK.finditer(text) if block["kind"] == kind]


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    require_sphinx()
    before = {path: path.stat().st_mtime_ns for path in DOCS.rglob("*")}
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "old.html").write_text("what an earlier build has left")
    command = [sys.executable, str(ROOT / "scripts" / "build_site.py"), "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "html" / "index.html").as_uri() in done.stdout
    assert {path: path.stat().st_mtime_ns for path in DOCS.rglob("*")} == before
    for name in ("index", "start", "howto/trust", "reference/rest", "benchmarks/index", "changelog"):
        assert (tmp_path / "html" / f"{name}.html").is_file()
    assert not (tmp_path / "html" / "old.html").exists()
    page = (tmp_path / "html" / "benchmarks" / "paper.html").read_text(encoding="utf-8")
    assert 'src="../_images/distributions-paper.png"' in page
    models = (tmp_path / "html" / "reference" / "models.html").read_text(encoding="utf-8")
    assert 'id="cbabo.Model.predict_many"' in models
    outside = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//')
    for html in (tmp_path / "html").rglob("*.html"):
        assert not outside.search(html.read_text(encoding="utf-8")), f"{html} loads something from another site"


@pytest.mark.parametrize("link", ["[a](nowhere.md)", "[a](other.md#nowhere)", "[a](#nowhere)", "![a](nowhere.png)"])
def test_a_broken_link_is_an_error(tmp_path: Path, link: str) -> None:
    require_sphinx()
    (tmp_path / "index.md").write_text(f"# Page\n\n{link} [b](other.md#there)\n\n```{{toctree}}\nother\n```\n")
    (tmp_path / "other.md").write_text("# Other\n\n## There\n\nText.\n")
    assert build_site.build(tmp_path, tmp_path / "out", builder="dummy") != 0
    (tmp_path / "index.md").write_text((tmp_path / "index.md").read_text().replace(link, ""))
    assert build_site.build(tmp_path, tmp_path / "out", builder="dummy") == 0


def test_every_command_and_option_is_in_the_reference() -> None:
    page = site_pages.command_line()
    found = list(site_pages.commands())
    assert {("run",), ("storage", "check"), ("export", "explorer"), ("bench", "table")} <= set(found)
    listed = re.findall(r"^  (\w[\w-]*)  ", site_pages.help_of().partition("Commands:")[2], re.MULTILINE)
    assert listed == [words[0] for words in found if len(words) == 1]
    for words in found:
        assert f"\n## cbabo {' '.join(words)}\n" in page
        assert f"Usage: cbabo {' '.join(words)} " in page
    assert "--stop-after-failures" in page


def test_the_help_is_that_of_the_command_line() -> None:
    command = [sys.executable, "-m", "cbabo", "ask", "--help"]
    width = {"COLUMNS": site_pages.COLUMNS, "TERMINAL_WIDTH": site_pages.COLUMNS}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **width})
    assert done.stdout.strip().replace("python -m cbabo", "cbabo") == site_pages.help_of("ask")


def test_every_key_of_a_study_file_is_in_the_reference_with_its_meaning() -> None:
    page = site_pages.study_file()
    schema = json_schema()
    parts = {**schema["$defs"], "": schema}
    assert set(site_pages.SECTIONS) == set(schema["$defs"]), "name the new part in SECTIONS of scripts/site_pages.py"
    for name, part in parts.items():
        heading = f"\n## {site_pages.SECTIONS[name] if name else 'The file'}\n"
        assert heading in page
        section = page.partition(heading)[2].partition("\n## ")[0]
        for key, value in part["properties"].items():
            row = next(line for line in section.splitlines() if line.startswith(f"| `{key}` |"))
            assert value.get("description"), f"{name}.{key} has no description"
            assert len(row.replace("\\|", "").split("|")[4].strip()) >= 10, row


def test_text_of_the_code_is_shown_as_it_is() -> None:
    assert "mass: 7.85e-6\\*width\\*height" in site_pages.study_file()
    assert site_pages.anchor("`settings` of the paper's method") == "settings-of-the-papers-method"


def test_every_route_is_in_the_reference() -> None:
    page = site_pages.rest()
    for route in ("GET /api/status", "POST /api/predict-many", "POST /api/evaluations/{id}", "GET /api/jobs/{id}"):
        assert f"\n## {route}\n" in page
    headings = {site_pages.anchor(line.lstrip("# ")) for line in page.splitlines() if line.startswith("#")}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


def test_every_public_class_is_in_the_reference() -> None:
    pages = "".join(site_pages.GENERATED[f"reference/{name}.md"]() for name in site_pages.PYTHON)
    for name in cbabo.__all__:
        assert f".. autoclass:: cbabo.{name}\n" in pages


def test_links_to_files_of_the_root_folder_lead_to_their_pages() -> None:
    text = "[a](../../CHANGELOG.md) [b](../guide.md#4-run) [c](https://x.y/z.md) [d](#e) [f](../../README.md)"
    assert (
        build_site.adapted(text, "docs/howto/x.md", "howto/x.md")
        == "[a](../changelog.md) [b](../guide.md#4-run) [c](https://x.y/z.md) [d](#e) [f](../index.md)"
    )
    assert build_site.adapted("[a](docs/guide.md)", "CHANGELOG.md", "changelog.md") == "[a](guide.md)"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_docs_builds_the_site() -> None:
    done = subprocess.run(["make", "-n", "docs"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "scripts/build_site.py" in done.stdout


def commands_of(page: str) -> Iterator[str]:
    for kind in ("console", "sh"):
        for body in blocks(page, kind):
            for line in body.splitlines():
                yield from re.findall(r"(?<![\w/.-])cbabo [^;&|]+", line.removeprefix("$ ").partition("  # ")[0])
    yield from re.findall(r"`(cbabo [^`]+)`", (ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", ["README.md", *(page.relative_to(ROOT).as_posix() for page in sorted(DOCS.rglob("*.md")))]
)
def test_commands_that_pages_name_exist_with_their_options(path: str) -> None:
    known = set(site_pages.commands())
    for command in commands_of(path):
        words = command.split()[1:]
        if not words or words[0].isupper() or words[0].startswith("-") or (words[0],) not in known:
            assert not words or not re.fullmatch(r"[a-z-]+", words[0]), f"{path}: there is no {command!r}"
            continue
        name = tuple(words[:2]) if tuple(words[:2]) in known else (words[0],)
        options = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", re.sub(r'"[^"]*"', "", command)))
        stated = set(re.findall(r"--[a-z][a-z-]*", site_pages.help_of(*name)))
        assert options <= stated, f"{path}: {command!r} has options that do not exist: {options - stated}"


@pytest.fixture(scope="module")
def first_study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What the page of the first ten minutes has made, with a smaller library, with which models are made sooner."""
    folder = tmp_path_factory.mktemp("start")
    names: dict[str, Any] = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(Settings, "default", lambda: Settings(library=16))
        for body in blocks("docs/start.md", "python"):
            exec(body, names)
        yield folder, names


def test_the_first_ten_minutes_do_what_they_say(first_study: tuple[Path, dict[str, Any]]) -> None:
    folder, names = first_study
    assert (folder / "beam.db").is_file()
    assert names["answer"].status == "verified"
    assert names["price"].value >= 0.0
    assert set(names["proposal"].thresholds) == {"stress", "deflection"}


@pytest.mark.parametrize("name", HOWTO)
def test_examples_of_how_to_pages_run(name: str, first_study: tuple[Path, dict[str, Any]]) -> None:
    names = dict(first_study[1])
    for body in blocks(f"docs/howto/{name}.md", "python"):
        exec(body, names)
    for body in blocks(f"docs/howto/{name}.md", "yaml"):
        for section, content in yaml.safe_load(body).items():
            assert {"problem": Problem.from_dict, "evaluator": EvaluatorSpec.model_validate}[section](content)
