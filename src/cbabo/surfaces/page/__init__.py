"""The explorer's page: plain modules that a browser takes as they are, and the same page in one file.

In one file the modules stand in one script, each after those that it imports, without their import and export words. For that an
import is one line, and names at the top of modules differ.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cbabo.surfaces.document import embedded

FOLDER = Path(__file__).parent
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
_STYLE = '<link rel="stylesheet" href="style.css">'
_SCRIPT = '<script type="module" src="main.js"></script>'


@cache
def files() -> Mapping[str, bytes]:
    """Return the page's files by name."""
    return {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in (".html", ".css", ".js")}


def single_file(document: Mapping[str, Any]) -> str:
    """Return the page with this document in one HTML file that needs no network."""
    page, style, script = _text("index.html"), _text("style.css"), _joined("main.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        '<meta charset="utf-8">': f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
        _STYLE: f"<style>{style}</style>",
        _SCRIPT: "",
        "</body>": f'<script type="application/json" id="document">{embedded(document)}</script>\n'
        f'<script type="module">{script}</script>\n</body>',
    }
    for old, new in parts.items():
        before, after = page.split(old)
        page = before + new + after
    return page


def _joined(name: str) -> str:
    """Return a module after all that it imports, each once."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for other in _IMPORT.findall(_text(name)):
                visit(other)
            order.append(name)

    visit(name)
    parts = [re.sub(r"^export ", "", _IMPORT.sub("", _text(name)), flags=re.MULTILINE) for name in order]
    return "\n".join(parts)


def _text(name: str) -> str:
    return files()[name].decode("utf-8")


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode('utf-8')).digest()).decode('ascii')}'"
