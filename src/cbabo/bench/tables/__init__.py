"""Tables of campaign rows: the paper's tables beside its printed numbers, and tables of our own.

A table is a function of the rows and of the method that is "ours": the name of a set of settings in the campaigns. Missing
results leave empty cells. If no result is there at all, an error says what to compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import pandas as pd

from cbabo.bench.campaign import Row
from cbabo.bench.tables import map_losses, quality, reproduction, win_rates

__all__ = ["TABLES", "Table"]


class Table(Protocol):
    """Makes one table."""

    def __call__(self, rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
        """Return the table of these rows, with this method as ours."""
        ...


TABLES: Mapping[str, Table] = MappingProxyType(
    {
        "feasibility": reproduction.feasibility,
        "win_rate_direct": win_rates.win_rate_direct,
        "win_rate_refined": win_rates.win_rate_refined,
        "single_threshold": reproduction.single_threshold,
        "ablation": win_rates.ablation,
        "start": win_rates.start,
        "monotonicity": reproduction.monotonicity,
        "runtime": reproduction.runtime,
        "beta": win_rates.beta,
        "inner_steps": win_rates.inner_steps,
        "alpha": win_rates.alpha,
        "case_study": reproduction.case_study,
        "loss": quality.loss,
        "loss_by_problem": quality.loss_by_problem,
        "budget": quality.budget,
        "calibration": quality.calibration,
        "nehvi": quality.nehvi,
        "vacuous": quality.vacuous,
        "losses_to": quality.losses_to,
        "maps": map_losses.maps,
        "network": map_losses.network,
    }
)
"""Every table by its name."""
