"""The model of a study: answers every threshold at once, and helps to choose limits.

A model is a value. Making one reads a study and changes nothing; using one never evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from cbabo.answering.answers import Answer, Recommendation
from cbabo.answering.modelfile import read_model, write_model
from cbabo.answering.predict import Answers, Source, predict_many
from cbabo.decisions.atlas import Atlas, atlas
from cbabo.decisions.conflict import Conflict, WayOut, conflict, ways_out
from cbabo.decisions.explain import Explanation, explain
from cbabo.decisions.reach import reach
from cbabo.decisions.recommend import Intent, recommend
from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.query import Query
from cbabo.errors import ModelError
from cbabo.methods.learner import Learner
from cbabo.methods.method import Fitted
from cbabo.methods.registry import method_for
from cbabo.methods.settings import MethodSettings
from cbabo.methods.step import FEWEST
from cbabo.numerics.threads import one_thread


class Model(Fitted):
    """Answers for every threshold in the box.

    Examples:
        >>> from cbabo import Study, problems
        >>> truss = problems.get("three_truss")
        >>> study = Study.create(truss.problem, "sqlite://")
        >>> study.run(truss.evaluate, budget=40)
        >>> model = study.model()
        >>> model
        Model('three_truss', default method, 40 measured, 0 failed, 2 variables, 3 movable limits)
        >>> model.predict().feasible
        True
    """

    def predict(
        self,
        thresholds: Mapping[str, float] | None = None,
        *,
        probability: float | None = None,
        method: Source | None = None,
    ) -> Answer:
        """Return the design for these limits, with what is predicted of it.

        A limit that is left out stands at its nominal value. probability: of feasibility to aim at, as the settings say unless
        given; method: "pcm" for the network alone, "solver" for the surrogates' problem solved, as the model's method has it
        unless given.
        """
        box = self.problem.box
        if thresholds is None:
            thresholds = {}
        row = box.complete(thresholds) if isinstance(thresholds, Mapping) else box.row(thresholds)
        return self.predict_many(row, probability=probability, method=method).answer(0)

    def predict_many(
        self,
        thresholds: ThresholdsLike,
        *,
        probability: float | None = None,
        method: Source | None = None,
        fast: bool = False,
    ) -> Answers:
        """Return the designs for many limits: a table or dicts by name, or n x k in the order of the movable constraints.

        fast: for maps and sliders, answer from a library of solved thresholds (made at the first such call) instead of solving.
        """
        query = Query.of(self.problem.box, thresholds)
        return predict_many(self, query, probability=probability, method=method, fast=fast)

    def recommend(
        self, base: Mapping[str, float], intents: Mapping[str, Intent], *, alternatives: int = 3
    ) -> Recommendation:
        """Propose limits that follow the intents (tighten, lock, loosen, or <, =, >) and improve the objective.

        A limit that the base leaves out stands at its nominal value. One without an intent is locked, and a locked limit stays
        exactly where it is.
        """
        return recommend(self, base, intents, alternatives)

    def reach(self, thresholds: Mapping[str, float] | None = None) -> pd.DataFrame:
        """Return how far each limit can go, the others held: one row for each movable limit, by name.

        Columns: limit, the value asked for; strictest, the strictest value in its range that can be met with the stated
        probability; gains_until, the value from which on relaxing gains nothing; gains_at_end, whether the limit still gains at
        the end of its range, which gains_until then is. Both are NaN where no value of this limit makes the others reachable.
        """
        return reach(self, self._one(thresholds))

    def conflict(self, thresholds: Mapping[str, float] | None = None) -> Conflict | None:
        """Return a smallest set of these limits that cannot hold together; None where they can all be met."""
        return conflict(self, self._one(thresholds))

    def ways_out(
        self,
        thresholds: Mapping[str, float] | None = None,
        *,
        costs: Mapping[str, float] | None = None,
        count: int = 3,
    ) -> tuple[WayOut, ...]:
        """Return the cheapest relaxations with which limits can be met, the cheapest first; none where they already can.

        costs: per unit by which a limit is relaxed, inf for a limit that stays; a limit without one costs 1 for its whole range.
        No two of the proposals move the same limits, and there may be fewer than `count`.
        """
        return ways_out(self, self._one(thresholds), costs, count)

    def explain(
        self,
        thresholds: Mapping[str, float] | None = None,
        *,
        costs: Mapping[str, float] | None = None,
        count: int = 3,
    ) -> Explanation:
        """Return everything about some limits: the answer with its prices, reach, and conflict with ways out, if there is one."""
        return explain(self, self._one(thresholds), costs, count)

    def atlas(
        self,
        at: Mapping[str, float] | None = None,
        limits: Sequence[str] | None = None,
        *,
        count: int = 21,
    ) -> Atlas:
        """Say which limits bind where in the box, and which can be given away at these limits.

        limits: the two of the map, those that matter most at this place unless given; count: values of each on the map.
        """
        return atlas(self, self._one(at), limits, count)

    def _one(self, thresholds: Mapping[str, float] | None) -> Query:
        """Read one limit for each constraint; those left out stand at their nominal value."""
        return Query.of(self.problem.box, self.problem.box.complete({} if thresholds is None else thresholds))

    def save(self, path: str | Path) -> None:
        """Write the model to one file: tensors and JSON, never pickle.

        The library is made before, if it is not there yet: a model that is read answers fast at once. A network that was never
        asked for is not trained only to be written, unless it is what answers.
        """
        write_model(Path(path), self)

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model that `save` wrote."""
        return cls(**read_model(Path(path)))


def make_model(evaluations: Evaluations, learner: Learner, settings: MethodSettings, seed: int) -> Model:
    """Make a model of everything measured so far; nothing is written and the learner is not advanced.

    The network is the learner's; one that was never trained is trained when it is first asked for.
    """
    measured = evaluations.complete
    if len(measured) < FEWEST:
        raise ModelError(
            f"a model needs at least {FEWEST} measured designs, got {len(measured)}; run more evaluations first"
        )
    method = method_for(settings)
    with one_thread():
        posterior = method.fit(evaluations, learner.fit)
    network = None if learner.trainee is None else learner.trainee.pcm
    return Model(evaluations.problem, method, seed, evaluations, posterior, network)
