from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from threadpoolctl import ThreadpoolController, threadpool_info

from cbabo.numerics.threads import one_thread

SECONDS = 30.0


def numbers() -> list[int]:
    """Threads of torch in this Python thread, and of every BLAS."""
    return [torch.get_num_threads(), *(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")]


def in_a_new_thread(function: Callable[[], object]) -> list[object]:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join(SECONDS)
    return found


@pytest.fixture
def two() -> Iterator[list[int]]:
    """Two threads of everything, on whatever machine."""
    before, blas = torch.get_num_threads(), limited_to(2)
    torch.set_num_threads(2)
    yield [2] * len(numbers())
    torch.set_num_threads(before)
    blas.restore_original_limits()
    free_the_controller()


def limited_to(count: int) -> Any:
    limits = ThreadpoolController().limit(limits=count, user_api="blas")
    free_the_controller()
    return limits


def free_the_controller() -> None:
    """Newer threadpoolctl ignores other Python threads than the first that has set a limit."""
    for library in ThreadpoolController().lib_controllers:
        getattr(library, "clear_controlling_thread", lambda: None)()


def test_the_callers_numbers_come_back(two: list[int]) -> None:
    with one_thread():
        assert set(numbers()) == {1}
        with one_thread():
            assert set(numbers()) == {1}
        assert set(numbers()) == {1}
    assert numbers() == two
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert numbers() == two


def test_overlapping_python_threads_leave_the_process_as_it_was(two: list[int]) -> None:
    first_is_in, second_is_in, first_is_out, look_again = (threading.Event() for _ in range(4))
    seen: dict[str, list[int]] = {}

    def first() -> None:
        seen["first, before"] = numbers()
        with one_thread():
            first_is_in.set()
            assert second_is_in.wait(SECONDS)
        first_is_out.set()
        assert look_again.wait(SECONDS)
        seen["first, after"] = numbers()

    def second() -> None:
        assert first_is_in.wait(SECONDS)
        with one_thread():
            second_is_in.set()
            assert first_is_out.wait(SECONDS)
            seen["second, alone inside"] = numbers()
        seen["second, after"] = numbers()
        look_again.set()

    both = [threading.Thread(target=function) for function in (first, second)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(SECONDS)
    ones = [1] * len(two)
    assert seen == {
        "first, before": two,
        "second, alone inside": ones,
        "second, after": two,
        "first, after": two,
    }
    assert numbers() == two
    assert in_a_new_thread(numbers) == [two]
