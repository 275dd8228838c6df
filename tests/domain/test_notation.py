"""Short strings, YAML files, and validation errors as sentences."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from cbabo.domain.notation import number, parse_constraint, parse_objective, read_yaml, sentence
from cbabo.errors import InputError, shown

Write = Callable[[str | bytes], Path]

_numbers = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(content: str | bytes) -> Path:
        path = tmp_path / "truss.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def movable(name: str, sense: str, low: float, high: float, unit: str = "") -> dict[str, Any]:
    return {"name": name, "sense": sense, "unit": unit, "low": low, "high": high}


def fixed(name: str, sense: str, limit: float, unit: str = "") -> dict[str, Any]:
    return {"name": name, "sense": sense, "unit": unit, "limit": limit}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("stress <= [0..10] kN/cm2", movable("stress", "<=", 0.0, 10.0, "kN/cm2")),
        ("mass <= 12", fixed("mass", "<=", 12.0)),
        ("mass <= 12 kg", fixed("mass", "<=", 12.0, "kg")),
        ("frequency >= [20..60] Hz", movable("frequency", ">=", 20.0, 60.0, "Hz")),
        ("frequency >= 20", fixed("frequency", ">=", 20.0)),
        ("s<=[0..1]", movable("s", "<=", 0.0, 1.0)),
        ("  s  <=  [ 0 .. 1 ]  mm / s  ", movable("s", "<=", 0.0, 1.0, "mm / s")),
        ("s <= [1e-3..2.5E+2]", movable("s", "<=", 1e-3, 250.0)),
        ("s <= [-2.5..-.5]", movable("s", "<=", -2.5, -0.5)),
        ("s <= [1...2]", movable("s", "<=", 1.0, 2.0)),
        ("s <= [1.5...75]", movable("s", "<=", 1.5, 0.75)),  # the order is judged by Constraint
        ("s >= -1.5e-3 1/K", fixed("s", ">=", -1.5e-3, "1/K")),
        ("s <= +4", fixed("s", "<=", 4.0)),
        ("max stress <= 4 %", fixed("max stress", "<=", 4.0, "%")),
        ("σ_max <= [0..10] kN/cm²", movable("σ_max", "<=", 0.0, 10.0, "kN/cm²")),
        ("a-b.c:d <= 4", fixed("a-b.c:d", "<=", 4.0)),
    ],
)
def test_a_short_constraint_is_read(text: str, fields: dict[str, Any]) -> None:
    assert parse_constraint(text) == fields


@settings(max_examples=100, deadline=None)
@given(low=_numbers, high=_numbers, sense=st.sampled_from(["<=", ">="]))
@example(low=5e-324, high=1.7976931348623157e308, sense="<=")
def test_every_number_python_writes_is_read_back_exactly(low: float, high: float, sense: str) -> None:
    assert parse_constraint(f"c {sense} [{low!r}..{high!r}] mm") == movable("c", sense, low, high, "mm")
    assert parse_constraint(f"c {sense} {high!r}") == fixed("c", sense, high)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stress",
        "stress 10",
        "stress <=",
        "<= 10",
        "  <= 10",
        "stress <= ten",
        "stress <= nan",
        "stress <= inf",
        "stress <= [0..10",
        "stress <= 0..10",
        "stress <= [0,10]",
        "stress <= [0..5..10]",
        "stress <= 0,5",
        "stress <= 12kg",
        "stress <= [0..10]kg",
        "stress <= [0..10] [kg]",
        "stress <= 1 = 2",
        "1 <= stress <= 3",
        "stress ≤ 3",
        "stress =< 3",
        "stress <= " + "9" * 10_000 + "x",
        "a\n<=",
    ],
)
def test_a_short_constraint_that_cannot_be_read_is_quoted_in_one_sentence(text: str) -> None:
    message = refusal(lambda: parse_constraint(text))
    assert message.startswith('constraints: expected "name <= [low..high] unit" or "name <= limit unit"')
    assert message.endswith(f"got {shown(text)}")
    assert len(message) < 250


@pytest.mark.parametrize("sense", ["=", "==", "<", ">"])
def test_equality_and_strict_senses_are_refused_with_the_way_out(sense: str) -> None:
    message = refusal(lambda: parse_constraint(f"stress {sense} 12"))
    assert message.startswith(f"constraints: 'stress {sense} 12' uses {sense}, but only <= and >= are supported")
    assert "one <= and one >=" in message


@pytest.mark.parametrize(
    ("text", "name", "unit", "direction"),
    [
        ("volume", "volume", "", "minimize"),
        ("minimize volume", "volume", "", "minimize"),
        ("minimise volume [cm3]", "volume", "cm3", "minimize"),
        ("maximize range [km]", "range", "km", "maximize"),
        ("  maximise   total range[ km ] ", "total range", "km", "maximize"),
        ("Maximize range", "range", "", "maximize"),
        ("MINIMISE range", "range", "", "minimize"),
        ("minimize max power [W]", "max power", "W", "minimize"),
        ("maximize min distance", "min distance", "", "maximize"),
        ("maximizer", "maximizer", "", "minimize"),
        ("max_power", "max_power", "", "minimize"),
        ("minutes", "minutes", "", "minimize"),
        ("выход [кг]", "выход", "кг", "minimize"),
    ],
)
def test_a_short_objective_is_read(text: str, name: str, unit: str, direction: str) -> None:
    assert parse_objective(text) == {"name": name, "unit": unit, "direction": direction}


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("max power", "maximize power"),
        ("max power [W]", "maximize power"),
        ("Max. power", "maximize power"),
        ("maximal power", "maximize power"),
        ("maximum total power", "maximize total power"),
        ("maximized power", "maximize power"),
        ("maximise: power", "maximize power"),
        ("min mass", "minimize mass"),
        ("minimum mass", "minimize mass"),
        ("minimisation of mass", "minimize of mass"),
        ("max", "maximize NAME"),
        ("maximize", "maximize NAME"),
    ],
)
def test_a_short_objective_that_may_be_a_direction_is_refused_with_both_ways_out(text: str, verb: str) -> None:
    message = refusal(lambda: parse_objective(text))
    assert message.startswith("objective: expected a name, or minimize or maximize and a name, got ")
    assert f"write '{verb}', or 'minimize {text.partition(' [')[0]}' if the output is called so" in message


@pytest.mark.parametrize("text", ["", "   ", "[kg]", "volume [", "volume []", "volume [a] [b]", "volume ]"])
def test_a_short_objective_that_cannot_be_read_gets_one_sentence(text: str) -> None:
    assert refusal(lambda: parse_objective(text)).startswith('objective: expected "minimize name [unit]"')


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("1e-3", 1e-3),
        ("1E6", 1e6),
        ("-2", -2.0),
        (" 3 ", 3.0),
        ("x", "x"),
        ("", ""),
        (4, 4),
        (None, None),
        (True, True),
    ],
)
def test_text_that_is_a_number_becomes_one_and_the_rest_is_left(given: object, read: object) -> None:
    assert number(given) == read
    assert type(number(given)) is type(read)


def test_text_that_says_nan_stays_nan() -> None:
    assert math.isnan(number("nan"))


# Files


def test_a_mapping_is_read_with_its_order_and_unicode(write: Write) -> None:
    assert list(read_yaml(write("b: σ\na: [1, 2]\n")).items()) == [("b", "σ"), ("a", [1, 2])]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# a comment\n---\n"])
def test_what_windows_editors_do_is_accepted(write: Write, start: str, newline: str) -> None:
    assert read_yaml(write((start + "a: 1\nb: x\n").replace("\n", newline))) == {"a": 1, "b": "x"}


def test_a_path_may_be_text(write: Write) -> None:
    assert read_yaml(str(write("a: 1"))) == {"a": 1}


def test_anchors_and_merges_work_and_may_override(write: Write) -> None:
    content = "base: &base {low: 0, high: 1}\nmid: &mid {<<: *base, high: 2}\nend: {<<: *mid, high: 3}\n"
    assert read_yaml(write(content))["end"] == {"low": 0, "high": 3}


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        ("a: [1\nb: }", 2, "expected ',' or ']'"),
        ("a: 1\n b: 2\n", 2, "mapping values are not allowed here"),
        ("a: 'x\n", 2, "unexpected end of stream"),
        ("a: 1\n\tb: 2\n", 2, "cannot start any token"),
        ("a: *nowhere", 1, "undefined alias"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' is stated twice"),
        ("p:\n  low: 1\n  low: 2\n", 3, "the key 'low' is stated twice"),
        ("a: 1\nb: 2001-13-45\n", 2, "'2001-13-45' is no timestamp"),
        ("a: 1\nb: !!int x\n", 2, "'x' is no int"),
        ("a: !!bool x\n", 1, "'x' is no bool"),
        ("a: " + "1" * 5000, 1, "is no int"),
        ("a: !!python/object/apply:os.getcwd []\n", 1, "could not determine a constructor"),
        ("? [1, 2]\n: 3\n", 1, "unhashable"),
        ("a: 1\n--- \nb: 2\n", 2, "another document"),
    ],
)
def test_invalid_yaml_gets_one_sentence_with_file_line_and_cause(
    write: Write, content: str, line: int, why: str
) -> None:
    path = write(content)
    message = refusal(lambda: read_yaml(path))
    assert message.startswith(f"{path}, line {line}: the file is not valid YAML (")
    assert why in message


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "got an empty file"),
        ("# only a comment\n", "got an empty file"),
        ("- a\n- b\n", "got a list"),
        ("stress", "got just 'stress'"),
        ("3", "got just 3"),
        (b"\x00\x01\x02", "characters that YAML does not allow"),
        (b"\x89PNG\r\n\x1a\n\xff", "in UTF-8, got other bytes"),
        ("a: ä".encode("latin-1"), "in UTF-8, got other bytes"),
        ("a: 1".encode("utf-16"), "in UTF-8, got other bytes"),
        ("[" * 1500, "nested too deeply"),
    ],
)
def test_a_file_that_holds_no_mapping_gets_one_sentence(write: Write, content: str | bytes, why: str) -> None:
    path = write(content)
    message = refusal(lambda: read_yaml(path))
    assert message.startswith(f"{path}: ")
    assert why in message


def test_a_missing_file_and_a_directory_get_one_sentence(tmp_path: Path) -> None:
    for path, why in [(tmp_path / "no.yaml", "No such file"), (tmp_path, "Is a directory")]:
        message = refusal(lambda path=path: read_yaml(path))  # type: ignore[misc]
        assert message.startswith(f"{path}: the file cannot be read ({why}")
        assert message.endswith("check the path")


@pytest.mark.parametrize("path", [None, 3, b"x", [], "a\0b"])
def test_what_is_no_path_gets_one_sentence(path: Any) -> None:
    assert refusal(lambda: read_yaml(path)).startswith("file: expected the path of a YAML file, got ")


# Sentences


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int = 1
    label: str = ""
    words: str | list[str] = ""
    pair: tuple[int, int] = (0, 0)


class _Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    parts: list[_Part]
    env: dict[str, str] = {}


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({}, "parts: missing; add it"),
        ({"parts": [{}, {"colour": 1}]}, "parts.1.colour: unknown key; check its spelling or remove it"),
        ({"parts": [], "Colour": 1}, "Colour: unknown key; check its spelling or remove it"),
        ({"parts": [], "real": 1}, "real: unknown key; check its spelling or remove it"),
        ({"parts": [], "a[b\nc": 1}, r"a[b\nc: unknown key; check its spelling or remove it"),
        ({"parts": [{"label": 3}]}, "parts.0.label: expected text, got 3; put it in quotes"),
        ({"parts": [{"label": False}]}, "parts.0.label: expected text, got False; put it in quotes"),
        ({"parts": [{"label": None}]}, "parts.0.label: input should be a valid string, got None"),
        ({"parts": [{"words": {}}]}, "parts.0.words: input should be a valid string, got {}"),
        ({"parts": [{"pair": 3}]}, "parts.0.pair: input should be a list, got 3"),
        ({"parts": [], "env": {"PATH": []}}, "env.PATH: input should be a valid string, got []"),
        ({"parts": [], "env": 3}, "env: expected a mapping of keys to values, got 3"),
    ],
)
def test_the_first_finding_becomes_one_sentence_that_names_the_field(stated: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _Whole.model_validate(stated)
    assert sentence(caught.value) == message


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.one_of(st.none(), st.text(), st.binary(), _numbers), lambda v: st.lists(v) | st.tuples(v, v)))
@example([["x" * 1000] * 10] * 10)
@example({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}})
@example(10**400)
@example(10**5000)
@example("a\nb\u2028c")
def test_whatever_came_is_shown_short_and_on_one_line(value: object) -> None:
    text = shown(value)
    assert text.splitlines() == [text]
    assert 0 < len(text) <= 120


def test_a_repr_that_fails_or_has_several_lines_does_no_harm() -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    class Table:
        def __repr__(self) -> str:
            return "a\n  b\r\n c"

    assert "Unprintable" in shown(Unprintable())
    assert shown(Table()) == "a b c"


def test_short_values_are_shown_as_python_writes_them() -> None:
    for value in (3, -1.5, "x y", None, True, [1, 2], {"a": 1}):
        assert shown(value) == repr(value)


LAUGHS = "\n".join(
    ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
)
MERGES = "\n".join(
    ["m0: &m0 {a: 1, b: 2, c: 3}"] + [f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}" for i in range(1, 12)]
)


@pytest.mark.parametrize(
    "text", [LAUGHS, MERGES, "a: [" + "1, " * 60_000 + "1]"], ids=["aliases", "merge keys", "long"]
)
def test_files_that_stand_for_too_much_are_refused(write: Write, text: str) -> None:
    path = write(text)
    assert "it holds more than 50,000 values, aliases written out" in refusal(lambda: read_yaml(path))


def test_aliases_and_merge_keys_work_within_the_limit(write: Write) -> None:
    path = write("base: &base {low: 0, high: 1}\nx: {<<: *base, high: 2}\ny: *base\n")
    assert read_yaml(path) == {"base": {"low": 0, "high": 1}, "x": {"low": 0, "high": 2}, "y": {"low": 0, "high": 1}}


def test_an_alias_inside_of_itself_is_refused(write: Write) -> None:
    path = write("a: &a [1, *a]\n")
    assert "line 1" in refusal(lambda: read_yaml(path))


def test_a_file_that_is_too_large_is_refused(write: Write) -> None:
    path = write("# " + "x" * 2_000_000)
    assert "at most 2,000,000 bytes" in refusal(lambda: read_yaml(path))
    assert "at most 2,000,000 bytes" in refusal(lambda: read_yaml("/dev/zero"))
