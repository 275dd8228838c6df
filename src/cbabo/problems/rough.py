"""The rough suite in groups: noise, outputs with kinks, and several basins with designs that fail."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cbabo.problems.basins import BASINS
from cbabo.problems.kinked import KINKED
from cbabo.problems.noisy import NOISY
from cbabo.problems.shipped import ShippedProblem

GROUPS: Final[Mapping[str, tuple[ShippedProblem, ...]]] = MappingProxyType({**NOISY, "kinks": KINKED, "basins": BASINS})
"""The problems of each group, in order."""

ROUGH: Final = tuple(shipped for group in GROUPS.values() for shipped in group)
"""The suite in order."""
