"""Reads a simulator's outputs from the files that its command wrote."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from cbabo.errors import EvaluationError

_LINE = re.compile(
    r"\s*([^\s=]+)\s*=\s*([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[ed][-+]?\d+)?|nan|inf|infinity))\s*",
    re.IGNORECASE,
)


LARGEST_FILE = 64 * 1024 * 1024
"""Bytes that are read of a file of outputs, unless stated otherwise."""


def read_outputs(path: Path, largest: int = LARGEST_FILE) -> Mapping[str, object]:
    """Read a .json file that holds one object, or the name=value lines of any other file."""
    content = _content(path, largest)
    if path.suffix.lower() == ".json":
        return _json_object(path.name, content)
    return named_values(content.decode("utf-8", errors="replace").splitlines())


def _content(path: Path, largest: int) -> bytes:
    """Read a regular file; a pipe would wait for a writer, and a device may have no end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise EvaluationError(
                    f"the outputs must be in a regular file, but {path.name} is none; let the command write a plain file"
                )
            content = file.read(largest + 1)
    except FileNotFoundError as error:
        raise EvaluationError(
            f"the command must write its outputs to {path.name}, but did not; "
            "check the name and that the command writes into its current directory"
        ) from error
    except OSError as error:
        raise EvaluationError(
            f"{path.name} cannot be read ({error.strerror or error}); check what writes it"
        ) from error
    if len(content) > largest:
        raise EvaluationError(
            f"the outputs must be in a file of at most {largest:,} bytes, but {path.name} is larger; "
            "write the outputs to a file of their own, or raise largest_file"
        )
    return content


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


def _json_object(name: str, content: bytes) -> Mapping[str, object]:
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"{name} must hold a JSON object, but is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise EvaluationError(f"{name} must hold a JSON object, but holds a {type(found).__name__}")
    return found
