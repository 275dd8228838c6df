"""The benchmark: campaigns, baselines, metrics, tables and figures."""

from __future__ import annotations
