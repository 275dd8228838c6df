"""Every hyperparameter of the method, with its meaning. Frozen, and free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from cbabo.domain.notation import number, sentence
from cbabo.errors import InputError, shown

PRESETS = ("default", "paper")


class Settings(BaseModel):
    """How a study chooses its evaluations: `Settings.default()` or `Settings.paper()`, with what differs replaced."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    initial_evaluations: int = Field(default=30, ge=2)
    """Evaluations of the Latin hypercube that starts a study; imported rows count towards it."""

    batch_size: int = Field(default=5, ge=1)
    """Evaluations proposed by one iteration."""

    horizon: int = Field(default=34, ge=1)
    """Iterations over which the learning rate falls and in whose second half monotonic guidance acts; not a budget."""

    inner_steps: int = Field(default=50, ge=1)
    """Training steps of the network in one iteration."""

    thresholds_per_step: int = Field(default=64, ge=4)
    """Thresholds in one training step: a quarter evenly along the diagonal, a quarter at random along it, half Sobol."""

    hidden_layers: int = Field(default=3, ge=1)
    """Hidden layers of the network."""

    hidden_width: int = Field(default=256, ge=1)
    """Neurons of each hidden layer."""

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

    candidate_source: Literal["network", "random", "solver"] = "solver"
    """Where a batch comes from: the network at sampled thresholds, designs at random (an ablation), or the solver."""

    surrogates: Literal["plain", "warped"] = "warped"
    """What is fitted: BoTorch's model of the raw outputs; or of outputs warped as likelihood says, nearly without noise."""

    answer: Literal["network", "solver"] = "solver"
    """What answers a threshold: the network alone, or the surrogates' problem solved, with measured designs as the floor."""

    probability: float = Field(default=0.98, gt=0, lt=1)
    """Least probability of feasibility at which the solver's answers aim."""

    answers_per_batch: int = Field(default=3, ge=0)
    """Of `batch_size` designs from the solver, how many are answers; the others look for something better elsewhere."""

    batch_thresholds: int = Field(default=12, ge=1)
    """Thresholds that the solver considers for one batch."""

    library: int = Field(default=256, ge=1)
    """Solved thresholds from which all others are answered where answers must be fast."""

    similarity: float = Field(default=0.05, ge=0)
    """Least distance in the unit cube between two designs of a batch."""

    refine_radius: float = Field(default=0.25, gt=0)
    """Half-width, in the unit cube, of the region around an answer in which refinement looks for a better one."""

    recommend_candidates: int = Field(default=2000, ge=1)
    """Thresholds tried by a recommendation."""

    recommend_rounds: int = Field(default=16, ge=0)
    """Rounds in which half of them are tried, around the best so far; 0: all at once."""

    recommend_guided: float = Field(default=0.8, ge=0, le=1)
    """Share of them that follow the intents; the others explore around the base."""

    recommend_range: float = Field(default=0.2, gt=0)
    """r: the reach of a recommendation in normalised thresholds; 0.5 r is the deviation of tightened and loosened limits."""

    recommend_tolerance: float = Field(default=1e-4, ge=0)
    """How far a predicted output of the network's design may exceed its limit, in its own unit, and still count as feasible."""

    objective_weight: float = Field(default=100.0, ge=0)
    """w_f: what one unit of the objective is worth in a recommendation; where the solver answers, one of its deviations."""

    barrier_weight: float = Field(default=10_000.0, ge=0)
    """lambda_h: penalty for relaxing a limit that should be tightened or locked."""

    reward_weight: float = Field(default=50.0, ge=0)
    """lambda_r: reward for tightening a limit as asked, and penalty for loosening beyond the allowance."""

    @property
    def training_steps(self) -> int:
        """Training steps of the whole horizon."""
        return self.horizon * self.inner_steps

    if not TYPE_CHECKING:  # mypy knows the fields

        def __init__(self, /, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise InputError(f"settings: {sentence(error)}") from error

    @field_validator("*", mode="before")
    @classmethod
    def _as_stated(cls, value: Any, info: ValidationInfo) -> Any:
        """Read numbers that came as text; a bool is no number."""
        if cls.model_fields[str(info.field_name)].annotation not in (int, float):
            return value
        if isinstance(value, bool):
            raise InputError(f"{info.field_name}: expected a number, got {value}")
        return number(value)

    @classmethod
    def default(cls) -> Settings:
        """Return the settings we recommend."""
        return cls()

    @classmethod
    def paper(cls) -> Settings:
        """Return the settings of the paper, to the letter."""
        network = cls(candidate_source="network", surrogates="plain", answer="network")
        return network.replace(recommend_candidates=50_000, recommend_rounds=0)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Settings:
        """Build settings from `{preset: default | paper, name: value, ...}`, as a study file states them."""
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise InputError(f"settings: expected a mapping of names to values, got {shown(given)}")
        values = dict(given)
        preset = values.pop("preset", "default")
        if preset not in PRESETS:
            raise InputError(f"settings: preset must be one of {', '.join(PRESETS)}, got {shown(preset)}")
        base: Settings = getattr(cls, preset)()
        return base.replace(**values)

    def replace(self, /, **changes: Any) -> Settings:
        """Return a copy with some values changed, checked like new ones."""
        return Settings(**{**self.model_dump(), **changes})
