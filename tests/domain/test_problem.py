"""A problem as an engineer states it."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from cbabo.domain.constraints import Constraint
from cbabo.domain.problem import RESERVED, Objective, Problem
from cbabo.domain.space import Discrete, Integer, Real
from cbabo.errors import InputError

NAN, INF = float("nan"), float("inf")


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    return str(caught.value)


def from_text(folder: Path, text: str) -> Problem:
    path = folder / "problem.yaml"
    path.write_text(text, encoding="utf-8")
    return Problem.from_file(path)


TRUSS = Problem(
    name="truss",
    variables=[
        Real("x1", 0.0, 1.0),
        Real("load", 1e-3, 1e6, log=True, unit="N"),
        Integer("teeth", 17, 28),
        Discrete("gauge", [0.345, 0.192], unit="in"),
    ],
    objective=Objective("volume", unit="cm3"),
    constraints=[
        Constraint("stress", "<=", low=0.0, high=10.0, unit="kN/cm2", nominal=2.0),
        Constraint("frequency", ">=", low=20.0, high=60.0),
        Constraint("mass", "<=", limit=12.0),
        Constraint("frequency_max", "<=", low=80.0, high=99.0, outputs="frequency"),
        Constraint("members", "<=", low=1.0, high=3.0, outputs=["s1", "s2", "s3"]),
    ],
)

TRUSS_YAML = """
problem:
  name: truss
  variables:
    - {name: x1, type: real, low: 0, high: 1}
    - {name: load, type: real, low: 1e-3, high: 1e6, log: true, unit: N}
    - {name: teeth, type: integer, low: 17, high: 28}
    - {name: gauge, type: discrete, values: [0.192, 0.345], unit: in}
  objective: minimize volume [cm3]
  constraints:
    - {name: stress, low: 0, high: 10, unit: kN/cm2, nominal: 2}
    - frequency >= [20..60]
    - mass <= 12
    - {name: frequency_max, sense: "<=", low: 80, high: 99, outputs: frequency}
    - name: members
      low: 1
      high: 3
      outputs: [s1, s2, s3]
"""


# The same problem in every notation


def test_python_and_yaml_state_the_same_problem(tmp_path: Path) -> None:
    problem = from_text(tmp_path, TRUSS_YAML)
    assert problem == TRUSS
    assert problem.digest == TRUSS.digest
    assert hash(problem) == hash(TRUSS)


def test_short_strings_state_the_same_in_python_and_yaml(tmp_path: Path) -> None:
    short = ["stress <= [0..10] kN/cm2", "mass <= 12", "strain >= [-1e-3..2.5e-3]", "gap >= -0.5 mm"]
    stated = Problem(
        "short",
        [Real("x", 0, 1)],
        Objective("range", unit="km", direction="maximize"),
        [
            Constraint("stress", "<=", low=0, high=10, unit="kN/cm2"),
            Constraint("mass", "<=", limit=12),
            Constraint("strain", ">=", low=-1e-3, high=2.5e-3),
            Constraint("gap", ">=", limit=-0.5, unit="mm"),
        ],
    )
    variables = [{"name": "x", "type": "real", "low": 0, "high": 1}]
    plain = {"name": "short", "variables": variables, "objective": "maximize range [km]", "constraints": short}
    assert Problem("short", [Real("x", 0, 1)], "maximize range [km]", short) == stated
    assert Problem.from_dict(plain) == stated
    assert from_text(tmp_path, yaml.safe_dump({"problem": plain})) == stated


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "1.0e-3", "0.001", ".001", "'1e-3'", "+1e-3"])
def test_numbers_that_pyyaml_reads_as_text_are_numbers(tmp_path: Path, text: str) -> None:
    problem = from_text(
        tmp_path,
        f"""
problem:
  name: p
  variables:
    - {{name: x, type: real, low: {text}, high: 1e3}}
    - {{name: n, type: integer, low: 1e1, high: 2e1}}
    - {{name: d, type: discrete, values: [{text}, 1e0]}}
  objective: f
  constraints:
    - {{name: c, low: {text}, high: 1e0, nominal: 1e-1}}
    - {{name: fixed, limit: {text}}}
""",
    )
    assert problem == Problem(
        "p",
        [Real("x", 0.001, 1000.0), Integer("n", 10, 20), Discrete("d", [0.001, 1.0])],
        "f",
        [Constraint("c", low=0.001, high=1.0, nominal=0.1), Constraint("fixed", limit=0.001)],
    )


def test_other_sections_of_the_file_are_left_to_others(tmp_path: Path) -> None:
    assert from_text(tmp_path, TRUSS_YAML + "evaluator: {python: 'a:b'}\nstudy: {seed: 3}\n") == TRUSS


def test_from_dict_takes_ready_made_parts_numpy_numbers_and_any_mapping() -> None:
    stated = {
        "name": "p",
        "variables": (Real("x", 0, 1), {"name": "n", "type": "integer", "low": np.int64(1), "high": np.float64(3)}),
        "objective": Objective("f"),
        "constraints": [Constraint("c", low=0, high=1), {"name": "d", "limit": np.float32(0.5)}],
    }
    problem = Problem.from_dict(MappingProxyType(stated))
    assert problem == Problem(
        "p",
        [Real("x", 0, 1), Integer("n", 1, 3)],
        "f",
        [Constraint("c", low=0, high=1), Constraint("d", limit=0.5)],
    )
    assert problem.digest == Problem.from_dict(json.loads(json.dumps(problem.to_dict()))).digest


# Round trips of arbitrary problems

_CHARACTERS = st.characters(exclude_categories=("C", "Z"), exclude_characters="={}")
_NASTY = ["yes", "no", "on", "null", "~", "1e3", "01", "1:30", "0x1f", ".inf", "- a", "a: b", "# x", "!t", "&a", "*a",
          "'", '"', "|", ">", "%", "@", "`", "[a]", "a,b", "?", "<", "a b", "2020-01-01", "Ω", "应力",
          "\u00e9", "e\u0301", "😀",
          "real", "name", "type", "\\n"]  # fmt: skip
_names = st.one_of(st.sampled_from(_NASTY), st.text(_CHARACTERS, min_size=1, max_size=8))
_unit_texts = st.one_of(
    st.just(""), st.sampled_from([*_NASTY, " kg", "°C", "kN/cm²"]), st.text(_CHARACTERS, max_size=4)
)
_finite = st.floats(-1e12, 1e12)


@st.composite
def _bounds(draw: st.DrawFn, numbers: st.SearchStrategy[float] = _finite) -> tuple[float, float]:
    low, high = sorted(draw(st.tuples(numbers, numbers)))
    assume(low < high)
    return low, high


@st.composite
def _variables(draw: st.DrawFn, name: str) -> Real | Integer | Discrete:
    unit = draw(_unit_texts)
    kind = draw(st.sampled_from(["real", "log", "integer", "discrete"]))
    if kind == "integer":
        low = draw(st.integers(-(10**9), 10**9))
        return Integer(name, low, low + draw(st.integers(1, 10**6)), unit)
    if kind == "discrete":
        return Discrete(
            name, draw(st.lists(st.integers(-999, 999).map(lambda v: v / 8), min_size=2, max_size=8, unique=True)), unit
        )
    low, high = draw(_bounds(st.floats(1e-9, 1e9) if kind == "log" else _finite))
    return Real(name, low, high, kind == "log", unit)


@st.composite
def _constraints(draw: st.DrawFn, name: str, outputs: list[str], movable: bool) -> Constraint:
    stated: dict[str, Any] = {"unit": draw(_unit_texts), "sense": draw(st.sampled_from(["<=", ">="]))}
    if movable:
        stated["low"], stated["high"] = draw(_bounds())
        stated["nominal"] = draw(st.one_of(st.none(), st.floats(stated["low"], stated["high"])))
    else:
        stated["limit"] = draw(_finite)
    shared = draw(st.lists(st.sampled_from(outputs), max_size=3, unique=True))
    stated["outputs"] = draw(st.sampled_from([None, name, shared[0], tuple(shared)])) if shared else None
    return Constraint(name, **stated)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    names = draw(st.lists(_names.filter(lambda n: n not in RESERVED), min_size=6, max_size=12, unique=True))
    inputs = [names.pop() for _ in range(draw(st.integers(1, 3)))]
    objective = Objective(names[0], unit=draw(_unit_texts), direction=draw(st.sampled_from(["minimize", "maximize"])))
    limited = names[1 : 1 + draw(st.integers(1, len(names) - 1))]
    return Problem(
        draw(_names),
        [draw(_variables(name)) for name in inputs],
        objective,
        [draw(_constraints(name, names, i == 0 or draw(st.booleans()))) for i, name in enumerate(limited)],
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(problem=problems())
@example(problem=TRUSS)
@example(problem=Problem("-0", [Real("x", -0.0, 1)], "f", [Constraint("c", low=-0.0, high=1)]))
def test_a_problem_comes_back_from_its_yaml_file(tmp_path: Path, problem: Problem) -> None:
    again = from_text(tmp_path, problem.to_yaml())
    assert again == problem
    assert again.digest == problem.digest
    assert again.outputs == problem.outputs
    assert again.box.nominal == problem.box.nominal
    assert again.to_yaml() == problem.to_yaml()


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(problem=problems())
def test_a_problem_comes_back_from_json_pickle_and_copies(problem: Problem) -> None:
    assert problem.digest  # cached, and must not travel wrongly
    for again in (
        Problem.from_dict(json.loads(json.dumps(problem.to_dict()))),
        pickle.loads(pickle.dumps(problem)),
        copy.deepcopy(problem),
        replace(problem),
    ):
        assert again == problem
        assert again.digest == problem.digest


def test_yaml_is_written_for_people() -> None:
    text = TRUSS.to_yaml()
    assert text.startswith("problem:\n  name: truss\n  variables:\n")
    assert "nominal: 2.0" in text
    assert "null" not in text
    assert "μm" in Problem("p", [Real("x", 0, 1, unit="μm")], "f", ["c <= [0..1]"]).to_yaml()


def test_unicode_names_survive_the_file(tmp_path: Path) -> None:
    problem = Problem("Träger", [Real("长度", 0, 1, unit="µm")], "минимум", ["σ_max <= [0..1] N/mm²"])
    assert from_text(tmp_path, problem.to_yaml()) == problem


def test_the_digest_is_the_same_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "truss.yaml"
    path.write_text(TRUSS.to_yaml(), encoding="utf-8")
    code = "import sys; from cbabo.domain.problem import Problem; print(Problem.from_file(sys.argv[1]).digest)"
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code, str(path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == TRUSS.digest


@pytest.mark.parametrize(
    "change",
    [
        {"name": "truss2"},
        {"variables": TRUSS.variables[::-1]},
        {"variables": (replace(TRUSS.variables[0], high=2.0), *TRUSS.variables[1:])},
        {"objective": Objective("volume", unit="cm3", direction="maximize")},
        {"objective": Objective("volume")},
        {"constraints": TRUSS.constraints[::-1]},
        {"constraints": TRUSS.constraints[:-1]},
        {"constraints": (replace(TRUSS.constraints[0], sense=">="), *TRUSS.constraints[1:])},
        {"constraints": (replace(TRUSS.constraints[0], nominal=3.0), *TRUSS.constraints[1:])},
    ],
)
def test_the_digest_knows_every_change(change: dict[str, Any]) -> None:
    other = replace(TRUSS, **change)
    assert other != TRUSS
    assert other.digest != TRUSS.digest


# What a problem knows


def test_outputs_are_the_objective_and_each_limited_output_once() -> None:
    assert TRUSS.outputs == ("volume", "stress", "frequency", "mass", "s1", "s2", "s3")
    assert TRUSS.box.names == ("stress", "frequency", "frequency_max", "members")
    assert TRUSS.space.names == ("x1", "load", "teeth", "gauge")


def test_the_objective_itself_may_have_a_limit() -> None:
    problem = Problem("p", [Real("x", 0, 1)], "cost", ["cost <= [1..2]"])
    assert problem.outputs == ("cost",)


def test_a_constraint_may_be_called_as_another_ones_output() -> None:
    constraints = [Constraint("a", low=0, high=1, outputs="b"), Constraint("b", low=0, high=1, outputs="a")]
    assert Problem("p", [Real("x", 0, 1)], "f", constraints).outputs == ("f", "b", "a")


def test_a_problem_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        TRUSS.name = "other"  # type: ignore[misc]
    assert isinstance(TRUSS.variables, tuple)
    assert isinstance(TRUSS.constraints, tuple)


def test_the_sign_of_an_objective() -> None:
    assert Objective("f").sign == 1.0
    assert Objective("f", direction="maximize").sign == -1.0


# Bad input, stated in Python


X, F, C = Real("x", 0, 1), Objective("f"), Constraint("c", low=0, high=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "problem: the name must be a non-empty printable string, got ''"),
        ({"name": "  "}, "problem: the name must be a non-empty printable string, got '  '"),
        ({"name": None}, "problem: the name must be a non-empty printable string, got None"),
        ({"name": 3}, "problem: the name must be a non-empty printable string, got 3"),
        ({"name": "a\nb"}, "problem: the name must be a non-empty printable string, got 'a\\nb'"),
        ({"name": "\ud800"}, "problem: the name must be a non-empty printable string, got"),
        ({"variables": []}, "problem: at least one variable is needed, got none"),
        ({"variables": None}, "variables: expected a list, got None"),
        ({"variables": 3}, "variables: expected a list, got 3"),
        ({"variables": "x"}, "variables: expected a list, got 'x'"),
        ({"variables": X}, "variables: expected a list, got Real("),
        ({"variables": {"x": X}}, "variables: expected a list, got {'x': Real("),
        ({"variables": {X}}, "variables: expected a list, got {Real("),
        ({"variables": [None]}, "variables: expected Real or Integer or Discrete or Categorical, got None"),
        ({"variables": [X, "y"]}, "variables: expected Real or Integer or Discrete or Categorical, got 'y'"),
        ({"variables": [C]}, "variables: expected Real or Integer or Discrete or Categorical, got Constraint("),
        ({"variables": [X, Integer("x", 0, 1)]}, "variable 'x' is stated 2 times; names must be different"),
        ({"objective": None}, "objective: expected Objective, got None"),
        ({"objective": 3}, "objective: expected Objective, got 3"),
        ({"objective": ""}, 'objective: expected "minimize name [unit]"'),
        ({"objective": {"name": "f"}}, "objective: expected Objective, got {'name': 'f'}"),
        ({"objective": [F, Objective("g")]}, "objective: expected one objective, got a list of 2; several objectives"),
        (
            {"objective": ("f", "g")},
            "objective: expected one objective, got a list of 2; several objectives are not",
        ),
        ({"constraints": []}, "constraints: at least one limit must be movable (low and high), got none"),
        ({"constraints": ["c <= 1"]}, "constraints: at least one limit must be movable (low and high), got none"),
        ({"constraints": None}, "constraints: expected a list, got None"),
        ({"constraints": "c <= [0..1]"}, "constraints: expected a list, got 'c <= [0..1]'"),
        ({"constraints": C}, "constraints: expected a list, got Constraint("),
        ({"constraints": {C}}, "constraints: expected a list, got {Constraint("),
        ({"constraints": [3]}, "constraints: expected Constraint, got 3"),
        ({"constraints": [C, X]}, "constraints: expected Constraint, got Real("),
        ({"constraints": [{"name": "c", "low": 0, "high": 1}]}, "constraints: expected Constraint, got {"),
        ({"constraints": ["c"]}, 'constraints: expected "name <= [low..high] unit"'),
        ({"constraints": ["c == 1"]}, "constraints: 'c == 1' uses ==, but only <= and >= are supported"),
        ({"constraints": ["c <= [1..0]"]}, "constraint 'c': low must be below high"),
        ({"constraints": ["c <= [0..1e999]"]}, "constraint 'c': high must be a finite number, got inf"),
        ({"constraints": [C, "c >= 2"]}, "constraint 'c' is stated 2 times; names must be different"),
        ({"objective": "x"}, "problem: 'x' is both a variable and an output; rename one of them"),
        ({"constraints": ["x <= [0..1]"]}, "problem: 'x' is both a variable and an output"),
        ({"constraints": [replace(C, outputs="x")]}, "problem: 'x' is both a variable and an output"),
        ({"constraints": [replace(C, name="x", outputs="y")]}, "problem: 'x' is both a variable and an output"),
    ],
)
def test_a_problem_that_makes_no_sense_gets_one_sentence(change: dict[str, Any], message: str) -> None:
    stated = {"name": "p", "variables": [X], "objective": F, "constraints": [C]} | change
    assert refusal(lambda: Problem(**stated)).startswith(message)


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize(
    "change",
    [
        lambda name: {"variables": [X, Real(name, 0, 1)]},
        lambda name: {"objective": name},
        lambda name: {"constraints": [f"{name} <= [0..1]"]},
        lambda name: {"constraints": [replace(C, outputs=["c", name])]},
    ],
    ids=["variable", "objective", "constraint", "outputs"],
)
def test_names_of_the_evaluations_columns_are_reserved(change: Callable[[str], dict[str, Any]], name: str) -> None:
    stated = {"name": "p", "variables": [X], "objective": F, "constraints": [C]} | change(name)
    assert refusal(lambda: Problem(**stated)) == (
        f"problem: the name {name!r} is reserved for the table of evaluations; choose another"
    )


@pytest.mark.parametrize("direction", ["min", "", None, 3, ["minimize"], np.array(["minimize", "maximize"])])
def test_another_direction_is_refused(direction: Any) -> None:
    message = refusal(lambda: Objective("f", direction=direction))
    assert message.startswith("objective 'f': direction must be 'minimize' or 'maximize', got ")


@pytest.mark.parametrize("name", ["", " ", None, 3, True, ["f"]])
def test_an_objective_needs_a_name(name: Any) -> None:
    assert refusal(lambda: Objective(name)) == f"objective: the name must be a non-empty string, got {name!r}"


# Bad input, stated in plain values or in a file


PLAIN: dict[str, Any] = {
    "name": "p",
    "variables": [{"name": "x", "type": "real", "low": 0, "high": 1}],
    "objective": "f",
    "constraints": [{"name": "c", "low": 0, "high": 1}],
}


def variable(**change: Any) -> dict[str, Any]:
    return {"variables": [PLAIN["variables"][0] | change]}


def constraint(**change: Any) -> dict[str, Any]:
    return {"constraints": [PLAIN["constraints"][0] | change]}


IN_PLAIN_VALUES = [
    ({"colour": 1}, "problem.colour: unknown key; check its spelling or remove it"),
    ({"Colour": 1}, "problem.Colour: unknown key; check its spelling or remove it"),
    ({"objectives": ["f", "g"]}, "objectives: several objectives are not supported; state one as 'objective'"),
    ({"name": None}, "problem.name: input should be a valid string, got None"),
    ({"name": 3}, "problem.name: expected text, got 3; put it in quotes"),
    ({"name": ["p"]}, "problem.name: input should be a valid string, got ['p']"),
    ({"name": ""}, "problem: the name must be a non-empty printable string, got ''"),
    ({"variables": None}, "problem.variables: expected a list, got None"),
    ({"variables": 3}, "problem.variables: expected a list, got 3"),
    ({"variables": "x"}, "problem.variables: expected a list, got 'x'"),
    ({"variables": {"x": {"low": 0}}}, "problem.variables: expected a list, got {'x': {'low': 0}}"),
    ({"variables": []}, "problem: at least one variable is needed, got none"),
    ({"variables": [None]}, "problem.variables.0: expected a mapping of keys to values, got None"),
    ({"variables": ["x"]}, "problem.variables.0: expected a mapping of keys to values, got 'x'"),
    ({"variables": [[]]}, "problem.variables.0: expected a mapping of keys to values, got []"),
    ({"variables": [PLAIN["variables"][0], {}]}, "problem.variables.1: the type is missing; add type: real, integer, di"),
    ({"variables": PLAIN["variables"] * 2}, "variable 'x' is stated 2 times; names must be different"),
    ({"variables": [{"name": "m", "type": "categorical", "values": ["a"]}]}, "variable 'm': values must be 2 to 200 different"),
    (variable(type="category"), "problem.variables.0: the type must be real, integer, discrete or categorical, got 'ca"),
    (variable(type=None), "problem.variables.0: the type must be real, integer, discrete or categorical, got 'None'"),
    (variable(type=["real"]), "problem.variables.0: the type must be real, integer, discrete or categorical, got"),
    (variable(step=1), "problem.variables.0.step: unknown key; check its spelling or remove it"),
    (variable(Unit="mm"), "problem.variables.0.Unit: unknown key; check its spelling or remove it"),
    (variable(name=""), "variable: the name must be a non-empty string, got ''"),
    (variable(name=None), "problem.variables.0.name: input should be a valid string, got None"),
    (variable(name=1), "problem.variables.0.name: expected text, got 1; put it in quotes"),
    (variable(name=True), "problem.variables.0.name: expected text, got True; put it in quotes"),
    (variable(name="a\nb"), "variable 'a\\nb': a name may not hold"),
    (variable(name="f"), "problem: 'f' is both a variable and an output; rename one of them"),
    (variable(name="id"), "problem: the name 'id' is reserved"),
    (variable(low=1), "variable 'x': low must be below high, got low=1.0, high=1.0"),
    (variable(low=NAN), "variable 'x': low must be a finite number, got nan"),
    (variable(high=INF), "variable 'x': high must be a finite number, got inf"),
    (variable(low="nan"), "variable 'x': low must be a finite number, got nan"),
    (variable(low=False), "variable 'x': low must be a finite number, got False"),
    (variable(high=True), "variable 'x': high must be a finite number, got True"),
    (variable(low=None), "variable 'x': low must be a finite number, got None"),
    (variable(low="wide"), "variable 'x': low must be a finite number, got 'wide'"),
    (variable(low=[0]), "variable 'x': low must be a finite number, got [0]"),
    (variable(high=10**400), "variable 'x': high must be a finite number, got 1000"),
    (variable(log=True), "variable 'x': log=True needs low > 0, got low=0.0"),
    (variable(log="maybe"), "problem.variables.0.log: input should be a valid boolean"),
    (variable(unit=3), "problem.variables.0.unit: expected text, got 3; put it in quotes"),
    (variable(type="integer", low=0.5, high=3), "variable 'x': low of an Integer must be whole, got 0.5"),
    (variable(type="integer", low=True, high=3), "variable 'x': low must be a finite number, got True"),
    (variable(type="integer", log=True), "problem.variables.0.log: unknown key"),
    ({"variables": [{"type": "discrete", "name": "d"}]}, "problem.variables.0.values: missing; add it"),
    ({"variables": [{"type": "discrete", "name": "d", "values": 3}]}, "variable 'd': values must be a list of numbers"),
    ({"variables": [{"type": "discrete", "name": "d", "values": "ab"}]}, "variable 'd': values must be a list of"),
    ({"variables": [{"type": "discrete", "name": "d", "values": {"a": 1}}]}, "variable 'd': values must be a list of"),
    ({"variables": [{"type": "discrete", "name": "d", "values": ["a", "b"]}]}, "variable 'd': values must be finite"),
    ({"variables": [{"type": "discrete", "name": "d", "values": [1, True]}]}, "variable 'd': values must be finite"),
    ({"variables": [{"type": "discrete", "name": "d", "values": [1]}]}, "variable 'd': values must be two or more"),
    ({"objective": None}, "problem.objective: expected a mapping of keys to values, got None"),
    ({"objective": 3}, "problem.objective: expected a mapping of keys to values, got 3"),
    ({"objective": ["f", "g"]}, "problem.objective: expected one objective, got a list of 2; several objectives are not"),
    ({"objective": {}}, "problem.objective.name: missing; add it"),
    ({"objective": {"name": ""}}, "problem.objective: the name must be a non-empty string, got ''"),
    ({"objective": {"name": "f", "weight": 1}}, "problem.objective.weight: unknown key"),
    ({"objective": {"name": "f", "direction": "up"}}, "problem.objective.direction: input should be 'minimize' or 'maximize'"),
    ({"objective": "f <= 3"}, "objective 'f <= 3': a name may not hold '='"),
    ({"constraints": None}, "problem.constraints: expected a list, got None"),
    ({"constraints": "c <= [0..1]"}, "problem.constraints: expected a list, got 'c <= [0..1]'"),
    ({"constraints": {"c": 1}}, "problem.constraints: expected a list, got {'c': 1}"),
    ({"constraints": []}, "constraints: at least one limit must be movable"),
    ({"constraints": ["c <= 1", "d >= 1"]}, "constraints: at least one limit must be movable"),
    ({"constraints": [3]}, "problem.constraints.0: expected a mapping of keys to values, got 3"),
    ({"constraints": [None]}, "problem.constraints.0: expected a mapping of keys to values, got None"),
    ({"constraints": [{}]}, "problem.constraints.0.name: missing; add it"),
    ({"constraints": ["c = 1"]}, "problem.constraints.0: 'c = 1' uses =, but only <= and >= are supported"),
    ({"constraints": ["c <= [2..1]"]}, "constraint 'c': low must be below high"),
    ({"constraints": ["c is small"]}, 'problem.constraints.0: expected "name <= [low..high] unit"'),
    ({"constraints": ["c <= [0..1]", "c >= [0..1]"]}, "constraint 'c' is stated 2 times; names must be different"),
    (constraint(sense="="), "constraint 'c': equality constraints are not supported; state two limits"),
    (constraint(sense="=="), "constraint 'c': equality constraints are not supported; state two limits"),
    (constraint(sense="<"), "problem.constraints.0.sense: input should be '<=' or '>=', got '<'"),
    (constraint(sense=["<="]), "problem.constraints.0.sense: input should be '<=' or '>=', got ['<=']"),
    (constraint(low=1), "constraint 'c': low must be below high, also for >=, got low=1.0, high=1.0"),
    (constraint(low=NAN), "constraint 'c': low must be a finite number, got nan"),
    (constraint(high=True), "constraint 'c': high must be a finite number, got True"),
    (constraint(high="tall"), "constraint 'c': high must be a finite number, got 'tall'"),
    (constraint(low=None), "constraint 'c': expected low and high (a limit that may move) or limit (a fixed one)"),
    (constraint(limit=1), "constraint 'c': a fixed limit excludes low; give limit, or low and high"),
    (constraint(nominal=2), "constraint 'c': nominal must lie between 0.0 and 1.0, got 2.0"),
    (constraint(outputs=[]), "constraint 'c': outputs must be a name or a list of names, got []"),
    (constraint(outputs=3), "constraint 'c': outputs must be a name or a list of names, got 3"),
    (constraint(outputs=[3]), "constraint 'c': outputs: the name must be a non-empty string, got 3"),
    (constraint(outputs=["a", "a"]), "constraint 'c': outputs must be different names"),
    (constraint(outputs="x"), "problem: 'x' is both a variable and an output; rename one of them"),
    (constraint(weight=1), "problem.constraints.0.weight: unknown key"),
    (constraint(unit=1), "problem.constraints.0.unit: expected text, got 1; put it in quotes"),
    (constraint(name=None), "problem.constraints.0.name: input should be a valid string, got None"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), IN_PLAIN_VALUES)
def test_plain_values_that_make_no_sense_get_one_sentence(change: dict[str, Any], message: str) -> None:
    assert refusal(lambda: Problem.from_dict(PLAIN | change)).startswith(message)


@pytest.mark.parametrize(("change", "message"), IN_PLAIN_VALUES)
def test_a_file_that_makes_no_sense_gets_the_same_sentence_and_its_path(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    text = yaml.safe_dump({"problem": PLAIN | change})
    assert refusal(lambda: from_text(tmp_path, text)).startswith(f"{tmp_path / 'problem.yaml'}: {message}")


@pytest.mark.parametrize("key", list(PLAIN))
def test_a_missing_key_is_named(key: str) -> None:
    stated = {k: v for k, v in PLAIN.items() if k != key}
    assert refusal(lambda: Problem.from_dict(stated)) == f"problem.{key}: missing; add it"


@pytest.mark.parametrize("key", ["low", "high"])
def test_a_missing_bound_is_named(key: str) -> None:
    stated = {k: v for k, v in PLAIN["variables"][0].items() if k != key}
    assert (
        refusal(lambda: Problem.from_dict(PLAIN | {"variables": [stated]}))
        == f"problem.variables.0.{key}: missing; add it"
    )


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"varibles": 1}, "problem.varibles: unknown key; did you mean variables?"),
        ({"Constraints": 1}, "problem.Constraints: unknown key; did you mean constraints?"),
        ({"objektive": 1, "colour": 1}, "problem.objektive: unknown key; did you mean objective?"),
    ],
)
def test_a_misspelt_key_is_named_rather_than_the_missing_one(stated: dict[str, Any], message: str) -> None:
    meant = message.split()[-1].rstrip("?")
    rest = {key: value for key, value in PLAIN.items() if key != meant}
    assert refusal(lambda: Problem.from_dict(stated | rest)) == message


@pytest.mark.parametrize(
    ("wrong", "right"), [("lwo", "low"), ("hgih", "high"), ("nmae", "name"), ("tpye", "type"), ("Type", "type")]
)
def test_a_misspelt_key_of_a_variable_is_named(wrong: str, right: str) -> None:
    stated = {wrong if key == right else key: value for key, value in PLAIN["variables"][0].items()}
    message = refusal(lambda: Problem.from_dict(PLAIN | {"variables": [PLAIN["variables"][0], stated]}))
    assert message == f"problem.variables.1.{wrong}: unknown key; did you mean {right}?"


@pytest.mark.parametrize("key", ["probelm", "Problem"])
def test_a_misspelt_section_is_named(tmp_path: Path, key: str) -> None:
    message = refusal(lambda: from_text(tmp_path, yaml.safe_dump({key: PLAIN})))
    assert message == f"{tmp_path / 'problem.yaml'}: {key}: unknown key; did you mean problem?"


@pytest.mark.parametrize("key", [3, None, True])
def test_a_key_that_is_no_text_is_named(key: object) -> None:
    assert f"got {key!r}" in refusal(lambda: Problem.from_dict({**PLAIN, key: 4}))  # type: ignore[dict-item]


@pytest.mark.parametrize("stated", [None, 3, "truss", [], [PLAIN], True, object()])
def test_a_problem_that_is_no_mapping_gets_one_sentence(stated: Any) -> None:
    message = refusal(lambda: Problem.from_dict(stated))
    assert message.startswith("problem: expected a mapping of name, variables, objective and constraints, got ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a YAML mapping with a 'problem:' section, got an empty file"),
        ("- a\n", "expected a YAML mapping with a 'problem:' section, got a list"),
        ("name: p\nvariables: []\n", "expected a 'problem:' section, got 'name', 'variables'"),
        ("{}", "expected a 'problem:' section, got nothing"),
        ("problem:\n", "problem: expected a mapping of name, variables, objective and constraints, got None"),
        ("problem: truss\n", "problem: expected a mapping of name, variables, objective and constraints, got 'truss'"),
    ],
)
def test_a_file_without_a_problem_gets_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(lambda: from_text(tmp_path, text)).startswith(f"{tmp_path / 'problem.yaml'}: {message}")


def test_an_unreadable_file_gets_one_sentence_with_its_path(tmp_path: Path) -> None:
    missing, binary = tmp_path / "missing.yaml", tmp_path / "binary.yaml"
    binary.write_bytes(bytes(range(256)))
    for path in (missing, tmp_path, binary):
        assert refusal(lambda path=path: Problem.from_file(path)).startswith(f"{path}: ")  # type: ignore[misc]
    assert "line 3: the file is not valid YAML" in refusal(lambda: from_text(tmp_path, "problem:\n name: [\n"))


def test_a_yaml_bomb_is_refused_without_being_written_out(tmp_path: Path) -> None:
    levels = "".join(f"l{i + 1}: &l{i + 1} [{', '.join([f'*l{i}'] * 10)}]\n" for i in range(12))
    text = "l0: &l0 [x, x]\n" + levels + "problem: {name: *l12}\n"
    assert "it holds more than 50,000 values, aliases written out" in refusal(lambda: from_text(tmp_path, text))


def test_an_alias_inside_of_what_it_stands_for_is_refused(tmp_path: Path) -> None:
    message = refusal(lambda: from_text(tmp_path, "problem: &p {name: *p}\n"))
    assert "line 1: the file is not valid YAML (an alias stands inside of what it stands for)" in message


@settings(max_examples=120, deadline=None)
@given(
    change=st.dictionaries(
        st.sampled_from(["name", "variables", "objective", "constraints", "colour"]),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(
                    st.sampled_from(["name", "type", "low", "high", "values", "limit", "outputs", "sense", "unit"]),
                    st.one_of(inner, st.sampled_from(["real", "integer", "discrete", "<=", ">=", "x", "c", "1e3"])),
                ),
            ),
            max_leaves=8,
        ),
    )
)
def test_anything_else_is_a_problem_or_one_sentence(change: dict[str, Any]) -> None:
    try:
        problem = Problem.from_dict(PLAIN | change)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert Problem.from_dict(problem.to_dict()) == problem


# The JSON Schema


KNOWN = {"$defs", "$ref", "additionalProperties", "anyOf", "const", "default", "description", "discriminator", "enum",
         "items", "oneOf", "properties", "required", "title", "type"}  # fmt: skip
KINDS: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and v == int(v),
}


def accepts(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """Judge a value by the part of JSON Schema that the problem's schema uses; fail on any other keyword."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        return accepts(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root)
    verdicts = [KINDS[schema["type"]](value)] if "type" in schema else []
    verdicts += [any(accepts(s, value, root) for s in schema["anyOf"])] if "anyOf" in schema else []
    verdicts += [sum(accepts(s, value, root) for s in schema["oneOf"]) == 1] if "oneOf" in schema else []
    verdicts += [value in schema["enum"]] if "enum" in schema else []
    verdicts += [value == schema["const"]] if "const" in schema else []
    if isinstance(value, dict) and "properties" in schema:
        verdicts.append(set(schema["required"]) <= set(value))
        verdicts.append(schema["additionalProperties"] is False)
        for key, inner in value.items():
            verdicts.append(key in schema["properties"] and accepts(schema["properties"][key], inner, root))
    if isinstance(value, list) and "items" in schema:
        verdicts += [accepts(schema["items"], inner, root) for inner in value]
    return all(verdicts)


SCHEMA = Problem.json_schema()


def test_the_schema_is_plain_json_and_accepts_short_strings_and_mappings() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    mapped = yaml.safe_load(TRUSS_YAML.replace("1e-3", "0.001").replace("1e6", "1000000"))["problem"]
    assert accepts(SCHEMA, mapped, SCHEMA)
    assert accepts(SCHEMA, mapped | {"objective": {"name": "f", "unit": "kg", "direction": "maximize"}}, SCHEMA)
    assert accepts(SCHEMA, PLAIN | {"constraints": ["c <= [0..1]", {"name": "d", "limit": 3}]}, SCHEMA)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(problem=problems())
def test_the_schema_accepts_what_problems_write(problem: Problem) -> None:
    assert accepts(SCHEMA, json.loads(json.dumps(problem.to_dict())), SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        {"colour": 1},
        {"name": 3},
        {"variables": {}},
        {"variables": [3]},
        {"objective": 3},
        {"objective": ["f", "g"]},
        {"objective": {"name": "f", "direction": "up"}},
        {"constraints": "c <= [0..1]"},
        {"constraints": [3]},
        variable(type="categorical"),
        {"variables": [{"name": "x", "low": 0.5, "high": 1.5}]},
        variable(step=1),
        variable(low="wide"),
        variable(type="integer", low=0.5),
        constraint(sense="="),
        constraint(weight=3),
        constraint(outputs=3),
    ],
)
def test_the_schema_refuses_what_from_dict_refuses(change: dict[str, Any]) -> None:
    refusal(lambda: Problem.from_dict(PLAIN | change))
    assert not accepts(SCHEMA, PLAIN | change, SCHEMA)
