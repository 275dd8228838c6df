"""Formulas as text: what they compute, their derivatives, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbabo.domain.derivatives import derivatives, linear_form, values
from cbabo.domain.expression import FUNCTIONS, TUNING, Expression, parse, parse_relation, quoted
from cbabo.errors import InputError

NAMES = ["a", "b", "outer diameter", "stress[0]"]
SAFE = {name: getattr(math, name) for name in FUNCTIONS if hasattr(math, name)}
SAFE |= {"abs": abs, "min": min, "max": max, "pi": math.pi}


def _of(text: str) -> Expression:
    return parse("formula", text, NAMES)


def _at(text: str, a: float = 2.0, b: float = 3.0, c: float = 5.0, d: float = 7.0) -> float:
    expression = _of(text)
    point = dict(zip(NAMES, (a, b, c, d), strict=True))
    return float(values(expression, np.array([[point[n] for n in expression.names]]).reshape(1, -1))[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2*3", 7.0),
        ("-2**2", -4.0),
        ("2**3**2", 512.0),
        ("2**-1", 0.5),
        ("8/4/2", 1.0),
        ("a - b - 1", -2.0),
        ("--a", 2.0),
        ("+a*-b", -6.0),
        (".5e1 + 5.", 10.0),
        ("max(a, b, 1)", 3.0),
        ("min(a, b, 1)", 1.0),
        ("`outer diameter` / a", 2.5),
        ("`stress[0]` - `a`", 5.0),
        ("2*pi", 2.0 * math.pi),
        ("sqrt(abs(-16)) + log10(1000) + log(exp(2))", 9.0),
    ],
)
def test_a_formula_is_computed_as_in_python(text: str, expected: float) -> None:
    assert _at(text) == pytest.approx(expected, rel=1e-15)


def _formulas() -> st.SearchStrategy[str]:
    leaves = st.one_of(st.sampled_from(["a", "b"]), st.floats(0.25, 4.0).map(lambda v: f"{v:.3f}"))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(inner, st.sampled_from(["2", "3", "0.5", "-1"])).map(lambda t: f"({t[0]})**{t[1]}"),
            st.tuples(st.sampled_from([n for n in FUNCTIONS if n not in ("min", "max")]), inner).map(
                lambda t: f"{t[0]}({t[1]})"
            ),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
            inner.map(lambda t: f"-{t}"),
        ),
        max_leaves=8,
    )


@settings(max_examples=200, deadline=None)
@given(text=_formulas(), a=st.floats(0.3, 2.0), b=st.floats(0.3, 2.0))
def test_values_are_python_s_own(text: str, a: float, b: float) -> None:
    try:
        expected = eval(text, {"__builtins__": {}}, {**SAFE, "a": a, "b": b})  # The text is made above.
    except (ArithmeticError, ValueError):
        return
    if isinstance(expected, complex) or abs(expected) > 1e100:
        return
    assert _at(text, a, b) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(text=_formulas(), a=st.floats(0.3, 2.0), b=st.floats(0.3, 2.0))
def test_derivatives_are_those_of_finite_differences(text: str, a: float, b: float) -> None:
    expression = parse("formula", f"{text} + 0*a + 0*b", ["a", "b"])
    order = [expression.names.index("a"), expression.names.index("b")]
    v = np.empty((1, 2))
    v[0, order] = a, b
    f, g, H = derivatives(expression, v, 2)
    step = 1e-6
    around = np.vstack([v + sign * step * np.eye(2)[i] for i in range(2) for sign in (1, -1)])
    near, near_g, _ = derivatives(expression, around, 1)
    parts = np.concatenate([f, g.ravel(), H.ravel(), near, near_g.ravel()])
    if not np.isfinite(parts).all() or np.abs(parts).max() > 1e3:
        return
    # A kink, or a place where derivatives vary a lot between neighbours, tells nothing.
    if np.abs(near_g - g).max() > 1e-2:
        return
    slope = (near[0::2] - near[1::2]) / (2 * step)
    assert np.allclose(slope, g[0], rtol=1e-3, atol=2e-4)
    second = (near_g[0::2] - near_g[1::2]) / (2 * step)
    assert np.allclose(second, H[0], rtol=2e-2, atol=2e-2 * (1 + np.abs(H).max()))


@settings(max_examples=100, deadline=None)
@given(text=_formulas(), points=st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=3, max_size=3))
def test_a_linear_form_is_the_formula(text: str, points: list[tuple[float, float]]) -> None:
    expression = parse("formula", f"{text} + 0*a + 0*b", ["a", "b"])
    found = linear_form(expression)
    if found is None:
        return
    v = np.array(points)
    expected = values(expression, v)
    assert np.allclose(v @ found[0] + found[1], expected, rtol=1e-9, atol=1e-9 * (1 + np.abs(expected).max()))


def test_what_is_linear_is_recognised() -> None:
    for text in ("2*a + b", "(a - b)/4 - 3*(b + 1)", "-a", "a*sqrt(4) + 2**3", "7"):
        assert linear_form(_of(text)) is not None, text
    for text in ("a*b", "a/b", "a**2", "max(a, b)", "sqrt(a)"):
        assert linear_form(_of(text)) is None, text


def test_a_number_s_power_has_no_derivative_by_its_exponent() -> None:
    _, g, H = derivatives(_of("a**3"), np.array([[-2.0]]), 2)
    assert g.tolist() == [[12.0]]
    assert H.tolist() == [[[-12.0]]]


def test_what_is_not_finite_is_returned_as_it_is() -> None:
    assert math.isinf(_at("1/(a - 2)"))
    assert math.isnan(_at("log(1 - a)"))
    assert math.isnan(_at("(-a)**0.5"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a formula as text"),
        (7, "expected a formula as text"),
        ("a +", "ends where a number or a name was expected"),
        ("a b", "has 'b' where an operator was expected"),
        ("(a", "without its"),
        ("a ^ 2", r"write a power as \*\*"),
        ("aa + 1", "did you mean a"),
        ("outer_diameter + 1", "did you mean `outer diameter`"),
        ("sqr(a)", "did you mean sqrt"),
        ("sqrt(a, b)", "it takes one argument"),
        ("max(a)", "it takes two or more arguments"),
        ("a <= 2", "only relations do"),
        ("a = 2", "uses =, but only <= and >= are supported"),
        ("1e999", "too large"),
        ("a; b", "does not allow ';'"),
        ("__import__('os')", "calls '__import__'|does not allow"),
        ("a.__class__", "names 'a.__class__'"),
        ("[a]", "does not allow"),
        ("lambda: 1", "names 'lambda'|does not allow"),
        ("`open", "does not allow"),
        ("(" * 100 + "a" + ")" * 100, "nested more than"),
        ("-" * 100 + "a", "nested more than"),
        ("a" + "+a" * TUNING.characters, "at most"),
    ],
)
def test_a_text_that_is_no_formula_is_refused_with_a_sentence(text: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse("formula", text, NAMES)


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet="ab12.+-*/()<>=`,^ esqrtmaxpi_é\n", max_size=40) | st.text(max_size=30))
def test_any_text_is_a_formula_or_gets_a_sentence(text: str) -> None:
    for read in (parse, parse_relation):
        try:
            found = read("formula", text, NAMES)
        except InputError:
            continue
        for expression in found if isinstance(found, list) else [found]:
            values(expression, np.ones((2, len(expression.names))))


def test_a_formula_that_grows_by_others_is_capped() -> None:
    known = {"f0": _of("a*b")}
    for i in range(1, 40):
        known[f"f{i}"] = parse("formula", f"sin(f{i - 1})*cos(f{i - 1})", NAMES, known)
    assert len(known["f39"].steps) < 200  # A part that is used twice stands there once.
    text = "+".join(f"sin(a*{i})" for i in range(700))
    with pytest.raises(InputError, match=r"at most|steps"):
        parse(
            "formula",
            "+".join(f"g{i}" for i in range(4)),
            [],
            {f"g{i}": parse("formula", text.replace("a*", f"a*{i}1"), NAMES) for i in range(4)},
        )


def test_relations_read_both_senses_and_several_in_a_row() -> None:
    [smaller] = parse_relation("relations", "a <= b - 2", ["a", "b"])
    [larger] = parse_relation("relations", "b - 2 >= a", ["a", "b"])
    low, high = parse_relation("relations", "1 <= a <= 2*b", ["a", "b"])
    v = np.array([[4.0, 5.0]])
    assert values(smaller, v).tolist() == [1.0]
    assert values(larger, v[:, [larger.names.index("a"), larger.names.index("b")]]).tolist() in ([1.0], [2.0])
    assert low.names == ("a",)
    assert values(low, v[:, :1]).tolist() == [-3.0]
    assert values(high, v).tolist() == [-6.0]


@pytest.mark.parametrize("text", ["a", "a < b", "a == b", "1 <= 2", "a <= ", "a <= b <", "a => b"])
def test_what_is_no_relation_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="relations: "):
        parse_relation("relations", text, ["a", "b"])


def test_names_are_quoted_where_they_must_be() -> None:
    assert [quoted(n) for n in ("a", "d_1", "outer diameter", "stress[0]", "2x")] == [
        "a", "d_1", "`outer diameter`", "`stress[0]`", "`2x`",
    ]  # fmt: skip
