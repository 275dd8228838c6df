"""Tables made from a campaign's rows, the paper's beside its printed numbers and our own.

A table is a function of the rows and of the method that is "ours": a set of settings by its name in the campaigns. Where
results are missing its cells are empty; where there is nothing at all to show, one sentence says what to compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import pandas as pd

from cbabo.bench.campaign import Row
from cbabo.bench.tables import duels, maps, quality, reproduction

__all__ = ["TABLES", "Table"]


class Table(Protocol):
    """Makes one table."""

    def __call__(self, rows: Sequence[Row], ours: str = "paper") -> pd.DataFrame:
        """Return the table of these rows, with this method as ours."""
        ...


TABLES: Mapping[str, Table] = MappingProxyType(
    {
        "feasibility": reproduction.feasibility,
        "win_rate_direct": duels.win_rate_direct,
        "win_rate_refined": duels.win_rate_refined,
        "single_threshold": reproduction.single_threshold,
        "ablation": duels.ablation,
        "start": duels.start,
        "monotonicity": reproduction.monotonicity,
        "runtime": reproduction.runtime,
        "beta": duels.beta,
        "inner_steps": duels.inner_steps,
        "alpha": duels.alpha,
        "case_study": reproduction.case_study,
        "loss": quality.loss,
        "loss_by_problem": quality.loss_by_problem,
        "budget": quality.budget,
        "calibration": quality.calibration,
        "nehvi": quality.nehvi,
        "vacuous": quality.vacuous,
        "losses_to": quality.losses_to,
        "maps": maps.maps,
        "network": maps.network,
    }
)
"""Every table by its name."""
