"""Tabular data files of Dakota, as `tabular_data` writes them, as a table of old runs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from cbabo.errors import InputError


def is_dakota(path: Path) -> bool:
    """Tell whether a file is an annotated tabular file of Dakota: its first line begins with %eval_id."""
    try:
        with path.open(encoding="utf-8") as lines:
            return lines.readline().startswith("%eval_id")
    except (OSError, UnicodeDecodeError):
        return False


def read_dakota(path: Path) -> pd.DataFrame:
    """Return the rows of an annotated tabular file: variables and responses by their descriptors.

    The columns of evaluation numbers and interfaces are left out.
    """
    try:
        table = pd.read_csv(path, sep=r"\s+")
    except (pd.errors.ParserError, ValueError) as error:
        raise InputError(f"{path}: this is no tabular file of Dakota ({error}); export it again") from error
    return table.drop(columns=["%eval_id", "interface"], errors="ignore")
