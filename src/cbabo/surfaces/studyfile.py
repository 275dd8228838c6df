"""The one YAML file of a study: `problem:`, `evaluator:` and `study:`."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from sqlalchemy.engine import URL, make_url

from cbabo.domain.convergence import read_share
from cbabo.domain.focus import Focus
from cbabo.domain.notation import parse_yaml, read_yaml, sentence
from cbabo.domain.problem import Problem, require_problem
from cbabo.errors import InputError, StudyError, shown
from cbabo.evaluators.spec import EvaluatorSpec, Simulator, build_simulator
from cbabo.methods.settings import PRESETS, MethodSettings, Settings
from cbabo.storage.urls import hide_passwords, read_url
from cbabo.study.amending import named_differences
from cbabo.study.study import Study

_LOG = logging.getLogger(__name__)


class StudySection(BaseModel):
    """Where the study is stored and how it is run."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    storage: str | None = None
    """Database URL; a relative SQLite path is relative to this file; `sqlite:///NAME.db` beside it if left out."""
    name: str | None = None
    """Name of the study; the problem's name if left out."""
    seed: int = Field(default=0, ge=0)
    """Every random decision comes from this number."""
    settings: dict[str, Any] = {}
    """`preset: default` or `preset: paper`, and single settings that differ from it."""
    focus: list[dict[str, float]] | None = None
    """Thresholds under discussion, one mapping each, with an optional `weight` (1 if left out); `[]` means the whole
    box; if left out, the study keeps what it has, which is the whole box at first."""

    budget: int | None = Field(default=None, ge=0)
    """Evaluations in all, for `cbabo run` without --budget; 200 if left out."""
    until: float | str | None = None
    """End a run before its budget is spent when the answers have converged to this share of the span, as `0.5%` or 0.005."""

    @field_validator("until")
    @classmethod
    def _is_share(cls, value: float | str | None) -> float | None:
        return None if value is None else read_share("study.until", value)

    @field_validator("storage")
    @classmethod
    def _is_lasting(cls, value: str | None) -> str | None:
        if value is not None:
            lasting_url(value)
        return value

    @field_validator("seed", "budget", mode="before")
    @classmethod
    def _is_whole(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool):
            raise InputError(f"study.{info.field_name}: expected a whole number from 0 on, got {value}")
        return value

    @field_validator("settings", mode="before")
    @classmethod
    def _may_be_empty(cls, value: Any) -> Any:
        return _section("study.settings", value)


class _StudyFile(BaseModel):
    """A study file of cbabo: the problem, how to call the simulator, and the study."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, title="cbabo study file")
    problem: Problem
    """Variables, objective and limits."""
    evaluator: EvaluatorSpec | None = None
    """How the simulator is called; may be left out where designs are evaluated by hand."""
    study: StudySection = StudySection()

    @field_validator("study", mode="before")
    @classmethod
    def _may_be_empty(cls, value: Any) -> Any:
        return _section("study", value)

    @field_validator("evaluator", mode="before")
    @classmethod
    def _may_be_left_out(cls, value: Any) -> Any:
        return None if value is None else _section("evaluator", value)


@dataclass(frozen=True)
class StudyFile:
    """A study file, read and checked."""

    path: Path
    problem: Problem
    evaluator: EvaluatorSpec | None
    study: StudySection
    settings: MethodSettings

    @classmethod
    def read(cls, path: str | Path, changes: Sequence[str] = ()) -> StudyFile:
        """Read a file; `changes` such as "study.settings.batch_size=4" are applied before it is checked."""
        path = Path(path)
        content = read_yaml(path)
        for change in changes:
            _apply(content, change)
        require_problem(path, content)
        try:
            problem = Problem.from_dict(content["problem"])
            rest = _StudyFile.model_validate({**content, "problem": problem})
            settings = Settings.from_dict(rest.study.settings)
            _check_name(rest.study.name or problem.name)
            _check_focus(problem, rest.study.focus or [])
        except ValidationError as error:
            raise InputError(f"{path}: {sentence(error)}") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        return cls(path, problem, rest.evaluator, rest.study, settings)

    @property
    def storage(self) -> str:
        """The database URL, relative SQLite paths resolved against the file's folder."""
        folder = self.path.parent.absolute()
        if self.study.storage is None:
            file = re.sub(r"[^\w.-]+", "_", self.name)
            url = URL.create("sqlite", database=str(folder / f"{file}.db"))
        else:
            url = make_url(self.study.storage)
            if url.get_backend_name() == "sqlite" and not str(url.database).startswith("file:"):
                url = url.set(database=str(folder / Path(str(url.database)).expanduser()))
        return url.render_as_string(hide_password=False)

    @property
    def name(self) -> str:
        """The study's name."""
        return self.study.name or self.problem.name

    def create(self) -> Study:
        """Create the study, or open it if it exists."""
        stated = self.study
        return Study.create(
            self.problem, self.storage, self.name, stated.seed, self.settings, focus=stated.focus, exist_ok=True
        )

    def stored(self) -> Study:
        """Open the study, which must have been started, whatever the file states now."""
        try:
            return Study.open(self.storage, self.name)
        except (InputError, StudyError) as error:
            raise InputError(
                f"{self.path}: this study was not started yet; start it by: cbabo run {self.path}"
            ) from error

    def open(self) -> Study:
        """Open the study, which must have been started; say so where the file has changed since."""
        study = self.stored()
        for what in ("problem", "seed", "settings"):
            stated = self.study.seed if what == "seed" else getattr(self, what)
            if stated != getattr(study, what):
                how = "give the study another name to start anew"
                if what == "problem":
                    found = named_differences(study.problem, self.problem)
                    how = f"{found}; change it by: cbabo amend {self.path}, or {how}"
                _LOG.warning(
                    "%s states another %s than the study was created with, which still holds; %s", self.path, what, how
                )
        return study

    def simulator(self) -> Simulator:
        """Return the simulator that the file describes."""
        if self.evaluator is None:
            raise InputError(f"{self.path}: expected an 'evaluator:' section with python or command; add it")
        try:
            return build_simulator(self.evaluator, self.path.parent.absolute())
        except InputError as error:
            raise InputError(f"{self.path}: evaluator: {error}") from error


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a study file."""
    schema = _StudyFile.model_json_schema()
    stated = []
    for method, kind in PRESETS.items():
        settings = kind.model_json_schema()
        schema["$defs"] |= settings.pop("$defs", {})
        preset: dict[str, Any] = {"const": method, "description": "The method that these settings belong to."}
        settings["properties"] = {"preset": preset, **settings["properties"]}
        if method == "default":
            preset["default"] = "default"
        else:
            settings["required"] = ["preset"]
        schema["$defs"][kind.__name__] = settings
        stated.append({"$ref": f"#/$defs/{kind.__name__}"})
    section = schema["$defs"]["StudySection"]["properties"]
    section["settings"] = {"anyOf": [*stated, {"type": "null"}], "description": section["settings"]["description"]}
    schema["properties"]["study"] = {
        "anyOf": [{"$ref": "#/$defs/StudySection"}, {"type": "null"}],
        "description": schema["$defs"]["StudySection"]["description"],
    }
    for definition in [schema, *schema["$defs"].values()]:
        # Docstrings end with examples in Python, which say nothing to an editor of YAML.
        if "description" in definition:
            definition["description"] = definition["description"].partition("\n\nExamples:")[0]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def lasting_url(url: str) -> URL:
    """Read a database URL, refusing also what would be forgotten when the command ends."""
    parsed = read_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise InputError(
            f'storage: expected a URL such as "sqlite:///study.db", got {shown(hide_passwords(url))}, '
            "a database in memory that would be lost"
        )
    return parsed


def _section(name: str, value: Any) -> Any:
    """Return a section as a mapping; one whose lines are all commented out is empty."""
    if value is not None and not isinstance(value, Mapping | BaseModel):
        raise InputError(f"{name}: expected a mapping of keys to values, got {shown(value)}")
    return {} if value is None else value


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > 255 or "::" in name or not name.isprintable():
        raise InputError(f"study.name: expected a text of 1 to 255 characters without '::', got {shown(name)}")


def _check_focus(problem: Problem, rows: Sequence[Mapping[str, float]]) -> None:
    for number, row in enumerate(rows):
        try:
            Focus.of(problem.box, row)
        except InputError as error:
            raise InputError(f"study.focus.{number}: {str(error).removeprefix('focus: ')}") from error


def _apply(content: dict[str, Any], change: str) -> None:
    """Change one value, named by its path through the file, as in "problem.constraints.0.low=2"."""
    key, equals, text = change.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise InputError(f"--set: expected path=value such as study.seed=1, got {shown(change)}")
    try:
        value = parse_yaml(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"--set: the value of {key!r} is not valid YAML, got {shown(text)}") from error
    place: Any = content
    for part in parts[:-1]:
        place = _inside(place, part, key)
    if isinstance(place, dict):
        place[parts[-1]] = value
    elif isinstance(place, list) and _is_index(parts[-1], place):
        place[int(parts[-1])] = value
    else:
        raise _no_place(key)


def _inside(place: Any, part: str, key: str) -> Any:
    if isinstance(place, dict):
        if place.get(part) is None:
            place[part] = {}
        return place[part]
    if isinstance(place, list) and _is_index(part, place):
        return place[int(part)]
    raise _no_place(key)


def _is_index(part: str, place: list[Any]) -> bool:
    return part.isascii() and part.isdigit() and int(part) < len(place)


def _no_place(key: str) -> InputError:
    return InputError(f"--set: there is no place {key!r} in the file; check the path (lists count from 0)")
