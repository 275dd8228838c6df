"""Reasons of failures, compared: two messages that differ in numbers or paths only state the same reason."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.~+-]*(?:[\\/][\w.~+-]+)+[\\/]?")
_CODE = re.compile(r"\bcode -?[0-9]+")
_NUMBER = re.compile(r"\b0[xX][0-9a-fA-F]+|[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|\b(?:nan|inf)\b")


def reason_key(failure: str) -> str:
    """Return what tells a reason from others: the message without its paths and numbers; return codes stay.

    Examples:
        >>> reason_key("element 4711 of /tmp/run-7/a.inp is 1.5e-3 wide") == reason_key("element 9 of b/c.inp is 2 wide")
        True
        >>> reason_key("it exited with code 3") == reason_key("it exited with code 4")
        False
    """
    text = _PATH.sub("<path>", failure)
    codes = [match.group() for match in _CODE.finditer(text)]
    return " ".join([_NUMBER.sub("#", text), *codes])
