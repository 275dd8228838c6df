"""One seed, many named children."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbabo.errors import InputError
from cbabo.numerics.seeding import child, child_seed

PINNED = 8057930685647958172  # child_seed(0, "batch", 3): a change here changes every stored study

_names = st.lists(st.one_of(st.integers(-9, 9), st.text("abc1-", max_size=3)), max_size=3).map(tuple)


def test_the_same_path_gives_the_same_numbers() -> None:
    first, second = child(7, "design", 2), child(7, "design", 2)
    assert first is not second
    assert np.array_equal(first.random(100), second.random(100))


@settings(max_examples=100, deadline=None)
@given(one=_names, other=_names)
def test_children_differ_as_soon_as_their_names_differ(
    one: tuple[str | int, ...], other: tuple[str | int, ...]
) -> None:
    assert (child_seed(3, *one) == child_seed(3, *other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0, "a"), (1, "a")),
        ((0, "a"), (0, "a", "a")),
        ((0, "a", "b"), (0, "b", "a")),
        ((0, "ab"), (0, "a", "b")),
        ((0, 1), (0, "1")),
        ((0,), (0, "")),
        ((2**40, "a"), (0, "a")),
    ],
)
def test_neighbours_are_strangers(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    assert not np.array_equal(child(*one).random(4), child(*other).random(4))


def test_a_numpy_integer_names_the_same_child_as_an_int() -> None:
    assert child_seed(np.int64(5), "step", np.int32(3)) == child_seed(5, "step", 3)


def test_child_seed_is_pinned_and_fits_63_bits() -> None:
    assert child_seed(0, "batch", 3) == PINNED
    assert all(0 <= child_seed(seed, "x") < 2**63 for seed in range(50))


def test_children_are_stable_across_processes() -> None:
    code = "from cbabo.numerics.seeding import child_seed; print(child_seed(0, 'batch', 3))"
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(run.stdout) == PINNED


def test_the_global_generators_are_left_as_found() -> None:
    numpy_before, python_before = np.random.get_state()[1].copy(), random.getstate()  # type: ignore[index]
    child(1, "a").random(10)
    child_seed(1, "b")
    assert np.array_equal(np.random.get_state()[1], numpy_before)  # type: ignore[index]
    assert random.getstate() == python_before


@pytest.mark.parametrize("seed", [-1, None, 1.5, "1", True, float("nan"), [1]])
def test_a_seed_that_is_no_whole_number_gets_one_sentence(seed: object) -> None:
    with pytest.raises(InputError, match=r"^seed: expected a whole number, 0 or more, got .*$"):
        child(seed, "a")  # type: ignore[arg-type]
