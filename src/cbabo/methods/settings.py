"""The settings of each method, with their meaning. Frozen, and free of torch.

A setting that has no effect under a method is not part of that method's settings, and naming it is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from cbabo.domain.notation import number, sentence
from cbabo.errors import InputError, shown

FEWEST_INITIAL = 10
"""Initial evaluations, and one more for each variable; with a focus, at most two for each variable where there are more than
five."""
MOST_INITIAL = 30
"""Initial evaluations at most: the paper's number."""


class Settings(BaseModel):
    """What both methods share. `Settings.default()` and `Settings.paper()` return the settings of a method.

    Examples:
        >>> settings = Settings.default().replace(batch_size=4)
        >>> settings.method, settings.batch_size
        ('default', 4)
        >>> Settings.from_dict({"preset": "paper", "beta": 1.0}).method
        'paper'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
    method: ClassVar[str]
    """Name of the method that these settings belong to."""

    batch_size: int = Field(default=5, ge=1)
    """Evaluations proposed by one iteration; under the default method with a focus, no more than are evaluated at a time."""

    hidden_layers: int = Field(default=3, ge=1)
    """Hidden layers of the network from thresholds to designs."""

    hidden_width: int = Field(default=256, ge=1)
    """Neurons of each hidden layer."""

    recommend_candidates: int = Field(default=2000, ge=1)
    """Thresholds tried by a recommendation."""

    recommend_rounds: int = Field(default=16, ge=0)
    """Rounds in which half of them are tried, around the best so far; 0: all at once."""

    recommend_guided: float = Field(default=0.8, ge=0, le=1)
    """Share of them that follow the intents; the others explore around the base."""

    recommend_range: float = Field(default=0.2, gt=0)
    """r: the reach of a recommendation in normalised thresholds; 0.5 r is the deviation of tightened and loosened limits."""

    objective_weight: float = Field(default=100.0, ge=0)
    """w_f: what one unit of the objective is worth in a recommendation; under the default method, one of its deviations."""

    barrier_weight: float = Field(default=10_000.0, ge=0)
    """lambda_h: penalty for relaxing a limit that should be tightened."""

    reward_weight: float = Field(default=50.0, ge=0)
    """lambda_r: reward for tightening a limit as asked, and penalty for loosening beyond the allowance."""

    def next_batch(self, at_once: int | None, *, focused: bool) -> int:
        """Return how many designs an iteration proposes; at_once: how many will be evaluated at the same time, if known."""
        return self.batch_size

    if not TYPE_CHECKING:  # mypy knows the fields

        def __new__(cls, /, **values: Any) -> Settings:
            """Return settings of the default method where none is named."""
            return super().__new__(DefaultSettings if cls is Settings else cls)

        def __init__(self, /, **values: Any) -> None:
            self._refuse_foreign(values)
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise InputError(f"settings: {sentence(error)}") from error

    @field_validator("*", mode="before")
    @classmethod
    def _as_stated(cls, value: Any, info: ValidationInfo) -> Any:
        """Read numbers that came as text; a bool is no number."""
        if value is None or cls.model_fields[str(info.field_name)].annotation not in (int, float, int | None):
            return value
        if isinstance(value, bool):
            raise InputError(f"{info.field_name}: expected a number, got {value}")
        return number(value)

    @classmethod
    def default(cls) -> DefaultSettings:
        """Return the settings we recommend."""
        return DefaultSettings()

    @classmethod
    def paper(cls) -> PaperSettings:
        """Return the settings of the paper, to the letter."""
        return PaperSettings()

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> MethodSettings:
        """Build settings from `{preset: default | paper, name: value, ...}`, as a study file states them."""
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise InputError(f"settings: expected a mapping of names to values, got {shown(given)}")
        values = dict(given)
        preset = values.pop("preset", "default")
        if not isinstance(preset, str) or preset not in PRESETS:
            raise InputError(f"settings: preset must be one of {', '.join(PRESETS)}, got {shown(preset)}")
        return PRESETS[preset](**values)

    def to_dict(self) -> dict[str, Any]:
        """Return everything that `from_dict` reads back."""
        return {"preset": self.method, **self.model_dump()}

    def replace(self, /, **changes: Any) -> Self:
        """Return a copy with some values changed, checked like new ones."""
        return type(self)(**{**self.model_dump(), **changes})

    @classmethod
    def _refuse_foreign(cls, values: Mapping[str, Any]) -> None:
        """Refuse settings that only another method has, by name."""
        for name in values:
            if name in cls.model_fields:
                continue
            for other in PRESETS.values():
                if name in other.model_fields:
                    raise InputError(
                        f"settings: {name}: has no effect under the {cls.method} method; remove it, or use the "
                        f"{other.method} method (preset: {other.method}), to which it belongs"
                    )


class DefaultSettings(Settings):
    """Settings of the default method: calibrated surrogates whose constrained problem is solved.

    Examples:
        >>> Settings.default().probability
        0.98
    """

    method: ClassVar[str] = "default"

    initial_evaluations: int | None = Field(default=None, ge=2)
    """Evaluations of the Latin hypercube that starts a study; imported rows count towards it. Where none is stated, 10 and one
    for each variable, 30 at most. A study with a focus starts with 10, or two for each variable, if these are fewer."""

    probability: float = Field(default=0.98, gt=0, lt=1)
    """Least probability of feasibility at which answers aim."""

    noise: Literal["detect", "none", "smooth"] = "detect"
    """What counts as noise. detect: one design is measured twice, and outputs that differ are noisy. none: no evaluation is spent
    on a repeat. smooth: all scatter about a smooth function, also where repeats agree, as that of a mesh."""

    feasible_as: Literal["noise-free", "realisation"] = "noise-free"
    """What limits are about where outputs are noisy: the outputs without noise, or a single measurement."""

    answers_per_batch: int = Field(default=3, ge=0)
    """Of `batch_size` designs, how many are answers to thresholds; the others maximise the expected improvement."""

    batch_thresholds: int = Field(default=12, ge=1)
    """Thresholds that are considered for one batch."""

    library: int = Field(default=256, ge=1)
    """Solved thresholds from which all others are answered where answers must be fast."""

    @property
    def measures_noise(self) -> bool:
        """Whether a design is measured twice to find out whether outputs are noisy."""
        return self.noise == "detect"

    def first_batch(self, variables: int, *, focused: bool) -> int:
        """Return how many evaluations a study begins with: fewer with a focus, which is served by designs chosen one by one."""
        first = self.initial_evaluations or min(MOST_INITIAL, FEWEST_INITIAL + variables)
        return min(first, max(FEWEST_INITIAL, 2 * variables)) if focused else first

    def next_batch(self, at_once: int | None, *, focused: bool) -> int:
        """Return how many designs an iteration proposes: with a focus no more than are evaluated at the same time."""
        return min(self.batch_size, at_once) if focused and at_once is not None else self.batch_size


class PaperSettings(Settings):
    """Settings of the paper's method: a network from thresholds to designs, trained along with the run.

    Examples:
        >>> Settings.paper().replace(beta=1.0).beta
        1.0
    """

    method: ClassVar[str] = "paper"

    initial_evaluations: int = Field(default=30, ge=2)
    """Evaluations of the Latin hypercube that starts a study; imported rows count towards it."""

    recommend_candidates: int = Field(default=50_000, ge=1)
    """Thresholds tried by a recommendation."""

    recommend_rounds: int = Field(default=0, ge=0)
    """Rounds in which half of them are tried, around the best so far; 0: all at once."""

    horizon: int = Field(default=34, ge=1)
    """Iterations over which the learning rate falls and in whose second half monotonic guidance acts; not a budget."""

    inner_steps: int = Field(default=50, ge=1)
    """Training steps of the network in one iteration."""

    thresholds_per_step: int = Field(default=64, ge=4)
    """Thresholds in one training step: a quarter evenly along the diagonal, a quarter at random along it, half Sobol."""

    learning_rate: float = Field(default=1e-3, gt=0)
    """Adam's learning rate at the beginning."""

    least_learning_rate: float = Field(default=1e-5, gt=0)
    """Adam's learning rate at the end of the horizon and after it."""

    beta: float = Field(default=0.5, ge=0)
    """Deviations added to a constrained output, and taken off the objective, in training and selection."""

    alpha: float = Field(default=0.1, ge=0)
    """Weight of the monotonic guidance; 0 leaves it out."""

    candidates: int = Field(default=1000, ge=1)
    """Designs among which a batch is chosen."""

    candidate_source: Literal["network", "random"] = "network"
    """Where these come from: the network at sampled thresholds, or uniform random designs (an ablation of the paper)."""

    similarity: float = Field(default=0.05, ge=0)
    """Least distance in the unit cube between two designs of a batch."""

    refine_radius: float = Field(default=0.25, gt=0)
    """Half-width, in the unit cube, of the region around an answer in which refinement looks for a better one."""

    recommend_tolerance: float = Field(default=1e-4, ge=0)
    """How far a predicted output of the network's design may exceed its limit, in its own unit, and still count as feasible."""

    @property
    def measures_noise(self) -> bool:
        """Whether a design is measured twice to find out whether outputs are noisy; the paper's outputs are not."""
        return False

    def first_batch(self, variables: int, *, focused: bool) -> int:
        """Return how many evaluations a study begins with, imported rows included."""
        return self.initial_evaluations

    @property
    def training_steps(self) -> int:
        """Training steps of the whole horizon."""
        return self.horizon * self.inner_steps


MethodSettings = DefaultSettings | PaperSettings
"""The settings of some method."""

PRESETS: dict[str, type[DefaultSettings] | type[PaperSettings]] = {"default": DefaultSettings, "paper": PaperSettings}
"""The settings of every method, by its name."""
