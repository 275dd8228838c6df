"""CMA-ES (Hansen) from the `cma` package, with its own handling of limits: an adaptive augmented Lagrangian.

The search runs on the unit cube, starts at the best initial design with a step size of 0.25 and looks for a feasible design
before it minimises the objective. Objective and violations are divided by their standard deviations over the initial data. When
the package's own criteria stop it before the budget is spent, it restarts at the best design with half of that step size.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from cbabo.bench.baselines.sequential import Data, Task
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child

STEP = 0.25
"""Initial step size in the unit cube: about a quarter of the range, as the package recommends."""


def cma_es(task: Task, data: Data) -> Generator[FloatArray, Data, None]:
    """Suggest the members of one generation after the other."""
    import cma  # The package is an optional dependency.
    from cma import constraints_handler, logger

    constraints_handler._Logger = logger.LoggerDummy  # Keeps the package from creating a folder.
    random = child(task.seed, "evolution")
    deviation = data.y.std(axis=0)
    scale = np.where(deviation > 0.0, deviation, 1.0)
    latest = data.y[-1:]
    fitness = cma.ConstrainedFitnessAL(
        lambda _: float(latest[0, 0] / scale[0]),
        lambda _: (task.violations(latest)[0] / scale[1:]).tolist(),
        find_feasible_first=True,
        archives=False,
        logging=0,
    )
    step = STEP
    while True:
        options = {
            "bounds": [0.0, 1.0],
            "randn": lambda *shape: random.standard_normal(shape),
            "seed": np.nan,  # Nothing is drawn from NumPy's global generator.
            "verbose": -9,
            "verb_log": 0,
            "tolstagnation": 0,
        }
        strategy = cma.CMAEvolutionStrategy(data.x[task.best(data.y)], step, options)
        while not strategy.stop():
            generation = strategy.ask()
            values = []
            for member in generation:
                known, data = len(data.x), (yield np.asarray(member, dtype=np.float64))
                # A failed evaluation gets the worst value of every output.
                latest = data.y[-1:] if len(data.x) > known else data.y.max(axis=0, keepdims=True)
                values.append(fitness(member))
            strategy.tell(generation, values)
            fitness.update(strategy)
        step = 0.5 * STEP
