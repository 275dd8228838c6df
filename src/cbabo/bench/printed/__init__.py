"""Numbers printed in the paper, for tables that stand beside them.

One CSV file for each table, with the problems by our names; where the paper's tables say g06 they mean g04, and it is g04 here.
Shares and win rates are in percent, times in seconds, a win rate is that of CBA-BO against the baseline or the variant.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

from cbabo.errors import InputError

CASE_STUDY = (17.60, 15.70, 10.7)
"""The car case study: the objective before and after the recommendation, and the gain in percent."""


def printed(name: str) -> pd.DataFrame:
    """Return one printed table: the caller's own copy, in the paper's values."""
    if name not in names():
        raise InputError(f"printed table: expected one of {', '.join(names())}, got {name!r}")
    return _read(name).copy()


def names() -> tuple[str, ...]:
    """List the printed tables."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.csv")))


@cache
def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(_FOLDER / f"{name}.csv")


_FOLDER = Path(__file__).parent
