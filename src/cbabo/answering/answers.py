"""What is handed to people: named records with plain floats, in natural units and the user's directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cbabo.answering.standings import limit_standings
from cbabo.display.answers import answer_html, recommendation_html
from cbabo.display.extras import needs_matplotlib
from cbabo.domain.problem import Problem
from cbabo.domain.space import Point
from cbabo.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Status = Literal["predicted", "measured", "verified", "unreachable"]


@dataclass(frozen=True)
class Estimate:
    """A number with its standard deviation; one that was measured without noise has none.

    Examples:
        >>> Estimate(18.8, 0.1)
        Estimate(mean=18.8, std=0.1)
    """

    mean: float
    std: float


@dataclass(frozen=True)
class Price:
    """What a limit costs: the gain of the objective per unit by which the limit is relaxed.

    Natural units and the user's direction: a gain is less of an objective to be minimised, more of one to be maximised, and a
    "<=" is relaxed upwards, a ">=" downwards. The price is that of the best design as the model predicts it, so that it holds for
    fast answers and measured designs too.

    Examples:
        >>> price = Price(0.021, 0.003, low=180.0, high=214.0)
        >>> price.binds, Price(0.0, 0.0, low=100.0, high=180.0).binds
        (True, False)
    """

    value: float
    """At the limit asked for; 0 where the limit does not bind."""
    std: float
    """Its standard deviation by the model's uncertainty."""
    low: float
    """The lowest value of the limit, the others held, up to which the same limits bind and discrete variables keep their values.

    It never leaves the limit's range, nor what can be met. Of a price that is a quotient to the next jump, the jump is the end.
    """
    high: float
    """The highest such value."""

    @property
    def binds(self) -> bool:
        """Whether relaxing the limit gains anything."""
        return self.value > 0.0


@dataclass(frozen=True)
class Answer:
    """The design for given thresholds.

    Examples:
        >>> mass = Estimate(2.5, 0.0)
        >>> answer = Answer({"stress": 2.0}, {"width": 1.2}, mass, {"mass": mass}, 1.0, "verified")
        >>> answer.verified, answer.feasible, answer.objective.mean
        (True, True, 2.5)
    """

    thresholds: Mapping[str, float]
    """The limits it was asked for."""
    point: Point
    """The design: legal values."""
    objective: Estimate
    outputs: Mapping[str, Estimate]
    """Every output of the problem, the objective among them. An output with parts is shown by the part that is closest to
    breaking its limit; its parts follow under their own names, as "stress[3]"."""
    probability_feasible: float
    """That the outputs, without noise, obey all limits asked for; 1 or 0 once measured where no output is noisy."""
    status: Status
    """predicted: by the model. verified: measured, and it obeys the limits with the probability asked for. measured: it was run,
    but it breaks a limit, or noise leaves doubt. unreachable: no design is predicted to obey these limits with the probability
    asked for."""
    closest_thresholds: Mapping[str, float] | None = None
    """The nearest limits that can be met, where these are unreachable."""
    warnings: tuple[str, ...] = ()
    noise: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation of one measurement of every noisy output, as it was found."""
    measurements: int = 0
    """How often this design was measured."""
    probability_success: float = 1.0
    """That the simulator returns at all; 1 once measured where no output is noisy, and where nothing has failed."""
    approximate: bool = False
    """Whether it is a fast answer that is no measured design: the full answer may be a slightly better design."""
    scatter: Mapping[str, float] = field(default_factory=dict)
    """Standard deviations of variables, which the probability and the outputs contain."""
    tolerance: Mapping[str, float] = field(default_factory=dict)
    """Half widths of uniformly distributed variables, which the probability and the outputs contain."""
    prices: Mapping[str, Price] = field(default_factory=dict, repr=False, compare=False)
    """What each movable limit costs, computed when it is first looked at; empty where the limits cannot be met."""
    problem: Problem | None = field(default=None, repr=False, compare=False)
    """What it answers, with units and ranges; None for an answer that is made by hand."""

    @property
    def verified(self) -> bool:
        """Whether the design was measured and obeys the limits with the probability asked for."""
        return self.status == "verified"

    @property
    def feasible(self) -> bool:
        """Whether all limits are obeyed: as measured, else more likely than not."""
        return self.probability_feasible > 0.5

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the design in its ranges and the outputs against their limits, with 2 standard deviations to either side.

        What binds is marked with its price. ax: where to draw; a new figure unless given. Needs the `plot` extra (matplotlib).
        """
        if self.problem is None:
            raise InputError("plot: expected an answer of a model, got one made by hand; use that of Model.predict")
        with needs_matplotlib("plot"):
            from cbabo.display.plots.answers import draw_answer

            return draw_answer(self.problem, self, limit_standings(self.problem, self), ax)

    def _repr_html_(self) -> str:
        """Return tables for a notebook."""
        return answer_html(self, () if self.problem is None else limit_standings(self.problem, self))


@dataclass(frozen=True)
class LimitChange:
    """What a recommendation does to one limit."""

    intent: str
    before: float
    after: float
    effect: float
    """What this change alone does to the predicted objective; above zero is better."""


@dataclass(frozen=True)
class Recommendation:
    """Limits proposed in the direction of the intents.

    Examples:
        >>> before, after = (
        ...     Answer({"stress": s}, {"width": w}, Estimate(m, 0.1), {"mass": Estimate(m, 0.1)}, 0.98, "predicted")
        ...     for s, w, m in ((2.0, 1.4, 2.8), (3.0, 1.2, 2.4))
        ... )
        >>> change = LimitChange("loosen", before=2.0, after=3.0, effect=0.4)
        >>> found = Recommendation(after.thresholds, after, before, 0.4, 40.0, {"stress": change})
        >>> found.thresholds, found.changes["stress"].after
        ({'stress': 3.0}, 3.0)
    """

    thresholds: Mapping[str, float]
    answer: Answer
    """The design for them, as predicted."""
    base: Answer
    """The design for the limits it started from, as predicted."""
    improvement: float
    """Predicted gain of the objective over the base; above zero is better, for minimize and maximize alike."""
    utility: float
    """The score by which it was chosen."""
    changes: Mapping[str, LimitChange]
    alternatives: tuple[Recommendation, ...] = ()
    """Other proposals, clearly different from this one and from each other, in the order of their score."""

    def _repr_html_(self) -> str:
        """Return tables for a notebook."""
        return recommendation_html(self)
