from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from cbabo import Settings, problems
from cbabo.bench import ours, versions
from cbabo.bench.methods import METHODS, SOLVING
from cbabo.bench.versions import closure, version


def test_a_closure_holds_lazy_and_indirect_imports() -> None:
    found = closure(("cbabo.study.study",))
    expected = {"study.study", "answering.model", "surrogate.forms", "surrogate.gp", "methods.settings"}
    assert {f"cbabo.{name}" for name in expected} <= found
    assert not any(name.startswith(("cbabo.surfaces.cli", "cbabo.bench")) for name in found)


@pytest.mark.parametrize("name", METHODS)
def test_no_method_depends_on_what_only_shows_it(name: str) -> None:
    found = closure(METHODS[name].modules)
    shown = (
        "cbabo.surfaces.cli",
        "cbabo.bench.tables",
        "cbabo.bench.figures",
        "cbabo.bench.printed",
        "cbabo.bench.campaign",
    )
    assert not any(module.startswith(shown) for module in found)
    assert "cbabo.bench.truth" not in found


def test_baselines_do_not_depend_on_each_other_or_on_what_they_are_compared_with() -> None:
    found = closure(METHODS["LogcEI"].modules)
    assert "cbabo.bench.baselines.improvement" in found
    assert "cbabo.bench.baselines.trustregion" not in found
    assert not found & {
        "cbabo.network.pcm",
        "cbabo.methods.training",
        "cbabo.model",
        "cbabo.study.study",
        "cbabo.bench.ours",
        "cbabo.bench.rivals",
    }
    assert "cbabo.bench.ours" in closure(METHODS["paper"].modules)


def test_what_a_package_passes_on_counts_singly() -> None:
    """Baselines take `fit` from the package of surrogates, which also passes on how the solver's are formed."""
    found = closure(METHODS["LogcEI"].modules)
    assert {"cbabo.surrogate.fit", "cbabo.surrogate.gp", "cbabo.surrogate.likelihood"} <= found
    assert not found & {"cbabo.surrogate", "cbabo.surrogate.forms"}
    assert "cbabo.surrogate.forms" in closure(METHODS["default"].modules)


def test_recommending_counts_where_it_is_asked_for() -> None:
    assert "cbabo.decisions.recommend" in closure(METHODS["case study"].modules)
    assert "cbabo.decisions.recommend" not in closure(METHODS["default"].modules)
    assert "cbabo.solver.continuous" in closure(METHODS["default"].modules)


def test_the_map_of_solved_answers_counts_where_it_is_measured() -> None:
    assert {"cbabo.solver.library", "cbabo.numerics.qp", "cbabo.network.distillation"} <= closure(
        METHODS["default"].modules
    )
    for name in ("paper", "lhs strong", "default focused"):
        assert not {"cbabo.solver.library", "cbabo.numerics.qp", "cbabo.network.distillation"} & closure(
            METHODS[name].modules
        )


def test_what_is_set_apart_never_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole unit of the paper's settings, with refinement, enters no function of a module that solves."""
    monkeypatch.setattr(ours, "BUDGET", 16)
    monkeypatch.setattr(ours, "CHECKPOINTS", (11,))
    quick = Settings.paper().replace(inner_steps=2, hidden_width=8, initial_evaluations=10, candidates=50)
    entered: set[str] = set()

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            entered.add(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        ours.Map(quick)(problems.get("gkxwc2"), 3, 100)
    finally:
        sys.setprofile(before)
    assert {
        "cbabo.methods.training",
        "cbabo.surrogate.posterior",
        "cbabo.answering.refine",
        "cbabo.surrogate.fit",
    } <= entered
    assert not entered & set(SOLVING)
    assert set(SOLVING) <= closure(METHODS["default"].modules)


def test_what_needs_no_surrogates_of_ours_does_not_depend_on_them() -> None:
    assert not {"cbabo.study.study", "cbabo.model", "cbabo.solver.continuous"} & closure(METHODS["lhs plain"].modules)
    assert {"cbabo.study.study", "cbabo.solver.continuous", "cbabo.bench.rivals"} <= closure(
        METHODS["lhs strong"].modules
    )


@pytest.mark.parametrize("name", ["paper", "LogcEI", "lhs plain", "qLogNEHVI"])
def test_the_problems_count(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = METHODS[name].code
    code = versions._code
    monkeypatch.setattr(versions, "_code", lambda module: code(module) + "#" * (module == "cbabo.problems.active"))
    assert METHODS[name].code != before


def test_settings_count() -> None:
    codes = {METHODS[name].code for name in ("paper", "all random", "no monotonic", "beta 1.0", "beta 2.0", "inner 20")}
    assert len(codes) == 6


def test_code_counts_and_words_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(source: str) -> str:
        file = tmp_path / "module.py"
        file.write_text(source)
        monkeypatch.setattr(versions, "_file", lambda name: file)
        versions._imported.cache_clear()
        versions._code.cache_clear()
        return version(("cbabo.module",))

    try:
        first = of('"""Words."""\n\ndef f(x):\n    """More."""\n    return x  # why\n')
        assert of('"""Other words."""\ndef f(x):\n    return (x)\n') == first
        assert of("def f(x):\n    return x + 1\n") != first
    finally:
        versions._imported.cache_clear()
        versions._code.cache_clear()
