"""Values of formulas, and their first and second derivatives, at many places at once.

Symbols and shapes
    v    b x m        values of what a formula depends on, in the order of its names
    f    b            the formula's values; g  b x m  its gradient; H  b x m x m  its second derivatives

Derivatives follow the chain rule from step to step, first ones backwards and second ones forwards, and are exact to rounding.
A step of numbers alone has none, so that (-2)**3 has none by its exponent. At a kink of abs, min and max one side counts. Values
that are not finite, as at a division by zero, are returned as they are, without a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cbabo.domain.expression import Expression, Step
from cbabo.numerics.arrays import FloatArray

_Unary = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
_LN10 = math.log(10.0)


def _root(a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    f = np.sqrt(a)
    return f, 0.5 / f, -0.25 / (f * a)


def _exp(a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    f = np.exp(a)
    return f, f, f


def _tan(a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    f = np.tan(a)
    slope = 1.0 + f * f
    return f, slope, 2.0 * f * slope


def _tanh(a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    f = np.tanh(a)
    slope = 1.0 - f * f
    return f, slope, -2.0 * f * slope


def _asin(a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    slope = 1.0 / np.sqrt((1.0 - a) * (1.0 + a))
    return np.arcsin(a), slope, a * slope**3


def _acos(a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    slope = -1.0 / np.sqrt((1.0 - a) * (1.0 + a))
    return np.arccos(a), slope, a * slope**3


def _atan(a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    slope = 1.0 / (1.0 + a * a)
    return np.arctan(a), slope, -2.0 * a * slope**2


_UNARY: dict[str, _Unary] = {
    "neg": lambda a: (-a, -np.ones_like(a), np.zeros_like(a)),
    "abs": lambda a: (np.abs(a), np.sign(a), np.zeros_like(a)),
    "sqrt": _root,
    "exp": _exp,
    "log": lambda a: (np.log(a), 1.0 / a, -1.0 / (a * a)),
    "log10": lambda a: (np.log10(a), 1.0 / (_LN10 * a), -1.0 / (_LN10 * a * a)),
    "sin": lambda a: (np.sin(a), np.cos(a), -np.sin(a)),
    "cos": lambda a: (np.cos(a), -np.sin(a), -np.cos(a)),
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "atan": _atan,
    "sinh": lambda a: (np.sinh(a), np.cosh(a), np.sinh(a)),
    "cosh": lambda a: (np.cosh(a), np.sinh(a), np.cosh(a)),
    "tanh": _tanh,
}


def _smaller(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.where(a <= b, a, b)


def _larger(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.where(a >= b, a, b)


_VALUES: dict[str, Callable[..., FloatArray]] = {
    **{name: (lambda a, of=of: of(a)[0]) for name, of in _UNARY.items()},
    **{"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power},
    **{"min": _smaller, "max": _larger},
}


def _binary(operation: str, a: FloatArray, b: FloatArray) -> tuple[FloatArray, ...]:
    """Return f and its partial derivatives f_a, f_b, f_aa, f_ab, f_bb."""
    one, zero = np.ones_like(a), np.zeros_like(a)
    if operation == "+":
        return a + b, one, one, zero, zero, zero
    if operation == "-":
        return a - b, one, -one, zero, zero, zero
    if operation == "*":
        return a * b, b, a, zero, one, zero
    if operation == "/":
        f = a / b
        return f, 1.0 / b, -f / b, zero, -1.0 / (b * b), 2.0 * f / (b * b)
    if operation == "**":
        f, log = a**b, np.log(a)
        below = a ** (b - 1.0)
        second = b * (b - 1.0)
        slope = np.where(b == 0.0, 0.0, b * below)
        return (
            f,
            slope,
            f * log,
            np.where(second == 0.0, 0.0, second * a ** (b - 2.0)),
            below * (1.0 + b * log),
            f * log * log,
        )
    first = (a <= b) if operation == "min" else (a >= b)
    chosen = first.astype(np.float64)
    return np.where(first, a, b), chosen, 1.0 - chosen, zero, zero, zero


def values(expression: Expression, v: FloatArray) -> FloatArray:
    """Return f."""
    with np.errstate(all="ignore"):
        return _values(expression, v)[-1]


def derivatives(expression: Expression, v: FloatArray, order: int = 1) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return f, g and, for the order 2, H, which is empty (b x 0 x 0) otherwise.

    Examples:
        >>> from cbabo.domain.expression import parse
        >>> f, g, H = derivatives(parse("formula", "a*b**2", ["a", "b"]), np.array([[2.0, 3.0]]), 2)
        >>> f.tolist(), g.tolist(), H.tolist()
        ([18.0], [[9.0, 12.0]], [[[0.0, 6.0], [6.0, 4.0]]])
    """
    if order < 2:
        return *_gradient(expression, v), np.empty((len(v), 0, 0))
    b, m = v.shape
    unit = np.eye(m)
    found: list[tuple[FloatArray, FloatArray | None, FloatArray | None]] = []
    column = 0
    with np.errstate(all="ignore"):
        for step in expression.steps:
            if step.operation == "number":
                found.append((np.full(b, step.value), None, None))
            elif step.operation == "name":
                found.append((v[:, column], np.broadcast_to(unit[column], (b, m)), np.zeros((b, m, m))))
                column += 1
            elif len(step.operands) == 1:
                found.append(_of_one(step.operation, found[step.operands[0]]))
            else:
                found.append(_of_two(step.operation, *(found[i] for i in step.operands)))
    f, g, H = found[-1]
    nothing = np.zeros((b, m)), np.zeros((b, m, m))
    return f, nothing[0] if g is None else np.array(g), nothing[1] if H is None else H


def _values(expression: Expression, v: FloatArray) -> list[FloatArray]:
    """Return the values (b) of all steps."""
    found: list[FloatArray] = []
    columns = iter(v.T)
    for step in expression.steps:
        if step.operation == "number":
            found.append(np.full(len(v), step.value))
        elif step.operation == "name":
            found.append(next(columns))
        else:
            found.append(_VALUES[step.operation](*(found[i] for i in step.operands)))
    return found


def _gradient(expression: Expression, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return f and g, propagated backwards from the last step, which takes about as long as two evaluations."""
    steps = expression.steps
    with np.errstate(all="ignore"):
        found = _values(expression, v)
        by_step: list[FloatArray | None] = [None] * len(steps)
        by_step[-1] = np.ones(len(v))
        varies = expression.varies
        for i in range(len(steps) - 1, -1, -1):
            slope, operands = by_step[i], steps[i].operands
            if slope is None or not operands:
                continue
            partials = _partials(steps[i].operation, found[i], *(found[j] for j in operands))
            for j, partial in zip(operands, partials, strict=True):
                if varies[j]:
                    more, before = slope * partial, by_step[j]
                    by_step[j] = more if before is None else before + more
    columns = [by_step[i] for i, step in enumerate(steps) if step.operation == "name"]
    nothing = np.zeros(len(v))
    return found[-1], np.column_stack([nothing if c is None else c for c in columns] or [np.empty((len(v), 0))])


def _partials(operation: str, f: FloatArray, *operands: FloatArray) -> tuple[FloatArray | float, ...]:
    """Return the partial derivatives of a step by its operands."""
    if len(operands) == 1:
        return (_UNARY[operation](operands[0])[1],)
    a, b = operands
    if operation == "+":
        return 1.0, 1.0
    if operation == "-":
        return 1.0, -1.0
    if operation == "*":
        return b, a
    if operation == "/":
        return 1.0 / b, -f / b
    return _binary(operation, a, b)[1:3]


_Jet = tuple[FloatArray, FloatArray | None, FloatArray | None]


def _of_one(operation: str, operand: _Jet) -> _Jet:
    a, ga, Ha = operand
    f, slope, second = _UNARY[operation](a)
    if ga is None:
        return f, None, None
    g = slope[:, None] * ga
    if Ha is None:
        return f, g, None
    return f, g, slope[:, None, None] * Ha + second[:, None, None] * _outer(ga, ga)


def _of_two(operation: str, left: _Jet, right: _Jet) -> _Jet:
    (a, ga, Ha), (b, gb, Hb) = left, right
    f, fa, fb, faa, fab, fbb = _binary(operation, a, b)
    if ga is None and gb is None:
        return f, None, None
    # What does not vary has no derivative, and a partial derivative that is not finite must not be multiplied by its zero.
    parts = [p[:, None] * g for p, g in ((fa, ga), (fb, gb)) if g is not None]
    gradient = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    if Ha is None and Hb is None:
        return f, gradient, None
    seconds = [p[:, None, None] * H for p, H in ((fa, Ha), (fb, Hb)) if H is not None]
    seconds += [p[:, None, None] * _outer(g, g) for p, g in ((faa, ga), (fbb, gb)) if g is not None]
    if ga is not None and gb is not None:
        mixed = _outer(ga, gb)
        seconds.append(fab[:, None, None] * (mixed + mixed.transpose(0, 2, 1)))
    return f, gradient, sum(seconds[1:], seconds[0])


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(a[:, :, None] * b[:, None, :])


def linear_form(expression: Expression) -> tuple[FloatArray, float] | None:
    """Return the coefficients (m) and the constant of a formula that is linear in everything it depends on; None of another.

    Examples:
        >>> from cbabo.domain.expression import parse
        >>> a, constant = linear_form(parse("formula", "2*(x - 3*y) / 4 + 1", ["x", "y"]))
        >>> a.tolist(), constant
        ([0.5, -1.5], 1.0)
        >>> linear_form(parse("formula", "x*y", ["x", "y"])) is None
        True
    """
    unit = iter(np.eye(len(expression.names)))
    found: list[_Linear | None] = []
    with np.errstate(all="ignore"):
        for step in expression.steps:
            if step.operation == "name":
                found.append((next(unit), 0.0))
            else:
                found.append(_linear_step(step, [found[i] for i in step.operands], len(expression.names)))
    last = found[-1]
    return last if last is not None and bool(np.isfinite([*last[0], last[1]]).all()) else None


_Linear = tuple[FloatArray, float]


def _linear_step(step: Step, operands: list[_Linear | None], m: int) -> _Linear | None:
    if step.operation == "number":
        return np.zeros(m), step.value
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    (a, constant), (b, other) = known[0], known[-1]
    if not any(operand[0].any() for operand in known):  # Numbers alone.
        jets: list[_Jet] = [(np.array([value]), None, None) for _, value in known]
        result = _of_one(step.operation, jets[0]) if len(jets) == 1 else _of_two(step.operation, jets[0], jets[1])
        return np.zeros(m), float(result[0][0])
    if step.operation == "neg":
        return -a, -constant
    if step.operation in ("+", "-"):
        sign = 1.0 if step.operation == "+" else -1.0
        return a + sign * b, constant + sign * other
    if step.operation == "*" and not (a.any() and b.any()):
        return a * other + b * constant, constant * other
    if step.operation == "/" and not b.any():
        return a / other, constant / other
    return None
