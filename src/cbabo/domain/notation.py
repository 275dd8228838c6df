"""How things are written down: short constraint strings, YAML files, and validation errors as sentences."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from cbabo.errors import InputError, shown
from cbabo.numerics.arrays import is_number

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_CONSTRAINT = re.compile(
    rf"""^\s*(?P<name>[^\s<>=\[\]][^<>=\[\]]*?)\s*
         (?P<sense><=|>=|==?|<|>)\s*
         (?:\[\s*(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})\s*\]|(?P<limit>{_NUMBER}))
         (?:\s+(?P<unit>[^\s<>=\[\]][^<>=\[\]]*?))?\s*$""",
    re.VERBOSE,
)
MOST_BYTES = 2_000_000
"""Of a YAML file."""
MOST_VALUES = 50_000
"""Keys and values of a YAML file, aliases written out."""
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING = ("missing", "missing_argument")
_OBJECTIVE = re.compile(
    r"""^\s*(?:(?P<direction>(?i:minimi[sz]e|maximi[sz]e))\s+)?(?P<name>[^\s\[\]][^\[\]]*?)\s*
         (?:\[(?P<unit>[^\[\]]+)\])?\s*$""",
    re.VERBOSE,
)

_DIRECTION = re.compile(r"(?:min|max)(?:im(?:um|al|i[sz](?:e|ed|es|ing|ation)))?[.:]?", re.IGNORECASE)


def number(value: Any) -> Any:
    """Read a number that a file gave as text, as PyYAML does with 1e-3; leave the rest to whoever judges it."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value


def listed(where: str, value: Any) -> Any:
    """Refuse what has no order of its own, and the single thing where a list of them is expected."""
    if isinstance(value, list | tuple):
        return value
    raise InputError(f"{where}: expected a list, got {shown(value)}")


def read_ranges(value: Any) -> Any:
    """Read ranges by output, each as two numbers."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"valid: expected ranges by output, as {{stress: [0, 1e6]}}, got {shown(value)}")
    found = {}
    for name, ends in value.items():
        numbers = [number(end) for end in ends] if isinstance(ends, list | tuple) else []
        if len(numbers) != 2 or not all(map(is_number, numbers)) or not numbers[0] < numbers[1]:
            raise InputError(f"valid: expected [low, high] with low < high for {shown(name)}, got {shown(ends)}")
        found[name] = (float(numbers[0]), float(numbers[1]))
    return found


def parse_constraint(text: str) -> dict[str, Any]:
    """Read "stress <= [0..10] kN/cm2" (a limit that may move) or "mass <= 12" (a fixed one)."""
    match = _CONSTRAINT.match(text)
    if match is None:
        raise InputError(
            f'constraints: expected "name <= [low..high] unit" or "name <= limit unit" (or with >=), got {shown(text)}'
        )
    if match["sense"] not in ("<=", ">="):
        raise InputError(
            f"constraints: {shown(text)} uses {match['sense']}, but only <= and >= are supported: "
            "state an equality as two limits, one <= and one >="
        )
    fields: dict[str, Any] = {"name": match["name"], "sense": match["sense"], "unit": match["unit"] or ""}
    if match["limit"] is not None:
        fields["limit"] = float(match["limit"])
    else:
        fields |= {"low": float(match["low"]), "high": float(match["high"])}
    return fields


def parse_objective(text: str) -> dict[str, Any]:
    """Read "volume", "minimize volume [cm3]" or "maximize range [km]"; a name alone must not begin like a direction."""
    match = _OBJECTIVE.match(text)
    if match is None:
        raise InputError(f'objective: expected "minimize name [unit]" or "maximize name [unit]", got {shown(text)}')
    first, *rest = match["name"].split()
    if match["direction"] is None and _DIRECTION.fullmatch(first):
        verb = "maximize" if first.lower().startswith("max") else "minimize"
        raise InputError(
            f"objective: expected a name, or minimize or maximize and a name, got {shown(text)}, where {first!r} may be a "
            f"direction; write '{verb} {' '.join(rest) or 'NAME'}', or 'minimize {match['name']}' if the output is called so"
        )
    direction = "maximize" if (match["direction"] or "").lower().startswith("max") else "minimize"
    return {"name": match["name"], "unit": (match["unit"] or "").strip(), "direction": direction}


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping."""
    try:
        path = Path(path)
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        content = None if len(text) > MOST_BYTES else parse_yaml(text.decode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror or error}); check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected a YAML text file in UTF-8, got other bytes; check the path") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it holds characters that YAML does not allow"
        raise InputError(f"{path}{where}: the file is not valid YAML ({problem}); correct it there") from error
    except RecursionError as error:
        raise InputError(f"{path}: the file is nested too deeply to be a problem; check the path") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"file: expected the path of a YAML file, got {shown(path)}") from error
    if len(text) > MOST_BYTES:
        raise InputError(f"{path}: expected a YAML file of at most {MOST_BYTES:,} bytes, got more; check the path")
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a YAML mapping with a 'problem:' section, got {_kind(content)}")
    return content


def parse_yaml(text: str) -> Any:
    """Read a YAML text, as plain values; yaml.YAMLError where it is none, or holds more than `MOST_VALUES` values."""
    return yaml.load(text, Loader=_Loader)


def sentence(error: ValidationError, within: str = "") -> str:
    """Turn the first finding of a pydantic error into "field: what was expected, what came".

    within: the place, in a study file, of what was read. A missing key beside one that is spelt nearly so is a misspelling.
    """
    first, *others = error.errors()
    if first["type"] in _MISSING:
        for other in others:
            if other["type"] in _UNKNOWN and other["loc"][:-1] == first["loc"][:-1]:
                meant = similar(str(other["loc"][-1]), [str(first["loc"][-1])])
                if meant is not None:
                    return misspelt(_where(other["loc"], keep_last=True, within=within), meant)
    return finding(first, within)


def similar(key: str, names: Iterable[str]) -> str | None:
    """Return the name that a misspelt key most likely stands for, if any."""
    return next(iter(difflib.get_close_matches(key.lower(), list(names), n=1, cutoff=0.6)), None)


def misspelt(where: str, meant: str) -> str:
    """Say that a key is misspelt."""
    return f"{where}: unknown key; did you mean {meant}?"


def finding(first: Mapping[str, Any], within: str = "") -> str:
    """Turn one finding of pydantic into a sentence."""
    kind, got = first["type"], first.get("input")
    where = _where(first["loc"], keep_last=kind in _UNKNOWN, within=within) or "value"
    if kind in _UNKNOWN:
        return f"{where}: unknown key; check its spelling or remove it"
    if kind in _MISSING:
        return f"{where}: missing; add it"
    if kind == "union_tag_not_found":
        for key in got if isinstance(got, Mapping) else ():
            if similar(str(key), ["type"]):
                return misspelt(f"{where}.{key}", "type")
        return f"{where}: the type is missing; add type: real, integer, discrete or categorical"
    if kind == "union_tag_invalid":
        return f"{where}: the type must be real, integer, discrete or categorical, got {shown(first['ctx']['tag'])}"
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        field = f"{first['loc'][0]}: " if within and first["loc"] else ""
        return f"{where}: {str(cause).removeprefix(field)}" if field and str(cause).startswith(field) else str(cause)
    if kind in ("dataclass_type", "model_attributes_type", "dict_type"):
        return f"{where}: expected a mapping of keys to values, got {shown(got)}"
    if kind == "string_type" and isinstance(got, bool | int | float):
        return f"{where}: expected text, got {shown(got)}; put it in quotes"
    if kind == "invalid_key":
        return f"{_where(first['loc'][:-1], keep_last=False, within=within) or 'keys'}: a key must be text, got {shown(got)}"
    message = str(cause or first["msg"]).replace("a valid tuple", "a list")
    return f"{where}: {message[:1].lower()}{message[1:]}, got {shown(got)}"


class _Loader(yaml.SafeLoader):
    """YAML where a key stated twice, a value that Python cannot make, and too many values are errors with a line number.

    An alias, and so a merge key, stands for everything that its anchor holds: a few lines can stand for more than memory holds.
    Values are counted as if aliases were written out, before any of them is made.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._values = 0
        self._sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        before, is_alias = self._values, self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        assert node is not None
        if is_alias and node not in self._sizes:
            raise _unreadable(node, "an alias stands inside of what it stands for")
        self._values += self._sizes[node] if is_alias else 1
        if self._values > MOST_VALUES:
            raise _unreadable(node, f"it holds more than {MOST_VALUES:,} values, aliases written out")
        if not is_alias:
            self._sizes[node] = self._values - before
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _unreadable(key, f"the key {shown(key.value)} is stated twice")
                seen.add(key.value)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError) as error:
            raise _unreadable(node, f"{shown(node.value)} is no {node.tag.split(':')[-1]}") from error


def _unreadable(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _where(location: tuple[int | str, ...], keep_last: bool, within: str = "") -> str:
    """Write a location as --set takes it, "problem.variables.0.low", without what pydantic adds and no user wrote."""
    last = len(location) - 1
    steps = (p for i, p in enumerate(location) if not _is_tag(p) or (keep_last and i == last))
    return ".".join([*filter(None, [within]), *(str(p) if isinstance(p, int) else shown(p)[1:-1] for p in steps)])


def _is_tag(part: int | str) -> bool:
    """Recognise the tags and type names of unions."""
    return isinstance(part, str) and (part in ("real", "integer", "discrete", "categorical", "str") or "[" in part)


def _kind(content: object) -> str:
    if content is None:
        return "an empty file"
    return "a list" if isinstance(content, list) else f"just {shown(content)}"
