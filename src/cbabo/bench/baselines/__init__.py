"""Optimisers that spend their budget on one threshold vector after the other: the paper's five, and what users would run."""

from __future__ import annotations

from cbabo.bench.baselines.evolution import cma_es
from cbabo.bench.baselines.improvement import cei, exact_log_cei, log_cei
from cbabo.bench.baselines.lagrangian import albo
from cbabo.bench.baselines.libraries import botorch_log_cei, optuna_gp
from cbabo.bench.baselines.sequential import Strategy, budget_split, measure
from cbabo.bench.baselines.trustregion import scbo

__all__ = ["BASELINES", "Strategy", "budget_split", "measure"]

BASELINES: dict[str, Strategy] = {
    "CMA-ES": cma_es,
    "cEI": cei,
    "ALBO": albo,
    "SCBO": scbo,
    "LogcEI": log_cei,
    "LogcEI exact": exact_log_cei,
    "BoTorch LogcEI": botorch_log_cei,
    "Optuna": optuna_gp,
}
"""The paper's five by the names that it uses; LogcEI told that there is no noise; what a user of another library would run."""
