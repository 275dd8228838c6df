"""HTML elements with escaped text: only markup made by this module is written as it is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


class Markup(str):
    """Text that is HTML already."""

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
    """Return a table; numbers stand to the right."""
    head = tag("tr", *(tag("th", name) for name in columns))
    body = [tag("tr", *(_cell(value) for value in row)) for row in rows]
    return tag("table", tag("thead", head), tag("tbody", *body))


def number(value: float) -> str:
    """Write a number as people read it."""
    return f"{value:.5g}"


_NAMES = {"class_": "class", "view_box": "viewBox"}


def _cell(value: object) -> Markup:
    if isinstance(value, float):
        return tag("td", number(value), class_="number")
    if isinstance(value, int):
        return tag("td", str(value), class_="number")
    return tag("td", value if isinstance(value, str) else str(value))
