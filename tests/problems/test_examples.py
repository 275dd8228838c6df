"""The examples in the docstrings of cbabo.problems run and print what they state."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from cbabo import problems
from cbabo.problems import analytic, engineering, shipped


@pytest.mark.parametrize("module", [problems, shipped, analytic, engineering], ids=lambda module: module.__name__)
def test_the_examples_run(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
