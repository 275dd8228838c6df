from __future__ import annotations

import pytest

from cbabo.domain.reasons import reason_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mesh: element 4711 is bad", "mesh: element 9 is bad"),
        ("no answer within 0.5 s", "no answer within 60 s"),
        ("FileNotFoundError: '/tmp/run-7/a.inp'", "FileNotFoundError: '/home/me/runs/00012-ab/a.inp'"),
        (r"C:\work\a.inp is missing", r"D:\b\c.inp is missing"),
        ("value -1.5e-308 at 0x7ffe12", "value .25 at 0xdead"),
        ("the output 'mass' is nan", "the output 'mass' is inf"),
    ],
)
def test_numbers_and_paths_do_not_tell_reasons_apart(one: str, other: str) -> None:
    assert reason_key(one) == reason_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no convergence", "negative Jacobian"),
        ("the command exited with code 3", "the command exited with code 4"),
        ("the output 'mass' is missing", "the output 'stress' is missing"),
        ("", "no convergence"),
    ],
)
def test_words_and_return_codes_do(one: str, other: str) -> None:
    assert reason_key(one) != reason_key(other)
