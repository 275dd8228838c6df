"""Hand-made rows of a campaign, for the tests of tables and figures: losses are stated, objectives follow from the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbabo.bench.campaign import Row
from cbabo.bench.truth import truth


def unit(problem: str, method: str, seed: int = 0, n: int = 100, **measures: object) -> Row:
    """Return a finished unit; underscores in the names of its measures stand for spaces."""
    named = {name.replace("_", " "): value for name, value in measures.items()}
    return Row(problem, method, seed, n, "code", 1.0, named)  # type: ignore[arg-type]


def answered(
    problem: str,
    method: str,
    stage: str,
    losses: Sequence[float | None],
    *,
    seed: int = 0,
    n: int = 100,
    first: int = 0,
    suffix: str = "",
    **measures: object,
) -> Row:
    """Return a unit whose answers to the rows from `first` on have these losses in percent; None is infeasible."""
    known = truth(problem)
    rows = np.arange(first, first + len(losses))
    objective = [known.f[row] + known.span * (loss or 0.0) / 100.0 for row, loss in zip(rows, losses, strict=True)]
    feasible = [float(loss is not None) for loss in losses]
    answers = {f"{stage} objective{suffix}": objective, f"{stage} feasible{suffix}": feasible}
    named = {name.replace("_", " "): value for name, value in measures.items()}
    return Row(problem, method, seed, n, "code", 1.0, {"row": rows.tolist()} | answers | named)  # type: ignore[arg-type]


def joined(*rows: Row) -> Row:
    """Return one unit with the measures of several."""
    measures = {name: value for row in rows for name, value in row.measures.items()}
    first = rows[0]
    return Row(first.problem, first.method, first.seed, first.n, first.code, first.seconds, measures)
