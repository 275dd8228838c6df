"""What was decided, proposed and audited in a study: entries that are never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

EntryKind = Literal["decision", "proposal", "audit"]


@dataclass(frozen=True)
class Entry:
    """One entry of a study's ledger."""

    number: int
    """Counted from 1."""
    kind: EntryKind
    made: datetime
    """When, in UTC."""
    by: str
    """Who made it."""
    content: Mapping[str, Any]
    """What it says, in plain values."""
