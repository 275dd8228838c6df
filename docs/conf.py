"""Settings of Sphinx for the documentation site; `make docs` builds it, and scripts/build_site.py makes the pages."""

from __future__ import annotations

from importlib import metadata
from typing import Any

project = "cbabo"
author = "the developers of cbabo"
version = release = metadata.version("cbabo")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
nitpicky = False

# Pages are Markdown as GitHub shows it. Headings are link targets under the names that GitHub gives them.
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4

# Docstrings mark code by single backquotes.
default_role = "code"
smartquotes = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "cbabo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def setup(app: Any) -> None:
    """Let Sphinx read the examples of docstrings, and leave out constructors that are not public."""
    app.connect("autodoc-process-docstring", _show_examples)
    app.connect("autodoc-process-signature", _hide_constructors)


def _show_examples(_app: Any, _kind: str, _name: str, _what: Any, _options: Any, lines: list[str]) -> None:
    """Give the indented section "Examples:" at the end of a docstring a heading of its own."""
    if "Examples:" in lines:
        start = lines.index("Examples:")
        lines[start:] = [".. rubric:: Examples", "", *(line.removeprefix("    ") for line in lines[start + 1 :])]


def _hide_constructors(
    _app: Any, _kind: str, name: str, _what: Any, _options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Show no arguments of classes whose objects others make, nor of settings, whose fields are a table."""
    hidden = name.endswith("Settings") or name in ("cbabo.Study", "cbabo.Model", "cbabo.study.ledger.Decisions")
    return ("", None) if hidden else (signature, returned)
