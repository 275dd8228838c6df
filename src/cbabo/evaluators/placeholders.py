"""Placeholders such as {x} and {x:.6e} in commands, environment values and template files.

Only known names are replaced and every other brace stays as it is, as templates are often JSON, C or TCL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cbabo.errors import EvaluationError


def fill(text: str, values: Mapping[str, float | str], where: str) -> str:
    """Replace the placeholders of the known names; `where` says in an error what was being filled in.

    A number without a format is written so that reading it back gives exactly the same number. A format holds
    no blanks, so that a literal such as {x: 3} is not taken for a placeholder.
    """
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))

    def replacement(match: re.Match[str]) -> str:
        value, form = values[match[1]], match[2]
        if form is None:
            return value if isinstance(value, str) else repr(value)
        try:
            return format(value, form)
        except ValueError as error:
            raise EvaluationError(
                f"the placeholder {match[0]} in {where} has a format that does not fit {value!r} ({error}); "
                "write a Python format such as {x:.6e}"
            ) from error

    return re.sub(r"\{(" + names + r")(?::([^{}\s]*))?\}", replacement, text)


def plain(value: float | str) -> float | str:
    """Return a number as Python's own int or float, whatever library it came from; a label as it is."""
    if isinstance(value, str):
        return str(value)
    return int(value) if hasattr(value, "__index__") else float(value)
