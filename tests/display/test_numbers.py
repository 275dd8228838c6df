"""Numbers have as many digits as their deviation leaves."""

from __future__ import annotations

import math

import pytest

from cbabo.display.numbers import estimated, labelled, measured, number, percent, rounded_like, stated


@pytest.mark.parametrize(
    ("mean", "std", "expected"),
    [
        (18.823456, 0.1234, "18.82 ± 0.12"),
        (18.823456, 0.0996, "18.82 ± 0.10"),  # two digits of what the deviation is rounded to
        (0.25, 3.3, "0.2 ± 3.3"),
        (-0.004, 0.05, "-0.004 ± 0.050"),
        (-0.0004, 0.5, "0.00 ± 0.50"),  # no negative zero
        (123456.0, 2345.0, "123500 ± 2300"),
        (12345678.0, 234567.0, "(1.235 ± 0.023)e+07"),
        (0.00001234, 0.00000056, "(1.234 ± 0.056)e-05"),
        (5.751468, 0.000061, "5.75147 ± 0.00006"),
        (18.823456, 0.0096, "18.82 ± 0.01"),
        (5.751468, 1e-9, "5.75147 ± 1e-09"),
        (5.751468, 0.0, "5.7515"),
        (5.751468, math.nan, "5.7515"),
        (0.0, 0.0, "0"),
        (math.inf, 1.0, "inf"),
    ],
)
def test_a_number_is_written_to_two_digits_of_its_deviation(mean: float, std: float, expected: str) -> None:
    assert estimated(mean, std) == expected


@pytest.mark.parametrize(
    ("value", "mean", "std", "expected"),
    [
        (1.176544, 18.823456, 0.12, "1.18"),
        (0.00013, 4.00013, 0.000016, "0.00013"),
        (1.176544, 18.823456, 0.0, "1.1765"),
        (1234567.0, 12345678.0, 234567.0, "1.23e+06"),
        (0.1, 70.0, 25.0, "0"),
        (-0.0, 1.0, 0.25, "0.00"),
    ],
)
def test_what_is_compared_has_the_digits_of_the_estimate(value: float, mean: float, std: float, expected: str) -> None:
    assert rounded_like(value, mean, std) == expected


def test_a_probability_is_certain_only_where_it_is() -> None:
    assert [percent(p) for p in (1.0, 0.99999, 0.983, 1e-6, 0.0)] == [
        "100.0 %",
        "> 99.9 %",
        "98.3 %",
        "< 0.1 %",
        "0.0 %",
    ]


def test_names_and_stated_numbers_have_their_units() -> None:
    assert (labelled("mass", "kg"), labelled("ratio", "")) == ("mass [kg]", "ratio")
    assert (measured(0.1 + 0.2, "mm"), measured(5.0, ""), stated(187.36), number(1.0)) == ("0.3 mm", "5", "187.36", "1")
