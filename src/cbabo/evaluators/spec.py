"""The `evaluator:` section of a study file, and the evaluator that it describes."""

from __future__ import annotations

import math
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from cbabo.errors import InputError
from cbabo.evaluators.command import CommandEvaluator, Keep, check_inside
from cbabo.evaluators.function import Evaluate, load_function
from cbabo.evaluators.readings import LARGEST_FILE

Text = Annotated[str, Field(coerce_numbers_to_str=True)]
"""A word that YAML may have read as a number."""

_SHELL_WORDS = ("&&", "||", "|", ";", "&", "<", ">", ">>", "2>", "2>&1")
"""Words that a shell would not pass on to the program."""
_COMMAND_ONLY = (
    "templates",
    "outputs",
    "workdir",
    "keep",
    "allowed_return_codes",
    "retry_return_codes",
    "env",
    "shell",
    "largest_file",
)


class EvaluatorSpec(BaseModel):
    """How the simulator is called: a Python function or a command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    python: str | None = Field(None, description="The simulator as module:function; give this or command.")
    command: str | list[Text] | None = Field(
        None,
        description="The simulator as a command, one line or a list of words, with placeholders such as {x}, "
        "{x:.6e}, {here} and {workdir}; give this or python.",
    )
    templates: dict[str, str] = Field(
        {},
        description="Files written before the command starts: name in the evaluation's directory -> template "
        "with placeholders, relative to the study file.",
    )
    outputs: str = Field(
        "stdout",
        description='Where the command leaves its outputs: "stdout" for name=value lines in what it prints, '
        "or a file in the evaluation's directory (.json: one object; else name=value lines).",
    )
    workdir: str = Field("runs", description="Folder for the evaluations' directories, in that of the study file.")
    keep: Keep = Field(
        "failed", description="Whose directories are kept: those of failed evaluations, always or never."
    )
    timeout: float | None = Field(None, description="Seconds after which an evaluation is ended as failed.")
    retries: int = Field(0, description="How often a failed evaluation is tried again when that may help.")
    allowed_return_codes: tuple[int, ...] = Field((0,), description="Return codes that mean success.")
    retry_return_codes: tuple[int, ...] = Field(
        (), description="Return codes of failures for which trying again may help."
    )
    env: dict[str, Text] = Field({}, description="Environment variables added for the command.")
    shell: bool = Field(False, description="Whether the command is a line for the shell.")
    largest_file: int = Field(
        LARGEST_FILE, gt=0, description="Bytes of outputs that are read at most; more is a failure."
    )

    @field_validator("python")
    @classmethod
    def _names_a_function(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"\s*[^\s:]+\s*:\s*[^\s:]+\s*", value):
            raise ValueError(f"a function must be named as module:function, but {value!r} came")
        return value

    @field_validator("templates", "outputs")
    @classmethod
    def _stays_inside(cls, value: Any) -> Any:
        for name in value if isinstance(value, dict) else [value]:
            check_inside(name)
        return value

    @field_validator("timeout")
    @classmethod
    def _is_a_time(cls, value: float | None) -> float | None:
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"the timeout must be more than 0 s, but is {value:g}; leave it out for no limit")
        return value

    @field_validator("retries")
    @classmethod
    def _is_a_count(cls, value: int) -> int:
        if value < 0:
            raise ValueError(f"the number of retries must be 0 or more, but is {value}")
        return value

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if (self.python is None) == (self.command is None):
            came = "neither" if self.python is None else "both"
            raise ValueError(f"an evaluator must have python or command, but {came} came; give exactly one")
        if self.command is not None:
            self.words()
        else:
            for name in _COMMAND_ONLY:
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} goes with command, but python came; leave it out")
        both = sorted(set(self.allowed_return_codes) & set(self.retry_return_codes))
        if both:
            raise ValueError(f"return code {both[0]} cannot mean both success and a retry; drop it from one list")
        return self

    def words(self) -> tuple[str, ...]:
        """Return the words of the command; a line for the shell stays one word."""
        if self.command is None:
            return ()
        if isinstance(self.command, list):
            words = tuple(self.command)
        elif self.shell:
            words = (self.command,)
        else:
            try:
                words = tuple(shlex.split(self.command, posix=os.name != "nt"))
            except ValueError as error:
                raise ValueError(f"the command {self.command!r} cannot be split into words ({error})") from error
        if not words or not words[0].strip():
            raise ValueError("the command must name a program, but is empty")
        stated = isinstance(self.command, list) or self.shell
        meant = None if stated else next((word for word in words if word in _SHELL_WORDS), None)
        if meant is not None:
            raise ValueError(
                f"the command holds {meant!r}, which only a shell understands; set shell: true, or put the steps into a script"
            )
        return words


@dataclass(frozen=True)
class Simulator:
    """A simulator that can be called, and what its caller sees to."""

    evaluate: Evaluate
    timeout: float | None = None
    """Seconds for one evaluation; None also for a command, which keeps its own time."""
    retries: int = 0


def build_simulator(spec: EvaluatorSpec, directory: Path) -> Simulator:
    """Return the simulator that the section describes, with its paths relative to the directory."""
    timeout = spec.timeout if spec.python is not None else None
    return Simulator(build(spec, directory), timeout, spec.retries)


def build(spec: EvaluatorSpec, directory: Path) -> Evaluate:
    """Return the evaluator that the section describes, with its paths relative to the directory."""
    if spec.python is not None:
        return load_function(spec.python, directory)
    templates = {name: directory / path for name, path in spec.templates.items()}
    for path in templates.values():
        if not path.is_file():
            raise InputError(f"the template {path} is not there; put it there or correct its name")
    return CommandEvaluator(
        command=spec.words(),
        workdir=directory / spec.workdir,
        directory=directory,
        templates=templates,
        outputs=spec.outputs,
        keep=spec.keep,
        timeout=spec.timeout,
        allowed_return_codes=spec.allowed_return_codes,
        retry_return_codes=spec.retry_return_codes,
        env=spec.env,
        shell=spec.shell,
        largest_file=spec.largest_file,
    )
