"""The benchmark of the decision tools, on a small model: every tool is measured, and the truths are true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmark_scripts import script
from cbabo.bench.truth import truth


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("tool", ["prices", "reach", "conflict", "atlas", "recommend", "explain"])
def test_every_tool_has_a_table(tool: str, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [tool, "--problems", "rc_beam", "--evaluations", "30", "--thresholds", "2", "--models", str(models)]
    out = models / "rows.csv"
    script("decisions").main([*words, "--out", str(out)])
    header, _, row = (line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[-3:])
    assert header[:2] == ["problem", "seeds"]
    assert row[:2] == ["rc_beam", "1"]
    assert len(header) == len(row) > 5


def test_a_stopped_table_goes_on_where_it_was(tmp_path: Path) -> None:
    Rows = script("resuming").Rows
    first = Rows(tmp_path / "rows.csv")
    first.add("prices", "rc_beam", 0, {"limits": 40, "error %": 0.25, "largest error": 1.0})
    again = Rows(tmp_path / "rows.csv")
    assert again.has("prices", "rc_beam", 0)
    assert not again.has("prices", "rc_beam", 1)
    again.add("prices", "rc_beam", 1, {"limits": 20, "error %": 0.75, "largest error": 3.0})
    line = Rows(tmp_path / "rows.csv").table("prices", ["rc_beam", "car"], [0, 1], ["limits"]).splitlines()[-1]
    assert line == "| rc_beam | 2 | 60 | 0.5 | 3 |"


def test_true_prices_are_those_of_the_formula() -> None:
    """The three-bar truss at c1 alone: its volume is inverse to the stress that is allowed, f = 263.9 * 2 / (2 + c1)."""
    functions = script("decisions").TrueFunctions("three_truss")
    limits = np.array([2.0, 10.0, 10.0])
    known = truth("three_truss").strictest
    assert functions.prices(limits, 0.5 * known.x)[0] / 10.0 == pytest.approx(2.0 * known.f / 4.0**2, rel=1e-3)
