"""The strongest rival that does not choose its evaluations: a Latin hypercube of 200 with our surrogates and our answers."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from cbabo.bench.judging import Measures
from cbabo.bench.ours import predicted
from cbabo.bench.rivals import hypercube
from cbabo.methods.settings import Settings
from cbabo.problems import ShippedProblem
from cbabo.study.study import Study


def lhs_strong(shipped: ShippedProblem, seed: int, n: int) -> Measures:
    """Import a Latin hypercube of 200 into a study: our surrogates and our answering, only the evaluations differ."""
    began = time.perf_counter()
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=Settings.default())
    table = np.column_stack(hypercube(shipped, seed))
    study.add(pd.DataFrame(table, columns=[*shipped.problem.space.names, *shipped.problem.outputs]))
    model = study.model()
    return {"run seconds": time.perf_counter() - began} | predicted(shipped, model, seed)
