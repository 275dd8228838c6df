"""Numbers as people read them: as many digits as their standard deviation leaves."""

from __future__ import annotations

import math

_LARGE, _SMALL = 1e6, 1e-3
_SURE, _CERTAIN = 1e-3, 1e-6
"""Shares of a number: of a smaller deviation than the first one digit is enough, and below the second it adds no digits."""


def number(value: float) -> str:
    """Write a number whose deviation is not known.

    Examples:
        >>> number(18.823456), number(1234567.0)
        ('18.823', '1.2346e+06')
    """
    return f"{value:.5g}"


def stated(value: float) -> str:
    """Write a number that a person stated, as a limit.

    Examples:
        >>> stated(187.36), stated(0.1 + 0.2)
        ('187.36', '0.3')
    """
    return f"{value:.8g}"


def estimated(mean: float, std: float) -> str:
    """Write a number with its standard deviation, to two digits of the deviation, or one if that is small.

    Examples:
        >>> estimated(18.823456, 0.1234), estimated(123456.0, 2345.0), estimated(18.823456, 0.0)
        ('18.82 ± 0.12', '123500 ± 2300', '18.823')
        >>> estimated(12345678.0, 234567.0), estimated(18.823456, 0.00123)
        ('(1.235 ± 0.023)e+07', '18.823 ± 0.001')
    """
    if not _is_deviation(mean, std):
        return number(mean)
    if std < _CERTAIN * abs(mean):
        return f"{mean:.6g} ± {std:.1g}"
    power = _power(mean, std)
    scale = 10.0**power
    text = " ± ".join(_rounded((mean / scale, std / scale), _decimals(mean / scale, std / scale)))
    return f"({text})e{power:+03d}" if power else text


def rounded_like(value: float, mean: float, std: float) -> str:
    """Write a number that is compared with an estimate, to the digit to which `estimated` writes that.

    Examples:
        >>> rounded_like(1.176544, 18.823456, 0.1234), rounded_like(1.176544, 18.823456, 0.0)
        ('1.18', '1.1765')
    """
    if not _is_deviation(mean, std) or std < _CERTAIN * abs(mean) or not math.isfinite(value):
        return number(value)
    if _power(mean, std):
        return f"{value:.2e}"
    return _rounded((value,), _decimals(mean, std))[0]


def labelled(name: str, unit: str) -> str:
    """Write a name with its unit."""
    return f"{name} [{unit}]" if unit else name


def measured(value: float, unit: str) -> str:
    """Write a number as it was stated, with its unit."""
    return f"{stated(value)} {unit}" if unit else stated(value)


def percent(share: float) -> str:
    """Write a probability; one that is not certain is never written as if it were."""
    text = f"{100.0 * share:.1f} %"
    if text == "100.0 %" and share < 1.0:
        return "> 99.9 %"
    return "< 0.1 %" if text == "0.0 %" and share > 0.0 else text


def _is_deviation(mean: float, std: float) -> bool:
    return std > 0.0 and math.isfinite(mean) and math.isfinite(std)


def _power(mean: float, std: float) -> int:
    """Return the power of ten that is written apart; 0 for numbers of a usual size."""
    largest = max(abs(mean), std)
    return 0 if _SMALL <= largest < _LARGE else math.floor(math.log10(largest))


def _decimals(mean: float, std: float) -> int:
    """Return after which decimal place the deviation's digits end; below zero before the point."""
    digits = 1 if std < _SURE * abs(mean) else 2
    return digits - 1 - math.floor(math.log10(float(f"{std:.{digits - 1}e}")))


def _rounded(values: tuple[float, ...], decimals: int) -> list[str]:
    return [f"{round(value, decimals) + 0.0:.{max(decimals, 0)}f}" for value in values]
