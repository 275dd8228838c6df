"""The explorer as one HTML file, shown in a frame where a notebook has no widgets."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlencode

from cbabo.display.markup import joined, tag
from cbabo.errors import InputError, MissingExtraError

ADVICE = "For a widget whose limits Python reads and sets, install anywidget: pip install 'cbabo[notebook]'"


@dataclass(frozen=True)
class ExplorerFile:
    """The explorer's page, written to a file that any browser opens.

    Examples:
        >>> page = ExplorerFile(Path("/tmp/beam.html"), {"stress": 5.0}, "<!doctype html>...", 900)
        >>> page.url
        'file:///tmp/beam.html#at.stress=5.0'
    """

    path: Path
    start: Mapping[str, float]
    """The limits that it opens with."""
    page: str = field(repr=False)
    height: int

    @classmethod
    def write(
        cls, page: str, title: str, limits: Mapping[str, float], height: int, path: str | Path | None
    ) -> ExplorerFile:
        """Write the page to this path, or to a new file in the folder for temporary files."""
        if path is None:
            name = re.sub(r"[^\w.-]+", "-", title).strip("-.")[:60] or "study"
            target = Path(tempfile.mkdtemp(prefix="cbabo-")) / f"{name}.html"
        else:
            target = Path(path)
        try:
            target.write_text(page, encoding="utf-8")
        except OSError as error:
            raise InputError(f"explore: {target} cannot be written ({error.strerror}); choose another path") from error
        return cls(target.resolve(), limits, page, height)

    @property
    def url(self) -> str:
        """The address of the page with the limits that were asked for."""
        stated = urlencode({f"at.{name}": repr(value) for name, value in self.start.items()})
        return f"{self.path.as_uri()}#{stated}"

    @property
    def limits(self) -> NoReturn:
        """Refused: a file does not say which limits are set in it."""
        raise MissingExtraError(f"limits: a file does not tell Python which limits are set in it. {ADVICE}")

    @property
    def answer(self) -> NoReturn:
        """Refused: a file does not say which limits are set in it."""
        raise MissingExtraError(f"answer: a file does not tell Python which limits are set in it. {ADVICE}")

    def __repr__(self) -> str:
        """Say where the page is, and how to get the widget."""
        return f"Explorer written to {self.path}; open it in a browser. {ADVICE}"

    def _repr_html_(self) -> str:
        """Show the page in a frame that has none of the notebook's rights."""
        first = json.dumps({"cbabo": "set", "thresholds": dict(self.start)})
        frame = tag(
            "iframe",
            srcdoc=self.page,
            sandbox="allow-scripts allow-downloads",
            onload=f"this.contentWindow.postMessage({first}, '*')",
            title="cbabo explorer",
            style=f"width:100%;height:{self.height}px;border:1px solid #c8ccd0",
        )
        return joined(tag("p", f"Written to {self.path}. {ADVICE}"), frame)
