"""Everything about some limits at once: what binds, what each limit costs, how far it could go, and ways out of a conflict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from cbabo.answering.answers import Answer
from cbabo.answering.predict import predict_many
from cbabo.decisions.conflict import Conflict, WayOut, check_ways_out, conflict, ways_out
from cbabo.decisions.reach import reach, reaching
from cbabo.domain.query import Query
from cbabo.methods.method import Fitted


@dataclass(frozen=True, eq=False)
class Explanation:
    """What there is to know about some limits."""

    answer: Answer
    """The design for them, with the prices of the limits."""
    reach: pd.DataFrame
    """How far each limit could go, the others held (see `Model.reach`)."""
    conflict: Conflict | None
    """Which limits cannot hold together; None where all can be met."""
    ways_out: tuple[WayOut, ...]
    """The cheapest relaxations; none where all can be met."""

    @property
    def binding(self) -> tuple[str, ...]:
        """The limits that bind."""
        return tuple(name for name, price in self.answer.prices.items() if price.binds)


def explain(fitted: Fitted, query: Query, costs: Mapping[str, float] | None, count: int) -> Explanation:
    """Explain a query with one row; costs and count are those of `Model.ways_out`."""
    reaching(fitted, "explain")
    answers = predict_many(fitted, query)
    unmet = not answers.reachable[0]
    out = ways_out(fitted, query, costs, count) if unmet else check_ways_out(query.box, costs, count)
    return Explanation(answers.answer(0), reach(fitted, query), conflict(fitted, query) if unmet else None, out)
