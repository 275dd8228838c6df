"""Reads a simulator's outputs from the files that its command wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from cbabo.errors import EvaluationError

_LINE = re.compile(
    r"\s*([^\s=]+)\s*=\s*([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[ed][-+]?\d+)?|nan|inf|infinity))\s*",
    re.IGNORECASE,
)


def read_outputs(path: Path) -> Mapping[str, object]:
    """Read a .json file that holds one object, or the name=value lines of any other file."""
    try:
        if path.suffix.lower() == ".json":
            return _json_object(path)
        with path.open(encoding="utf-8", errors="replace") as lines:
            return named_values(lines)
    except FileNotFoundError as error:
        raise EvaluationError(
            f"the command must write its outputs to {path.name}, but did not; "
            "check the name and that the command writes into its current directory"
        ) from error


def named_values(lines: Iterable[str]) -> dict[str, float]:
    """Read the lines "name=value" or "name = value"; of several with one name the last wins.

    Fortran's 1.0D-3 is a number too.
    """
    values: dict[str, float] = {}
    for line in lines:
        match = _LINE.fullmatch(line)
        if match:
            values[match[1]] = float(match[2].lower().replace("d", "e"))
    return values


def _json_object(path: Path) -> Mapping[str, object]:
    try:
        content: object = json.loads(path.read_bytes())
    except ValueError as error:
        raise EvaluationError(f"{path.name} must hold a JSON object, but is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise EvaluationError(f"{path.name} must hold a JSON object, but holds a {type(content).__name__}")
    return content
