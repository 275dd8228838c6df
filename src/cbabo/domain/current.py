"""The evaluation that is being performed: its number, known to everything that it calls."""

from __future__ import annotations

from contextvars import ContextVar

current_evaluation: ContextVar[int | None] = ContextVar("current_evaluation", default=None)
"""The number of the evaluation that is being performed; None outside of one."""
