"""A problem as an engineer states it: variables, one objective, constraints whose limits may move."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from cbabo.display.problems import problem_html
from cbabo.domain.categorical import Categorical
from cbabo.domain.constraints import Constraint, ThresholdBox
from cbabo.domain.expression import Expression, parse_relation
from cbabo.domain.formulas import compile_derived, compute, expanded_derived, read_derived, read_relations
from cbabo.domain.labels import check_name, check_unit
from cbabo.domain.notation import (
    listed,
    misspelt,
    parse_constraint,
    parse_objective,
    read_ranges,
    read_yaml,
    sentence,
    similar,
)
from cbabo.domain.parts import Required, count_parts, part_name, whole_name
from cbabo.domain.region import Region, region_of
from cbabo.domain.space import AnyVariable, Discrete, Integer, Real, Space, Variable
from cbabo.errors import InputError, shown

VALID = (-1e150, 1e150)
"""Where an output must lie to count as measured, unless the problem states a range: beyond, its square is not finite."""
RESERVED = ("id", "state", "kind", "failure", "cause", "started", "seconds", "worker", "excluded")
"""Columns of a study's table of evaluations; no variable or output may be called so."""


@dataclass(frozen=True)
class Objective:
    """The output to be minimised or maximised.

    Examples:
        >>> Objective("range", unit="km", direction="maximize").sign
        -1.0
    """

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    name: str
    """Name of the output."""
    unit: str = field(default="", kw_only=True)
    """Unit of the output, for display only."""
    direction: Literal["minimize", "maximize"] = field(default="minimize", kw_only=True)
    """Whether less or more of it is better."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", check_name("objective", self.name))
        object.__setattr__(self, "unit", check_unit(f"objective {self.name!r}", self.unit))
        if not isinstance(self.direction, str) or self.direction not in ("minimize", "maximize"):
            raise InputError(
                f"objective {self.name!r}: direction must be 'minimize' or 'maximize', got {shown(self.direction)}"
            )

    @property
    def sign(self) -> float:
        """+1 to minimise, -1 to maximise: sign * objective is what gets smaller."""
        return 1.0 if self.direction == "minimize" else -1.0


def _constraint(value: Any) -> Any:
    """Read a short string; from_dict leaves the rest to pydantic."""
    if isinstance(value, Mapping) and value.get("sense") in ("=", "=="):
        raise InputError(
            f"constraint {shown(value.get('name'))}: equality constraints are not supported; "
            "state two limits, one <= and one >="
        )
    return Constraint(**parse_constraint(value)) if isinstance(value, str) else value


def _objective(value: Any) -> Any:
    """Read a short string; from_dict leaves the rest to pydantic."""
    if isinstance(value, list | tuple):
        raise InputError(
            f"objective: expected one objective, got a list of {len(value)}; several objectives are not supported"
        )
    return Objective(**parse_objective(value)) if isinstance(value, str) else value


def _variables(value: Any) -> Any:
    return listed("variables", value)


def _constraints(value: Any) -> Any:
    return listed("constraints", value)


@dataclass(frozen=True, init=False)
class Problem:
    """One objective and constraints over named variables; checks itself when made.

    Examples:
        >>> from cbabo import Constraint, Objective, Problem, Real
        >>> problem = Problem(
        ...     name="bar",
        ...     variables=[Real("width", 1.0, 3.0)],
        ...     objective=Objective("mass", unit="kg"),
        ...     constraints=[Constraint("stress", "<=", low=1.0, high=9.0), "cost <= 50"],
        ... )
        >>> problem.outputs
        ('mass', 'stress', 'cost')
        >>> problem.box.nominal
        {'stress': 5.0}
    """

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    name: str
    """Name of the problem."""
    variables: Annotated[tuple[Variable, ...], BeforeValidator(_variables)]
    """What a design consists of."""
    objective: Annotated[Objective, BeforeValidator(_objective, json_schema_input_type=str | Objective)]
    """The output to be minimised or maximised."""
    constraints: Annotated[
        tuple[Annotated[Constraint, BeforeValidator(_constraint, json_schema_input_type=str | Constraint)], ...],
        BeforeValidator(_constraints),
    ]
    """The limits on outputs; at least one must be movable."""
    valid: Annotated[dict[str, tuple[float, float]], BeforeValidator(read_ranges)] = field(
        default_factory=dict, hash=False
    )
    """Ranges of outputs; an output outside its range counts as a failure of the design. From -1e150 to 1e150 if left out."""
    relations: Annotated[tuple[str, ...], BeforeValidator(read_relations)] = ()
    """Known relations between variables, as inner <= outer - 2; no design that breaks one is ever proposed."""
    derived: Annotated[dict[str, str], BeforeValidator(read_derived)] = field(default_factory=dict, hash=False)
    """Outputs that are computed from variables and outputs, as mass: 7.85e-6*width*height; no simulator returns them."""

    def __init__(
        self,
        name: str,
        variables: Sequence[AnyVariable],
        objective: Objective | str,
        constraints: Sequence[Constraint | str],
        valid: Mapping[str, tuple[float, float]] | None = None,
        relations: Sequence[str] | None = None,
        derived: Mapping[str, str] | None = None,
    ) -> None:
        self.__dict__.update(
            name=name,
            variables=tuple(_variables(variables)),
            objective=_objective(objective),
            constraints=tuple(_constraint(c) for c in _constraints(constraints)),
            valid=read_ranges(valid),
            relations=read_relations(relations),
            derived=read_derived(derived),
        )
        self.__post_init__()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InputError(f"problem: the name must be a non-empty printable string, got {shown(self.name)}")
        self.__dict__.update(name=str(self.name))
        if not self.variables:
            raise InputError("problem: at least one variable is needed, got none")
        _refuse_others("variables", self.variables, (Real, Integer, Discrete, Categorical))
        _refuse_others("objective", [self.objective], (Objective,))
        _refuse_others("constraints", self.constraints, (Constraint,))
        _refuse_duplicates("variable", [v.name for v in self.variables])
        _refuse_duplicates("constraint", [c.name for c in self.constraints])
        if not self.box.movable:
            raise InputError("constraints: at least one limit must be movable (low and high), got none")
        taken = {v.name for v in self.variables}
        assert self.formulas is not None  # Compiled, so that a wrong formula is refused.
        for name in (*self.outputs, *(c.name for c in self.constraints)):
            if name in taken:
                raise InputError(f"problem: {name!r} is both a variable and an output; rename one of them")
        for name in (*taken, *self.outputs):
            if name in RESERVED:
                raise InputError(f"problem: the name {name!r} is reserved for the table of evaluations; choose another")

        for name in self.valid:
            if name not in self.outputs:
                raise InputError(f"valid: unknown output {shown(name)}; expected {', '.join(self.outputs)}")
        if not self.simulated:
            raise InputError(
                "problem: the objective and all limits are formulas of variables; at least one output must be simulated"
            )
        assert self.region is None or len(self.region.anchors)  # Sought, so that a problem without a design is refused.

    @cached_property
    def formulas(self) -> dict[str, Expression]:
        """The derived outputs' formulas, of variables and of what the simulator returns."""
        labelled = [v.name for v in self.variables if isinstance(v, Categorical)]
        return compile_derived(self.derived, self.space.names, labelled)

    @cached_property
    def region(self) -> Region | None:
        """The designs that obey the relations, and at which formulas of variables are finite; None: all designs do."""
        names = self.space.names
        expressions = [e for text in self.relations for e in parse_relation("relations", text, names)]
        for name in (v.name for v in self.variables if isinstance(v, Categorical)):
            if any(name in e.names for e in expressions):
                raise InputError(f"relations: {name!r} has labels, not numbers; state relations between numbers")
        finite = [f for f in self.formulas.values() if set(f.names) <= set(names)]
        if not expressions and not finite:
            return None
        return region_of(self.variables, self.relations, tuple(expressions), tuple(finite))

    def completed(
        self, point: Mapping[str, float], outputs: Mapping[str, float]
    ) -> tuple[dict[str, float], str | None]:
        """Return what was measured at a point with its derived outputs, and a sentence if one of these has no value."""
        if not self.derived:
            return dict(outputs), None
        found, reason = compute(self.formulas, point, outputs)
        return {**outputs, **found}, reason

    def invalid(self, outputs: Mapping[str, float]) -> str | None:
        """Say which output of an evaluation is out of its valid range, if one is: such an evaluation counts as failed."""
        for name in self.outputs:
            low, high = self.valid.get(name, VALID)
            value = outputs.get(name)
            if value is not None and not low <= value <= high:
                return (
                    f"the output {name!r} is out of range: {value:g} is not between {low:g} and {high:g}; "
                    "if such a value is right, state its range under valid"
                )
        return None

    @cached_property
    def space(self) -> Space:
        """The variables and the unit cube."""
        return Space(self.variables)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Every output, the objective first, each once: limited ones, derived ones, and what these are computed from."""
        limited = (name for c in self.constraints for name in c.output_names)
        variables = {v.name for v in self.variables}
        needed = (name for formula in self.formulas.values() for name in formula.names if name not in variables)
        return tuple(dict.fromkeys([self.objective.name, *limited, *self.derived, *needed]))

    @cached_property
    def simulated(self) -> Required:
        """Every raw output that the simulator must return, in the order of `outputs`."""
        names = [name for name in self.outputs if name not in self.derived]
        return Required(names, None if self.objective.name in self.derived else self.objective.name)

    @cached_property
    def learned(self) -> tuple[int, ...]:
        """Where the simulated outputs are among `outputs`: surrogates are fitted to these."""
        return tuple(j for j, name in enumerate(self.outputs) if name not in self.derived)

    @cached_property
    def exact(self) -> tuple[int, ...]:
        """Where the outputs are that are formulas of variables alone, and so known everywhere."""
        variables = {v.name for v in self.variables}
        return tuple(
            j for j, n in enumerate(self.outputs) if n in self.derived and set(self.formulas[n].names) <= variables
        )

    @cached_property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """The outputs that have parts, "stress" for "stress[0]", "stress[1]" and so on: where these are among `outputs`."""
        wholes = dict.fromkeys(whole_name(name) for name in self.outputs[1:])
        counts = {whole: count_parts(whole, self.outputs) for whole in wholes if whole is not None}
        index = {name: j for j, name in enumerate(self.outputs)}
        return {
            whole: tuple(index[part_name(whole, i)] for i in range(count)) for whole, count in counts.items() if count
        }

    @cached_property
    def reported_outputs(self) -> tuple[str, ...]:
        """What answers state: every output, one with parts under its own name, and after these all parts."""
        whole = {self.outputs[j]: name for name, at in self.parts.items() for j in at}
        return tuple(dict.fromkeys([*(whole.get(name, name) for name in self.outputs), *whole]))

    def expanded(self, counts: Mapping[str, int | None]) -> Problem:
        """Return the problem with the parts of outputs in place of these: a limit on an output is one on each of its parts.

        counts: the number of parts of outputs; None for an output that is one number.

        Examples:
            >>> from cbabo import Constraint, Objective, Problem, Real
            >>> problem = Problem("bar", [Real("width", 1, 3)], Objective("mass"), [Constraint("stress", low=1, high=9)])
            >>> problem.expanded({"stress": 2}).outputs
            ('mass', 'stress[0]', 'stress[1]')
        """
        names = {whole: [part_name(whole, i) for i in range(count)] for whole, count in counts.items() if count}
        if not names:
            return self
        derived, of_formulas = expanded_derived(self.derived, names, [self.objective.name])
        names |= of_formulas
        constraints = [
            replace(c, outputs=[part for name in c.output_names for part in names.get(name, [name])])
            for c in self.constraints
        ]
        valid = {part: ends for name, ends in self.valid.items() for part in names.get(name, [name])}
        return Problem(self.name, self.variables, self.objective, constraints, valid, self.relations, derived)

    @cached_property
    def box(self) -> ThresholdBox:
        """The limits and the box in which they may move."""
        return ThresholdBox(self.constraints, self.outputs)

    @cached_property
    def digest(self) -> str:
        """A hash of everything that the problem states."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def _repr_html_(self) -> str:
        """Return tables for a notebook."""
        return problem_html(self)

    def to_dict(self) -> dict[str, Any]:
        """State the problem in plain values, defaults left out; `from_dict` reads it back."""
        stated: dict[str, Any] = {
            "name": self.name,
            "variables": [_plain(v) for v in self.variables],
            "objective": _plain(self.objective),
            "constraints": [_plain(c) for c in self.constraints],
        }
        if self.valid:
            stated["valid"] = {name: list(ends) for name, ends in self.valid.items()}
        if self.relations:
            stated["relations"] = list(self.relations)
        return stated | ({"derived": dict(self.derived)} if self.derived else {})

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any]) -> Problem:
        """Read a problem from plain values."""
        if not isinstance(stated, Mapping):
            raise InputError(
                f"problem: expected a mapping of name, variables, objective and constraints, got {shown(stated)}"
            )
        if "objectives" in stated:
            raise InputError("objectives: several objectives are not supported; state one as 'objective'")
        try:
            return _ADAPTER.validate_python(dict(stated))
        except ValidationError as error:
            raise InputError(sentence(error, "problem")) from error

    @classmethod
    def from_file(cls, path: str | Path) -> Problem:
        """Read the `problem:` section of a YAML file."""
        content = read_yaml(path)
        require_problem(path, content)
        try:
            return cls.from_dict(content["problem"])
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def to_yaml(self) -> str:
        """Write the problem as the `problem:` section of a YAML file."""
        return yaml.safe_dump({"problem": self.to_dict()}, sort_keys=False, allow_unicode=True)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the `problem:` section."""
        return _ADAPTER.json_schema()


def require_problem(path: str | Path, content: Mapping[Any, Any]) -> None:
    """Refuse a file without a `problem:` section, and name the key that was meant for it."""
    if "problem" in content:
        return
    for key in content:
        if similar(str(key), ["problem"]):
            raise InputError(f"{path}: {misspelt(shown(key)[1:-1], 'problem')}")
    raise InputError(
        f"{path}: expected a 'problem:' section, got {', '.join(map(shown, content)) or 'nothing'}; "
        "cbabo init writes an example"
    )


_ADAPTER: TypeAdapter[Problem] = TypeAdapter(Problem)


def _plain(value: AnyVariable | Objective | Constraint) -> dict[str, Any]:
    """Return the fields that differ from their defaults, and what tells one kind from another; lists for tuples."""
    plain: dict[str, Any] = {}
    for item in fields(value):
        content = getattr(value, item.name)
        default = None if item.default is MISSING else item.default
        if content == default and item.name not in ("type", "sense"):
            continue
        if item.name == "outputs" and content == (value.name,):
            continue
        plain[item.name] = list(content) if isinstance(content, tuple) else content
    return plain


def _refuse_others(where: str, values: Sequence[object], kinds: tuple[type, ...]) -> None:
    for value in values:
        if not isinstance(value, kinds):
            raise InputError(f"{where}: expected {' or '.join(k.__name__ for k in kinds)}, got {shown(value)}")


def _refuse_duplicates(kind: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{kind} {name!r} is stated {names.count(name)} times; names must be different")
