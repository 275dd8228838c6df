"""The explorer as an anywidget: the page in a frame, and the limits that are set there as a trait."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from cbabo.answering.answers import Answer
from cbabo.errors import InputError, shown
from cbabo.model import Model


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer of a model in a notebook; `limits` are those that are set in it, and may be set from Python.

    Other code follows them by `widget.observe(function, "limits")`.
    """

    _esm = Path(__file__).parent / "widget.js"
    page = traitlets.Unicode().tag(sync=True)
    limits = traitlets.Dict().tag(sync=True)
    probability = traitlets.Float(None, allow_none=True).tag(sync=True)
    """The probability of feasibility that is chosen in the page; None: as the settings say."""
    height = traitlets.Int().tag(sync=True)

    def __init__(self, model: Model, page: str, limits: Mapping[str, float], height: int) -> None:
        self._model = model
        self._known: tuple[object, Answer] | None = None
        super().__init__(page=page, limits=dict(limits), height=height)

    @property
    def answer(self) -> Answer:
        """The full answer to the limits that are set, as `Model.predict` gives it."""
        asked = (dict(self.limits), self.probability)
        if self._known is None or self._known[0] != asked:
            self._known = asked, self._model.predict(self.limits, probability=self.probability)
        return self._known[1]

    @traitlets.validate("limits")
    def _complete(self, proposal: Mapping[str, Any]) -> dict[str, float]:
        """Check the limits; those that are left out stay as they are."""
        stated = proposal["value"]
        if not isinstance(stated, Mapping):
            raise InputError(f"limits: expected a mapping of names to limits, got {shown(stated)}")
        return self._model.problem.box.complete({**self.limits, **stated})

    def __repr__(self) -> str:
        """Say what is explored, and at which limits."""
        at = ", ".join(f"{name}={value:g}" for name, value in self.limits.items())
        return f"ExplorerWidget({self._model.problem.name!r}, {at})"
