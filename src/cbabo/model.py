"""The model of a study: answers every threshold at once, and helps to choose limits.

A model is a value. Making one reads a study and changes nothing; using one never evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cbabo.answering.answers import Answer, Recommendation
from cbabo.answering.modelfile import read_model, write_model
from cbabo.answering.predict import Answers, Source, predict_many
from cbabo.decisions.aims import refuse_source
from cbabo.decisions.atlas import Atlas, atlas
from cbabo.decisions.common_design import CommonDesign, common_design
from cbabo.decisions.conflict import Conflict, WayOut, conflict, ways_out
from cbabo.decisions.explain import Explanation, explain
from cbabo.decisions.figures import chosen_pair, plot_map, plot_quality, plot_tradeoff
from cbabo.decisions.freezing import freeze
from cbabo.decisions.other_question import Limit, answer_other, is_other, own_limits, relative_limits
from cbabo.decisions.reach import reach
from cbabo.decisions.recommend import Intent, recommend
from cbabo.decisions.robustness import robust_answer
from cbabo.decisions.tolerancing import Tolerances, tolerances
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cbabo.surfaces.notebook.file import ExplorerFile
    from cbabo.surfaces.notebook.widget import ExplorerWidget


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
        >>> model.plot_tradeoff("c1").get_xlabel()
        'limit of c1 (≤)'
        >>> model.explore({"c1": 2.0}).limits["c1"]
        2.0
    """

    def predict(
        self,
        thresholds: Mapping[str, Limit] | None = None,
        *,
        objective: str | None = None,
        probability: float | None = None,
        method: Source | None = None,
        scatter: Mapping[str, float] | None = None,
        tolerance: Mapping[str, float] | None = None,
    ) -> Answer:
        """Return the design for these limits, with what is predicted of it.

        A limit that is left out stands at its nominal value. probability: of feasibility to aim at, as the settings say unless
        given; method: "pcm" for the network alone, "solver" for the surrogates' problem solved, as the model's method has it
        unless given. scatter: standard deviations by variable, in its unit, with which designs are made (normal); tolerance:
        half widths by variable (uniform). The probability then contains them, and the design keeps away from its limits.

        objective: any recorded number to be optimised instead, as "stress" or "maximize stress". Limits may then be stated on the
        old objective and on any number that all measured evaluations have; one that the problem does not limit is an upper
        limit, or as stated by its sense: {"elements": (">=", 300.0)}. The limit of the new objective counts if it is stated.
        """
        box = self.problem.box
        if thresholds is None:
            thresholds = {}
        if is_other(self, thresholds, objective):
            refuse_source(method, "another question")
            return answer_other(self, thresholds, objective, probability, scatter, tolerance)
        own: Any = thresholds
        row = box.complete(own) if isinstance(own, Mapping) else box.row(own)
        if scatter is not None or tolerance is not None:
            refuse_source(method, "scatter")
            return robust_answer(self, Query.of(box, row), scatter, tolerance, probability)
        return self.predict_many(row, probability=probability, method=method).answer(0)

    def relative(self, reference: Answer | Mapping[str, float], changes: Mapping[str, float]) -> dict[str, float]:
        """Return limits relative to a reference design, as {"volume": -0.05}: 5 % less than today's.

        reference: an answer, or a design; its outputs count as measured, or else as predicted. The limits may be given to
        `predict`, those on the objective together with another objective.
        """
        return relative_limits(self, reference, changes)

    def own_limits(self, answer: Answer) -> dict[str, float]:
        """Return the limits of the problem's own question with the same answer as that of another objective: for a focus.

        Limits outside the box are moved to its edge, where a focus may lie.
        """
        return own_limits(self, answer)

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

    def freeze(
        self,
        frame: ThresholdsLike | None = None,
        *,
        fixed: Mapping[str, Any] | None = None,
        probability: float | None = None,
    ) -> pd.DataFrame:
        """Tell for each variable how far it moves over the box, or over these limits, and what fixing it now costs.

        Returns a table, the cheapest first. low, high: smallest and largest value in the answers; moves: their distance as a
        share of the variable's range, or the share of these limits whose answer has not the most frequent label; value: the best
        one to fix; cost, worst: mean and largest loss of the objective, in its unit, with std, the mean standard deviation of a
        loss; lost: share of the thresholds that can no longer be met. Each cost is of fixing that variable alone. fixed:
        variables with values that are fixed already.
        """
        return freeze(self, frame, fixed, probability)

    def common(
        self,
        frame: ThresholdsLike,
        weights: Sequence[float] | None = None,
        *,
        probability: float | None = None,
    ) -> CommonDesign:
        """Return one design that obeys all rows of limits, and what it costs against one design for each.

        weights: how much each row counts in the mean cost; the design does not depend on them.
        """
        return common_design(self, frame, weights, probability)

    def tolerances(
        self,
        thresholds: Mapping[str, float] | None = None,
        weights: Mapping[str, float] | None = None,
        *,
        give: float = 0.02,
        point: Mapping[str, Any] | None = None,
        probability: float | None = None,
    ) -> Tolerances:
        """Return the largest box of tolerances that keeps the stated probability for the designs in it, uniformly distributed.

        weights: by variable, what holding its tolerance costs: one with weight 2 gets twice the share of its range, one with
        weight 0 is met exactly; 1 unless given. give: by which share of it the objective may be worse, so that the design can
        keep a distance from its limits. point: a design around which the box lies instead; it does not move.
        """
        return tolerances(self, self._one(thresholds), weights, give, point, probability)

    def reach(self, thresholds: Mapping[str, float] | None = None) -> pd.DataFrame:
        """Return how far each limit can go, the others held: one row for each movable limit, by name.

        Columns: limit, the value asked for; strictest, the strictest value in its range (or as asked for, outside of it) that can
        be met with the stated probability; gains_until, the value from which on relaxing gains nothing; gains_at_end, whether the
        limit still gains at the end of its range, which gains_until then is. Both are NaN where no value of this limit makes the
        others reachable.
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

    def plot_tradeoff(
        self, limit: str, at: Mapping[str, float] | None = None, *, count: int = 41, ax: Axes | None = None
    ) -> Axes:
        """Draw the best objective over one limit, with 2 standard deviations to either side, and return the axes.

        at: the other limits, nominal where left out; the limit asked for is marked, with its price if it binds. Limits that
        cannot be met are hatched. Dots are measured designs, each at the strictest limit that it obeys. count: answers on the
        curve; ax: where to draw, a new figure unless given. Needs the `plot` extra (matplotlib).
        """
        return plot_tradeoff(self, self._one(at), limit, count, ax)

    def plot_map(
        self,
        first: str | None = None,
        second: str | None = None,
        at: Mapping[str, float] | None = None,
        *,
        count: int = 31,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw contours of the best objective over two limits, coloured by which limits bind, and return the axes.

        first, second: the limits, those that matter most unless given; at: the other limits, nominal where left out; count:
        values of each limit; ax: where to draw, a new figure unless given. Needs the `plot` extra (matplotlib).
        """
        return plot_map(self, self._one(at), chosen_pair(first, second), count, ax)

    def plot_quality(self, output: str | None = None, *, ax: Axes | None = None) -> Axes | Figure:
        """Draw every measured design as predicted from all others, against what was measured.

        Returns a figure with one panel for each simulated output, or the axes of the one output that is stated. ax: where to
        draw one output, a new figure unless given. Needs the `plot` extra (matplotlib).
        """
        found: Axes | Figure = plot_quality(self, output, ax)
        return found

    def explore(
        self, limits: Mapping[str, float] | None = None, *, height: int = 900, path: str | Path | None = None
    ) -> ExplorerWidget | ExplorerFile:
        """Return the explorer for a notebook: a widget whose `limits` are those that are set in it.

        widget.limits may be read and set, widget.answer is the full answer to them. Without anywidget (the `notebook` extra), or
        with a path, the page is written to a file and shown as it is. limits: where to begin, nominal where left out; height:
        in pixels; path: of the file, a temporary one unless given.
        """
        from cbabo.surfaces.notebook import explore_model

        return explore_model(self, limits, height, path)

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
