"""Questions to a model that are not the study's own: other objectives, further limits, scatter of the variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cbabo.errors import InputError, shown
from cbabo.surfaces.cli.options import pairs

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer
    from cbabo.model import Model

ScatterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scatter", metavar="VARIABLE=STD", help="Standard deviation with which a variable is made (normal)."
    ),
]
ToleranceOption = Annotated[
    list[str] | None,
    typer.Option("--tolerance", metavar="VARIABLE=WIDTH", help="Half width within which a variable is made (uniform)."),
]


@dataclass(frozen=True)
class Question:
    """What a command asks."""

    limits: Mapping[str, float | tuple[str, float]]
    relative: Mapping[str, float]
    """Limits as shares of a reference."""
    objective: str | None
    scatter: Mapping[str, float] | None
    tolerance: Mapping[str, float] | None
    reference: int | None

    @classmethod
    def read(
        cls,
        at: list[str] | None,
        objective: str | None,
        scatter: list[str] | None,
        tolerance: list[str] | None,
        reference: int | None,
    ) -> Question:
        """Read the options of a command: limits as stress=150, elements>=300 or mass=-5%."""
        limits: dict[str, float | tuple[str, float]] = {}
        relative: dict[str, float] = {}
        for name, text in pairs(at, "--at").items():
            plain, sense = (name[:-1].strip(), f"{name[-1]}=") if name[-1] in "<>" else (name, None)
            if text.endswith("%"):
                relative[plain] = 0.01 * number("--at", plain, text[:-1])
            else:
                value = number("--at", plain, text)
                limits[plain] = value if sense is None else (sense, value)
        if bool(relative) != (reference is not None):
            raise InputError(
                "predict: limits such as mass=-5% and --reference ID belong together; give both or neither"
            )
        read = [numbers(words, what) for words, what in ((scatter, "--scatter"), (tolerance, "--tolerance"))]
        return cls(limits, relative, objective, read[0], read[1], reference)

    @property
    def is_special(self) -> bool:
        """Whether something is asked that is not just the study's own limits."""
        senses = any(isinstance(limit, tuple) for limit in self.limits.values())
        return senses or any(v is not None for v in (self.objective, self.scatter, self.tolerance, self.reference))

    def answer(self, model: Model, probability: float | None) -> Answer:
        """Ask a model."""
        limits = dict(self.limits)
        if self.reference is not None:
            row = next((row for row in model.evaluations.complete if row.id == self.reference), None)
            if row is None:
                raise InputError(f"--reference: there is no measured evaluation {self.reference}")
            limits |= model.relative(row.point, self.relative)
        return model.predict(
            limits,
            objective=self.objective,
            probability=probability,
            scatter=self.scatter,
            tolerance=self.tolerance,
        )


def numbers(words: list[str] | None, what: str) -> dict[str, float] | None:
    """Read numbers by name; None where nothing was stated."""
    return {name: number(what, name, text) for name, text in pairs(words, what).items()} if words else None


def number(what: str, name: str, text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what}: {name} must be a number, got {shown(text)}") from None
