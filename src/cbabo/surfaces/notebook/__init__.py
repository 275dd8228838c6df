"""The explorer in a notebook: a widget that Python talks with, or, without its packages, the explorer's page as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cbabo.domain.convergence import Convergence
from cbabo.errors import InputError, shown
from cbabo.model import Model
from cbabo.study.modelcache import kept_convergence
from cbabo.study.study import Study
from cbabo.surfaces.document import document
from cbabo.surfaces.notebook.file import ExplorerFile
from cbabo.surfaces.page import single_file

if TYPE_CHECKING:
    from cbabo.surfaces.notebook.widget import ExplorerWidget

HEIGHT = 900
"""Pixels."""


def explore_study(
    study: Study, limits: Mapping[str, float] | None, height: int, path: str | Path | None
) -> ExplorerWidget | ExplorerFile:
    """Return the explorer of a study; the arguments are those of `Study.explore`."""
    return explore_model(study.model(), limits, height, path, study.name, kept_convergence(study))


def explore_model(
    model: Model,
    limits: Mapping[str, float] | None,
    height: int,
    path: str | Path | None,
    name: str | None = None,
    moves: Convergence | None = None,
) -> ExplorerWidget | ExplorerFile:
    """Return the explorer of a model; the arguments are those of `Model.explore`."""
    if not isinstance(height, int) or isinstance(height, bool) or height < 100:
        raise InputError(f"explore: expected the height in pixels as a whole number from 100 on, got {shown(height)}")
    asked = model.problem.box.complete({} if limits is None else limits)
    title = model.problem.name if name is None else name
    page = single_file(document(model, title, moves))
    widget = None if path is not None else _widget()
    return (
        ExplorerFile.write(page, title, asked, height, path) if widget is None else widget(model, page, asked, height)
    )


def _widget() -> type[ExplorerWidget] | None:
    """Return the widget; None where its packages are missing."""
    try:
        from cbabo.surfaces.notebook.widget import ExplorerWidget
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("anywidget", "ipywidgets", "traitlets"):
            raise
        return None
    return ExplorerWidget
