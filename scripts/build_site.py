"""Build the documentation site: python scripts/build_site.py [FOLDER]

The pages are collected in FOLDER/source: the files of docs/, the files of the root folder that the site shows too, and the
generated pages of `site_pages.py`. Sphinx then writes the site to FOLDER/html. Every warning is an error, and a link to a page or
a heading that does not exist is a warning. FOLDER is build/site unless stated. Nothing is written to docs/.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

from site_pages import GENERATED

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
COPIED = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
}
"""Files of the root folder, and the pages that links to them lead to. README.md is not copied: index.md stands for it."""
CONTENTS = {
    "index.md": [
        "Start here <start>",
        "How-to <howto/index>",
        "Reference <reference/index>",
        "Explanation <explanation/index>",
        "Benchmarks <benchmarks/index>",
        "Project <project>",
    ],
    "start.md": ["A simulator started by a command <guide>"],
    "howto/index.md": [
        "limits",
        "budget",
        "noise",
        "failures",
        "old-runs",
        "known",
        "/clusters",
        "Share an explorer </explorer>",
        "trust",
    ],
    "reference/index.md": ["problems", "studies", "models", "command-line", "study-file", "rest"],
    "explanation/index.md": ["/method", "pareto", "calibration", "/limitations"],
    "benchmarks/index.md": [
        "weaknesses",
        "defaults",
        "win-rates",
        "noise",
        "decisions",
        "speed",
        "paper",
        "campaigns",
    ],
    "project.md": ["changelog", "contributing", "code-of-conduct", "security", "architecture", "releasing"],
}
"""The pages below each page, in the order of the navigation."""
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
TITLED = re.compile(r'^```(\w+) title="([^"]+)"$', re.MULTILINE)


def main() -> int:
    """Build the site and return the exit code of Sphinx."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "site"
    for part in ("source", "html", "doctrees"):  # A second build would not repeat the warnings of unchanged pages.
        shutil.rmtree(folder / part, ignore_errors=True)
    collect(folder / "source")
    code = build(folder / "source", folder / "html")
    if code == 0:
        sys.stdout.write(f"Built the documentation: {(folder / 'html' / 'index.html').as_uri()}\n")
    return code


def build(source: Path, target: Path, builder: str = "html") -> int:
    """Run Sphinx on a folder of pages and return its exit code; every warning is an error."""
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--builder", builder]
    command += ["--conf-dir", str(DOCS), "--doctree-dir", str(target.parent / "doctrees")]
    return subprocess.run([*command, str(source), str(target)], check=False).returncode


def collect(folder: Path) -> None:
    """Write all pages to a folder."""
    made: dict[str, bytes] = {}
    for path in sorted(DOCS.rglob("*")):
        name = path.relative_to(DOCS).as_posix()
        if path.suffix == ".md":
            made[name] = adapted(path.read_text(encoding="utf-8"), f"docs/{name}", name).encode()
        elif path.suffix in (".png", ".svg", ".json"):
            made[name] = path.read_bytes()
    for source, name in COPIED.items():
        if source != "README.md":
            made[name] = adapted((ROOT / source).read_text(encoding="utf-8"), source, name).encode()
    for name, page in GENERATED.items():
        made[name] = page().encode()
    for name, entries in CONTENTS.items():
        made[name] += "\n".join(["", "```{toctree}", ":hidden:", "", *entries, "```", ""]).encode()
    for name, content in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def adapted(text: str, source: str, page: str) -> str:
    """Return a file of the repository as a page: links lead to pages, and titles of code blocks become captions."""

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        found = COPIED.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(found, posixpath.dirname(page) or '.')}{link[2] or ''})"

    return TITLED.sub(r"```{code-block} \1\n:caption: \2\n", LINK.sub(moved, text))


if __name__ == "__main__":
    sys.exit(main())
