"""Formulas as text, such as "7.85e-6*width*height*length": read by a small parser of their own, never by Python's `eval`.

Grammar
    relation    sum (("<=" | ">=") sum)+
    sum         product (("+" | "-") product)*
    product     signed (("*" | "/") signed)*
    signed      ("+" | "-") signed | power
    power       atom ("**" signed)?
    atom        number | name | function "(" sum ("," sum)* ")" | "(" sum ")"

A name is a letter or "_" followed by letters, digits, "_" and "."; any other name stands in backquotes, as `outer diameter`.
"pi" is a number unless something is called so. Units are not looked at: values are in the units in which the problem states them.

A formula is a list of steps in the order in which they are computed, the last one being its value. A step refers to earlier ones,
so that evaluation needs no recursion, the page can follow the same list, and a part that is used twice stands there once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cbabo.domain.notation import similar
from cbabo.errors import InputError, shown

FUNCTIONS = (
    *("abs", "sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("min", "max"),
)
"""What may be called; min and max take two or more arguments."""
_FOLDED = ("min", "max")


@dataclass(frozen=True)
class ExpressionTuning:
    """How large a formula may be, so that a text from elsewhere cannot use up time, memory or the stack."""

    characters: int = 10_000
    """Of one text."""
    nesting: int = 60
    """Parentheses, functions, signs and powers within each other."""
    steps: int = 5_000
    """Of one formula, other formulas that it uses included."""


TUNING = ExpressionTuning()

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)
          |(?P<name>[^\W\d][\w.]*)
          |`(?P<quoted>[^`]*)`
          |(?P<sign>\*\*|<=|>=|==|!=|[-+*/(),<>=^]))""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Step:
    """One operation of a formula."""

    operation: str
    """"number", "name", a function, or one of + - * / ** and neg."""
    operands: tuple[int, ...] = ()
    """The steps that it is computed from."""
    value: float = 0.0
    """Of a number."""
    name: str = ""
    """Of what a value is taken."""

    @property
    def plain(self) -> list[str | float | int]:
        """The step as plain values, for the page."""
        if self.operation in ("number", "name"):
            return [self.operation, self.value if self.operation == "number" else self.name]
        return [self.operation, *self.operands]


@dataclass(frozen=True)
class Expression:
    """A formula.

    Examples:
        >>> area = parse("formula", "width * `outer height` / 2", ["width", "outer height"])
        >>> area.names
        ('width', 'outer height')
        >>> [step.plain for step in area.steps]
        [['name', 'width'], ['name', 'outer height'], ['*', 0, 1], ['number', 2.0], ['/', 2, 3]]
    """

    steps: tuple[Step, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What it depends on, in the order of first use."""
        return tuple(step.name for step in self.steps if step.operation == "name")

    @cached_property
    def varies(self) -> tuple[bool, ...]:
        """Which steps depend on a name; the others are numbers."""
        found: list[bool] = []
        for step in self.steps:
            found.append(step.operation == "name" or any(found[i] for i in step.operands))
        return tuple(found)


def parse(where: str, text: object, names: Sequence[str], known: Mapping[str, Expression] | None = None) -> Expression:
    """Read a formula of some names; where: what messages begin with; known: formulas that are put in place of their names."""
    parser = _Parser(where, text, names, known or {})
    result = parser.sum()
    parser.end()
    return parser.expression(result)


def parse_relation(where: str, text: object, names: Sequence[str]) -> list[Expression]:
    """Read "a <= b", or several in a row as "a <= b <= c", as formulas that must not be above zero.

    Examples:
        >>> [smaller] = parse_relation("relations", "inner <= outer - 2", ["inner", "outer"])
        >>> smaller.names
        ('inner', 'outer')
    """
    parser = _Parser(where, text, names, {})
    sides, found = [parser.sum()], []
    while parser.sign in ("<=", ">="):
        sense = parser.take()
        sides.append(parser.sum())
        left, right = sides[-2:] if sense == "<=" else sides[:-3:-1]
        found.append(parser.expression(parser.step("-", left, right)))
    parser.end(relation=True)
    if not found:
        raise InputError(f"{where}: expected a relation such as 'inner <= outer - 2', got {shown(text)}")
    for relation in found:
        if not relation.names:
            raise InputError(f"{where}: expected a relation between variables, got {shown(text)}, which names none")
    return found


def quoted(name: str) -> str:
    """Write a name as formulas take it: in backquotes where it is no plain word."""
    match = _TOKEN.fullmatch(name)
    return name if match is not None and match["name"] == name else f"`{name}`"


def names_in(where: str, text: object) -> list[str]:
    """Return the names that a text uses, functions and "pi" left out, without checking anything else."""
    found = []
    tokens = _Parser(where, text, (), {}).tokens
    for i, (kind, name) in enumerate(tokens):
        called = tokens[i + 1 : i + 2] == [("sign", "(")]
        if kind == "quoted" or (kind == "name" and not called and name != "pi"):
            found.append(name)
    return list(dict.fromkeys(found))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text with other names for some of its own.

    Examples:
        >>> renamed("2*stress + max(stress, 1)", {"stress": "stress[0]"})
        '2*`stress[0]` + max(`stress[0]`, 1)'
    """

    def new(match: re.Match[str]) -> str:
        kind = match.lastgroup
        assert kind is not None
        name = match[kind]
        called = kind == "name" and text[match.end() :].lstrip().startswith("(")
        if kind not in ("name", "quoted") or called or name not in names:
            return match[0]
        return match[0][: len(match[0]) - len(match[0].lstrip())] + quoted(names[name])

    return _TOKEN.sub(new, text)


class _Parser:
    """Reads one text; every method returns the number of the step that it ends with."""

    def __init__(self, where: str, text: object, names: Sequence[str], known: Mapping[str, Expression]) -> None:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{where}: expected a formula as text, got {shown(text)}")
        if len(text) > TUNING.characters:
            raise InputError(f"{where}: expected a text of at most {TUNING.characters:,} characters, got {len(text):,}")
        self._where, self._text, self._names, self._known = where, text, names, known
        self._steps: list[Step] = []
        self._numbers: dict[Step, int] = {}
        self._depth = 0
        self.tokens = self._split(text)
        self._at = 0

    def _split(self, text: str) -> list[tuple[str, str]]:
        found, at = list[tuple[str, str]](), 0
        rest = len(text.rstrip())
        while at < rest:
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._wrong(f"does not allow {text[at:].strip()[0]!r}")
            assert match.lastgroup is not None
            found.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        return found

    @property
    def sign(self) -> str:
        """The sign at which the parser stands; empty where it stands at something else, or at the end."""
        kind, text = self.tokens[self._at] if self._at < len(self.tokens) else ("", "")
        return text if kind == "sign" else ""

    def take(self) -> str:
        """Return the next token's text and go on."""
        self._at += 1
        return self.tokens[self._at - 1][1]

    def end(self, relation: bool = False) -> None:
        """Refuse what is left over."""
        if self._at == len(self.tokens):
            return
        sign = self.sign
        if sign == "^":
            raise self._wrong("uses ^; write a power as **")
        if sign in ("=", "==", "!=", "<", ">"):
            raise self._wrong(f"uses {sign}, but only <= and >= are supported" + ("" if relation else ", in relations"))
        if sign in ("<=", ">="):
            raise self._wrong("compares; only relations do, a formula is a value")
        raise self._wrong(f"has {self.tokens[self._at][1]!r} where an operator was expected")

    def expression(self, result: int) -> Expression:
        """Return the formula that ends with a step, without steps that it does not need."""
        needed = {result}
        for i in range(result, -1, -1):
            if i in needed:
                needed.update(self._steps[i].operands)
        order = {old: new for new, old in enumerate(sorted(needed))}
        steps = (self._steps[i] for i in order)
        return Expression(tuple(Step(s.operation, tuple(order[o] for o in s.operands), s.value, s.name) for s in steps))

    def step(self, operation: str, *operands: int, value: float = 0.0, name: str = "") -> int:
        """Add a step, unless the same one is there already."""
        return self._added(Step(operation, operands, value, name))

    def sum(self) -> int:
        """Read a sum."""
        return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._signed))

    def _chain(self, signs: tuple[str, ...], part: Callable[[], int]) -> int:
        found = part()
        while self.sign in signs:
            found = self.step(self.take(), found, part())
        return found

    def _signed(self) -> int:
        if self.sign in ("+", "-"):
            sign = self.take()
            inner = self._nested(self._signed)
            return inner if sign == "+" else self.step("neg", inner)
        base = self._atom()
        if self.sign == "**":
            self.take()
            return self.step("**", base, self._nested(self._signed))
        return base

    def _atom(self) -> int:
        if self._at == len(self.tokens):
            raise self._wrong("ends where a number or a name was expected")
        kind, text = self.tokens[self._at]
        if self.sign == "(":
            self.take()
            inner = self._nested(self.sum)
            self._close()
            return inner
        if kind == "sign":
            raise self._wrong(f"has {text!r} where a number or a name was expected")
        self.take()
        if kind == "number":
            value = float(text)
            if not math.isfinite(value):
                raise self._wrong(f"has the number {text}, which is too large")
            return self.step("number", value=value)
        if kind == "name" and self.sign == "(":
            return self._call(text)
        return self._named(text, kind == "quoted")

    def _call(self, function: str) -> int:
        if function not in FUNCTIONS:
            meant = similar(function, FUNCTIONS)
            raise self._wrong(
                f"calls {function!r}; " + (f"did you mean {meant}?" if meant else f"known are {', '.join(FUNCTIONS)}")
            )
        self.take()
        arguments = [self._nested(self.sum)]
        while self.sign == ",":
            self.take()
            arguments.append(self._nested(self.sum))
        self._close()
        if (len(arguments) > 1) != (function in _FOLDED):
            expected = "two or more arguments" if function in _FOLDED else "one argument"
            raise self._wrong(f"calls {function} with {len(arguments)}; it takes {expected}")
        found = arguments[0]
        for other in arguments[1:]:
            found = self.step(function, found, other)
        return found if len(arguments) > 1 else self.step(function, found)

    def _named(self, name: str, in_quotes: bool) -> int:
        if name in self._known:
            return self._inserted(self._known[name])
        if name in self._names:
            return self.step("name", name=name)
        if name == "pi" and not in_quotes:
            return self.step("number", value=math.pi)
        every = [*self._names, *self._known]
        meant = similar(name, every)
        raise self._wrong(
            f"names {name!r}, which it cannot depend on; "
            + (f"did you mean {quoted(meant)}?" if meant else f"expected {', '.join(map(quoted, every))}")
        )

    def _inserted(self, other: Expression) -> int:
        at: list[int] = []
        for s in other.steps:
            at.append(self._added(Step(s.operation, tuple(at[o] for o in s.operands), s.value, s.name)))
        return at[-1]

    def _added(self, step: Step) -> int:
        if step not in self._numbers:
            if len(self._steps) == TUNING.steps:
                raise self._wrong(f"needs more than {TUNING.steps:,} steps; simplify it")
            self._numbers[step] = len(self._steps)
            self._steps.append(step)
        return self._numbers[step]

    def _nested(self, inner: Callable[[], int]) -> int:
        self._depth += 1
        if self._depth > TUNING.nesting:
            raise self._wrong(f"is nested more than {TUNING.nesting} deep; simplify it")
        found = inner()
        self._depth -= 1
        return found

    def _close(self) -> None:
        if self.sign != ")":
            raise self._wrong("has a '(' without its ')'")
        self.take()

    def _wrong(self, problem: str) -> InputError:
        return InputError(f"{self._where}: {shown(self._text)} {problem}")
