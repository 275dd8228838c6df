"""Numbers as people read them: as many digits as their standard deviation leaves."""

from __future__ import annotations

import math

_LARGE, _SMALL = 1e6, 1e-3
_SURE = 1e-4
"""Share of a number below which its deviation adds no further digits: nobody reads more than six."""


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
    """Write a number with its standard deviation, both to two digits of the deviation; one without a deviation by itself.

    Examples:
        >>> estimated(18.823456, 0.1234), estimated(123456.0, 2345.0), estimated(18.823456, 0.0)
        ('18.82 ± 0.12', '123500 ± 2300', '18.823')
        >>> estimated(12345678.0, 234567.0), estimated(18.823456, 0.00012)
        ('(1.235 ± 0.023)e+07', '18.8235 ± 0.0001')
    """
    if not (std > 0.0 and math.isfinite(mean) and math.isfinite(std)):
        return number(mean)
    if std < _SURE * abs(mean):
        return f"{mean:.6g} ± {std:.1g}"
    largest = max(abs(mean), std)
    if _SMALL <= largest < _LARGE:
        return " ± ".join(_rounded((mean, std), _decimals(std)))
    power = math.floor(math.log10(largest))
    scaled = (mean / 10.0**power, std / 10.0**power)
    return f"({' ± '.join(_rounded(scaled, _decimals(scaled[1])))})e{power:+03d}"


def rounded(value: float, std: float) -> str:
    """Write a number without its deviation, which says how many digits it has.

    Examples:
        >>> rounded(18.823456, 0.1234), rounded(18.823456, 0.0)
        ('18.82', '18.823')
    """
    if not (std > 0.0 and math.isfinite(value) and math.isfinite(std)) or std < _SURE * abs(value):
        return number(value)
    largest = max(abs(value), std)
    if _SMALL <= largest < _LARGE:
        return _rounded((value,), _decimals(std))[0]
    return f"{value:.{min(max(math.floor(math.log10(largest)) + _decimals(std), 0), 5)}e}"


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


def _decimals(std: float) -> int:
    """Return after which decimal place two digits of a deviation end; below zero before the point."""
    return 1 - math.floor(math.log10(float(f"{std:.1e}")))


def _rounded(values: tuple[float, ...], decimals: int) -> list[str]:
    return [f"{round(value, decimals) + 0.0:.{max(decimals, 0)}f}" for value in values]
