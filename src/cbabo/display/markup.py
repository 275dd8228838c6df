"""HTML elements with escaped text: only markup made by this module is written as it is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cbabo.display.numbers import number


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


class Written(str):
    """A number that is written already: it stands to the right in a table, and is never broken."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """Return an element; an attribute class_ is written class, and view_box viewBox."""
    stated = "".join(
        f' {_NAMES.get(key, key.replace("_", "-"))}="{escape(str(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{stated}>{joined(*children)}</{name}>")


def joined(*children: str) -> Markup:
    """Put elements and texts one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """Return a table; numbers stand to the right, and so do the titles of columns that hold numbers only.

    The alignment is stated in each cell, because notebooks drop style sheets and have others of their own.
    """
    to_right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    head = tag("tr", *(tag("th", name, style=_SIDE[right]) for name, right in zip(columns, to_right, strict=True)))
    body = [tag("tr", *(_cell(value) for value in row)) for row in rows]
    return tag("table", tag("thead", head), tag("tbody", *body))


_NAMES = {"class_": "class", "view_box": "viewBox"}
_SIDE = {False: "text-align:left", True: "text-align:right"}


def _cell(value: object) -> Markup:
    if not _is_number(value):
        return tag("td", value if isinstance(value, str) else str(value), style=_SIDE[False])
    text = number(value) if isinstance(value, float) else str(value)
    return tag("td", text, class_="number", style=f"{_SIDE[True]};white-space:nowrap")


def _is_number(value: object) -> bool:
    return isinstance(value, Written | float | int)
