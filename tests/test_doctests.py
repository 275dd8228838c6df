"""The examples in docstrings do what they show, and every public class has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import cbabo
from cbabo import Settings

APART = (
    "cbabo.bench",
    "cbabo.surfaces",
    "cbabo.evaluators.worker",
    "cbabo.evaluators.guard",
    "cbabo.__main__",
    "cbabo.storage",
)
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(cbabo.__path__, "cbabo.") if not module.name.startswith(APART)
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a smaller library, with which models are made sooner; no example shows its size, but for the settings'."""
    module = importlib.import_module(name)
    if name != "cbabo.methods.settings":
        monkeypatch.setattr(Settings, "default", lambda: Settings(library=16))
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", cbabo.__all__)
def test_every_public_class_shows_an_example(name: str) -> None:
    found = [test for test in doctest.DocTestFinder().find(getattr(cbabo, name), name) if test.name == name]
    assert any(test.examples for test in found), f"{name} has no example in its docstring"
