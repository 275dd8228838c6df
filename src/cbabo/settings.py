"""Every hyperparameter of the method, with its meaning. Frozen, and free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from cbabo.errors import InputError, shown
from cbabo.notation import number, sentence

PRESETS = ("default", "paper")


class Settings(BaseModel):
    """How a study chooses its evaluations: `Settings.default()` or `Settings.paper()`, with what differs replaced."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    initial_evaluations: int = Field(default=30, ge=2)
    """Evaluations of the Latin hypercube that starts a study; imported rows count towards it."""

    batch_size: int = Field(default=5, ge=1)
    """Evaluations proposed by one iteration."""

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
        return cls()

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
