"""Known relations between variables, as the solvers use them: constraints of every minimisation, and a check of its result.

Symbols and shapes: x is a design (d, unit cube), v the variables of a minimisation, which begin with one.

Relations are no requirements: they have no margin and no multiplier, and no answer may break one, however unreachable its limits
are. Between the values of a discrete variable a relation is interpolated, as the outputs are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cbabo.domain.region import Region as DesignRegion
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.slsqp import Region

RELATION_SLACK = 1e-8
"""Kept between a solution and the relations, in units of their ranges: SLSQP stops within rounding of them."""
BROKEN = 1.0
"""What a broken relation adds to the violation of a solution, so that it comes after all that break none."""


@dataclass(frozen=True, eq=False)
class KnownRelations:
    """The relations of a problem; none where the region is None."""

    region: DesignRegion | None

    def violation(self, x: FloatArray) -> float:
        """Return by how much a design breaks relations, in their ranges and with `BROKEN` added; -inf if it obeys all."""
        if self.region is None:
            return -np.inf
        worst = float(self.region.relations.values(x[None])[0].max(initial=0.0))
        return BROKEN + worst if worst > 0.0 else -np.inf

    def constraints(
        self, d: int
    ) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]] | None:
        """Return the slack of the relations and its Jacobian as functions of v, for designs (d); None if there are none.

        The Jacobian of linear relations is computed once.
        """
        if self.region is None or not self.region.relations.expressions:
            return None
        relations = self.region.relations
        constant = relations.linear[0] if relations.linear[2].all() else None

        def slack(v: FloatArray) -> FloatArray:
            return np.asarray(-relations.values(v[None, :d])[0] - RELATION_SLACK)

        def slope(v: FloatArray) -> FloatArray:
            by_x = relations.values_and_slopes(v[None, :d])[1][0] if constant is None else constant
            return np.column_stack([-by_x, np.zeros((len(by_x), len(v) - d))])

        return slack, slope

    def obeying(self, x: FloatArray, within: Region) -> FloatArray:
        """Return a design moved onto relations that it breaks by rounding, or because the minimisation did not end."""
        if self.region is None:
            return x
        low, high = within.ends(len(x))
        return np.asarray(self.region.projected(x[None], low, high, low < high)[0])
